"""Answers of judges: one frozen verdict type per kind of question, and `Failure` if there is no verdict.

Indices are 0-based everywhere in Python; rubrics and replies number from 1. `probability` is the judge's own
probability of "yes" (relevant, supported, sufficient, ...), in [0, 1]; None if the judge gives none.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import TypeAdapter


class FailureKind(StrEnum):
    """Reason why a question has no verdict."""

    UNREADABLE = "unreadable"
    """The reply could not be parsed as a verdict, after every re-ask."""
    TRUNCATED = "truncated"
    """The reply was truncated by the length limit, also with the larger limit."""
    REFUSED = "refused"
    """The judge declined to answer."""
    TEMPORARY = "temporary"
    """The provider failed for a temporary reason, after every retry."""
    PERMANENT = "permanent"
    """The provider rejects this request and would reject it again."""
    BROKEN = "broken"
    """A metric or a judge raised an unexpected error: a bug in it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A question without a verdict, and the reason. A value: it is stored and reported, never raised by a driver."""

    kind: FailureKind
    message: str

    def to_fields(self) -> dict[str, str]:
        """Return this failure as a JSON-able mapping of its fields."""
        return {"kind": str(self.kind), "message": self.message}  # a custom judge may set a plain text

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:  # Any: JSON
        """Return the failure that `to_fields` wrote. Raises KeyError or ValueError for anything else."""
        return cls(FailureKind(fields["kind"]), fields["message"])


class SupportLabel(StrEnum):
    """Relation of contexts to a statement."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_STATED = "not_stated"
    UNSUPPORTED = "unsupported"
    """Not supported, from a judge that does not distinguish contradicted from not stated."""


class SufficiencyLabel(StrEnum):
    """Extent to which the contexts together contain the answer to the user input."""

    SUFFICIENT = "sufficient"
    PARTLY = "partly"
    INSUFFICIENT = "insufficient"


class _Written:
    """Slot for the cached JSON of a verdict. It is not a field, so it affects neither equality nor keys."""

    __slots__ = ("_json",)
    _json: str


@dataclass(frozen=True, slots=True)
class Verdict(_Written):
    """Base of all verdict types."""

    def to_json(self) -> str:
        """Return this verdict as compact JSON, its fields in order; equal verdicts give equal bytes. The text is
        cached.
        """
        try:
            return self._json
        except AttributeError:
            text = _adapter(type(self)).serializer.to_json(self).decode()
            object.__setattr__(self, "_json", text)
            return text

    def to_fields(self) -> dict[str, Any]:  # Any: the JSON-able fields of any verdict type
        """Return this verdict as a JSON-able mapping of its fields."""
        fields: dict[str, Any] = _adapter(type(self)).dump_python(self, mode="json")
        return fields

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the verdict that `to_json` wrote. Raises pydantic's ValidationError for anything else."""
        verdict: Self = _adapter(cls).validator.validate_json(text)
        return verdict

    @classmethod
    def from_fields(cls, fields: object) -> Self:
        """Return a verdict from a mapping of its fields, validated. Raises pydantic's ValidationError."""
        verdict: Self = _adapter(cls).validate_python(fields)
        return verdict


