"""Types of the files that a run records about itself, `manifest.json` and `summary.json`, and their reading.

A file is checked against the types here, so that one of another program gives an error message and not a bug. Fields
that are not listed are ignored. The objects of judges, scales, shards and usage are trusted: the seal ties them to the
run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from merilo.data.measures import MeasureColumn
from merilo.errors import RunError
from merilo.judging.json_types import as_list, as_object, plain
from merilo.runs.database import FORMAT
from merilo.runs.files import damaged_error, other_format_error, read_json_bytes, unwritten_error

if TYPE_CHECKING:
    from pathlib import Path

_CODE: Final = re.compile(r"\.py\s*:\s*[^\W\d]")
"""A metric such as `file.py:Name`. A run has the plain name of a metric; a text with a file would be run as code."""


def _ordered(ends: tuple[float, float]) -> tuple[float, float]:
    if ends[0] > ends[1]:
        raise ValueError("the lower end is above the upper one")
    return ends


Whole = Annotated[int, Field(ge=0)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Amount = Annotated[float, Field(allow_inf_nan=False, ge=0)]
Interval = Annotated[tuple[Number, Number], AfterValidator(_ordered)]
Counts = dict[str, Whole | None]
Bounds = tuple[Number | None, Number | None]
_Objects = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Share:
    """A ratio of two counts summed over the scored samples, such as relevant contexts to all contexts."""

    value: Number
    interval: Interval | None
    """Confidence interval over questions or clusters, at the aggregate's level; None if it cannot be computed."""
    note: str = ""
    """The reason why there is no interval; empty if there is one."""
    remark: str = ""
    """A caveat about the interval; often empty."""
    method: str | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One metric over the samples of a run."""

    metric: str
    mean: Number | None
    """Mean over the scored samples; None if none was scored."""
    interval: Interval | None
    """Confidence interval of the mean over questions (or clusters of them); None if it cannot be computed (see
    `note`). It covers the sampling of questions, not judge error."""
    level: Amount
    """The interval's confidence level, e.g. 0.95."""
    bounds: Bounds | None
    """The mean if all failed samples had the worst, or the best, value of the range. None for an infinite end."""
    scored: Whole
    undefined: Whole
    failed: Whole
    counts: Mapping[str, Whole | None] = field(default_factory=dict[str, int | None])
    """Sums of the scores' counts (of open verdicts without a score); None if some verdict cannot provide a count."""
    reasons: Mapping[str, Whole] = field(default_factory=dict[str, int])
    """Reasons why samples are undefined or failed → number of samples; the most frequent reasons."""
    note: str = ""
    """The reason why there is no interval; empty if there is one."""
    flagged: Whole = 0
    """Scored samples with a part that could not be parsed."""
    flags: Mapping[str, Whole] = field(default_factory=dict[str, int])
    """Kind of that part → number of samples; the most frequent kinds."""
    parts: tuple[str, ...] = ()
    """The metrics whose means a composite combines (a composite has no value per sample); otherwise empty."""
    bounds_with_undefined: Bounds | None = None
    """Like `bounds`, but including the undefined samples."""
    remark: str = ""
    """A caveat about the interval; often empty."""
    method: str | None = None
    """Method of the interval (design/statistics.md); None if there is none."""
    seed: Whole | None = None
    """Seed of the interval's resamples; None if there are none."""
    clusters: Whole | None = None
    """Number of clusters of the scored samples; None if samples are not clustered."""
    shares: Mapping[str, Share] = field(default_factory=dict[str, Share])
    """Ratios of contexts, statements and the like by `part/whole`, such as `relevant/contexts`."""
    averaged: bool = False
    """True if a score averages probabilities of the judge instead of counting its decisions."""

    def to_fields(self) -> dict[str, Any]:  # Any: JSON
        """Return this aggregate as it is stored. `averaged` is omitted unless it is true."""
        fields = asdict(self)
        if not self.averaged:
            del fields["averaged"]
        return fields


