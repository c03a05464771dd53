"""Corrected means and agreement with human labels, as text, tables and JSON that several pages share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from merilo.rendering.page import Page, Span, Tone, columns
from merilo.rendering.wording import NONE, count, number, percent, span
from merilo.results.records import picked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.runs.manifest import Aggregate
    from merilo.stats.agreement_intervals import Agreement, AnnotatorAgreement, GradeAgreement
    from merilo.stats.correction import Correction
    from merilo.stats.intervals import Interval
    from merilo.stats.levels import Level
    from merilo.stats.means import MeanEstimate
    from merilo.stats.resampling import Measurement

_REPORTED: Final = "reported"
_Bounds: TypeAlias = tuple[float | None, float | None] | None


def corrected_aggregates(
    aggregates: Sequence[Aggregate], corrections: Mapping[str, Correction]
) -> tuple[Aggregate, ...]:
    """Return the aggregates; if human labels correct one, its mean, interval and bounds are the corrected ones.

    Samples that the judge did not judge and people can count as scored then.
    """
    return tuple(_corrected(each, corrections.get(each.metric)) for each in aggregates)


def row_name(metric: str, correction: Correction | None) -> str:
    """Return the metric's name in a table, with a note if its mean is not the judge's own."""
    if correction is None or correction.estimate is None:
        return metric
    return f"{metric} ({'corrected' if correction.estimate is correction.corrected else 'human labels'})"


def counts_heading(corrections: Mapping[str, Correction]) -> str:
    """Return the heading of the counts, which are the judge's even if a mean is corrected."""
    by_judge = any(each.estimate is not None for each in corrections.values())
    return f"Counts over all scored samples{' by the judge' * by_judge}"


def _corrected(aggregate: Aggregate, correction: Correction | None) -> Aggregate:
    estimate = None if correction is None else correction.estimate
    if correction is None or estimate is None:
        return aggregate
    interval, scored = estimate.interval, correction.raw.units
    given = scored - aggregate.scored  # samples that the judge did not judge, with a value by labels
    undefined = aggregate.undefined - given

    def moved(bounds: _Bounds, before: int, after: int) -> _Bounds:
        """Return bounds with the corrected mean. `before`, `after`: the samples that are set to the range's limits."""
        if bounds is None:
            return None
        own, part = (aggregate.mean or 0.0) * aggregate.scored, after / before if before else 0.0
        sums = [None if end is None else (end * (aggregate.scored + before) - own) * part for end in bounds]
        mean = estimate.value or 0.0
        lower, upper = (None if each is None else (each + mean * scored) / (scored + after) for each in sums)
        return lower, upper

    failed = aggregate.failed
    return replace(
        aggregate,
        mean=estimate.value,
        bounds=moved(aggregate.bounds, failed, failed),
        bounds_with_undefined=moved(aggregate.bounds_with_undefined, failed + aggregate.undefined, failed + undefined),
        scored=scored,
        undefined=undefined,
        reasons={} if given else aggregate.reasons,
        interval=interval.ends,
        level=interval.level,
        note=interval.note,
        remark=interval.remark,
        method=None if interval.method is None else interval.method.value,
        seed=interval.seed,
        clusters=estimate.clusters,
    )


def label_rows(corrections: Mapping[str, Correction]) -> list[tuple[str, str]]:
    """Return, for each metric, how attached labels change its mean, with the judge's own mean for comparison."""
    return [(metric, _by_labels(each)) for metric, each in corrections.items()]


def _by_labels(correction: Correction) -> str:
    own = f"judge alone: {number(correction.raw.value)} ({span(correction.raw.interval.ends)})"
    if correction.estimate is None:
        return correction.reason
    which = "corrected" if correction.estimate is correction.corrected else "mean of the labels"
    return f"{which}, from {count(correction.labelled, 'labelled sample')}; {own}"


def estimate_record(estimate: MeanEstimate) -> dict[str, Any]:  # Any: JSON
    """Return an estimate as a JSON-able object."""
    return {
        **picked(estimate, "value units clusters"),
        **interval_record(estimate.interval),
    }


def interval_record(interval: Interval) -> dict[str, Any]:  # Any: JSON
    """Return an interval as JSON-able fields; `note`: why there is none, `remark`: a caveat on it."""
    ends = None if interval.ends is None else list(interval.ends)
    return {"interval": ends, **picked(interval, "level method note remark")}


