"""How many samples a difference needs, and whether stopping early can pay, as a pilot run tells."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import TYPE_CHECKING

from merilo.commands.power.result import Early, Needed, Power
from merilo.errors import DataError, UsageError
from merilo.results.comparability import differences_that_move_numbers, unlike
from merilo.results.scores import read_scores
from merilo.runs.run import ByMetric, opened
from merilo.runs.scales import check_asked
from merilo.stats.column import align
from merilo.stats.intervals import LEVEL
from merilo.stats.power import POWER, SamplesNeeded, samples_needed
from merilo.stats.sequential import sequential_outlook

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    import numpy as np
    from numpy.typing import NDArray

    from merilo.results.early_stopping import Until
    from merilo.results.scores import RunScores
    from merilo.runs.run import Run
    from merilo.stats.column import Column

_TWO = 2
_NO_SCORES = "cannot tell: the pilot has no scores"
_DRAWN = 20_000_000
"""Made-up scores that an outlook draws at most; from 20 to 200 runs of them."""


def power_of(
    pilots: Sequence[Run | str | PathLike[str]],
    difference: float | None = None,
    *,
    metrics: Sequence[str] | None = None,
    until: Until | None = None,
    most: int | None = None,
    cluster: str | None = None,
    power: float = POWER,
    level: float = LEVEL,
) -> Power:
    """What a pilot of one run, or of two that are compared, says of runs to come.

    `difference`: to be shown by a paired comparison of two runs over the same samples, in the unit of each metric. The
    spread of the differences is that of the two pilots; of one alone it is assumed that both runs would score each
    sample independently and spread alike, which is more than most pairs spread. `until`: minimums for which to say
    whether stopping early can pay, with `most` samples (None: as many as the first pilot has).

    Raises UsageError for what cannot be asked, DataError where two pilots have no sample in common.
    """
    if not 1 <= len(pilots) <= _TWO:
        raise UsageError(f"A pilot is one run, or two that are compared; got {len(pilots)} (--power).")
    if difference is None and until is None:
        raise UsageError(
            "Say what is to be planned: the difference to be shown (--difference 0.02), or a suite that is to end a "
            "run (--until-decided FILE)."
        )
    runs = [opened(pilot) for pilot in pilots]
    _check(difference, most, power, level)
    needed: tuple[Needed, ...] = ()
    if difference is not None:
        scores, other = read_scores(runs[0], metrics=metrics, cluster=cluster), None
        if len(runs) == _TWO:
            scores, other = _paired(scores, runs[1])
        needed = _needed(scores, other, difference, power=power, level=level)
    early = () if until is None else _early(runs[0], until, most or runs[0].manifest.samples)
    return Power(tuple(run.path for run in runs), difference, power, level, needed, early)


def _check(difference: float | None, most: int | None, power: float, level: float) -> None:
    if difference is not None and (difference == 0 or not isfinite(difference)):
        raise UsageError(f"Samples are counted for a difference other than 0, got {difference:g}.")
    if most is not None and most < 1:
        raise UsageError(f"At least 1 sample is planned for, got {most}.")
    if not 0 < level < 1:
        raise UsageError(f"A confidence level lies between 0 and 1, got {level}; write 0.95 for 95 %.")
    if not 1 - level < power < 1:
        raise UsageError(f"The chance to see it lies between {1 - level:.3g} and 1, got {power}; write 0.8 for 80 %.")


# -- a difference -------------------------------------------------------------------------------------


def _needed(
    scores: RunScores, other: RunScores | None, difference: float, *, power: float, level: float
) -> tuple[Needed, ...]:
    found: list[Needed] = []
    for text, column in scores.columns.items():
        if other is not None and text not in other.columns:
            continue
        low, high = column.span
        if abs(difference) > high - low:
            raise UsageError(f"{text} lies between {low:g} and {high:g}; a difference of {difference:g} cannot be.")
        kept, values = _differences(column, None if other is None else other.columns[text])
        clusters = None if scores.clusters is None else [scores.clusters[place] for place in kept]
        if len(set(values.tolist())) < _TWO:
            note = f"cannot tell: all {len(kept):,} values of the pilot are equal" if len(kept) else _NO_SCORES
            needed = SamplesNeeded(None, None, difference, None, power, level, note=note)
        else:
            needed = samples_needed(values, difference, clusters=clusters, power=power, level=level)
        found.append(Needed(text, len(kept), other is not None, needed))
    return tuple(found)


def _paired(first: RunScores, run: Run) -> tuple[RunScores, RunScores]:
    """Two pilots over their common samples."""
    common = [text for text in first.columns if text in run.manifest.metrics]
    if not common:
        raise UsageError(f"{first.run.path} and {run.path} have no metric in common; give pilots of the same metrics.")
    differences = differences_that_move_numbers(first.run.manifest, run.manifest, metrics=common)
    if differences:
        pilots = f"The pilots {first.run.path} (there) and {run.path} (here)"
        raise unlike(pilots, differences, advice=", or give one pilot alone")
    second = read_scores(run, metrics=common, cluster="")
    places = align(first.ids, second.ids)
    if not places.first:
        raise DataError(f"The pilots {first.run.path} and {run.path} have no sample in common; pairs are made by id.")
    return first.at(places.first), second.at(places.second)


def _differences(first: Column, second: Column | None) -> tuple[list[int], NDArray[np.float64]]:
    """Where there are differences, and they; of one run those that two like it would have, scored independently."""
    import numpy as np

    if second is not None:
        kept = np.flatnonzero(first.scored & second.scored)
        return kept.tolist(), second.values[kept] - first.values[kept]
    kept = np.flatnonzero(first.scored)
    values = first.values[kept]
    return kept.tolist(), sqrt(2) * (values - values.mean()) if len(kept) else values


# -- stopping early -----------------------------------------------------------------------------------


def _early(run: Run, until: Until, most: int) -> tuple[Early, ...]:
    names = list(until.minimums)
    scores = read_scores(run, metrics=names, cluster="")
    texts = ByMetric({text: text for text in scores.columns})
    runs = max(20, min(200, _DRAWN // most))
    found: list[Early] = []
    for name, asked in until.minimums.items():
        column = scores.columns[texts[name]]
        low, high = column.span
        if not (isfinite(low) and isfinite(high)):
            raise UsageError(f"{texts[name]} has an infinite range, in which nothing can be decided early.")
        check_asked(texts[name], asked, column.span)
        values = column.values[column.scored]
        sign = 1.0 if column.higher_is_better else -1.0
        span = (low, high) if column.higher_is_better else (-high, -low)
        outlook = sequential_outlook(sign * values, sign * asked, span, most=most, level=until.level, runs=runs)
        found.append(Early(texts[name], asked, column.higher_is_better, len(values), outlook))
    return tuple(found)
