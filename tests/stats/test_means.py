"""Intervals of means and of ratios of sums."""

import numpy as np
import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st
from robust import bell_mccaffrey

from merilo.stats.intervals import wilson_ends
from merilo.stats.means import RunningMean, RunningRatio, exact_limits, mean_interval, ratio_interval
from merilo.stats.sums import Histogram

UNIT = (0.0, 1.0)
SOURCE = np.random.default_rng(1)
SKEWED = SOURCE.beta(0.5, 4.5, 60)
MANY = SOURCE.beta(2, 5, 300)
CLUSTERS = SOURCE.integers(0, 25, 300).tolist()


def test_wilson_is_statsmodels_wilson() -> None:
    """Wilson's interval of a share equals that of statsmodels."""
    known = pytest.importorskip("statsmodels.stats.proportion").proportion_confint
    for hits, count in ((0, 12), (3, 30), (29, 30), (30, 30)):
        found = wilson_ends(hits / count, count, UNIT)
        assert found == pytest.approx(known(hits, count, method="wilson"), abs=1e-9)


def test_many_samples_get_students() -> None:
    """The interval of many scores without a long tail is scipy's t interval, and nothing is drawn at random."""
    from scipy import stats

    many = np.concatenate((MANY, 1 - MANY))
    found = mean_interval(many, UNIT)
    known = stats.t.interval(0.95, 599, 0.5, stats.sem(many))
    assert found.interval.ends == pytest.approx(known, abs=1e-9)
    assert found.interval.seed is None


def test_each_end_is_the_farther_one_of_t_and_the_exact_limit() -> None:
    """For 60 skewed scores the upper end is the exact limit; at a level of 95 % each may be wrong in 5 % of studies."""
    from scipy import stats

    points = Histogram.of(SKEWED, UNIT).points()
    exact = exact_limits(points, UNIT, 60, 0.95)
    student = stats.t.interval(0.95, 59, SKEWED.mean(), stats.sem(SKEWED))
    assert exact[1] > student[1]
    expected = (max(0.0, min(exact[0], student[0])), max(exact[1], student[1]))
    assert mean_interval(SKEWED, UNIT).interval.ends == pytest.approx(expected, abs=1e-9)


def test_the_order_of_samples_does_not_matter() -> None:
    """An interval depends on the numbers alone."""
    known, found = (mean_interval(each, UNIT).interval.ends for each in (SKEWED, SKEWED[::-1]))
    assert found == pytest.approx(known, abs=1e-12)


def test_clusters_have_the_error_of_bell_and_mccaffrey() -> None:
    """The error between unequal clusters is CR2, t has Satterthwaite's degrees of freedom: both as by the matrices."""
    from scipy import stats

    names = np.repeat(np.arange(25), [60, 40, 30, 20, *[10] * 9, *[5] * 12]).tolist()
    found = mean_interval(MANY, UNIT, clusters=names)
    error, freedom = bell_mccaffrey(MANY, names, np.ones(300))
    assert found.error == pytest.approx(error, abs=1e-12)
    assert found.freedom == pytest.approx(freedom, rel=1e-9)
    assert freedom < 12
    assert found.clusters == 25
    assert found.value is not None
    known = stats.t.interval(0.95, freedom, found.value, error)
    assert found.interval.ends is not None
    assert found.interval.ends[0] <= known[0] + 1e-9
    assert found.interval.ends[1] >= known[1] - 1e-9


@each_case(("clusters", "told", "remark"), [(5, False, ""), (6, True, "only 6"), (19, True, "only 19"), (20, True, "")])
def test_few_clusters(clusters: int, told: bool, remark: str) -> None:
    """Fewer than 6 clusters: cannot tell; up to 19 it is said beside the interval."""
    names = [place % clusters for place in range(300)]
    found = mean_interval(MANY, UNIT, clusters=names).interval
    assert (found.ends is not None) is told
    assert found.remark.startswith(remark)
    assert bool(found.remark) is bool(remark)
    assert (f"{clusters} clusters, at least 6" in found.note) is not told


def test_unequal_clusters_are_reported_by_their_effective_number() -> None:
    """Twenty-five clusters of which one has half of the samples are worth fewer than 5 equal ones."""
    names = [0] * 150 + [1 + place % 24 for place in range(150)]
    found = mean_interval(MANY, UNIT, clusters=names)
    assert found.freedom is not None
    assert found.freedom < 4
    expected = f"the effective number of clusters is {found.freedom + 1:.1f} of 25: the interval is less reliable"
    assert found.interval.remark.startswith(expected)


def test_one_cluster_with_nearly_all_samples_is_not_enough() -> None:
    """A cluster with 19 of 20 samples decides the mean alone, however many others there are."""
    names = [0] * 285 + [1 + place for place in range(15)]
    found = mean_interval(MANY, UNIT, clusters=names).interval
    assert found.ends is None
    assert found.note == "cannot tell: one cluster has 95% of the samples, more than 90%"


