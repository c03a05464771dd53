"""A run compared with human labels, as a page and as a JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.commands.calibrate.group_text import group_record, group_tables
from merilo.rendering.correction import (
    agreement_lines,
    annotator_lines,
    correction_record,
    correction_table,
    measured_record,
    rate_record,
)
from merilo.rendering.page import Page, Tone
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.commands.calibrate.agreement import ItemAgreement
    from merilo.commands.calibrate.run import Calibrated, CalibratedMetric
    from merilo.stats.agreement import Confusion

_WHAT: Final[Mapping[str, str]] = {
    "items": "some items of each",
    "whole": "whole samples",
    "value": "the value itself",
}


def calibrated_record(found: Calibrated) -> dict[str, Any]:  # Any: JSON
    """Return the comparison as a JSON-able object."""
    return {
        "run": str(found.run.path),
        "level": found.level,
        "attached": found.attached,
        "told": found.has_estimate,
        "metrics": {text: _metric_record(each) for text, each in found.metrics.items()},
        "remarks": list(found.remarks),
        "problems": [problem.message for problem in found.problems],
    }


def calibrated_page(found: Calibrated, width: int, *, other: str | None = None) -> Page:
    """Return a page with each metric's estimates, the one to report and why, and the judge's agreement with labels.

    `other`: the second run of a pair.
    """
    page = Page(width)
    page.text(f"{found.run.manifest.data}: judge compared with human labels", tone=Tone.STRONG)
    for sentence in found.remarks:
        page.text(sentence)
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
    if found.attached and other is not None:
        pair = f"merilo compare {found.run.path} {other}"
        page.text(f"The labels are stored with both runs: {pair} reports the corrected differences.")
    elif found.attached:
        page.text(f"The labels are stored with the run: merilo show {found.run.path} reports the corrected means.")
    return page


def _metric(page: Page, each: CalibratedMetric) -> None:
    page.heading(clean(each.metric))
    labelled = f"{each.correction.labelled:,} of {count(each.scored, 'scored sample')} labelled"
    drawn = "" if each.drawn_for == each.metric else f", drawn for {each.drawn_for}"
    page.text(f"{labelled} ({_WHAT[each.unit]}), {count(each.labels, 'label')}{drawn}", indent=2)
    correction_table(page, each.correction, each.rate)
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
        level = found.yes_or_no.resampling.level
        group_tables(page, found.groups, graded=found.grades is not None, level=level)
    if found.annotators is not None:
        both = count(found.annotators.items, "item")
        page.text(f"Annotators with each other on {both} with several labels ({found.disputed:,} disputed):", indent=2)
        page.entries(annotator_lines(found.annotators), indent=4)


def _metric_record(each: CalibratedMetric) -> dict[str, Any]:  # Any: JSON
    return {
        **correction_record(each.correction),
        "rogan_gladen": None if each.rate is None else rate_record(each.rate),
        "scored_samples": each.scored,
        "labels": each.labels,
        "unit": each.unit.value,
        "drawn_for": each.drawn_for,
        "stratified": each.stratified,
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
        record["by"] = {each.field: [group_record(group) for group in each.groups] for each in found.groups}
    if (grades := found.grades) is not None:
        record["grades"] = {
            "kappa_quadratic": measured_record(grades.kappa),
            "kappa_linear": measured_record(grades.kappa_linear),
            "alpha_ordinal": measured_record(grades.alpha),
            "confusion": _confusion(grades.confusion, found.labels),
        }
    for name, several in (("judge_and_people", found.nominal), ("annotators", found.annotators)):
        if several is not None:
            record[name] = {
                "items": several.items,
                "ratings": several.ratings,
                "alpha": measured_record(several.alpha),
                "ac1": measured_record(several.ac1),
            }
    return record


def _confusion(found: Confusion, labels: tuple[str, ...]) -> dict[str, Any]:  # Any: JSON
    """Return the counts; rows are human labels, columns the judge's."""
    return {"labels": list(labels), "counts": [list(row) for row in found.counts]}
