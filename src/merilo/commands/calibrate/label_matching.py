"""Labels of people held against the questions of a run: one number of people and one of the judge for each sample."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite, prod
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.commands.calibrate.agreement import LabelledItem, consensus
from merilo.commands.label.tasks import Unit, population_mark
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from merilo.commands.calibrate.human_labels import PersonLabel
    from merilo.results.judged_samples import JudgedSample
    from merilo.stats.column import Column

_SHOWN: Final = 30


class Draw(NamedTuple):
    """One call of `merilo label`, as its tickets tell it."""

    metric: str
    unit: Unit
    population: int
    seed: int
    stratified: bool
    among: str = ""
    """Names the samples that could have been drawn; empty where the tickets do not tell."""


@dataclass(slots=True)
class Matched:
    """The labelled samples of one metric."""

    drawn_for: str
    """The metric that the tasks were drawn for."""
    unit: Unit
    stratified: bool
    population: int
    samples: list[str] = field(default_factory=list[str])
    people: list[float] = field(default_factory=list[float])
    """The metric's value by people's labels, one for each sample."""
    judge: list[float] = field(default_factory=list[float])
    """The same by the judge's verdicts on the same items."""
    probabilities: list[float] = field(default_factory=list[float])
    items: list[LabelledItem] = field(default_factory=list[LabelledItem])
    labels: int = 0
    """Labels of people behind them."""
    unmatched: int = 0
    """Labels of questions that this run's judge was not asked."""
    unscored: int = 0
    """Labelled samples without a score in this run."""
    incomplete: int = 0
    """Samples of which every item must be labelled, and is not."""
    broken: dict[str, int] = field(default_factory=dict[str, int])
    """Why samples have no value by people's labels → how many."""
    odd: list[str] = field(default_factory=list[str])
    """Labels that are none of those asked for, each with its place."""
    unfit: str = ""
    """Why none of these labels can be used for the metric; empty where they can."""
    elsewhere: str = ""
    """Why these labels say nothing of this run's mean: they were drawn from other samples; empty where they do."""
    aside: int = 0
    """Labels from other calls of `merilo label` for the same metric, which cannot be combined with these."""


def draws_of(labels: Iterable[PersonLabel]) -> dict[Draw, list[PersonLabel]]:
    """The labels by the call that drew their tasks, in the order in which these come first."""
    found: dict[Draw, list[PersonLabel]] = {}
    for each in labels:
        ticket = each.ticket
        draw = Draw(ticket.metric, ticket.unit, ticket.population, ticket.seed, ticket.stratified, ticket.among)
        found.setdefault(draw, []).append(each)
    return found


def usable_for(draw: Draw, metric: str, columns: Mapping[str, Column]) -> bool:
    """Whether a draw for one metric stands for the samples that another scored: it could have drawn all of them."""
    if draw.metric == metric:
        return True
    if draw.unit is Unit.VALUE or draw.metric not in columns:
        return False
    own, theirs = columns[metric].scored, columns[draw.metric].scored
    return bool((own <= theirs).all())


def drawn_elsewhere(draw: Draw, column: Column, ids: Sequence[str]) -> str:
    """Why a draw does not stand for the samples that its metric scored in this run; empty where it does.

    `column`: of the metric that the tasks were drawn for; `ids`: of the run's samples.
    """
    scored = [sample for sample, there in zip(ids, column.scored.tolist(), strict=True) if there]
    if draw.population == len(scored) and draw.among in {"", population_mark(scored)}:
        return ""
    there = count(draw.population, "sample")
    here = f"{len(scored):,}" if draw.population != len(scored) else f"{len(scored):,} others"
    return (
        f"The tasks were drawn from {there} with a score of {draw.metric}, and this run has {here}: nobody knows how "
        "likely each of these was to be drawn"
    )


def chosen(draws: Mapping[Draw, list[PersonLabel]], metric: str) -> tuple[Draw, list[PersonLabel], int]:
    """Return the draws that one estimate may use, as one draw, with their labels, and the number of unused labels.

    Those drawn for the metric itself go first. Uniform draws of one unit are together one uniform draw; of others the
    one with the most labels is taken.
    """
    own = {draw: labels for draw, labels in draws.items() if draw.metric == metric} or dict(draws)
    biggest = max(own, key=lambda draw: len(own[draw]))
    together = [biggest]
    if not biggest.stratified:
        together = [draw for draw in own if draw._replace(seed=0) == biggest._replace(seed=0)]
    labels = [label for draw in together for label in own[draw]]
    return biggest, labels, sum(map(len, own.values())) - len(labels)


