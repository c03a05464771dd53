"""Computes the aggregates of a run from its outcomes while it streams.

Only running sums (two per cluster) and the values that a composite combines are held in memory.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import fsum, isfinite
from typing import TYPE_CHECKING, Final

from merilo.judging.digests import digest_of
from merilo.metrics.base import Composite, Failed, Metric, Outcome, Score, Undefined
from merilo.runs.manifest import Aggregate, Share
from merilo.stats.column import bounds
from merilo.stats.intervals import LEVEL, Interval
from merilo.stats.means import MeanEstimate, RunningMean, RunningRatio
from merilo.stats.resampling import percentile_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


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


def _share(value: float, interval: Interval) -> Share:
    """Return a share in the form that an aggregate stores."""
    return Share(value, ends(interval), interval.note, interval.remark, interval.method)


def ends(interval: Interval) -> tuple[float, float] | None:
    """Return the ends of an interval with nine digits, because the last bits of a bootstrap depend on the machine."""
    return None if interval.ends is None else (float(f"{interval.ends[0]:.9g}"), float(f"{interval.ends[1]:.9g}"))


LEFT_OPEN: Final = "values and words leave them open"
"""The reason of all samples that the judge does not judge, but gives a probability."""
_SHOWN = 5
_DISTINCT = 1_000


def spans_of(metrics: Mapping[str, Metric]) -> dict[str, tuple[float, float]]:
    """Return the range of each metric."""
    return {text: metric.range for text, metric in metrics.items()}


class Tallies:
    """Sums up the outcomes of all metrics and composites of a run, sample by sample."""

    __slots__ = ("_composites", "_metrics")

    def __init__(
        self,
        spans: Mapping[str, tuple[float, float]],
        composites: Mapping[str, tuple[Composite, tuple[str, ...]]],
        fingerprint: str,
    ) -> None:
        """Prepare tallies.

        `spans`: the range of each metric. `composites`: each with the texts of its parts. `fingerprint`: that of the
        run's samples.
        """
        self._metrics = {text: Tally(span, text) for text, span in spans.items()}
        self._composites = [
            CompositeTally(composite, text, parts, composite_seed(fingerprint, text))
            for text, (composite, parts) in composites.items()
        ]

    def add(self, outcomes: Mapping[str, Outcome], cluster: int | None = None) -> None:
        """Add the outcomes of one sample, by metric text; `cluster`: the number of its cluster, if any."""
        for text, tally in self._metrics.items():
            tally.add(outcomes[text], cluster)
        for composite in self._composites:
            composite.add(outcomes, cluster)

    def aggregates(self) -> list[Aggregate]:
        """Return the aggregates of the metrics, then of the composites, in their order."""
        return [each.aggregate() for each in self._metrics.values()] + [each.aggregate() for each in self._composites]


@dataclass(slots=True)
class Tally:
    """Sums up one metric's outcomes."""

    span: tuple[float, float]
    """The metric's range."""
    text: str
    mean: RunningMean = field(init=False)
    grouped: RunningRatio = field(init=False)
    """The same mean for clustered samples."""
    undefined: int = 0
    failed: int = 0
    counts: dict[str, int | None] = field(default_factory=dict)
    open_counts: dict[str, int | None] = field(default_factory=dict)
    """The counts of samples that the judge left open; reported if no sample has a score."""
    shares: RunningShares = field(default_factory=RunningShares)
    reasons: Counter[str] = field(default_factory=Counter)
    flagged: int = 0
    flags: Counter[str] = field(default_factory=Counter)
    averaged: bool = False
    """True if a score averages probabilities of the judge."""

    def __post_init__(self) -> None:
        self.mean = RunningMean(self.span)
        self.grouped = RunningRatio(self.span)

    def add(self, outcome: Outcome, cluster: int | None = None) -> None:
        """Add one outcome; `cluster`: the number of the sample's cluster, if any."""
        match outcome:
            case Score():
                self.mean.add(outcome.value)
                if cluster is not None:
                    self.grouped.add(outcome.value, 1, cluster)
                self.averaged = self.averaged or outcome.averaged
                self.flagged += bool(outcome.flags)
                for flag in dict.fromkeys(outcome.flags):
                    _count(self.flags, flag)
                _add_counts(self.counts, outcome.counts)
                self.shares.add(outcome.counts, cluster)
            case Undefined():
                self.undefined += 1
                _add_counts(self.open_counts, outcome.counts)
                _count(self.reasons, outcome.reason if outcome.probability is None else LEFT_OPEN)
            case Failed():
                self.failed += 1
                _count(self.reasons, outcome.error.message)

    def aggregate(self) -> Aggregate:
        """Return the aggregate of all added outcomes."""
        aggregate = Aggregate(
            metric=self.text,
            mean=None,
            interval=None,
            level=LEVEL,
            bounds=None,
            scored=0,
            undefined=self.undefined,
            failed=self.failed,
            counts=dict(self.counts if self.mean.count else self.open_counts),
            reasons=_most_frequent(self.reasons),
            flagged=self.flagged,
            flags=_most_frequent(self.flags),
            averaged=self.averaged,
        )
        return with_estimate(aggregate, self._estimate(), self.span, shares=self.shares.shares())

    def _estimate(self) -> MeanEstimate:
        """Return the estimate whose mean is Welford's, with and without clusters."""
        scored = self.mean.count
        mean = self.mean.value if scored else None
        if self.grouped.count:
            return replace(self.grouped.estimate(), value=mean)
        return MeanEstimate(mean, self.mean.interval(), scored)


