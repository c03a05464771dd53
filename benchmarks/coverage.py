"""Coverage of intervals and false alarms of comparisons, in synthetic studies of known truth.

    python benchmarks/coverage.py                 one line per figure, with its limit; about half an hour of CPU
    python benchmarks/coverage.py --studies 200   a tenth
    python benchmarks/coverage.py gates           one part: speed, intervals, clusters, compare, gates,
                                                  correction, labels, decisions, agreement

Too long for a plain `make bench`; run it by `make bench ARGS=coverage.py`, or one part by
`make bench ARGS="coverage.py labels"`.
"""

from __future__ import annotations

import argparse
import sys
import time
from math import sqrt
from pathlib import Path

import agreement as agreement_cells
import numpy as np
from figures import peak_mb, report

sys.path.append(str(Path(__file__).parent.parent / "tests"))

import decisions as decision_cells
import simulated
import simulated_gates
import simulated_labels

SEED = 20
FULL = 2_000
"""Number of studies from which the limits apply without slack."""
SIZES = (30, 100, 1_000)
CLUSTERS = (10, 30, 100)
GATE_SIZES = (2, 5, 10, 20, 50, 100, 200)
WRONG, CLUSTERED_WRONG = 0.055, 0.06
"""Limits. No limit holds for every distribution of clusters."""
ENOUGH_OFF = 9.8
"""Expected units off the more common end from which the width has a limit."""


def intervals(studies: int) -> None:
    """Report coverage of 95 % intervals, and their width if 10 units or more are expected off the more common end."""
    found = list[float]()
    slack = _slack(0.92, studies) if studies < FULL else 0.0
    for name in simulated.SHAPES:
        cells = {f"n={size}": simulated.coverage(name, size, studies=studies, seed=SEED) for size in SIZES}
        for size in CLUSTERS:
            cells[f"{size} clusters"] = simulated.cluster_coverage(name, size, studies=studies, seed=SEED)
        for where, cell in cells.items():
            found.append(cell.covered)
            report(f"coverage: {name}, {where}", cell.covered, at_least=0.92 - slack)
            report(f"width: {name}, {where}", cell.width, at_most=2.0 if cell.off > ENOUGH_OFF else None)
    report("coverage: mean over all cells, at least", float(np.mean(found)), at_least=0.94)
    report("coverage: mean over all cells, at most", float(np.mean(found)), at_most=0.98)


def clusters(studies: int) -> None:
    """Report coverage over clusters of unequal size, and with one cluster that has half of the samples."""
    slack = _slack(0.92, studies) if studies < FULL else 0.0
    found = list[float]()
    for where in simulated.UNEQUAL:
        for name in simulated.SHAPES:
            cell = simulated.unequal_coverage(name, where, studies=studies, seed=SEED)
            found.append(cell.covered)
            report(f"coverage: {name}, {where}", cell.covered, at_least=0.92 - slack)
            report(f"width: {name}, {where}", cell.width)
    report("coverage: mean over unequal clusters, at least", float(np.mean(found)), at_least=0.94)


def compare(studies: int) -> None:
    """Report false alarms over 8 metrics of two equal runs, and of one metric with skewed differences."""
    limit = 0.05 + _slack(0.05, studies)
    for size in (10, 30, 100, 300):
        report(f"false alarms: n={size}", simulated.false_alarms(size, studies=studies, seed=SEED), at_most=limit)
    for size in (50, 150, 300):
        alarms = simulated.false_alarms(size, studies=studies, seed=SEED, members=5)
        report(f"false alarms: {size // 5} clusters of 5", alarms, at_most=limit)
    for size in (10, 30, 100, 300, 1_000):
        report(
            f"false alarms: skewed, n={size}", simulated.skewed_alarms(size, studies=studies, seed=SEED), at_most=limit
        )


