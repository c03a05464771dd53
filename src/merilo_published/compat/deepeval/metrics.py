"""DeepEval's metrics of RAG, which measure one test case at a time, and its models: a user's own, and hosted judges."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.commands.blocking import run_blocking
from merilo.errors import JudgeError, UsageError
from merilo.judges.spec import judge_from
from merilo.judging.kinds.responses import Completion
from merilo.metrics.base import EvidenceTarget, Failed, Outcome, Score
from merilo.metrics.registry import parse_metric

from ..scoring import RunSettings, Wanted, Wrapped, judge_for, score, usable, usual_model, why_none
from .test_case import MissingTestCaseParamsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.judges.base import Judge

    from .test_case import LLMTestCase

__all__ = [
    "AmazonBedrockModel",
    "AnswerRelevancyMetric",
    "AnthropicModel",
    "AzureOpenAIModel",
    "BaseMetric",
    "ContextualPrecisionMetric",
    "ContextualRecallMetric",
    "ContextualRelevancyMetric",
    "DeepEvalBaseLLM",
    "FaithfulnessMetric",
    "GPTModel",
    "GeminiModel",
    "LocalModel",
    "OllamaModel",
    "OpenAIModel",
]

Option = bool | int | float | str | None
"""Types of a metric's parameters."""

_SYSTEM: Final = "deepeval-4.3.1"
_USUAL: Final = "gpt-5.4"
_WITHOUT_EFFECT: Final = frozenset({"async_mode", "verbose_mode", "flaky", "system_one_model", "eval_mode"})


def judge_of(model: object) -> Judge:
    """Return the judge for a model. Raises UsageError if it is None, and the usual model of DeepEval has no key."""
    return judge_for(usual_model(_USUAL, "model") if model is None else model)


class BaseMetric:
    """The common base of DeepEval's metrics.

    Args:
        threshold: the score to reach, in [0, 1]; None: any score passes.
        model: the judge: a specification (`openai:MODEL`, `embedded`), the name of an OpenAI model, a LangChain or
            LlamaIndex model, or a class like `DeepEvalBaseLLM`. None: `gpt-5.4` of OpenAI, as in DeepEval.
        include_reason: ask the judge for a reason too, in one more request.
        strict_mode: the threshold is 1, and any lower score counts as 0.
        options: the other parameters of the metric; those of DeepEval without an effect here are accepted.

    Raises UsageError for an unknown option.
    """

    title: ClassVar[str]
    metric: ClassVar[str]
    native: ClassVar[str]
    own: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        threshold: float | None = 0.5,
        model: object = None,
        include_reason: bool = True,  # noqa: FBT001, FBT002  a position in DeepEval too
        *,
        strict_mode: bool = False,
        **options: Option,
    ) -> None:
        if "evaluation_template" in options:
            raise UsageError(
                f"{type(self).__qualname__} has merilo's own prompts; evaluation_template has no effect here."
            )
        unknown = [name for name in options if name not in self.own and name not in _WITHOUT_EFFECT]
        if unknown:
            known = ", ".join(["threshold", "model", "include_reason", "strict_mode", *sorted(self.own)])
            raise UsageError(f"{type(self).__qualname__} has no option {unknown[0]!r}; it takes {known}.")
        self.threshold = 1.0 if strict_mode else threshold
        self.model, self.include_reason, self.strict_mode = model, include_reason, strict_mode
        self._options = {name: value for name, value in options.items() if name in self.own}
        self.score: float | None = None
        self.reason: str | None = None
        self.success: bool | None = None
        self.error: str | None = None

    @property
    def definition(self) -> str:
        """The definition of merilo that computes it, with its parameters."""
        loose = self.model is not None and hasattr(self.model, "generate") and not hasattr(self.model, "invoke")
        parameters: dict[str, Option] = {**self._options}
        if self.strict_mode:
            parameters["strict_mode"] = True
        if not self.include_reason:
            parameters["include_reason"] = False
        if loose:
            parameters["reply"] = "loose"  # as DeepEval reads the replies of a model class without schemas
        written = ", ".join(f"{name}={_written(value)}" for name, value in parameters.items())
        return f"{_SYSTEM}:{self.metric}({written})" if written else f"{_SYSTEM}:{self.metric}"

    @property
    def evaluation_model(self) -> str:
        """The name of the judge."""
        return judge_of(self.model).name

    @property
    def __name__(self) -> str:
        """The name in results."""
        return self.title

    def wanted(self, judge: Judge) -> Wanted:
        """Return the metric to compute with this judge. Raises UsageError if the judge cannot answer."""
        return Wanted(usable(self.definition, self.native, judge, type(self).__qualname__), judge)

    def problem(self, test_case: LLMTestCase) -> str:
        """Return which fields that the metric needs are missing, as a sentence; empty if there are none."""
        return test_case.lacking(parse_metric(f"{_SYSTEM}:{self.metric}").needs, type(self).__qualname__)  # type: ignore[union-attr]  # no composite is named

    def take(self, outcome: Outcome, judge: Judge) -> None:
        """Set score, reason, success and error from an outcome."""
        self.score = outcome.value if isinstance(outcome, Score) else None
        self.error = outcome.error.message if isinstance(outcome, Failed) else None
        published = Completion in judge.answers
        self.reason = _reason(outcome) if published or not isinstance(outcome, Score) else None
        if self.score is not None and self.score < 1 and self.strict_mode and not published:
            self.score = 0.0  # merilo's own metric has no strict mode
        self.success = self.score is not None and self.score >= (self.threshold or 0)

    async def a_measure(self, test_case: LLMTestCase, *_: object, **__: object) -> float:
        """Return the score of a test case, and set `score`, `reason` and `success`.

        Raises MissingTestCaseParamsError, and JudgeError if there is no score.
        """
        if problem := self.problem(test_case):
            raise MissingTestCaseParamsError(problem)
        judge = judge_of(self.model)
        found = await score([test_case.sample("1")], [self.wanted(judge)], RunSettings())
        self.take(found.outcomes[0][0], judge)
        if self.score is None:
            raise JudgeError(f"{type(self).__qualname__} has no score: {self.error or self.reason}")
        return self.score

    def measure(self, test_case: LLMTestCase, *_: object, **__: object) -> float:
        """Return the score of a test case, as `a_measure` does; also inside a running event loop."""
        return run_blocking(self.a_measure(test_case))

    def is_successful(self) -> bool:
        """Return True if the last score reached the threshold."""
        return bool(self.success)

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({self.definition})"


