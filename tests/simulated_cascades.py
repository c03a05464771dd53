"""Simulated runs of a cascade with judges of known error: how often is its promise broken, and how much is saved?

Shared by tests/stats (some hundred runs a judge) and benchmarks/cascade.py (1,000).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from merilo.judges.cascade import CLASS_LEVEL
from merilo.stats.acceptance import GRID, accepted, fixed_sequence, upper_limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Flags = NDArray[np.bool_]

SAMPLES: Final = 4_000
QUESTIONS: Final = 6
"""Questions per sample, at most; samples have 1 to 6."""
SHARED: Final = 0.7
"""Questions whose luck is that of their sample: errors of one sample come together."""


class Answers(NamedTuple):
    """The cheap judge's answers, and the probability that each differs from the last judge's."""

    confidence: Numbers
    yes: Flags
    error: Numbers


def _calibrated(source: np.random.Generator, count: int) -> Answers:
    """Right as often as it says."""
    confidence = 0.5 + source.beta(4, 1, count) / 2
    return Answers(confidence, source.random(count) < 0.4, 1 - confidence)


def _overconfident(source: np.random.Generator, count: int) -> Answers:
    """Nearly always at least 90 % confident, and wrong about 15 % of these."""
    confidence = 0.9 + source.beta(3, 1, count) / 10
    return Answers(confidence, source.random(count) < 0.4, 0.15 + 0.5 * (1 - confidence))


def _anti_calibrated(source: np.random.Generator, count: int) -> Answers:
    """The more confident, the more often wrong; never wrong if it has no idea."""
    confidence = 0.5 + source.beta(3, 1, count) / 2
    return Answers(confidence, source.random(count) < 0.4, 0.4 * (confidence - 0.5))


def _good(source: np.random.Generator, count: int) -> Answers:
    """Wrong in 1 %, with a confidence that says nothing."""
    return Answers(0.5 + source.random(count) / 2, source.random(count) < 0.4, np.full(count, 0.01))


def _at_the_limit(source: np.random.Generator, count: int) -> Answers:
    """Wrong just more often than allowed, at every confidence: each threshold that passes breaks the promise."""
    return Answers(0.5 + source.random(count) / 2, source.random(count) < 0.4, np.full(count, 0.051))


def _rare_yes(source: np.random.Generator, count: int) -> Answers:
    """Its rare yes is always wrong and its no hardly ever: over both, 3 % are wrong."""
    yes = source.random(count) < 0.03
    return Answers(0.9 + source.random(count) / 10, yes, np.where(yes, 1.0, 0.002))


def _humped(source: np.random.Generator, count: int) -> Answers:
    """Good at the top, bad below, good again at the bottom."""
    confidence = 0.5 + source.random(count) / 2
    return Answers(confidence, source.random(count) < 0.5, np.where(abs(confidence - 0.8) < 0.05, 0.3, 0.01))


JUDGES: Final[dict[str, Callable[[np.random.Generator, int], Answers]]] = {
    "calibrated": _calibrated,
    "overconfident": _overconfident,
    "anti-calibrated": _anti_calibrated,
    "good": _good,
    "at the limit": _at_the_limit,
    "rare yes": _rare_yes,
    "humped": _humped,
}


@dataclass(frozen=True)
class Promise:
    """Means over simulated runs."""

    broken: float
    """Runs in which the answers accepted of yes or of no differ from the last judge's more often than allowed."""
    broken_in_all: float
    """Runs in which those of yes and no together do."""
    answered: float
    """The fraction of questions that the cheap judge answered."""


def broken_promises(judge: str, *, runs: int, pilot: int, max_error: float, seed: int, search: bool = False) -> Promise:
    """Draw data, a pilot of one question from each of `pilot` samples, and compare the true error with the promise.

    Each sample counts equally in the true error. `search`: take the laxest threshold that passes, wherever it is.
    """
    rows: list[tuple[float, float, float]] = []
    for run in range(runs):
        source = np.random.default_rng([seed, run])
        sizes = source.integers(1, QUESTIONS + 1, SAMPLES)
        sample = np.repeat(np.arange(SAMPLES), sizes)
        weight = 1 / sizes[sample]
        answers = JUDGES[judge](source, len(sample))
        own, shared = source.random(len(sample)), source.random(SAMPLES)[sample]
        wrong = np.where(source.random(len(sample)) < SHARED, shared, own) < answers.error
        drawn = _one_of_each(source, sizes, pilot)
        taken = np.zeros(len(sample), dtype=bool)
        broken = False
        for yes in (True, False):
            chosen = drawn[answers.yes[drawn] == yes]
            threshold = _threshold(answers.confidence[chosen], wrong[chosen], max_error, search=search)
            if threshold is not None:
                accepts = (answers.yes == yes) & (np.round(answers.confidence, 6) >= threshold)
                broken |= _rate(wrong, accepts, weight) > max_error
                taken |= accepts
        rows.append((broken, _rate(wrong, taken, weight) > max_error, float(taken.mean())))
    return Promise(*(float(each) for each in np.mean(np.array(rows, dtype=float), axis=0)))


def _one_of_each(source: np.random.Generator, sizes: NDArray[np.int64], pilot: int) -> NDArray[np.int64]:
    """Positions of one question, drawn at random, from each of some samples, drawn at random."""
    chosen = source.permutation(len(sizes))[:pilot]
    firsts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    return firsts[chosen] + (source.random(pilot) * sizes[chosen]).astype(np.int64)


def _threshold(confidences: Numbers, wrong: Flags, max_error: float, *, search: bool) -> float | None:
    if not search:
        return accepted(fixed_sequence(confidences.tolist(), wrong.tolist(), max_error, level=CLASS_LEVEL))
    limits = {at: upper_limit(int(wrong[confidences >= at].sum()), int((confidences >= at).sum()), 0.95) for at in GRID}
    return min((at for at, limit in limits.items() if limit <= max_error), default=None)


def _rate(wrong: Flags, taken: Flags, weight: Numbers) -> float:
    return float((weight * (wrong & taken)).sum() / (weight * taken).sum()) if taken.any() else nan
