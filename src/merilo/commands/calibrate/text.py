"""A run compared with human labels, as a document and as a JSON object."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from merilo.data.sanitize import command
from merilo.numbers import NONE, count, measured, number, percent, span
from merilo.rendering.doc import Doc, Line, Part, doc_page
from merilo.results.means import MEASURED, correction_record
from merilo.results.records import picked
from merilo.stats.correction import DECIDING_LABELLED
from merilo.stats.intervals import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.commands.calibrate.agreement import ItemAgreement
    from merilo.commands.calibrate.run import LabelledMetric, LabelledRun
    from merilo.rendering.page import Page
    from merilo.stats.resampling import Measurement

_SHOWN: Final = 10
_MEASURES: Final = ("kappa", "balanced_accuracy", "sensitivity", "specificity", "auroc")
_HEAD: Final = ("kind of question", "agree", "kappa", "sensitivity", "specificity")
_LEGEND: Final = (
    f"Intervals ({percent(LEVEL)}) cover the sampling of questions; human labels are taken as correct. sensitivity: "
    "fraction of yes that the judge found; specificity: fraction of no that it found. A grade of at least 1 is a yes."
)


def people_page(found: LabelledRun, width: int, *, full: bool = False) -> Page:
    """Return the page; `full`: with all verdicts on which people and the judge differ, and each metric's estimates."""
    return doc_page(people_doc(found, full=full), width, rows=None)


def people_doc(found: LabelledRun, *, full: bool = False) -> Doc:
    """Return the verdicts on which people and the judge differ, and the judge's agreement with them."""
    runs = [found, *([] if found.other is None else [found.other])]
    differ = {  # runs share contexts
        (each.sample, each.text, each.words): replace(each, about=f"{each.about} of {run.run.path.name}")
        for run in reversed(runs)
        for each in run.differ
    }
    order = ", the judge's most certain first" if differ else ""
    chosen = sorted(differ.values(), key=lambda each: -each.people[0].certainty)[: None if full else _SHOWN]
    rows = tuple(Line((each.sample, f"{each.about}: {each.words}", each.text or each.user_input)) for each in chosen)
    paths = [str(each.run.path) for each in runs]
    stored = ("The labels are stored with the run", "show") if len(runs) == 1 else ("Stored with both runs", "compare")
    return Doc(
        title=f"{found.run.path.name}: judge compared with human labels",
        parts=(
            Part(f"People and judge differ on {count(len(differ), 'verdict')}{order}", (), (), rows),
            *(part for each in runs for part in _parts(each, full=full)),
        ),
        legend=_LEGEND,
        cautions=tuple(dict.fromkeys(sentence for each in runs for sentence in each.remarks)),
        next=(
            f"{stored[0]}: {command(stored[1], *paths)}",
            f"All of them, and all measures: {command('show', paths[0], '--people', '--full')}",
        ),
    )


def _parts(found: LabelledRun, *, full: bool) -> Iterator[Part]:
    """Yield the agreement by kind of question, and the estimates of each metric."""
    every = sorted((each for own in found.metrics.values() for each in own.agreement), key=lambda each: each.items)
    kinds = {each.kind: each for each in every}.values()  # the one with the most items
    why = dict.fromkeys((*found.judge, *(text for each in found.metrics.values() for text in _why_not(each))))
    rows = tuple(_row(each.kind, f"{each.agreed:,} of {each.items:,}", each) for each in kinds)
    yield Part(f"{found.run.path.name}: judge compared with human labels", tuple(why), _HEAD, rows)
    for each in found.metrics.values() if full else ():
        own = each.correction
        named = {"judge alone": own.raw, "labels alone": own.human, "corrected": own.corrected}
        rows = tuple(
            Line((name, number(of.value), span(of.interval.ends)), "reported" if of is own.estimate else "")
            for name, of in named.items()
        )
        drawn = f"{own.labelled:,} of {count(each.scored, 'scored sample')} labelled, {count(each.labels, 'label')}"
        yield Part(each.metric, (f"{drawn}. {own.reason}",), ("", "mean", f"{percent(LEVEL)} interval"), rows)


def _why_not(each: LabelledMetric) -> Iterator[str]:
    """Yield notes on the labels of a metric, and what is missing for them to decide."""
    yield from (f"{each.metric}: {remark}" for remark in each.remarks)
    if each.correction.estimate is None:
        yield f"{each.metric}: {each.correction.reason}"
    if each.scored < DECIDING_LABELLED:
        have = f"this run has {each.scored:,}"
        yield f"{DECIDING_LABELLED} labelled samples are needed to decide; {have}. Evaluate more questions."


def _row(name: str, agreed: str, each: ItemAgreement) -> Line:
    yes = each.yes_or_no
    if yes is None:
        return Line((name, agreed, NONE if each.several is None else _cell(each.several.kappa), NONE, NONE))
    return Line((name, agreed, *map(_cell, (yes.kappa, yes.sensitivity, yes.specificity))))


def _cell(found: Measurement) -> str:
    """Return a measurement with its interval; the reason if it has no value."""
    return found.interval.note or NONE if found.value is None else measured(found.value, found.interval.ends)


# -- JSON ----------------------------------------------------------------------------------------------


def people_record(found: LabelledRun) -> dict[str, Any]:  # Any: JSON
    """Return the comparison as a JSON-able object."""
    return {
        **picked(found, "run=run.path attached told=has_estimate judge remarks"),
        "level": LEVEL,
        "metrics": {
            text: {
                **correction_record(each.correction),
                **picked(each, "scored_samples=scored labels unit drawn_for remarks"),
                "agreement": {own.kind: _agreement_record(own) for own in each.agreement},
            }
            for text, each in found.metrics.items()
        },
        "problems": [problem.message for problem in found.problems],
        "differ": [each.record() for each in found.differ],
        "other": None if found.other is None else people_record(found.other),
    }


def _agreement_record(found: ItemAgreement) -> dict[str, Any]:  # Any: JSON
    """Return the measures; rows of a confusion are human labels, columns the judge's."""
    record: dict[str, Any] = picked(found, "items labels disputed")
    if (yes := found.yes_or_no) is not None:
        record |= {"yes": yes.yes, "confusion": {"labels": ["no", "yes"], **picked(yes, "counts=confusion")}}
        record |= {name: picked(getattr(yes, name), MEASURED) for name in _MEASURES}
    if (several := found.several) is not None:
        counts = picked(several, "counts=confusion")
        record["by_label"] = {
            "kappa": picked(several.kappa, MEASURED),
            "confusion": {"labels": list(found.labels), **counts},
        }
    return record
