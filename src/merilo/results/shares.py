"""Counts that are fractions of other counts, such as relevant of all contexts, in a stream or in columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from merilo.runs.manifest import Share
from merilo.stats.means import ratio_interval
from merilo.stats.running import RunningRatio

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from merilo.stats.intervals import Interval

PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "contexts": ("relevant", "fully_relevant", "useful", "used", "yes"),
    "sentences": ("evidence_sentences", "attributed", "extracted"),
    "context_sentences": ("copied",),
    "lines": ("attributed",),
    "statements": ("supported", "contradicted", "not_stated", "noise", "noisy", "attributed", "addressing", "uncited"),
    "claims": ("supported", "unsupported"),
    "citations": ("right", "to_nothing"),
    "nuggets": ("stated", "partly_stated"),
    "vital": ("vital_stated",),
    "parts": ("answered",),
    "entities": ("mentioned", "found", "named"),
    "relevant": ("found",),
    "responses": (
        *("right", "rightly_declined", "declined_wrongly", "beyond_evidence", "wrong", "evidence_missing"),
        "invented",
    ),
}
"""Name of a count → names of the counts that are parts of it."""
_NOT_WITH: Final[Mapping[tuple[str, str], str]] = {("contexts", "relevant"): "statements"}
"""Pairs that do not form a share if this third count is present: there, `relevant` counts statements."""
_UNIT: Final = (0.0, 1.0)


def shares_in(counts: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return the pairs (part, whole) among named counts."""
    return _pairs(tuple(counts))


@lru_cache(maxsize=256)
def _pairs(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (part, whole)
        for whole, parts in PARTS.items()
        for part in parts
        if whole in names and part in names and _NOT_WITH.get((whole, part)) not in names
    )


@dataclass(slots=True)
class RunningShares:
    """The shares in the counts of one metric's scores, summed up over samples."""

    ratios: dict[tuple[str, str], RunningRatio] = field(default_factory=dict[tuple[str, str], RunningRatio])
    none: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Pairs that turned out not to be shares: a count was unknown, or the part was larger than the whole."""

    def add(self, counts: Mapping[str, int | None], cluster: int | None) -> None:
        """Add the counts of one score; `cluster`: the number of the sample's cluster, if any."""
        for pair in shares_in(counts):
            if pair in self.none:
                continue
            part, whole = counts[pair[0]], counts[pair[1]]
            if part is None or whole is None or not 0 <= part <= whole:
                self.none.add(pair)
                self.ratios.pop(pair, None)
                continue
            if pair not in self.ratios:
                self.ratios[pair] = RunningRatio(_UNIT)
            self.ratios[pair].add(part, whole, cluster)

    def shares(self) -> dict[str, Share]:
        """Return each share with its interval, by `part/whole`; shares of a total of 0 are left out."""
        found: dict[str, Share] = {}
        for (part, whole), ratio in self.ratios.items():
            value = ratio.value
            if value is not None:
                found[f"{part}/{whole}"] = _share(value, ratio.estimate().interval)
        return found


def column_shares(
    counts: Mapping[str, NDArray[np.float64]], clusters: Sequence[Hashable] | None, level: float
) -> dict[str, Share]:
    """Return what `RunningShares.shares` returns, from columns of counts with one number per sample."""
    found: dict[str, Share] = {}
    for part, whole in shares_in(counts):
        tops, bottoms = counts[part], counts[whole]
        if (tops <= bottoms).all() and (tops >= 0).all() and bottoms.any():
            estimate = ratio_interval(tops, bottoms, _UNIT, clusters=clusters, level=level)
            if estimate.value is not None:
                found[f"{part}/{whole}"] = _share(estimate.value, estimate.interval)
    return found


def _share(value: float, interval: Interval) -> Share:
    """Return a share in the form that an aggregate stores."""
    return Share(value, ends(interval), interval.note, interval.remark, interval.method)


def ends(interval: Interval) -> tuple[float, float] | None:
    """Return the ends of an interval with nine digits, because the last bits of a bootstrap depend on the machine."""
    return None if interval.ends is None else (float(f"{interval.ends[0]:.9g}"), float(f"{interval.ends[1]:.9g}"))
