"""Several judges: the independent votes they are worth, a combination fitted to labels, and rankings of systems."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.stats.agreement_tables import Distance, aurocs, kappas, ratio
from merilo.stats.platt import fit_logistic, logistic, losses
from merilo.stats.resampling import MIN_OFF, Clusters, Measure, Measurement, of_sums

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from merilo.stats.agreement_tables import Floats, Places
    from merilo.stats.resampling import Resampling

_FOLDS: Final = 10
_RIDGE: Final = 1.0
"""Penalty on the squared weights of standardised scores, as in scikit-learn's `LogisticRegression`."""
_TINY: Final = 1e-12
_BLOCK: Final = 4_000_000
_DIGITS: Final = 9
"""Equal means may differ after this digit."""


def effective_votes(
    columns: Sequence[Sequence[float]], *, clusters: Sequence[Hashable], resampling: Resampling
) -> Measurement:
    """Return the number of independent judges that are worth as much as these `k`, from 1 to k.

    `columns`: for each judge one number per item: 1.0 for an error, or its label. k / (1 + (k - 1) r) with r the mean
    correlation of two judges, at least 0: the effective sample size of k equally correlated votes. Source: Kish,
    "Survey Sampling" (1965), chapter 5 (design effect); for judges: Kohli, arXiv 2605.29800 (2026). A judge with
    equal numbers for all items has no correlation and adds no pair.
    """
    import numpy as np

    values = np.asarray(columns, dtype=np.float64)
    judges, (one, other) = len(values), np.triu_indices(len(values), 1)
    own = values - values.mean(axis=1, keepdims=True)  # small numbers lose no digits in the differences below
    group = Clusters.of(clusters, resampling)
    parts = group.sums(np.vstack([np.ones(own.shape[1]), own, own**2, own[one] * own[other]]).T)

    def votes(sums: Floats) -> Floats:
        means = sums[:, 1:] / sums[:, :1]
        first, square, shared = np.split(means, [judges, 2 * judges], axis=1)
        spread = square - first**2
        below = spread[:, one] * spread[:, other]
        r = ratio(shared - first[:, one] * first[:, other], np.sqrt(np.where(below > _TINY, below, 0)))
        mean = ratio(np.nansum(r, axis=1), (~np.isnan(r)).sum(axis=1).astype(np.float64))
        return judges / (1 + (judges - 1) * np.clip(mean, 0, 1))

    return group.measured(of_sums(parts, votes), "", span=(1.0, float(judges)))


@dataclass(frozen=True, slots=True)
class Compared:
    """A measure of the combination and of the best single judge, both out of fold, and their paired difference."""

    combined: float
    single: float
    difference: Measurement
    """combined - single."""


@dataclass(frozen=True, slots=True)
class Stacking:
    """A combination of judges fitted to human labels, compared with the best single judge."""

    yes: int
    best: int
    """Index of the single judge with the lowest log loss."""
    log_loss: Compared
    auroc: Compared
    kappa: Compared
    """Yes is a probability of at least the fraction of yes among the human labels."""

    @property
    def better(self) -> bool:
        """True if the interval of the difference in log loss is below 0: the combination is recommended."""
        ends = self.log_loss.difference.interval.ends
        return ends is not None and ends[1] < 0


