"""ragas' documented names: a script written for ragas runs with its import line changed.

This module and its `metrics` are the newest line, 0.4. `v0_0` to `v0_3` have the same modules for scripts and numbers
of those lines. Every number is one of merilo's published definitions, such as `ragas-0.4.3:faithfulness`.
docs/from-ragas.md shows all of it.

::

    evaluation.py       evaluate(): data set, metrics, models → a run of merilo → EvaluationResult
    here                the modules of metrics and of version lines, made from the table
    scorers.py          the metric classes, made from the table; wrappers and factories of models; RunConfig
    table.py            class and options in ragas → definition and parameters in merilo, by line
    dataset_schema.py   samples and data sets
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from .. import missing
from . import dataset_schema, scorers
from . import evaluation as _evaluation_module
from .dataset_schema import EvaluationDataset, MultiTurnSample, SingleTurnSample
from .evaluation import Evaluation, EvaluationResult
from .scorers import CollectionsMetric, DistanceMeasure, MetricResult, RagasMetric, RunConfig, metrics_of
from .table import COLLECTIONS, NEWEST, V0_0, V0_1, V0_2, V0_3

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .table import Line

__all__ = [
    "EvaluationDataset",
    "EvaluationResult",
    "MultiTurnSample",
    "RunConfig",
    "SingleTurnSample",
    "aevaluate",
    "evaluate",
]

_SHARED: Final = {
    "dataset_schema": dataset_schema,
    **dict.fromkeys(("llms", "llms.base", "embeddings", "embeddings.base", "run_config"), scorers),
}
"""The modules that are the same on every line."""
_FILES: Final = (
    *("_answer_correctness", "_answer_relevance", "_answer_similarity", "_aspect_critic", "_context_entities_recall"),
    *("_context_precision", "_context_recall", "_factual_correctness", "_faithfulness", "_noise_sensitivity"),
    *("_nv_metrics", "_string", "_semantic_similarity", "result", "answer_relevance", "context_recall", "faithfulnes"),
    *("context_relevance", "answer_accuracy", "answer_correctness", "answer_relevancy", "context_entity_recall"),
    *("context_precision", "factual_correctness", "faithfulness", "noise_sensitivity", "response_groundedness"),
)
"""The files of ragas' metrics, whose names are all in the module of the metrics here."""
_ASPECTS: Final = ("harmfulness", "maliciousness", "coherence", "correctness", "conciseness")


def _install() -> Evaluation:
    """Make the modules of all lines importable; return the evaluation of the newest line."""
    _share(__name__)
    metrics = _metrics_module(NEWEST, __name__)
    _metrics_module(COLLECTIONS, f"{__name__}.metrics", "collections", CollectionsMetric)
    for line in (V0_0, V0_1, V0_2, V0_3):
        _line_module(line, f"v{line.name.replace('.', '_')}")
    evaluation = Evaluation(NEWEST, metrics)
    _evaluation_module.__dict__.update(evaluate=evaluation.evaluate, aevaluate=evaluation.aevaluate)
    missing.cover(__name__)
    return evaluation


def _share(package: str) -> None:
    for name, module in _SHARED.items():
        sys.modules[f"{package}.{name}"] = module
        setattr(sys.modules[package], name, module)


def _line_module(line: Line, name: str) -> None:
    module = _module(__name__, name, f"ragas {line.name}: the names of `{__name__}`, with the numbers of that line.")
    _share(module.__name__)
    metrics = _metrics_module(line, module.__name__)
    evaluation = Evaluation(line, metrics)
    classes = (EvaluationDataset, MultiTurnSample, SingleTurnSample, EvaluationResult, RunConfig)
    names = {made.__name__: made for made in classes}
    _fill(module, {**names, "evaluate": evaluation.evaluate, "aevaluate": evaluation.aevaluate})
    critique: Any = metrics.get("AspectCritique")  # a class that the table made
    missing.add_files(module.__name__, "evaluation")
    if critique is not None:
        aspects = {aspect: critique(name=aspect, aspect=aspect) for aspect in _ASPECTS}
        critiques = _module(f"{module.__name__}.metrics", "critique", "ragas' critiques, and the ready aspects.")
        _fill(critiques, {"AspectCritique": critique, **aspects, "SUPPORTED_ASPECTS": [*aspects.values()]})


def _metrics_module(
    line: Line, package: str, name: str = "metrics", base: type[RagasMetric] = RagasMetric
) -> Mapping[str, object]:
    module = _module(package, name, f"The metrics of ragas {line.name}.")
    names = metrics_of(line, base) | {"DistanceMeasure": DistanceMeasure, "MetricResult": MetricResult}
    _fill(module, names)
    vars(module).update(METRICS=names, __dir__=lambda: sorted(names))
    missing.add_files(module.__name__, *_FILES)
    return names


def _module(package: str, name: str, doc: str) -> ModuleType:
    """Make a module in a package, which may hold further ones, and make it importable."""
    made = ModuleType(f"{package}.{name}", doc)
    made.__path__ = []
    sys.modules[made.__name__] = made
    setattr(sys.modules[package], name, made)
    return made


def _fill(module: ModuleType, names: Mapping[str, object]) -> None:
    vars(module).update(names, __all__=list(names))


_evaluation = _install()
evaluate = _evaluation.evaluate
aevaluate = _evaluation.aevaluate
