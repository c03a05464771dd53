"""Gates of a run that may stop as soon as they are decided: confidence sequences replace intervals."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from merilo.stats.compare import Policy
from merilo.stats.gate import Decision, GateVerdict, PairedDifferences
from merilo.stats.intervals import LEVEL
from merilo.stats.sequential import StreamingGate, sequential_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from merilo.stats.column import Column

_INFINITE = "an infinite range, in which no confidence sequence holds, in a run that could stop early"


def early_minimum(
    column: Column, at_least: float, *, undefined: Policy | None = None, level: float = LEVEL
) -> Decision:
    """Decide as `gate_minimum`, for a column in the random order in which its samples were evaluated.

    Limits are those of `sequential_interval`, which hold at any stopping time. Once the limits have decided, the
    verdict does not change. No deciding samples are named: more samples decide.
    """
    higher = column.higher_is_better
    if undefined is Policy.WORST:
        column = column.filled(column.worst, column.undefined)
    counting = column.scored | column.failed if undefined is Policy.DROP else column.scored | ~column.scored
    missing = counting & ~column.scored
    low, high = (column.filled(end, missing).values[counting] for end in column.span)
    value = float(column.values[column.scored].mean()) if column.scored.any() else None
    if not all(map(isfinite, column.span)):
        return Decision(GateVerdict.CANNOT_TELL, value, None, None, level, f"It has {_INFINITE}.")
    if higher:
        found = _looked((low, high), at_least, column.span, level)
    else:
        # A maximum is a minimum of the negated values; the ends change places.
        turned = _looked((-high, -low), -at_least, (-column.span[1], -column.span[0]), level)
        found = _Found(turned.verdict, *(None if end is None else -end for end in (turned.upper, turned.lower)))
    asked = f"at {'least' if higher else 'most'} {at_least:g}"
    return Decision(found.verdict, value, found.lower, found.upper, level, found.reason(asked))


def early_drop(
    base: Column,
    new: Column,
    max_drop: float,
    *,
    strict: bool = False,
    undefined: Policy | None = None,
    level: float = LEVEL,
) -> Decision:
    """Decide as `gate_drop`, over common samples in the random order in which the new run evaluated them."""
    import numpy as np

    pairing = PairedDifferences.of(base, new, undefined, None, level)
    counting = pairing.paired | pairing.missing
    value = float(pairing.differences[pairing.paired].mean()) if pairing.paired.any() else None
    if not all(map(isfinite, pairing.span)):
        return Decision(GateVerdict.CANNOT_TELL, value, None, None, level, f"It has {_INFINITE}.")
    low, high = (
        np.where(pairing.missing, ends, pairing.differences)[counting] for ends in (pairing.lowest, pairing.highest)
    )
    found = _looked((low, high), -max_drop, pairing.span, level)
    if strict and found.upper is not None and found.upper < 0:
        found = found._replace(verdict=GateVerdict.FAIL)
    excluded = None if found.lower is None else max(0.0, -found.lower)
    reason = found.reason(f"a drop of at most {max_drop:g}")
    return Decision(found.verdict, value, found.lower, found.upper, level, reason, excluded)


class _Found(NamedTuple):
    verdict: GateVerdict
    lower: float | None
    upper: float | None

    def reason(self, asked: str) -> str:
        if self.lower is None or self.upper is None:
            return f"Asked for {asked}; cannot tell: there are no scores."
        conclusion = {GateVerdict.PASS: "which passes", GateVerdict.FAIL: "which fails"}.get(
            self.verdict, "which does not decide"
        )
        between = f"between {self.lower:.4g} and {self.upper:.4g}"
        return f"Asked for {asked}; it lies {between} (confidence sequence), {conclusion}."


def _looked(
    ends: tuple[NDArray[np.float64], NDArray[np.float64]], at_least: float, span: tuple[float, float], level: float
) -> _Found:
    """Return the verdict of a test after each of the values, of which lower and upper ends are known."""
    looking = StreamingGate(at_least, span, level=level)
    for low, high in zip(ends[0].tolist(), ends[1].tolist(), strict=True):
        looking.add(low, high)
    # Two one-sided limits at `level` are the ends of a two-sided interval at 2 · level - 1.
    found = [sequential_interval(each, span, level=2 * level - 1).ends for each in ends]
    lower, upper = (None if each is None else each[side] for side, each in enumerate(found))
    return _Found(looking.verdict, lower, upper)
