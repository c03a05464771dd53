"""The user's application: function, two functions, object or URL; and its calls, each stored before it is used."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType, NoneType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from merilo.adapters.tables import is_of
from merilo.commands.evaluate.pipeline import PipelineCaller, PipelineOutput, fields_of, of_package, output_of
from merilo.data import check
from merilo.data.remote import is_url, redacted
from merilo.engine.rate_limits import CONCURRENCY
from merilo.errors import LimitReached, UsageError
from merilo.plugins import names_file, object_in_file
from merilo.providers.endpoint import open_wire
from merilo.providers.secrets import ApiKeys

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from merilo.commands.diagnose.settings import DiagnoseOptions
    from merilo.commands.evaluate.pipeline import PipelineOutputs

    Application = Callable[[str, list[str] | None], Awaitable[object]]
    """Answers a question, from these contexts in this order; None: the application retrieves its own."""

T = TypeVar("T")

_TIMEOUT_S: Final = 120.0
_OK: Final = 200
_SHOWN: Final = 200


def application_of(app: object, options: DiagnoseOptions) -> Application:
    """Return the application of the arguments of `merilo diagnose`. Raises UsageError."""
    two = options.retrieve, options.generate
    if app is None and None not in two:
        return partial(_two, _function(two[0]), _function(two[1]))
    if app is None or two != (None, None):
        raise UsageError("Name one application (FILE.py:NAME or a URL), or two functions: --retrieve and --generate.")
    if isinstance(app, str) and is_url(app):
        if "@" in app or "?" in app or "#" in app:  # applications repeat their address in answers and errors
            raise UsageError(
                "The application's address must have no password, query or fragment. Send them in a function."
            )
        return partial(_posted, app, options.limits.timeout_s or _TIMEOUT_S)
    found = object_in_file(app) if isinstance(app, str) else app
    if "contexts" not in (inspect.signature(found).parameters if callable(found) else ()):
        return _with_replaced_retriever(found)
    call = _function(found)
    return lambda question, contexts: call(question, contexts=contexts)


def code_of(given: object) -> str:
    """Return the name of code, or a URL, with a digest of its file or of its own bytes if it has some."""
    if isinstance(given, str) and names_file(given):
        path, _, name = given.rpartition(":")
        name, code = f"{Path(path).name}:{name}", Path(path).read_bytes()
    else:
        name = redacted(given) if isinstance(given, str) else str(getattr(given, "__qualname__", type(given).__name__))
        code = getattr(getattr(given, "__code__", None), "co_code", b"")
    return f"{name} {blake2b(code, digest_size=8).hexdigest()}"


def _function(named: object) -> Callable[..., Awaitable[object]]:
    """Return a function as an async one; a blocking one runs in its own thread."""
    function: Any = object_in_file(named) if isinstance(named, str) else named  # Any: the user's code
    if not callable(function):
        raise UsageError(f"The application must be a function, got an object of type {type(function).__name__}.")

    def call(*given: object, **options: object) -> Awaitable[object]:
        def asked(_: str) -> object:
            return function(*given, **options)

        return PipelineCaller(asked, None).ask("")

    return call


async def _two(
    retrieve: Callable[..., Awaitable[object]],
    generate: Callable[..., Awaitable[object]],
    question: str,
    contexts: list[str] | None,
) -> object:
    found: Any = {}  # Any: JSON
    if contexts is None:
        output: Any = await retrieve(question)  # Any: as above
        found = fields_of(output if check.is_mapping(output) else [*output])
        contexts = texts_of(found)
    return {**fields_of(await generate(question, contexts)), **found}


async def _posted(url: str, timeout_s: float, question: str, contexts: list[str] | None) -> object:
    parts, body = urlsplit(url), json.dumps({"question": question, "contexts": contexts}).encode()
    absent = f"No server at {parts.netloc}. Start the application"
    keys = ApiKeys("Authorization")
    async with open_wire(url, keys, timeout_s, shown=redacted(url), absent=absent) as wire:
        answer = await wire.post("", body)
    if answer.status != _OK:
        raise RuntimeError(f"status {answer.status}: {answer.text[:_SHOWN]}")
    return json.loads(answer.text)


def texts_of(fields: Any) -> list[str] | None:  # Any: the fields of an output
    """Return the texts of the contexts in an output; None if it has none."""
    found = fields.get("retrieved_contexts")
    return None if found is None else [each if isinstance(each, str) else str(each["text"]) for each in found]


# -- objects whose retriever is replaced ---------------------------------------------------------------


@dataclass(slots=True)
class _Asked:
    """The contexts to answer from, None: those that are retrieved, and what the last retriever returned."""

    contexts: list[str] | None
    found: object = None


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of object that retrieves, ranks or filters: its methods, and what they return for the given texts."""

    is_one: Callable[[object], bool]
    methods: str
    made: Callable[[list[str]], object]


def _haystack_component(part: object) -> bool:
    outputs = getattr(part, "__haystack_output__", None) if hasattr(type(part), "run") else None
    return {*getattr(outputs, "_sockets_dict", {})} == {"documents"}


def _documents(texts: list[str]) -> list[object]:
    return [of_package("langchain_core.documents", "Document")(page_content=each) for each in texts]


def _nodes(texts: list[str]) -> list[object]:
    node, scored = (of_package("llama_index.core.schema", name) for name in ("TextNode", "NodeWithScore"))
    return [scored(node=node(text=each), score=1.0) for each in texts]


