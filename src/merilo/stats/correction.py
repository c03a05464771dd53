"""Estimates from many labels of a judge, corrected by a few labels of people."""

from __future__ import annotations

from math import fsum, isfinite, sqrt
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Corrected(NamedTuple):
    """An estimate with its confidence interval."""

    estimate: float
    interval: tuple[float, float]


def ppi_mean(
    gold_labels: Sequence[float],
    judge_on_gold: Sequence[float],
    judge_on_unlabeled: Sequence[float],
    alpha: float = 0.05,
) -> Corrected:
    """The mean label that people would give, from a judge's labels and its errors, and a 1 − alpha interval.

    `gold_labels` and `judge_on_gold`: one each for the n items that people labelled too, in the same order.
    `judge_on_unlabeled`: one for each of N other items. Estimate: mean(judge on unlabelled) − mean(judge − gold);
    half width: z · sqrt(var(judge on unlabelled)/N + var(judge − gold)/n), z the normal quantile of 1 − alpha/2.

    Assumes that both sets of items were drawn alike and that both means are near normal: with few labelled items
    the interval is too narrow, and it has no width where neither series varies. It is not clipped to the range
    of the labels. Variances have the divisors N and n, as ARES computes them. Source: Angelopoulos et al.,
    "Prediction-powered inference", Science 382 (2023), algorithm 1; ARES, git c7c9018.

    Raises ValueError for fewer than two items in either set, lengths that differ, numbers that are not finite,
    and an alpha outside (0, 1).
    """
    if len(gold_labels) != len(judge_on_gold):
        raise ValueError(
            f"Each labelled item needs a label of people and one of the judge, got {len(gold_labels)} and "
            f"{len(judge_on_gold)}."
        )
    if min(len(gold_labels), len(judge_on_unlabeled)) < 2:
        raise ValueError(
            "A corrected mean needs at least 2 labelled and 2 unlabelled items, got "
            f"{len(gold_labels)} and {len(judge_on_unlabeled)}."
        )
    if not 0 < alpha < 1:
        raise ValueError(f"An interval needs an alpha between 0 and 1, got {alpha}.")
    errors = [judged - gold for judged, gold in zip(judge_on_gold, gold_labels, strict=True)]
    if not all(map(isfinite, (*errors, *judge_on_unlabeled))):
        raise ValueError("A corrected mean needs finite labels; leave out items without one.")
    from scipy.special import ndtri

    mean, variance = _moments(judge_on_unlabeled)
    bias, variance_of_errors = _moments(errors)
    estimate = mean - bias
    half = float(ndtri(1 - alpha / 2)) * sqrt(variance / len(judge_on_unlabeled) + variance_of_errors / len(errors))
    return Corrected(estimate, (estimate - half, estimate + half))


def _moments(numbers: Sequence[float]) -> tuple[float, float]:
    """Mean and population variance."""
    mean = fsum(numbers) / len(numbers)
    return mean, fsum((number - mean) ** 2 for number in numbers) / len(numbers)
