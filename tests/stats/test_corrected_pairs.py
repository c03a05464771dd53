"""Paired differences that human labels correct: known values, laws, and simulated coverage, errors and power."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from drop_gates import drop_decisions
from hypothesis import given
from hypothesis import strategies as st
from simulated_decisions import PAIR, Cell, column, drawn, mean_tally, pair_tally, systems

from merilo.stats.column import Column
from merilo.stats.compare import Conclusion, compare
from merilo.stats.corrected_pairs import PairLabels, correct_pairs
from merilo.stats.correction import Labels, correct
from merilo.stats.gate import GateVerdict, gate_minimum
from merilo.stats.intervals import t_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


def study(labelled: int = 60, seed: int = 1, **cell: object) -> tuple[Column, Column, PairLabels]:
    """The two columns of one synthetic study and its labels."""
    source = np.random.default_rng(seed)
    chosen = replace(Cell("graded", "kinder", labelled, samples=300), **cell)  # type: ignore[arg-type]  # fields of Cell
    found = systems(chosen, source)
    one, two = (column(each.mean(axis=1)) for each in found.judge)
    return one, two, drawn(chosen, found, source).pairs


# -- the estimate --------------------------------------------------------------------------------------


def test_the_estimate_by_hand() -> None:
    """λ = cov/var = 0.5; estimate 0.5 · mean(judge) + mean(human - 0.5 · judge); error from the influences."""
    judged = np.array([1.0, -1.0] * 10 + [1.0] * 20)
    human = np.array([1.0, 0.0, 0.0, -1.0] * 5)
    labels = Labels.of(list(range(20)), human.tolist(), judged[:20].tolist())
    found = correct_pairs(judged, labels, PAIR)
    assert found.tuning == pytest.approx(0.5)
    assert found.corrected.difference == pytest.approx(0.5 * 0.5 + 0.0)
    assert found.human == pytest.approx(0.0)
    influence = 0.5 * (judged - 0.5) / 40
    influence[:20] += (human - 0.5 * judged[:20]) / 20
    variance = (influence**2).sum() * 20 / 18 + 2 * 0.5 * 1.0 / 20**2
    assert found.corrected.error == pytest.approx(variance**0.5)
    half = t_quantile(18, 0.95) * variance**0.5
    assert found.corrected.interval.ends == pytest.approx((0.25 - half, 0.25 + half))


def test_with_every_pair_labelled_the_estimate_is_the_labels_mean() -> None:
    """Whatever the judge says, the difference is that of the annotators."""
    source = np.random.default_rng(2)
    judged, human = source.choice([-1.0, 0.0, 1.0], (2, 50))
    found = correct_pairs(judged, Labels.of(list(range(50)), human.tolist(), judged.tolist()), PAIR)
    assert found.corrected.difference == pytest.approx(human.mean(), abs=1e-12)


def test_a_judge_without_information_leaves_the_labels_alone() -> None:
    """All its differences are equal: λ is 0."""
    human = [0.0, 1.0, 0.0, -1.0, 1.0] * 6
    found = correct_pairs([0.5] * 200, Labels.of(list(range(30)), human, [0.5] * 30), PAIR)
    assert (found.tuning, found.corrected.difference) == (0.0, pytest.approx(0.2))


def test_labels_that_all_agree_with_the_judge_still_have_an_error() -> None:
    """Thirty agreements do not prove that the judge never errs."""
    source = np.random.default_rng(3)
    judged = source.choice([-1.0, 0.0, 1.0], 400)
    found = correct_pairs(judged, Labels.of(list(range(30)), judged[:30].tolist(), judged[:30].tolist()), PAIR)
    alone = found.judged.interval.ends
    ends = found.corrected.interval.ends
    assert alone is not None
    assert ends is not None
    assert ends[1] - ends[0] > 1.3 * (alone[1] - alone[0])


@pytest.mark.parametrize(("labelled", "shown", "decides"), [(9, False, False), (12, True, False), (20, True, True)])
def test_few_labels_are_shown_and_fewer_give_nothing(labelled: int, *, shown: bool, decides: bool) -> None:
    """From 10 labelled pairs there is a difference, from 20 it decides."""
    one, two, labels = study(labelled)
    found = correct_pairs(one.values - two.values, labels.differences(), PAIR)
    assert (found.corrected.interval.ends is not None, found.decides) == (shown, decides)
    assert found.labelled == labelled


def test_few_labelled_clusters_give_no_interval() -> None:
    """The labels of five documents cannot tell, however many there are."""
    one, two, labels = study(40, samples=200)
    clusters = [place % 5 for place in range(200)]
    found = correct_pairs(one.values - two.values, labels.differences(), PAIR, clusters=clusters)
    assert found.corrected.interval.ends is None
    assert "5 labelled clusters" in found.corrected.interval.note


@given(st.integers(0, 2**32 - 1))
def test_exchanging_the_runs_changes_the_sign(seed: int) -> None:
    """The difference, its interval and its p-value are those of the exchanged pair, mirrored."""
    one, two, labels = study(30, seed=seed, samples=80)
    judged = one.values - two.values
    turned = labels.exchanged()
    first, second = (
        correct_pairs(values, each.differences(), PAIR).corrected
        for values, each in ((judged, labels), (-judged, turned))
    )
    assert second.difference == pytest.approx(-(first.difference or 0.0), abs=1e-9)
    assert second.p == pytest.approx(first.p, abs=1e-9)


def test_labels_of_samples_beyond_the_columns_are_refused() -> None:
    """A position must be that of a pair."""
    with pytest.raises(ValueError, match="outside the 3 pairs"):
        correct_pairs([0.0, 1.0, 0.0], Labels.of([3], [1.0], [1.0]), PAIR)


# -- comparisons and gates -----------------------------------------------------------------------------


def test_missing_scores_widen_a_corrected_comparison_to_the_ends_of_the_range() -> None:
    """Labels say nothing about samples scored in one run only, so these may still undo a conclusion."""
    one, two, labels = study(60, effect=2.0)
    clear = compare({"m": (one, two)}, labels={"m": labels})["m"]
    assert clear.reading is Conclusion.FIRST_HIGHER
    unlabelled = np.setdiff1d(np.arange(300), labels.places)
    scored = two.scored.copy()
    scored[unlabelled[:120]] = False
    gone = Column(two.values, scored, np.zeros(300, np.bool_), two.span, True)
    found = compare({"m": (one, gone)}, labels={"m": labels})["m"]
    assert found.reading is Conclusion.CANNOT_TELL
    assert found.least is not None
    assert found.most is not None
    assert found.least.difference < (found.difference or 0.0) < found.most.difference


def test_a_corrected_drop_is_the_corrected_comparison() -> None:
    """Value and limits of the gate are those of the comparison, mirrored if lower is better."""
    one, two, labels = study(60)
    known = compare({"m": (one, two)}, labels={"m": labels})["m"]
    found = drop_decisions({"m": (one, two)}, {"m": 0.5}, labels={"m": labels})["m"]
    assert found.corrected
    assert found.value == known.difference
    assert (found.lower, found.upper) == known.interval.ends
    lower = {"m": (replace(one, higher_is_better=False), replace(two, higher_is_better=False))}
    turned = drop_decisions(lower, {"m": 0.5}, labels={"m": labels})["m"]
    assert turned.value == -(known.difference or 0)
    assert (turned.upper, turned.lower) == (-(found.lower or 0), -(found.upper or 0))


def test_failed_samples_may_not_change_a_corrected_minimum() -> None:
    """A tenth of failed samples moves the limits by up to a tenth of the range; the interval is that of `correct`."""
    one, _, labels = study(60)
    own = Labels.of(labels.places.tolist(), labels.first[0].tolist(), labels.first[1].tolist())
    low, high = correct(one.values, own, one.span).corrected.interval.ends or one.span
    extra = 30
    values = np.concatenate((one.values, np.zeros(extra)))
    scored = np.concatenate((one.scored, np.zeros(extra, np.bool_)))
    part = Column(values, scored, ~scored, one.span, True)
    at_worst = low * 300 / 330
    for asked, verdict, is_open in (
        (at_worst - 1e-6, GateVerdict.PASS, False),
        (at_worst + 1e-6, GateVerdict.CANNOT_TELL, True),
        (low + 1e-6, GateVerdict.CANNOT_TELL, False),
    ):
        found = gate_minimum(part, asked, labels=own)
        assert (found.verdict, found.open, found.corrected) == (verdict, is_open, True)
        assert (found.lower, found.upper) == (low, high)


def test_nineteen_labels_decide_no_gate() -> None:
    """Below 20 the gate is the judge's."""
    one, two, labels = study(19)
    own = Labels.of(labels.places.tolist(), labels.first[0].tolist(), labels.first[1].tolist())
    assert gate_minimum(one, 0.5, labels=own) == gate_minimum(one, 0.5)
    pair, allowed = {"m": (one, two)}, {"m": 0.1}
    assert drop_decisions(pair, allowed, labels={"m": labels}) == drop_decisions(pair, allowed)


