"""A run compared with human labels, as a page and as a JSON object."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.calibrate.people import add_disagreements
from merilo.rendering.correction import (
    agreement_lines,
    annotator_lines,
    correction_record,
    correction_table,
    measured_record,
    measurement_text,
)
from merilo.rendering.overview import command
from merilo.rendering.page import Page, Span, Tone, columns, cut
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import NONE, count, number, percent, span
from merilo.results.records import picked
from merilo.stats.correction import DECIDING_LABELLED
from merilo.stats.intervals import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.commands.calibrate.agreement import FieldRates, ItemAgreement
    from merilo.commands.calibrate.run import LabelledMetric, LabelledRun
    from merilo.stats.agreement import Confusion
    from merilo.stats.agreement_intervals import GroupRates
    from merilo.stats.resampling import Measurement

_WHAT: Final[Mapping[str, str]] = {"items": "some items of each", "whole": "whole samples", "value": "the value itself"}


def people_record(found: LabelledRun) -> dict[str, Any]:  # Any: JSON
    """Return the comparison as a JSON-able object."""
    return {
        "run": str(found.run.path),
        "level": LEVEL,
        "attached": found.attached,
        "told": found.has_estimate,
        "metrics": {text: _metric_record(each) for text, each in found.metrics.items()},
        "judge": list(found.judge),
        "remarks": list(found.remarks),
        "problems": [problem.message for problem in found.problems],
        "differ": [each.record() for each in found.differ],
        "other": None if found.other is None else people_record(found.other),
    }


def people_page(found: LabelledRun, width: int, *, full: bool = False) -> Page:
    """Return a page with the verdicts on which people and the judge differ, and the judge's agreement with them.

    `full`: with all of these verdicts, each metric's estimates, the one to report and why, and all measures.
    """
    page = Page(width)
    runs = [found, *([] if found.other is None else [found.other])]
    for sentence in dict.fromkeys(sentence for each in runs for sentence in each.remarks):
        page.text(sentence)
    differ = {  # runs share contexts
        (each.sample, each.text, each.words): replace(each, about=f"{each.about} of {clean(run.run.path.name)}")
        for run in reversed(runs)
        for each in run.differ
    }
    add_disagreements(page, sorted(differ.values(), key=lambda each: -each.people[0].certainty), every=full)
    for each in runs:
        _figures(page, each)
        if full:
            _tables(page, each)
    paths = [str(each.run.path) for each in runs]
    page.heading("Next")
    page.text(f"All of them, and all measures: {command('show', paths[0], '--people', '--full')}", indent=2)
    stored = ("The labels are stored with the run", "show") if len(runs) == 1 else ("Stored with both runs", "compare")
    page.text(f"{stored[0]}: {command(stored[1], *paths)}", indent=2)
    return page


def _figures(page: Page, found: LabelledRun) -> None:
    """Add the share of equal verdicts, kappa and rates of each kind of question, and why a mean is not corrected."""
    page.heading(f"{clean(found.run.path.name)}: judge compared with human labels")
    every = [agreement for each in found.metrics.values() for agreement in each.agreement]
    for each in {each.kind: each for each in sorted(every, key=lambda each: each.items)}.values():  # most items
        yes = each.yes_or_no
        at_least = " (a grade of at least 1 is a yes)" if each.grades is not None and yes is not None else ""
        parts = [f"judge and people agree on {each.agreed:,} of {each.items:,}{at_least}"]
        if yes is not None:
            rates = {"kappa": yes.kappa, "sensitivity": yes.sensitivity, "specificity": yes.specificity}
            parts += [f"{name} {measurement_text(value)}" for name, value in rates.items()]
        page.text(f"{each.kind}: {'; '.join(parts)}", indent=2)
    why_not = (sentence for each in found.metrics.values() for sentence in _why_not(each))
    for sentence in dict.fromkeys((*found.judge, *why_not)):
        page.text(sentence, indent=2)


def _why_not(each: LabelledMetric) -> Iterator[str]:
    """Yield notes on the labels of a metric, and what is missing for them to decide."""
    yield from (f"{clean(each.metric)}: {remark}" for remark in each.remarks)
    if each.correction.estimate is None:
        yield f"{clean(each.metric)}: {each.correction.reason}"
    if each.scored < DECIDING_LABELLED:
        have = f"this run has {each.scored:,}"
        yield f"{DECIDING_LABELLED} labelled samples are needed to decide; {have}. Evaluate more questions."


def _tables(page: Page, found: LabelledRun) -> None:
    """Add each metric's estimates and all measures of agreement."""
    shown: list[tuple[ItemAgreement, ...]] = []
    for each in found.metrics.values():
        _metric(page, each)
        if any(each.agreement is other for other in shown):
            page.text("Agreement: as above, from the same labels.", indent=2)
            continue
        shown.append(each.agreement)
        for agreement in each.agreement:
            _agreement(page, agreement)
    page.blank()
    page.text(
        "Intervals cover the sampling of questions; human labels are taken as correct. The interval of the corrected "
        "mean includes judge error, the interval of the judge alone does not."
    )


