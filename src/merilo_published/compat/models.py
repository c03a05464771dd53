"""Judges and embedders from what scripts of other packages pass as a model: names, wrappers, clients and objects."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.errors import UsageError
from merilo.judges.callables import is_chat_model, judge_of_model
from merilo.judges.embeddings import OpenAIEmbeddingsJudge
from merilo.judges.llm import LLMJudge
from merilo.judges.spec import embedder_from, judge_from
from merilo.plugins import Group, names_file, plugins
from merilo.providers.openai import OpenAIEmbeddingsProvider, OpenAIProvider

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.judges.base import Judge, JudgeLike
    from merilo.providers.base import Message

_KEY: Final = "OPENAI_API_KEY"


@dataclass(frozen=True)
class Wrapped:
    """A model that a wrapper of the other package's name holds: a judge, or an embedder."""

    judge: JudgeLike


class MadeOnce:
    """Judges made from what a script passes; equal texts, and the same object, give one judge."""

    def __init__(self) -> None:
        self._made: dict[object, tuple[object, Judge]] = {}

    def of(self, given: Any, make: Callable[[Any], Judge]) -> Judge:  # Any: a text or any object
        """Return the judge of `given`, which is made if it is new."""
        key = given if isinstance(given, str) else id(given)
        if key not in self._made:
            self._made[key] = (given, make(given))  # the object is held, so that its id stays its own
        return self._made[key][1]


def judge_for(model: object) -> Judge:
    """Return the judge for a model: our specification, a name of an OpenAI model, a wrapper, or a model object.

    Objects are LangChain's and LlamaIndex's models, judges and providers of merilo, and classes with `generate`, as
    DeepEval's own. Raises UsageError for anything else.
    """
    if isinstance(model, Wrapped):
        return judge_for(model.judge)
    if isinstance(model, str):
        return judge_from(spec_of(model))
    if is_chat_model(model):
        return judge_of_model(model)
    if callable(getattr(model, "complete", None)) and callable(getattr(model, "chat", None)):
        return judge_of_model(model, _ask_llama_index)
    if callable(getattr(model, "generate", None)) and not hasattr(model, "answers"):
        return judge_of_model(model, _ask_generate)
    return judge_from(cast("JudgeLike", model))  # which reports an object that is not a judge


def embedder_for(model: object) -> Judge:
    """Return the embedder for a model: our specification, a name of an OpenAI model, a wrapper, or a model object.

    Raises UsageError for anything else.
    """
    if isinstance(model, Wrapped):
        return embedder_for(model.judge)
    if isinstance(model, str):
        return embedder_from(spec_of(model))
    return embedder_from(cast("JudgeLike", model))


def spec_of(name: str) -> str:
    """Return a specification unchanged, and the name of an OpenAI model as `openai:NAME`."""
    scheme = name.partition(":")[0]
    known = {each.name for group in (Group.JUDGES, Group.PROVIDERS) for each in plugins(group)}
    return name if scheme in known or names_file(name) else f"openai:{name}"


def usual_model(name: str, argument: str) -> str:
    """Return the OpenAI model that the other package uses if none is named. Raises UsageError without a key."""
    if not (os.environ.get(_KEY) or os.environ.get("OPENAI_BASE_URL")):
        raise UsageError(
            f"No judge is named, and {_KEY} is not set. Pass {argument}=, such as {argument}='openai:{name}' or a "
            f"LangChain model. {argument}='embedded' uses the judge that ships with merilo."
        )
    return f"openai:{name}"


def judge_of_client(client: object, model: str) -> LLMJudge:
    """Return the judge for a model behind an OpenAI client: its address and key are used, the client is not called."""
    return LLMJudge(_endpoint(client, model))


def embedder_of_client(client: object, model: str) -> OpenAIEmbeddingsJudge:
    """Return the embedder for a model behind an OpenAI client."""
    return OpenAIEmbeddingsJudge(OpenAIEmbeddingsProvider(_endpoint(client, model)))


def _endpoint(client: object, model: str) -> OpenAIProvider:
    kind = type(client).__name__
    if "Azure" in kind:
        raise UsageError(f"{kind} cannot be used; name the deployment instead, as in 'azure:DEPLOYMENT'.")
    address: object = getattr(client, "base_url", None)
    if address is None or not hasattr(client, "api_key"):
        raise UsageError(
            f"A client must be OpenAI's or one like it, got {kind}. Name the model, as in 'openai:{model}'."
        )
    return OpenAIProvider(model, base_url=str(address), api_key=lambda: str(getattr(client, "api_key", "")))


def _joined(messages: tuple[Message, ...]) -> str:
    return "\n\n".join(message.text for message in messages)


def _ask_llama_index(model: Any, messages: tuple[Message, ...], temperature: float | None) -> object:
    """Send the messages to a LlamaIndex LLM as one prompt; it keeps its own temperature."""
    del temperature
    return model.complete(_joined(messages))


def _ask_generate(model: Any, messages: tuple[Message, ...], temperature: float | None) -> object:
    """Send the messages to a class like DeepEval's `DeepEvalBaseLLM` as one prompt."""
    del temperature
    return model.generate(_joined(messages))
