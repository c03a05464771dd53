"""Expected structure of the JSON files of a run, so that a damaged file gives an error message and not a bug.

A seal shows that a file is as it was sealed, and anyone can write a seal. So every file is checked field by field:
against the types of `manifest`, and against the shapes here for what stays JSON. Fields that are not
listed are ignored.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, core_schema


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


class Checked:
    """Annotation of a JSON value that must have a shape and is stored as it is."""

    def __init__(self, shape: Any) -> None:  # Any: a type of this module
        self._shape = shape

    def __get_pydantic_core_schema__(self, _: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        def unchanged(value: object, check: core_schema.ValidatorFunctionWrapHandler) -> object:
            check(value)
            return value

        return core_schema.no_info_wrap_validator_function(unchanged, handler.generate_schema(self._shape))


_ABSENT: Any = None  # Any: the default of fields of every type
"""The default of a field that a file may lack; a default is not checked."""


class _Shape(BaseModel):
    """An object with the declared fields."""

    model_config = ConfigDict(strict=True, defer_build=True)


class _Unread(_Shape):
    judge: str
    samples: Whole
    first: list[str]
    languages: dict[str, Whole]


class Judge(_Shape):
    """A judge of a manifest."""

    name: str = _ABSENT
    fingerprint: dict[str, Any] = _ABSENT  # Any: JSON of the judge
    rates: str | None = _ABSENT
    weak: list[str] = _ABSENT
    weak_kinds: list[str] = _ABSENT
    unread: dict[str, _Unread] = _ABSENT


class Scale(_Shape):
    """The range and direction of a metric."""

    range: Annotated[list[Number | None], Field(min_length=2, max_length=2)]
    higher_is_better: bool


class Shard(_Shape):
    """The shard that a run evaluates."""

    index: Whole
    of: Whole
    samples: Whole
    fingerprint: str


class Usage(_Shape):
    """The requests and cost of a run."""

    requests: Whole = _ABSENT
    cached: Whole = _ABSENT
    input_tokens: Whole | None = _ABSENT
    output_tokens: Whole | None = _ABSENT
    cached_tokens: Whole = _ABSENT
    cost_usd: Amount | None = _ABSENT
    seconds: Amount = _ABSENT
    adaptations: dict[str, dict[str, str]] | None = _ABSENT
    stopped: str | None = _ABSENT
    unanswered: Whole = _ABSENT
    estimated_usd: Amount | None = _ABSENT
    unanswered_usd: Amount = _ABSENT
    raise_to: dict[str, Amount] | None = _ABSENT


class _Evidence(_Shape):
    about: str
    index: int
    kind: str
    verdict: dict[str, Any]  # Any: the fields of a verdict
    question: str | None = _ABSENT
    text: str = _ABSENT
    value: Number = _ABSENT


class _Error(_Shape):
    kind: str
    message: str


class Outcome(_Shape):
    """An `OutcomeRecord`."""

    sample: str
    metric: str
    outcome: Literal["score", "undefined", "failed"]
    value: Number = _ABSENT
    counts: Counts = _ABSENT
    evidence: list[_Evidence] = _ABSENT
    flags: list[str] = _ABSENT
    averaged: bool = _ABSENT
    draws: list[Number] = _ABSENT
    reason: str = _ABSENT
    error: _Error = _ABSENT
    trail: list[str] = _ABSENT


def parsed(kind: Any, content: bytes) -> Any:  # Any: a type, and an object of it
    """Return an object of this type from its JSON. Raises ValueError that names the first wrong value."""
    try:
        return _adapter(kind).validate_json(content, strict=True)
    except ValidationError as error:
        raise ValueError(_first(error)) from None


def check(kind: Any, value: object) -> None:  # Any: a type
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