def stacking(
    scores: Sequence[Sequence[float]],
    labels: Sequence[bool],
    *,
    clusters: Sequence[Hashable],
    resampling: Resampling,
) -> Stacking | str:
    """Return the combination of judges by logistic regression with a ridge penalty; a text on why there is none.

    `scores`: for each judge one number per item, such as the logit of its probability. Probabilities are out of fold:
    whole clusters are left out of the fit that predicts them. Each single judge is calibrated in the same way. The
    best one is chosen on the same items, so the comparison is slightly in its favour. Source: Wolpert, "Stacked
    generalization", Neural Networks 5 (1992).
    """
    import numpy as np

    y, group = np.asarray(labels, dtype=np.float64), Clusters.of(clusters, resampling)
    having = np.stack([np.bincount(group.of_item, y == each, group.count) > 0 for each in (0, 1)])
    rarer = having[int(having.sum(axis=1).argmin())]
    if (fewest := int(rarer.sum())) < MIN_OFF:
        return f"cannot tell: the rarer human label is in {fewest} cluster{'s' * (fewest != 1)}; {MIN_OFF} are needed"
    folds = np.empty(group.count, dtype=np.int64)
    folds[np.argsort(~rarer, kind="stable")] = np.arange(group.count) % _FOLDS  # the rarer label is in every fold
    x = np.asarray(scores, dtype=np.float64).T
    spread = x.std(axis=0)
    x = np.column_stack([np.ones(len(y)), (x - x.mean(axis=0)) / np.where(spread > _TINY, spread, 1)])
    combined = _out_of_fold(x, y, folds[group.of_item])
    singles = [_out_of_fold(x[:, [0, column]], y, folds[group.of_item]) for column in range(1, x.shape[1])]
    best = min(range(len(singles)), key=lambda judge: float(losses(singles[judge], y).sum()))

    def kappa(p: Floats, weights: Floats) -> Floats:
        cells = np.stack([people * judge for people in (1 - y, y) for judge in (p < y.mean(), p >= y.mean())])
        return kappas((weights @ cells.T).reshape(-1, 2, 2), Distance.NOMINAL)

    compared = partial(_compared, group, combined, singles[best])
    return Stacking(
        yes=int(y.sum()),
        best=best,
        log_loss=compared(lambda p, weights: weights @ losses(p, y) / weights.sum(axis=1)),
        auroc=compared(lambda p, weights: aurocs(y, p, weights)),
        kappa=compared(kappa),
    )


def _compared(
    group: Clusters, combined: Floats, single: Floats, statistic: Callable[[Floats, Floats], Floats]
) -> Compared:
    """Compare a statistic of probabilities and of the weights of items, shape (resamples, items)."""
    import numpy as np

    def both(weights: Floats) -> Floats:
        return np.stack([statistic(p, weights[:, group.of_item]) for p in (combined, single)])

    one, other = both(np.ones((1, group.count)))[:, 0].tolist()
    difference = Measure(lambda weights: 0.0 - np.diff(both(weights), axis=0)[0], lambda: np.empty(0))
    return Compared(one, other, group.measured(difference, "", span=(-inf, inf)))


def _out_of_fold(x: Floats, y: Floats, folds: Places) -> Floats:
    """Return the probability of each item by the fit to the items of other folds; the first column is 1."""
    import numpy as np

    p, penalty = np.empty(len(y)), np.asarray([0.0] + [_RIDGE] * (x.shape[1] - 1))
    for fold in range(_FOLDS):
        out = folds == fold
        p[out] = logistic(x[out] @ fit_logistic(x[~out], y[~out], penalty))
    return p


# -- rankings of systems -----------------------------------------------------------------------------


class RankAgreement(NamedTuple):
    """Agreement of two rankings of the same systems."""

    queries: int
    tau: Measurement
    """Kendall's tau-b."""
    rho: Measurement
    """Spearman's rho, with mean ranks for ties."""


def rank_agreement(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], *, resampling: Resampling
) -> RankAgreement:
    """Return the agreement of the rankings of systems by their means over queries; queries are resampled.

    `first`, `second`: one row for each query with the score of each system, such as nDCG under the grades of one judge.
    The interval is that of other samples of as many queries: with more queries both correlations are higher. At least
    two systems.
    """
    import numpy as np

    one, other = (np.asarray(each, dtype=np.float64) for each in (first, second))
    systems = one.shape[1]
    parts = np.hstack([one, other])
    group = Clusters.of(range(len(one)), resampling)

    def correlation(place: int) -> Measurement:
        def of_rows(sums: Floats) -> Floats:
            rows = np.array_split(np.round(sums, _DIGITS), 1 + len(sums) * systems**2 // _BLOCK)
            return np.concatenate([_correlations(each[:, :systems], each[:, systems:])[place] for each in rows])

        return group.measured(of_sums(parts, of_rows), "", span=(-1.0, 1.0))

    return RankAgreement(len(one), correlation(0), correlation(1))


def _correlations(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return tau-b and rho of each two rows; NaN if all numbers of a row are equal."""
    import numpy as np

    x, y = (np.sign(each[:, :, None] - each[:, None, :]) for each in (first, second))
    tau = ratio((x * y).sum(axis=(1, 2)), np.sqrt(np.abs(x).sum(axis=(1, 2)) * np.abs(y).sum(axis=(1, 2))))
    # Signs add up to twice the distance of a system's mean rank from the middle.
    ranks, others = x.sum(axis=2), y.sum(axis=2)
    below = np.sqrt((ranks**2).sum(axis=1) * (others**2).sum(axis=1))
    return tau, ratio((ranks * others).sum(axis=1), below)
