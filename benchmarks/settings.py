"""How often the choice among several settings is wrong, in synthetic studies of known truth, and what it costs.

python benchmarks/settings.py                  one line per figure, with its limit; about an hour of CPU
python benchmarks/settings.py --studies 100    fewer studies
python benchmarks/settings.py equal            one part: equal, margin, power, latency, clusters, labels, cost
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from figures import peak_mb, report

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from simulated_settings import MARGIN, kinds, latencies, power, ranking, rates

if TYPE_CHECKING:
    from collections.abc import Sequence

SEED = 5711
SIZES = (20, 60, 400)
KINDS = tuple(kinds(2, 2, np.random.default_rng(0)))
POWER = {2: (0.95, 0.95), 3: (0.84, 0.91), 4: (0.77, 0.92), 8: (0.44, 0.81), 20: (0.16, 0.73)}
"""Number of runs → asked rates of "as good" within .05: against every run, against one."""
LESS = 0.03
"""Largest shortfall of a measured power from the asked one."""
CHANCE = 2.5
"""Standard errors that the worst of many cells may be above its limit by chance."""
WRONG, MISSED, COVERED = 0.06, 0.05, 0.94


def equal(studies: int, runs: Sequence[int], sizes: Sequence[int] = SIZES, **options: bool) -> None:
    """Report how often equal settings are told apart: over all kinds and sizes, and the worst of these."""
    _wrong(studies, runs, sizes, 0.0, **options)


def margin(studies: int, runs: Sequence[int], sizes: Sequence[int] = SIZES, **options: bool) -> None:
    """Report how often settings that lose exactly the margin are called as good, and the best one is excluded."""
    _wrong(studies, runs, sizes, MARGIN, **options)


def _wrong(studies: int, runs: Sequence[int], sizes: Sequence[int], lost: float, **options: bool) -> None:
    where = ", ".join(name for name, on in options.items() if on)
    for k in runs:
        cells = {
            f"{kind}, n={n}": rates(kind, n, k, studies=studies, seed=SEED, lost=lost, **options)
            for n in sizes
            for kind in KINDS
            if not options.get("labels") or kind.startswith("0/1")
        }
        name = f"{k} runs {where}".strip()
        figures = [("truly best excluded", "excluded", MISSED)]
        figures += [("as good at the margin", "as_good", MISSED)] if lost else []
        figures += [] if lost else [("a best one named", "named", WRONG), ("any called worse", "worse", WRONG)]
        for text, field, limit in figures:
            found = {cell: getattr(each, field) for cell, each in cells.items()}
            worst = max(found, key=found.__getitem__)
            report(f"{name}, loss {lost:g}: {text}, mean", sum(found.values()) / len(found), at_most=limit)
            slack = CHANCE * np.sqrt(limit * (1 - limit) / studies)
            report(f"{name}, loss {lost:g}: {text}, {worst}", found[worst], at_most=limit + slack)


def powers(studies: int, runs: Sequence[int]) -> None:
    """Report how often equal settings are shown to be as good within .05."""
    for k, asked in [(k, asked) for k, asked in POWER.items() if k in runs]:
        for text, measured, least in zip(
            ("every run", "one run"), power(k, studies=studies, seed=SEED), asked, strict=True
        ):
            report(f"power of {k} runs against {text}", measured, at_least=least - LESS)


def latency(studies: int, _: Sequence[int]) -> None:
    """Report the coverage of intervals of latencies."""
    for n, clusters in ((60, None), (200, None), (1_000, None), (200, 40)):
        where = f"n={n}" + ("" if clusters is None else f" in {clusters} clusters")
        means, medians = latencies(n, studies=studies, seed=SEED, clusters=clusters)
        report(f"latency, {where}: coverage of the difference of means", means, at_least=COVERED)
        report(f"latency, {where}: coverage of the ratio of medians", medians, at_least=COVERED)


def cost(_: int, __: Sequence[int]) -> None:
    """Report the time and memory of 20 runs over 10,000 questions."""
    rng = np.random.default_rng(SEED)
    scores = np.clip(rng.beta(4, 2, (10_000, 1)) + rng.normal(0, 0.1, (10_000, 20)), 0, 1)
    start = time.process_time()
    ranking(scores, within=0.01)
    report("20 runs, 10,000 questions: CPU s", time.process_time() - start, at_most=5.0)
    report("20 runs, 10,000 questions: peak MB", peak_mb(), at_most=400.0)


PARTS = {
    "cost": cost,
    "equal": equal,
    "margin": margin,
    "power": powers,
    "latency": latency,
    "clusters": lambda studies, runs: [each(studies, runs, (60, 400), clustered=True) for each in (equal, margin)],
    "labels": lambda studies, runs: [each(studies, runs, (60, 400), labels=True) for each in (equal, margin)],
}


def main() -> None:
    """Run the parts named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--runs", type=int, nargs="*", default=[2, 3, 4, 8, 20], help="numbers of runs")
    given = parser.parse_args()
    for part in given.parts or PARTS:
        PARTS[part](given.studies, given.runs)


if __name__ == "__main__":
    main()
