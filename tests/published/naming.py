"""Which metric a case means: system, version, metric and configuration as a metric of merilo, by rule."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pytest
from published.cases import Case

from merilo.metrics.base import Metric
from merilo.metrics.registry import find_metric, published_metrics
from merilo.metrics.text import parameters_of

_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CALL: Final = re.compile(r"(?P<name>[^(]+)\((?P<parameter>\w+)=(?P<value>\w+)\)")

FOR_THE_JUDGES: Final = frozenset({"embeddings", "cross_encoder"})
"""Configuration that is about who answers, not about the metric."""


@dataclass(frozen=True)
class System:
    """How the cases of one published system name things."""

    family: str
    """What stands before the colon; `{version}` is filled in."""
    versions: str
    """A pattern of the versions that are reproduced."""
    suffix: str = ""
    """An ending of the system's names that merilo leaves out."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Metrics that merilo calls otherwise."""
    parameters: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    """Keys of the configuration, in snake case, that merilo calls otherwise; a tuple takes a list apart."""
    aside: frozenset[str] = frozenset()
    """Keys that say what the metric does anyway."""
    always: Mapping[str, object] = field(default_factory=dict)
    """Parameters of every case: how the published code was run to obtain it."""


SYSTEMS: Final[Mapping[str, System]] = {
    "ragas": System(
        "ragas-{version}",
        r"0\.[0-4]\.\d+",
        parameters={"weights": ("factual_weight", "similarity_weight")},
        aside=frozenset({"comparison"}),
    ),
    "axion": System("axion", r"git 7ab96dc( .*)?"),
    "deepeval": System(
        "deepeval-{version}",
        r"4\.3\.1",
        suffix="_metric",
        always={"reply": "loose"},  # the stub model was a class of its own, without schemas
    ),
    "spring-ai-ragas": System("spring-ai-ragas", r"0\.3\.3( .*)?"),
    "trulens": System("trulens", r"git 97f531a( .*)?"),
    "umbrela": System("umbrela", r"git e2c4e41( .*)?", names={"relevance judgment 0-3": "relevance"}),
    "ragchecker": System("ragchecker", r"git 6091f08( .*)?"),
    "ares": System("ares", r"git c7c9018( .*)?"),
    "alce": System(
        "alce",
        r"git 3fdc2ed( .*)?",
        names={"citation_rec": "citation_recall", "citation_prec": "citation_precision"},
        parameters={"at_most_citations": "max_citations"},
    ),
    "autonuggetizer": System("autonuggetizer", r"0\.0\.5"),
}


def system_of(case: Case) -> System:
    """The system of a case; fails the test where system or version is not reproduced."""
    system = SYSTEMS.get(case.system)
    if system is None:
        pytest.fail(f"{case.id}: there is no system {case.system!r}.")
    if not re.fullmatch(system.versions, case.version):
        pytest.fail(f"{case.id}: {case.system} is not reproduced in version {case.version!r}.")
    family = system.family.format(version=case.version)
    if not any(metric.name.startswith(f"{family}:") for metric in published_metrics()):
        pytest.fail(f"{case.id}: no metric of {family} is known.")
    return system


def metric_of(case: Case) -> Callable[[], Metric]:
    """What makes the metric of a case; it raises UsageError for an option that the metric refuses.

    Fails the test where the metric or a key of the configuration is unknown.
    """
    system = system_of(case)
    named = system.names.get(case.metric, case.metric)
    call = _CALL.fullmatch(named)
    own = snake(call["name"] if call else named).removesuffix(system.suffix)
    found = find_metric(f"{system.family.format(version=case.version)}:{own}")
    values: dict[str, Any] = {**system.always, **({call["parameter"]: call["value"]} if call else {})}
    known = {parameter.name for parameter in parameters_of(found)}
    for key, value in case.config.items():
        if key not in FOR_THE_JUDGES | system.aside:
            values |= _parameters(system, snake(key), value)
    unknown = sorted(values.keys() - known)
    if unknown:
        pytest.fail(f"{case.id}: {found.name} has no parameter {unknown}; it has {sorted(known)}.")
    constructor: Any = found  # a Protocol does not say how its classes are made
    return partial(constructor, **values)


def _parameters(system: System, key: str, value: Any) -> dict[str, Any]:
    """What a key of the configuration says."""
    name = system.parameters.get(key, key)
    return {name: value} if isinstance(name, str) else dict(zip(name, value, strict=True))


def snake(name: str) -> str:
    """A name in snake case: `ContextRecall`, `useDualJudge` and `context_recall` alike."""
    return _WORDS.sub("_", name).lower()
