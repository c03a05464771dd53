"""Human labels matched with the questions of a run: two values per sample, by the labels and by the judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.commands.calibrate.agreement import LabelledItem, consensus
from merilo.commands.label.tasks import Unit, population_mark, side_mark
from merilo.data.sanitize import clean
from merilo.numbers import count
from merilo.results.records import grouped

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from merilo.commands.calibrate.human_labels import HumanLabel, LabelDraw
    from merilo.results.judged_samples import JudgedSample
    from merilo.stats.column import Column

_SHOWN: Final = 30
_MAX_NOT_DRAWN: Final = 1
"""Samples that may lack a value because not all their items were drawn. More would not be a random part of the draw.
One is usual: the sample at which an annotator stopped."""


@dataclass(slots=True)
class MatchedLabels:
    """The labelled samples of one metric."""

    drawn_for: str
    """The metric that the tasks were drawn for."""
    unit: Unit
    population: int
    samples: list[str] = field(default_factory=list[str])
    people: list[float] = field(default_factory=list[float])
    """The metric's value by human labels, one per sample."""
    judge: list[float] = field(default_factory=list[float])
    """The metric's value by the judge's verdicts on the same items, one per sample."""
    items: list[LabelledItem] = field(default_factory=list[LabelledItem])
    labels: int = 0
    """Number of human labels that these values are based on."""
    unmatched: int = 0
    """Number of labels of questions that this run's judge was not asked."""
    unscored: int = 0
    """Number of labelled samples without a score in this run."""
    incomplete: int = 0
    """Number of samples with an unlabelled item, for a metric that needs labels of every item."""
    broken: dict[str, int] = field(default_factory=dict[str, int])
    """Reason why samples have no value by human labels → number of samples."""
    odd: list[str] = field(default_factory=list[str])
    """Labels that are not among the possible answers, each with its file and line."""
    unfit: str = ""
    """Reason why the labels cannot be used for the metric; empty if they can."""
    elsewhere: str = ""
    """Reason why the labels cannot correct this run's mean: they were drawn from other samples. Empty if they can."""
    aside: int = 0
    """Number of labels of other draws for the metric, which cannot be combined with these."""


def usable_for(draw: LabelDraw, metric: str, columns: Mapping[str, Column]) -> bool:
    """Return True if labels drawn for one metric may be used for another metric.

    The draw must have been able to draw every sample that the other metric scored.
    """
    if draw.metric == metric:
        return True
    if draw.unit is Unit.VALUE or draw.metric not in columns:
        return False
    own, theirs = columns[metric].scored, columns[draw.metric].scored
    return bool((own <= theirs).all())


def drawn_elsewhere(draw: LabelDraw, column: Column, ids: Sequence[str]) -> str:
    """Return why a draw does not represent the samples that its metric scored in this run; empty if it does.

    `column`: the scores of the metric that the tasks were drawn for. `ids`: the run's sample ids. A draw from a pair is
    from all samples that either run scored, and so random among those of each.
    """
    scored = [sample for sample, there in zip(ids, column.scored.tolist(), strict=True) if there]
    larger = bool(draw.other) and draw.population > len(scored)
    if larger or (draw.population == len(scored) and draw.among == population_mark(scored)):
        return ""
    there = count(draw.population, "sample")
    here = f"{len(scored):,}" if draw.population != len(scored) else f"{len(scored):,} others"
    return (
        f"The tasks were drawn from {there} with a score of {draw.metric}, but this run has {here}, so the sampling "
        "probabilities are unknown"
    )


class Candidate(NamedTuple):
    """The labels of a draw that one estimate may use."""

    draw: LabelDraw
    labels: list[HumanLabel]
    aside: int
    """Number of labels of other draws."""


def candidates(draws: Mapping[LabelDraw, list[HumanLabel]], metric: str) -> list[Candidate]:
    """Return the labels that one estimate may use, the most first.

    If some were drawn for the metric itself, only the most of these.
    """
    own = {draw: labels for draw, labels in draws.items() if draw.metric == metric}
    left = own or draws
    total = sum(map(len, left.values()))
    found = [Candidate(draw, labels, total - len(labels)) for draw, labels in left.items()]
    found.sort(key=lambda each: each.aside)
    return found[:1] if own else found


