"""The means of a run and the differences of a pair of runs, corrected by the human labels that can be used."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from merilo.commands.calibrate.human_labels import HumanLabel, LabelDraw, draws_of, labels_of
from merilo.commands.calibrate.label_matching import (
    LabelledAgreement,
    MatchedLabels,
    agreements,
    also_corrected,
    candidates,
    drawn_elsewhere,
    matched,
    remarks_of,
    usable_for,
)
from merilo.commands.label.tasks import population_mark
from merilo.data.sanitize import command
from merilo.errors import UsageError
from merilo.metrics.registry import asks_judge
from merilo.numbers import count
from merilo.results.judged_samples import judged_samples, with_not_judged
from merilo.results.means import corrected_aggregates
from merilo.results.scores import RunScores, read_scores
from merilo.stats.corrected_pairs import PairLabels
from merilo.stats.correction import DECIDING_LABELLED, FEWEST_LABELLED, Correction, Labels, Reported, correct
from merilo.stats.intervals import Interval

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from merilo.commands.calibrate.label_matching import Candidate
    from merilo.runs.manifest import Aggregate
    from merilo.runs.run import Run

T = TypeVar("T")


def match(
    scores: RunScores, labels: Sequence[HumanLabel], metrics: Sequence[str], *, named: bool = False
) -> dict[str, MatchedLabels]:
    """Match the labels with the samples of each metric for which they can be used.

    `scores`: as `with_not_judged` returns them, since tasks are drawn from these; so are those of `correction_of`.
    `named`: the user named the metrics, so raise for each unusable one. Raises UsageError if there is no such metric.
    """
    draws = draws_of(labels)
    matching = _Matching(scores, metrics, labels)
    found: dict[str, MatchedLabels] = {}
    for text in metrics:
        results = [matching.result(text, each) for each in _fitting(draws, text, matching.scores)]
        for result in sorted(results, key=lambda each: (not each.samples, bool(each.elsewhere)))[:1]:
            if result.samples or result.drawn_for == text:
                found[text] = result
            elif named:
                raise _unusable(text, scores, draws, " ".join(remarks_of(result)))
    for text in metrics if named else ():
        if text not in found:
            raise _unusable(text, scores, draws, "")
    if not found:
        raise _unusable("any metric", scores, draws, "")
    return found


def match_if_fitting(
    scores: RunScores, labels: Sequence[HumanLabel], metrics: Sequence[str]
) -> dict[str, MatchedLabels]:
    """Return what `match` returns; empty without labels, and if they are for other metrics."""
    try:
        return match(scores, labels, metrics) if labels else {}
    except UsageError:
        return {}


def correction_of(scores: RunScores, metric: str, found: MatchedLabels) -> Correction:
    """Return the metric's mean over the scored samples: by the judge, by human labels, and corrected.

    If the labels were drawn from other samples, only the judge's mean, with the reason. If they leave some samples
    without a value, the mean of the labels alone.
    """
    if found.elsewhere:
        nothing = _corrected(scores, metric, Labels.of([], [], []))
        reason = f"Nothing is reported: {found.elsewhere[0].lower()}{found.elsewhere[1:]}. Draw tasks from this run."
        return replace(nothing, labelled=len(found.samples), reason=reason)
    both = _corrected(scores, metric, labels_among(scores, metric, found))
    return _labels_alone(both) if found.broken else both


def _corrected(scores: RunScores, metric: str, labels: Labels) -> Correction:
    column, clusters = scores.columns[metric], None
    if scores.clusters is not None:
        clusters = [name for name, scored in zip(scores.clusters, column.scored.tolist(), strict=True) if scored]
    return correct(column.values[column.scored], labels, column.span, clusters=clusters)


def _labels_alone(found: Correction) -> Correction:
    """Return the mean of the labels alone, as the reported one.

    The corrected mean weights labels by the number of samples at each of the judge's scores. Among these are samples
    that have no value by labels, and their number is unknown.
    """
    why = "human labels leave some samples without a value, so the judge's scores cannot weight the others"
    alone = found.human.interval.ends is not None and found.labelled >= FEWEST_LABELLED
    return replace(
        found,
        corrected=replace(found.corrected, value=None, error=None, interval=Interval(None, why)),
        tuning=None,
        reported=Reported.HUMAN if alone else Reported.NOTHING,
        reason=f"{'The human-only estimate' if alone else 'Nothing'} is reported: {why}.",
    )


def labels_among(scores: RunScores, metric: str, found: MatchedLabels) -> Labels:
    """Return the labels of a metric, with the positions of their samples among the scored ones."""
    place = _places(scores, metric)
    return Labels.of([place[each] for each in found.samples], found.people, found.judge)


@dataclass(frozen=True, slots=True)
class UsableLabels(Generic[T]):
    """The stored labels of a run, or of a pair of runs, that can correct its metrics."""

    labels: Mapping[str, T]
    """By the metric's full text."""
    notes: tuple[str, ...]
    """The reason why labels cannot be used, a sentence for each metric; and which other metrics they correct."""
    uncorrected: Mapping[str, LabelledAgreement] = field(default_factory=dict[str, LabelledAgreement])
    """By metric, for those with labelled verdicts that are not in `labels`."""
    scores: tuple[RunScores, ...] = ()
    """The scores of the run, or of both, with those not judged; labels are at positions in these. Empty without labels.
    """


