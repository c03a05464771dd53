"""The means of a run and the differences of a pair of runs, corrected by the human labels that can be used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from merilo.commands.calibrate.human_labels import draws_of, labels_of
from merilo.commands.calibrate.label_matching import (
    MatchedLabels,
    chosen,
    drawn_elsewhere,
    matched,
    remarks_of,
    usable_for,
)
from merilo.commands.label.tasks import population_mark
from merilo.errors import UsageError
from merilo.metrics.registry import asks_judge
from merilo.rendering.overview import command
from merilo.rendering.wording import count
from merilo.results.judged_samples import JudgedRun
from merilo.results.scores import read_scores
from merilo.stats.corrected_pairs import PairLabels
from merilo.stats.correction import Correction, Labels, correct
from merilo.stats.intervals import LEVEL, SEED
from merilo.stats.rogan_gladen import CorrectedRate, corrected_rate

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from merilo.commands.calibrate.human_labels import HumanLabel, LabelDraw
    from merilo.commands.calibrate.label_matching import MatchedLabels
    from merilo.results.scores import RunScores
    from merilo.runs.run import Run

T = TypeVar("T")
_RATE = frozenset({0.0, 1.0})


def match(
    scores: RunScores, labels: Sequence[HumanLabel], metrics: Sequence[str], *, named: bool = False
) -> dict[str, MatchedLabels]:
    """Match the labels with the samples of each metric for which they can be used.

    Raises UsageError if there is no such metric. `named`: the user named the metrics, so raise for each unusable one.
    """
    draws = draws_of(labels)
    usable = {
        text: own
        for text in metrics
        if asks_judge(text)
        and (own := {draw: each for draw, each in draws.items() if usable_for(draw, text, scores.columns)})
    }
    with JudgedRun(scores.run) as judged:
        cases = judged.samples(usable, {each.ticket.sample for each in labels})
    found: dict[str, MatchedLabels] = {}
    for text, own in usable.items():
        draw, taken, aside = chosen(own, text)
        mine = {sample: case for (sample, metric), case in cases.items() if metric == text}
        result = matched(
            draw,
            taken,
            mine,
            _clusters(scores, mine),
            scores.columns[text].span,
            fingerprint=scores.run.manifest.fingerprint,
        )
        result.aside = aside
        result.elsewhere = drawn_elsewhere(draw, scores.columns[draw.metric], scores.ids)
        if result.samples or draw.metric == text:
            found[text] = result
        elif named:
            raise _unusable(text, scores, draws, " ".join(remarks_of(result)))
    for text in metrics if named else ():
        if text not in found:
            raise _unusable(text, scores, draws, "")
    if not found:
        raise _unusable("any metric", scores, draws, "")
    return found


def correction_of(
    scores: RunScores, metric: str, found: MatchedLabels, *, level: float = LEVEL, seed: int = SEED
) -> Correction:
    """Return the metric's mean over the scored samples: by the judge, by human labels, and corrected.

    If the labels were drawn from other samples, only the judge's mean, with the reason.
    """
    column = scores.columns[metric]
    clusters = None
    if scores.clusters is not None:
        clusters = [name for name, scored in zip(scores.clusters, column.scored.tolist(), strict=True) if scored]
    if found.elsewhere:
        nothing = correct(
            column.values[column.scored], Labels.of([], [], []), column.span, clusters=clusters, level=level, seed=seed
        )
        reason = f"Nothing is reported: {found.elsewhere[0].lower()}{found.elsewhere[1:]}. Draw tasks from this run."
        return replace(nothing, labelled=len(found.samples), reason=reason)
    labels = labels_among(scores, metric, found)
    return correct(column.values[column.scored], labels, column.span, clusters=clusters, level=level, seed=seed)


def labels_among(scores: RunScores, metric: str, found: MatchedLabels) -> Labels:
    """Return the labels of a metric, with the positions of their samples among the scored ones."""
    place = _places(scores, metric)
    return Labels.of(
        [place[each] for each in found.samples],
        found.people,
        found.judge,
        probability=found.probabilities,
        sequential=found.sequential,
    )


def rate_of(scores: RunScores, metric: str, found: MatchedLabels, *, level: float = LEVEL) -> CorrectedRate | None:
    """Return the metric's mean as a rate, by Rogan and Gladen.

    None unless every number is 0 or 1, samples are independent, and all were drawn with the same probability.
    """
    column = scores.columns[metric]
    judged = column.values[column.scored]
    numbers = {*judged.tolist(), *found.people, *found.judge}
    if scores.clusters is not None or not found.samples or found.elsewhere or not numbers <= _RATE:
        return None
    if len(set(found.probabilities)) > 1:  # its limits take labels as binomial counts, so weights make them too narrow
        return None
    return corrected_rate(judged, found.people, found.judge, level=level)


@dataclass(frozen=True, slots=True)
class UsableLabels(Generic[T]):
    """The stored labels of a run, or of a pair of runs, that can correct its metrics."""

    labels: Mapping[str, T]
    """By the metric's full text."""
    notes: tuple[str, ...]
    """The reason why labels cannot be used, a sentence for each metric."""


