"""Slices: the samples of a run by the value of one field, each with its faults and means.

A field is a key of the metadata, `language`, `length` (of the response, in words) or `contexts` (how many).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from merilo.data.language import identify_language
from merilo.errors import UsageError
from merilo.judging.json_types import compact
from merilo.results.contents import stored_samples
from merilo.results.estimate import Caveat, Estimate, Missing, basis_of
from merilo.results.records import first_of, grouped
from merilo.stats.intervals import LEVEL, t_quantile
from merilo.stats.means import MeanEstimate, mean_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from merilo.results.contents import Record
    from merilo.results.faults import Faults
    from merilo.results.scores import RunScores
    from merilo.runs.run import Run, SampleResult

MIN_SAMPLES: Final = 10
"""Scored samples from which a slice has intervals."""
MIN_STARRED: Final = 20
"""Scored samples in a slice and in the rest from which a difference is shown; with fewer, more than 5 % of equal slices
had one in simulations."""
DIFFERS: Final = Caveat("differs", "* differs from all other samples (95 %, corrected for the number of values)")
FEW: Final = Caveat("few", f"fewer than {MIN_SAMPLES} scored samples: no interval")
MAX_VALUES: Final = 30
NO_VALUE: Final = "(none)"
"""The slice of samples without the field."""
_NAMED: Final = 10
_LENGTHS: Final = ((20, "up to 20 words"), (60, "21 to 60 words"))


def _length(sample: Record) -> str | None:
    if "response" not in sample:
        return None
    words = len(sample["response"].split())
    return next((name for most, name in _LENGTHS if words <= most), "over 60 words")


_FIELDS: Final[Mapping[str, Callable[[Record], str | None]]] = {
    "language": lambda sample: sample.get("language") or identify_language(sample.get("user_input", "")),
    "length": _length,
    "contexts": lambda sample: str(len(found)) if (found := sample.get("retrieved_contexts")) is not None else None,
}


def _value(sample: Record, field: str) -> str | None:
    """Return the value of a field as text; a key of the metadata hides another field of the same name."""
    metadata = sample.get("metadata", {})
    if field not in metadata:
        return _FIELDS[field](sample) if field in _FIELDS else None
    found = metadata[field]
    return found if isinstance(found, str) or found is None else compact(found)


def values_by_field(run: Run, *, wanted: str | None = None) -> dict[str, dict[str, str]]:
    """Return by field the value of each sample that has one (sample id → value), for fields with 2 to 30 values.

    Fields of the metadata come first, those with few values in front. `wanted`: this field only, whatever its values.
    """
    found: dict[str, dict[str, str]] = {}
    known: dict[str, set[str]] = {}
    done = {each["sample"] for each in run.brief_records([*run.manifest.metrics][:1])}
    for sample in stored_samples(run):
        own = [name for name in sample.get("metadata", ()) if name not in run.manifest.measures]
        for name in (*own, *_FIELDS) if wanted is None else (wanted,):
            values = known.setdefault(name, set())
            if sample["id"] in done and (wanted or len(values) <= MAX_VALUES) and (value := _value(sample, name)):
                values.add(value)
                found.setdefault(name, {})[sample["id"]] = value
    sizes = {field: len(known[field]) + (len(own) < len(done)) for field, own in found.items()}
    fitting = [field for field in found if wanted or 2 <= sizes[field] <= MAX_VALUES]
    return {field: found[field] for field in sorted(fitting, key=lambda field: (field in _FIELDS, sizes[field]))}


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """The samples with one value of a field."""

    run: Run = field(repr=False)
    value: str
    samples: tuple[str, ...]
    """Their ids, in dataset order."""
    faults: Faults
    means: Mapping[str, Estimate]
    """Metric → its mean; without an interval for fewer than 10 scored samples."""

    @property
    def differs(self) -> frozenset[str]:
        """The metrics whose mean differs from that of all other samples."""
        return frozenset(metric for metric, mean in self.means.items() if mean.caveat("differs"))

    def __iter__(self) -> Iterator[SampleResult]:
        return self.run.read_samples(frozenset(self.samples))

    def __len__(self) -> int:
        return len(self.samples)


def groups_of(run: Run, field: str) -> dict[str, list[str]]:
    """Return the ids of the samples of each slice, the largest slice first; samples without a value are last.

    Raises UsageError if the field has fewer than 2 or more than 30 values, naming the fields that can be used.
    """
    values = values_by_field(run, wanted=field).get(field, {})
    samples = (each["sample"] for each in run.brief_records([*run.manifest.metrics][:1]))
    groups = grouped((values.get(sample, NO_VALUE), sample) for sample in samples)
    if not 2 <= len(groups) <= MAX_VALUES:
        have = f"has {len(groups):,} {'value' if len(groups) == 1 else 'values'}" if values else "is in no sample"
        named = first_of([*map(repr, values_by_field(run))], _NAMED) or "none"
        raise UsageError(f"{field!r} {have}. A slice needs 2 to {MAX_VALUES}; fields that have them: {named}.")
    return dict(sorted(groups.items(), key=lambda item: (item[0] == NO_VALUE, -len(item[1]), item[0])))


def sliced(run: Run, scores: RunScores, groups: Mapping[str, Sequence[str]], faults: Faults) -> dict[str, Slice]:
    """Return the slices with the judge's own means. `scores`: of all samples of the run."""
    places = {sample: place for place, sample in enumerate(scores.ids)}
    # Corrected for the slices and for the two sides of a limit: Welch alone errs in 7 % of small binary slices.
    level = 1 - (1 - LEVEL) / (2 * len(groups))
    found: dict[str, Slice] = {}
    for value, ids in groups.items():
        inside = [places[sample] for sample in ids]
        here, rest = scores.at(inside), scores.at(sorted({*places.values()}.difference(inside)))
        means = {
            metric: mean_estimate(metric, mean, [DIFFERS] * _differs(mean, here, rest, metric, level))
            for metric in scores.columns
            for mean in [mean_of(here, metric)]
        }
        found[value] = Slice(run, value, tuple(ids), faults.among(ids), means)
    return found


