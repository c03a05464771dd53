"""Checks that two runs are comparable: same judges, rubrics, metric versions, sentence splitter and language."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from merilo.engine.answer_store import SPECIAL
from merilo.errors import UsageError
from merilo.judges.routed import recorded_parts
from merilo.metrics.registry import known_metric
from merilo.runs.manifest_diff import judge_difference

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from merilo.runs.manifest import Manifest

    Judge = Mapping[str, object]

_READS_RUBRICS = "llm"
"""The value of `judge` in the fingerprint of judges that read our rubrics."""


def score_affecting_differences(first: Manifest, second: Manifest, *, metrics: Sequence[str]) -> tuple[str, ...]:
    """Return a phrase for each difference between two runs that can change the scores of these metrics.

    `metrics`: full metric texts, present in both runs. The function compares metric versions, judges, rubrics of
    language models, the sentence splitter and a language forced on the data. Judges that no metric asks are ignored:
    a metric that only compares ids has no judge. A metric unknown to this merilo is assumed to ask all judges.
    """
    found = [
        f"{text} has version {first.metrics[text]} there and {second.metrics[text]} here"
        for text in metrics
        if first.metrics.get(text) != second.metrics.get(text) and text in first.metrics and text in second.metrics
    ]
    found += [
        f"{text} was asked in the words of {first.wordings.get(text, 'merilo')} there and of "
        f"{second.wordings.get(text, 'merilo')} here"
        for text in metrics
        if first.wordings.get(text) != second.wordings.get(text)
    ]
    asked = _asked(metrics, {*first.judges, *second.judges})
    found += [
        phrase
        for role in asked
        if (phrase := _judges_differ(role, first.judges.get(role), second.judges.get(role))) is not None
    ]
    if asked:
        if _has_rubrics(first, asked) and _has_rubrics(second, asked):
            found += _changed("the rubric of", first.rubrics, second.rubrics)
        found += _changed("", {"the sentence splitter": first.splitter}, {"the sentence splitter": second.splitter})
        languages = ({"the language": each.language or "each sample's own"} for each in (first, second))
        found += _changed("", *languages)
    return tuple(found)


def not_comparable(who: str, differences: Sequence[str], *, advice: str = "") -> UsageError:
    """Return the error for runs that are not comparable.

    `who`: the subject of the sentence. `advice`: more advice, appended to "Re-run one of them".
    """
    return UsageError(f"{who} are not comparable: {'; '.join(differences)}. Re-run one of them{advice}.")


def _asked(metrics: Iterable[str], roles: Collection[str]) -> list[str]:
    """Return the roles that the metrics may ask, sorted by name; all roles if a metric is unknown."""
    wanted: set[str] = set()
    for text in metrics:
        metric = known_metric(text)
        if metric is None:
            return sorted(roles)
        kinds = set(metric.asks)
        wanted |= {SPECIAL[kind] for kind in kinds if kind in SPECIAL}
        wanted |= set(metric.roles) if kinds - set(SPECIAL) else set()
    return sorted(wanted & set(roles))


def _judges_differ(role: str, first: Judge | None, second: Judge | None) -> str | None:
    called = "the judge" if role == "judge" else f"the {role}" if role in SPECIAL.values() else f"the judge {role}"
    if first is None or second is None:
        return f"{called} is present in one run only"
    difference = judge_difference(first, second)
    return None if difference is None else f"{called} {difference}"


def _has_rubrics(manifest: Manifest, roles: Iterable[str]) -> bool:
    parts = chain.from_iterable(recorded_parts(manifest.judges.get(role, {})) for role in roles)
    return bool(manifest.rubrics) and any(each.fingerprint.get("judge") == _READS_RUBRICS for each in parts)


def _changed(what: str, first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Return a phrase for each name that is in both and whose values differ."""
    return [
        f"{what} {name} is {first[name]} there and {second[name]} here".strip()
        for name in first
        if name in second and first[name] != second[name]
    ]