def usable_labels(scores: RunScores, metrics: Sequence[str]) -> UsableLabels[Labels]:
    """Return the labels stored with the run of these scores, for each of these metrics.

    Their samples are positions among the scored ones. Raises RunError as `labels_of`.
    """
    own = labels_of(scores.run)
    scores = with_not_judged(scores) if own else scores
    found = match_if_fitting(scores, own, metrics)
    used = {text: each for text, each in found.items() if not each.elsewhere and not each.broken}
    notes = [
        f"The labels for {text} are not used. {each.elsewhere or 'They leave some samples without a value'}."
        for text, each in found.items()
        if each.drawn_for == text and text not in used
    ]
    labels = {text: labels_among(scores, text, each) for text, each in used.items()}
    left = uncorrected_of(scores.run, [text for text in metrics if text not in labels])
    return UsableLabels(labels, (*notes, *also_corrected(used)), left, (scores,))


def uncorrected_of(run: Run, metrics: Iterable[str]) -> dict[str, LabelledAgreement]:
    """Return how annotators agree with the verdicts of these metrics, for metrics that labels do not correct.

    Metrics without a labelled verdict are left out. Raises RunError as `labels_of`.
    """
    asked, labels = [text for text in metrics if asks_judge(text)], labels_of(run)
    if not asked or not labels:
        return {}
    cases = judged_samples(run, asked, {each.ticket.sample for each in labels})
    return agreements([cases], labels, asked)


def corrected_of(run: Run) -> Mapping[str, Correction]:
    """Return the correction of each metric's mean by the labels stored with the run; empty if none are stored.

    A metric with labelled verdicts that labels do not correct has no estimate, with the reason. Other metrics for
    which labels cannot be used are left out. Raises RunError for labels that cannot be read, or that were drawn from
    other samples than the run has now.
    """
    own = labels_of(run)
    if not own:
        return {}
    scores = with_not_judged(read_scores(run))
    found = match_if_fitting(scores, own, tuple(scores.columns))
    corrections = {text: correction_of(scores, text, each) for text, each in found.items()}
    reasons = {  # a gate would not use these few labels either
        text: f"{each.labelled:,} of at least {DECIDING_LABELLED} needed samples are labelled."
        for text, each in corrections.items()
        if each.labelled < DECIDING_LABELLED
    }
    uncorrected = uncorrected_of(run, [text for text in scores.columns if text not in found])
    reasons |= {text: f"People agree with its verdicts on {each.shown}." for text, each in uncorrected.items()}
    nothing = Labels.of([], [], [])
    return corrections | {
        text: replace(_corrected(scores, text, nothing), reason=reason) for text, reason in reasons.items()
    }


def corrected_metrics(run: Run) -> dict[str, Aggregate]:
    """Return the aggregates of a run by metric, with the means that labels correct."""
    found = corrected_aggregates(tuple(run.metrics.values()), corrected_of(run))
    return {each.metric: each for each in found}


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


class _Matching:
    """The human labels of a run, to be matched with its judge's verdicts metric by metric."""

    def __init__(self, scores: RunScores, metrics: Iterable[str], labels: Sequence[HumanLabel]) -> None:
        drawn_for = {each.ticket.metric for each in labels} & {*scores.run.manifest.metrics}
        self.scores = _with_columns(scores, drawn_for)
        ids = {each.ticket.sample for each in labels} & {*scores.ids}
        self.cases = judged_samples(scores.run, {*drawn_for, *filter(asks_judge, metrics)}, ids)
        self._clusters = _clusters(scores, ids)

    def result(self, text: str, labels: Candidate) -> MatchedLabels:
        """Return the labels of one draw, matched for a metric."""
        draw, scores = labels.draw, self.scores
        found = matched(
            labels,
            text,
            self.cases,
            self._clusters,
            scores.columns[text].span,
            fingerprint=scores.run.manifest.fingerprint,
        )
        found.elsewhere = drawn_elsewhere(draw, scores.columns[draw.metric], scores.ids)
        return found


