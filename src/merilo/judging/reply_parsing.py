"""Parses a model's reply into verdicts, or reports what is wrong with it. Pure; there is no default verdict.

A reply numbers sentences, contexts and statements from 1; verdicts count from 0. Some deviations are accepted because
they are unambiguous:

- whole numbers written as text or with `.0`;
- labels in any letter case, or with a space or hyphen for `_`;
- "true" and "false" as text;
- a single number in place of a list of numbers, and one number named twice;
- a missing reason, `missing` or list of evidence or sentences, which is then empty.

A reply is read by the version of the rubric that asked for it, which a recorded conversation names by its text.

The messages of `ReplyParseError` are sent to the judge in a re-ask, so they are part of the prompts. How the
fields of a reply become a verdict is part of each kind (`kinds/`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from merilo.judging.json_extraction import JsonShape, ReplyParseError, read_list
from merilo.judging.json_types import as_list
from merilo.judging.kinds.responses import Completion
from merilo.judging.questions import Pack, Question
from merilo.judging.registry import KINDS
from merilo.judging.reply_fields import (
    ListReplySchema,
    ReplySchema,
    item_fields,
    pack_schema_of,
    schema_of,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.judging.reply_fields import SentencesOfContexts
    from merilo.judging.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The result of parsing a reply: a verdict or None per question, and a message to the judge about the problems."""

    verdicts: tuple[Verdict | None, ...]
    fault: str = ""
    """Empty if every question has its verdict."""
    weak: tuple[Verdict | None, ...] = field(default=(), compare=False)
    """For a question without a verdict, the one that stands without what is wrong, marked as such."""


@dataclass(frozen=True, slots=True)
class AskedForm:
    """The form in which questions were asked, on which the meaning of the reply depends."""

    version: int | None = None
    """Version of the rubric; None for the current one."""
    sentences: SentencesOfContexts = ()
    """The sentences of each context, if the prompt numbered them."""


CURRENT: Final = AskedForm()


def schema_for(
    kind: str, *, together: bool = False, version: int | None = None, places: int = 0
) -> Mapping[str, object]:
    """Return the JSON Schema of the reply to one question of the kind, or to a pack; built once and shared.

    `version`: of the rubric; None for the current one. `places`: the number of sentences or contexts that the reply to
    a pack may name; 0 for any.
    """
    if together:
        return pack_schema_of(_of_pack(KINDS[kind], version), places)
    return schema_of(_of_kind(KINDS[kind], version))


def read_reply(text: str, question: Question[Any], form: AskedForm = CURRENT) -> ParsedReply:
    """Parse the reply to one question that was asked in this form."""
    try:
        schema = _of_kind(type(question), form.version)
        verdict = question.normalize(schema.parse(text, form.sentences))
        _check(question, verdict)
    except ReplyParseError as fault:
        return ParsedReply((None,), str(fault), (fault.weak,))
    return ParsedReply((verdict,))


def read_pack(
    text: str, questions: Sequence[Question[Any]], form: AskedForm = CURRENT, *, wanted: frozenset[int]
) -> ParsedReply:
    """Parse the reply to a pack: the verdicts on those questions whose indices are wanted.

    Verdicts on other questions are ignored. Two different verdicts on one question count as none.
    """
    schema = _of_pack(type(questions[0]), form.version)
    shape = JsonShape(("verdicts", "number", *schema.shape.keys), item="number")
    try:
        items = read_list(text, shape)
    except ReplyParseError as fault:
        return ParsedReply((None,) * len(questions), str(fault))
    found = _Found(schema, form.sentences)
    for item in items:
        try:
            index = _index(item, len(questions), schema.pack_item)
        except ReplyParseError as fault:
            found.stray = found.stray or f"{fault} "
            continue
        if index in wanted:
            found.take(item, index, questions[index])
    return found.reading(len(questions), wanted)


