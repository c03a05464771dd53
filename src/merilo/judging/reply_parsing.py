"""Parses a model's reply into verdicts, or reports what is wrong with it. Pure; there is no default verdict.

A reply numbers sentences, contexts and statements from 1; verdicts count from 0. Some deviations are accepted because
they are unambiguous:

- whole numbers written as text or with `.0`;
- labels in any letter case, or with a space or hyphen for `_`;
- "true" and "false" as text;
- a single number in place of a list of numbers, and one number named twice;
- a missing reason, `missing` or list of evidence, which is then empty.

The messages of `ReplyParseError` are sent to the judge in a re-ask, so they are part of the prompts. The module is long
so that the replies of all kinds can be compared in one place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from merilo.judging.json_extraction import JsonShape, ReplyParseError, read_list, read_object
from merilo.judging.json_types import as_list, as_object
from merilo.judging.kinds.addresses import Addresses, AddressesVerdict
from merilo.judging.kinds.answered import Answered, AnsweredVerdict
from merilo.judging.kinds.choice import Choice, ChoiceVerdict
from merilo.judging.kinds.entities import Entities, EntitiesVerdict, Entity
from merilo.judging.kinds.mentions import Mentions, MentionsVerdict
from merilo.judging.kinds.noncommittal import Noncommittal, NoncommittalVerdict
from merilo.judging.kinds.parts import Parts, PartsVerdict
from merilo.judging.kinds.relevance import Relevance, RelevanceVerdict
from merilo.judging.kinds.statements import Statement, Statements, StatementsVerdict
from merilo.judging.kinds.sufficiency import Sufficiency, SufficiencyLabel, SufficiencyVerdict
from merilo.judging.kinds.support import Support, SupportLabel, SupportVerdict
from merilo.judging.kinds.usefulness import Usefulness, UsefulnessVerdict

if TYPE_CHECKING:
    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict

_WHOLE = re.compile(r"\s*(-?\d{1,9})(?:\.0+)?\s*")
_LONGEST_SHOWN = 60

Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The result of parsing a reply: a verdict or None per question, and a message to the judge about the problems."""

    verdicts: tuple[Verdict | None, ...]
    fault: str = ""
    """Empty if every question has its verdict."""


@dataclass(frozen=True, slots=True)
class ReplySchema:
    """Schema of the reply to one kind of question: the reply's fields, and how a verdict is parsed from them."""

    properties: Mapping[str, object]
    """JSON Schemas of the fields in the order they are written, the reason first."""
    decision: str
    read: Callable[[Fields], Verdict]
    """Returns the verdict in an object's fields. Raises Unreadable."""
    about: str = "statement"
    """The subject of one question of a pack, as named in messages to the judge."""


@dataclass(frozen=True, slots=True)
class ListReplySchema:
    """Schema of a reply that is a list: the JSON Schema of an item, and how the list is parsed."""

    shape: JsonShape
    item: Mapping[str, object]
    read: Callable[[list[object]], Verdict]
    """Returns the verdict in the list. Raises Unreadable."""


def schema_for(kind: str, *, together: bool = False) -> Mapping[str, object]:
    """Return the JSON Schema of the reply to one question of the kind, or to a pack; built once and shared."""
    return (_PACK_SCHEMAS if together else _SCHEMAS)[kind]


def schema_of(question: Question[Any]) -> Mapping[str, object]:
    """Return the JSON Schema of the reply to this question: that of its kind, with the labels of a Choice."""
    if not isinstance(question, Choice):
        return schema_for(question.kind)
    properties = FORMS[Choice.kind].properties
    return _object_schema({**properties, "label": {"type": "string", "enum": list(question.labels)}})


def read_reply(text: str, question: Question[Any]) -> ParsedReply:
    """Parse the reply to one question."""
    try:
        if (listed := LISTS.get(question.kind)) is not None:
            verdict = listed.read(read_list(text, listed.shape))
        else:
            form = FORMS[question.kind]
            verdict = form.read(read_object(text, _SHAPES[question.kind]))
        if isinstance(question, Choice) and isinstance(verdict, ChoiceVerdict):
            verdict = replace(verdict, label=_nearest(verdict.label, question.labels))
        _check(question, verdict)
    except ReplyParseError as fault:
        return ParsedReply((None,), str(fault))
    return ParsedReply((verdict,))


def read_pack(text: str, questions: Sequence[Question[Any]], *, wanted: frozenset[int]) -> ParsedReply:
    """Parse the reply to a pack: the verdicts on those questions whose indices are wanted.

    Verdicts on other questions are ignored. Two different verdicts on one question count as none.
    """
    form = FORMS[questions[0].kind]
    shape = JsonShape(("verdicts", "number", *_SHAPES[questions[0].kind].keys), item="number")
    try:
        items = read_list(text, shape)
    except ReplyParseError as fault:
        return ParsedReply((None,) * len(questions), str(fault))
    found = _Found(form)
    for item in items:
        try:
            index = _index(item, len(questions), form.about)
        except ReplyParseError as fault:
            found.stray = found.stray or f"{fault} "
            continue
        if index in wanted:
            found.take(item, index, questions[index])
    return found.reading(len(questions), wanted)


