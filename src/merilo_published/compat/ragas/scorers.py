"""ragas' metric classes, made from the table, and its models as judges and embedders."""

from __future__ import annotations

import json
import math
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.commands.blocking import run_blocking
from merilo.errors import JudgeError, UsageError
from merilo.judges.spec import cross_encoder_from, judge_from
from merilo.judging.kinds.measured import Embeddings, Similarities
from merilo.metrics.base import Failed, Outcome, Score
from merilo.metrics.registry import parse_metric
from merilo_published.ragas_v0_4.texts import Distance

from ..scoring import (
    MadeOnce,
    RunSettings,
    Wanted,
    Wrapped,
    asks_text,
    embedder_for,
    embedder_of_client,
    judge_for,
    judge_of_client,
    score,
    spec_of,
    usable,
    usual_model,
)
from .dataset_schema import SingleTurnSample, dataset_from, merilo_samples, sample_from

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.judges.base import Judge

    from .table import Line, Row

_IGNORED = frozenset({"max_retries", "batch_size", "device", "language", "answer_similarity", "column_map"})
"""Options of ragas that cannot change a number of merilo's."""


class RagasMetric:
    """The common base of ragas' metrics. Options are attributes; `llm` and `embeddings` precede those of `evaluate`.

    Raises UsageError for an unknown option.
    """

    row: ClassVar[Row]
    line: ClassVar[Line]

    def __init__(
        self,
        *,
        llm: object = None,
        embeddings: object = None,
        name: str = "",
        model_name: object = None,
        **options: Any,
    ) -> None:
        self.llm, self.embeddings, self.model_name = llm, embeddings, model_name
        self.name = name or self.row.results or self.row.metric
        unknown = [option for option in options if option not in self.row.options and option not in _IGNORED]
        if any(option.endswith("_prompt") for option in unknown):
            raise UsageError(f"{type(self).__name__} has merilo's own prompts; {unknown[0]} cannot be replaced.")
        if unknown:
            known = ", ".join(["llm", "embeddings", "name", *self.row.options])
            raise UsageError(f"{type(self).__name__} has no option {unknown[0]!r}; it takes {known}.")
        self.__dict__.update({option: value for option, value in options.items() if option in self.row.options})

    @property
    def definition(self) -> str:
        """The definition of merilo that computes it, with its parameters."""
        pairs = [
            f"{parameter}={_written(value)}"
            for option, parameters in self.row.options.items()
            if (given := self.__dict__.get(option)) is not None
            for parameter, value in _each(parameters, given)
        ]
        called = self.line.definition(self.row)
        return f"{called}({', '.join(pairs)})" if pairs else called

    @property
    def result_name(self) -> str:
        """The name of the results in `evaluate`."""
        if not self.row.moded:
            return self.name
        usual = "relevant" if "noise" in self.row.metric else "f1"
        return f"{self.name}(mode={self.__dict__.get('mode', usual)})"

    def init(self, run_config: object = None) -> None:
        """Do nothing: merilo prepares its models when they are asked."""
        del run_config

    def wanted(self, models: Models) -> Wanted:
        """Return the metric to compute, with its models; `models` holds those of the run."""
        definition = parse_metric(self.definition)
        asks: frozenset[type] = getattr(definition, "asks", frozenset())
        judge = models.judge(self.llm) if asks_text(definition) else None
        metric = usable(self.definition, self.row.native, judge, type(self).__name__)
        embedder = models.embedder(self.embeddings) if Embeddings in asks and metric.name == definition.name else None
        encoder = models.cross_encoder(self.model_name) if Similarities in asks else None
        return Wanted(metric, judge, embedder, encoder)

    async def single_turn_ascore(
        self,
        sample: SingleTurnSample,
        callbacks: object = None,
        timeout: object = None,  # noqa: ASYNC109  as in ragas
    ) -> float:
        """Return the score of one sample; NaN if it has none. Raises JudgeError if a request failed for good."""
        del callbacks, timeout
        return number_of(await self._outcome(sample), raises=True)

    def single_turn_score(self, sample: SingleTurnSample, callbacks: object = None) -> float:
        """Return the score of one sample, as `single_turn_ascore` does."""
        return run_blocking(self.single_turn_ascore(sample, callbacks))

    async def ascore(
        self,
        row: Mapping[str, Any],
        callbacks: object = None,
        timeout: object = None,  # noqa: ASYNC109  as in ragas
    ) -> float:
        """Return the score of a record, under the names of ragas 0.1 or of today."""
        return await self.single_turn_ascore(sample_from(row), callbacks, timeout)

    def score(self, row: Mapping[str, Any], callbacks: object = None) -> float:
        """Return the score of a record, as `ascore` does."""
        return run_blocking(self.ascore(row, callbacks))

    score_single = score

    async def _outcome(self, sample: SingleTurnSample) -> Outcome:
        wanted = self.wanted(Models(self.line))
        found = await score(merilo_samples(dataset_from([sample])), [wanted], RunSettings())
        return found.outcomes[0][0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.definition})"


