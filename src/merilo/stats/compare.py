"""Comparison of two runs over the same samples, metric by metric: differences and their significance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from merilo.stats.corrected_pairs import PairedCorrection, PairLabels, corrected_pairs_of, difference_span, with_missing
from merilo.stats.distributions import normal_cdfs
from merilo.stats.intervals import LEVEL, SEED, Interval, check_level, t_quantile
from merilo.stats.means import FEWEST_DIFFERENT, PairedTest, own_ends, paired_of
from merilo.stats.power import detectable_effect
from merilo.stats.sums import coded, same_length, summed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from merilo.stats.column import Column

_ROUNDING: Final = 1e-12
"""Exact tests produce p-values that equal 1 - level up to rounding."""
Key = TypeVar("Key")
"""A metric's name; or a metric with the number of a run."""


class Policy(StrEnum):
    """The treatment of a sample that is Undefined in one run and scored in the other."""

    DROP = "drop"
    WORST = "worst"


class Conclusion(StrEnum):
    """The conclusion of a comparison about the values, whichever direction is better."""

    FIRST_HIGHER = "the first is higher"
    SECOND_HIGHER = "the second is higher"
    NOT_SHOWN = "no difference is shown"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Counts:
    """The division of the samples that both runs have."""

    pairs: int
    """Samples that are compared: scored in both runs, or counted as worst by policy."""
    wins: int
    """Pairs in which the first run is higher."""
    ties: int
    losses: int
    first_undefined: int
    """Undefined in the first run, scored in the second."""
    second_undefined: int
    first_failed: int
    """Failed in the first run, scored in the second."""
    second_failed: int
    left_out: int
    """Samples scored in one run only that are in no pair and could change the conclusion."""
    neither: int
    """Samples scored in neither run: nothing to compare."""


@dataclass(frozen=True, slots=True)
class ExtremeCase:
    """The comparison with every one-sided missing outcome at one end of the range."""

    difference: float
    interval: Interval
    p: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of one metric of two runs. Differences are first - second, over the pairs."""

    first: float | None
    """Mean over the pairs; None without a pair. The same holds for `second` and `difference`."""
    second: float | None
    difference: float | None
    interval: Interval
    p: float | None
    """Two-sided p-value for this metric alone; None if it cannot be computed."""
    adjusted: float | None
    """The p-value by Holm's method over the primary metrics; None for other metrics, and for those that cannot decide.
    """
    reading: Conclusion | None
    """The conclusion; None for metrics that are not primary, which are shown without a conclusion."""
    reason: str
    """The reason if there is no conclusion; otherwise empty."""
    counts: Counts
    standardised: float | None
    """Difference / standard deviation of the differences; None if the differences are equal."""
    superiority: float | None
    """The fraction of pairs in which the first is higher, ties counted half; None without a pair."""
    detectable: float | None
    """The smallest true difference that this design detects with 80 % power, before Holm's correction."""
    clusters: int | None
    """The number of clusters of the pairs; None if samples are not clustered."""
    least: ExtremeCase | None
    """With one-sided missing outcomes at the ends that make the difference smallest; None without such outcomes."""
    most: ExtremeCase | None
    """With one-sided missing outcomes at the ends that make the difference largest; None without such outcomes."""
    by_judge: tuple[float, float] | None = None
    """The two means by the judge alone, if the numbers above are corrected by human labels; otherwise None."""
    correction: PairedCorrection | None = None
    """The difference by the judge alone and corrected, if human labels of the pairs were given."""

    @property
    def labelled(self) -> int:
        """The number of labelled pairs."""
        return 0 if self.correction is None else self.correction.labelled


