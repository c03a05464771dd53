"""Metrics, each with its own judge, computed over samples by merilo's engine; for the scripts of other packages."""

from __future__ import annotations

from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from merilo.api import aevaluate
from merilo.commands.evaluate.options import Limits, Storage
from merilo.engine.rate_limits import CONCURRENCY
from merilo.errors import UsageError
from merilo.judging.kinds.completion import Completion
from merilo.metrics.base import Failed, Undefined
from merilo.metrics.registry import parse_metric
from merilo.metrics.text import metric_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from merilo.data.sample import Sample
    from merilo.judges.base import Judge
    from merilo.metrics.base import Definition, Metric, Outcome
    from merilo.runs.run import Run


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
    concurrency: int = CONCURRENCY


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


async def score(samples: Sequence[Sample], wanted: Sequence[Wanted], settings: RunSettings) -> Scored:
    """Return the outcomes of the metrics over the samples. Raises what `merilo.evaluate` raises."""
    parts = _parts(wanted)
    if settings.out is not None and len(parts) > 1:
        raise UsageError("A run in out= has the same models for all metrics; omit out=, or use one judge and embedder.")
    columns: dict[int, Sequence[Outcome]] = {}
    runs: list[Run] = []
    for part in parts:
        metrics = {place: wanted[place].metric for place in part.places}
        if settings.kept:
            run = await _run(samples, part, metrics, settings, settings.out)
            runs.append(run)
            columns.update(_columns(run, metrics))
        else:
            with TemporaryDirectory(prefix="merilo-", ignore_cleanup_errors=True) as folder:
                run = await _run(samples, part, metrics, settings, f"{folder}/run")
                columns.update(_columns(run, metrics))
    rows = zip(*(columns[place] for place in range(len(wanted))), strict=True)
    return Scored(tuple(rows), tuple(runs))


def _columns(run: Run, metrics: Mapping[int, Metric]) -> dict[int, Sequence[Outcome]]:
    rows = [found.outcomes for found in run.samples]
    return {place: [row[metric_text(metric)] for row in rows] for place, metric in metrics.items()}


async def _run(
    samples: Sequence[Sample],
    part: _Part,
    metrics: Mapping[int, Metric],
    settings: RunSettings,
    out: str | PathLike[str] | None,
) -> Run:
    once = {metric_text(metric): metric for metric in metrics.values()}
    return await aevaluate(
        samples,
        metrics=list(once.values()),
        judge=dict(zip(_ROLES, (model or "embedded" for model in part.models), strict=True)),
        out=out,
        storage=Storage(cache=settings.cache),
        limits=Limits(concurrency=settings.concurrency),
    )


_ROLES: Final = ("rest", "embeddings", "similarities")


@dataclass
class _Part:
    """Metrics that one run computes, by their indices; a model is None until a metric needs one."""

    models: tuple[Judge | None, ...]
    """In the order of the roles."""
    places: list[int]

    def take(self, place: int, models: tuple[Judge | None, ...]) -> bool:
        """Add a metric if its models are those of this part, or if it needs none. Return True if it was added."""
        pairs = [*zip(self.models, models, strict=True)]
        fits = all(own is None or other is None or own is other for own, other in pairs)
        if fits:
            self.models = tuple(own or other for own, other in pairs)
            self.places.append(place)
        return fits


def _parts(wanted: Sequence[Wanted]) -> list[_Part]:
    """Return the metrics in as few runs as their models permit."""
    parts: list[_Part] = []
    for place, each in enumerate(wanted):
        models = (each.judge, each.embedder, each.cross_encoder)
        if not any(part.take(place, models) for part in parts):
            parts.append(_Part(models, [place]))
    return parts