class MetricResult:
    """The score of one sample, and the reason if the definition has one."""

    def __init__(self, value: float, reason: str | None = None) -> None:
        self.value, self.reason = value, reason

    def __float__(self) -> float:
        return float(self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, MetricResult) else other))

    __hash__ = None  # type: ignore[assignment]  # it equals a number, and values may be NaN

    def __repr__(self) -> str:
        return f"MetricResult(value={self.value})"


class CollectionsMetric(RagasMetric):
    """The common base of `ragas.metrics.collections`: fields are keywords, and a score is a `MetricResult`."""

    async def ascore(self, **fields: Any) -> MetricResult:  # type: ignore[override]  # as in ragas
        """Return the score. Raises ValueError for a missing or empty input, JudgeError if a request failed for good."""
        metric: Any = parse_metric(self.definition)  # no row of a table names a composite
        missing = [name for name in sorted(metric.needs) if not fields.get(name)]
        if missing:
            raise ValueError(f"{type(self).__name__} needs {' and '.join(missing)}.")
        return MetricResult(number_of(await self._outcome(SingleTurnSample(**fields)), raises=True))

    def score(self, **fields: Any) -> MetricResult:  # type: ignore[override]  # as in ragas
        """Return the score, as `ascore` does."""
        return run_blocking(self.ascore(**fields))

    async def abatch_score(self, inputs: Sequence[Mapping[str, Any]]) -> list[MetricResult]:
        """Return the scores of several samples."""
        return [await self.ascore(**fields) for fields in inputs]

    def batch_score(self, inputs: Sequence[Mapping[str, Any]]) -> list[MetricResult]:
        """Return the scores of several samples, as `abatch_score` does."""
        return run_blocking(self.abatch_score(inputs))


DistanceMeasure = Distance
"""A measure of `NonLLMStringSimilarity`, under ragas' name."""


class Models:
    """The models of a run, each made once: those of `evaluate`, those of single metrics, and ragas' usual ones."""

    def __init__(self, line: Line, llm: object = None, embeddings: object = None, cross_encoder: object = None) -> None:
        self._line, self._llm, self._embeddings, self._cross_encoder = line, llm, embeddings, cross_encoder
        self._judges, self._embedders, self._cross_encoders = MadeOnce(), MadeOnce(), MadeOnce()

    def judge(self, own: object) -> Judge:
        """Return the judge of a metric. Raises UsageError if none is named and ragas' usual one has no key."""
        return self._judges.of(own or self._llm or usual_model(self._line.judge, "llm"), judge_for)

    def embedder(self, own: object) -> Judge:
        """Return the embedder of a metric, as `judge` does."""
        given = own or self._embeddings or usual_model(self._line.embedder, "embeddings")
        return self._embedders.of(given, embedder_for)

    def cross_encoder(self, own: object) -> Judge | None:
        """Return the model that compares texts; None for merilo's usual one."""
        given = own or self._cross_encoder
        return None if given is None else self._cross_encoders.of(given, cross_encoder_from)


