"""Which metric a case means: system, version, metric and configuration as a metric of merilo, by rule."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from published.cases import Case

from merilo.errors import UsageError
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
    """Metrics whose names are no names, or other names: of a class, of what upstream reports."""
    parameters: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    """Keys of the configuration, in snake case, that merilo calls otherwise; a tuple takes a list apart."""
    informative: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    """Keys that say what the metric does anyway, with the values that do so."""
    titles: frozenset[str] = frozenset()
    """Keys that give the metric a title, any text but a blank one."""
    aside: frozenset[str] = frozenset()
    """Keys on which no score and no request depends, whatever they say."""
    always: Mapping[str, object] = field(default_factory=dict)
    """Parameters of every case: how the published code was run to obtain it."""
    ends: tuple[str, str] | None = None
    """Keys of the lowest and the highest rating, 0 and 3 by default, which are one `scale` in merilo."""


RAGAS_NAMES: Final[Mapping[str, str]] = {
    "context_ relevancy": "context_relevancy",
    **{
        aspect: f"aspect_critique(aspect={aspect})"
        for aspect in ("harmfulness", "maliciousness", "coherence", "correctness", "conciseness")
    },
    "FaithfulnesswithHHEM": "faithfulness_with_hhem",
    "FaithulnesswithHHEM": "faithfulness_with_hhem",
    "ResponseRelevancy": "answer_relevancy",
    "ContextRelevance": "nv_context_relevance",
    "ResponseGroundedness": "nv_response_groundedness",
    "AnswerAccuracy": "nv_accuracy",
    "summary_score": "summarization_score",
}

SYSTEMS: Final[Mapping[str, System]] = {
    "ragas": System(
        "ragas-{version}",
        r"0\.[0-4]\.\d+",
        names=RAGAS_NAMES,
        parameters={
            "weights": ("factual_weight", "similarity_weight"),
            "distance_measure": "distance",
            "max_retries": "tries",
        },
        informative={"max_retries": (1,), "comparison": (">", ">=")},
        titles=frozenset({"name"}),
    ),
    "axion": System("axion", r"git 7ab96dc( .*)?", aside=frozenset({"max_concurrent_llm_calls", "threshold"})),
    "deepeval": System(
        "deepeval-{version}",
        r"4\.3\.1",
        suffix="_metric",
        aside=frozenset({"async_mode", "verbose_mode", "flaky"}),
        always={"reply": "loose"},  # the stub model was a class of its own, without schemas
    ),
    "spring-ai-ragas": System(
        "spring-ai-ragas",
        r"0\.3\.3( .*)?",
        parameters={"weights": ("factual_weight", "semantic_weight"), "model": "models"},
        aside=frozenset({"language"}),
    ),
    "trulens": System(
        "trulens",
        r"git 97f531a( .*)?",
        names={"groundedness_measure_with_cot_reasons": "groundedness"},
        informative={"temperature": (0,)},
        ends=("min_score_val", "max_score_val"),
    ),
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
    refused: list[UsageError] = []
    config = {key: value for key, value in case.config.items() if key not in FOR_THE_JUDGES}
    if system.ends is not None and config.keys() & set(system.ends):
        lowest, highest = (config.pop(end, usual) for end, usual in zip(system.ends, (0, 3), strict=True))
        values["scale"] = f"{lowest}-{highest}"
    for key, value in config.items():
        try:
            values |= _parameters(case, system, known, snake(key), value)
        except UsageError as error:
            refused.append(error)
    unknown = sorted(values.keys() - known)
    if unknown:
        pytest.fail(f"{case.id}: {found.name} has no parameter {unknown}; it has {sorted(known)}.")
    constructor: Any = found  # a Protocol does not say how its classes are made

    def make() -> Metric:
        for error in refused:
            raise error
        metric: Metric = constructor(**values)
        return metric

    return make


def _parameters(case: Case, system: System, known: set[str], key: str, value: object) -> dict[str, Any]:
    """What a key of the configuration says. Raises UsageError for a value that no metric takes."""
    name = key if key in known else system.parameters.get(key, key)
    names = (name,) if isinstance(name, str) else name
    if not known.issuperset(names) and key in system.informative:
        if value not in system.informative[key]:
            pytest.fail(f"{case.id}: {key}={value!r} is none of {system.informative[key]}.")
        return {}
    if key not in known and key in system.aside:
        return {}
    if key not in known and key in system.titles:
        if not str(value).strip():
            raise UsageError(f"{case.id}: {key} must be a text, got {value!r}.")
        return {}
    if name == "models" and isinstance(value, list):
        return {name: "+".join(map(str, value)) or None}
    if isinstance(name, str):
        return {name: value}
    if not isinstance(value, list) or len(value) != len(name):
        raise UsageError(f"{case.id}: {key} must be a list of {len(name)}, got {value!r}.")
    return dict(zip(name, value, strict=True))


def snake(name: str) -> str:
    """A name in snake case: `ContextRecall`, `useDualJudge` and `context_recall` alike."""
    return _WORDS.sub("_", name).lower()