@dataclass(frozen=True, slots=True)
class Summary:
    """The content of a run's `summary.json`."""

    complete: bool
    samples: Whole
    metrics: tuple[Aggregate, ...]
    """In the order of the metrics, then of the composites."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Data, metrics and judges of an evaluation; equal input gives equal bytes."""

    merilo: str
    data: str
    fingerprint: str
    """Digest of the evaluated samples, in order."""
    samples: Whole
    skipped: tuple[str, ...]
    """One sentence for each skipped record."""
    metrics: Mapping[str, Whole]
    """Text of each metric → its version, in the order given, including the parts of composites."""
    left_out: Mapping[str, str]
    """Metrics that could not be computed → why."""
    judges: _Objects
    """Role → name and fingerprint of the judge."""
    splitter: str
    language: str | None = None
    notes: tuple[str, ...] = ()
    composites: Mapping[str, Whole] = field(default_factory=dict[str, int])
    """Text of each composite → its version, in the order given."""
    rubrics: Mapping[str, str] = field(default_factory=dict[str, str])
    """Kind of question that the metrics may ask → version of its rubrics for language models."""
    scales: _Objects = field(default_factory=dict[str, "Mapping[str, object]"])
    """Text of each metric → `Scale.record()`; empty for a run without outcomes yet."""
    cluster: str | None = None
    """Field or metadata key whose equal values put samples in one cluster; None if samples are not clustered."""
    origin: str | None = None
    """Source of the scores if merilo did not compute them; otherwise None."""
    format: Whole = FORMAT
    draws: Mapping[str, Whole] = field(default_factory=dict[str, int])
    """Text of each metric that asks its judge several times → number of draws; empty if all ask once."""
    source: str = ""
    """The package and release that computed imported scores, as the user stated it at the import; otherwise empty."""
    definitions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Text of an imported metric → the published definition that computes it, by `source`; otherwise empty."""
    wordings: Mapping[str, str] = field(default_factory=dict[str, str])
    """Text of each metric whose requests an installed package worded → that package and its release."""
    shard: Mapping[str, object] | None = None
    """For one of several runs over the same data: `index` (from 1) and `of`, and the number and the fingerprint of all
    `samples` of the data. `samples` and `fingerprint` of the manifest are those of the shard. None: all samples."""

    measures: Mapping[str, MeasureColumn] = field(default_factory=dict[str, MeasureColumn])
    """Key of the samples' metadata → the measure that it holds."""
    undefined: Mapping[str, str] = field(default_factory=dict[str, str])
    """Text of each metric that no sample of the data shows (`ShownInRun`) → why it is undefined for all of them."""

    def to_fields(self) -> dict[str, Any]:  # Any: JSON
        """Return this manifest as it is stored. Rare fields are omitted if they are empty."""
        fields = asdict(self)
        for name in ("draws", "source", "definitions", "wordings", "shard", "measures", "undefined"):
            if not fields[name]:
                del fields[name]
        return fields

    def differences(self, other: Manifest) -> tuple[str, ...]:
        """Return the fields that move numbers and differ between two manifests; empty if there are none."""
        names = "fingerprint metrics composites judges splitter language cluster draws wordings shard".split()
        names += ["rubrics"] if _has_language_model(self.judges) else []  # other judges read no rubric
        mine, theirs = asdict(self), asdict(other)
        for fields in (mine, theirs):  # notes on agreement and languages move no number
            fields["judges"] = {
                role: {name: value for name, value in each.items() if name not in _AGREEMENT}
                for role, each in fields["judges"].items()
            }
        return tuple(name for name in names if plain(mine[name]) != plain(theirs[name]))


_AGREEMENT: Final = frozenset({"rates", "weak", "weak_kinds", "unread"})


def _has_language_model(judges: object) -> bool:
    """Return True if one of the recorded judges, or a part of one, asks through rubrics."""
    found = as_object(judges)
    if found is not None:
        return found.get("judge") == "llm" or any(map(_has_language_model, found.values()))
    return any(map(_has_language_model, as_list(judges) or ()))


def read_manifest(path: Path) -> Manifest:
    """Return the manifest in a file, without checking the seal. Raises RunError."""
    check_format(path)
    found: Manifest = _read(path, Manifest)
    if code := next(filter(_CODE.search, [*found.metrics, *found.composites, *found.definitions.values()]), None):
        raise RunError(f"{path} is damaged (the metric {code!r} names a file of code). Start a new run.")
    return found


def read_summary(path: Path) -> Summary:
    """Return the summary in a file, without checking the seal. Raises RunError."""
    found: Summary = _read(path, Summary)
    return found


def read_usage(path: Path) -> dict[str, Any]:  # Any: numbers and nulls
    """Return the content of `usage.json`, with its seal. Raises RunError."""
    return dict(_read(path, dict[str, Any]))


def check_format(path: Path) -> None:
    """Raise RunError for a manifest of another format, whose seal may have another format too."""
    with suppress(OSError, ValueError, RecursionError, AttributeError):
        found: Any = json.loads(read_json_bytes(path)).get("format")  # Any: JSON of unknown shape
        if found != FORMAT:
            raise other_format_error(path.parent, found)


def parsed(kind: Any, content: bytes) -> Any:  # Any: a type, and an object of it
    """Return an object of this type from its JSON. Raises ValueError that names the first wrong value."""
    try:
        return _adapter(kind).validate_json(content, strict=True)
    except ValidationError as error:
        raise ValueError(_first(error)) from None


def check_shape(kind: Any, value: object) -> None:  # Any: a type
    """Raise ValueError that names the first wrong value, unless the JSON value is of this type."""
    try:
        _adapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        raise ValueError(_first(error)) from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:  # Any: a type
    return TypeAdapter(kind)


def _first(error: ValidationError) -> str:
    """Return the message for the first error; it names the place, such as `metrics[0].mean`."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"]).lstrip(".")
    return f"{place} is missing or has a wrong value" if place else f"it has the wrong form: {first['msg']}"


def _read(path: Path, kind: Any) -> Any:  # Any: one of the types above
    try:
        return parsed(kind, read_json_bytes(path))
    except FileNotFoundError:
        raise unwritten_error(path) from None
    except (OSError, ValueError) as error:
        raise damaged_error(path, error) from error