# -- simulation: large versions are in benchmarks/coverage.py decisions -----------------------------------


@pytest.mark.parametrize(
    "cell",
    [Cell("0/1", "kinder", 40), Cell("graded", "lenient", 40, level=2.5)],
    ids=str,
)
def test_corrected_differences_cover_and_seldom_err(cell: Cell) -> None:
    """In 80 studies the 95 % interval covers at least 70 times, and wrong decisions are rare."""
    found = pair_tally(cell, 80, 21)
    assert found.coverage >= 0.875
    assert max(found.wrong_pass, found.wrong_fail) <= 10
    assert found.decided <= 10
    assert found.right >= found.right_alone - 8


@pytest.mark.parametrize(
    "cell", [Cell("0/1", "lenient", 40, level=2.5), Cell("graded", "fair", 100, clusters=60)], ids=str
)
def test_corrected_minimums_seldom_err(cell: Cell) -> None:
    """A target equal to the true mean is neither passed nor failed in more than about 5 % of 80 studies."""
    found = mean_tally(cell, 80, 22)
    assert found.coverage >= 0.875
    assert max(found.wrong_pass, found.wrong_fail) <= 10


def test_a_kinder_judge_decides_half_of_the_studies_alone_and_few_with_labels() -> None:
    """Two equal systems, 300 samples, 100 labelled: the judge alone names one in most studies."""
    source = np.random.default_rng(6)
    cell = Cell("0/1", "kinder", 100, samples=300)
    alone = corrected = 0
    for _ in range(100):
        found = systems(cell, source)
        one, two = (column(each.mean(axis=1)) for each in found.judge)
        labels = drawn(cell, found, source).pairs
        for own in (None, {"m": labels}):
            reading = compare({"m": (one, two)}, labels=own)["m"].reading
            named = reading in {Conclusion.FIRST_HIGHER, Conclusion.SECOND_HIGHER}
            alone, corrected = alone + (named and own is None), corrected + (named and own is not None)
    assert alone >= 50
    assert corrected <= 12


def test_verdicts_are_those_of_gates() -> None:
    """A drop far beyond the allowed one fails, one far below passes."""
    one, two, labels = study(100, effect=3.0)
    turned = {"m": labels.exchanged()}
    for allowed, verdict in ((0.01, GateVerdict.FAIL), (0.9, GateVerdict.PASS)):
        assert drop_decisions({"m": (two, one)}, {"m": allowed}, labels=turned)["m"].verdict is verdict
