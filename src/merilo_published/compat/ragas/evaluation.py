"""ragas' `evaluate`: metrics over a data set, computed by merilo's engine as a run that stays on disk."""

from __future__ import annotations

import logging
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from merilo.commands.blocking import run_blocking
from merilo.data.sanitize import clean
from merilo.errors import UsageError
from merilo_published.ragas_v0_0 import ragas_score

from ..scoring import RunSettings, score, tell_report, why_none
from .dataset_schema import FORMER, EvaluationDataset, dataset_from, merilo_samples, pandas_frame
from .scorers import Models, RagasMetric, RunConfig, number_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from merilo.runs.run import Run

    from ..scoring import Scored
    from .table import Line

_log = logging.getLogger("merilo")


@dataclass(frozen=True)
class EvaluationResult:
    """The scores of a data set."""

    scores: list[dict[str, float]]
    """By the names of the metrics, one mapping a sample; NaN where there is no score."""
    dataset: EvaluationDataset = field(repr=False)
    line: Line = field(repr=False)
    runs: tuple[Run, ...] = field(default=(), repr=False)
    """The runs of merilo in which they were computed: one, unless some metrics name their own models."""
    critiques: frozenset[str] = field(default=frozenset(), repr=False)
    """The names of the critiques among the metrics."""

    def means(self) -> dict[str, float]:
        """Return the mean of each metric over the samples with a score, and on the line 0.0 their harmonic mean."""
        names = list(self.scores[0]) if self.scores else []
        means = {name: _mean([row[name] for row in self.scores]) for name in names}
        parts = {name: [mean] for name, mean in means.items() if name not in self.critiques}
        if not self.line.harmonic or len(parts) < 2:
            return means
        found = ragas_score(parts, ())
        return means | {self.line.harmonic: math.nan if found is None else found}

    def to_pandas(self) -> Any:
        """Return the samples and their scores as a pandas data frame. Raises UsageError without pandas."""
        rows = zip(self.dataset.to_list(), self.scores, strict=True)
        former = {new: old for old, new in reversed(list(FORMER.items()))} if self.line.mean_items else {}
        return pandas_frame(
            [{former.get(name, name): value for name, value in sample.items()} | row for sample, row in rows]
        )

    def __getitem__(self, name: str) -> Any:
        """Return the scores of a metric; on the line 0.1 their mean, as in ragas 0.1."""
        found = self.means()[name]
        return found if self.line.mean_items else [row[name] for row in self.scores]

    def __repr__(self) -> str:
        means = sorted(self.means().items(), key=lambda each: each[0] != self.line.harmonic)
        return "{" + ", ".join(f"'{name}': {mean:.4f}" for name, mean in means) + "}"

    def keys(self) -> list[str]:
        """Return the names of the metrics."""
        return list(self.means())

    def items(self) -> list[tuple[str, float]]:
        """Return the means by name."""
        return list(self.means().items())


class Evaluation:
    """`evaluate` and `aevaluate` of a line of ragas, whose metrics are `metrics`."""

    def __init__(self, line: Line, metrics: Mapping[str, object]) -> None:
        self.line, self._metrics = line, metrics

    async def aevaluate(
        self,
        dataset: object,
        metrics: Sequence[Any] | None = None,
        llm: object = None,
        embeddings: object = None,
        *,
        cross_encoder: object = None,
        run_config: RunConfig | None = None,
        raise_exceptions: bool = False,
        column_map: Mapping[str, str] | None = None,
        out: str | PathLike[str] | None = None,
        cache: bool | str | PathLike[str] = True,
        **unused: object,
    ) -> EvaluationResult:
        """Evaluate a data set in code that runs in an event loop. See `evaluate`."""
        _check_unused(unused)
        samples = dataset_from(dataset, column_map)
        chosen = [self._metric(each) for each in (self.line.usual if metrics is None else metrics)]
        models = Models(self.line, llm, embeddings, cross_encoder)
        workers = (run_config or RunConfig()).max_workers
        settings = RunSettings(kept=True, out=out, cache=cache, concurrency=workers)
        found = await score(merilo_samples(samples), [each.wanted(models) for each in chosen], settings)
        names = [each.result_name for each in chosen]
        rows = [
            {name: number_of(outcome, raises=raise_exceptions) for name, outcome in zip(names, row, strict=True)}
            for row in found.outcomes
        ]
        _log_missing(names, found)
        if unused.get("show_progress", True):
            tell_report(found.runs)
        critiques = frozenset(each.result_name for each in chosen if each.row.metric == "aspect_critique")
        return EvaluationResult(rows, samples, self.line, found.runs, critiques)

    def evaluate(self, dataset: object, *arguments: Any, **options: Any) -> EvaluationResult:
        """Evaluate a data set with ragas' metrics, also inside a running event loop.

        Args:
            dataset: an `EvaluationDataset`, a Hugging Face data set, a data frame, or records.
            arguments: `metrics`, `llm` and `embeddings`, as in ragas. Each model is a specification
                (`openai:MODEL`, `embedded`), a wrapper, or a LangChain or LlamaIndex object.
            options: those of ragas, `out` and `cache` as in `merilo.evaluate`, and `cross_encoder`, which compares
                texts: `embedded` (the default), `local:MODEL`, or a function of pairs of texts.

        Raises:
            DataError: a sample cannot be read.
            UsageError: a metric or model cannot be used.
            JudgeError: a request failed, with `raise_exceptions=True`.
        """
        return run_blocking(self.aevaluate(dataset, *arguments, **options))

    def _metric(self, given: object) -> RagasMetric:
        found = self._metrics.get(given) if isinstance(given, str) else given
        if isinstance(found, type) and issubclass(found, RagasMetric):
            found = found()
        if not isinstance(found, RagasMetric):
            raise UsageError(f"evaluate takes metrics of merilo.compat.ragas.metrics, got {given!r}.")
        return found


_WITHOUT_EFFECT = frozenset(
    "experiment_name callbacks in_ci show_progress batch_size is_async return_executor allow_nest_asyncio".split()
)


def _check_unused(options: Mapping[str, object]) -> None:
    unknown = [name for name, value in options.items() if name not in _WITHOUT_EFFECT and value is not None]
    if unknown:
        raise UsageError(f"evaluate has no option {unknown[0]!r} here; see the page on coming from ragas.")


def _log_missing(names: Sequence[str], found: Scored) -> None:
    """Log how many scores of each metric are NaN, with the most frequent reason: a script sees only the NaN."""
    runs = ", ".join(f"merilo show {run.path}" for run in found.runs)
    for name, column in zip(names, zip(*found.outcomes, strict=True), strict=False):
        reasons = Counter(clean(reason) for each in column if (reason := why_none(each).rstrip(".")))
        if reasons:
            (reason, _), total = reasons.most_common(1)[0], sum(reasons.values())
            others = "" if len(reasons) == 1 else f" (and {len(reasons) - 1} other reasons)"
            _log.warning(
                "%s: %d of %d scores are NaN: %s%s. Details: %s", name, total, len(column), reason, others, runs
            )


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan
