"""The judges of a run, and whether runs are comparable: judges, rubrics, versions, sentence splitter, language."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from merilo.errors import UsageError
from merilo.judges.routed import recorded_parts
from merilo.judging.registry import SPECIAL
from merilo.metrics.base import Score
from merilo.metrics.registry import known_metric
from merilo.results.estimate import Basis
from merilo.runs.directory import judge_difference
from merilo.runs.outcomes import outcome_from
from merilo.stats.corrected_pairs import VarianceComponents, variance_components

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from merilo.runs.manifest import Manifest
    from merilo.runs.run import Run

    Judge = Mapping[str, object]

EMBEDDED: Final = "embedded"


def recorded_judge(manifest: Manifest) -> str | None:
    """Return the name of the judge in the role `judge`; `no judge` if no metric asks one, None for imported scores."""
    if not manifest.judges:
        return None if manifest.origin else Basis.NO_JUDGE.value
    name = manifest.judges.get("judge", {}).get("name")
    return None if name is None else str(name)


def judged_by_embedded(manifest: Manifest, metric: str | None = None) -> bool:
    """Return True if the embedded judge answers questions of the run.

    `metric`: count only questions of this metric; None: all. A metric that is not known here may ask any.
    """
    known = None if metric is None else known_metric(metric)
    asked = None if known is None else {kind.kind for kind in known.asks}
    return any(
        part.fingerprint.get("judge") == EMBEDDED and (asked is None or bool(asked & part.kinds))
        for judge in manifest.judges.values()
        for part in recorded_parts(judge)
    )


def judge_noise(run: Run) -> dict[str, VarianceComponents | None]:
    """Return the variance components of each metric with several draws, over its scored samples.

    None (cannot tell) for a metric with fewer than two scored samples. Empty for a run with one draw of each question.
    """
    values: dict[str, list[tuple[float, ...]]] = {text: [] for text in run.manifest.draws}
    for record in run.records() if values else ():
        if record["metric"] in values and isinstance(outcome := outcome_from(record), Score):
            values[record["metric"]].append(outcome.draws)
    return {text: variance_components(each) for text, each in values.items()}


# -- runs that can be compared -------------------------------------------------------------------------

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
