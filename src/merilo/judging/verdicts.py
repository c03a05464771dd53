"""The base of the answers of judges: a frozen verdict type per kind of question, and `Failure` if there is no verdict.

Indices are 0-based everywhere in Python; rubrics and replies number from 1. `probability` is the judge's own
probability of "yes" (relevant, supported, sufficient, ...), in [0, 1]; None if the judge gives none.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar, cast, final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import TypeAdapter


T = TypeVar("T")

LATER: Final = {"later": True}
"""Metadata of a field that was added to a released type, with an empty value as its default."""


def per_type(make: Callable[[type[Any]], T]) -> Callable[[type[Any]], T]:  # Any: a question or verdict type
    """Return the function that makes a value for a type once."""
    return cast("Callable[[type[Any]], T]", cache(make))  # the type checkers take a dataclass for unhashable


@per_type
def later_fields(of: type[Any]) -> set[str]:  # Any: as above
    """Return the names of the fields that keys and records omit while they are empty; not to be changed."""
    return {each.name for each in fields(of) if each.metadata.get("later")}


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
    TOO_LARGE = "too_large"
    """The provider rejects this request because of its size; one with fewer questions may be answered."""
    BROKEN = "broken"
    """A metric or a judge raised an unexpected error: a bug in it."""
    PIPELINE = "pipeline"
    """The user's pipeline raised an error for this question, so there is no answer to judge."""
    NOT_JUDGED = "not_judged"
    """The judge states that it cannot judge this: not an error. The metric has no value for the sample."""


@final
@dataclass(frozen=True, slots=True)
class Failure:
    """A question without a verdict, and the reason. A value: it is stored and reported, never raised by a driver."""

    kind: FailureKind
    message: str
    probability: float | None = None
    """Of a judge that does not judge this: the probability of yes by which it can still be ordered; None if unknown."""

    def to_fields(self) -> dict[str, object]:
        """Return this failure as a JSON-able mapping of its fields."""
        known = {} if self.probability is None else {"probability": self.probability}
        return {"kind": str(self.kind), "message": self.message, **known}  # a custom judge may set a plain text

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:  # Any: JSON
        """Return the failure that `to_fields` wrote. Raises KeyError or ValueError for anything else."""
        return cls(FailureKind(fields["kind"]), fields["message"], fields.get("probability"))


class _Written:
    """Slot for the cached JSON of a verdict. It is not a field, so it affects neither equality nor keys."""

    __slots__ = ("_json",)
    _json: str


@dataclass(frozen=True, slots=True)
class Verdict(_Written):
    """Base of all verdict types."""

    yes: ClassVar[str] = "yes"
    """The meaning of its probability, in words."""

    def _omitted(self) -> set[str] | None:
        """Return the names of the later fields that are empty; None if there are none."""
        names = later_fields(type(self))
        if not any(map(self.__getattribute__, names)):  # of few verdicts
            return names or None
        return {name for name in names if not getattr(self, name)} or None

    def reversed(self) -> Self:
        """Return this verdict with the items of its list in reverse order; the same verdict for most kinds."""
        return self

    def in_words(self) -> str:
        """Return this verdict in a few words, as plain text."""
        return type(self).__name__

    def to_json(self) -> str:
        """Return this verdict as compact JSON, its fields in order; equal verdicts give equal bytes. Cached."""
        try:
            return self._json
        except AttributeError:
            text = _adapter(type(self)).serializer.to_json(self, exclude=self._omitted()).decode()
            object.__setattr__(self, "_json", text)
            return text

    def to_fields(self) -> dict[str, Any]:  # Any: the JSON-able fields of any verdict type
        """Return this verdict as a JSON-able mapping of its fields."""
        fields: dict[str, Any] = _adapter(type(self)).dump_python(self, mode="json", exclude=self._omitted())
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

    @property
    def context_evidence(self) -> tuple[int, ...]:
        """Indices of the sentences that it names in the one context that it judges; empty for most kinds."""
        return ()

    def as_label(self) -> str:
        """Return this verdict as a label of its question's form. Raises ValueError for a verdict without a label."""
        raise ValueError(f"a {type(self).__name__} has no label")


@dataclass(frozen=True, slots=True)
class ListVerdict(Verdict):
    """Base of verdicts that are a list of what a text holds; an empty list for none."""

    listed: ClassVar[str]
    """The field with the list."""
    one: ClassVar[str]
    """One of its items, in words."""

    def in_words(self) -> str:
        """Return the number of items."""
        size = len(getattr(self, self.listed))
        return f"{size:,} {self.one if size == 1 else self.listed}"

    def reversed(self) -> Self:
        """See `Verdict.reversed`."""
        changed: dict[str, Any] = {self.listed: getattr(self, self.listed)[::-1]}  # a field of each kind
        return replace(self, **changed)


