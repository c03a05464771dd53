"""Plays the cases that need no judge: aggregates over scores, pure functions, finished tables of labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest
from published.cases import Case, Level
from published.naming import system_of


@dataclass(frozen=True)
class Computed:
    """What a function gave: a number, numbers by name, or none; with its interval where it has one."""

    value: float | Mapping[str, float] | None
    interval: tuple[float, float] | None = None


def compute(case: Case) -> Computed:
    """The result of a case that is no sample. Fails the test where the function is unknown."""
    system_of(case)
    match case.level, case.system, case.metric:
        case Level.AGGREGATE, "ragas", "ragas_score":
            return Computed(_published("ragas_v0_0").ragas_score(**case.inputs))
        case Level.FUNCTION, "ares", "ppi_mean":
            estimate, interval = import_module("merilo.stats.correction").ppi_mean(**case.inputs)
            return Computed(estimate, interval)
        case Level.FUNCTION, "spring-ai-ragas", "ScoreAggregator":
            return _aggregated(case)
        case Level.TABLES, "ragchecker", "all":
            module = _published("ragchecker")
            tables = module.Tables(**{name: _entailed(labels) for name, labels in case.outputs.items()})
            return Computed({name: formula(tables) for name, formula in module.FORMULAS.items()})
        case _:
            pytest.fail(f"{case.id}: {case.system} has no {case.level} {case.metric!r}.")


def _entailed(labels: Any) -> Any:
    """The labels of a table as truth values, row by row."""
    return labels == "Entailment" if isinstance(labels, str) else tuple(map(_entailed, labels))


def _aggregated(case: Case) -> Computed:
    """By the aggregator that the word after `agg` in the id names."""
    spring = _published("spring_ai_ragas.models")
    word = case.id.partition("-agg-")[2]
    (found,) = (each for each in spring.Aggregator if each.value.partition("_")[0] == word)
    return Computed(spring.aggregate(case.inputs["scores"], found))


def _published(name: str) -> Any:  # Any: a module is looked up by the name of the system
    return import_module(f"merilo_published.{name}")
