"""Which metrics there are, by name: from text to metric and back, and the lists that people see."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeVar

from merilo.errors import UsageError
from merilo.metrics.answer_relevancy import AnswerRelevancy
from merilo.metrics.context_precision import ContextPrecision
from merilo.metrics.context_ranking import ContextRanking
from merilo.metrics.context_recall import ContextRecall
from merilo.metrics.context_relevance import ContextRelevance
from merilo.metrics.context_sufficiency import ContextSufficiency
from merilo.metrics.context_utilization import ContextUtilization
from merilo.metrics.faithfulness import Faithfulness
from merilo.metrics.text import NAME, Call, Parameter, build, metric_text, parameters_of, read_call

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from merilo.metrics.base import Metric

__all__ = [
    "NATIVE",
    "PUBLISHED",
    "Parameter",
    "families",
    "find_metric",
    "metric_names",
    "metric_text",
    "native_metrics",
    "parameters_of",
    "parse_metric",
    "published_metrics",
    "register",
    "resolve",
]

C = TypeVar("C", bound="type[Metric]")

NATIVE: Final[tuple[type[Metric], ...]] = (
    ContextRelevance,
    ContextRanking,
    ContextPrecision,
    ContextRecall,
    ContextSufficiency,
    ContextUtilization,
    Faithfulness,
    AnswerRelevancy,
)
"""Our own metrics, in the order in which they are shown."""

PUBLISHED: Final = (
    "ragas_v0_0",
    "ragas_v0_1",
    "ragas_v0_4",
    "nvidia",
    "axion",
    "spring_ai_ragas",
    "deepeval",
    "trulens",
    "umbrela",
    "ragchecker",
    "ares",
)
"""The modules of published definitions, in the order in which they are shown; imported when one is asked for."""

_known: dict[str, type[Metric]] = {metric.name: metric for metric in NATIVE}


@cache
def published_metrics() -> tuple[type[Metric], ...]:
    """The published definitions, in the order in which they are shown; their names hold a colon."""
    found: list[type[Metric]] = []
    for module in PUBLISHED:
        metrics: tuple[type[Metric], ...] = import_module(f"merilo.metrics.published.{module}").METRICS
        found.extend(register(metric) for metric in metrics)
    return tuple(found)


def register(metric_class: C) -> C:
    """Make a metric known by its name to `parse_metric`; usable as a decorator. Returns the class.

    A metric need not be registered to be passed as an object. Raises UsageError for a name that cannot be
    written or is taken by another class.
    """
    name = metric_class.name
    if not NAME.fullmatch(name):
        raise UsageError(
            f"A metric cannot be called {name!r}; a name is letters, digits and any of '_.:/+-', "
            "and begins with a letter or a digit."
        )
    taken = _known.setdefault(name, metric_class)
    if taken is not metric_class:
        raise UsageError(
            f"The metric name {name!r} is taken by {taken.__module__}.{taken.__qualname__}; choose another."
        )
    return metric_class


def native_metrics() -> tuple[str, ...]:
    """The names of our own metrics, in the order in which they are shown; texts for `resolve`."""
    return tuple(metric.name for metric in NATIVE)


def metric_names() -> tuple[str, ...]:
    """The names of all known metrics, native ones first."""
    published_metrics()
    return tuple(_known)


def families() -> dict[str, tuple[str, ...]]:
    """The names of all known metrics by the family that their cards name, in the order of registration."""
    found: dict[str, tuple[str, ...]] = {}
    for name, metric_class in _known.items():
        family = str(metric_class.card.family)
        found[family] = (*found.get(family, ()), name)
    return found


def find_metric(name: str) -> type[Metric]:
    """The class of the metric with this name. Raises UsageError that names the nearest ones."""
    if ":" in name and name not in _known:
        published_metrics()
    if name in _known:
        return _known[name]
    near = get_close_matches(name.lower(), _known, n=3, cutoff=0.5)
    advice = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(_known)}."
    raise UsageError(f"There is no metric {name!r}; {advice}")


def parse_metric(text: str) -> Metric:
    """The metric that a text names, as `metric_text` writes it; defaults may be written out.

    Raises UsageError: for an unknown name with the nearest ones, for a parameter with those allowed, for
    a required parameter that is not given (`resolve` finds those that follow from the data).
    """
    call = read_call(text)
    return build(find_metric(call.name), call)


def resolve(text: str, fields: Collection[str]) -> Metric:
    """The metric that a text names, for a run in which every sample has these fields.

    Like `parse_metric`, but where a required parameter is not given, a metric's class method
    `for_fields(fields)` finds it: `context_precision` is judged against the reference if every sample
    has one.
    """
    call = read_call(text)
    found = find_metric(call.name)
    for_fields: Callable[[Collection[str]], Metric] | None = getattr(found, "for_fields", None)
    if for_fields is not None and _lacks_required(found, call):
        return for_fields(fields)
    return build(found, call)


def _lacks_required(found: type[Metric], call: Call) -> bool:
    required = {each.name for each in parameters_of(found) if each.default is None}
    return bool(required) and not call.parameters