def metrics_of(line: Line, base: type[RagasMetric]) -> dict[str, object]:
    """Return the classes and ready objects of a line, by name."""
    found: dict[str, object] = {}
    for row in line.rows:
        for name in row.classes:
            found[name] = type(name, (base,), {"row": row, "line": line, "__doc__": f"ragas' {name}."})
        made = found[row.classes[0]]
        if row.ready:
            found[row.metric] = made() if isinstance(made, type) else made
    return found


def number_of(outcome: Outcome, *, raises: bool) -> float:
    """Return the value of an outcome; NaN if there is none. Raises JudgeError for a failure, if wanted."""
    if isinstance(outcome, Score):
        return outcome.value
    if isinstance(outcome, Failed) and raises:
        raise JudgeError(outcome.error.message)
    return math.nan


def _each(parameters: str, value: Any) -> list[tuple[str, Any]]:
    """Return the parameters that an option sets; a list sets one each. The weights are shares of their sum."""
    names = parameters.split(",")
    return [(names[0], value)] if len(names) == 1 else list(zip(names, value, strict=True))


def _written(value: Any) -> str:
    """Return a value as in the text of a metric; a mapping is a text of JSON."""
    value = json.dumps(value) if isinstance(value, dict) else value
    return json.dumps(value.value if isinstance(value, Enum) else value, ensure_ascii=False)


# -- ragas' wrappers and factories of models, each of which also accepts a specification --------------
# Scripts import them from `llms`, `embeddings` and `run_config`.

_PROVIDERS: Final[Mapping[str, str]] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "gemini": "google",
}
"""Provider of `llm_factory` → our provider."""

BaseRagasLLM = Wrapped


def LangchainLLMWrapper(llm: object = None, *_: object, **named: object) -> Wrapped:  # noqa: N802  ragas' name
    """Wrap a model of LangChain or LlamaIndex, or a specification. Other arguments of ragas have no effect."""
    return Wrapped(judge_for(named.get("langchain_llm") if llm is None else llm))


LlamaIndexLLMWrapper = LangchainLLMWrapper


def llm_factory(
    model: str = "gpt-4o-mini",
    provider: str = "openai",
    client: object = None,
    base_url: str | None = None,
    **_: object,
) -> Wrapped:
    """Return the judge for a model: of a provider, behind an OpenAI client, or by our specification.

    Raises UsageError for a provider that merilo does not have.
    """
    if client is not None and provider == "openai":
        return Wrapped(judge_of_client(client, model))
    if provider not in _PROVIDERS:
        raise UsageError(f"llm_factory has no provider {provider!r}; name a model of {', '.join(_PROVIDERS)} instead.")
    spec = spec_of(model) if provider == "openai" else f"{_PROVIDERS[provider]}:{model}"
    return Wrapped(judge_for(spec) if base_url is None else judge_from(spec, base_url=base_url))


def LangchainEmbeddingsWrapper(embeddings: object, *_: object, **__: object) -> Wrapped:  # noqa: N802  ragas' name
    """Wrap a LangChain embedding model, or a specification. Other arguments of ragas have no effect."""
    return Wrapped(embedder_for(embeddings))


def OpenAIEmbeddings(client: object = None, model: str = "text-embedding-3-small", **_: object) -> Wrapped:  # noqa: N802  ragas' name
    """Return the embedder for a model of OpenAI, or behind an OpenAI client."""
    return Wrapped(embedder_for(model) if client is None else embedder_of_client(client, model))


def embedding_factory(
    provider: str = "openai", model: str | None = None, client: object = None, **_: object
) -> Wrapped:
    """Return the embedder for a model of OpenAI, behind an OpenAI client, or by our specification.

    Raises UsageError for another provider.
    """
    known, _separator, named = provider.partition("/")
    if known == "openai":
        return OpenAIEmbeddings(client, model or named or "text-embedding-3-small")
    if model is not None:
        raise UsageError(f"embedding_factory has no provider {provider!r}; name an embedder, such as openai:MODEL.")
    return Wrapped(embedder_for(provider))  # the name of a model, as in ragas 0.2


class RunConfig:
    """Settings under ragas' names. `max_workers` limits the requests in flight; merilo has its own retries."""

    def __init__(self, *, max_workers: int = 16, **others: object) -> None:
        self.__dict__.update(others)
        self.max_workers = max_workers
