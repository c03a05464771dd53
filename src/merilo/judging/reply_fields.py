"""The fields of a model's reply: their JSON Schemas, and functions that return the value of a field.

Every function raises ReplyParseError. Its message is sent to the judge in a re-ask, so it is part of the prompts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

from merilo.judging.json_extraction import JsonShape, ReplyParseError, is_nothing, read_list, read_object
from merilo.judging.json_types import as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from merilo.judging.verdicts import Verdict

    SentencesOfContexts = tuple[tuple[str, ...], ...]
    """The sentences of each context, which a prompt numbers from 1 through all contexts."""

Fields = Mapping[str, object]

TEXT: Final = {"type": "string"}
FLAG: Final = {"type": "boolean"}
NUMBER: Final = {"type": "integer"}
PLACE: Final = {"type": "integer"}
"""A number of a sentence or context; the schema of one question lists those that its prompt has."""
NUMBERS: Final = {"type": "array", "items": PLACE}
_MAX_LISTED: Final = 24
"""Most places that a schema lists: a longer list costs more tokens than it saves, and some endpoints reject it."""

_WHOLE = re.compile(r"\s*(-?\d{1,9})(?:\.0+)?\s*(?:/\s*\d{1,2}\s*)?")
_LONGEST_SHOWN = 60


def object_schema(properties: Mapping[str, object]) -> Mapping[str, object]:
    """Return the JSON Schema of an object with exactly these fields."""
    required = list(properties)
    return {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }


TEXT_OF_SENTENCE: Final = object_schema({"sentence": PLACE, "text": TEXT})
"""The schema of a text with the number of its sentence."""


def with_places(schema: Mapping[str, object], places: int) -> Mapping[str, object]:
    """Return a schema whose sentence or context numbers are 1 to `places`; the schema itself for very many or none."""
    return schema if not 1 <= places <= _MAX_LISTED else _listed(schema, [*range(1, places + 1)])


def _listed(schema: Mapping[str, object], numbers: list[int]) -> Mapping[str, object]:
    if schema is PLACE:
        return {**schema, "enum": numbers}
    inner = {name: as_object(value) for name, value in schema.items()}
    return {name: schema[name] if value is None else _listed(value, numbers) for name, value in inner.items()}


def whole_number(value: object, name: str) -> int:
    """Return a value as a whole number; `name`: of the field."""
    if type(value) is int:  # nearly all
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and (match := _WHOLE.fullmatch(value)):
        return int(match[1])
    raise ReplyParseError(f'"{name}" must be a whole number, not {preview(value)}.')


def flag(fields: Fields, name: str) -> bool:
    """Return the true or false in a field."""
    value = fields.get(name)
    word = value.strip().lower() if isinstance(value, str) else value
    if word is True or word == "true":
        return True
    if word is False or word == "false":
        return False
    raise ReplyParseError(f'"{name}" must be true or false, not {preview(value)}.')


def label(fields: Fields, labels: Sequence[str]) -> str:
    """Return the label in the field `label`, one of these."""
    value = fields.get("label")
    word = re.sub(r"[\s-]+", "_", value.strip().lower()) if isinstance(value, str) else ""
    if word not in labels:
        raise ReplyParseError(f'"label" must be one of {", ".join(labels)}, not {preview(value)}.')
    return word


def evidence(fields: Fields) -> tuple[int, ...]:
    """Return the distinct indices in the field `evidence`, counted from 0; empty if it is missing."""
    return indices(fields, "evidence")


def indices(fields: Fields, name: str) -> tuple[int, ...]:
    """Return the distinct indices in a list of numbers, in order and counted from 0; empty if it is missing."""
    value = fields.get(name)
    if (numbers := as_list(value)) is None or len(numbers) == 1:
        numbers = [] if is_nothing(value) else numbers or [value]
    if len(numbers) == 1:
        return (whole_number(numbers[0], name) - 1,)
    return tuple(sorted({whole_number(number, name) - 1 for number in numbers}))


def text(fields: Fields, name: str) -> str:
    """Return the text in a field; empty if it is missing or states nothing."""
    return "" if is_nothing(value := fields.get(name)) else item_text(value, name)


def text_of_sentence(item: object) -> tuple[str, int]:
    """Return the text of an item and the index of its sentence, counted from 0."""
    fields = item_fields(item)
    return item_text(fields.get("text"), "text"), whole_number(fields.get("sentence"), "sentence") - 1


def item_text(text: object, name: str) -> str:
    """Return a value as text; `name`: of the field."""
    if type(text) is str and text.isascii():
        return text.strip()
    if not isinstance(text, str):
        raise ReplyParseError(f'"{name}" must be a text, not {preview(text)}.')
    return clean(text)


def item_fields(item: object) -> Fields:
    """Return an item of a list as an object."""
    fields = as_object(item)
    if fields is None:
        raise ReplyParseError(f"Each entry of the list must be an object, not {preview(item)}.")
    return fields


def clean(text: str) -> str:
    """Return the text without outer white space, and with half surrogate pairs replaced: they cannot be stored."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()


