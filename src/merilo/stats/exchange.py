"""Test if a judge changed: if it did not, its old and new answers to the same questions are exchangeable."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import combinations
from math import exp, fsum, log
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from merilo.stats.intervals import LEVEL
from merilo.stats.means import mean_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.stats.intervals import Interval

_SLOPES = (2.0, 4.0, 6.0)
"""Large slopes find few large changes, small ones many small changes."""
_STEPS = 10_000
"""Answers are compared in steps of 1 / `_STEPS`."""
_MAX_LOG = 690.0


class Anchor(NamedTuple):
    """The answers of a judge to one question before and after, from 0 (worst) to 1 (best), rounded by the caller."""

    old: tuple[float, ...]
    new: tuple[float, ...]

    @property
    def fall(self) -> float:
        """The mean of the old answers less the mean of the new ones."""
        return fsum(self.old) / len(self.old) - fsum(self.new) / len(self.new)


def exchange_value(anchors: Sequence[Anchor]) -> float:
    """Return the e-value against an unchanged judge: its expectation is 1, whatever the noise of the answers is.

    For each anchor f(|fall|) is divided by its mean over all ways to divide the same answers into old and new, with
    f(x) = exp(slope · x). The product over anchors is averaged over three slopes. An anchor with equal answers
    contributes exactly 1. The answers must not be those by which the anchors were chosen. Sum the values of several
    passes with weights, fixed before each pass, that sum to 1 a year: the sum reaches 1/α with probability α at most.
    """
    counts = Counter(anchors).items()
    logs = [fsum(count * log(_ratio(each, slope)) for each, count in counts) for slope in _SLOPES]
    return fsum(exp(min(each, _MAX_LOG)) for each in logs) / len(logs)


def fall_limits(anchors: Sequence[Anchor], *, level: float = LEVEL) -> Interval:
    """Return the interval of the mean fall over all questions like the anchors; each end as in `mean_interval`."""
    return mean_interval([each.fall for each in anchors], (-1.0, 1.0), level=level).interval


def _ratio(anchor: Anchor, slope: float) -> float:
    old, new = (tuple(round(answer * _STEPS) for answer in answers) for answers in anchor)
    return exp(slope * _apart(sum(old), len(old), sum(new), len(new))) / _mean(
        tuple(sorted(old + new)), len(new), slope
    )


def _apart(old: int, olds: int, new: int, news: int) -> float:
    return abs(old / olds - new / news) / _STEPS


@lru_cache(maxsize=10_000)
def _mean(answers: tuple[int, ...], new: int, slope: float) -> float:
    """Return the mean of f over all ways to take `new` of the answers as the new ones."""
    whole, old = sum(answers), len(answers) - new
    return fmean(exp(slope * _apart(whole - total, old, total, new)) for total in map(sum, combinations(answers, new)))
