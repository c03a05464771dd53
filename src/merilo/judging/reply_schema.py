"""The schema of the reply to a kind of question, and how a verdict is read from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from merilo.judging.json_extraction import JsonShape, read_list, read_object
from merilo.judging.reply_fields import NUMBER, Fields, object_schema, with_places

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.judging.verdicts import Verdict

    SentencesOfContexts = tuple[tuple[str, ...], ...]
    """The sentences of each context, which a prompt numbers from 1 through all contexts."""


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