@dataclass(slots=True)
class _Found:
    """The verdicts and problems in a pack's reply so far, by index."""

    form: ReplySchema
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)
    stray: str = ""

    def take(self, item: object, index: int, question: Question[Any]) -> None:
        try:
            verdict = self.form.read(_mapping(item))
            _check(question, verdict)
        except ReplyParseError as fault:
            self.faults[index] = str(fault)
            return
        if self.verdicts.setdefault(index, verdict) != verdict:
            self.faults[index] = "There are two different verdicts."

    def reading(self, size: int, wanted: frozenset[int]) -> ParsedReply:
        fine = {index: verdict for index, verdict in self.verdicts.items() if index not in self.faults}
        about = self.form.about
        sentences = [f"On {about} {index + 1}: {self.faults[index]}" for index in sorted(self.faults)]
        missing = [str(index + 1) for index in sorted(wanted) if index not in fine and index not in self.faults]
        if missing:
            sentences.append(f"{self.stray}There is no verdict on {_listed(missing, about)}.")
        return ParsedReply(tuple(fine.get(index) for index in range(size)), " ".join(sentences))


def _check(question: Question[Any], verdict: Verdict) -> None:
    fault = question.fault(verdict)
    if fault is not None:
        raise ReplyParseError(f"Your answer {fault}.")


def _index(item: object, size: int, about: str) -> int:
    number = _whole(_mapping(item).get("number"), "number")
    if not 1 <= number <= size:
        raise ReplyParseError(f"There is no {about} {number}; they are numbered from 1 to {size}.")
    return number - 1


def _relevance(fields: Fields) -> RelevanceVerdict:
    grade = _whole(fields.get("grade"), "grade")
    return RelevanceVerdict(grade=grade, evidence=_evidence(fields), reason=_text(fields, "reason"))


def _usefulness(fields: Fields) -> UsefulnessVerdict:
    return UsefulnessVerdict(_flag(fields, "useful"), evidence=_evidence(fields), reason=_text(fields, "reason"))


def _support(fields: Fields) -> SupportVerdict:
    label = SupportLabel(_label(fields, _SUPPORT_LABELS))
    return SupportVerdict(label, evidence=_evidence(fields), reason=_text(fields, "reason"))


def _sufficiency(fields: Fields) -> SufficiencyVerdict:
    label = SufficiencyLabel(_label(fields, _SUFFICIENCY_LABELS))
    return SufficiencyVerdict(label, missing=_text(fields, "missing"), reason=_text(fields, "reason"))


def _addresses(fields: Fields) -> AddressesVerdict:
    return AddressesVerdict(_flag(fields, "addresses"), reason=_text(fields, "reason"))


def _noncommittal(fields: Fields) -> NoncommittalVerdict:
    return NoncommittalVerdict(_flag(fields, "noncommittal"), reason=_text(fields, "reason"))


def _answered(fields: Fields) -> AnsweredVerdict:
    return AnsweredVerdict(_flag(fields, "answered"), evidence=_evidence(fields), reason=_text(fields, "reason"))


def _mentions(fields: Fields) -> MentionsVerdict:
    return MentionsVerdict(_flag(fields, "mentioned"), evidence=_evidence(fields), reason=_text(fields, "reason"))


def _choice(fields: Fields) -> ChoiceVerdict:
    label = fields.get("label")
    if isinstance(label, bool) or not isinstance(label, (str, int)):
        raise ReplyParseError(f'"label" must be a text, not {_shown(label)}.')
    return ChoiceVerdict(_clean(str(label)), reason=_text(fields, "reason"))


def _nearest(word: str, labels: tuple[str, ...]) -> str:
    """Return the one label that equals the word except for case, spaces, hyphens and quotation marks; else the word."""
    matches = [label for label in labels if _plain(label) == _plain(word)]
    return matches[0] if word not in labels and len(matches) == 1 else word


def _plain(label: str) -> str:
    return re.sub(r"[\s_-]+", "_", label.strip(" \t\n\"'`.")).casefold()


def _statements(items: list[object]) -> StatementsVerdict:
    return StatementsVerdict(tuple(Statement(*_placed(item)) for item in items))


def _entities(items: list[object]) -> EntitiesVerdict:
    return EntitiesVerdict(tuple(Entity(*_placed(item)) for item in items))


def _placed(item: object) -> tuple[str, int]:
    fields = _mapping(item)
    return _item_text(fields.get("text"), "text"), _whole(fields.get("sentence"), "sentence") - 1


def _parts(items: list[object]) -> PartsVerdict:
    return PartsVerdict(tuple(_item_text(item, "parts") for item in items))


def _item_text(text: object, name: str) -> str:
    if not isinstance(text, str):
        raise ReplyParseError(f'"{name}" must be a text, not {_shown(text)}.')
    return _clean(text)


def _mapping(item: object) -> Fields:
    fields = as_object(item)
    if fields is None:
        raise ReplyParseError(f"Each entry of the list must be an object, not {_shown(item)}.")
    return fields


