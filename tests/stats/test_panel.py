"""How many independent votes judges are worth, combinations of judges, and rankings of systems."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import kendalltau, spearmanr

from merilo.stats.panel import Stacking, effective_votes, rank_agreement, stacking
from merilo.stats.platt import fit_logistic, logistic
from merilo.stats.resampling import Resampling

Floats = NDArray[np.float64]
QUICK = Resampling(resamples=300)


def drawn(items: int, judges: int, shared: float, seed: int = 1) -> Floats:
    """Numbers of judges, each two with this correlation."""
    dice = np.random.default_rng(seed)
    own = dice.normal(size=(judges, items))
    return np.sqrt(shared) * dice.normal(size=items) + np.sqrt(1 - shared) * own


@pytest.mark.parametrize(
    ("shared", "votes"), [(0.0, 9.0), (0.25, 9 / (1 + 8 * 0.25)), (0.5, 9 / (1 + 8 * 0.5)), (1.0, 1.0)]
)
def test_votes_follow_the_design_effect(shared: float, votes: float) -> None:
    """Nine independent judges are worth nine, nine copies of one are worth one, and others k / (1 + (k - 1) r)."""
    values = drawn(4_000, 9, shared)
    found = effective_votes(values.tolist(), clusters=range(4_000), resampling=QUICK)
    assert found.value == pytest.approx(votes, rel=0.1)


def test_intervals_of_votes_cover_the_truth() -> None:
    """Of 60 samples in clusters, at most 6 of the 95 % intervals miss the number of votes."""
    missed = 0
    for seed in range(60):
        found = effective_votes(
            drawn(200, 4, 0.3, seed).tolist(), clusters=[item // 4 for item in range(200)], resampling=QUICK
        )
        assert found.interval.ends is not None
        missed += not found.interval.ends[0] <= 4 / (1 + 3 * 0.3) <= found.interval.ends[1]
    assert missed <= 6


def test_a_constant_judge_adds_no_pair() -> None:
    """A judge without an error leaves the correlation of the others; without any correlation there is no number."""
    first, second = drawn(300, 2, 0.6).tolist()
    flat = [0.0] * 300
    found = effective_votes([first, second, flat], clusters=range(300), resampling=QUICK)
    r = np.corrcoef(first, second)[0, 1]
    assert found.value == pytest.approx(3 / (1 + 2 * r))
    assert effective_votes([flat] * 3, clusters=range(300), resampling=QUICK).value is None


def judged(items: int, seed: int) -> tuple[list[bool], Floats, np.random.Generator]:
    """Human labels, one score that follows them, and the generator."""
    dice = np.random.default_rng(seed)
    y = dice.random(items) < 0.4
    return y.tolist(), 1.5 * y + dice.normal(size=items), dice


def stacked(scores: list[Floats], y: list[bool]) -> Stacking:
    found = stacking([each.tolist() for each in scores], y, clusters=range(len(y)), resampling=QUICK)
    assert isinstance(found, Stacking)
    return found


def test_judges_with_own_errors_are_combined() -> None:
    """Three judges with independent errors are better together than the best of them, by every measure."""
    y, first, dice = judged(400, 1)
    found = stacked([first, *(1.5 * np.asarray(y) + dice.normal(size=400) for _ in range(2))], y)
    assert found.better
    assert found.log_loss.combined < found.log_loss.single
    assert found.auroc.combined > found.auroc.single


@pytest.mark.parametrize("others", ["copies", "noise", "worse copies"])
def test_judges_that_add_nothing_are_not_recommended(others: str) -> None:
    """In 20 studies each, copies, noise and noisy copies of a judge are at most once recommended with it."""
    recommended = 0
    for seed in range(20):
        y, first, dice = judged(150, seed)
        noise = dice.normal(size=(2, 150))
        more = {"copies": first + 0 * noise, "noise": noise, "worse copies": first + noise}[others]
        found = stacked([first, *more], y)
        recommended += found.better
    assert recommended <= 1


def test_the_rarer_label_is_in_every_fold() -> None:
    """Labels that repeat as often as there are folds do not spoil the fit: two copies of a judge are equal to one."""
    y = [place % 10 == 0 for place in range(400)]
    first = np.asarray(y) + np.random.default_rng(1).normal(size=400)
    found = stacked([first, first], y)
    assert found.log_loss.combined == pytest.approx(found.log_loss.single, abs=0.01)
    assert found.log_loss.single < 0.3


def test_few_labels_are_not_combined() -> None:
    """With fewer than ten clusters of a label there is a reason in place of a fit."""
    y = [True] * 9 + [False] * 91
    assert stacking([[0.0] * 100] * 2, y, clusters=range(100), resampling=QUICK) == (
        "cannot tell: the rarer human label is in 9 clusters; 10 are needed"
    )


def test_the_fit_is_the_ridge_regression_of_scikit_learn() -> None:
    """Weights and probabilities are those of `LogisticRegression` with C=1 and an intercept without penalty."""
    from sklearn.linear_model import LogisticRegression  # takes a second

    y, first, dice = judged(200, 3)
    x = np.stack([first, dice.normal(size=200)], axis=1)
    weights = fit_logistic(
        np.column_stack([np.ones(200), x]), np.asarray(y, dtype=np.float64), np.asarray([0.0, 1.0, 1.0])
    )
    other = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(x, y)
    assert weights == pytest.approx([*other.intercept_, *other.coef_[0]], abs=1e-5)
    assert logistic(np.asarray([-1e4, 0.0, 1e4])).tolist() == pytest.approx([0.0, 0.5, 1.0])


def test_rankings_are_compared_by_tau_and_rho() -> None:
    """Both correlations are those of scipy over the systems' means, with ties; the interval has the value in it."""
    dice = np.random.default_rng(2)
    first = np.round(dice.random(12) + dice.normal(0, 0.3, (30, 12)), 1)
    first[:, 1] = first[:, 0]
    second = first + np.round(dice.normal(0, 0.3, (30, 12)), 1)
    found = rank_agreement(first.tolist(), second.tolist(), resampling=QUICK)
    means = first.mean(axis=0).round(9), second.mean(axis=0).round(9)
    assert found.tau.value == pytest.approx(kendalltau(*means).statistic)
    assert found.rho.value == pytest.approx(spearmanr(*means).statistic)
    for each in (found.tau, found.rho):
        assert each.interval.ends is not None
        assert each.value is not None
        assert -1 <= each.interval.ends[0] < each.value < each.interval.ends[1] <= 1
    assert found.queries == 30
    assert rank_agreement([[1.0, 1.0]] * 9, [[1.0, 2.0]] * 9, resampling=QUICK).tau.value is None


def test_intervals_of_rankings_cover_what_other_queries_give() -> None:
    """Of 50 samples of 25 queries at most 6 intervals miss the mean correlation of such samples."""
    dice = np.random.default_rng(4)
    level, bias = dice.normal(0, 0.1, 15), dice.normal(0, 0.05, 15)

    def sample() -> tuple[Floats, Floats]:
        shared = dice.normal(0, 0.25, (25, 15))
        first, second = (level + shift + shared + dice.normal(0, 0.15, (25, 15)) for shift in (0, bias))
        return first, second

    means = [[each.mean(axis=0) for each in sample()] for _ in range(300)]
    taus, rhos = (float(np.mean([of(*pair).statistic for pair in means])) for of in (kendalltau, spearmanr))
    found = [rank_agreement(*(each.tolist() for each in sample()), resampling=QUICK) for _ in range(50)]
    for truth, measured in ((taus, [each.tau for each in found]), (rhos, [each.rho for each in found])):
        ends = [each.interval.ends for each in measured if each.interval.ends is not None]
        assert sum(not low <= truth <= high for low, high in ends) <= 6
