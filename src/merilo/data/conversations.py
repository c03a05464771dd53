"""Conversations in a file, as one record for each answer of the assistant.

Two forms are read: a line with `messages` for a whole conversation, and a line with `role` and `content` for each turn,
with the `conversation_id` that adjacent lines share. The record of an answer has the user's last text as `user_input`,
up to `MAX_EARLIER` turns before it as `history`, and the answer as `response`. Other keys of a message, such as
`retrieved_contexts`, become columns of its record. Texts of tools between question and answer are its contexts unless a
message names contexts itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import TYPE_CHECKING, Final

from merilo.data import check
from merilo.data.aliases import aliases
from merilo.data.history import MAX_TURNS, SYSTEM, TOOL, USER, Turn, turn_of
from merilo.data.lines import RawRecord
from merilo.data.sample import FIELDS, Sample
from merilo.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

MESSAGES: Final = "messages"
CONVERSATION: Final = "conversation_id"
"""The metadata field whose equal values are the samples of one conversation: for `--cluster`."""
MAX_EARLIER: Final = 50
"""Maximum number of turns in the history of one answer, the last ones: the stored text would grow with the square."""
_SAMPLE: Final = ""
"""The key of records that are samples themselves."""
_CONTENT: Final = frozenset({"role", "type", "content", "text", "data", "name", "tool_calls", "tool_call_id"})
_LINE: Final = frozenset({"role", "content", CONVERSATION})
"""The columns of a line that is one turn."""
_TEXTS: Final = frozenset({"user_input", "response"})
_CONTEXTS: Final = "retrieved_contexts"


def unfolded(records: Iterator[RawRecord | Sample]) -> Iterator[RawRecord | Sample]:
    """Yield the records, with the answers of each conversation instead of the conversation itself."""
    read: set[str] = set()
    for key, group in groupby(records, key=_key):
        if key == _SAMPLE:
            yield from group
        elif key == MESSAGES:
            yield from chain.from_iterable(map(_answers, group))
        else:
            whole = _joined(group)
            yield from [_apart(whole.place)] if key in read else _answers(whole)
            read.add(key)


@dataclass(slots=True)
class _Reader:
    """The state after the turns read so far of one conversation."""

    problems: list[Problem] = field(default_factory=list[Problem])
    turns: list[Turn] = field(default_factory=list[Turn])
    question: str | None = None
    columns: dict[str, object] = field(default_factory=dict[str, object])
    tools: list[str] = field(default_factory=list[str])


def _key(record: RawRecord | Sample) -> str:
    """Return what adjacent records of one conversation share; `_SAMPLE` for a record that is a sample itself."""
    if isinstance(record, Sample) or record.value is None:
        return _SAMPLE
    value = record.value
    known = {aliases().fields.get(name) for name in value}
    if check.is_list(value.get(MESSAGES)):
        return MESSAGES if known.isdisjoint(FIELDS) else _SAMPLE
    if value.keys() >= _LINE and known.isdisjoint(_TEXTS) and not check.is_missing(value[CONVERSATION]):
        return f"turns of {value[CONVERSATION]!r}"
    return _SAMPLE


def _apart(place: int) -> RawRecord:
    problem = Problem("adjacent lines of each conversation", "others in between", CONVERSATION)
    return RawRecord(place, None, (problem,))


def _joined(lines: Iterator[RawRecord | Sample]) -> RawRecord:
    place, named = 0, object()
    messages: list[dict[str, object]] = []
    problems: list[Problem] = []
    for line in lines:
        if isinstance(line, RawRecord) and line.value is not None and len(messages) <= MAX_TURNS:
            place = place or line.place
            problems += line.problems
            named = line.value[CONVERSATION]
            messages.append({name: value for name, value in line.value.items() if name != CONVERSATION})
    return RawRecord(place, {CONVERSATION: named, MESSAGES: messages}, tuple(problems))


def _answers(record: RawRecord | Sample) -> Iterator[RawRecord]:
    """Yield the record of each answer in a conversation; a record with a problem if it has none."""
    if isinstance(record, Sample) or record.value is None:
        return
    value = record.value
    messages = value[MESSAGES]
    named = value.get(CONVERSATION, value.get("id"))
    name = str(record.place) if check.is_missing(named) else str(named)
    common = {column: each for column, each in value.items() if column not in {MESSAGES, CONVERSATION, "id"}}
    reader = _Reader(problems=list(record.problems))
    answers = 0
    if check.is_list(messages) and len(messages) > MAX_TURNS:
        reader.problems.append(Problem(f"at most {MAX_TURNS:,} turns", "more", MESSAGES))
        messages = []
    for place, message in enumerate(messages if check.is_list(messages) else ()):
        found = _read(reader, message, place)
        if found is not None and not reader.problems:
            answers += 1
            own: dict[str, object] = {"id": f"{name}/{answers}", CONVERSATION: name}
            yield RawRecord(record.place, {**common, **found, **own})
    if not answers and not reader.problems:
        reader.problems.append(Problem("a text of the user and an answer of the assistant", "none", MESSAGES))
    if reader.problems:
        yield RawRecord(record.place, None, tuple(reader.problems))


def _read(reader: _Reader, message: object, place: int) -> dict[str, object] | None:
    """Read one message; return the columns of a sample if it answers the user."""
    turn = turn_of(message, place, f"{MESSAGES}[{place}]", reader.problems)
    if check.is_record(message):
        reader.columns |= {name: value for name, value in message.items() if name not in _CONTENT}
    if turn is None:
        return None
    if turn.role == TOOL:
        reader.tools.append(turn.text)
    elif turn.role == USER:
        reader.question = turn.text if reader.question is None else f"{reader.question}\n{turn.text}"
        reader.tools.clear()
    elif turn.role == SYSTEM or reader.question is None:  # also a greeting, or a second part of the answer
        reader.turns.append(turn)
    else:
        return _finished(reader, turn)
    return None


def _finished(reader: _Reader, answer: Turn) -> dict[str, object]:
    found = {**reader.columns, "user_input": reader.question, "response": answer.text}
    if reader.turns:
        found["history"] = reader.turns[-MAX_EARLIER:]
    given = {aliases().fields.get(name) for name in reader.columns}
    if reader.tools and _CONTEXTS not in given:
        found[_CONTEXTS] = list(reader.tools)
    reader.turns += [Turn(USER, reader.question or ""), answer]
    reader.question = None
    reader.columns, reader.tools = {}, []
    return found
