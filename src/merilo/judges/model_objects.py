"""Judges and embedders made from model objects of other libraries, such as LangChain's chat models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from merilo.cancellation import in_thread
from merilo.judges.callables import CallableJudge
from merilo.judges.llm import LLMJudge
from merilo.judging.kinds.embeddings import Embeddings
from merilo.judging.matrix import MatrixVerdict
from merilo.providers.model_objects import ModelObjectProvider, ask_langchain, await_langchain

if TYPE_CHECKING:
    from merilo.judging.questions import Question
    from merilo.providers.model_objects import AskModel


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
    usual = ask_langchain if _has(model, "invoke") else await_langchain
    return ModelObjectJudge(ModelObjectProvider(model, ask or usual))


def embedder_of_model(model: object) -> CallableJudge:
    """Return the embedder that calls the `embed_documents` of an object. Its vectors are not cached across runs."""

    async def embed(question: Question[Any]) -> MatrixVerdict:
        texts = list(question.texts) if isinstance(question, Embeddings) else []
        rows = await in_thread(cast("Any", model).embed_documents, texts)  # any object with this method
        return MatrixVerdict.of([[float(number) for number in row] for row in rows])

    return CallableJudge(embed, answers=frozenset({Embeddings}), title=type(model).__name__)


def _has(found: object, method: str) -> bool:
    return callable(getattr(found, method, None))