@dataclass(slots=True)
class CompositeTally:
    """Collects the values that a composite combines: one number per sample and part."""

    composite: Composite
    text: str
    parts: tuple[str, ...]
    seed: int
    columns: tuple[array[float], ...] = field(init=False)
    clusters: array[int] = field(default_factory=lambda: array("q"))
    """The number of each sample's cluster; empty if samples are not clustered."""
    lacking: Counter[str] = field(default_factory=Counter)
    undefined: int = 0
    failed: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.columns = tuple(array("d") for _ in self.parts)

    def add(self, outcomes: Mapping[str, Outcome], cluster: int | None = None) -> None:
        """Add the outcomes of one sample, by metric text; `cluster`: the number of its cluster, if any."""
        own = [outcomes[part] for part in self.parts]
        values = [outcome.value for outcome in own if isinstance(outcome, Score)]
        if len(values) == len(own):
            for column, value in zip(self.columns, values, strict=True):
                column.append(value)
            if cluster is not None:
                self.clusters.append(cluster)
            return
        missing = {part: each for part, each in zip(self.parts, own, strict=True) if not isinstance(each, Score)}
        self.lacking.update(missing.keys())
        failed = any(isinstance(outcome, Failed) for outcome in missing.values())
        self.failed += failed
        self.undefined += not failed
        part, outcome = next((p, o) for p, o in missing.items() if isinstance(o, Failed) == failed)
        _count(self.reasons, f"{part} {_why(outcome)}")

    def aggregate(self) -> Aggregate:
        """Return the aggregate of all added outcomes; without a value if any sample lacks a part."""
        scored = len(self.columns[0]) if self.columns else 0
        aggregate = Aggregate(
            metric=self.text,
            mean=None,
            interval=None,
            level=LEVEL,
            bounds=None,
            scored=scored,
            undefined=self.undefined,
            failed=self.failed,
            reasons=_most_frequent(self.reasons),
            note=self._note(scored),
            clusters=len(set(self.clusters)) if self.clusters else None,
            parts=self.parts,
        )
        if self.lacking or not scored:
            return aggregate
        combine = partial(combined, self.composite)
        return with_composite(aggregate, self.columns, combine, seed=self.seed, clusters=self.clusters or None)

    def _note(self, scored: int) -> str:
        """Return the reason for a missing value."""
        if self.lacking:
            counted = "; ".join(f"{count:,} without {part}" for part, count in sorted(self.lacking.items()))
            return f"no value, because it is made of means over all samples and not every sample is scored: {counted}"
        return "no value, because the means of its parts give none" if scored else "no value without a sample"


def _why(outcome: Outcome) -> str:
    if isinstance(outcome, Failed):
        return f"failed: {outcome.error.message}"
    return f"undefined: {outcome.reason}" if isinstance(outcome, Undefined) else "scored"


def _add_counts(sums: dict[str, int | None], counts: Mapping[str, int | None]) -> None:
    for name, count in counts.items():
        known = sums.get(name, 0)
        sums[name] = None if count is None or known is None else known + count


def _count(counter: Counter[str], phrase: str) -> None:
    if phrase in counter or len(counter) < _DISTINCT:
        counter[phrase] += 1


def _most_frequent(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN])


def with_estimate(
    aggregate: Aggregate, estimate: MeanEstimate, span: tuple[float, float], *, shares: Mapping[str, Share]
) -> Aggregate:
    """Return a metric's aggregate with this mean and interval, and with the bounds for the outcomes without a score.

    `aggregate`: provides the numbers of undefined and failed outcomes, and all that does not depend on the mean.
    """
    scored, failed, undefined = estimate.units, aggregate.failed, aggregate.undefined
    limits = bounds(estimate.value, span, scored=scored, failed=failed, undefined=undefined)
    return replace(
        _with_interval(aggregate, estimate.interval),
        mean=estimate.value,
        scored=scored,
        bounds=limits.failed,
        bounds_with_undefined=limits.undefined,
        clusters=estimate.clusters,
        shares=shares,
    )


def with_composite(
    aggregate: Aggregate,
    columns: Sequence[Sequence[float]],
    combine: Callable[[Sequence[float]], float | None],
    *,
    seed: int,
    clusters: Sequence[int] | None,
) -> Aggregate:
    """Return a composite's aggregate with the value of these columns; unchanged if their means give none.

    `columns`: the scores of each part, one for every sample. `clusters`: the number of each sample's cluster.
    """
    samples = len(columns[0])
    value = combine([fsum(column) / samples for column in columns])
    if value is None:
        return aggregate
    return replace(
        _with_interval(aggregate, percentile_interval(columns, combine, seed=seed, clusters=clusters)),
        mean=value,
        scored=samples,
        undefined=0,
        bounds=(value, value),
        bounds_with_undefined=(value, value),
        clusters=None if clusters is None else len(set(clusters)),
    )


def composite_seed(fingerprint: str, text: str) -> int:
    """Return a seed derived from the data and the composite, so that its interval is reproducible."""
    return int.from_bytes(digest_of(fingerprint.encode(), text.encode())[:8], "little")


def combined(composite: Composite, means: Sequence[float]) -> float | None:
    """Return the composite's value from the means of its parts; None also if it is infinite or divides by zero."""
    try:
        value = composite.combine(means)
    except ArithmeticError:
        return None
    return value if value is not None and isfinite(value) else None


def _with_interval(aggregate: Aggregate, found: Interval) -> Aggregate:
    own = replace(aggregate, interval=ends(found), note=found.note, remark=found.remark)
    return replace(own, method=found.method, seed=found.seed)
