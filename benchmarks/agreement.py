"""Coverage of the intervals of agreement, on simulated clusters of labels; figures: design/statistics.md.

python benchmarks/agreement.py [--runs 2000]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from figures import report
from scipy.special import ndtr, ndtri

from merilo.stats.agreement_intervals import agreement
from merilo.stats.resampling import Resampling

ICC = 0.3
CELLS = (
    (60, 1, 0.5, 1.5),
    (60, 1, 0.3, 2.5),
    (200, 1, 0.3, 1.5),
    (200, 1, 0.1, 2.5),
    (30, 5, 0.4, 1.5),
    (100, 5, 0.15, 2.0),
    (15, 20, 0.4, 1.5),
    (1_000, 1, 0.3, 1.5),
    (1_000, 1, 0.5, 3.5),
    (1_000, 3, 0.1, 2.0),
)
"""Clusters, items per cluster, rate of yes, distance of the judge's scores between no and yes in standard deviations.
"""
LEAST = 0.9


def judged(
    draw: np.random.Generator, clusters: int, each: int, base: float, separation: float
) -> tuple[list[bool], list[bool], list[float]]:
    """Return human labels, the judge's labels and its scores; labels and errors correlate within a cluster."""
    shared, own = draw.normal(size=(2, clusters, 1)), draw.normal(size=(2, clusters, each))
    label, error = np.sqrt(ICC) * shared + np.sqrt(1 - ICC) * own
    people = (label > ndtri(1 - base)).ravel()
    scores = separation * people + error.ravel()
    return people.tolist(), (scores > separation / 2).tolist(), scores.tolist()


def truths(base: float, separation: float) -> dict[str, float]:
    """Return the true values for a judge whose scores are normal, with a threshold halfway between no and yes."""
    right = float(ndtr(separation / 2))
    yes = base * right + (1 - base) * (1 - right)
    by_chance = base * yes + (1 - base) * (1 - yes)
    return {
        "accuracy": right,
        "balanced_accuracy": right,
        "kappa": (right - by_chance) / (1 - by_chance),
        "auroc": float(ndtr(separation / np.sqrt(2))),
    }


def coverage(runs: int) -> None:
    """Print the coverage of each measure in each cell."""
    draw = np.random.default_rng(5)
    for clusters, each, base, separation in CELLS:
        truth = truths(base, separation)
        told, held = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
        for seed in range(runs):
            people, judge, scores = judged(draw, clusters, each, base, separation)
            found = agreement(
                people,
                judge,
                scores=scores,
                clusters=np.repeat(np.arange(clusters), each).tolist(),
                resampling=Resampling(seed=seed, resamples=600),
            )
            for name, value in truth.items():
                ends = getattr(found, name).interval.ends
                told[name] += ends is not None
                held[name] += ends is not None and bool(ends[0] <= value <= ends[1])
        for name in truth:
            cell = f"{name}: {clusters} x {each}, {base:.0%} yes"
            report(
                f"coverage, {cell}",
                held[name] / max(1, told[name]),
                at_least=float(LEAST - 1.65 * np.sqrt(0.09 / runs)),
            )


def speed() -> None:
    """Print the CPU time of all measures for 10,000 items in clusters of one and of ten."""
    for clusters, each in ((10_000, 1), (999, 10)):
        people, judge, scores = judged(np.random.default_rng(6), clusters, each, 0.3, 1.5)
        started = time.process_time()
        agreement(people, judge, scores=scores, clusters=np.repeat(np.arange(clusters), each).tolist())
        cell = f"{clusters:,} x {each}"
        report(f"agreement of {cell} items: CPU s", time.process_time() - started, at_most=3)


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    coverage(parser.parse_args().runs)
    speed()


if __name__ == "__main__":
    main()