def matched(
    candidate: Candidate,
    metric: str,
    cases: Mapping[tuple[str, str], JudgedSample],
    clusters: Mapping[str, Hashable],
    span: tuple[float, float],
    *,
    fingerprint: str,
) -> MatchedLabels:
    """Match the labels of one metric, sample by sample.

    `cases`: the labelled samples, by id and metric: those of `metric`, and of the metric that the tasks were drawn
    for. `clusters`: the cluster of each of these samples, or the sample itself. `fingerprint`: of the run's samples,
    which tells the two runs of a pair apart.
    """
    draw, labels, aside = candidate
    found = MatchedLabels(draw.metric, draw.unit, draw.population, aside=aside)
    by_sample = grouped((each.ticket.sample, each) for each in labels)
    own_cases = {sample: case for sample in by_sample if (case := cases.get((sample, metric))) is not None}
    # All samples must qualify: those that do alone, such as samples with one item, do not represent the others.
    if draw.unit is not Unit.VALUE and not all(case.reads_labels() for case in own_cases.values() if case.items):
        found.unfit = "Such labels alone do not determine its value."
        return found
    # A few probes of one sample can miss that a value is not a sum, so all samples decide together.
    sums = draw.unit is not Unit.VALUE and all(case.adds_up() for case in own_cases.values() if case.items)
    not_drawn = 0
    for sample, own in by_sample.items():
        case = own_cases.get(sample)
        if case is None:
            found.unscored += 1
            continue
        pair: tuple[float, float | None] | None
        if draw.unit is Unit.VALUE:
            pair = _value(found, [each for each in own if each.ticket.mark in {"", side_mark(fingerprint)}], span)
        else:
            asked = _marks(cases.get((sample, draw.metric)))
            pair = _by_items(found, case, own, clusters[sample], asked, sums=sums)
            not_drawn += pair is None and not _drawn_whole(case, asked, draw, sums=sums)
        if pair is not None:
            found.samples.append(sample)
            found.people.append(_within(pair[0], span))
            found.judge.append(case.value if pair[1] is None else _within(pair[1], span))
    if not_drawn > _MAX_NOT_DRAWN:
        found.unfit = "It needs labels of whole samples: of all items that its value depends on."
        found.samples, found.people, found.judge = [], [], []
    return found


def _marks(case: JudgedSample | None) -> frozenset[str]:
    return frozenset() if case is None else frozenset(item.mark for item in case.items)


def _drawn_whole(case: JudgedSample, asked: frozenset[str], draw: LabelDraw, *, sums: bool) -> bool:
    """Return True if labels of all tasks of the sample would give a value, so that a sample without one has unlabelled
    tasks.

    `asked`: the items among which tasks were drawn. `sums`: the metric is a sum over items.
    """
    own = _marks(case)
    if not own:
        return case.text == draw.metric
    return own <= asked if draw.unit is Unit.WHOLE else own == asked and sums


def _value(found: MatchedLabels, labels: Sequence[HumanLabel], span: tuple[float, float]) -> tuple[float, None] | None:
    """Return the mean of the numbers given by annotators, for tasks that ask for the metric's value."""
    numbers = list[float]()
    for each in labels:
        number = _number(each.label)
        if number is None or not span[0] <= number <= span[1]:
            found.odd.append(_odd(each, f"a number from {span[0]:g} to {span[1]:g}"))
        else:
            numbers.append(number)
    found.labels += len(numbers)
    return (sum(numbers) / len(numbers), None) if numbers else None


def _by_items(
    found: MatchedLabels,
    case: JudgedSample,
    labels: Sequence[HumanLabel],
    cluster: Hashable,
    asked: frozenset[str],
    *,
    sums: bool,
) -> tuple[float, float | None] | None:
    """Return the values by human labels and by the judge on the same items; None if there is no value.

    The second is None if it equals the sample's score. `asked`, `sums`: as in `_drawn_whole`.
    """
    if not case.items:
        if case.text == found.drawn_for:
            unknown = sum(not each.ticket.settled and not each.ticket.other for each in labels)
            found.unmatched += unknown
            if unknown == len(labels):
                return None
        return (case.value, None) if case.by_rule else None
    by_mark = _labels_by_mark(found, case, labels)
    if not by_mark:
        return None
    for item in case.items:
        if item.mark in by_mark:
            found.items.append(LabelledItem(item, tuple(by_mark[item.mark]), cluster, case.sample.id))
    own = _marks(case)
    # Some items are enough only if every item had the same probability of being drawn.
    if (own <= asked or len(by_mark) == len(own)) and sums:
        return case.from_some(by_mark), case.by_judge_from_some(by_mark)
    if len(by_mark) < len(own):
        found.incomplete += 1
        return None
    forms = {item.mark: item.form for item in case.items}
    value = case.with_labels({mark: consensus(each, forms[mark].labels) for mark, each in by_mark.items()})
    if isinstance(value, str):
        found.broken[value] = found.broken.get(value, 0) + 1
        return None
    return value, None


