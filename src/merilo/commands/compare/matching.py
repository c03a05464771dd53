"""The metrics and samples that runs have in common, and their numbers of contexts.

Imported scores count as their definition, if it is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.errors import DataError, UsageError
from merilo.metrics.registry import asks_judge
from merilo.results.estimate import Caveat
from merilo.runs.run import Run, metric_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.results.sample_detail import SampleDetail
    from merilo.results.scores import RunScores
    from merilo.stats.column import Column


@dataclass(frozen=True, slots=True)
class MetricNames:
    """The metrics that are compared, in the first run's order."""

    texts: Mapping[str, tuple[str, ...]]
    """The name in the comparison → the metric's text in each run."""
    left_out: Mapping[str, str]
    """Metrics that cannot be compared → why."""

    @property
    def metrics(self) -> list[str]:
        """The names in the comparison."""
        return list(self.texts)

    def own(self, place: int) -> dict[str, str]:
        """Return a run's text of each metric → its name in the comparison."""
        return {texts[place]: name for name, texts in self.texts.items()}

    def alike(self) -> list[str]:
        """Return the metrics that have the same text in all runs."""
        return [name for name, texts in self.texts.items() if len({*texts}) == 1]


def metric_names(runs: Sequence[Run], names: Sequence[str], asked: Sequence[str] | None) -> MetricNames:
    """Return the metrics that all runs have, or those of them that are `asked` for.

    Raises UsageError for a metric that a run lacks, and if no metric is left.
    """
    texts = [*runs[0].manifest.metrics] if asked is None else _whole_texts(runs, asked)
    found: dict[str, tuple[str, ...]] = {}
    left_out: dict[str, str] = {}
    for text in texts:
        own = [_text_in(run, text, runs[0]) for run in runs]
        there = tuple(each for each in own if each is not None)
        lacking = [name for name, each in zip(names, own, strict=True) if each is None]
        if lacking and asked is not None:
            raise UsageError(f"Cannot compare {text}: no such metric in {', '.join(lacking)}. Run it there too.")
        if lacking:
            left_out[text] = f"not in {', '.join(lacking)}"
        else:
            found[_shown(runs[0], text, there)] = there
    if asked is None:
        left_out |= _only_in_others(runs, names[0], found)
    if not found:
        listed = "; ".join(
            f"{name} has {', '.join(run.manifest.metrics) or 'none'}" for name, run in zip(names, runs, strict=True)
        )
        advice = "Evaluate the same metrics in all runs."
        if any(run.manifest.origin is not None for run in runs):
            advice += " Imported scores equal the definitions that merilo import --source states, such as ragas-0.4.3."
        raise UsageError(f"The runs have no metric in common: {listed}. {advice}")
    return MetricNames(found, left_out)


def name_in(run: Run, found: MetricNames, asked: str) -> str:
    """Return the name in the comparison of a metric of the first run. Raises UsageError for an unknown one."""
    if asked in found.texts:
        return asked
    text = metric_in(run, asked)
    return found.own(0).get(text, text)


def under_common_names(scores: RunScores, own: Mapping[str, str]) -> RunScores:
    """Return the scores with the columns under their names in the comparison."""
    return replace(scores, columns={own[text]: column for text, column in scores.columns.items()})


def with_common_names(case: SampleDetail, own: Mapping[str, str]) -> SampleDetail:
    """Return a sample of a run with its outcomes also under their names in the comparison."""
    outcomes = case.result.outcomes
    renamed = {name: outcomes[text] for text, name in own.items() if text != name and text in outcomes}
    return replace(case, result=replace(case.result, outcomes={**outcomes, **renamed})) if renamed else case


def import_notes(runs: Sequence[Run], names: Sequence[str], found: MetricNames) -> list[str]:
    """Return a sentence for each run whose imported scores are compared with those of a definition computed here."""
    notes: list[str] = []
    for place, (run, name) in enumerate(zip(runs, names, strict=True)):
        texts = {text: metric for text, metric in found.own(place).items() if text != metric}
        if not texts:
            continue
        paired = ", ".join(f"{text} with {metric}" for text, metric in texts.items())
        asked = any(map(asks_judge, texts.values()))
        judge = " Their judge is not recorded, and merilo words the prompts its own way." if asked else ""
        source = run.manifest.source or "the stated source"
        notes.append(f"The scores of {name} are imported from {source} and compared as stated: {paired}.{judge}")
    return notes


def _whole_texts(runs: Sequence[Run], named: Sequence[str]) -> list[str]:
    """Return the full texts of the first run's metrics with these names, each once. Raises UsageError."""
    stated = {definition: text for text, definition in runs[0].manifest.definitions.items()}
    texts = [*runs[0].manifest.metrics]
    return list(
        dict.fromkeys(
            stated[name] if name in stated and name not in texts else metric_in(runs[0], name) for name in named
        )
    )


