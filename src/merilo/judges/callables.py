"""Judges made from code of the user: a callable that answers questions or compares texts, or a model object.

The library of a model object is never imported: an object is recognised by its methods. Its blocking calls run in
threads, because the clients of such objects often belong to one event loop, and merilo may use several.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from itertools import product
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.cancellation import in_thread
from merilo.errors import Permanent, ProviderError, RateLimited, Temporary
from merilo.judges.base import Conversation, JudgeDefaults, OutgoingRequest
from merilo.judges.llm import LLMJudge
from merilo.judging.json_types import as_list, as_mapping, as_object
from merilo.judging.kinds.measured import Embeddings, MatrixVerdict
from merilo.judging.questions import Pack, Question
from merilo.judging.registry import ALL_KINDS
from merilo.providers.base import Message, Reply, ReplyPath, Request, Usage
from merilo.providers.bodies import schema_in_words
from merilo.providers.problems import count
from merilo.providers.questions import (
    AnswerWith,
    CallableProvider,
    QuestionRequest,
    Stateless,
    answer_of,
    is_async,
    qualified_name,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


AskModel = Callable[[Any, "tuple[Message, ...]", "float | None"], Any]
"""Takes a model object, messages and a temperature (None: the model's own); returns the model's reply object."""

_ROLES: Final = {"system": "system", "user": "human", "assistant": "ai"}
_NAMES: Final = ("model_name", "model", "model_id", "deployment_name", "repo_id")
_ADDRESSES: Final = ("openai_api_base", "base_url", "azure_endpoint", "endpoint_url")
_TOO_MANY, _TIMEOUT, _SERVER_ERROR = 429, 408, 500


@dataclass(frozen=True)
class CallableJudge(JudgeDefaults):
    """A judge that answers with the result of `call` for each question: a verdict, a mapping of its fields, or a
    Failure.

    `call` may be async. With a `version` its verdicts are cached across runs: give it a new value whenever the
    callable may answer differently. `answers`: the question types that it answers, if not all.
    """

    call: AnswerWith
    version: str = ""
    answers: frozenset[type[Question[Any]]] = ALL_KINDS
    title: str = ""

    @property
    def name(self) -> str:
        """Its title, or the callable's qualified name."""
        return self.title or self._provider.name

    @property
    def cacheable(self) -> bool:
        """True only with a version: merilo cannot detect that the callable was changed."""
        return bool(self.version)

    def fingerprint(self) -> Mapping[str, object]:
        """Return the callable's qualified name and version."""
        return {"judge": "callable", "provider": dict(self._provider.fingerprint())}

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """Return one answer per question, with one request for each, side by side."""
        questions = question.questions if isinstance(question, Pack) else (question,)
        provider = self._provider
        # Through the engine like requests to a server, so that its limits on concurrency apply to the callable too.
        replies = yield tuple(OutgoingRequest(provider, QuestionRequest.of(each)) for each in questions)
        return tuple(map(answer_of, questions, replies))

    @cached_property
    def _provider(self) -> CallableProvider:
        return CallableProvider(self.call, self.version)


def comparing(function: Callable[..., Any]) -> AnswerWith:
    """Return a function that compares texts as one that answers `Similarities`.

    `function` takes a list of pairs, or the left and the right texts of all pairs as two lists. It returns one number
    per pair, or a row of numbers per left text.
    """

    @wraps(function if hasattr(function, "__qualname__") else type(function))
    def call(question: Any) -> Any:  # Any: only Similarities are asked; what the function returns
        pairs = [*product(question.left, question.right)]
        return function(*map(list, zip(*pairs, strict=True))) if _takes_two(function) and pairs else function(pairs)

    return call


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C
        return False
    needed = [each for each in parameters if each.default is each.empty and each.kind <= each.POSITIONAL_OR_KEYWORD]
    return len(needed) == 2


# Judges and embedders made from model objects of other libraries, such as LangChain's chat models.


@dataclass(frozen=True)
class ModelObjectJudge(LLMJudge):
    """A judge that asks a model object. It leaves the temperature to the model, unless a definition fixes it.

    Its verdicts are cached across runs only if the object states the name of its model.
    """

    temperature: float | None = field(default=None)

    @property
    def cacheable(self) -> bool:
        """True if the object states the name of its model."""
        return isinstance(self.provider, ModelObjectProvider) and bool(self.provider.stated_name)

    @property
    def name(self) -> str:
        """The model's name, otherwise the object's class."""
        return self.provider.name if isinstance(self.provider, ModelObjectProvider) else super().name


def is_chat_model(found: object) -> bool:
    """Return True for an object with LangChain's `invoke` or `ainvoke`."""
    return not isinstance(found, type) and (_has(found, "invoke") or _has(found, "ainvoke"))


def judge_of_model(model: object, ask: AskModel | None = None) -> ModelObjectJudge:
    """Return the judge that asks a model object: through `ask`, otherwise as a LangChain chat model."""
    return ModelObjectJudge(ModelObjectProvider(model, ask or ask_langchain))


def embedder_of_model(model: object) -> CallableJudge:
    """Return the embedder that calls the `embed_documents` of an object. Its vectors are not cached across runs."""

    async def embed(question: Question[Any]) -> MatrixVerdict:
        texts = list(question.texts) if isinstance(question, Embeddings) else []
        rows = await in_thread(cast("Any", model).embed_documents, texts)  # any object with this method
        return MatrixVerdict.of([[float(number) for number in row] for row in rows])

    return CallableJudge(embed, answers=frozenset({Embeddings}), title=type(model).__name__)


def _has(found: object, method: str) -> bool:
    return callable(getattr(found, method, None))


# -- model objects of other libraries, such as a LangChain chat model ---------------------------------------


def ask_langchain(model: Any, messages: tuple[Message, ...], temperature: float | None) -> Any:
    """Send messages to a LangChain model; return its reply, or an awaitable of it if it has only `ainvoke`."""
    turns = [(_ROLES[message.author], message.text) for message in messages]
    asked = with_temperature(model, temperature)
    return asked.invoke(turns) if _has(model, "invoke") else asked.ainvoke(turns)


def with_temperature(model: Any, temperature: float | None) -> Any:
    """Return a copy of a pydantic model object with this temperature; the object itself if it has no such field."""
    kind = type(cast("object", model))  # Any has no type to look at
    fields = as_mapping(getattr(kind, "model_fields", None) or getattr(kind, "__fields__", None))
    if temperature is None or fields is None or "temperature" not in fields:
        return model
    copy = getattr(model, "model_copy", None) or model.copy
    return copy(update={"temperature": temperature})


@dataclass(frozen=True, eq=False)
class ModelObjectProvider(Stateless):
    """Sends each request to a model object; `ask` calls it. Equal only to itself, like the object."""

    model: object = field(repr=False)
    ask: AskModel = field(default=ask_langchain, repr=False)

    @property
    def name(self) -> str:
        """The name of the model that the object states, otherwise the class of the object."""
        return self.stated_name or type(self.model).__name__

    @property
    def stated_name(self) -> str:
        """The name of the model that the object states; empty if it states none."""
        return next((found for name in _NAMES if (found := _text_at(self.model, name))), "")

    def fingerprint(self) -> Mapping[str, object]:
        """Return the class of the object, and the model's name, address and temperature that it states."""
        client: object = getattr(self.model, "root_client", None)  # of LangChain's models of OpenAI
        client_address = str(getattr(client, "base_url", ""))
        address = next((found for name in _ADDRESSES if (found := _text_at(self.model, name))), client_address)
        temperature: object = getattr(self.model, "temperature", None)
        stated = {"model": self.stated_name, "base_url": address.rpartition("@")[2].partition("?")[0]}
        if isinstance(temperature, int | float):
            stated["temperature"] = str(float(temperature))
        return {"provider": "model object", "class": qualified_name(type(self.model)), **stated}

    async def send(self, request: Request) -> Reply:
        """See `Connection`."""
        started = perf_counter()
        found = await self._asked(_messages_of(request), request.temperature)
        text = text_of(found)
        if text is None:
            raise Permanent(f"{self.name} returned {type(found).__name__} without text.")
        path = ReplyPath.TEXT if request.schema is None else ReplyPath.PROMPTED
        counts = as_object(getattr(found, "usage_metadata", None)) or {}
        usage = Usage(count(counts.get("input_tokens")), count(counts.get("output_tokens")))
        return Reply((text,), usage=usage, path=path, model=self.name, seconds=perf_counter() - started)

    async def _asked(self, messages: tuple[Message, ...], temperature: float | None) -> object:
        try:
            if is_async(self.ask):
                return await self.ask(self.model, messages, temperature)
            found = await in_thread(self.ask, self.model, messages, temperature)
            return await found if inspect.isawaitable(found) else found
        except ProviderError:
            raise
        except Exception as error:  # the object's own code: its failure is a failure of this request
            raise _error_of(error, self.name) from error


def text_of(found: object) -> str | None:
    """Return the text of a reply: a text, an object with `content` or `text`, or the first of a pair; None if none."""
    if isinstance(found, tuple):
        pair = cast("tuple[object, ...]", found)  # isinstance does not narrow the items
        found = pair[0] if pair else None  # a reply and its cost
    if isinstance(found, str):
        return found
    content: object = getattr(found, "content", None)
    content = getattr(found, "text", None) if content is None else content
    if isinstance(content, str):
        return content
    blocks = as_list(content)
    if blocks is None:
        return None
    parts = [block if isinstance(block, str) else (as_object(block) or {}).get("text") for block in blocks]
    return "".join(part for part in parts if isinstance(part, str))


def _messages_of(request: Request) -> tuple[Message, ...]:
    """Return the messages; a schema is asked for in words, at the end of the first user message."""
    if request.schema is None:
        return request.messages
    place = next((n for n, message in enumerate(request.messages) if message.author == "user"), 0)
    asked = request.messages[place]
    worded = Message(asked.author, f"{asked.text}\n\n{schema_in_words(request)}", asked.shared)
    return (*request.messages[:place], worded, *request.messages[place + 1 :])


def _error_of(error: Exception, name: str) -> ProviderError:
    status: object = getattr(error, "status_code", None)
    message = f"{name} raised {type(error).__name__}: {error}"
    if not isinstance(status, int):
        return Permanent(message)
    passing = status == _TIMEOUT or status >= _SERVER_ERROR
    return (RateLimited if status == _TOO_MANY else Temporary if passing else Permanent)(message, status=status)


def _text_at(model: object, name: str) -> str:
    found: object = getattr(model, name, None)
    return found if isinstance(found, str) else ""