def gates(studies: int) -> None:
    """Report how often gates are wrong and how often they decide: 0/1 scores by enumeration, graded ones by
    simulation.
    """
    for size in GATE_SIZES:
        _zero_one_gates(size)
    fewer = max(1, studies // 2)
    limit = WRONG + _slack(WRONG, fewer)
    for name in simulated_gates.GRADED:
        for size in (10, 30, 100, 300, 1_000):
            cell = simulated_gates.graded(name, size, studies=fewer, seed=SEED)
            _cell(f"graded, {name}, n={size}", cell, limit)
    for name in simulated_gates.CHANGES:
        for size in (10, 30, 100, 300, 1_000):
            cell = simulated_gates.graded_drop(name, size, studies=fewer, seed=SEED)
            _cell(f"graded drop, {name}, n={size}", cell, limit)
    for name in simulated_gates.CLUSTERED:
        for size in (6, *CLUSTERS):
            for kind, cells in (("", simulated_gates.clustered), ("drop, ", simulated_gates.clustered_drop)):
                cell = cells(name, size, studies=fewer, seed=SEED)
                _cell(f"{kind}{name}, {size} clusters of 10", cell, CLUSTERED_WRONG + _slack(CLUSTERED_WRONG, fewer))


def _zero_one_gates(size: int) -> None:
    limits = simulated_gates.zero_one_limits(size)
    _wrong(f"0/1, n={size}", simulated_gates.zero_one_wrong(limits), 0.05)
    report(f"lowest coverage: 0/1, n={size}", simulated_gates.zero_one_coverage(limits), at_least=0.91)
    for rate, asked in ((0.8, 0.7), (0.95, 0.9)):
        power = simulated_gates.zero_one_power(limits, rate, asked)
        report(f"gates decide: rate {rate}, at least {asked}, n={size}", power)
    for drop in (0.0, 0.01, 0.05, 0.2):
        _wrong(f"0/1 drop of {drop}, n={size}", simulated_gates.drop_wrong(size, drop), 0.05)
    power = simulated_gates.drop_power(size, 0.05, 0.05)
    report(f"gates decide: 5 % gains, 5 % losses, drop of 0.05 allowed, n={size}", power)


def _cell(where: str, found: simulated_gates.Cell, limit: float) -> None:
    _wrong(where, found.wrong, limit)
    report(f"gates decide: pass, {where}", found.passes)
    report(f"gates decide: fail, {where}", found.fails)
    report(f"width over t: {where}", found.width)


def _wrong(where: str, found: simulated_gates.Wrong, limit: float | None = None) -> None:
    for name, share in (("pass", found.passes), ("fail", found.fails)):
        report(f"gates {name} wrongly: {where}", round(share, 8), at_most=limit)  # beyond that there is rounding only


def correction(studies: int) -> None:
    """Report coverage of the corrected mean; contexts as units and the raw judge must fail."""
    slack = _slack(0.93, studies) if studies < FULL else 0.0
    for contexts in (5, 10):
        for labelled in (20, 40, 100):
            found = simulated.corrected(labelled, studies=studies, seed=SEED, contexts=contexts)
            where = f"{labelled} labelled, {contexts} contexts"
            report(f"corrected: {where}", found.corrected, at_least=0.93 - slack)
            report(f"reported: {where}", found.reported, at_least=0.93 - slack)
            report(f"human only: {where}", found.human)
            report(f"width over human only: {where}", found.narrower)
            report(f"context by context: {where}", found.by_context, at_most=0.88)
            report(f"raw judge: {where}", found.raw, at_most=0.05)


def labels(studies: int) -> None:
    """Report coverage of the reported mean by judge, mean and number of labels."""
    slack = _slack(0.93, studies) if studies < FULL else 0.0
    found = list[float]()
    for study in simulated_labels.studies_of_labels():
        cell = simulated_labels.coverage(study, studies=studies, seed=SEED)
        found.append(cell.reported)
        report(f"coverage: {study}", cell.reported, at_least=0.93 - slack)
        report(f"width: {study}", cell.width)
        report(f"coverage of labels alone: {study}", cell.human)
        report(f"width over labels alone: {study}", cell.narrower)
    report("coverage: labels, mean over all cells", float(np.mean(found)), at_least=0.94)


def decisions(studies: int) -> None:
    """Report comparisons and gates that human labels correct, over the cells of simulated_decisions."""
    decision_cells.decisions(studies, SEED)


def agreement(studies: int) -> None:
    """Report coverage of measures of agreement, and the CPU time of all of them for 10,000 items."""
    agreement_cells.coverage(max(20, studies // 10))
    agreement_cells.speed()


def speed(studies: int) -> None:
    """Report the time to compare and summarise 1,000,000 outcomes."""
    del studies
    from merilo.stats.column import Column
    from merilo.stats.compare import compare as compare_columns
    from merilo.stats.means import mean_interval

    source = np.random.default_rng(SEED)
    first, second = (source.random(500_000).tolist() for _ in range(2))
    clusters = [f"document {each}" for each in source.integers(0, 5_000, 500_000)]
    started = time.process_time()
    columns = [Column.of(each, (0.0, 1.0)) for each in (first, second)]
    for column in columns:
        mean_interval(column.values, (0.0, 1.0))
        mean_interval(column.values, (0.0, 1.0), clusters=clusters)
    compare_columns({"metric": (columns[0], columns[1])})
    compare_columns({"metric": (columns[0], columns[1])}, clusters=clusters)
    report("1,000,000 outcomes: summary and comparison, CPU s", time.process_time() - started, at_most=10)
    report("1,000,000 outcomes: peak MB", peak_mb(), at_most=1_000)


def _slack(share: float, studies: int) -> float:
    """Return two standard errors of a proportion over this number of studies."""
    return 2 * sqrt(share * (1 - share) / studies)


PARTS = {  # speed first: the peak is that of the whole process
    "speed": speed,
    "intervals": intervals,
    "clusters": clusters,
    "compare": compare,
    "gates": gates,
    "correction": correction,
    "labels": labels,
    "decisions": decisions,
    "agreement": agreement,
}


def main() -> None:
    """Run the named parts, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    parser.add_argument("--studies", type=int, default=FULL)
    chosen = parser.parse_args()
    for part in chosen.parts or PARTS:
        PARTS[part](chosen.studies)


if __name__ == "__main__":
    main()