_KINDS: Final = (
    _Kind(is_of("langchain_core", "BaseRetriever"), "_get_relevant_documents _aget_relevant_documents", _documents),
    _Kind(is_of("langchain_core", "VectorStore"), "similarity_search asimilarity_search", _documents),
    _Kind(is_of("llama_index", "BaseRetriever"), "_retrieve _aretrieve", _nodes),
    _Kind(is_of("llama_index", "BaseNodePostprocessor"), "_postprocess_nodes _apostprocess_nodes", _nodes),
    _Kind(
        _haystack_component,
        "run run_async",
        lambda texts: {"documents": [of_package("haystack", "Document")(content=each) for each in texts]},
    ),
    _Kind(
        is_of("dspy", "Retrieve", "Embeddings"),
        "forward aforward",
        lambda texts: of_package("dspy", "Prediction")(passages=texts),
    ),
)
_asked: Final = ContextVar[_Asked]("merilo-asked")
_ATOMS: Final = (str, bytes, int, float, complex, NoneType, type, ModuleType, CodeType, FrameType)
_MOST_PARTS: Final = 200_000


def _with_replaced_retriever(app: object) -> Application:
    """Return an object, or a function of the question, as an application: its own retrievers return given contexts.

    Their methods are wrapped on the objects, for good; outside a diagnosis they do what they did.
    """
    ask = PipelineCaller(app, None).ask
    found = [(part, kind) for part in [*parts_of(app)] for kind in _KINDS if kind.is_one(part)]
    if not found:
        raise UsageError(
            f"{type(app).__name__} takes no contexts, and has no retriever that merilo can replace. Write a function "
            "answer(question, contexts=None)."
        )
    for part, kind in found:
        for name in kind.methods.split():
            if (method := getattr(part, name, None)) is not None:
                object.__setattr__(part, name, _replaced(method, kind.made))  # models of pydantic refuse setattr

    async def answer(question: str, contexts: list[str] | None) -> object:
        asked = _Asked(contexts)
        _asked.set(asked)  # tasks and threads that the application starts inherit it
        output = fields_of(await ask(question))
        return {**output, **(fields_of(asked.found) if asked.found else {})}

    return answer


def _replaced(method: Callable[..., Any], made: Callable[[list[str]], object]) -> Callable[..., Any]:  # Any: any method
    """Return a method that returns the given contexts if there are some; what it returns is noted."""

    def given() -> object:
        asked = _asked.get(None)
        return None if asked is None or asked.contexts is None else made(asked.contexts)

    def noted(found: object) -> object:
        if (asked := _asked.get(None)) is not None:
            asked.found = found
        return found

    def call(*args: object, **named: object) -> object:
        found = given()
        return noted(method(*args, **named) if found is None else found)

    async def later(*args: object, **named: object) -> object:
        found = given()
        return noted(await method(*args, **named) if found is None else found)

    return wraps(method)(later if inspect.iscoroutinefunction(method) else call)


def parts_of(root: object) -> Iterator[object]:
    """Yield what an object is made of: attributes, items, and what its functions use; the nearest first."""
    waiting, seen = deque([root]), dict[int, object]()
    while waiting and len(seen) < _MOST_PARTS:
        part = waiting.popleft()
        if id(part) in seen or isinstance(part, _ATOMS):
            continue
        seen[id(part)] = part
        yield part
        if isinstance(part, FunctionType):  # its globals are the whole module
            used = [part.__globals__.get(name) for name in _names(part.__code__)]
            waiting += [part.__closure__, part.__defaults__, part.__kwdefaults__, *used]
        else:
            waiting += gc.get_referents(part)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


# -- calls ---------------------------------------------------------------------------------------------


class Call(NamedTuple):
    """One call of the application: a draw of a question, by id, in an arm."""

    question: str
    text: str
    arm: str
    draw: int
    contexts: tuple[str, ...] | None
    neutral: bool = False
    """True if an unrelated passage is at the end of the contexts, another one in each draw."""


class Caller:
    """Calls the application and stores each answer; a stored answer is not asked for again."""

    def __init__(self, application: Application, outputs: PipelineOutputs, options: DiagnoseOptions) -> None:
        self._application, self._outputs, self._begun = application, outputs, len(outputs)
        self._most, self._concurrency = options.max_calls, options.limits.concurrency or CONCURRENCY
        self._timeout_s = options.limits.timeout_s or _TIMEOUT_S

    async def answer(self, call: Call) -> PipelineOutput:
        """Return the answer, or the message of the application's error. Raises LimitReached and RunError."""
        key = blake2b(json.dumps(call).encode(), digest_size=16).hexdigest()
        found = self._outputs.get(key)
        if found is None:
            if self._most is not None and self._begun >= self._most:
                raise LimitReached(f"The application was called {self._begun:,} times (--max-calls).")
            self._begun += 1
            found = await self._asked(call)
            self._outputs.add(key, found)
        return found

    async def _asked(self, call: Call) -> PipelineOutput:
        try:
            async with asyncio.timeout(self._timeout_s):
                found = await output_of(
                    self._application(call.text, None if call.contexts is None else [*call.contexts])
                )
        except TimeoutError:
            return PipelineOutput({}, f"The application did not answer within {self._timeout_s:g} s.")
        if found.error is not None:
            return PipelineOutput({}, found.error.replace("The pipeline", "The application", 1))
        return found if found.fields.get("response") else PipelineOutput({}, "The application returned no answer.")

    async def each(self, groups: Iterable[T], work: Callable[[T], Awaitable[object]]) -> None:
        """Do the work on each group, at most `concurrency` at a time; calls in flight end before an error is raised."""
        waiting = iter(groups)

        async def worker() -> None:
            for group in waiting:
                await work(group)

        ended = await asyncio.gather(*(worker() for _ in range(self._concurrency)), return_exceptions=True)
        for error in filter(None, ended):
            raise error