def usable_labels(scores: RunScores, metrics: Sequence[str]) -> UsableLabels[Labels]:
    """Return the labels stored with the run of these scores, for each of these metrics.

    Their samples are positions among the scored ones. Raises RunError as `labels_of`.
    """
    own = labels_of(scores.run)
    try:
        found = match(scores, own, metrics) if own else {}
    except UsageError:  # they are for other metrics
        found = {}
    notes = tuple(
        f"The labels for {text} are not used. {each.elsewhere}." for text, each in found.items() if each.elsewhere
    )
    labels = {text: labels_among(scores, text, each) for text, each in found.items() if not each.elsewhere}
    return UsableLabels(labels, notes)


def corrected_of(
    run: Run, *, cluster: str | None = None, level: float = LEVEL, seed: int = SEED
) -> Mapping[str, Correction]:
    """Return the correction of each metric's mean by the labels stored with the run; empty if none are stored.

    Metrics for which the labels cannot be used are left out. `cluster`: as in `read_scores`.
    Raises RunError for labels that cannot be read, or that were drawn from other samples than the run has now.
    """
    own = labels_of(run)
    if not own:
        return {}
    scores = read_scores(run, cluster=cluster)
    try:
        found = match(scores, own, tuple(scores.columns))
    except UsageError:  # they no longer fit any of its metrics
        return {}
    return {text: correction_of(scores, text, each, level=level, seed=seed) for text, each in found.items()}


def _places(scores: RunScores, metric: str) -> dict[str, int]:
    """Return the position of each scored sample among the scored ones."""
    scored = scores.columns[metric].scored.tolist()
    ids = [sample for sample, there in zip(scores.ids, scored, strict=True) if there]
    return {sample: place for place, sample in enumerate(ids)}


def _clusters(scores: RunScores, samples: Iterable[str]) -> dict[str, Hashable]:
    """Return the cluster of each of these samples; the sample itself if the run has no clusters."""
    if scores.clusters is None:
        return {sample: sample for sample in samples}
    known = dict(zip(scores.ids, scores.clusters, strict=True))
    return {sample: known[sample] for sample in samples}


def _unusable(metric: str, scores: RunScores, draws: Mapping[LabelDraw, object], why: str) -> UsageError:
    drawn = ", ".join(dict.fromkeys(draw.metric for draw in draws))
    text = why or f"The tasks were drawn for {drawn}."
    return UsageError(
        f"No label can be used for {metric}. {text} To draw tasks: merilo label {scores.run.path} --metric M."
    )


class _Usable(NamedTuple):
    draw: LabelDraw
    labels: list[HumanLabel]


def paired_labels(first: RunScores, second: RunScores, metrics: Sequence[str]) -> UsableLabels[PairLabels]:
    """Return the labels attached to either run whose tasks were drawn from this pair of runs.

    `first`, `second`: the scores over the samples that are compared, in one order. Labels of a metric are used if
    the tasks were drawn from exactly the samples that both runs scored. Raises RunError for labels that cannot be
    read.
    """
    usable = _usable(first, second, metrics)
    if not usable and (judged := [text for text in metrics if asks_judge(text)]):
        return UsableLabels({}, _labels_of_one(first, second, judged[0]))
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
    return UsableLabels(labels, tuple(notes))


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
    advice = command("label", *paths, "--metric", metric)
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