@dataclass(slots=True)
class _Found:
    """The verdicts and problems in a pack's reply so far, by index."""

    schema: ReplySchema
    sentences: SentencesOfContexts
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)
    weak: dict[int, Verdict] = field(default_factory=dict)
    stray: str = ""

    def take(self, item: object, index: int, question: Question[Any]) -> None:
        try:
            verdict = self.schema.verdict(item_fields(item), self.sentences)
            _check(question, verdict)
        except ReplyParseError as fault:
            self.faults[index] = str(fault)
            if fault.weak is not None:
                self.weak[index] = fault.weak
            return
        if self.verdicts.setdefault(index, verdict) != verdict:
            self.faults[index] = "There are two different verdicts."

    def reading(self, size: int, wanted: frozenset[int]) -> ParsedReply:
        fine = {index: verdict for index, verdict in self.verdicts.items() if index not in self.faults}
        about = self.schema.pack_item
        sentences = [f"On {about} {index + 1}: {self.faults[index]}" for index in sorted(self.faults)]
        missing = [str(index + 1) for index in sorted(wanted) if index not in fine and index not in self.faults]
        if missing:
            several = {"entity": "entities"}.get(about, f"{about}s") if len(missing) > 1 else about
            sentences.append(f"{self.stray}There is no verdict on {several} {', '.join(missing)}.")
        # a statement with two verdicts, one of them weak, has none
        weak = tuple(None if index in self.verdicts else self.weak.get(index) for index in range(size))
        return ParsedReply(tuple(fine.get(index) for index in range(size)), " ".join(sentences), weak)


def _check(question: Question[Any], verdict: Verdict) -> None:
    fault = question.fault(verdict)
    if fault is not None:
        raise ReplyParseError(f"Your answer {fault}.", question.weaker(verdict))


def _index(item: object, size: int, about: str) -> int:
    number = whole_number(item_fields(item).get("number"), "number")
    if not 1 <= number <= size:
        raise ReplyParseError(f"There is no {about} {number}; they are numbered from 1 to {size}.")
    return number - 1


def _of_kind(kind: type[Question[Any]], version: int | None) -> ReplySchema | ListReplySchema:
    reply = kind.reply if version is None else kind.reply_to(version)
    if reply is None:
        raise TypeError(f"a question of kind {kind.kind!r} has no reply schema")
    return reply


def _of_pack(kind: type[Question[Any]], version: int | None) -> ReplySchema:
    reply = _of_kind(kind, version)
    if not (isinstance(reply, ReplySchema) and reply.pack_item):
        raise TypeError(f"questions of kind {kind.kind!r} are not judged in packs")
    return reply


# -- likely replies, for dry runs of plans: of a likely length and with a likely decision

_FROM_ONE = ("evidence", "sentence")


def likely_reply(asked: Question[Any] | Pack) -> str:
    """Return a reply of the likely structure and length: the question's guess as a model would write it.

    Empty for kinds that are not asked through a prompt.
    """
    if not isinstance(asked, Pack):
        return _one(asked)
    if isinstance(asked.questions[0], Completion):
        return "".join(map(_one, asked.questions))
    verdicts = [{"number": number, **_fields(each)} for number, each in enumerate(asked.questions, start=1)]
    return json.dumps({"verdicts": verdicts}, ensure_ascii=False)


def _one(question: Question[Any]) -> str:
    if isinstance(question, Completion):
        return question.guess().text
    found = _fields(question)
    return json.dumps(found, ensure_ascii=False) if found else ""


def _fields(question: Question[Any]) -> dict[str, Any]:  # Any: JSON
    """Return the reply's fields in the order they are written, numbered from 1."""
    reply = question.reply
    if reply is None:
        return {}
    given = question.guess().to_fields()
    if isinstance(reply, ReplySchema):
        return {name: _numbered(name, given[name]) for name in reply.properties}
    name = reply.shape.keys[0]
    return {name: [_item(item) for item in given[name]]}


def _item(item: Any) -> Any:  # Any: JSON
    if not isinstance(item, dict):
        return item
    return {name: _numbered(name, item[name]) for name in ("sentence", "text")}


def _numbered(name: str, value: Any) -> Any:  # Any: JSON
    if name == "sentences":
        return [place + 1 for _, place in value]  # those of a guess are in the first context
    if name not in _FROM_ONE:
        return value
    indices = as_list(value)
    return value + 1 if indices is None else [int(str(index)) + 1 for index in indices]