def _metric(page: Page, each: LabelledMetric) -> None:
    page.heading(clean(each.metric))
    labelled = f"{each.correction.labelled:,} of {count(each.scored, 'scored sample')} labelled"
    drawn = "" if each.drawn_for == each.metric else f", drawn for {each.drawn_for}"
    page.text(f"{labelled} ({_WHAT[each.unit]}), {count(each.labels, 'label')}{drawn}", indent=2)
    correction_table(page, each.correction)
    for sentence in each.remarks:
        page.text(sentence, indent=2)


def _agreement(page: Page, found: ItemAgreement) -> None:
    page.text(f"Judge and human labels on {count(found.items, 'item')} ({found.kind}):", indent=2)
    rows = list(agreement_lines(found.yes_or_no, found.grades))
    if found.nominal is not None:
        rows += annotator_lines(found.nominal)
    page.entries(rows, indent=4)
    if found.yes_or_no is not None and not found.yes_or_no.has_both:
        page.text("All human labels are equal, so there are rates and no kappa.", indent=4)
    if found.yes_or_no is not None:
        _group_tables(page, found.groups, graded=found.grades is not None)
    if found.annotators is not None:
        both = count(found.annotators.items, "item")
        page.text(f"Annotators with each other on {both} with several labels ({found.disputed:,} disputed):", indent=2)
        page.entries(annotator_lines(found.annotators), indent=4)


def _metric_record(each: LabelledMetric) -> dict[str, Any]:  # Any: JSON
    return {
        **correction_record(each.correction),
        "scored_samples": each.scored,
        **picked(each, "labels unit drawn_for"),
        "agreement": {found.kind: _agreement_record(found) for found in each.agreement},
        "remarks": list(each.remarks),
    }


def _agreement_record(found: ItemAgreement) -> dict[str, Any]:  # Any: JSON
    record: dict[str, Any] = {"items": found.items, "labels": list(found.labels), "disputed": found.disputed}
    if (yes := found.yes_or_no) is not None:
        names = ("kappa", "ac1", "alpha", "accuracy", "balanced_accuracy", "sensitivity", "specificity", "auroc")
        record |= {"yes": yes.yes, "confusion": _confusion(yes.confusion, ("no", "yes"))}
        record |= {name: measured_record(getattr(yes, name)) for name in names}
    if found.groups:
        record["by"] = {each.field: [_group_record(group) for group in each.groups] for each in found.groups}
    if (grades := found.grades) is not None:
        record["grades"] = {
            "kappa_quadratic": measured_record(grades.kappa),
            "kappa_linear": measured_record(grades.kappa_linear),
            "alpha_ordinal": measured_record(grades.alpha),
            "confusion": _confusion(grades.confusion, found.labels),
        }
    for name, several in (("judge_and_people", found.nominal), ("annotators", found.annotators)):
        if several is not None:
            alpha, ac1 = measured_record(several.alpha), measured_record(several.ac1)
            record[name] = {**picked(several, "items ratings"), "alpha": alpha, "ac1": ac1}
    return record


def _confusion(found: Confusion, labels: tuple[str, ...]) -> dict[str, Any]:  # Any: JSON
    """Return the counts; rows are human labels, columns the judge's."""
    return {"labels": list(labels), "counts": [list(row) for row in found.counts]}


_SHOWN: Final = 20
_WIDEST: Final = 24


def _group_tables(page: Page, found: Sequence[FieldRates], *, graded: bool) -> None:
    """Add a table for each field. `graded`: True if labels are grades, of which those from 1 on count as yes."""
    for each in found:
        page.text(f"Errors by {clean(each.field)}:", indent=4)
        shown = each.groups[:_SHOWN]
        rows = [("", "yes", "sensitivity", "no", "specificity"), *map(_row, shown)]
        for place, line in enumerate(columns(rows, left=frozenset({0}))):
            page.line("      ", Span(line.rstrip(), Tone.PLAIN if place else Tone.STRONG))
        if more := len(each.groups) - len(shown):
            page.text(f"And {count(more, 'smaller group')}, which --json lists.", indent=6)
    if found:
        meant = " (a grade of at least 1)" if graded else ""
        page.text(
            f"yes, no: number of items with that human label{meant}. sensitivity: fraction of yes that the judge "
            f"found; specificity: fraction of no that it found; {percent(LEVEL)} intervals, at least 10 labels each.",
            indent=4,
            tone=Tone.QUIET,
        )


def _group_record(found: GroupRates) -> dict[str, Any]:  # Any: JSON
    """Return a group as a JSON-able object."""
    return {
        **picked(found, "group items yes no yes_found no_found"),
        "sensitivity": measured_record(found.sensitivity),
        "specificity": measured_record(found.specificity),
    }


def _row(found: GroupRates) -> tuple[str, ...]:
    return (
        "(none)" if found.group is None else cut(found.group, _WIDEST),
        f"{found.yes:,}",
        _rate(found.sensitivity),
        f"{found.no:,}",
        _rate(found.specificity),
    )


def _rate(found: Measurement) -> str:
    if found.value is None:
        return found.interval.note or NONE
    ends = found.interval.ends
    return f"{number(found.value)} ({'no interval' if ends is None else span(ends)})"
