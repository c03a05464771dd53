"""Intervals by resampling samples."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from each_case import each_case
from scipy import stats

from merilo.stats.resampling import percentile_interval


def first(means: Sequence[float]) -> float:
    """The mean of the only column."""
    return means[0]


def harmonic(means: Sequence[float]) -> float | None:
    """The harmonic mean; None where a mean is 0."""
    return len(means) / sum(1 / mean for mean in means) if all(means) else None


def normal(size: int, seed: int) -> list[float]:
    """Numbers around 0.5."""
    source = random.Random(seed)
    return [source.gauss(0.5, 0.1) for _ in range(size)]


def test_of_one_mean_it_is_near_students() -> None:
    """For a mean of many near-normal numbers it agrees with Student's t to a twentieth of its width."""
    numbers = normal(400, seed=1)
    student = stats.t.interval(0.95, 399, np.mean(numbers), stats.sem(numbers))
    found = percentile_interval([numbers], first, seed=7).ends
    assert found is not None
    width = student[1] - student[0]
    assert found == pytest.approx(student, abs=width / 20)


def test_it_covers() -> None:
    """The 95 % interval of a mean of 60 numbers covers the true mean about 95 times of 100."""
    hits = 0
    for seed in range(200):
        ends = percentile_interval([normal(60, seed)], first, seed=seed, resamples=400).ends
        assert ends is not None
        hits += ends[0] <= 0.5 <= ends[1]
    assert 0.90 <= hits / 200 <= 0.985


def test_equal_input_gives_equal_ends() -> None:
    """The seed decides; these ends are those of every numpy, on every machine."""
    columns = [normal(40, seed=4), normal(40, seed=5)]
    found = percentile_interval(columns, harmonic, seed=11)
    assert found == percentile_interval(columns, harmonic, seed=11)
    assert found != percentile_interval(columns, harmonic, seed=12)
    assert found.ends == pytest.approx(ENDS)


@each_case(
    ("columns", "note"),
    [
        ([], "cannot tell from 0 scored samples"),
        ([[]], "cannot tell from 0 scored samples"),
        ([[0.5], [0.5]], "cannot tell from 1 scored sample"),
        ([[0.5] * 9, [0.2] * 9], "cannot tell: all 9 samples have equal scores"),
        ([[0.0, 1.0, 0.0], [0.5, 0.5, 0.5]], "cannot tell: some resamples of the data give no value"),
    ],
)
def test_what_cannot_be_told_is_not_told(columns: list[list[float]], note: str) -> None:
    """Too little data, equal data, or a combination that does not always exist: no interval, and why."""
    found = percentile_interval(columns, harmonic, seed=1)
    assert found.ends is None
    assert found.note == note


ENDS = (0.47659009319914825, 0.5178779434107992)