def mean_estimate(metric: str, mean: MeanEstimate, caveats: Sequence[Caveat], *, corrected: bool = False) -> Estimate:
    """Return a mean over the scored samples of a slice with its caveats."""
    few = [FEW] if mean.units < MIN_SAMPLES else []
    basis = basis_of(metric, corrected=corrected)
    return Estimate(mean.value, mean.interval.ends, mean.units, Missing(), basis, (*caveats, *few))


def mean_of(scores: RunScores, metric: str, level: float = LEVEL) -> MeanEstimate:
    """Return the mean of the scored samples; without an interval for fewer than 10."""
    column = scores.columns[metric]
    there = column.scored.tolist()
    names = None if scores.clusters is None else [each for each, yes in zip(scores.clusters, there, strict=True) if yes]
    found = mean_interval(column.values[column.scored], column.span, clusters=names, level=level)
    if found.units >= MIN_SAMPLES:
        return found
    return replace(found, interval=replace(found.interval, ends=None, note=f"fewer than {MIN_SAMPLES} scored samples"))


def _differs(one: MeanEstimate, here: RunScores, rest: RunScores, metric: str, level: float) -> bool:
    """Return True if the means of two groups of samples differ.

    Their difference must be outside Welch's interval, and each mean outside the other's interval; all at `level`.
    """
    column = rest.columns[metric]
    others = column.values[column.scored]
    if min(one.units, len(others)) < MIN_STARRED or one.value is None or _near(one, others):
        return False
    other = mean_of(rest, metric)
    if one.interval.ends is None or other.interval.ends is None or other.value is None:
        return False
    spreads = [(each.error, each.freedom) for each in (one, other) if each.error and each.freedom]
    variance = sum(error**2 for error, _ in spreads)
    if variance:
        freedom = variance**2 / sum(error**4 / freedom for error, freedom in spreads)
        if abs(one.value - other.value) <= t_quantile(freedom, level) * variance**0.5:
            return False
    pairs = ((mean_of(here, metric, level), other.value), (mean_of(rest, metric, level), one.value))
    return all(own.interval.ends and not own.interval.ends[0] <= value <= own.interval.ends[1] for own, value in pairs)


def _near(one: MeanEstimate, others: NDArray[np.float64]) -> bool:
    """Return True if two means are so near that no test needs to be made: exact limits take milliseconds."""
    error = (one.error or 0.0) ** 2 + float(others.var()) / len(others)
    return bool(abs((one.value or 0.0) - float(others.mean())) <= error**0.5)