class FaithfulnessMetric(BaseMetric):
    """Share of the claims of the actual output that do not contradict the retrieval context."""

    title, metric, native = "Faithfulness", "faithfulness", "faithfulness"
    own = frozenset({"truths_extraction_limit", "penalize_ambiguous_claims"})


class AnswerRelevancyMetric(BaseMetric):
    """Share of the statements of the actual output that are relevant to the input."""

    title, metric, native = "Answer Relevancy", "answer_relevancy", "answer_relevancy"


class ContextualPrecisionMetric(BaseMetric):
    """Ranking of the retrieval context: relevant nodes should come first."""

    title, metric, native = "Contextual Precision", "contextual_precision", "context_precision(against=reference)"


class ContextualRecallMetric(BaseMetric):
    """Share of the sentences of the expected output that the retrieval context supports."""

    title, metric, native = "Contextual Recall", "contextual_recall", "context_recall"


class ContextualRelevancyMetric(BaseMetric):
    """Share of the statements of the retrieval context that are relevant to the input."""

    title, metric, native = "Contextual Relevancy", "contextual_relevancy", "context_relevance(unit=sentence)"


def _reason(outcome: Outcome) -> str | None:
    """Return the reason that the judge wrote, or why there is no score."""
    if not isinstance(outcome, Score):
        return why_none(outcome)
    last = outcome.evidence[-1] if outcome.evidence else None
    return last.text if last is not None and last.about is EvidenceTarget.TEXT and last.text else None


def _written(value: Option) -> str:
    """Return a value as in the text of a metric."""
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


class DeepEvalBaseLLM:
    """The base of a user's own model, which defines `generate(prompt)` and `get_model_name()`.

    merilo calls `generate` in threads, with each prompt as one text. It does not call `a_generate`.
    """

    def __init__(self, *_: object, **__: object) -> None:
        return

    def load_model(self) -> object:
        """Return the model that `generate` uses."""
        return self

    def generate(self, prompt: str) -> str:
        """Return the reply to a prompt."""
        raise NotImplementedError  # the user's class overrides it, as with DeepEval's own base class

    def get_model_name(self) -> str:
        """Return the name of the model."""
        return type(self).__name__


def _hosted(provider: str) -> Callable[..., Wrapped]:
    """Return DeepEval's class for a provider: the model or deployment as a judge, with its key in the environment."""

    def make(model: str = "", base_url: str | None = None, *, deployment_name: str = "", **_: object) -> Wrapped:
        spec = f"{provider}:{model or deployment_name}"
        return Wrapped(judge_from(spec) if base_url is None else judge_from(spec, base_url=base_url))

    return make


OpenAIModel = GPTModel = LocalModel = _hosted("openai")
OllamaModel = _hosted("ollama")
AnthropicModel = _hosted("anthropic")
GeminiModel = _hosted("google")
AzureOpenAIModel = _hosted("azure")
AmazonBedrockModel = _hosted("bedrock")
