"""Gates: is a run good enough, or not worse than another? Pass, fail, or cannot tell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING

from merilo.stats.compare import Policy, difference_span, differences_of
from merilo.stats.intervals import LEVEL, check_level
from merilo.stats.one_sided import OneSidedLimits, clustered_limits, mean_limits
from merilo.stats.paired import paired_of
from merilo.stats.sums import coded, same_length

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from merilo.stats.column import Column

MAX_DECIDING = 20
"""Maximum number of failed samples that are named because they could decide a gate."""


class GateVerdict(StrEnum):
    """The verdicts of a gate."""

    PASS = "pass"  # noqa: S105, not a password
    FAIL = "fail"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Decision:
    """A gate's verdict with the numbers behind it."""

    verdict: GateVerdict
    value: float | None
    """The mean, or the difference new - base; None without a score."""
    lower: float | None
    """One-sided lower limit at confidence `level`, with missing outcomes at the worst; None if there is none."""
    upper: float | None
    """One-sided upper limit, with missing outcomes at the best."""
    level: float
    reason: str
    """One sentence: the numbers that decided, or the reason why there is no decision."""
    excluded_drop: float | None = None
    """The smallest drop that can be excluded, 0 or more; None for a minimum, and if none can be excluded."""
    deciding: tuple[int, ...] = ()
    """If the gate cannot tell: positions of the fewest Failed outcomes (at most 20) that would decide it with a
    score.

    Empty if 20 would not. Outcomes with a score are never named: re-judging only the harmful ones would bias the
    mean.
    """
    would: GateVerdict | None = None
    """The verdict if these outcomes had the best score of the range (pass) or the worst (fail).

    For a drop, the verdict if both runs had the same score. None if `deciding` is empty.
    """


@dataclass(frozen=True, slots=True)
class GateLimits:
    """Two one-sided confidence limits and the mean."""

    lower: float | None
    upper: float | None
    value: float | None
    note: str = ""


def gate_minimum(
    column: Column,
    at_least: float,
    *,
    clusters: Sequence[Hashable] | None = None,
    undefined: Policy | None = None,
    level: float = LEVEL,
    early: int = 0,
) -> Decision:
    """Pass if the lower one-sided limit of the mean is at least `at_least`, fail if the upper one is below it.

    If lower is better, `at_least` is a maximum and the sides are exchanged. Limits: `mean_limits`. Missing outcomes
    count as the lower end of the range for the lower limit and as the upper end for the upper one. `Policy.DROP` leaves
    Undefined outcomes out, `Policy.WORST` counts them as the worst value for both limits; Failed ones always count both
    ways. Cannot tell in an infinite range with missing outcomes, or if there are no limits.

    `early`: for samples in random order from a run that could stop at any of them, the size of its largest cluster (1
    without clusters). Limits then hold at any time (`sequential_limits`), and no deciding samples are named. 0: for a
    run of a fixed size.
    """
    _check_one_sided(level)
    codes = _codes(clusters, len(column))
    if undefined is Policy.WORST:
        column = column.filled(column.worst, column.undefined)
    unknown = column.failed if undefined is Policy.DROP else ~column.scored

    def limits(changed: Column, missing: NDArray[np.bool_]) -> GateLimits:
        return _limits(changed, missing, codes, level, early)

    found = limits(column, unknown)
    verdict = _minimum(found, at_least, higher=column.higher_is_better)
    deciding: tuple[int, ...] = ()
    would: GateVerdict | None = None
    if (
        verdict is GateVerdict.CANNOT_TELL
        and found.value is not None
        and not early  # more samples decide
        and isfinite(column.best)
        and isfinite(column.worst)
    ):
        order = _first(column.failed)
        for aim, target in ((GateVerdict.PASS, column.best), (GateVerdict.FAIL, column.worst)):

            def decided(count: int, aim: GateVerdict = aim, target: float = target) -> bool:
                places = _places(order[:count], len(column))
                changed = limits(column.filled(target, places), unknown & ~places)
                return _minimum(changed, at_least, higher=column.higher_is_better) is aim

            if deciding := _fewest(order, decided):
                would = aim
                break
    return replace(decided_minimum(found, at_least, column, level), deciding=deciding, would=would)


