"""Gates on means and differences that are corrected by human labels: pass, fail, or cannot tell."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

from merilo.stats.compare import Policy
from merilo.stats.corrected_pairs import corrected_pairs_of, with_missing
from merilo.stats.correction import DECIDING_LABELLED, Labels, correct
from merilo.stats.gate import Decision, GateLimits, PairedDifferences, decided_drop, decided_minimum
from merilo.stats.intervals import LEVEL
from merilo.stats.sums import coded

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from merilo.stats.column import Column
    from merilo.stats.corrected_pairs import PairLabels


def corrected_minimum(
    column: Column,
    at_least: float,
    labels: Labels,
    *,
    clusters: Sequence[Hashable] | None = None,
    undefined: Policy | None = None,
    level: float = LEVEL,
) -> Decision | None:
    """Decide as `gate_minimum`, by the mean that annotators would give (`correct`); None if the labels give no mean.

    `labels`: their samples are positions among the scored ones. Fewer than 20 labelled samples give None. Missing
    outcomes count at the ends of the range, in proportion to their number: the labels were drawn from scored samples
    and say nothing about the others. No deciding samples are named.
    """
    if labels.samples < DECIDING_LABELLED or not all(map(isfinite, column.span)):
        return None
    scored = column.scored
    names = None if clusters is None else [name for name, own in zip(clusters, scored.tolist(), strict=True) if own]
    # The two ends of an interval at level 1 - 2 α are one-sided limits at level 1 - α.
    found = correct(column.values[scored], labels, column.span, clusters=names, level=2 * level - 1).corrected
    if found.value is None or found.interval.ends is None:
        return None
    worst = undefined is Policy.WORST
    fixed = int(column.undefined.sum()) if worst else 0
    unknown = int(column.failed.sum()) if undefined is not None else int((~scored).sum())
    count = int(scored.sum())
    step = _continuity(labels) * (column.span[1] - column.span[0])
    ends = max(found.interval.ends[0] - step, column.span[0]), min(found.interval.ends[1] + step, column.span[1])
    limits = [
        (count * end + fixed * column.worst + unknown * extreme) / (count + fixed + unknown)
        for end, extreme in zip(ends, column.span, strict=True)
    ]
    return decided_minimum(GateLimits(limits[0], limits[1], found.value), at_least, column, level)


def _continuity(labels: Labels) -> float:
    """Return the continuity correction of a limit, as a fraction of the range.

    Labels on a coarse scale take few values, so a limit of a score interval is wrong too often on one side near the
    ends of the range. Half a step of one label makes it about as safe as an exact limit. With few labels the limits
    already allow for values that were not seen, so the correction grows from 16 to 40 labels.
    design/labels-and-correction.md has the simulations.
    """
    import numpy as np

    count, steps = labels.samples, max(1, len(np.unique(labels.by_sample().human)) - 1)
    return min(1.0, (count - 16) / 24) / (2 * count * steps)


def corrected_drop(
    base: Column,
    new: Column,
    max_drop: float,
    labels: PairLabels,
    *,
    strict: bool = False,
    clusters: Sequence[Hashable] | None = None,
    undefined: Policy | None = None,
    level: float = LEVEL,
) -> Decision | None:
    """Decide as `gate_drop`, by the difference that annotators would find (`correct_pairs`); None if there is none.

    `labels`: of `base` and `new`, in this order. Fewer than 20 labelled pairs give None. Missing outcomes count as in
    `gate_drop`, next to the corrected difference of the pairs. No deciding samples are named.
    """
    import numpy as np

    codes = None if clusters is None else coded(clusters)
    pairing = PairedDifferences.of(base, new, undefined, codes, level)
    paired = base.scored & new.scored
    sign = 1.0 if new.higher_is_better else -1.0
    own = labels.among(paired)
    differences = own.differences()
    turned = replace(differences, human=-sign * differences.human, judge=-sign * differences.judge)
    found = corrected_pairs_of(
        pairing.differences[paired],
        turned,
        None if codes is None else codes[paired],
        pairing.span,
        2 * level - 1,
    )
    if not found.decides or (pairing.missing.any() and not all(map(isfinite, pairing.span))):
        return None
    more = pairing.differences[pairing.paired & ~paired]  # Undefined outcomes that count as the worst value
    ends: list[float | None] = []
    for side, extremes in enumerate((pairing.lowest, pairing.highest)):
        others = np.concatenate((more, extremes[pairing.missing]))
        test = with_missing(found, int(paired.sum()), others, pairing.span, 2 * level - 1)
        ends.append(None if test.interval.ends is None else test.interval.ends[side])
    limits = GateLimits(ends[0], ends[1], found.corrected.difference)
    return decided_drop(limits, max_drop, strict=strict, level=level)
