"""A piece of text that was retrieved, or should have been."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, cast

from merilo.data import check, sentences
from merilo.data.check import JSON
from merilo.errors import DataError, Problem
from merilo.short_repr import short_repr

MAX_CONTEXTS: Final = 2_000
"""Maximum number of contexts of a sample. Runs of retrievers have 1,000; a judge is asked about each."""
CONTEXT_KEYS: Final = frozenset({"text", "id", "score", "language", "metadata"})

NO_METADATA: Final[
    Mapping[str, JSON]
] = {}  # shared by all contexts and samples without metadata; the type forbids writing to it


@dataclass(frozen=True, slots=True)
class Context:
    """A piece of text that was retrieved, or should have been; `score` is the retriever's own.

    Raises DataError, with all problems, for a value that does not fit its field.
    """

    text: str
    id: str | None = None
    score: float | None = None
    language: str | None = None
    metadata: Mapping[str, JSON] = field(default_factory=lambda: NO_METADATA)

    def __post_init__(self) -> None:
        problems: list[Problem] = []
        if check.text(self.text, "text", problems) is None and not problems:
            problems.append(Problem("text", check.shown(self.text), "text"))
        if self.id is not None:
            object.__setattr__(self, "id", check.identifier(self.id, "id", problems))
        if self.score is not None:
            object.__setattr__(self, "score", check.number(self.score, "score", problems))
        if self.language is not None:
            object.__setattr__(self, "language", check.language(self.language, "language", problems))
        if self.metadata is not NO_METADATA:
            object.__setattr__(self, "metadata", check.metadata(self.metadata, "metadata", problems) or NO_METADATA)
        if problems:
            raise DataError.of(*problems)

    def __hash__(self) -> int:
        return hash((self.text, self.id))

    def __repr__(self) -> str:
        return short_repr(
            self, text=self.text, id=self.id, score=self.score, language=self.language, metadata=self.metadata or None
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences of the text, in order; the same tuple for equal text and language while cached."""
        return sentences.sentences(self.text, self.language)

    def to_record(self, *, inherited_language: str | None = None) -> "str | dict[str, JSON]":
        """Return the context as a JSON value: its text alone if that is everything, otherwise an object."""
        record: dict[str, JSON] = {"text": self.text}
        if self.id is not None:
            record["id"] = self.id
        if self.score is not None:
            record["score"] = self.score
        if self.language is not None and self.language != inherited_language:
            record["language"] = self.language
        if self.metadata:
            record["metadata"] = self.metadata
        return record if len(record) > 1 else self.text

    @classmethod
    def from_record(cls, record: "str | Mapping[str, object]", *, language: str | None = None) -> "Context":
        """Return the context that `to_record` wrote; `language` applies if the record names none."""
        if isinstance(record, str):
            return cls(record, language=language)
        if (unknown := record.keys() - CONTEXT_KEYS) or "text" not in record:
            got = check.shown(dict.fromkeys(sorted(unknown), 0) if unknown else record)
            optional = ", ".join(repr(key) for key in sorted(CONTEXT_KEYS - {"text"}))
            raise DataError.of(Problem(f"an object with 'text' and optionally {optional}", got))
        values = cast("dict[str, Any]", {"language": language, **record})  # the constructor checks each value
        if check.is_missing(values["language"]):
            values["language"] = language
        if check.is_missing(values.get("metadata")):
            values.pop("metadata", None)
        return cls(**values)


ContextLike: TypeAlias = "Context | str | Mapping[str, object]"


def contexts_of(given: object, name: str, language: str | None, problems: list[Problem]) -> tuple[Context, ...]:
    """Return the contexts in a field, each with its own language or the given one.

    Problems are added to `problems` under the field's `name` and the context's index, from 0.
    """
    if not check.is_ordered(given):
        problems.append(Problem("a list of strings or objects with 'text'", check.shown(given), name))
        return ()
    contexts: list[Context] = []
    for place, item in enumerate(given):
        if place == MAX_CONTEXTS:
            problems.append(Problem(f"at most {MAX_CONTEXTS:,} contexts", "more", name))
            return ()
        if len(problems) > check.MAX_PROBLEMS:
            break
        try:
            contexts.append(_one_context(item, language))
        except DataError as error:
            problems.extend(_within(error.problems, f"{name}[{place}]"))
    return tuple(contexts)


def _one_context(item: object, language: str | None) -> Context:
    if isinstance(item, str):
        return Context(item, language=language)
    if isinstance(item, Context):
        return item if item.language or not language else replace(item, language=language)
    if check.is_record(item):
        return Context.from_record(item, language=language)
    raise DataError.of(Problem("a string or an object with 'text'", check.shown(item)))


def _within(problems: tuple[Problem, ...], place: str) -> Iterator[Problem]:
    for problem in problems:
        yield replace(problem, field=place if problem.field is None else f"{place}.{problem.field}")