def compare(
    pairs: Mapping[Key, tuple[Column, Column]],
    *,
    primary: Collection[Key] | None = None,
    clusters: Sequence[Hashable] | None = None,
    undefined: Policy = Policy.DROP,
    level: float = LEVEL,
    labels: Mapping[Key, PairLabels] | None = None,
    member: Callable[[Key, Comparison], Hashable | None] = lambda key, _: key,
    one_sided: bool = False,
) -> dict[Key, Comparison]:
    """Compare each metric of two runs, with conclusions for the primary ones (by default all).

    `pairs`: by metric, its two columns over the common samples, in one order. `clusters`: the name of each sample's
    cluster. Interval and p-value: `merilo.stats.means`; nothing is sampled at random. Conclusions use Holm's
    method over a family of tests at `level`: the interval of each is at the level that decides, so it excludes 0
    exactly if the difference is shown. `member`: the member of the family that a metric belongs to; None if it cannot
    decide. Nor can a metric without a p-value: no signs of its differences would have given a small one.

    `labels`: human labels of some pairs. From 20 labelled pairs on, means, difference, interval, p-value and
    conclusion of the metric are corrected by them (`correct_pairs`).

    One-sided missing outcomes (Undefined or Failed in one run, scored in the other) are left out. Under
    `Policy.WORST` the Undefined ones count as the worse end of the range. The outcomes that are left out are then set
    to the ends of the range that make the difference smallest and largest. If the conclusion would change, it is
    "cannot tell". A retriever that returns nothing for hard questions therefore gains no advantage. With an infinite
    range there is no conclusion then. `one_sided`:
    each end of an interval is a bound that is right with probability (1 + level) / 2; there is no conclusion then.

    Raises ValueError if columns have different lengths or ranges.
    """
    check_level(level)
    named = set(pairs if primary is None else primary)
    if unknown := named - set(pairs):
        raise ValueError(
            f"Primary metrics must be among those compared, {list(pairs)}; got {sorted(map(str, unknown))}."
        )
    codes = None if clusters is None else coded(clusters)
    own: Mapping[Key, PairLabels] = {} if labels is None else labels
    pairings = {key: _Pairing.of(*pair, undefined) for key, pair in pairs.items()}
    if one_sided:
        return {key: _compared(each, codes, level, own.get(key), one_sided=True) for key, each in pairings.items()}
    found = {key: _compared(each, codes, level, own.get(key)) for key, each in pairings.items()}
    chosen = [key for key in pairs if key in named]
    p_values = {key: p for key in chosen if (p := found[key].p) is not None}
    members = {key: member(key, found[key]) for key in p_values}
    tested = _family({key: p for key, p in p_values.items() if members[key] is not None}, members, 1 - level)
    for key, each in tested.items():
        if each.alpha < 1 - level:
            wider = _compared(pairings[key], codes, 1 - each.alpha, own.get(key))
            found[key] = replace(found[key], interval=wider.interval, least=wider.least, most=wider.most)
    return {**found, **{key: _settled(found[key], tested.get(key), 1 - level) for key in chosen}}


class _Tested(NamedTuple):
    adjusted: float
    """Holm's adjusted p-value."""
    alpha: float
    """The level that decides: the interval at 1 - alpha excludes 0 exactly if the test is rejected."""


