"""Judges from what scripts pass as a model, and metrics, each with its own judge, computed over samples."""

from __future__ import annotations

import os
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from merilo.api import aevaluate
from merilo.commands.evaluate.options import Limits, Storage
from merilo.data.sanitize import command
from merilo.errors import UsageError
from merilo.judges.callables import is_chat_model, judge_of_model
from merilo.judges.llm import LLMJudge, OpenAIEmbeddingsJudge
from merilo.judges.spec import embedder_from, judge_from
from merilo.judging.kinds.responses import Completion
from merilo.metrics.base import Definition, Failed, Metric, Outcome, Undefined
from merilo.metrics.registry import parse_metric
from merilo.metrics.text import metric_text
from merilo.plugins import Group, names_file, plugins
from merilo.providers.openai import OpenAIEmbeddingsProvider, OpenAIProvider
from merilo.rendering.page import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    from merilo.data.sample import Sample
    from merilo.judges.base import Judge, JudgeLike
    from merilo.providers.base import Message
    from merilo.runs.run import Run


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
        return judge_of_model(model, _by("complete"))
    if callable(getattr(model, "generate", None)) and not hasattr(model, "answers"):
        return judge_of_model(model, _by("generate"))
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


def _by(method: str) -> Callable[[Any, tuple[Message, ...], float | None], object]:
    """Return what sends the messages to a model as one prompt, by this method; it keeps its own temperature."""

    def ask(model: Any, messages: tuple[Message, ...], temperature: float | None) -> object:
        del temperature
        return getattr(model, method)("\n\n".join(message.text for message in messages))

    return ask


@dataclass(frozen=True)
class Wanted:
    """A metric and the models that compute it; None: the metric needs none."""

    metric: Metric
    judge: Judge | None = None
    embedder: Judge | None = None
    cross_encoder: Judge | None = None


@dataclass(frozen=True)
class RunSettings:
    """Settings of the runs in which metrics are computed; `kept`: the runs stay in `out`, or in `.merilo/runs`."""

    kept: bool = False
    out: str | PathLike[str] | None = None
    cache: bool | str | PathLike[str] = True
    concurrency: int | None = None
    folder: str | None = None
    """The folder in which each kept run gets a directory."""


@dataclass(frozen=True)
class Scored:
    """The outcomes of samples, in order, each in the order of the metrics; and the runs, one for each set of models."""

    outcomes: tuple[tuple[Outcome, ...], ...]
    runs: tuple[Run, ...]


def why_none(outcome: Outcome) -> str:
    """Return the reason why an outcome is not a score; empty for a score."""
    if isinstance(outcome, Undefined):
        return outcome.reason
    return outcome.error.message if isinstance(outcome, Failed) else ""


def asks_text(metric: Definition) -> bool:
    """Return True if a metric needs a judge that writes free text."""
    asks: frozenset[type[Any]] = getattr(metric, "asks", frozenset())
    return Completion in asks


def usable(definition: str, native: str | None, judge: Judge | None, shown: str) -> Metric:
    """Return the published definition; merilo's own metric if the judge does not write free text.

    Raises UsageError if merilo has no metric for such a judge.
    """
    metric = parse_metric(definition)
    if judge is not None and asks_text(metric) and Completion not in judge.answers:
        if native is None:
            raise UsageError(f"{shown} needs a judge that writes free text, which {judge.name} is not; name an LLM.")
        metric = parse_metric(native)
    return metric  # type: ignore[return-value]  # no row of a table names a composite


async def score(
    samples: Sequence[Sample],
    wanted: Sequence[Wanted],
    settings: RunSettings,
    lacking: Sequence[Sequence[str]] = (),
) -> Scored:
    """Return the outcomes of the metrics over the samples. Raises what `merilo.evaluate` raises.

    `lacking`: for each sample and metric why it has no outcome, empty if it has one; the reason is the outcome then.
    """
    asked = [at for at in range(len(wanted)) if samples and not (lacking and all(row[at] for row in lacking))]
    parts = _parts(wanted, asked)
    if settings.out is not None and len(parts) > 1:
        raise UsageError("A run in out= has the same models for all metrics; omit out=, or use one judge and embedder.")
    columns: dict[int, Sequence[Outcome]] = {}
    runs: list[Run] = []
    with TemporaryDirectory(prefix="merilo-", ignore_cleanup_errors=True) as folder:
        for models, places in parts:
            texts = {place: metric_text(wanted[place].metric) for place in places}
            kept = settings.out if settings.folder is None else f"{settings.folder}/{uuid4().hex}"
            run = await aevaluate(
                samples,
                metrics=list({text: wanted[place].metric for place, text in texts.items()}.values()),
                judge=dict(zip(_ROLES, (model or "embedded" for model in models), strict=True)),
                out=kept if settings.kept else f"{folder}/{places[0]}",
                storage=Storage(cache=settings.cache),
                limits=Limits(concurrency=settings.concurrency),
            )
            rows = [found.outcomes for found in run.samples]
            columns |= {place: [row[text] for row in rows] for place, text in texts.items()}
            runs += [run] * settings.kept
    whole = (
        tuple(
            Undefined(lacking[at][place]) if lacking and lacking[at][place] else columns[place][at]
            for place in range(len(wanted))
        )
        for at in range(len(samples))
    )
    return Scored(tuple(whole), tuple(runs))


def tell_report(runs: Sequence[Run]) -> None:
    """Write the command that makes the report of each run to standard error."""
    for run in runs:
        tell(f"Report: {command('report', str(run.path))}")


_ROLES: Final = ("rest", "embeddings", "similarities")


def _parts(wanted: Sequence[Wanted], asked: Sequence[int]) -> list[tuple[list[Judge | None], list[int]]]:
    """Return the models, in the order of the roles, and the indices of the metrics of as few runs as possible.

    A model is None until a metric needs one. `asked`: the indices of the metrics to compute.
    """
    parts: list[tuple[list[Judge | None], list[int]]] = []
    for place in asked:
        models = [wanted[place].judge, wanted[place].embedder, wanted[place].cross_encoder]
        for own, places in parts:
            pairs = [*zip(own, models, strict=True)]
            if all(one is None or other is None or one is other for one, other in pairs):
                own[:] = [one or other for one, other in pairs]
                places.append(place)
                break
        else:
            parts.append((models, [place]))
    return parts
