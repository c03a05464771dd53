"""Estimates the samples needed for a difference, from a pilot run."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import TYPE_CHECKING

from merilo.commands.power.result import Needed, Power
from merilo.errors import DataError, UsageError
from merilo.results.basis import judge_noise
from merilo.results.comparability import not_comparable, score_affecting_differences
from merilo.results.scores import read_scores
from merilo.runs.run import metric_in, opened
from merilo.runs.weak import weak_metrics
from merilo.stats.column import align
from merilo.stats.intervals import LEVEL
from merilo.stats.power import POWER, SamplesNeeded, samples_needed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    import numpy as np
    from numpy.typing import NDArray

    from merilo.results.scores import RunScores
    from merilo.runs.run import Run
    from merilo.stats.column import Column

_TWO = 2
_NO_SCORES = "cannot tell: the pilot has no scores"


def power_of(
    pilots: Sequence[Run | str | PathLike[str]],
    difference: float | None = None,
    *,
    metrics: Sequence[str] | None = None,
    cluster: str | None = None,
    power: float = POWER,
    level: float = LEVEL,
) -> Power:
    """Return estimates for future runs from one pilot run, or from two pilots that are compared.

    `difference`: the difference to detect by a paired comparison of two runs over the same samples, on the scale of
    each metric. Its spread is estimated from the two pilots. With one pilot, both runs are assumed to score each sample
    independently and with equal spread, which overestimates the spread of most pairs. If the first pilot asked its
    judge several times, the estimates say whether more samples or more draws reduce the standard error more.

    Raises UsageError for invalid arguments, DataError if two pilots have no sample in common.
    """
    if not 1 <= len(pilots) <= _TWO:
        raise UsageError(f"--power: expected one or two pilot runs, got {len(pilots)}.")
    runs = [opened(pilot) for pilot in pilots]
    if difference is None and not runs[0].manifest.draws:
        raise UsageError(
            "--power needs the difference to detect (--difference 0.02), or a run with several draws (merilo run "
            "--draws 3)."
        )
    _check(difference, power, level)
    needed: tuple[Needed, ...] = ()
    if difference is not None:
        scores, other = read_scores(runs[0], metrics=metrics, cluster=cluster), None
        if len(runs) == _TWO:
            scores, other = _paired(scores, runs[1])
        needed = _needed(scores, other, difference, power=power, level=level)
    weak = frozenset[str]().union(*(weak_metrics(run.manifest) for run in runs))
    noise = judge_noise(runs[0], None if metrics is None else [metric_in(runs[0], name) for name in metrics])
    return Power(tuple(run.path for run in runs), difference, power, level, needed, weak, noise)


def _check(difference: float | None, power: float, level: float) -> None:
    if difference is not None and (difference == 0 or not isfinite(difference)):
        raise UsageError(f"The difference must be a finite number other than 0, got {difference:g}.")
    if not 0 < level < 1:
        raise UsageError(f"The confidence level must be between 0 and 1, got {level}; write 0.95 for 95 %.")
    if not 1 - level < power < 1:
        raise UsageError(f"The power must be between {1 - level:.3g} and 1, got {power}; write 0.8 for 80 %.")


def _needed(
    scores: RunScores, other: RunScores | None, difference: float, *, power: float, level: float
) -> tuple[Needed, ...]:
    found: list[Needed] = []
    for text, column in scores.columns.items():
        if other is not None and text not in other.columns:
            continue
        low, high = column.span
        if abs(difference) > high - low:
            raise UsageError(f"A difference of {difference:g} is impossible: {text} is between {low:g} and {high:g}.")
        positions, values = _differences(column, None if other is None else other.columns[text])
        clusters = None if scores.clusters is None else [scores.clusters[place] for place in positions]
        if len(set(values.tolist())) < _TWO:
            note = (
                f"cannot tell: all {len(positions):,} values of the pilot are equal" if len(positions) else _NO_SCORES
            )
            needed = SamplesNeeded(None, None, difference, None, power, level, note=note)
        else:
            needed = samples_needed(values, difference, clusters=clusters, power=power, level=level)
        found.append(Needed(text, len(positions), other is not None, needed))
    return tuple(found)


def _paired(first: RunScores, run: Run) -> tuple[RunScores, RunScores]:
    """Return two pilots over their common samples. Raises UsageError or DataError if they cannot be paired."""
    common = [text for text in first.columns if text in run.manifest.metrics]
    if not common:
        raise UsageError(f"{first.run.path} and {run.path} have no metric in common. Use pilots with the same metrics.")
    differences = score_affecting_differences(first.run.manifest, run.manifest, metrics=common)
    if differences:
        pilots = f"The pilots {first.run.path} (there) and {run.path} (here)"
        raise not_comparable(pilots, differences, advice=", or use only one pilot")
    second = read_scores(run, metrics=common, cluster="")
    places = align(first.ids, second.ids)
    if not places.first:
        raise DataError(f"The pilots {first.run.path} and {run.path} have no sample in common. Samples pair by id.")
    return first.at(places.first), second.at(places.second)


def _differences(first: Column, second: Column | None) -> tuple[list[int], NDArray[np.float64]]:
    """Return the positions of pairs and their differences.

    For one run: scaled deviations from the mean, with the spread that differences of two independent runs would have.
    """
    import numpy as np

    if second is not None:
        positions = np.flatnonzero(first.scored & second.scored)
        return positions.tolist(), second.values[positions] - first.values[positions]
    positions = np.flatnonzero(first.scored)
    values = first.values[positions]
    return positions.tolist(), sqrt(2) * (values - values.mean()) if len(positions) else values
