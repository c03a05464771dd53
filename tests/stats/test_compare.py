"""Two runs compared, metric by metric."""

import numpy as np
import pytest

from merilo.stats.column import Bounds, Column, Missing, bounds
from merilo.stats.compare import Conclusion, Policy, compare, holm, moved
from merilo.stats.means import own_ends, paired_of

UNIT = (0.0, 1.0)
SOURCE = np.random.default_rng(8)
GOOD = SOURCE.uniform(0.4, 1, 60).tolist()
BAD = [max(0.0, value - step) for value, step in zip(GOOD, SOURCE.normal(0.1, 0.1, 60), strict=True)]


def column(outcomes: list[float | Missing] | list[float], span: tuple[float, float] = UNIT) -> Column:
    """A metric's outcomes."""
    return Column.of(outcomes, span)


def test_holm_is_statsmodels_holm() -> None:
    """Adjusted p-values equal those of statsmodels, in the order given."""
    known = pytest.importorskip("statsmodels.stats.multitest").multipletests
    for p_values in ([0.01, 0.04, 0.03, 0.005], [0.5], [0.9, 0.9, 0.001], [0.02, 0.02, 0.02]):
        assert holm(p_values) == pytest.approx(known(p_values, method="holm")[1].tolist(), abs=1e-9)
    assert holm([]) == []


def test_a_comparison_says_all_of_it() -> None:
    """Difference with interval and p-value, wins, effect sizes, and what could have been found."""
    from scipy import stats

    found = compare({"m": (column(GOOD), column(BAD))})["m"]
    differences = np.array(GOOD) - np.array(BAD)
    error = stats.sem(differences)
    assert found.difference == pytest.approx(differences.mean())
    known = paired_of(differences, None, (-1.0, 1.0), 0.95, own_ends(np.array(GOOD), np.array(BAD), (0.0, 1.0)))
    assert found.interval == known.interval
    assert found.p == known.p
    assert found.first == pytest.approx(np.mean(GOOD))
    assert found.second == pytest.approx(np.mean(BAD))
    counts = found.counts
    assert (counts.wins, counts.losses) == ((differences > 0).sum(), (differences < 0).sum())
    assert counts.wins + counts.ties + counts.losses == counts.pairs == 60
    assert found.standardised == pytest.approx(differences.mean() / differences.std(ddof=1))
    assert found.superiority == pytest.approx((counts.wins + counts.ties / 2) / 60)
    assert found.reading is Conclusion.FIRST_HIGHER
    assert found.detectable is not None
    wide = (found.interval.ends or (0.0, 0.0))[1] - (found.interval.ends or (0.0, 0.0))[0]
    assert found.detectable == pytest.approx(wide / 2 + 0.85 * error, rel=0.01)  # 80 % power: 0.85 errors more


def test_rounding_is_no_difference() -> None:
    """0.1 + 0.2 ties with 0.3."""
    found = compare({"m": (column([0.1 + 0.2] * 30), column([0.3] * 30))})["m"]
    assert found.counts.ties == 30
    assert found.reading is Conclusion.CANNOT_TELL


def test_only_primary_metrics_are_read() -> None:
    """Holm counts the primary metrics alone; the others have no adjusted p-value and no verdict."""
    pairs = {name: (column(GOOD), column(BAD)) for name in "abcd"}
    found = compare(pairs, primary=["b", "c"])
    assert found["a"].reading is None
    assert found["a"].adjusted is None
    assert found["b"].adjusted == pytest.approx(2 * (found["b"].p or 0))
    with pytest.raises(ValueError, match="among those compared"):
        compare(pairs, primary=["x"])


def test_a_metric_that_cannot_tell_is_not_in_the_family() -> None:
    """Holm does not count a metric without a p-value, nor one that the caller leaves out."""
    pairs = {"a": (column(GOOD), column(BAD)), "b": (column([0.5] * 60), column([0.5] * 60))}
    found = compare(pairs)
    assert found["a"].adjusted == found["a"].p
    left = compare({**pairs, "c": pairs["a"]}, member=lambda key, _: None if key == "c" else key)
    assert (left["a"].adjusted, left["c"].adjusted) == (found["a"].p, None)
    assert found["b"].reading is Conclusion.CANNOT_TELL
    assert "0 of 60 differences are not 0" in found["b"].reason


def test_members_share_a_rank_in_the_family() -> None:
    """Of three metrics two are one member: Holm counts two, and both have the level of the smaller p-value."""
    pairs = {name: (column(GOOD), column(BAD)) for name in "abc"}
    found = compare(pairs, member=lambda key, _: key == "c")
    assert [each.adjusted for each in found.values()] == pytest.approx([2 * (found["a"].p or 0)] * 3)
    assert [each.interval.level for each in found.values()] == pytest.approx([0.975, 0.975, 0.95])