def gate_drop(
    base: Column,
    new: Column,
    max_drop: float,
    *,
    strict: bool = False,
    clusters: Sequence[Hashable] | None = None,
    undefined: Policy | None = None,
    level: float = LEVEL,
    early: int = 0,
) -> Decision:
    """Pass if the lower one-sided limit of (new - base) is above -max_drop, fail if the upper one is below.

    `base`, `new`: columns over the common samples, in one order. `max_drop` ≥ 0, in the unit of the metric. `strict`
    also fails if the upper limit is below 0: any drop that is shown. If lower is better, a rise is the drop, and value
    and limits are those of base - new. Limits: `mean_limits` of the paired differences in their range, so that n equal
    pairs exclude a mean drop of 1 - (1 - level)^(1/n) of the range: 3 % with 100. A score that is missing in one run
    counts as the worst for each limit; `Policy.DROP` leaves Undefined outcomes out, `Policy.WORST` counts them as the
    worst value. `early`: as in `gate_minimum`, for pairs in the random order of the new run.
    """
    _check_one_sided(level)
    if not 0 <= max_drop < float("inf"):
        raise ValueError(f"The largest allowed drop must be 0 or more, got {max_drop}.")
    codes = _codes(clusters, len(base))
    pairing = replace(PairedDifferences.of(base, new, undefined, codes, level), early=early)
    found = pairing.limits(pairing.differences, pairing.missing)
    verdict = _drop(found, max_drop, strict=strict)
    deciding: tuple[int, ...] = ()
    would: GateVerdict | None = None
    if verdict is GateVerdict.CANNOT_TELL and found.value is not None and not early:
        order = _first(pairing.missing & (base.failed | new.failed))
        for aim in (GateVerdict.PASS, GateVerdict.FAIL):

            def decided(count: int, aim: GateVerdict = aim) -> bool:
                places = _places(order[:count], len(base))
                differences = pairing.differences.copy()
                differences[places] = 0.0
                changed = pairing.limits(differences, pairing.missing & ~places, pairing.paired | places)
                return _drop(changed, max_drop, strict=strict) is aim

            if deciding := _fewest(order, decided):
                would = aim
                break
    return replace(decided_drop(found, max_drop, strict=strict, level=level), deciding=deciding, would=would)


def decided_minimum(found: GateLimits, at_least: float, column: Column, level: float) -> Decision:
    """Return the decision on a minimum (a maximum if lower is better) by these limits."""
    verdict = _minimum(found, at_least, higher=column.higher_is_better)
    asked = f"at {'least' if column.higher_is_better else 'most'} {at_least:g}"
    return Decision(verdict, found.value, found.lower, found.upper, level, _reason(verdict, found, asked))


def decided_drop(found: GateLimits, max_drop: float, *, strict: bool, level: float) -> Decision:
    """Return the decision on a drop by these limits of the improvement."""
    verdict = _drop(found, max_drop, strict=strict)
    excluded = None if found.lower is None else max(0.0, -found.lower)
    reason = _reason(verdict, found, f"a drop of at most {max_drop:g}")
    if verdict is GateVerdict.CANNOT_TELL and excluded is not None:
        reason = f"{reason[:-1]}; a drop of more than {excluded:.3g} can be excluded."
    return Decision(verdict, found.value, found.lower, found.upper, level, reason, excluded)


@dataclass(frozen=True, slots=True, eq=False)
class PairedDifferences:
    """The paired differences that a gate tests, sample by sample, positive if the new run is better."""

    differences: NDArray[np.float64]
    """Positive if the new run is better; 0 if there is no pair."""
    paired: NDArray[np.bool_]
    missing: NDArray[np.bool_]
    lowest: NDArray[np.float64]
    """The smallest possible difference, and in `highest` the largest, if an outcome is missing."""
    highest: NDArray[np.float64]
    codes: NDArray[np.int64] | None
    span: tuple[float, float]
    level: float
    early: int = 0
    """The size of the largest cluster of a run that could stop early; 0 for a run of a fixed size."""

    @classmethod
    def of(
        cls, base: Column, new: Column, policy: Policy | None, codes: NDArray[np.int64] | None, level: float
    ) -> PairedDifferences:
        """Return the differences of two columns of common samples, in one order. Raises ValueError for columns of two
        metrics.
        """
        import numpy as np

        if len(base) != len(new):
            raise ValueError(f"Columns must have the same samples, got {len(base)} and {len(new)}.")
        if base.span != new.span:
            raise ValueError(f"Columns of one metric must have the same range, got {base.span} and {new.span}.")
        one_sided = base.scored ^ new.scored
        if policy is Policy.WORST:
            base, new = (each.filled(each.worst, each.undefined & one_sided) for each in (base, new))
        missing = base.scored ^ new.scored
        if policy is Policy.DROP:
            missing &= base.failed | new.failed
        paired = base.scored & new.scored
        sign = 1.0 if new.higher_is_better else -1.0
        differences = sign * differences_of(new.values, base.values) * paired
        worst, best = sign * new.worst, sign * new.best
        lowest = np.where(new.scored, sign * new.values, worst) - np.where(base.scored, sign * base.values, best)
        highest = np.where(new.scored, sign * new.values, best) - np.where(base.scored, sign * base.values, worst)
        return cls(differences, paired, missing, lowest, highest, codes, difference_span(new.span), level)

    def limits(
        self,
        differences: NDArray[np.float64],
        missing: NDArray[np.bool_],
        paired: NDArray[np.bool_] | None = None,
    ) -> GateLimits:
        """Return the one-sided limits of the mean; `differences`, `missing` and `paired` may differ from the
        attributes.
        """
        import numpy as np

        paired = self.paired if paired is None else paired
        value = float(differences[paired].mean()) if paired.any() else None
        if not missing.any():
            both = self._one_sided(differences[paired], paired)
            return GateLimits(both.lower, both.upper, value, both.note)
        if not all(map(isfinite, self.span)):
            return GateLimits(None, None, value, "scores are missing and the metric's range is infinite")
        every = paired | missing
        low, high = (
            self._one_sided(np.where(missing, ends, differences)[every], every) for ends in (self.lowest, self.highest)
        )
        return GateLimits(low.lower, high.upper, value, low.note)

    def _one_sided(self, differences: NDArray[np.float64], counting: NDArray[np.bool_]) -> OneSidedLimits:
        import numpy as np

        finite = all(map(isfinite, self.span))
        codes = None if self.codes is None else np.unique(self.codes[counting], return_inverse=True)[1]
        if self.early or (codes is None and finite):
            return mean_limits(differences, self.span, codes=codes, level=self.level, early=self.early)
        test = paired_of(differences, codes, self.span, 2 * self.level - 1)
        symmetric = (test.interval.ends, test.error, test.interval.note)
        if codes is None or not len(codes):
            low, high = test.interval.ends or (None, None)
            return OneSidedLimits(low, high, test.interval.note)
        return clustered_limits(differences, self.span, codes, symmetric, self.level)


