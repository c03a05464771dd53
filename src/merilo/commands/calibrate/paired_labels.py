"""Human labels of tasks that were drawn from a pair of runs, matched with both runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from merilo.commands.calibrate.attached_labels import labels_of
from merilo.commands.calibrate.label_matching import LabelDraw, MatchedLabels, chosen, draws_of, matched, usable_for
from merilo.commands.label.tasks import population_mark
from merilo.metrics.registry import asks_judge
from merilo.rendering.overview import command
from merilo.rendering.wording import count
from merilo.results.judged_samples import JudgedRun
from merilo.stats.corrected_pairs import PairLabels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.calibrate.human_labels import HumanLabel
    from merilo.results.scores import RunScores


@dataclass(frozen=True, slots=True)
class PairedLabels:
    """The labels of a pair of runs."""

    labels: Mapping[str, PairLabels]
    """By the metric's full text; only metrics for which the labels can be used."""
    matched: Mapping[str, tuple[MatchedLabels, MatchedLabels]]
    """The labels of each run, for the same metrics."""
    notes: tuple[str, ...]
    """The reason why labels cannot be used, a sentence for each metric."""


class _Usable(NamedTuple):
    draw: LabelDraw
    labels: list[HumanLabel]


def paired_labels(first: RunScores, second: RunScores, metrics: Sequence[str]) -> PairedLabels:
    """Return the labels attached to either run whose tasks were drawn from this pair of runs.

    `first`, `second`: the scores over the samples that are compared, in one order. Labels of a metric are used if
    the tasks were drawn from exactly the samples that both runs scored. Raises RunError for labels that cannot be
    read.
    """
    usable = _usable(first, second, metrics)
    if not usable and (judged := [text for text in metrics if asks_judge(text)]):
        return PairedLabels({}, {}, _labels_of_one(first, second, judged[0]))
    ids = {each.ticket.sample for found in usable.values() for each in found.labels}
    sides = [_matched(scores, usable, ids) for scores in (first, second)]
    labels: dict[str, PairLabels] = {}
    notes: list[str] = []
    for text, found in usable.items():
        common = _common(first, second, found.draw.metric)
        if population_mark(common) != found.draw.among:
            if found.draw.metric != text:
                continue
            notes.append(
                f"The labels for {text} are not used: their tasks were drawn from "
                f"{count(found.draw.population, 'sample')} of the pair, but {len(common):,} are compared here. Draw "
                "tasks again."
            )
            continue
        pair = sides[0][text], sides[1][text]
        if any(each.unfit for each in pair):
            if found.draw.metric == text:  # labels that were drawn for another metric need not fit this one
                notes.append(f"The labels cannot be used for {text}. {pair[0].unfit or pair[1].unfit}")
            continue
        if (both := _pair_labels(first, *pair)) is not None:
            labels[text] = both
    return PairedLabels(labels, {text: (sides[0][text], sides[1][text]) for text in labels}, tuple(notes))


def _usable(first: RunScores, second: RunScores, metrics: Sequence[str]) -> dict[str, _Usable]:
    """Return the labels of this pair that may be used for each metric."""
    prints = {each.run.manifest.fingerprint for each in (first, second)}
    attached = {
        (each.ticket.task, each.annotator): each
        for scores in (first, second)
        for each in labels_of(scores.run)
        if each.ticket.other and {each.ticket.fingerprint, each.ticket.other} == prints
    }
    draws = draws_of(attached.values())
    found: dict[str, _Usable] = {}
    for text in metrics:
        fitting = {
            draw: own
            for draw, own in draws.items()
            if asks_judge(text) and all(usable_for(draw, text, each.columns) for each in (first, second))
        }
        if fitting:
            draw, own, _ = chosen(fitting, text)
            found[text] = _Usable(draw, own)
    return found


def _labels_of_one(first: RunScores, second: RunScores, metric: str) -> tuple[str, ...]:
    """Return a sentence if labels are attached that were not drawn from this pair."""
    paths = [str(each.run.path) for each in (first, second)]
    some = [path for path, each in zip(paths, (first, second), strict=True) if each.run.labels is not None]
    if not some:
        return ()
    advice = command("label", *paths, "--metric", metric, "-o", "FILE", "--ask")
    which = " and ".join(some)
    text = f"The human labels of {which} are not of this pair, so they correct no difference. To label it: {advice}"
    return (text,)


def _matched(scores: RunScores, usable: Mapping[str, _Usable], ids: set[str]) -> dict[str, MatchedLabels]:
    if not usable:
        return {}
    with JudgedRun(scores.run) as judged:
        cases = judged.samples(tuple(usable), ids)
    return {
        text: matched(
            found.draw,
            found.labels,
            mine := {sample: case for (sample, metric), case in cases.items() if metric == text},
            {sample: sample for sample in mine},
            scores.columns[text].span,
            fingerprint=scores.run.manifest.fingerprint,
        )
        for text, found in usable.items()
    }


def _common(first: RunScores, second: RunScores, metric: str) -> list[str]:
    """Return the ids of the samples that both runs scored."""
    both = first.columns[metric].scored & second.columns[metric].scored
    return [sample for sample, there in zip(first.ids, both.tolist(), strict=True) if there]


def _pair_labels(first: RunScores, own: MatchedLabels, other: MatchedLabels) -> PairLabels | None:
    """Return the labels of the samples that are labelled in both runs, by their positions; None without any."""
    places = {sample: place for place, sample in enumerate(first.ids)}
    theirs = {sample: at for at, sample in enumerate(other.samples)}
    rows = [
        (places[sample], own.people[at], own.judge[at], other.people[theirs[sample]], other.judge[theirs[sample]],
         own.probabilities[at])
        for at, sample in enumerate(own.samples)
        if sample in theirs and sample in places
    ]  # fmt: skip
    return PairLabels.of(rows, sequential=own.sequential) if rows else None
