"""Conversations in a file, as one record for each answer of the assistant.

Two forms are read: a record with a list of messages in any dialect (`merilo.data.messages`) for a whole conversation,
and a line with `role` and `content` for each turn, with the `conversation_id` that adjacent lines share. The record of
an answer has the user's last text as `user_input`, up to `MAX_EARLIER` turns before it as `history`, and the answer as
`response`. Other keys of a message, such as `retrieved_contexts`, become columns of its record. What retrieving tools
returned between question and answer are its contexts unless a message names contexts itself.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, Final

from merilo.data import check
from merilo.data.aliases import aliases
from merilo.data.content import names
from merilo.data.history import ASSISTANT, MAX_TURNS, SYSTEM, TOOL, USER, Turn
from merilo.data.lines import RawRecord
from merilo.data.messages import Exchange, Message, exchanges_in, fields_of, kind_of, list_in, one_message
from merilo.data.sample import FIELDS, Sample
from merilo.errors import DataError, Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

MESSAGES: Final = "messages"
CONVERSATION: Final = "conversation_id"
"""The metadata field whose equal values are the samples of one conversation: for `--cluster`."""
MAX_EARLIER: Final = 50
"""Maximum number of turns in the history of one answer, the last ones: the stored text would grow with the square."""
_SAMPLE: Final = ""
"""The key of records that are samples themselves."""
_LINE: Final = frozenset({"role", "content"})
"""The columns of a line that is one turn."""
_SPOKEN: Final = frozenset({USER, ASSISTANT, SYSTEM, TOOL, "call", "silent"})
_TEXTS: Final = frozenset({"user_input", "response"})
_CONTEXTS: Final = "retrieved_contexts"


_MAX_REPEATED: Final = 10_000
"""Characters of the other columns of a conversation that each of its answers gets; only the last one gets more."""
HOPS: Final = "#hops"
"""After the name of a file of traces or conversations: each retrieval is a sample, not each answer."""


def unfolded(
    records: Iterator[RawRecord | Sample], tools: Collection[str] | None = None, *, hops: bool = False
) -> Iterator[RawRecord | Sample]:
    """Yield the records, with the answers of each conversation, or its hops, instead of the conversation itself.

    `tools`: the names of tools that retrieve; None: those whose results are passages. Raises DataError for a record
    that has no hops.
    """
    read: set[str] = set()
    answers = partial(_answers, tools=tools, hops=hops)
    for key, group in groupby(records, key=_key):
        if key == _SAMPLE and hops:
            raise DataError(f"The data is not a file of traces or of conversations, which {HOPS} needs.")
        if key == _SAMPLE:
            yield from group
        elif key == MESSAGES:
            yield from chain.from_iterable(map(answers, group))
        else:
            whole = _joined(group)
            apart = Problem("adjacent lines of each conversation", "others in between", CONVERSATION)
            yield from [RawRecord(whole.place, None, (apart,))] if key in read else answers(whole)
            read |= {key} - {"turns"}


def _key(record: RawRecord | Sample) -> str:
    """Return what adjacent records of one conversation share; `_SAMPLE` for a record that is a sample itself."""
    if isinstance(record, Sample) or record.value is None or record.value.keys().isdisjoint(_parts()):
        return _SAMPLE
    value, lists, thread = record.value, names()["message"]["list"], _thread(record.value)
    known = {aliases().fields.get(name) for name in value}
    if known.isdisjoint(_TEXTS) and (kind_of(value) in _SPOKEN or (thread is not None and value.keys() >= _LINE)):
        return "turns" if thread is None else f"turns of {value[thread]!r}"
    if not {aliases().field_of(name) for name in value if name not in lists}.isdisjoint(_TEXTS):
        return _SAMPLE
    if check.is_list(value.get(MESSAGES)) or list_in(value) is not None:
        return MESSAGES
    return _SAMPLE


@cache
def _parts() -> frozenset[str]:
    """Return the keys of which a conversation or a line of one has at least one."""
    return frozenset((*names()["message"]["list"], *names()["message"]["role"]))


def _thread(value: Mapping[str, object]) -> str | None:
    """Return the column that names the conversation of a line; None if there is none."""
    return next((name for name in names()["message"]["thread"] if not check.is_missing(value.get(name))), None)


def _joined(lines: Iterator[RawRecord | Sample]) -> RawRecord:
    place, named = 0, None
    messages: list[dict[str, object]] = []
    problems: list[Problem] = []
    for line in lines:
        if isinstance(line, RawRecord) and line.value is not None and len(messages) <= MAX_TURNS:
            place = place or line.place
            problems += line.problems
            thread = _thread(line.value)
            named = line.value[thread] if thread else None
            messages.append({name: value for name, value in line.value.items() if name != thread})
    return RawRecord(place, {CONVERSATION: named, MESSAGES: messages}, tuple(problems))


def _hops(exchange: Exchange, name: str, conversation: str) -> Iterator[dict[str, object]]:
    """Yield a sample for each retrieval before an answer that states its query."""
    for number, found in enumerate(exchange.retrievals, start=1):
        place = {CONVERSATION: conversation, "hop": number, "of": len(exchange.retrievals)}
        if found.query:
            yield {"id": f"{name}#hop{number}", "user_input": found.query, _CONTEXTS: found.passages, **place}


def _answers(record: RawRecord | Sample, tools: Collection[str] | None, *, hops: bool) -> Iterator[RawRecord]:
    """Yield the record of each answer in a conversation; a record with a problem if it has none."""
    if isinstance(record, Sample) or record.value is None:
        return
    value = record.value
    given = value.get(MESSAGES)
    named = value.get(CONVERSATION, value.get("id"))
    name = str(record.place) if check.is_missing(named) else str(named)
    problems = list(record.problems)
    turns: list[Turn] = []
    answers = 0
    common = {
        column: each
        for column, each in value.items()
        if column not in {*names()["message"]["list"], CONVERSATION, "id"}
    }
    own = {name: each for name, each in common.items() if aliases().field_of(name) not in FIELDS}
    own = own if len(str(own)) <= _MAX_REPEATED else {}
    found_in = [*exchanges_in(_read(given if check.is_list(given) else list_in(value) or [], problems), tools)]
    for exchange in [] if problems else found_in:
        columns = common if exchange is found_in[-1] else own  # a field next to the messages belongs to the last answer
        answers += 1
        if hops:
            yield from (RawRecord(record.place, each) for each in _hops(exchange, f"{name}/{answers}", name))
            continue
        fields = fields_of(exchange)
        if _CONTEXTS not in exchange.columns and _CONTEXTS in map(aliases().field_of, (*columns, *exchange.columns)):
            fields.pop(_CONTEXTS, None)
        found = {**columns, **fields, "id": f"{name}/{answers}", CONVERSATION: name}
        turns += exchange.before
        if turns:
            found["history"] = turns[-MAX_EARLIER:]
        asked = [] if exchange.question is None else [Turn(USER, exchange.question)]
        turns += [*asked, Turn(ASSISTANT, exchange.answer)]
        yield RawRecord(record.place, found)
    if not answers and not problems:
        problems.append(Problem("a text of the user and an answer of the assistant", "none", MESSAGES))
    if problems:
        yield RawRecord(record.place, None, tuple(problems))


def _read(items: list[object] | tuple[object, ...], problems: list[Problem]) -> Iterator[Message]:
    """Yield the messages of a conversation; anything else is a problem."""
    if len(items) > MAX_TURNS:
        problems.append(Problem(f"at most {MAX_TURNS:,} turns", "more", MESSAGES))
        return
    for place, item in enumerate(items):
        yield from one_message(item, place, f"{MESSAGES}[{place}]", problems)