def _limits(
    column: Column, missing: NDArray[np.bool_], codes: NDArray[np.int64] | None, level: float, early: int
) -> GateLimits:
    known = column.scored
    value = float(column.values[known].mean()) if known.any() else None
    if missing.any() and not all(map(isfinite, column.span)):
        return GateLimits(None, None, value, "scores are missing and the metric's range is infinite")
    ends = [
        _mean_limits(column.filled(end, missing), codes, level, early) for end in column.span[: 1 + bool(missing.any())]
    ]
    return GateLimits(ends[0].lower, ends[-1].upper, value, ends[0].note)


def _mean_limits(column: Column, codes: NDArray[np.int64] | None, level: float, early: int) -> OneSidedLimits:
    groups = None if codes is None else codes[column.scored]
    return mean_limits(column.values[column.scored], column.span, codes=groups, level=level, early=early)


def _minimum(found: GateLimits, threshold: float, *, higher: bool) -> GateVerdict:
    if found.lower is None or found.upper is None:
        return GateVerdict.CANNOT_TELL
    good = found.lower >= threshold if higher else found.upper <= threshold
    bad = found.upper < threshold if higher else found.lower > threshold
    return GateVerdict.PASS if good else GateVerdict.FAIL if bad else GateVerdict.CANNOT_TELL


def _drop(found: GateLimits, max_drop: float, *, strict: bool) -> GateVerdict:
    if found.lower is None or found.upper is None:
        return GateVerdict.CANNOT_TELL
    # FAIL is checked first: with `strict` a build can be within `max_drop` and still have a significant drop.
    if found.upper < -max_drop or (strict and found.upper < 0):
        return GateVerdict.FAIL
    return GateVerdict.PASS if found.lower > -max_drop else GateVerdict.CANNOT_TELL


def _reason(verdict: GateVerdict, found: GateLimits, asked: str) -> str:
    if found.lower is None or found.upper is None:
        why = found.note.removeprefix("cannot tell: ").removeprefix("cannot tell ") or "there are no scores"
        return f"Asked for {asked}; cannot tell: {why}."
    between = f"between {found.lower:.4g} and {found.upper:.4g}"
    conclusions = {
        GateVerdict.PASS: "which passes",
        GateVerdict.FAIL: "which fails",
        GateVerdict.CANNOT_TELL: "which does not decide",
    }
    return f"Asked for {asked}; it lies {between} (one-sided limits), {conclusions[verdict]}."


def _first(failed: NDArray[np.bool_]) -> list[int]:
    """Return the first positions, at most `MAX_DECIDING`."""
    import numpy as np

    return [int(place) for place in np.flatnonzero(failed)[:MAX_DECIDING]]


def _places(positions: list[int], length: int) -> NDArray[np.bool_]:
    import numpy as np

    found = np.zeros(length, dtype=np.bool_)
    found[positions] = True
    return found


def _fewest(order: list[int], decided: Callable[[int], bool]) -> tuple[int, ...]:
    """Return the shortest start of the order that decides, by halving; empty if all of it does not."""
    if not order or not decided(len(order)):
        return ()
    # Halving is valid: each further outcome at the target moves the limits towards the verdict.
    low, high = 1, len(order)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle + 1, high)
    return tuple(order[:high])


def _codes(clusters: Sequence[Hashable] | None, length: int) -> NDArray[np.int64] | None:
    if clusters is None:
        return None
    codes = coded(clusters)
    same_length(length, len(codes), "clusters")
    return codes


def _check_one_sided(level: float) -> None:
    check_level(level)
    if level <= 0.5:
        raise ValueError(f"A one-sided confidence level must be between 0.5 and 1, got {level}; write 0.95 for 95 %.")
