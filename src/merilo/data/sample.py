"""The unit of evaluation: a sample with its contexts, and the data set that yields samples.

Values are checked when an object is created and trusted from then on. A blank string is present. Only None is
missing; NaN, the missing value of numpy and pandas, becomes None. An empty list of contexts is present: it means that
nothing was retrieved.
"""

import hashlib
import json
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, overload
from unicodedata import normalize

from merilo.data import check, sentences
from merilo.data.check import JSON
from merilo.data.context import NO_METADATA, Context, ContextLike, contexts_of
from merilo.data.history import Turn, TurnLike, read_turns
from merilo.data.language import detect_language, identify_language
from merilo.data.measures import MEASURED
from merilo.data.messages import history_of
from merilo.errors import DataError, MissingField, Problem, UsageError
from merilo.short_repr import short_repr

_INVISIBLE: Final[dict[int, str | int | None]] = dict.fromkeys((0x200B, 0x2060, 0xFEFF))
"""Zero-width space, word joiner and byte order mark: characters that no reader sees, and that join nothing."""


def matching_id(text: str) -> str:
    """Return the id in composed Unicode (NFC), without invisible characters, with single spaces and none at its ends.

    Two ids are the same if these are equal.
    """
    if not text.isascii():
        text = normalize("NFC", text.translate(_INVISIBLE))
    return " ".join(text.split())


NUGGETS: Final = "nuggets"
"""The key in the metadata; a column of this name is stored there."""
NO_NUGGETS: Final = "the sample has no nuggets"
INVALID_NUGGETS: Final = 'nuggets are not a list of texts, or of objects with "text" and "vital" or "importance"'
_IMPORTANCE: Final = {"vital": True, "okay": False}


class Nugget(NamedTuple):
    """A fact that an answer to the question can state."""

    text: str
    vital: bool = True
    """True if a good answer must state it; False if it is only worth stating."""


class NuggetError(ValueError):
    """The nuggets of a sample are missing or invalid; the message is a reason for having no score."""


def nuggets_in(metadata: Mapping[str, JSON]) -> tuple[Nugget, ...]:
    """Return the nuggets of a sample, in order; equal texts are one nugget, which is vital if any of them is.

    A nugget is a text, which is vital, or an object with `text` and either `vital` (true or false) or `importance`
    ("vital" or "okay"), as nuggetizer writes it. Other keys are ignored. A CSV cell has the list as JSON. Raises
    NuggetError.
    """
    given: object = metadata.get(NUGGETS)
    if given is None:
        raise NuggetError(NO_NUGGETS)
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            raise NuggetError(INVALID_NUGGETS) from None
    if not check.is_list(given):
        raise NuggetError(INVALID_NUGGETS)
    found: dict[str, bool] = {}
    for item in given:
        nugget = _nugget(item)
        found[nugget.text] = found.get(nugget.text, False) or nugget.vital
    return tuple(Nugget(text, vital) for text, vital in found.items())


def _nugget(item: object) -> Nugget:
    fields: Mapping[object, object] = item if check.is_mapping(item) else {"text": item}
    text, vital = fields.get("text"), fields.get("vital", True)
    if "vital" not in fields and "importance" in fields:
        importance = fields["importance"]
        vital = _IMPORTANCE.get(importance) if isinstance(importance, str) else None
    if not isinstance(text, str) or not text.strip() or not isinstance(vital, bool):
        raise NuggetError(INVALID_NUGGETS)
    return Nugget(text.strip(), vital)


__all__ = [
    "FIELDS",
    "JSON",
    "BadRecord",
    "Columns",
    "Context",
    "ContextLike",
    "ContextsField",
    "Dataset",
    "Fingerprint",
    "IdsField",
    "Sample",
    "TextField",
    "Turn",
    "TurnLike",
    "detect_language",
]

TextField: TypeAlias = Literal["user_input", "response", "reference"]
ContextsField: TypeAlias = Literal["retrieved_contexts", "reference_contexts"]
IdsField: TypeAlias = Literal["retrieved_context_ids", "reference_context_ids"]

FIELDS: Final = (
    "user_input",
    "retrieved_contexts",
    "response",
    "reference",
    "reference_contexts",
    "retrieved_context_ids",
    "reference_context_ids",
)
"""The fields that a metric may need, in the order in which they are written."""

DOUBT: Final = "Check the columns: "
"""How a note begins that the user must see."""
_EXPECTED: Final = {
    "reference": "expected answer",
    "reference_contexts": "expected contexts",
    "response": "answer of your system",
    "retrieved_contexts": "text that was retrieved",
}

PIPELINE_ERROR: Final = "merilo:pipeline_error"
"""Key of the metadata with the error of the pipeline that should have answered. No metric is computed then."""