def test_the_interval_excludes_0_exactly_if_a_difference_is_shown() -> None:
    """In families of 1 to 5 metrics, whatever their sizes: no interval contradicts its conclusion."""
    source = np.random.default_rng(3)
    shown = widened = 0
    for _ in range(60):
        sides = {}
        for name in range(int(source.integers(1, 6))):
            size, step = int(source.integers(8, 60)), source.choice([0.0, 0.08, 0.16])
            base = source.choice([0.0, 0.5, 1.0], size) if name % 2 else source.uniform(0, 1, size)
            run = np.clip(base + source.normal(step, 0.2, size).round(1), 0, 1)
            sides[name] = (column(run.tolist()), column(base.tolist()))
        for each in compare(sides).values():
            low, high = each.interval.ends or (-1.0, 1.0)
            if each.p is not None:
                assert (low > 0 or high < 0) == (each.reading is not Conclusion.NOT_SHOWN)
                shown += each.reading is not Conclusion.NOT_SHOWN
                widened += each.interval.level > 0.95
    assert (shown > 24, widened > 40) == (True, True)


def test_silence_does_not_win() -> None:
    """A run that is Undefined where it would have been bad leads over the pairs, and yet cannot be told to lead."""
    hard = [0.0] * 15
    loud, silent = column([*BAD, *hard]), column([*GOOD, *[Missing.UNDEFINED] * 15])
    found = compare({"m": (silent, loud)})["m"]
    assert found.p is not None
    assert found.p < 0.005
    assert found.reading is Conclusion.FIRST_HIGHER  # at worst they tie: 0 against 0
    spoken = column([*BAD, *[0.6] * 15])
    found = compare({"m": (silent, spoken)})["m"]
    assert found.reading is Conclusion.CANNOT_TELL
    assert "15 samples have a score in one run only" in found.reason
    assert (found.counts.first_undefined, found.counts.second_undefined) == (15, 0)
    assert found.least is not None
    assert found.most is not None
    assert found.least.difference < (found.difference or 0) < found.most.difference
    assert found.least.difference == pytest.approx((sum(GOOD) - sum(BAD) - 9) / 75)


def test_undefined_as_worst() -> None:
    """Under the policy `worst` an Undefined outcome is a score of the worse end, and nothing is left out."""
    silent, spoken = column([*GOOD, *[Missing.UNDEFINED] * 15]), column([*BAD, *[0.6] * 15])
    found = compare({"m": (silent, spoken)}, undefined=Policy.WORST)["m"]
    assert found.counts.pairs == 75
    assert found.counts.left_out == 0
    assert found.least is None
    assert found.difference == pytest.approx((sum(GOOD) - sum(BAD) - 9) / 75)
    lower = Column.of([Missing.UNDEFINED, 0.3], UNIT, higher_is_better=False)
    found = compare({"m": (lower, Column.of([0.2, 0.3], UNIT, higher_is_better=False))}, undefined=Policy.WORST)["m"]
    assert found.difference == pytest.approx(0.4)


def test_a_range_without_ends_cannot_bound_silence() -> None:
    """With one-sided missing outcomes in an infinite range nothing is told."""
    span = (0.0, float("inf"))
    found = compare({"m": (column([*GOOD, 1.0], span), column([*BAD, Missing.UNDEFINED], span))})["m"]
    assert found.reading is Conclusion.CANNOT_TELL
    assert "range is infinite" in found.reason
    lower = Column.of([Missing.UNDEFINED], span, higher_is_better=False)
    with pytest.raises(ValueError, match="worst"):
        compare({"m": (lower, lower)}, undefined=Policy.WORST)


def test_clusters_reach_the_test() -> None:
    """Pairs of one document count once: a difference that pairs show, five clusters do not."""
    found = compare({"m": (column(GOOD), column(BAD))}, clusters=[place // 12 for place in range(60)])["m"]
    assert found.clusters == 5
    assert found.reading is Conclusion.CANNOT_TELL
    assert "of 5 clusters" in found.reason


def test_what_moved_most() -> None:
    """The samples scored in both that differ most, the largest first; those that do not differ are left out."""
    first = column([0.1, 0.9, 0.5, Missing.FAILED, 0.4])
    second = column([0.3, 0.2, 0.5, 1.0, 0.6])
    assert moved(first, second, 10) == (1, 0, 4)
    assert moved(first, second, 1) == (1,)


def test_two_kinds_of_bounds() -> None:
    """Failed outcomes at the ends of the range; the Undefined too; None where an end is infinite."""
    found = bounds(0.5, UNIT, scored=8, failed=2, undefined=6)
    assert found.failed == pytest.approx((0.4, 0.6))
    assert found.undefined == pytest.approx((0.25, 0.75))
    assert bounds(0.5, UNIT, scored=8, failed=0, undefined=0) == Bounds((0.5, 0.5), (0.5, 0.5))
    assert bounds(None, UNIT, scored=0, failed=0, undefined=3) == Bounds(None, (0.0, 1.0))
    assert bounds(2.0, (0.0, float("inf")), scored=1, failed=1, undefined=0).failed == (1.0, None)
    assert bounds(None, UNIT, scored=0, failed=0, undefined=0) == Bounds(None, None)
