"""Messages of all dialects in one form: who speaks, the text, which tools are called, and what tools returned.

Read are the messages of OpenAI (chat, and items of Responses and Agents), Anthropic, Gemini, LangChain (dumped, stored,
and objects), LlamaIndex, Haystack, Pydantic AI, smolagents, DeepEval, Bedrock, ShareGPT and of traces, as JSON or as
objects. A type is never imported: a message is known by the names in `content.toml`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import cache, lru_cache, reduce
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.data import check
from merilo.data.content import held, is_prose, names, passages_in
from merilo.data.history import ASSISTANT, MAX_CHARACTERS, MAX_TURNS, SYSTEM, TOOL, USER, Turn
from merilo.data.objects import AS_IS, READERS, Reader, Role, plain
from merilo.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

_MAX_DEPTH: Final = 6
_PAIR: Final = 2
_MAX_NAMES: Final = 2_000
_MAX_AMOUNTS: Final = 200
"""Maximum objects in which latency and tokens are looked for."""
_MAX_NOTHING: Final = 80
"""Characters of a text that says that nothing was found."""
ASKED: Final = "asked"
"""The role of a message that begins an exchange whose question is not known."""
_SPEAKERS: Final = (USER, ASSISTANT, SYSTEM)
_CALL: Final = "call"
_SILENT: Final = "silent"
_ENDINGS: Final = ("item", "block", "chunk", "part", "message", "step", "event")
_TOOL: Final = "tool-"
"""The beginning of kinds that name the tool, such as `tool-search`."""
_FINAL: Final = "is_final_answer"
_STEP: Final = ("task", "observations", "action_output", _FINAL, "additional_kwargs", "artifact", "origin")
"""Further attributes of messages and steps."""


class Call(NamedTuple):
    """The call of a tool."""

    id: str
    name: str
    query: str


class Result(NamedTuple):
    """What a tool returned."""

    id: str
    name: str
    value: object


@dataclass(slots=True)
class Message:
    """One message. `columns`: its other keys, such as `retrieved_contexts`."""

    role: str
    text: str = ""
    calls: list[Call] = field(default_factory=list[Call])
    results: list[Result] = field(default_factory=list[Result])
    columns: dict[str, object] = field(default_factory=dict[str, object])


class Retrieval(NamedTuple):
    """What one call of a tool retrieved; `query` is empty if it is unknown."""

    query: str
    passages: list[object]


@dataclass(slots=True)
class Exchange:
    """What happened between a text of the user and the end of the answer to it."""

    question: str | None
    answer: str = ""
    retrievals: list[Retrieval] = field(default_factory=list[Retrieval])
    others: dict[str, object] = field(default_factory=dict[str, object])
    """Texts that tools returned which do not retrieve, by the name of the tool."""
    columns: dict[str, object] = field(default_factory=dict[str, object])
    before: list[Turn] = field(default_factory=list[Turn])
    """Texts of the system, and of the assistant before the question."""

    def contexts(self) -> list[object]:
        """Return each retrieved passage once, at its first place."""
        return [*{repr(each): each for found in self.retrievals for each in found.passages}.values()]


def messages_in(items: object) -> list[Message] | None:
    """Return the messages in a list in any dialect; None if an item is not a message."""
    found: list[Message] = []
    for item in items if check.is_list(items) else ():
        read = [*_read(item, 0)]
        if not read:
            return None
        found += read
    return found or None


def list_in(value: object, depth: int = 0) -> list[object] | None:
    """Return the list of messages in an object, under one of their names; None if there is none."""
    record = _record(held(value))
    if record is None or depth >= _PAIR:
        return None
    for name in names()["message"]["list"]:
        inner = held(record.get(name))
        if check.is_list(inner) and are_messages(inner):
            return [*inner]
        if check.is_record(inner) and (found := list_in(inner, depth + 1)) is not None:
            return found
    return None


def are_messages(value: object) -> bool:
    """Return True for a list whose first items are messages; the others are read when they are used."""
    return check.is_list(value) and bool(messages_in(value[:5]))


def exchanges_in(messages: Iterable[Message], tools: Collection[str] | None = None) -> Iterator[Exchange]:
    """Yield each text of the user with the answer to it. It ends when the user speaks again.

    The answer is all that the assistant says after the last call of a tool, otherwise what it said with it. `tools`:
    the names of those that retrieve; None: those whose results are passages.
    """
    now: Exchange | None = None
    said, with_call = list[str](), ""
    calls: dict[str, Call] = {}
    before, columns = list[Turn](), dict[str, object]()
    for each in (*messages, None):
        if each is None or each.role == ASKED or (each.role == USER and each.text.strip()):
            answer = "\n".join(said) or with_call
            if now is not None and answer:
                now.answer = answer
                yield now
                now, said, with_call = None, [], ""
            if each is None:
                break
            asked = each.text if now is None or now.question is None else f"{now.question}\n{each.text}"
            now = Exchange(None if each.role == ASKED else asked, before=before, columns={**columns, **each.columns})
            before, columns = [], {}
        elif now is None:
            before += [Turn(each.role, each.text)] if each.role in {SYSTEM, ASSISTANT} and each.text.strip() else []
            columns |= each.columns
        elif each.role == SYSTEM:
            now.before += [Turn(SYSTEM, each.text)] if each.text.strip() else []
        else:
            now.columns = _with_columns(now.columns, each.columns)
            calls |= {call.id: call for call in each.calls}
            if each.calls:
                said, with_call = [], each.text or with_call
            elif each.role == ASSISTANT and each.text.strip():
                said.append(each.text)
        if now is not None:
            _retrieve(now, each.results, calls, tools)


def _with_columns(columns: dict[str, object], more: dict[str, object]) -> dict[str, object]:
    """Return the columns of two messages of one exchange: amounts are added, and of others the later one counts."""
    both = [(name, columns.get(name), more.get(name)) for name in names()["amounts"]]
    added = {name: a + b for name, a, b in both if isinstance(a, int | float) and isinstance(b, int | float)}
    return {**columns, **more, **added}


def amounts_in(value: object, *, anywhere: bool = False) -> dict[str, object]:
    """Return the seconds and tokens that a message or a result states, itself or in an object of a known name.

    `anywhere`: also in objects and lists of other names; the first one counts.
    """
    found = dict[str, object]()
    waiting: deque[object] = deque([value])
    for _ in range(_MAX_AMOUNTS):
        if not waiting:
            break
        each = held(waiting.popleft())
        record = _record(each) or {}
        for ours, known in names()["amounts"].items():
            stated = [record[name] for name in known if isinstance(record.get(name), int | float)]
            found |= {ours: stated[0]} if stated and ours not in found else {}
        inner = record if anywhere else [name for name in names()["message"]["usage"] if name in record]
        waiting += [*each] if check.is_list(each) else [record[name] for name in inner]
    return found


def _retrieve(
    now: Exchange, results: Iterable[Result], calls: Mapping[str, Call], tools: Collection[str] | None
) -> None:
    """Add what tools returned, or what a message of the user has, to an exchange."""
    for result in results:
        call = calls.get(result.id)
        name = result.name or (call.name if call else "")
        passages = passages_returned(result.value)
        if passages is None and _is_nothing(result.value):
            retrieves = name in tools if tools is not None else any(map(name.casefold().count, _frame("retrieving")))
            passages = list[object]() if retrieves else None
        elif tools is not None:
            passages = ([result.value] if passages is None else passages) if name in tools else None
        if passages is not None:
            now.retrievals.append(Retrieval(call.query if call else "", passages))
        elif result.value not in (None, "", [], {}):
            now.others[name or "tool"] = result.value


def _is_nothing(value: object) -> bool:
    """Return True for what a search returns that found nothing: an empty list, also in an object, or a text on it."""
    value = held(value)
    if check.is_record(value):
        return any(check.is_list(each) and not each for each in value.values())
    if isinstance(value, str):
        return not value or (len(value) <= _MAX_NOTHING and value.casefold().startswith(_frame("nothing")))
    return value in (None, [], ())


def _frame(name: str) -> tuple[str, ...]:
    return names()["frames"][name]


def passages_returned(value: object) -> list[object] | None:
    """Return what a tool returned as passages: those that it holds, or its text; None if it is neither."""
    value = held(value)
    if isinstance(value, str) and (
        _is_nothing(value) or value.casefold().startswith(_frame("agent") + _frame("errors"))
    ):
        return None
    if check.is_list(value) and value and all(map(_is_block, value)):
        found = [passages_returned(_text_of(each)) for each in value]
        return [item for each in found if each for item in each] or None
    if isinstance(value, str):
        return [value] if is_prose(value) else None
    return passages_in(value)


def history_of(given: object, field: str, problems: list[Problem]) -> tuple[Turn, ...] | None:
    """Return the turns in a value, or None if it is missing or empty. A turn without a text is left out."""
    if check.is_missing(given):
        return None
    if not check.is_ordered(given):
        advice = 'write [{"role": "user", "content": "..."}, ...]'
        problems.append(Problem("a list of turns", check.shown(given), field, advice=advice))
        return None
    items = list(islice(given, MAX_TURNS + 1))
    if len(items) > MAX_TURNS:
        problems.append(Problem(f"at most {MAX_TURNS:,} turns", "more", field))
        return None
    each_of = (one_message(item, place, f"{field}[{place}]", problems) for place, item in enumerate(items))
    read = [message for found in each_of for message in found]
    texts = [(each.role, each.text or "\n".join(_text_of(result.value) for result in each.results)) for each in read]
    turns = tuple(Turn(role, text) for role, text in texts if text.strip())
    if sum(len(turn.text) for turn in turns) > MAX_CHARACTERS:
        problems.append(Problem(f"at most {MAX_CHARACTERS:,} characters in all turns", "more", field))
        return None
    return turns or None


def one_message(item: object, place: int, field: str, problems: list[Problem]) -> list[Message]:
    """Return what an item of a conversation says; none after noting a problem.

    `place`: the position in the conversation, which gives the role of a plain text: the user begins.
    """
    if isinstance(item, str):
        item = Turn((USER, ASSISTANT)[place % 2], item)
    record, found = _record(item), messages_in([item])
    if record is not None:
        content = record.get("content")
        if isinstance(content, int | float):
            check.text(content, f"{field}.content", problems)
        elif found is None:
            named = next((record[name] for name in names()["message"]["role"] if name in record), None)
            problems.append(Problem("a role: user, assistant, system or tool", check.shown(named), f"{field}.role"))
    elif found is None:
        problems.append(Problem("a turn: a text, or an object with role and content", check.shown(item), field))
    for each in found or ():
        check.text(each.text, f"{field}.content", problems)
    return found or []


def streamed(items: Iterable[object]) -> list[object] | None:
    """Return the messages in the states or updates that an agent streams; None if one of them has no messages."""
    found: list[object] = []
    for each in items:
        if (state := list_in(each)) is not None:
            found = state  # states grow
            continue
        update = [inner for part in (each.values() if check.is_record(each) else ()) for inner in list_in(part) or ()]
        if not update:
            return None
        found += update
    return found or None


def _is_block(item: object) -> bool:
    """Return True for a part of a message that is a text and nothing else."""
    record = _record(item)
    if record is None or not isinstance(record.get("text"), str):
        return False
    named = record.get("type", record.get("block_type"))
    return kind_named(named) == "text" if isinstance(named, str) else len(record) == 1


def answer_in(messages: object) -> dict[str, object]:
    """Return the fields of the last answer in a conversation; empty if it has none."""
    exchanges = [*exchanges_in(messages_in(messages) or ())]
    return fields_of(exchanges[-1]) if exchanges else {}


def fields_of(exchange: Exchange) -> dict[str, object]:
    """Return the columns of a sample."""
    asked = {} if exchange.question is None else {"user_input": exchange.question}
    found: dict[str, object] = {**exchange.columns, **asked, "response": exchange.answer}
    if exchange.retrievals:
        found["retrieved_contexts"] = exchange.contexts()
    if exchange.others:
        found["tools"] = exchange.others
    return found


def _record(item: object) -> Mapping[str, object] | None:
    """Return a record, or the known attributes of an object as one; None for other values."""
    if check.is_record(item):
        return item
    if item is None or isinstance(item, (str, int, float, list, tuple, Turn, Message)):
        return None
    kind: Any = type(item)  # Any: mypy takes the class of an object for unhashable
    extra: object = getattr(item, "__pydantic_extra__", None)
    there = {*getattr(item, "__dict__", ()), *(extra if check.is_record(extra) else ()), *_of_class(kind)}
    given = ((name, getattr(item, name, None)) for name in _attributes() if name in there)
    found = {name: each for name, each in given if each is not None and not callable(each)}
    is_named = any(isinstance(_plain(found.get(name)), str) for name in names()["message"]["role"])
    return found if is_named else {"type": type(item).__name__, **found}


@cache
def _attributes() -> tuple[str, ...]:
    tables = (names()["message"], names()["amounts"])
    return tuple(dict.fromkeys((*(name for table in tables for rows in table.values() for name in rows), *_STEP)))


@lru_cache(_MAX_NAMES)
def _of_class(kind: type) -> frozenset[str]:
    """Return the known attributes that all instances of a class have."""
    return frozenset(dir(kind)).intersection(_attributes())


def _plain(value: object) -> object:
    """Return the value of an enumeration; other values as they are."""
    return getattr(value, "value", value)


@cache
def _kinds() -> Mapping[str, str]:
    return {kind: ours for ours, kinds in names()["kinds"].items() for kind in kinds}


@lru_cache(_MAX_NAMES)
def kind_named(name: str) -> str | None:
    """Return what a name of a speaker or kind means: a role, a call, a text, something silent; None if unknown."""
    letters = "".join(filter(str.isalnum, name[:60].casefold()))
    for _ in range(_PAIR):
        if letters in _kinds():
            return _kinds()[letters]
        letters = next((letters.removesuffix(end) for end in _ENDINGS if letters.endswith(end)), letters)
    return _kinds().get(letters) or (TOOL if name.startswith(_TOOL) else None)


def kind_of(item: object) -> str | None:
    """Return the kind of an item by the name of its speaker, or by the only key that is a kind."""
    record = _record(item)
    if record is None:
        return None
    for name in names()["message"]["role"]:
        if isinstance(given := _plain(record.get(name)), str):
            return kind_named(given)
    constructor = record.get("id")
    if record.get("lc") == 1 and check.is_list(constructor) and constructor:
        return kind_named(str(constructor[-1]))
    kinds = {kind_named(name) for name in islice(record, 10) if check.is_record(record[name])} & {_CALL, TOOL}
    return next(iter(kinds)) if len(kinds) == 1 else "text" if isinstance(record.get("text"), str) else None


def _read(item: object, depth: int) -> Iterator[Message]:
    """Yield what one item says; several messages if its parts have several speakers, none if it is not a message."""
    if isinstance(item, Turn | Message):
        yield item if isinstance(item, Message) else Message(item.role, item.text)
        return
    if check.is_record(item) and len(item) == _PAIR and "role" in item and "content" in item:  # nearly all
        role, content = item["role"], item["content"]
        if isinstance(role, str) and role in _SPEAKERS and isinstance(content, str):
            yield Message(role, content)
            return
    if check.is_list(item) and len(item) == _PAIR and isinstance(item[0], str):  # a pair of role and text
        item = {"role": item[0], "content": item[1]}
    record = _record(item)
    if record is None or depth > _MAX_DEPTH:
        return
    if isinstance(record.get("task"), str) or "observations" in record:
        yield from _step(record)
    elif check.is_record(given := record.get("prompt")) and check.is_record(made := record.get("output")):  # Bedrock
        found = made.get("retrievedPassages", record.get("retrievedPassages"))
        yield Message(USER, _text_of(given))
        yield Message(ASSISTANT, _text_of(made), results=[] if found is None else [Result("", "", found)])
    else:
        yield from _of_kind(record, depth, has_columns=check.is_record(item))


def _of_kind(record: Mapping[str, object], depth: int, *, has_columns: bool) -> Iterator[Message]:
    kind = kind_of(record)
    for inner in [_record(record.get(name)) for name in names()["message"]["inner"]]:
        if inner is not None:
            kind = kind if kind in {USER, ASSISTANT, SYSTEM, TOOL} else kind_of(inner)
            record = {**record, **inner}
    if kind == _CALL:
        found = record.get("results")
        results = [] if found is None else [Result("", _name(record), found)]
        yield Message(ASSISTANT, calls=[_call(record)], results=results)
    elif kind == TOOL:
        content = _first(record, "text")
        parts = [each for each in content if kind_of(each) == TOOL] if check.is_list(content) else []
        for part in parts:
            yield from _read(part, depth + 1)
        if not parts:
            yield Message(TOOL, results=[_result(record)])
    elif kind == _SILENT:
        yield Message(ASSISTANT)
    elif kind in {USER, ASSISTANT, SYSTEM}:
        yield from _spoken(record, kind, depth, has_columns=has_columns)


def _spoken(record: Mapping[str, object], role: str, depth: int, *, has_columns: bool) -> Iterator[Message]:
    table = names()["message"]
    own = {name: each for name, each in record.items() if name not in _used()} if has_columns else {}
    message = Message(role, columns={**own, **(amounts_in(record) if role == ASSISTANT else {})})
    for held_in in (record, _record(record.get("additional_kwargs")) or {}):
        for name in table["call"]:
            given = held_in.get(name)
            message.calls += [_call(call) for call in (given if check.is_list(given) else [given]) if call]
    content = _first(record, "text")
    texts: list[str] = []
    for part in content if check.is_list(content) else [content]:
        kind = kind_of(part)
        if kind == _SILENT:
            continue
        if kind not in {USER, ASSISTANT, SYSTEM, TOOL, _CALL}:
            texts.append(_text_of(part))
            continue
        for each in _read(part, depth + 1):
            if each.role not in {role, TOOL}:
                yield each
                continue
            message.calls += each.calls
            message.results += each.results
            texts.append(each.text)
    message.text = reduce(_beside, filter(None, texts), "")
    if message.text or message.calls or message.results or not content:
        yield message


def _beside(text: str, other: str) -> str:
    """Return two parts of a message as one text; a sentence in parts, as between citations, stays on its line."""
    is_one = not text or text[-1].isspace() or not (other[0].isalnum() or other[0] in "\"'(«“*_#-")
    return text + other if is_one else f"{text}\n{other}"


def _step(record: Mapping[str, object]) -> Iterator[Message]:
    """Yield what a step of smolagents says: the task, or the calls and what they returned."""
    if isinstance(task := record.get("task"), str):
        yield Message(USER, task)
    elif record.get(_FINAL) or record.get("observations") is None:
        yield Message(ASSISTANT)
    else:
        calls = record.get("tool_calls")
        call = next((_call(each) for each in (calls if check.is_list(calls) else ()) if each), Call("", "", ""))
        yield Message(ASSISTANT, calls=[call])
        yield Message(TOOL, results=[Result(call.id, call.name, record["observations"])])


def _first(record: Mapping[str, object], what: str) -> object:
    return next((each for name in names()["message"][what] if (each := record.get(name)) is not None), None)


def _name(record: Mapping[str, object]) -> str:
    named = _first(record, "name")
    named = named.get("name") if check.is_record(named) else named
    return named if isinstance(named, str) else ""


def _id(record: Mapping[str, object]) -> str:
    found = _first(record, "id")
    return found if isinstance(found, str) else ""


def _inside(item: object) -> Mapping[str, object]:
    """Return a call or a result without the object of one key around it, and with its function and its id."""
    record = _record(item)
    if record is None:
        return {}
    for _ in range(_PAIR):
        inner = {
            *names()["message"]["inner"],
            *(name for name in islice(record, 10) if kind_named(name) in {_CALL, TOOL}),
        }
        for each in [_record(record[name]) for name in inner if name in record]:
            record = {**record, **(each or {})}
    return record


def _call(item: object) -> Call:
    record = _inside(item)
    given = held(_first(record, "query"))
    return Call(_id(record), _name(record), query_of(given))


def _result(item: object) -> Result:
    record = _inside(item)
    origin = record.get("origin")
    call = _call(origin) if origin is not None else Call("", "", "")
    given = (record.get(name) for name in names()["message"]["result"])
    value: Any = next((each for each in given if each not in (None, "", [])), "")  # Any: what a tool returned
    value = plain(getattr(value, "source_nodes", None) or value)
    return Result(_id(record) or call.id, _name(record) or call.name, value)


def query_of(given: object) -> str:
    """Return the question in the arguments of a call: under a known name, or the only text; empty otherwise."""
    record: Mapping[str, object] = _inside(given) if check.is_record(given) else {}
    asked = [record[name] for name in names()["texts"][USER] if isinstance(record.get(name), str)]
    return str(asked[0]) if asked else _only_text(record or given)


def _only_text(value: object) -> str:
    """Return a text, or the only one in an object; empty otherwise."""
    texts = [each for each in value.values() if isinstance(each, str)] if check.is_record(value) else [value]
    return texts[0] if len(texts) == 1 and isinstance(texts[0], str) else ""


def _text_of(value: object, depth: int = 0) -> str:
    """Return the text of a part of a message; empty if it has none."""
    if isinstance(value, str):
        return value
    if depth > _MAX_DEPTH:
        return ""
    if check.is_list(value):
        return "\n".join(filter(None, (_text_of(each, depth + 1) for each in value)))
    record = _record(value) or {}
    known = (*names()["message"]["text"], "answer", "output")
    return next((text for name in known if name in record and (text := _text_of(record[name], depth + 1))), "")


@cache
def _used() -> frozenset[str]:
    """Return the keys of messages that are not columns of a sample."""
    table = names()["message"]
    return frozenset((*_NO_COLUMNS, *(name for what in table if what != "list" for name in table[what])))


_NO_COLUMNS: Final = (
    "status artifact additional_kwargs response_metadata usage_metadata invalid_tool_calls _meta _name example "
    "refusal annotations audio usage model_name timestamp provider_name finish_reason instructions lc phase "
    "provider_details provider_response_id run_id conversation_id"
).split()


# -- objects of agents ---------------------------------------------------------------------------------


def _chat_response(value: Any) -> object:
    nodes = [Result("", "", plain(value.source_nodes))] if value.source_nodes else []
    found = [Message("tool", results=nodes)] if nodes else value.sources or ()
    return _conversation([Message(ASKED), *found, Message("assistant", str(value))])


def _steps(value: Any) -> object:
    used = {**amounts_in(value), "latency_s": value.timing.duration}
    return _conversation([*value.steps, Message(ASSISTANT, str(value.output), columns=used)])


def _task(value: Any) -> object:
    said: list[object] = [
        Message(USER if each.source == USER else ASSISTANT, each.content, columns=amounts_in(each))
        if isinstance(each.content, str) and type(each).__name__ != "ThoughtEvent"
        else each
        for each in value.messages
    ]
    return _conversation(said)


def _crew(value: Any) -> object:
    read = messages_in([each for task in value.tasks_output for each in task.messages or ()]) or ()
    found = [each for each in read if each.calls or each.results]
    return _conversation([Message(ASKED), *found, Message(ASSISTANT, value.raw)])


def _conversation(messages: list[object]) -> dict[str, object]:
    return {"messages": messages_in(messages) or []}


AS_IS.add(Message)
READERS.update(
    {
        ("langchain_core", "BaseMessage"): Reader(
            Role.TEXT, lambda value: "".join(each.text for each in messages_in([value]) or ())
        ),
        ("llama_index", "AgentChatResponse"): Reader(Role.RESULT, _chat_response),
        ("llama_index", "StreamingAgentChatResponse"): Reader(Role.RESULT, _chat_response),
        ("llama_index", "AgentOutput"): Reader(
            Role.RESULT, lambda run: _conversation([Message(ASKED), *(run.tool_calls or ()), run.response])
        ),
        ("pydantic_ai", "AgentRunResult"): Reader(Role.RESULT, lambda run: _conversation(run.all_messages())),
        ("agents", "RunResultBase"): Reader(
            Role.RESULT, lambda run: _conversation([*run.to_input_list(), Message(ASSISTANT, columns=amounts_in(run))])
        ),
        ("smolagents", "RunResult"): Reader(Role.RESULT, _steps),
        ("autogen_agentchat", "TaskResult"): Reader(Role.RESULT, _task),
        ("crewai", "CrewOutput"): Reader(Role.RESULT, _crew),
    }
)
