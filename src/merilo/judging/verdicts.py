"""What a judge may answer: one frozen type per kind of question, and `Failure` where there is no answer.

Indices are 0-based everywhere in Python; rubrics and replies number from 1.
`probability` is the judge's own probability that its verdict is right for "yes" (relevant, supported,
sufficient, ...), in [0, 1]; None when the judge gives none.
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
    """Why a question has no verdict."""

    UNREADABLE = "unreadable"
    """The reply could not be read as a verdict, after every re-ask."""
    TRUNCATED = "truncated"
    """The reply was cut off by the length limit, also with the larger one."""
    REFUSED = "refused"
    """The judge declined to answer."""
    TEMPORARY = "temporary"
    """The provider failed in a way that may pass, after every retry."""
    PERMANENT = "permanent"
    """The provider rejects this request and would reject it again."""
    BROKEN = "broken"
    """A metric or a judge raised an error of its own: a bug in it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A question that got no verdict, and why. A value: it is stored and reported, never raised by a driver."""

    kind: FailureKind
    message: str

    def to_fields(self) -> dict[str, str]:
        """This failure as a JSON-able mapping of its fields."""
        return {"kind": str(self.kind), "message": self.message}  # a judge of one's own may give a plain text

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:  # Any: JSON
        """The failure that `to_fields` wrote. Raises KeyError or ValueError on anything else."""
        return cls(FailureKind(fields["kind"]), fields["message"])


class SupportLabel(StrEnum):
    """Whether contexts support a statement."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_STATED = "not_stated"
    UNSUPPORTED = "unsupported"
    """Not supported, by a judge that does not tell contradicted from not stated."""


class SufficiencyLabel(StrEnum):
    """Whether the contexts together hold enough to answer the user input."""

    SUFFICIENT = "sufficient"
    PARTLY = "partly"
    INSUFFICIENT = "insufficient"


class _Written:
    """Room for a text that is made once; no field, so that neither equality nor any key knows of it."""

    __slots__ = ("_json",)
    _json: str


@dataclass(frozen=True, slots=True)
class Verdict(_Written):
    """Base of all verdict types."""

    def to_json(self) -> str:
        """This verdict as compact JSON, its fields in order; equal verdicts give equal bytes. Written once."""
        try:
            return self._json
        except AttributeError:
            text = _adapter(type(self)).serializer.to_json(self).decode()
            object.__setattr__(self, "_json", text)
            return text

    def to_fields(self) -> dict[str, Any]:  # Any: the JSON-able fields of any verdict type
        """This verdict as a JSON-able mapping of its fields."""
        fields: dict[str, Any] = _adapter(type(self)).dump_python(self, mode="json")
        return fields

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The verdict that `to_json` wrote. Raises pydantic's ValidationError on anything else."""
        verdict: Self = _adapter(cls).validator.validate_json(text)
        return verdict

    @classmethod
    def from_fields(cls, fields: object) -> Self:
        """A verdict from a mapping of its fields, validated. Raises pydantic's ValidationError."""
        verdict: Self = _adapter(cls).validate_python(fields)
        return verdict


@dataclass(frozen=True, slots=True)
class RelevanceVerdict(Verdict):
    """How far one context helps to answer a user input."""

    grade: int
    """0 nothing useful · 1 part of the answer · 2 the whole answer."""
    evidence: tuple[int, ...] = ()
    """Indices of the sentences that carry the grade; empty exactly when the grade is 0."""
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class UsefulnessVerdict(Verdict):
    """Whether one context helps to arrive at a reference answer."""

    useful: bool
    evidence: tuple[int, ...] = ()
    """Indices of the useful sentences; empty exactly when not useful."""
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim that can be read alone, and the sentence it was taken from."""

    text: str
    sentence: int


@dataclass(frozen=True, slots=True)
class StatementsVerdict(Verdict):
    """The standalone statements that a text makes; empty when it claims nothing."""

    statements: tuple[Statement, ...]
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class SupportVerdict(Verdict):
    """Whether contexts support a statement, and which of them do."""

    label: SupportLabel
    evidence: tuple[int, ...] = ()
    """Indices of every context that supports (or contradicts) the statement."""
    reason: str = ""
    probability: float | None = None
    tells_contradicted: bool = True
    """False for a judge that would not have said `contradicted`, so that none said is not none found."""

    @property
    def supported(self) -> bool:
        """True when the label is `supported`."""
        return self.label is SupportLabel.SUPPORTED


@dataclass(frozen=True, slots=True)
class SufficiencyVerdict(Verdict):
    """Whether the contexts together hold enough to answer."""

    label: SufficiencyLabel
    missing: str = ""
    """What is missing, in words; empty when sufficient or when the judge does not say."""
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class AddressesVerdict(Verdict):
    """Whether a statement of the response addresses the user input."""

    addresses: bool
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class NoncommittalVerdict(Verdict):
    """Whether a response evades or declines to answer."""

    noncommittal: bool
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class PartsVerdict(Verdict):
    """What a user input asks for, each part as a request that can be read alone; empty when it asks for nothing."""

    parts: tuple[str, ...]
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class AnsweredVerdict(Verdict):
    """Whether a response answers one part of what was asked."""

    answered: bool
    evidence: tuple[int, ...] = ()
    """Indices of the sentences that answer it; empty exactly when it is not answered."""
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that a text names, in the text's own words, and the sentence where it stands."""

    text: str
    sentence: int


@dataclass(frozen=True, slots=True)
class EntitiesVerdict(Verdict):
    """The entities that a text names; empty when it names none."""

    entities: tuple[Entity, ...]
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class MentionsVerdict(Verdict):
    """Whether contexts mention an entity, and which of them do."""

    mentioned: bool
    evidence: tuple[int, ...] = ()
    """Indices of every context that mentions it; empty exactly when none does."""
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
    """A reply as free text, for metrics that read it themselves."""

    text: str
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class TextsVerdict(Verdict):
    """The pieces of a text, in order, as they stand in it or as the splitter trims them."""

    texts: tuple[str, ...]
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class MatrixVerdict(Verdict):
    """A matrix of float32 numbers, kept as little-endian bytes in row order so that a replay is bit-equal."""

    rows: int
    columns: int
    data: bytes
    probability: float | None = None

    @classmethod
    def of(cls, rows: list[list[float]]) -> Self:
        """The matrix with these rows; all rows have the same length."""
        columns = len(rows[0]) if rows else 0
        flat = [number for row in rows for number in row]
        if len(flat) != len(rows) * columns:
            raise ValueError("every row of a matrix needs the same number of columns")
        return cls(rows=len(rows), columns=columns, data=struct.pack(f"<{len(flat)}f", *flat))

    def row(self, index: int) -> tuple[float, ...]:
        """Row `index` as Python floats."""
        size = self.columns * 4
        return struct.unpack(f"<{self.columns}f", self.data[index * size : (index + 1) * size])


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}  # Any: one adapter for each verdict type, built once


def _adapter(verdict: type) -> TypeAdapter[Any]:  # Any: as above
    found = _ADAPTERS.get(verdict)
    if found is None:
        from pydantic import ConfigDict, TypeAdapter

        config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", allow_inf_nan=False)
        verdict.__pydantic_config__ = config  # type: ignore[attr-defined]  # where pydantic looks on a dataclass
        found = _ADAPTERS[verdict] = TypeAdapter(verdict)
    return found