def matched(
    draw: Draw,
    labels: Sequence[PersonLabel],
    cases: Mapping[str, JudgedSample],
    clusters: Mapping[str, Hashable],
    span: tuple[float, float],
) -> Matched:
    """The labels of one metric, sample by sample. `cases`: the labelled samples that the metric scored, by id.

    `clusters`: the cluster of each of these samples, or the sample itself.
    """
    found = Matched(draw.metric, draw.unit, draw.stratified, draw.population)
    found.unfit = _unfit(draw.unit, [case for case in cases.values() if case.items])
    if found.unfit:
        return found
    together = _together(labels)
    by_sample: dict[str, list[PersonLabel]] = {}
    for each in labels:
        by_sample.setdefault(each.ticket.sample, []).append(each)
    for sample, own in by_sample.items():
        case = cases.get(sample)
        if case is None:
            found.unscored += 1
            continue
        pair = _value(found, own, span) if draw.unit is Unit.VALUE else _by_items(found, case, own, clusters[sample])
        if pair is not None:
            found.samples.append(sample)
            found.people.append(_within(pair[0], span))
            found.judge.append(case.value if pair[1] is None else _within(pair[1], span))
            found.probabilities.append(own[0].ticket.probability if draw.stratified else together)
    return found


def _unfit(unit: Unit, cases: Sequence[JudgedSample]) -> str:
    """Asked of all samples at once: the few that would do, such as those with one item, are not like the others."""
    if unit is Unit.VALUE:
        return ""
    if not all(case.reads_labels() for case in cases):
        return "Its value is not decided by such labels alone."
    if unit is Unit.ITEMS and not all(case.adds_up() for case in cases):
        return "It needs labels of whole samples, since it is no sum over contexts or statements."
    return ""


def _together(labels: Sequence[PersonLabel]) -> float:
    """The probability of being in one of several uniform draws, the same for every sample."""
    chances = {each.ticket.seed: each.ticket.probability for each in labels}
    return 1 - prod(1 - chance for chance in chances.values()) if len(chances) > 1 else labels[0].ticket.probability


def _value(found: Matched, labels: Sequence[PersonLabel], span: tuple[float, float]) -> tuple[float, None] | None:
    """People's mean number, where they were asked for the metric's value."""
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
    found: Matched, case: JudgedSample, labels: Sequence[PersonLabel], cluster: Hashable
) -> tuple[float, float | None] | None:
    """People's value and the judge's on the same items; None for the second where it is the sample's own."""
    if not case.items:
        found.unmatched += sum(not each.ticket.settled for each in labels)
        return (case.value, None) if case.by_rule and any(each.ticket.settled for each in labels) else None
    said = _said(found, case, labels)
    if not said:
        return None
    for item in case.items:
        if item.mark in said:
            found.items.append(LabelledItem(item, tuple(said[item.mark]), cluster))
    if case.adds_up():
        own = {item.mark: [item.judge] for item in case.items if item.mark in said}
        return case.from_some(said), case.from_some(own)
    if len(said) < len(case.items):
        found.incomplete += 1
        return None
    forms = {item.mark: item.form for item in case.items}
    value = case.with_labels({mark: consensus(each, forms[mark].labels) for mark, each in said.items()})
    if isinstance(value, str):
        found.broken[value] = found.broken.get(value, 0) + 1
        return None
    return value, None


def _said(found: Matched, case: JudgedSample, labels: Sequence[PersonLabel]) -> dict[str, list[str]]:
    """The labels of each item, by its mark."""
    items = {item.mark: item for item in case.items}
    said: dict[str, list[str]] = {}
    for each in labels:
        item = items.get(each.ticket.mark)
        if item is None:
            found.unmatched += 1
            continue
        label = item.form.label(each.label)
        if label is None:
            found.odd.append(_odd(each, " or ".join(item.form.labels)))
            continue
        said.setdefault(item.mark, []).append(label)
        found.labels += 1
    return said


def _odd(each: PersonLabel, expected: str) -> str:
    shown = clean(each.label)[:_SHOWN]
    return f"{each.file}, line {each.line}: expected {expected}, got {shown!r}"


def _number(text: str) -> float | None:
    try:
        found = float(text.strip().replace(",", "."))  # spreadsheets of half the world write 0,5
    except ValueError:
        return None
    return found if isfinite(found) else None


def _within(value: float, span: tuple[float, float]) -> float:
    """The value without the last bit's excess over the range."""
    return min(max(value, span[0]), span[1])


def remarks_of(found: Matched) -> list[str]:
    """What must be said of labels that do not count, a sentence each."""
    sentences = [found.unfit] if found.unfit else list[str]()
    if found.aside:
        sentences.append(
            f"{count(found.aside, 'label')} not used: they are from another call of merilo label, and only uniform "
            "draws can be combined."
        )
    if found.unmatched:
        sentences.append(
            f"{count(found.unmatched, 'label')} left out: this run's judge was not asked these questions; another "
            "judge may have split the answers into other statements."
        )
    if found.unscored:
        sentences.append(f"{count(found.unscored, 'labelled sample')} left out: without a score in this run.")
    if found.incomplete:
        sentences.append(
            f"{count(found.incomplete, 'labelled sample')} left out: this metric needs a label of every item of a "
            "sample, and some have none."
        )
    for reason, amount in found.broken.items():
        sentences.append(f"{count(amount, 'labelled sample')} left out, without a value by people's labels: {reason}.")
    if found.odd:
        more = f"; and {len(found.odd) - 1} more" if len(found.odd) > 1 else ""
        sentences.append(f"{count(len(found.odd), 'label')} left out, not among those asked for: {found.odd[0]}{more}.")
    return sentences