def _with_columns(scores: RunScores, metrics: Iterable[str]) -> RunScores:
    more = [text for text in metrics if text not in scores.columns]
    if not more:
        return scores
    read = with_not_judged(read_scores(scores.run, metrics=more, cluster=""))
    places = {sample: place for place, sample in enumerate(read.ids)}
    columns = read.at([places[sample] for sample in scores.ids]).columns
    return replace(scores, columns={**scores.columns, **columns})


def _fitting(draws: Mapping[LabelDraw, list[HumanLabel]], text: str, *runs: RunScores) -> list[Candidate]:
    """Return the labels that may be used for a metric of these runs, best first."""
    if not asks_judge(text):
        return []
    own = {draw: labels for draw, labels in draws.items() if all(usable_for(draw, text, each.columns) for each in runs)}
    return candidates(own, text)


def paired_labels(first: RunScores, second: RunScores, metrics: Sequence[str]) -> UsableLabels[PairLabels]:
    """Return the labels attached to either run whose tasks were drawn from this pair of runs.

    `first`, `second`: the scores over the samples that are compared, in one order. Labels of a metric are used if
    the tasks were drawn from exactly the samples that either run scored. Raises RunError for labels that cannot be
    read.
    """
    attached = _labels_of_pair(first, second)
    judged = [text for text in metrics if asks_judge(text)]
    if not attached:
        return UsableLabels({}, _labels_of_one(first, second, judged[0]) if judged else ())
    first, second = with_not_judged(first), with_not_judged(second)
    one, two = (_Matching(each, metrics, attached) for each in (first, second))
    draws, notes = draws_of(attached), list[str]()
    labels: dict[str, PairLabels] = {}
    used: dict[str, MatchedLabels] = {}
    for text in judged:
        for own in _fitting(draws, text, one.scores, two.scores):
            pair = one.result(text, own), two.result(text, own)
            why = _no_pair(text, own.draw, _in_either(one.scores, two.scores, own.draw.metric), pair)
            if why and own.draw.metric == text:  # labels that were drawn for another metric need not fit this one
                notes.append(why)
            if not why and text not in labels and (both := _pair_labels(first, *pair)) is not None:
                labels[text], used[text] = both, pair[0]
    left = agreements((one.cases, two.cases), attached, [text for text in judged if text not in labels])
    return UsableLabels(labels, (*notes, *also_corrected(used)), left, (first, second))


def _labels_of_pair(first: RunScores, second: RunScores) -> list[HumanLabel]:
    """Return the labels attached to either run whose tasks were drawn from both."""
    prints = {each.run.manifest.fingerprint for each in (first, second)}
    attached = {
        (each.ticket.task, each.annotator): each
        for scores in (first, second)
        for each in labels_of(scores.run)
        if each.ticket.other and {each.ticket.fingerprint, each.ticket.other} == prints
    }
    return list(attached.values())


def _no_pair(text: str, draw: LabelDraw, among: Sequence[str], pair: tuple[MatchedLabels, MatchedLabels]) -> str:
    """Return why the labels of a draw cannot be used for a metric of the pair; empty if they can."""
    if population_mark(among) != draw.among:
        return (
            f"The labels for {text} are not used: their tasks were drawn from {count(draw.population, 'sample')} of "
            f"the pair, but {len(among):,} are compared here. Draw tasks again."
        )
    unfit = pair[0].unfit or pair[1].unfit
    return f"The labels cannot be used for {text}. {unfit}" if unfit else ""


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


def _in_either(first: RunScores, second: RunScores, metric: str) -> list[str]:
    """Return the samples that a run scored, or that people can judge in it."""
    either = first.columns[metric].scored | second.columns[metric].scored
    return [sample for sample, there in zip(first.ids, either.tolist(), strict=True) if there]


def _pair_labels(first: RunScores, own: MatchedLabels, other: MatchedLabels) -> PairLabels | None:
    """Return the labels of the samples that are labelled in both runs, by their positions; None without any."""
    places = {sample: place for place, sample in enumerate(first.ids)}
    theirs = {sample: at for at, sample in enumerate(other.samples)}
    rows = [
        (places[sample], own.people[at], own.judge[at], other.people[theirs[sample]], other.judge[theirs[sample]])
        for at, sample in enumerate(own.samples)
        if sample in theirs and sample in places
    ]  # fmt: skip
    return PairLabels.of(rows) if rows else None