@dataclass(frozen=True, slots=True)
class RelevanceVerdict(Verdict):
    """Relevance grade of one context for a user input."""

    grade: int
    """0 nothing useful · 1 part of the answer · 2 the whole answer."""
    evidence: tuple[int, ...] = ()
    """Indices of the sentences that justify the grade; empty exactly if the grade is 0."""
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class UsefulnessVerdict(Verdict):
    """Usefulness of one context for arriving at a reference answer."""

    useful: bool
    evidence: tuple[int, ...] = ()
    """Indices of the useful sentences; empty exactly if the context is not useful."""
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim that can be understood alone, and the index of the sentence that makes it."""

    text: str
    sentence: int


@dataclass(frozen=True, slots=True)
class StatementsVerdict(Verdict):
    """The standalone statements that a text makes; empty if it claims nothing."""

    statements: tuple[Statement, ...]
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class SupportVerdict(Verdict):
    """Support of contexts for a statement, with the contexts concerned."""

    label: SupportLabel
    evidence: tuple[int, ...] = ()
    """Indices of every context that supports (or contradicts) the statement."""
    reason: str = ""
    probability: float | None = None
    tells_contradicted: bool = True
    """False for a judge that never answers `contradicted`. Its verdicts do not show that nothing is contradicted."""

    @property
    def supported(self) -> bool:
        """True if the label is `supported`."""
        return self.label is SupportLabel.SUPPORTED


@dataclass(frozen=True, slots=True)
class SufficiencyVerdict(Verdict):
    """Sufficiency of all contexts together for an answer."""

    label: SufficiencyLabel
    missing: str = ""
    """Missing information, in words; empty if sufficient or if the judge does not name it."""
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class AddressesVerdict(Verdict):
    """Verdict on a statement of the response: does it address the user input?"""

    addresses: bool
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class NoncommittalVerdict(Verdict):
    """Verdict on a response: does it evade or decline to answer?"""

    noncommittal: bool
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class PartsVerdict(Verdict):
    """The parts of a user input, each as a request that can be understood alone; empty if it asks for nothing."""

    parts: tuple[str, ...]
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class AnsweredVerdict(Verdict):
    """Verdict on a response: does it answer one part of the user input?"""

    answered: bool
    evidence: tuple[int, ...] = ()
    """Indices of the sentences that answer it; empty exactly if it is not answered."""
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that a text names, in the text's own words, and the index of its sentence."""

    text: str
    sentence: int


@dataclass(frozen=True, slots=True)
class EntitiesVerdict(Verdict):
    """The entities that a text names; empty if it names none."""

    entities: tuple[Entity, ...]
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class MentionsVerdict(Verdict):
    """Verdict on contexts: do they mention an entity, and which of them do?"""

    mentioned: bool
    evidence: tuple[int, ...] = ()
    """Indices of every context that mentions it; empty exactly if none does."""
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class ChoiceVerdict(Verdict):
    """One label of the question's own list."""

    label: str
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class CompletionVerdict(Verdict):
    """A reply as free text, for metrics that parse it themselves."""

    text: str
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class TextsVerdict(Verdict):
    """The pieces of a text, in order, unchanged or as the splitter trims them."""

    texts: tuple[str, ...]
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class MatrixVerdict(Verdict):
    """A matrix of float32 numbers, stored as little-endian bytes in row order so that a replay is bit-equal."""

    rows: int
    columns: int
    data: bytes
    probability: float | None = None

    @classmethod
    def of(cls, rows: list[list[float]]) -> Self:
        """Return the matrix with these rows. Raises ValueError unless all rows have the same length."""
        columns = len(rows[0]) if rows else 0
        flat = [number for row in rows for number in row]
        if len(flat) != len(rows) * columns:
            raise ValueError("every row of a matrix needs the same number of columns")
        return cls(rows=len(rows), columns=columns, data=struct.pack(f"<{len(flat)}f", *flat))

    def row(self, index: int) -> tuple[float, ...]:
        """Return row `index` as Python floats."""
        size = self.columns * 4
        return struct.unpack(f"<{self.columns}f", self.data[index * size : (index + 1) * size])


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}  # Any: one adapter for each verdict type, built once


def _adapter(verdict: type) -> TypeAdapter[Any]:  # Any: as above
    found = _ADAPTERS.get(verdict)
    if found is None:
        from pydantic import ConfigDict, TypeAdapter

        config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", allow_inf_nan=False)
        verdict.__pydantic_config__ = config  # type: ignore[attr-defined]  # pydantic reads its config from this attribute of a dataclass
        found = _ADAPTERS[verdict] = TypeAdapter(verdict)
    return found