def _text_in(run: Run, text: str, first: Run) -> str | None:
    """Return the text in a run of a metric of the first run; None if the run does not have it."""
    if text in run.manifest.metrics:
        return text
    wanted = first.manifest.definitions.get(text, text)
    if wanted in run.manifest.metrics:
        return wanted
    return next((own for own, definition in run.manifest.definitions.items() if definition == wanted), None)


def _shown(first: Run, text: str, texts: Sequence[str]) -> str:
    """Return the name of a metric in the comparison: its text, or the definition if the texts differ."""
    return text if len({*texts}) == 1 else first.manifest.definitions.get(text, text)


def _only_in_others(runs: Sequence[Run], first: str, found: Mapping[str, Sequence[str]]) -> dict[str, str]:
    used = {text for texts in found.values() for text in texts} | {*runs[0].manifest.metrics}
    left_out = {text: f"not in {first}" for run in runs[1:] for text in run.manifest.metrics if text not in used}
    return left_out | dict.fromkeys(runs[0].manifest.composites, "a composite, which has no value per sample")


class InCommon(NamedTuple):
    """Runs over their common samples."""

    scores: list[RunScores]
    """The scores of these samples in every run, in the order of the first."""
    only: list[list[str]]
    """The ids of each run that another run lacks."""


def in_common(scores: Sequence[RunScores], names: Sequence[str]) -> InCommon:
    """Return the scores of the samples that all runs have.

    Raises DataError for an id that occurs twice in a run, if there is no common sample, and if a metric has another
    scale in a run than in the first.
    """
    for name, other in zip(names[1:], scores[1:], strict=True):
        for metric, column in other.columns.items():
            first = scores[0].columns.get(metric, column)
            if (column.span, column.higher_is_better) != (first.span, first.higher_is_better):
                raise DataError(
                    f"{metric} has different scales in {name} ({_scale(column)}) and {names[0]} ({_scale(first)}). "
                    "Convert both to one scale."
                )
    if all(each.ids == scores[0].ids for each in scores[1:]):
        return InCommon(list(scores), [[]] * len(scores))
    known = [_places(each.ids, name) for each, name in zip(scores, names, strict=True)]
    common = [sample for sample in known[0] if all(sample in other for other in known[1:])]
    if not common:
        some = "; ".join(f"{name}: {', '.join(each.ids[:3])}" for each, name in zip(scores, names, strict=True))
        raise DataError(
            f"The runs have no sample in common: no id occurs in all of them ({some}). Samples are paired by id; give "
            "each question the same id in every data set."
        )
    shared = set(common)
    return InCommon(
        [each.at([places[sample] for sample in common]) for each, places in zip(scores, known, strict=True)],
        [[sample for sample in each.ids if sample not in shared] for each in scores],
    )


def _places(ids: Sequence[str], name: str) -> dict[str, int]:
    places = {sample: place for place, sample in enumerate(ids)}
    if len(places) != len(ids):
        twice = next(sample for place, sample in enumerate(ids) if places[sample] != place)
        raise DataError(f"Duplicate id {twice!r} in {name}. Samples are paired by id, so ids must be unique.")
    return places


def _scale(column: Column) -> str:
    low, high = column.span
    return f"{low:g} to {high:g}, {'higher' if column.higher_is_better else 'lower'} is better"


# -- the number of contexts ---------------------------------------------------------------------------

_CONTEXTS: Final = "Different numbers of contexts"
_READ_BOTH: Final = (
    "fewer contexts tend to raise relevance and precision, and to lower recall and sufficiency; compare both kinds"
)


def context_numbers(names: Sequence[str], counts: Sequence[Sequence[int | None]]) -> tuple[Caveat, ...]:
    """Return the mean number of contexts of a base and a run; empty if the numbers are equal in all samples.

    `counts`: by run, the number of contexts of each common sample; empty if both runs have the same samples.
    """
    if not counts:
        return ()
    both = [(a, b) for a, b in zip(*counts, strict=True) if a is not None and b is not None]
    if all(a == b for a, b in both):
        return ()
    first, second = (sum(each) / len(both) for each in zip(*both, strict=True))
    text = f"{first:.2f} in {names[0]}, {second:.2f} in {names[1]}"
    facts = {"first": names[0], "second": names[1], "first_mean": first, "second_mean": second, "samples": len(both)}
    return (
        Caveat("context-numbers", text, topic=_CONTEXTS, about="mean per sample", facts=facts),
        Caveat("how-to-read", _READ_BOTH, topic=_CONTEXTS, about="how to read"),
    )