def _whole(value: object, name: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and (match := _WHOLE.fullmatch(value)):
        return int(match[1])
    raise ReplyParseError(f'"{name}" must be a whole number, not {_shown(value)}.')


def _flag(fields: Fields, name: str) -> bool:
    value = fields.get(name)
    word = value.strip().lower() if isinstance(value, str) else value
    if word is True or word == "true":
        return True
    if word is False or word == "false":
        return False
    raise ReplyParseError(f'"{name}" must be true or false, not {_shown(value)}.')


def _label(fields: Fields, labels: tuple[str, ...]) -> str:
    value = fields.get("label")
    word = re.sub(r"[\s-]+", "_", value.strip().lower()) if isinstance(value, str) else ""
    if word not in labels:
        raise ReplyParseError(f'"label" must be one of {", ".join(labels)}, not {_shown(value)}.')
    return word


def _evidence(fields: Fields) -> tuple[int, ...]:
    value = fields.get("evidence")
    if value is None:
        return ()
    numbers = as_list(value)
    if numbers is None:
        numbers = [value]
    return tuple(sorted({_whole(number, "evidence") - 1 for number in numbers}))


def _text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ReplyParseError(f'"{name}" must be a text, not {_shown(value)}.')
    return _clean(value)


def _clean(text: str) -> str:
    """Return the text without outer white space, and with half surrogate pairs replaced: they cannot be stored."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()


def _shown(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


def _listed(numbers: list[str], about: str) -> str:
    plural = {"entity": "entities"}.get(about, f"{about}s")
    return f"{about} {numbers[0]}" if len(numbers) == 1 else f"{plural} {', '.join(numbers)}"


_SUPPORT_LABELS = ("supported", "contradicted", "not_stated")
_SUFFICIENCY_LABELS = tuple(SufficiencyLabel)
_TEXT = {"type": "string"}
_FLAG = {"type": "boolean"}
_NUMBER = {"type": "integer"}
_NUMBERS = {"type": "array", "items": _NUMBER}


def _object_schema(properties: Mapping[str, object]) -> Mapping[str, object]:
    required = list(properties)
    return {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }


def _list_schema(name: str, item: Mapping[str, object]) -> Mapping[str, object]:
    return _object_schema({name: {"type": "array", "items": item}})


FORMS: Mapping[str, ReplySchema] = {
    Relevance.kind: ReplySchema(
        {"reason": _TEXT, "grade": {"type": "integer", "enum": [0, 1, 2]}, "evidence": _NUMBERS},
        "grade",
        _relevance,
    ),
    Usefulness.kind: ReplySchema({"reason": _TEXT, "useful": _FLAG, "evidence": _NUMBERS}, "useful", _usefulness),
    Support.kind: ReplySchema(
        {"reason": _TEXT, "label": {"type": "string", "enum": list(_SUPPORT_LABELS)}, "evidence": _NUMBERS},
        "label",
        _support,
    ),
    Sufficiency.kind: ReplySchema(
        {"reason": _TEXT, "label": {"type": "string", "enum": list(_SUFFICIENCY_LABELS)}, "missing": _TEXT},
        "label",
        _sufficiency,
    ),
    Addresses.kind: ReplySchema({"reason": _TEXT, "addresses": _FLAG}, "addresses", _addresses),
    Noncommittal.kind: ReplySchema({"reason": _TEXT, "noncommittal": _FLAG}, "noncommittal", _noncommittal),
    Answered.kind: ReplySchema(
        {"reason": _TEXT, "answered": _FLAG, "evidence": _NUMBERS}, "answered", _answered, about="part"
    ),
    Mentions.kind: ReplySchema(
        {"reason": _TEXT, "mentioned": _FLAG, "evidence": _NUMBERS}, "mentioned", _mentions, about="entity"
    ),
    Choice.kind: ReplySchema({"reason": _TEXT, "label": _TEXT}, "label", _choice),
}
"""The reply schema of each kind whose reply is one object."""

_PLACED = _object_schema({"sentence": _NUMBER, "text": _TEXT})
LISTS: Mapping[str, ListReplySchema] = {
    Statements.kind: ListReplySchema(JsonShape(("statements", "sentence", "text"), item="text"), _PLACED, _statements),
    Entities.kind: ListReplySchema(JsonShape(("entities", "sentence", "text"), item="text"), _PLACED, _entities),
    Parts.kind: ListReplySchema(JsonShape(("parts",)), _TEXT, _parts),
}
"""The reply schema of each kind whose reply is a list."""

_SCHEMAS: Mapping[str, Mapping[str, object]] = {
    **{kind: _object_schema(form.properties) for kind, form in FORMS.items()},
    **{kind: _list_schema(listed.shape.keys[0], listed.item) for kind, listed in LISTS.items()},
}
_PACK_SCHEMAS: Mapping[str, Mapping[str, object]] = {
    kind: _list_schema("verdicts", _object_schema({"number": _NUMBER, **FORMS[kind].properties}))
    for kind in (Support.kind, Addresses.kind, Answered.kind, Mentions.kind)
}
_SHAPES: Mapping[str, JsonShape] = {
    kind: JsonShape((form.decision, *(name for name in form.properties if name != form.decision)))
    for kind, form in FORMS.items()
}