@dataclass(frozen=True, slots=True)
class DecisionVerdict(Verdict):
    """Base of verdicts that decide something, such as a yes or no; all others are texts, lists or numbers."""

    # Keyword-only and not in the repr, so that the fields of each kind keep their positions.
    averaged: bool = field(default=False, kw_only=True, repr=False, metadata=LATER)
    """True if metrics average its probability instead of counting its yes or no."""

    flag: str = field(default="", kw_only=True, repr=False, metadata=LATER)
    """What the judge did not do, though the decision stands, such as "names no evidence"; empty for most verdicts."""

    @property
    def positive(self) -> bool:
        """True if the verdict is a yes."""
        raise NotImplementedError  # each kind has its own

    @property
    def value(self) -> float:
        """The decision as a number in [0, 1]: 1 for a yes, 0 for a no, and in between for a part."""
        return 1.0 if self.positive else 0.0

    @property
    def credit(self) -> float:
        """The number that a mean over verdicts uses, in [0, 1]: the probability if `averaged`, otherwise `value`."""
        probability = probability_of(self) if self.averaged else None
        return self.value if probability is None else probability

    @property
    def decision(self) -> object:
        """The grade, the label, or the yes or no, without reason and evidence."""
        return self.positive


@per_type
def _adapter(verdict: type[Any]) -> TypeAdapter[Any]:  # Any: as above
    from pydantic import ConfigDict, TypeAdapter

    config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", allow_inf_nan=False)
    verdict.__pydantic_config__ = config  # pydantic reads its config from this attribute of a dataclass
    return TypeAdapter(verdict)


# -- the decision in a verdict of any kind


def is_positive(verdict: Verdict) -> bool:
    """Return True if a verdict is positive: relevant (grade 1 or 2), useful, supported, sufficient, addressing the
    question.

    A noncommittal verdict is positive if the response is noncommittal. Raises TypeError for a verdict that is not a
    decision, such as a list of statements.
    """
    if not isinstance(verdict, DecisionVerdict):
        raise TypeError(f"a verdict of type {type(verdict).__name__} is not a decision")
    return verdict.positive


def probability_of(answer: Verdict | Failure) -> float | None:
    """Return the judge's probability of yes; None if it gives none."""
    probability: float | None = getattr(answer, "probability", None)  # a field of every verdict type, not of the base
    return probability


def is_not_judged(answer: Verdict | Failure) -> bool:
    """Return True if the judge states that it cannot judge the question."""
    return isinstance(answer, Failure) and answer.kind is FailureKind.NOT_JUDGED


# -- checks of indices: each returns the problem as the end of a sentence "your answer ...", or None

NO_EVIDENCE: Final = "names no evidence"
WRONG_EVIDENCE: Final = "names wrong evidence"
"""Flags of a verdict whose decision stands; wrong numbers are removed."""


def flag_of(kept: tuple[int, ...], *, needed: bool) -> str:
    """Return the flag of a verdict of which only this evidence is kept; `needed`: such a verdict must name some."""
    return NO_EVIDENCE if needed and not kept else WRONG_EVIDENCE


def index_fault(index: int, size: int, unit: str) -> str | None:
    """Return the problem with an index into `size` things of this name, such as "sentence"."""
    if 0 <= index < size:
        return None
    return f"names {unit} {index + 1}, but there are {size}, numbered from 1"


def evidence_fault(evidence: tuple[int, ...], size: int, unit: str) -> str | None:
    """Return the problem with indices that must be distinct and in range."""
    for index in evidence:
        if (fault := index_fault(index, size, unit)) is not None:
            return fault
    if len(evidence) > 1 and len(set(evidence)) != len(evidence):
        return f"names the same {unit} twice"
    return None


# -- words


def listed(indices: Sequence[int], thing: str) -> str:
    """Return things by their 0-based indices, counted from 1: `context 2`, `contexts 1, 3`."""
    return f"{thing}{'s' if len(indices) > 1 else ''} {', '.join(str(index + 1) for index in indices)}"


def counting_only(contexts: Sequence[int], reason: str) -> str:
    """Return a judge's reason about some contexts of a sample; its numbers count only these, so they are named."""
    if not reason or list(contexts) == [*range(len(contexts))]:
        return reason
    return f"Counting only {listed(contexts, 'context')}: {reason}"
