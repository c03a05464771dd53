"""Estimates how many human labels decide a comparison of two runs, or the gates of a suite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from merilo.commands.calibrate.attached_labels import corrected_of
from merilo.commands.compare.run import ComparisonRequest, compare_runs
from merilo.errors import UsageError
from merilo.metrics.registry import asks_judge
from merilo.rendering.wording import count, number, percent
from merilo.results.scores import read_scores
from merilo.runs.run import metric_in, opened
from merilo.stats.correction import FEWEST_LABELLED
from merilo.stats.intervals import LEVEL
from merilo.stats.label_power import LabelSpread, labels_needed
from merilo.stats.means import mean_interval
from merilo.stats.power import POWER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from merilo.commands.gate.suite import Suite
    from merilo.rendering.page import Page
    from merilo.runs.run import Run
    from merilo.stats.compare import Comparison

_NO_LABELS = "without labels so far, as if the judge helped nothing"


@dataclass(frozen=True, slots=True)
class LabelsNeeded:
    """The number of labelled samples that decide one comparison or gate."""

    metric: str
    decides: str
    """The decision, such as `minimum 0.8`."""
    effect: float
    """The distance of the number so far from the one that decides."""
    labels: int | None
    """Labelled samples (pairs) in all; None if even all samples are too few."""
    labelled: int
    """Labelled samples so far; below 10 the judge is assumed not to help."""
    samples: int
    """Samples (pairs) of the run."""


def labels_plan(
    runs: Sequence[str], suite: Suite | None, difference: float | None, metrics: Sequence[str] | None
) -> tuple[LabelsNeeded, ...]:
    """Return the labels that each decision needs, for a power of 80 %.

    One run: the minimums of the suite. Two runs: the comparison, or with a suite the minimums of the second run and
    its drops from the first. `difference`: the true difference to assume for a comparison; None: the one so far.
    Raises UsageError for a decision that needs no labels or another number of runs.
    """
    opened_runs = [opened(each) for each in runs]
    if len(runs) > 2:
        raise UsageError(f"--labels: expected one or two runs, got {len(runs)}.")
    if suite is None and len(runs) == 1:
        raise UsageError("--labels with one run needs the gates to decide: --gates SUITE. Or give a second run.")
    found: list[LabelsNeeded] = []
    if suite is not None:
        found += _minimums(opened_runs[-1], suite)
    if len(runs) == 2:
        found += _differences(opened_runs, suite, difference, metrics)
    if not found:
        raise UsageError("No metric here asks a judge, so no label is needed.")
    return tuple(found)


def _minimums(run: Run, suite: Suite) -> Iterator[LabelsNeeded]:
    corrections = corrected_of(run)
    for name, asked in suite.means.items():
        text = metric_in(run, name)
        if not asks_judge(text):
            continue
        column = read_scores(run, metrics=(text,)).columns[text]
        judged = mean_interval(column.values[column.scored], column.span)
        correction = corrections.get(text)
        labelled = 0 if correction is None else correction.labelled
        best = judged if correction is None or correction.estimate is None else correction.estimate
        if judged.error is None or best.value is None:
            continue
        spread = _spread(judged.error, judged.units, best.error, labelled)
        effect = abs(best.value - asked)
        needed = labels_needed(effect, spread, two_sided=False, level=suite.level)
        limit = "minimum" if column.higher_is_better else "maximum"
        yield LabelsNeeded(text, f"{limit} {asked:g}", effect, needed, labelled, judged.units)


def _differences(
    runs: Sequence[Run], suite: Suite | None, difference: float | None, metrics: Sequence[str] | None
) -> Iterator[LabelsNeeded]:
    drops = None if suite is None else suite.max_drop
    if suite is not None and drops is None:
        return
    named = list(drops) if drops is not None and not isinstance(drops, float | int) else metrics
    found = compare_runs(runs, ComparisonRequest(metrics=named, samples=0, cluster=""))
    for row in found.rows:
        each = row.comparison
        if not asks_judge(row.metric) or each.difference is None:
            continue
        judged, error, labelled = _paired_errors(each)
        if judged is None:
            continue
        spread = _spread(judged, each.counts.pairs, error, labelled)
        if suite is None or drops is None:
            effect, decides, level = abs(each.difference if difference is None else difference), "comparison", LEVEL
        else:
            allowed = float(drops) if isinstance(drops, float | int) else drops[row.metric]
            drop = each.difference if row.higher_is_better else -each.difference
            effect, decides, level = abs(allowed - drop), f"drop of at most {allowed:g}", suite.level
        needed = labels_needed(effect, spread, two_sided=suite is None, level=level)
        yield LabelsNeeded(row.metric, decides, effect, needed, labelled, each.counts.pairs)


def _paired_errors(each: Comparison) -> tuple[float | None, float | None, int]:
    """Return the standard errors by the judge alone and corrected, and the number of labelled pairs."""
    if each.correction is not None:
        return each.correction.judged.error, each.correction.corrected.error, each.correction.labelled
    ends = each.interval.ends
    # By the judge alone: half of the interval is about 1.96 standard errors.
    return (None if ends is None else (ends[1] - ends[0]) / (2 * 1.96)), None, 0


def _spread(judged: float, samples: int, corrected: float | None, labelled: int) -> LabelSpread:
    """Return the spread from the standard errors of the judge's mean and of the corrected one."""
    variance = judged**2 * samples
    if corrected is None or labelled < FEWEST_LABELLED:
        return LabelSpread(variance, 0.0, samples)
    return LabelSpread.of(corrected, labelled, samples, variance)


def labels_record(found: Sequence[LabelsNeeded]) -> list[dict[str, Any]]:  # Any: JSON
    """Return the estimates as JSON-able objects."""
    return [
        {
            "metric": each.metric,
            "decides": each.decides,
            "effect": each.effect,
            "labels": each.labels,
            "labelled": each.labelled,
            "samples": each.samples,
            "power": POWER,
        }
        for each in found
    ]


def labels_section(page: Page, found: Sequence[LabelsNeeded]) -> None:
    """Add the numbers of labels that decide."""
    page.heading(f"Labelled samples that decide, with a power of {percent(POWER)}")
    page.entries([(each.metric, _text(each)) for each in found])
    page.text(
        "Assumes that the distance so far is the true one. Uniform and stratified draws need about the same number, as "
        "uniform ones are stratified afterwards.",
        indent=2,
    )


def _text(each: LabelsNeeded) -> str:
    far = (
        f"{each.decides}, {number(each.effect)} away"
        if each.decides != "comparison"
        else (f"difference of {number(each.effect)}")
    )
    so_far = f"{each.labelled:,} so far" if each.labelled >= FEWEST_LABELLED else _NO_LABELS
    if each.labels is None:
        return f"{far}: more than all {count(each.samples, 'sample')}, so evaluate more ({so_far})"
    return f"{far}: {each.labels:,} of {count(each.samples, 'sample')} ({so_far})"
