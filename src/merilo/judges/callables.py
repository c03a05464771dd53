"""A judge made from any callable that takes a question and returns a verdict, or compares texts."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import cached_property, wraps
from itertools import product
from typing import TYPE_CHECKING, Any, cast

from merilo.cancellation import in_thread
from merilo.judges.base import JudgeDefaults, OutgoingRequest
from merilo.judges.llm import LLMJudge
from merilo.judging.kinds.embeddings import Embeddings
from merilo.judging.matrix import MatrixVerdict
from merilo.judging.questions import Pack, Question
from merilo.judging.registry import ALL_KINDS
from merilo.providers.model_objects import ModelObjectProvider, ask_langchain, await_langchain
from merilo.providers.questions import AnswerWith, CallableProvider, QuestionRequest, answer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.judges.base import Conversation
    from merilo.judging.kinds.similarities import Similarities
    from merilo.judging.questions import Question
    from merilo.providers.model_objects import AskModel


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


class Pairs(list[tuple[str, str]]):
    """Each left text with each right text: all pairs of the first left text, then those of the second, and so on."""

    def __init__(self, question: Similarities) -> None:
        super().__init__(product(question.left, question.right))
        self.left, self.right = question.left, question.right


def comparing(function: Callable[..., Any]) -> AnswerWith:
    """Return a function that compares texts as one that answers `Similarities`.

    `function` takes a list of pairs, or the left and the right texts of all pairs as two lists. It returns one number
    per pair, or a row of numbers per left text.
    """

    @wraps(function if hasattr(function, "__qualname__") else type(function))
    def call(question: Any) -> Any:  # Any: only Similarities are asked; what the function returns
        pairs = Pairs(question)
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