def _family(p_values: Mapping[Key, float], members: Mapping[Key, Hashable], alpha: float) -> dict[Key, _Tested]:
    """Return the test of each key by Holm's method over the members; the smallest p-value of a member is its rank.

    The j-th member (from 0) of m has α / (m - j); after the first that is not rejected, the others have its level.
    """
    groups: dict[Hashable, list[Key]] = {}
    for key in sorted(p_values, key=lambda key: p_values[key]):
        groups.setdefault(members[key], []).append(key)
    lowest = holm([p_values[keys[0]] for keys in groups.values()])
    rejected = sum(each <= alpha + _ROUNDING for each in lowest)
    return {
        key: _Tested(max(low, min(1.0, left * p_values[key])), alpha / max(left, len(groups) - rejected))
        for left, keys, low in zip(range(len(groups), 0, -1), groups.values(), lowest, strict=True)
        for key in keys
    }


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p-values, in the order given. Rejecting those up to α has a family-wise error rate of at
    most α.

    max over the j-th smallest up to this one of min(1, (m - j + 1) · p). Source: Holm, "A simple sequentially
    rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979), section 3.
    """
    found = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda each: p_values[each])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        found[place] = highest
    return found


def moved(first: Column, second: Column, count: int) -> tuple[int, ...]:
    """Return the positions of the samples, scored in both, that differ most; the largest first, ties in their order."""
    import numpy as np

    both = np.flatnonzero(first.scored & second.scored)
    steps = abs(first.values[both] - second.values[both])
    order = np.argsort(-steps, kind="stable")[:count]
    return tuple(int(both[place]) for place in order if steps[place] > 0)


def differences_of(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first minus the second; differences within rounding are 0, so equal scores tie."""
    import numpy as np

    found = first - second
    # Equal means of equal numbers may differ in the last bit, which would turn ties into wins.
    found[abs(found) <= 1e-12 * np.maximum(1.0, np.maximum(abs(first), abs(second)))] = 0.0
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Pairing:
    """Two columns, with missing outcomes set by policy."""

    first: Column
    second: Column
    both: NDArray[np.bool_]
    one_sided: NDArray[np.bool_]
    """Samples with a score in one run only that could change the conclusion."""
    known: tuple[Column, Column]
    """The columns before missing outcomes were set."""

    @classmethod
    def of(cls, first: Column, second: Column, policy: Policy) -> _Pairing:
        if len(first) != len(second):
            raise ValueError(f"Columns are compared sample by sample, but have {len(first)} and {len(second)} samples.")
        if first.span != second.span:
            raise ValueError(f"Columns of one metric have one range, got {first.span} and {second.span}.")
        known = first, second
        if policy is Policy.WORST:
            # An infinite score would make every mean infinite.
            if not isfinite(first.worst):
                raise ValueError(f"Undefined cannot count as worst in the range {first.span}; drop it.")
            lacking = first.undefined & second.scored, second.undefined & first.scored
            first, second = first.filled(first.worst, lacking[0]), second.filled(second.worst, lacking[1])
        one_sided = first.scored ^ second.scored
        return cls(first, second, first.scored & second.scored, one_sided, known)

    @property
    def values(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The values of both over the pairs scored in both."""
        return self.first.values[self.both], self.second.values[self.both]


def _compared(
    pairing: _Pairing,
    codes: NDArray[np.int64] | None,
    level: float,
    labels: PairLabels | None,
    *,
    one_sided: bool = False,
) -> Comparison:
    if codes is not None:
        same_length(len(pairing.first), len(codes), "clusters")
    (one, two), span = pairing.values, difference_span(pairing.first.span)
    differences = differences_of(one, two)
    clusters = None if codes is None else codes[pairing.both]
    own = None if labels is None else labels.among(pairing.both)
    test = paired_of(differences, clusters, span, level, own_ends(one, two, pairing.first.span), one_sided=one_sided)
    correction = None if own is None else corrected_pairs_of(test, differences, own.differences(), clusters, span)
    used = correction if correction is not None and correction.decides else None
    means = by_judge = (float(one.mean()), float(two.mean())) if len(one) else None
    if own is not None and used is not None:
        test, means = used.corrected, own.means((one, two), used.tuning or 0.0)
    deviation = float(differences.std(ddof=1)) if test.error is not None and len(differences) > 1 else 0.0
    counts = _counts(pairing, differences)
    return Comparison(
        first=None if means is None else means[0],
        second=None if means is None else means[1],
        difference=test.difference,
        interval=test.interval,
        p=test.p,
        adjusted=None,
        reading=None,
        reason=test.reason,
        counts=counts,
        standardised=None if test.difference is None or deviation == 0 else test.difference / deviation,
        superiority=(counts.wins + counts.ties / 2) / counts.pairs if counts.pairs else None,
        detectable=_detectable(test, level),
        clusters=test.units if codes is not None else None,
        least=_extreme(pairing, codes, level, used, least=True, one_sided=one_sided),
        most=_extreme(pairing, codes, level, used, least=False, one_sided=one_sided),
        by_judge=None if used is None else by_judge,
        correction=correction,
    )


def _detectable(test: PairedTest, level: float) -> float | None:
    """Return the detectable difference by the t test, and as much more as the interval is wider than that of t."""
    ends = test.interval.ends
    if test.p is None or test.error is None or test.freedom is None or ends is None:
        return None
    more = max(0.0, (ends[1] - ends[0]) / 2 - test.error * t_quantile(test.freedom, level))
    return more + test.error * detectable_effect(test.freedom, level=level)


def _counts(pairing: _Pairing, differences: NDArray[np.float64]) -> Counts:
    first, second = pairing.known
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    return Counts(
        pairs=len(differences),
        wins=wins,
        ties=len(differences) - wins - losses,
        losses=losses,
        first_undefined=int((first.undefined & second.scored).sum()),
        second_undefined=int((second.undefined & first.scored).sum()),
        first_failed=int((first.failed & second.scored).sum()),
        second_failed=int((second.failed & first.scored).sum()),
        left_out=int(pairing.one_sided.sum()),
        neither=int((~(pairing.first.scored | pairing.second.scored)).sum()),
    )


def _extreme(
    pairing: _Pairing,
    codes: NDArray[np.int64] | None,
    level: float,
    corrected: PairedCorrection | None,
    *,
    least: bool,
    one_sided: bool,
) -> ExtremeCase | None:
    low, high = pairing.first.span
    if not pairing.one_sided.any() or not (isfinite(low) and isfinite(high)):
        return None
    every = pairing.both | pairing.one_sided
    ends = (low, high) if least else (high, low)
    sides = [
        side.filled(end, pairing.one_sided & ~side.scored).values[every]
        for side, end in zip((pairing.first, pairing.second), ends, strict=True)
    ]
    values = sides[0], sides[1]
    differences, span = differences_of(*values), difference_span(pairing.first.span)
    if corrected is None:
        clusters = None if codes is None else codes[every]
        test = paired_of(differences, clusters, span, level, own_ends(*values, pairing.first.span), one_sided=one_sided)
    else:
        missing = differences[pairing.one_sided[every]]
        test = with_missing(corrected, int(pairing.both.sum()), missing, span, level)
    return None if test.difference is None else ExtremeCase(test.difference, test.interval, test.p)


def _reading(test: ExtremeCase | Comparison, alpha: float) -> Conclusion:
    if test.p is None or test.difference is None:
        return Conclusion.CANNOT_TELL
    if test.p > alpha + _ROUNDING or test.difference == 0:
        return Conclusion.NOT_SHOWN
    return Conclusion.FIRST_HIGHER if test.difference > 0 else Conclusion.SECOND_HIGHER


def _settled(each: Comparison, tested: _Tested | None, alpha: float) -> Comparison:
    """Return the comparison with its conclusion; `tested`: None outside the family, where `alpha` is its level."""
    alpha = alpha if tested is None else tested.alpha
    reading, reason, least, most = _reading(each, alpha), each.reason, each.least, each.most
    if reading is not Conclusion.CANNOT_TELL and each.counts.left_out:
        start = f"{each.counts.left_out} samples have a score in one run only"
        if least is None or most is None:
            reading, reason = Conclusion.CANNOT_TELL, f"cannot tell: {start}, and the metric's range is infinite"
        # All three must agree: with the missing outcomes left out, at one end and at the other end of the range.
        elif {_reading(least, alpha), _reading(most, alpha)} != {reading}:
            reading = Conclusion.CANNOT_TELL
            between = f"{least.difference:+.3f} to {most.difference:+.3f}"
            reason = f"cannot tell: {start}; with them at the ends of the range the difference is {between}"
    return replace(each, adjusted=None if tested is None else tested.adjusted, reading=reading, reason=reason)


DRAWS: Final = 10_000
_NO_ERROR: Final = 1e-9


class Errors(NamedTuple):
    """The errors of the comparisons of K runs, each at most 1 - LEVEL."""

    pair: float
    """Two-sided, of each pair: all K (K - 1) / 2 intervals hold together."""
    against: tuple[float, ...]
    """One-sided, by run: the bounds of all others minus this run hold together (Hsu, "Multiple Comparisons", 1996)."""


def simultaneous_errors(
    columns: Sequence[Column],
    clusters: Sequence[Hashable] | None = None,
    *,
    apart: Collection[tuple[int, int]] = (),
) -> Errors:
    """Return the errors at which all comparisons of these runs hold together with 95 %.

    `columns`: of the same samples, of which those count that all runs scored. `apart`: pairs of places that enter by
    Bonferroni, as labels correct their difference; so do pairs with fewer than six unlike samples.
    """
    import numpy as np

    count, alpha = len(columns), 1 - LEVEL
    if count == 2:
        return Errors(alpha, (alpha, alpha))
    shared = np.logical_and.reduce([each.scored for each in columns])
    values = np.stack([each.values[shared] for each in columns], axis=1)
    means = values - values.mean(axis=0) if len(values) else values
    unlike = [(abs(values - column[:, None]) > _NO_ERROR).sum(axis=0) for column in values.T]
    if clusters is not None:
        codes = np.unique(coded(clusters)[shared], return_inverse=True)[1]
        means = np.stack([summed(codes, column) for column in means.T], axis=1)
    units = max(len(means), 2)
    covariance = means.T @ means * (units / (units - 1)) / max(len(values), 1) ** 2
    variances = np.diag(covariance)
    errors = np.sqrt(np.maximum(variances[:, None] + variances - 2 * covariance, 0))
    usable = (np.array(unlike) >= FEWEST_DIFFERENT) & (errors > _NO_ERROR)
    for one, two in apart:
        usable[one, two] = usable[two, one] = False
    weights, vectors = np.linalg.eigh(covariance)
    drawn = np.random.default_rng(SEED).standard_normal((DRAWS, count))
    drawn = drawn @ (vectors * np.sqrt(np.maximum(weights, 0))) @ vectors.T  # the root that is unique
    largest, against = np.full(DRAWS, -np.inf), list[float]()
    for place in range(count):
        own = usable[:, place]
        steps = (drawn[:, own] - drawn[:, [place]]) / errors[own, place]
        most = steps.max(axis=1, initial=-np.inf)
        largest = np.maximum(largest, most)
        against.append(_error(most, int((~own).sum()) - 1, 1, alpha))
    rest = (int((~usable).sum()) - count) // 2
    return Errors(_error(largest, rest, 2, alpha), tuple(against))


def _error(largest: NDArray[np.float64], rest: int, sides: int, alpha: float) -> float:
    """Return the largest error of a comparison with P(`largest` > its quantile) + rest · error ≤ α; at least α / rest.

    `rest`: the comparisons that enter by Bonferroni.
    """
    import numpy as np

    found = np.sort(largest[np.isfinite(largest)])
    tails = np.append(sides * (1 - normal_cdfs(found)), 0.0)
    exceeding = np.arange(len(found), -1, -1) / len(largest)
    held = tails[exceeding + rest * tails <= alpha]
    return float(min(max(held) or alpha / max(rest, 1), alpha))