UNREADABLE: Final = "merilo:unreadable"
"""Key of the metadata with the text field that is JSON or a printed object. No metric that reads it is computed."""

_KEYS: Final = frozenset({"id", *FIELDS, "history", "language", "metadata"})
_MAX_NUMBER: Final = 18
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True, init=False)
class Sample:
    """One evaluated case: the question, the retrieved contexts, the response and the expected values.

    Contexts may be given as plain strings; a context without a language uses the sample's. `history` has the earlier
    turns of a conversation: texts of user and assistant in alternation, or objects with role and content. Raises
    DataError, with all problems, for a value that does not fit its field.
    """

    id: str
    user_input: str | None
    retrieved_contexts: tuple[Context, ...] | None
    response: str | None
    reference: str | None
    reference_contexts: tuple[Context, ...] | None
    retrieved_context_ids: tuple[str, ...] | None
    reference_context_ids: tuple[str, ...] | None
    history: tuple[Turn, ...] | None
    language: str | None
    metadata: Mapping[str, JSON]

    def __init__(
        self,
        id: str | int,
        *,
        user_input: str | None = None,
        retrieved_contexts: Iterable[ContextLike] | None = None,
        response: str | None = None,
        reference: str | None = None,
        reference_contexts: Iterable[ContextLike] | None = None,
        retrieved_context_ids: Iterable[str | int] | None = None,
        reference_context_ids: Iterable[str | int] | None = None,
        history: Iterable[TurnLike] | None = None,
        language: str | None = None,
        metadata: Mapping[str, JSON] | None = None,
    ) -> None:
        problems: list[Problem] = []
        put = object.__setattr__  # a frozen class has no other way to set its fields
        put(self, "id", _sample_id(id, problems))
        known_language = check.language(language, "language", problems)
        put(self, "language", known_language)
        put(self, "user_input", check.text(user_input, "user_input", problems))
        put(self, "response", check.text(response, "response", problems))
        put(self, "reference", check.text(reference, "reference", problems))
        for name, given in (("retrieved_contexts", retrieved_contexts), ("reference_contexts", reference_contexts)):
            put(self, name, None if check.is_missing(given) else contexts_of(given, name, known_language, problems))
        for name, ids in (
            ("retrieved_context_ids", retrieved_context_ids),
            ("reference_context_ids", reference_context_ids),
        ):
            put(self, name, check.identifiers(ids, name, problems))
        put(self, "history", history_of(history, "history", problems))
        put(self, "metadata", check.metadata(metadata, "metadata", problems) or NO_METADATA)
        if problems:
            raise DataError.of(*problems)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        """Return the fields that have a value, shortened; `to_record` returns all of it."""
        return short_repr(self, **self.to_record())

    @overload
    def require(self, field: TextField) -> str: ...
    @overload
    def require(self, field: ContextsField) -> tuple[Context, ...]: ...
    @overload
    def require(self, field: IdsField) -> tuple[str, ...]: ...
    @overload
    def require(self, field: str) -> str | tuple[Context, ...] | tuple[str, ...]: ...
    def require(self, field: str) -> str | tuple[Context, ...] | tuple[str, ...]:
        """Return the field's value; context ids come from the contexts if the sample itself has none.

        Raises MissingField if the value is None, UsageError for an unknown field name.
        """
        value: str | tuple[Context, ...] | tuple[str, ...] | None = getattr(self, field) if field in FIELDS else None
        if value is None and (value := self._value(field)) is None:
            raise MissingField(field, self.id)
        return value

    @property
    def contexts(self) -> tuple[Context, ...]:
        """The retrieved contexts, best first as retrieved; raises MissingField if they are None."""
        return self.require("retrieved_contexts")

    @property
    def present(self) -> frozenset[str]:
        """The names of the fields for which `require` has a value."""
        return frozenset(name for name in FIELDS if self._value(name) is not None)

    @property
    def resolved_language(self) -> str:
        """The sample's language, otherwise the one that the script of its first text suggests."""
        if self.language is not None:
            return self.language
        return detect_language(first_text(self))

    @property
    def read_history(self) -> tuple[str, ...]:
        """The earlier turns that a judge reads, as `role: text`; empty without a history."""
        return read_turns(self.history)

    def sentences(self, field: TextField) -> tuple[str, ...]:
        """Return the sentences of a text field, in order; raises MissingField if it is None."""
        return sentences.sentences(self.require(field), self.language)

    @property
    def digest(self) -> str:
        """A digest of the content, id included and measured time excluded: 32 hexadecimal digits."""
        record = self.to_record()
        if MEASURED in self.metadata:
            record["metadata"] = {name: value for name, value in self.metadata.items() if name != MEASURED}
        return hashlib.blake2b(_CANONICAL.encode(record).encode(), digest_size=16).hexdigest()

    def to_record(self) -> dict[str, JSON]:
        """Return the sample as a JSON object without None values; `from_record` restores an equal sample."""
        record: dict[str, JSON] = {"id": self.id}
        for name in FIELDS:
            value: str | tuple[Context | str, ...] | None = getattr(self, name)
            if isinstance(value, str):
                record[name] = value
            elif value is not None:
                record[name] = [
                    each if isinstance(each, str) else each.to_record(inherited_language=self.language)
                    for each in value
                ]
        if self.history is not None:
            record["history"] = [turn.to_record() for turn in self.history]
        if self.language is not None:
            record["language"] = self.language
        if self.metadata:
            record["metadata"] = self.metadata
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, object]) -> "Sample":
        """Return the sample that `to_record` wrote; accepts only merilo's own field names (`load` knows others)."""
        if unknown := record.keys() - _KEYS:
            names = ", ".join(sorted(_KEYS))
            raise DataError.of(Problem(f"only the fields {names}", check.shown(dict.fromkeys(sorted(unknown), 0))))
        return cls(**cast("dict[str, Any]", {"id": None, **record}))  # the constructor checks each value

    def _value(self, name: str) -> str | tuple[Context, ...] | tuple[str, ...] | None:
        if name not in FIELDS:
            raise UsageError(f"A sample has no field {name!r}; its fields are {', '.join(FIELDS)}.")
        value: str | tuple[Context, ...] | tuple[str, ...] | None = getattr(self, name)
        if value is not None or not name.endswith("_ids"):
            return value
        contexts: tuple[Context, ...] | None = getattr(self, name.removesuffix("_context_ids") + "_contexts")
        if contexts is None:
            return None
        found = tuple(context.id for context in contexts if context.id is not None)
        return found if len(found) == len(contexts) else None