def preview(value: object) -> str:
    """Return a value as shown to the judge."""
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


# -- the schema of a reply -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReplySchema:
    """Schema of the reply to one kind of question: the reply's fields, and how a verdict is parsed from them."""

    properties: Mapping[str, object]
    """JSON Schemas of the fields in the order they are written, the reason first."""
    decision: str
    read: Callable[[Fields], Verdict]
    """Returns the verdict in an object's fields. Raises ReplyParseError."""
    pack_item: str = ""
    """The subject of one question of a pack, as named in messages to the judge; empty for kinds that an LLM judge does
    not judge in packs."""
    read_cited: Callable[[Fields, SentencesOfContexts], Verdict] | None = None
    """Used instead of `read` if the reply names numbered sentences. Raises ReplyParseError."""

    @cached_property
    def shape(self) -> JsonShape:
        """The structure of the reply to one question."""
        return JsonShape((self.decision, *(name for name in self.properties if name != self.decision)))

    def parse(self, text: str, sentences: SentencesOfContexts = ()) -> Verdict:
        """Return the verdict in the reply to one question. Raises ReplyParseError."""
        return self.verdict(read_object(text, self.shape), sentences)

    def verdict(self, fields: Fields, sentences: SentencesOfContexts = ()) -> Verdict:
        """Return the verdict in an object's fields. Raises ReplyParseError.

        `sentences`: those that the prompt numbered.
        """
        return self.read(fields) if self.read_cited is None else self.read_cited(fields, sentences)


@dataclass(frozen=True, eq=False)
class ListReplySchema:
    """Schema of a reply that is a list: the JSON Schema of an item, and how the list is parsed."""

    shape: JsonShape
    item: Mapping[str, object]
    read: Callable[[list[object]], Verdict]
    """Returns the verdict in the list. Raises ReplyParseError."""

    @cached_property
    def properties(self) -> Mapping[str, object]:
        """JSON Schema of the only field."""
        return {self.shape.keys[0]: {"type": "array", "items": self.item}}

    def parse(self, text: str, sentences: SentencesOfContexts = ()) -> Verdict:
        """Return the verdict in the reply; no list refers to the sentences of contexts. Raises ReplyParseError."""
        del sentences
        return self.read(read_list(text, self.shape))


@cache
def schema_of(reply: ReplySchema | ListReplySchema, places: int = 0) -> Mapping[str, object]:
    """Return the JSON Schema of the reply to one question: always the same object, as providers compare by identity.

    `places`: the number of sentences or contexts that the reply may name; 0 for any.
    """
    return with_places(schema_of(reply), places) if places else object_schema(reply.properties)


@cache
def pack_schema_of(reply: ReplySchema, places: int = 0) -> Mapping[str, object]:
    """Return the JSON Schema of the reply to a pack: always the same object. `places`: see `schema_of`."""
    item = with_places(object_schema({"number": NUMBER, **reply.properties}), places)
    return object_schema({"verdicts": {"type": "array", "items": item}})