def test_a_ratio_of_sums_is_the_usual_linearisation() -> None:
    """A context-level share: ratio of sums over samples, its error by Cochran's formula for ratios."""
    from scipy import stats

    bottoms = np.random.default_rng(2).integers(1, 9, 400)
    tops = np.random.default_rng(3).binomial(bottoms, 0.4)
    found = ratio_interval(tops, bottoms, UNIT)
    ratio = tops.sum() / bottoms.sum()
    error = np.sqrt(np.var(tops - ratio * bottoms, ddof=1) / 400) / bottoms.mean()
    assert found.value == pytest.approx(ratio)
    assert found.error == pytest.approx(error, abs=1e-12)
    assert found.interval.ends == pytest.approx(stats.t.interval(0.95, 399, ratio, error), rel=4e-3)


@each_case(
    ("values", "span", "note"),
    [
        ([], UNIT, "cannot tell from 0 scored samples"),
        ([0.4], UNIT, "cannot tell from 1 scored sample"),
        ([0.4] * 30, (0.0, float("inf")), "cannot tell: all 30 scores are equal"),
        ([0.0] * 30 + [2.0] * 4, (0.0, float("inf")), "cannot tell: only 4 of 34 scores differ from the end"),
    ],
)
def test_what_cannot_be_told(values: list[float], span: tuple[float, float], note: str) -> None:
    """Too little data gives no interval, and says why."""
    found = mean_interval(values, span)
    assert found.interval.ends is None
    assert found.interval.note.startswith(note)
    assert found.error is None or found.error > 0


def test_equal_scores_have_a_width() -> None:
    """All equal: exact limits, never an interval of no width, and it is said."""
    for value in (0.0, 0.4, 1.0):
        found = mean_interval([value] * 30, UNIT)
        assert found.interval.ends is not None
        assert found.interval.ends[1] - found.interval.ends[0] > 0.09
        assert found.interval.remark == "all 30 scores are equal"
        assert found.error is None


@each_case(
    ("arguments", "says"),
    [
        ({"values": [0.5, float("nan")]}, "finite"),
        ({"values": [0.5, 1.5]}, "range"),
        ({"values": [0.5, 0.4], "clusters": ["a"]}, "2 units and 1 clusters"),
        ({"values": [0.5, 0.4], "level": 95}, "between 0 and 1"),
    ],
)
def test_bad_input_is_refused(arguments: dict[str, list[float]], says: str) -> None:
    """Numbers that are none or out of range, and lengths that differ, raise ValueError."""
    with pytest.raises(ValueError, match=says):
        mean_interval(span=UNIT, **arguments)


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]), min_size=2, max_size=260))
def test_an_interval_holds_its_mean_and_keeps_the_range(values: list[float]) -> None:
    """Whatever the scores: low ≤ mean ≤ high, within the range, of some width; streaming gives the same."""
    found = mean_interval(values, UNIT)
    assert found.interval.ends is not None
    low, high = found.interval.ends
    assert found.value is not None
    assert 0 <= low <= found.value + 1e-12
    assert found.value - 1e-12 <= high <= 1
    assert high - low > 1e-3
    running = RunningMean(UNIT)
    for value in values:
        running.add(value)
    streamed = running.interval()
    assert streamed.ends == pytest.approx((low, high), abs=1e-9)
    assert streamed.remark == found.interval.remark


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 30)), min_size=1, max_size=300),
    st.booleans(),
)
def test_a_ratio_streams_to_the_interval_that_it_has(rows: list[tuple[int, int, int]], clustered: bool) -> None:
    """Sample by sample the same interval comes out, also over clusters, of which no more than their sums are kept."""
    tops = [min(top, bottom) for top, bottom, _ in rows]
    bottoms = [bottom for _, bottom, _ in rows]
    numbered: dict[int, int] = {}
    codes = [numbered.setdefault(name, len(numbered)) for _, _, name in rows]
    running = RunningRatio(UNIT)
    for top, bottom, code in zip(tops, bottoms, codes, strict=True):
        running.add(top, bottom, code if clustered else None)
    known = ratio_interval(tops, bottoms, UNIT, clusters=codes if clustered else None)
    found = running.estimate()
    assert found.value == pytest.approx(known.value, abs=1e-12)
    assert found.interval.ends == pytest.approx(known.interval.ends, abs=1e-9)
    assert (found.interval.note, found.interval.remark) == (known.interval.note, known.interval.remark)
    assert (found.interval.method, found.units) == (known.interval.method, known.units)
    assert len(running.clusters[0]) <= (31 if clustered else 0)


@each_case("size", [201, 1_000])
@each_case("top", [0, 1, 2])
def test_many_equal_ratios_have_a_width_too(size: int, top: int) -> None:
    """Where every sample has the same ratio the interval still has a width."""
    running = RunningRatio(UNIT)
    for _ in range(size):
        running.add(top, 2)
    known = ratio_interval([top] * size, [2] * size, UNIT)
    found = running.estimate().interval
    assert found.ends == pytest.approx(known.interval.ends, abs=1e-9)
    assert found.remark == known.interval.remark
