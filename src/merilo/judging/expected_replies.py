"""Likely replies of judges, for dry runs of plans: of a likely length and with a likely decision."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from merilo.judging.json_types import as_list
from merilo.judging.kinds.completion import Completion
from merilo.judging.questions import Pack
from merilo.judging.reply_schema import ReplySchema

if TYPE_CHECKING:
    from merilo.judging.questions import Question

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
