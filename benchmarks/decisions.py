"""Coverage, errors and power of numbers that a few human labels correct, in synthetic studies of known truth.

Part `decisions` of coverage.py; the cells are those of tests/simulated_decisions.py.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from math import sqrt
from typing import NamedTuple

import numpy as np
import simulated_decisions
from figures import report
from simulated_decisions import Cell, Tally

WRONG, LOSS, WIDER = 0.055, 0.03, 1.05
"""Limits: wrong decisions, loss of power against labels alone, width over a labels-only interval of equal coverage."""
_STRETCHED = 0.06
"""Two simulation errors of the width ratio, which rests on a quantile of the labels-only errors, for 1,000 studies."""


class _Found(NamedTuple):
    cell: Cell
    pair: Tally
    mean: Tally


def decisions(studies: int, seed: int) -> None:
    """Report every cell: paired differences (comparisons, drops) and means (minimums) of 20 to 200 labels."""
    cells = list(simulated_decisions.cells())
    work = [(cell, studies, seed) for cell in cells]
    with ProcessPoolExecutor(max(1, (os.cpu_count() or 2))) as pool:
        found = list(pool.map(_studied, work))
    for each in found:
        for name, tally in (("pair", each.pair), ("mean", each.mean)):
            _report(f"{name}, {each.cell}", each.cell, tally)
    for name, tallies in (
        ("pairs", [each.pair for each in found]),
        ("means", [each.mean for each in found]),
    ):
        average = float(np.mean([tally.coverage for tally in tallies]))
        report(f"coverage: {name}, mean over cells, at least", average, at_least=0.94)
        report(f"coverage: {name}, mean over cells, at most", average, at_most=0.98)


def _studied(work: tuple[Cell, int, int]) -> _Found:
    cell, studies, seed = work
    pair = simulated_decisions.pair_tally(cell, studies, seed)
    return _Found(cell, pair, simulated_decisions.mean_tally(cell, studies, seed + 1))


def _report(name: str, cell: Cell, tally: Tally) -> None:
    studies = tally.studies
    asked = 0.93 if cell.labelled >= 40 else 0.91
    report(f"coverage: {name}", tally.coverage, at_least=asked - _slack(asked, studies))
    report(f"width over labels alone: {name}", tally.width, at_most=WIDER + _STRETCHED * sqrt(1_000 / studies))
    wrong = max(tally.wrong_pass, tally.wrong_fail) / studies
    report(f"wrong gates: {name}", wrong, at_most=WRONG + _slack(WRONG, studies))
    gain = (tally.right - tally.right_alone) / studies
    report(f"right gates, less those of labels alone: {name}", gain, at_least=-LOSS - _slack(0.3, studies) / 2)
    if cell.effect == 0 and tally.decided_alone:
        report(f"false differences: {name}", tally.decided / studies, at_most=WRONG + _slack(WRONG, studies))


def _slack(share: float, studies: int) -> float:
    """Return two standard errors of a proportion over this number of studies."""
    return 2 * sqrt(share * (1 - share) / studies)
