"""Expected structure of the JSON files of a run, so that a damaged file gives an error message and not a bug.

A seal shows that a file is as it was sealed, and anyone can write a seal. So every file is checked field by field. A
check returns the path of the first invalid value, or "" if all are valid. Fields that are not listed are ignored.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from merilo.judging.json_types import as_list, as_object

WRONG: Final = "."
"""The result of a check if the value itself is invalid, and not a value inside it."""

_Whole = Annotated[int, Field(ge=0)]
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Amount = Annotated[float, Field(allow_inf_nan=False, ge=0)]
_Bounds = Annotated[list[_Number | None], Field(min_length=2, max_length=2)] | None
_Counts = dict[str, _Whole | None]


def _ordered(ends: list[float]) -> list[float]:
    if ends[0] > ends[1]:
        raise ValueError("the lower end is above the upper one")
    return ends


_Interval = Annotated[list[_Number], Field(min_length=2, max_length=2), AfterValidator(_ordered)]


_ABSENT: Final[Any] = None  # Any: the default of fields of every type
"""The default of a field that a file may lack; a default is not checked."""


class _Shape(BaseModel):
    """An object with the declared fields."""

    model_config = ConfigDict(strict=True, defer_build=True)


class _Share(_Shape):
    value: _Number
    interval: _Interval | None
    note: str = _ABSENT
    remark: str = _ABSENT
    method: str | None = _ABSENT


class _Aggregate(_Shape):
    metric: str
    mean: _Number | None
    interval: _Interval | None
    level: _Amount
    bounds: _Bounds
    scored: _Whole
    undefined: _Whole
    failed: _Whole
    counts: _Counts = _ABSENT
    reasons: dict[str, _Whole] = _ABSENT
    note: str = _ABSENT
    flagged: _Whole = _ABSENT
    averaged: bool = _ABSENT
    flags: dict[str, _Whole] = _ABSENT
    parts: list[str] = _ABSENT
    bounds_with_undefined: _Bounds = _ABSENT
    remark: str = _ABSENT
    method: str | None = _ABSENT
    seed: _Whole | None = _ABSENT
    clusters: _Whole | None = _ABSENT
    shares: dict[str, _Share] = _ABSENT


class _Gate(_Shape):
    metric: str
    asked: _Number
    higher_is_better: bool
    verdict: Literal["pass", "fail", "cannot tell"]
    samples: _Whole
    lower: _Number | None
    upper: _Number | None
    level: _Number
    kind: Literal["minimum", "drop"]


class _UntilDecided(_Shape):
    decided: bool
    samples: _Whole
    saved: _Whole
    gates: list[_Gate]
    note: str


class _Summary(_Shape):
    complete: bool
    samples: _Whole
    metrics: list[_Aggregate]
    until_decided: _UntilDecided | None = _ABSENT


class _Usage(_Shape):
    requests: _Whole = _ABSENT
    cached: _Whole = _ABSENT
    input_tokens: _Whole | None = _ABSENT
    output_tokens: _Whole | None = _ABSENT
    cost_usd: _Amount | None = _ABSENT
    seconds: _Amount = _ABSENT
    adaptations: dict[str, dict[str, str]] | None = _ABSENT
    stopped: str | None = _ABSENT
    unanswered: _Whole = _ABSENT
    estimated_usd: _Amount | None = _ABSENT
    unanswered_usd: _Amount = _ABSENT
    raise_to: dict[str, _Amount] | None = _ABSENT


class _Unread(_Shape):
    judge: str
    samples: _Whole
    first: list[str]
    languages: dict[str, _Whole]


class _Judge(_Shape):
    name: str = _ABSENT
    fingerprint: dict[str, Any] = _ABSENT  # Any: JSON of the judge
    rates: str | None = _ABSENT
    weak: list[str] = _ABSENT
    weak_kinds: list[str] = _ABSENT
    unread: dict[str, _Unread] = _ABSENT


class _Until(_Shape):
    minimums: dict[str, _Number]
    level: _Number
    undefined: Literal["drop", "worst"] | None
    seed: _Whole
    drops: dict[str, _Number] = _ABSENT
    strict: bool = _ABSENT
    cluster: str | None = _ABSENT
    looks: list[_Whole] = _ABSENT
    sizes: list[_Whole] = _ABSENT
    baseline: dict[str, list[_Number | Literal["undefined", "failed"]]] = _ABSENT


class _Scale(_Shape):
    range: Annotated[list[_Number | None], Field(min_length=2, max_length=2)]
    higher_is_better: bool


class _Shard(_Shape):
    index: _Whole
    of: _Whole
    samples: _Whole
    fingerprint: str


class _Manifest(_Shape):
    merilo: str
    data: str
    fingerprint: str
    samples: _Whole
    skipped: list[str]
    metrics: dict[str, _Whole]
    left_out: dict[str, str]
    judges: dict[str, _Judge]
    splitter: str
    notes: list[str]
    format: _Whole
    language: str | None = _ABSENT
    composites: dict[str, _Whole] = _ABSENT
    rubrics: dict[str, str] = _ABSENT
    scales: dict[str, _Scale] = _ABSENT
    cluster: str | None = _ABSENT
    origin: str | None = _ABSENT
    until: _Until | None = _ABSENT
    draws: dict[str, _Whole] = _ABSENT
    source: str = _ABSENT
    definitions: dict[str, str] = _ABSENT
    wordings: dict[str, str] = _ABSENT
    undefined: dict[str, str] = _ABSENT
    shard: _Shard = _ABSENT


class _Evidence(_Shape):
    about: str
    index: int
    kind: str
    verdict: dict[str, Any]  # Any: the fields of a verdict
    question: str | None = _ABSENT
    text: str = _ABSENT
    value: _Number = _ABSENT


class _Error(_Shape):
    kind: str
    message: str


class _Outcome(_Shape):
    sample: str
    metric: str
    outcome: Literal["score", "undefined", "failed"]
    value: _Number = _ABSENT
    counts: _Counts = _ABSENT
    evidence: list[_Evidence] = _ABSENT
    flags: list[str] = _ABSENT
    averaged: bool = _ABSENT
    draws: list[_Number] = _ABSENT
    reason: str = _ABSENT
    error: _Error = _ABSENT
    trail: list[str] = _ABSENT


def invalid_outcome(value: object) -> str:
    """Check an outcome."""
    return _invalid(_Outcome, value)


def invalid_manifest(value: object) -> str:
    """Check a manifest."""
    return _invalid(_Manifest, value)


def invalid_summary(value: object) -> str:
    """Check a summary."""
    return _invalid(_Summary, value)


def invalid_usage(value: object) -> str:
    """Check a usage."""
    return _invalid(_Usage, value)


def invalid_counts(value: object) -> str:
    """Check the counts of a score."""
    return _invalid(_Counts, value)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:  # Any: a type of this module
    return TypeAdapter(kind)


def _invalid(kind: Any, value: object) -> str:  # Any: as above
    try:
        _adapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        return _path(error.errors(include_url=False, include_context=False, include_input=False)[0]["loc"], value)
    return ""


def _path(place: tuple[str | int, ...], value: object) -> str:
    """Return where an error is, such as `metrics[0].mean`; a step that only names an alternative type is left out."""
    found = ""
    for step in place:
        if isinstance(step, int) and (items := as_list(value)) is not None:
            found += f"[{step}]"
            value = items[step] if step < len(items) else None
        elif (here := as_object(value)) is not None:
            found += f".{step}"
            value = here.get(str(step))
    return found.lstrip(".") or WRONG