def _labels_by_mark(found: MatchedLabels, case: JudgedSample, labels: Sequence[HumanLabel]) -> dict[str, list[str]]:
    """Return the valid labels of each item, by the item's fingerprint; count the others in `found`."""
    items = {item.mark: item for item in case.items}
    by_mark: dict[str, list[str]] = {}
    for each in labels:
        item = items.get(each.ticket.mark)
        if item is None:
            # A task of a pair may be about the other run, and one for another metric about that one's items.
            found.unmatched += not each.ticket.other and case.text == found.drawn_for
            continue
        label = item.form.label(each.label)
        if label is None:
            found.odd.append(_odd(each, " or ".join(item.form.labels)))
            continue
        by_mark.setdefault(item.mark, []).append(label)
        found.labels += 1
    return by_mark


def _odd(each: HumanLabel, expected: str) -> str:
    shown = clean(each.label)[:_SHOWN]
    return f"{each.file}, line {each.line}: expected {expected}, got {shown!r}"


def _number(text: str) -> float | None:
    try:
        found = float(text.strip().replace(",", "."))  # many locales write 0,5 in spreadsheets
    except ValueError:
        return None
    return found if isfinite(found) else None


def _within(value: float, span: tuple[float, float]) -> float:
    """Return the value clipped to the range, which rounding may exceed by the last bit."""
    return min(max(value, span[0]), span[1])


def remarks_of(found: MatchedLabels) -> list[str]:
    """Return one sentence on each reason why labels do not count."""
    sentences = [found.unfit] if found.unfit else list[str]()
    if found.aside:
        sentences.append(f"{count(found.aside, 'label')} not used: from a draw of other samples or items.")
    if found.unmatched:
        sentences.append(
            f"{count(found.unmatched, 'label')} left out: this run's judge was not asked these questions. Another "
            "judge may have split the answers into other statements."
        )
    if found.unscored:
        sentences.append(f"{count(found.unscored, 'labelled sample')} left out: no score in this run.")
    if found.incomplete:
        sentences.append(
            f"{count(found.incomplete, 'labelled sample')} left out: this metric needs a label of every item of a "
            "sample, and some are missing."
        )
    for reason, amount in found.broken.items():
        sentences.append(f"{count(amount, 'labelled sample')} left out, as the labels give no value: {reason}.")
    if found.odd:
        more = f"; and {len(found.odd) - 1} more" if len(found.odd) > 1 else ""
        sentences.append(f"{count(len(found.odd), 'label')} left out, not a possible answer: {found.odd[0]}{more}.")
    return sentences


def also_corrected(found: Mapping[str, MatchedLabels]) -> Iterator[str]:
    """Yield a sentence on the metrics that labels correct although their tasks were drawn for another metric."""
    others = ((each.drawn_for, text) for text, each in found.items() if each.drawn_for != text and each.samples)
    for texts in grouped(others).values():
        kinds = sorted({item.item.form.kind for text in texts for item in found[text].items})
        samples = count(max(len(found[text].samples) for text in texts), "sample")
        yield f"Labels on {' and '.join(kinds)} of {samples} also correct {', '.join(texts)}."


class LabelledAgreement(NamedTuple):
    """The verdicts of a metric that have a human label, although labels do not correct the metric."""

    verdicts: int
    agree: int
    """Number of verdicts that equal the label that most annotators gave."""

    @property
    def reason(self) -> str:
        """The reason to decide nothing by the metric."""
        return f"cannot tell: labels do not correct it; people agree with its verdicts on {self.shown}"

    @property
    def shown(self) -> str:
        """The numbers of verdicts, such as `12 of 13`."""
        return f"{self.agree:,} of {self.verdicts:,}"


def agreements(
    sides: Sequence[Mapping[tuple[str, str], JudgedSample]], labels: Iterable[HumanLabel], metrics: Sequence[str]
) -> dict[str, LabelledAgreement]:
    """Return the agreement on the labelled verdicts of one or two runs. Equal verdicts on a shared item count once."""
    given = grouped(((each.ticket.sample, each.ticket.mark), each.label) for each in labels)
    agree: dict[str, dict[tuple[str, str, str], bool]] = {}
    for (sample, text), case in ((key, case) for cases in sides for key, case in cases.items()):
        for item in case.items if text in metrics else ():
            said = [label for raw in given.get((sample, item.mark), ()) if (label := item.form.label(raw)) is not None]
            if said and item.judged:
                agrees = consensus(said, item.form.labels) == item.judge
                agree.setdefault(text, {})[sample, item.mark, item.judge] = agrees
    return {text: LabelledAgreement(len(own), sum(own.values())) for text, own in agree.items()}
