"""How often the intervals of agreement hold the truth, on simulated clusters of labels; figures: design/agreement.md.

python benchmarks/agreement.py [--runs 2000]
"""

from __future__ import annotations

import argparse

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
)
"""Clusters, items in each, share of yes, distance of the judge's scores between no and yes in standard deviations."""
LEAST = 0.9


def truths(base: float, separation: float) -> dict[str, float]:
    """The true values of a judge whose scores are normal and who says yes from halfway."""
    right = float(ndtr(separation / 2))
    yes = base * right + (1 - base) * (1 - right)
    by_chance = base * yes + (1 - base) * (1 - yes)
    return {
        "accuracy": right,
        "balanced_accuracy": right,
        "kappa": (right - by_chance) / (1 - by_chance),
        "auroc": float(ndtr(separation / np.sqrt(2))),
    }


def main() -> None:
    """Print the coverage of each measure in each cell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    runs: int = parser.parse_args().runs
    draw = np.random.default_rng(5)
    for clusters, each, base, separation in CELLS:
        truth = truths(base, separation)
        told, held = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
        for seed in range(runs):
            spread = np.sqrt([ICC, 1 - ICC])
            label, error = (
                (draw.normal(size=(2, clusters, 1)) * spread[0]).tolist(),
                draw.normal(size=(2, clusters, each)),
            )
            people = (np.asarray(label[0]) + error[0] * spread[1] > ndtri(1 - base)).ravel()
            scores = separation * people + (np.asarray(label[1]) + error[1] * spread[1]).ravel()
            found = agreement(
                people.tolist(),
                (scores > separation / 2).tolist(),
                scores=scores.tolist(),
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


if __name__ == "__main__":
    main()