def correction_record(correction: Correction) -> dict[str, Any]:  # Any: JSON
    """Return a correction as a JSON-able object; `estimate` is the one to report, None if there is none."""
    estimate = correction.estimate
    return {
        **picked(correction, "reported reason"),
        "estimate": None if estimate is None else estimate_record(estimate),
        "judge": estimate_record(correction.raw),
        "people": estimate_record(correction.human),
        "corrected": estimate_record(correction.corrected),
        "trust": correction.tuning,
        "labelled_samples": correction.labelled,
        "seed": correction.seed,
    }


def measured_record(measured: Measurement) -> dict[str, Any]:  # Any: JSON
    """Return a measurement as a JSON-able object."""
    return {"value": measured.value, **interval_record(measured.interval)}


def correction_table(page: Page, correction: Correction) -> None:
    """Add a table of the estimates to the page: one per row, the reported one marked, with the reason."""
    named = {"judge alone": correction.raw, "labels alone": correction.human, "corrected": correction.corrected}
    level = f"{percent(correction.raw.interval.level)} interval"
    cells = [("", "mean", level, "")]
    for name, each in named.items():
        reported = _REPORTED if each is correction.estimate else ""
        cells.append((name, number(each.value), span(each.interval.ends), reported))
    for place, line in enumerate(columns(cells, left=frozenset({0, 3}))):
        strong = place == 0 or cells[place][3]
        page.line("  ", Span(line.rstrip(), Tone.STRONG if strong else Tone.PLAIN))
    page.text(correction.reason, indent=2)
    for name, each in named.items():
        if each.interval.remark:
            page.text(f"{name}: {each.interval.remark}.", indent=2)


def agreement_lines(yes: Agreement | None, grades: GradeAgreement | None) -> Iterator[tuple[str, str]]:
    """Yield names and values of agreement measures, the most informative first; if undefined, the reason."""
    if grades is not None:
        yield "weighted kappa", measurement_text(grades.kappa)
        yield "alpha (ordinal)", measurement_text(grades.alpha)
    if yes is not None:
        suffix = " (at least 1)" if grades is not None else ""
        yield f"kappa{suffix}", measurement_text(yes.kappa)
        yield f"AC1{suffix}", measurement_text(yes.ac1)
        yield f"accuracy{suffix}", measurement_text(yes.accuracy)
        yield f"yes found{suffix}", measurement_text(yes.sensitivity)
        yield f"no found{suffix}", measurement_text(yes.specificity)
        if yes.scored:
            yield f"AUROC{suffix}", measurement_text(yes.auroc)


def annotator_lines(found: AnnotatorAgreement) -> Iterator[tuple[str, str]]:
    """Yield names and values of the agreement among several annotators."""
    yield "alpha", measurement_text(found.alpha)
    yield "AC1", measurement_text(found.ac1)


def measurement_text(measured: Measurement) -> str:
    """Return a measurement with its interval; the reason if either is missing."""
    if measured.value is None:
        return f"{NONE} ({measured.interval.note})"
    ends = measured.interval.ends
    tail = f"({span(ends)})" if ends is not None else f"({measured.interval.note})"
    return f"{number(measured.value)} {tail}"


_NEAR_CHANCE: Final = 0.6
"""Balanced accuracy below which verdicts are of no use, and AUROC above which an order is."""


def judge_sentence(found: Agreement, level: Level | None) -> str:
    """Return one sentence on a judge's use by its agreement with labels; empty if it is usable as it is."""
    balanced, ranks = found.balanced_accuracy.interval.ends, found.auroc.interval.ends
    if level is not None:
        shares = f"{100 * level.before:.0f} -> {100 * level.after:.0f} % right"
        return f"level set by {count(level.labels, 'label')}: {shares}."
    if balanced is None or balanced[1] >= _NEAR_CHANCE:
        return ""
    agreed = f"the judge agrees with your labels on {_agreed(found):,} of {found.items:,}"
    if ranks is not None and ranks[0] > _NEAR_CHANCE:
        return f"AUROC {number(found.auroc.value)}, level off: {agreed}."
    return f"{agreed}: do not use its verdicts."


def _agreed(found: Agreement) -> int:
    return sum(row[place] for place, row in enumerate(found.confusion.counts))