def first_text(sample: Sample) -> str:
    """Return the text that shows the language of a sample: its first one, empty if it has none."""
    for value in (sample.user_input, sample.response, sample.reference):
        if value is not None:
            return value
    contexts = sample.retrieved_contexts or sample.reference_contexts
    return contexts[0].text if contexts else ""


def in_language(sample: Sample, language: str | None, of_context: Callable[[Context], str | None]) -> Sample:
    """Return the sample in a language, and each of its contexts in the one that `of_context` returns."""

    def contexts(given: tuple[Context, ...] | None) -> tuple[Context, ...] | None:
        return None if given is None else tuple(replace(each, language=of_context(each)) for each in given)

    return replace(
        sample,
        language=language,
        retrieved_contexts=contexts(sample.retrieved_contexts),
        reference_contexts=contexts(sample.reference_contexts),
    )


def with_identified_language(sample: Sample) -> Sample:
    """Return the sample with the language of its first text, unless it names one or the script shows it.

    Each context without a language gets its own, since it would have that of the sample.
    """
    if sample.language is not None:
        return sample
    language = identify_language(first_text(sample))
    if language in {None, sample.resolved_language}:
        return sample
    return in_language(sample, language, lambda each: each.language or identify_language(each.text))


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that cannot be read as a sample, with all its problems."""

    problems: tuple[Problem, ...]


@dataclass(slots=True)
class Columns:
    """The use of each column of a data set, filled while it is read.

    - `recognised`: each column with the field it fills;
    - `kept`: the columns stored in the metadata, with the fields whose form their first value has;
    - `doubtful`: columns whose value may be that of another field, with that field;
    - `unseen`: columns that the user mapped and no record had;
    - `single`: list fields for which a plain text was read as the only item;
    - `printed_missing`: text fields with a cell such as `nan`, which is read as text;
    - `unreadable`: columns of text fields that still are JSON or a printed object, with the field;
    - `separated`: what separates the cells of a table whose name does not say it, such as "tab-separated";
    - `blank`: rows of a table without a value in any field, which are not samples;
    - `rows`: what a row of the table is, if it is not a sample;
    - `note`: returns the adapter's own sentences about the records that were read;
    - `first`: the first records, on which advice is tried;
    - `filled`: returns the fields that a mapping fills in the first records, None before they are read;
    - `cluster`: the field whose equal values are dependent records, if the adapter knows one;
    - `drawn_from`: the number of records from which those read were drawn at random; 0 if all were read.
    """

    recognised: dict[str, str] = field(default_factory=dict)
    kept: dict[str, frozenset[str]] = field(default_factory=dict)
    doubtful: dict[str, str] = field(default_factory=dict)
    unseen: dict[str, str] = field(default_factory=dict)
    single: dict[str, None] = field(default_factory=dict)
    printed_missing: dict[str, None] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    separated: str = ""
    rows: str = ""
    blank: int = 0
    note: Callable[[], str] | None = None
    first: list[Mapping[str, object]] = field(default_factory=list["Mapping[str, object]"])
    filled: Callable[[Mapping[str, str]], Collection[str]] | None = None
    cluster: str | None = None
    drawn_from: int = 0
    _without_id: bytearray = field(default_factory=bytearray, repr=False)

    def note_number(self, number: int) -> None:
        """Note that record `number`, from 1, has no id and uses its number instead."""
        byte = number >> 3
        if byte >= len(self._without_id):
            self._without_id.extend(bytes(byte + 1024 - len(self._without_id)))
        self._without_id[byte] |= 1 << (number & 7)

    def numbered(self, sample_id: str) -> int | None:
        """Return the record that uses this id because it has none itself; None if no record so far does."""
        if not sample_id.isdecimal() or len(sample_id) > _MAX_NUMBER or str(int(sample_id)) != sample_id:
            return None
        number = int(sample_id)
        byte = number >> 3
        found = byte < len(self._without_id) and self._without_id[byte] & (1 << (number & 7))
        return number if found else None

    def doubts(self, fields: Collection[str], present: Collection[str] = FIELDS) -> list[str]:
        """Return one sentence for each doubtful column of these fields, with the mapping that changes its meaning.

        `present`: the fields that have a value in some record.
        """
        # With contexts, a column `answer` is the answer of the system.
        sure = {"response"} if "retrieved_contexts" in present else set[str]()
        dumps = [
            f"{DOUBT}{column} has JSON or a printed object, which is not judged. If it is the text, add "
            f"--map {shlex.quote(f'{column}={name}')}."
            for column, name in self.unreadable.items()
        ]
        return dumps + [
            f"{DOUBT}{column} was read as {read}. If it is the {_EXPECTED[other]}, add "
            f"--map {shlex.quote(f'{column}={other}')}."
            for column, other in self.doubtful.items()
            if column not in self.unreadable
            and not {other, read := self.recognised.get(column)}.isdisjoint(fields)
            and read in {*present} - sure
        ]

    def reading(self) -> str:
        """Return the separator of a table, if its name does not say it, and which column fills which field."""
        renamed = [f"{column} as {name}" for column, name in self.recognised.items() if column != name]
        return "; ".join(filter(None, [self.separated, self.rows, f"read {', '.join(renamed)}" if renamed else ""]))

    def sentence(self, measures: Collection[str] = ()) -> str:
        """Return the notice for the user: which column fills which field, and which are neither read nor measures."""
        reading = self.reading()
        parts = [f"{reading[0].upper()}{reading[1:]}."] if reading else []
        if unread := [column for column in self.kept if column != NUGGETS and column not in measures]:
            parts.append(f"Kept in the metadata, unread: {', '.join(unread)}.")
        if self.single:
            parts.append(f"Took each plain text as the only item of {', '.join(self.single)}; write lists as JSON.")
        if self.printed_missing:
            parts.append(
                f"Read cells such as nan or None in {', '.join(self.printed_missing)} as text; leave a cell empty if "
                "its value is missing."
            )
        if self.blank:
            parts.append(f"Left out rows without a question, context or answer: {self.blank:,}.")
        if self.unseen:
            parts.append(f"No record has the mapped columns: {', '.join(self.unseen)}.")
        if self.note is not None and (note := self.note()):
            parts.append(note)
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A named source of samples; `columns` is complete after one full pass.

    Iterating reads the source again if possible (files, lists); a one-shot source (standard input, a generator)
    raises UsageError the second time. Raises DataError if the source as a whole is invalid. Ids may repeat: the store
    of the samples has an index over them and reports duplicates.
    """

    name: str
    read: Callable[[], Iterator[Sample | BadRecord]]
    columns: Columns = field(default_factory=Columns)

    def __iter__(self) -> Iterator[Sample | BadRecord]:
        return self.read()

    def __repr__(self) -> str:
        return short_repr(self, name=self.name)


class Fingerprint:
    """The digest of the samples of a data set in their order, computed while they stream."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, sample: Sample) -> None:
        """Add the next sample."""
        self._hash.update(bytes.fromhex(sample.digest))

    def hexdigest(self) -> str:
        """Return the digest of the samples added so far: 32 hexadecimal digits."""
        return self._hash.hexdigest()


def _sample_id(value: object, problems: list[Problem]) -> str:
    found = check.identifier(value, "id", problems)
    if found is None and check.is_missing(value):
        problems.append(Problem(check.ID, "none" if value is None else check.shown(value), "id"))
    return found or ""
