"""Whether two runs were measured with the same yardstick, so that their numbers may be held against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from merilo.engine.answers import SPECIAL
from merilo.errors import UsageError
from merilo.metrics.registry import known_metric
from merilo.runs.differences import judge_difference

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from merilo.runs.run import Manifest, Run

    Judge = Mapping[str, object]

_READS_RUBRICS = "llm"
"""How the fingerprint of a judge calls itself that is asked through our rubrics."""


def differences_that_move_numbers(first: Manifest, second: Manifest, *, metrics: Sequence[str]) -> tuple[str, ...]:
    """What differs between two runs that can move the numbers of these metrics, a phrase for each; empty for nothing.

    `metrics`: whole texts, in both runs. Looked at: the version of each metric, the judges that it asks, the rubrics
    of a language model's questions, the splitter of sentences and the language that was forced on the data. What a
    metric does not ask is not looked at: one that only compares ids has no judge. What is not known of a metric
    (it is no metric of this merilo) is taken to ask everybody.
    """
    found = [
        f"{text} has version {first.metrics[text]} there and {second.metrics[text]} here"
        for text in metrics
        if first.metrics.get(text) != second.metrics.get(text) and text in first.metrics and text in second.metrics
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


def unlike(who: str, differences: Sequence[str], *, advice: str = "") -> UsageError:
    """What to say of runs whose numbers cannot be held against each other.

    `who`: the subject of the sentence. `advice`: how it goes on behind "Run one of them again".
    """
    return UsageError(
        f"{who} were not measured with the same yardstick: {'; '.join(differences)}. Run one of them again{advice}."
    )


def stopped_early(runs: Sequence[Run], names: Sequence[str]) -> tuple[str, ...]:
    """A warning for each run that could stop as soon as its gates were decided: its plain intervals are not valid."""
    return tuple(
        f"{name} could stop as soon as its gates were decided (--until-decided), so intervals and readings for a fixed "
        "number of samples are not valid for it; use merilo gate, which takes confidence sequences."
        for run, name in zip(runs, names, strict=True)
        if run.manifest.until is not None
    )


def _asked(metrics: Iterable[str], roles: Collection[str]) -> list[str]:
    """Those of the roles that the metrics may ask, in order of names; all where a metric is not known."""
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
        return f"{called} is there in one run only"
    difference = judge_difference(first, second)
    return None if difference is None else f"{called} {difference}"


def _has_rubrics(manifest: Manifest, roles: Iterable[str]) -> bool:
    judges = [cast("Mapping[str, object]", manifest.judges.get(role, {}).get("fingerprint") or {}) for role in roles]
    return bool(manifest.rubrics) and any(each.get("judge") == _READS_RUBRICS for each in judges)


def _changed(what: str, first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """The names in both whose values differ, each as a phrase."""
    return [
        f"{what} {name} is {first[name]} there and {second[name]} here".strip()
        for name in first
        if name in second and first[name] != second[name]
    ]
