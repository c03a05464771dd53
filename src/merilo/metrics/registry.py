"""The registry of metrics by name: from text to metric and back, and the lists of metrics for users."""

from __future__ import annotations

import re
from dataclasses import is_dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final, TypeVar, cast

from merilo.data import check
from merilo.data.guesses import guesses
from merilo.errors import MeriloError, UsageError
from merilo.metrics.base import DECLARED, Definition, Metric, MetricDefaults, is_composite
from merilo.metrics.text import NAME, build, read_call, with_version
from merilo.plugins import OWN_PACKAGE, PUBLISHED, Group, modules_with, names_file, object_in_file, plugins, split_file

if TYPE_CHECKING:
    from collections.abc import Collection


C = TypeVar("C", bound="type[Definition]")

_ORDER: Final = (
    "context_relevance",
    "context_ranking",
    "context_precision",
    "context_recall",
    "context_sufficiency",
    "context_entity_recall",
    "id_precision",
    "id_recall",
    "reciprocal_rank",
    "average_precision",
    "nDCG",
    "hit_rate",
    "precision",
    "recall",
    "context_utilization",
    "faithfulness",
    "noise_sensitivity",
    "answer_relevancy",
    "answer_completeness",
    "answer_correctness",
    "critique",
    "rubric_metric",
)
"""The metrics shown first, in this order. A metric that is not listed follows."""

_CHOSEN: Final = frozenset({"hit_rate", "precision", "recall", "critique", "rubric_metric"})
"""Metrics that need a choice first (a cutoff, an aspect, a file), so a run computes them only if named."""

_CORE: Final = ("context_recall", "id_recall", "reciprocal_rank", "nDCG")
_CORE_ANSWERS: Final = ("answering", "context_sufficiency", "context_relevance", "faithfulness")
_CORE_RETRIEVAL: Final = ("context_sufficiency", "context_relevance", "context_precision", "context_ranking")
"""Data without responses; all four rest on two kinds of question."""
ALL: Final = "all"
"""Names all metrics that data and judge allow."""

_NAMED: Final = re.compile(r'^    (?:name(?:: ClassVar\[str\])? = )?"(\w+)",?$', re.MULTILINE)
"""Matches a name where a class or a row of a module declares it. Longer lists may match too."""
_SUFFIX: Final = re.compile(r"[\W_]|(?:metric|score|evaluator)$")
"""Signs, and what classes of other tools add to a name."""


def _definitions_in(found: object, name: str) -> list[type[Definition]]:
    """Return the metric classes of a plug-in: a class, a sequence of classes, or a module with METRICS."""
    if isinstance(found, ModuleType):
        listed: tuple[object, ...] = (*getattr(found, "METRICS", ()), *getattr(found, "COMPOSITES", ()))
    else:
        listed = tuple(found) if check.is_list(found) else (found,)
    wrong = next((each for each in listed if not (isinstance(each, type) and hasattr(each, "name"))), None)
    if wrong is not None or not listed:
        raise UsageError(f"The plug-in {name} must name metric classes, got {wrong or found!r}.")
    return [cast("type[Definition]", each) for each in listed]


@cache
def native() -> tuple[type[Metric], ...]:
    """Return merilo's own metrics, in the order in which they are shown.

    They are those in `METRICS` of the modules of this folder.
    """
    modules = modules_with("merilo.metrics", "METRICS")
    definitions = [each for module in modules for each in _definitions_in(import_module(module), module)]
    place = {name: index for index, name in enumerate(_ORDER)}
    definitions.sort(key=lambda each: place.get(each.name, len(place)))
    return tuple(cast("type[Metric]", each) for each in definitions)  # all composites are published ones


_registered: dict[str, type[Definition]] = {}
"""The metrics of plug-ins, merilo's own first, once they are needed, and those of users."""


@cache
def _homes() -> dict[str, list[str]]:
    """Return name → the modules of which one declares the metric with this name; none is imported."""
    found: dict[str, list[str]] = {}
    for module, source in modules_with("merilo.metrics", "METRICS").items():
        for word in {*_NAMED.findall(source)}:
            found.setdefault(word, []).append(module)
    return found


@cache
def _own(name: str) -> type[Definition] | None:
    """Return merilo's own metric with this name; imports the module that declares it."""
    modules = _homes().get(name.partition(".")[0], ())  # answering.right is defined where answering is
    found = (each for module in modules for each in _definitions_in(import_module(module), module))
    return next((each for each in found if each.name == name), None)


def _known(name: str) -> type[Definition] | None:
    return _registered.get(name) or _own(name)


def _all_known() -> dict[str, type[Definition]]:
    return {**{each.name: each for each in native()}, **_registered}


@cache
def published_metrics() -> tuple[type[Definition], ...]:
    """Return the published definitions, in the order in which they are shown; their names contain a colon.

    Metrics of samples first, then composites, module by module.
    """
    own = [each for each in plugins(Group.METRICS) if each.package == OWN_PACKAGE]
    found = [register(metric) for each in own for metric in _definitions_in(each.load(), each.name)]
    return tuple(each for each in found if ":" in each.name)


@cache
def _plugin_problems() -> tuple[str, ...]:
    """Register the metrics of all other packages; return one sentence for each package that cannot be used."""
    problems: list[str] = []
    published_metrics()
    for each in plugins(Group.METRICS):
        if each.package != OWN_PACKAGE:
            try:
                for metric in _definitions_in(each.load(), each.name):
                    register(metric)
            except UsageError as error:  # a broken package must not stop the others
                problems.append(str(error))
    return tuple(problems)


def systems() -> dict[str, tuple[str, ...]]:
    """Return the published systems, each with the names of its definitions: `ragas-0.1.9`, `nvidia`, ..."""
    found: dict[str, tuple[str, ...]] = {}
    for metric in published_metrics():
        system = metric.name.partition(":")[0]
        found[system] = (*found.get(system, ()), metric.name)
    return found


def register(metric_class: C) -> C:
    """Make a metric known by its name to `parse_metric`; usable as a decorator. Returns the class.

    A metric need not be registered to be passed as an object. Raises UsageError for a name that is invalid or is
    taken by another class, and for a class that is not a dataclass or lacks a declaration.
    """
    shown = f"The metric class {metric_class.__qualname__}"
    missing = [name for name in DECLARED if not hasattr(metric_class, name)] if hasattr(metric_class, "plan") else []
    if missing:
        inherited = any(hasattr(MetricDefaults, name) for name in missing)
        advice = "inherit MetricDefaults" if inherited else "declare what is missing"
        raise UsageError(f"{shown} has no {', '.join(missing)}; {advice}.")
    if not is_dataclass(metric_class):
        raise UsageError(f"{shown} is not a dataclass; write @dataclass(frozen=True) above it.")
    name = metric_class.name
    if not NAME.fullmatch(name):
        raise UsageError(
            f"Invalid metric name {name!r}; a name has letters, digits and any of '_.:/+-', "
            "and begins with a letter or a digit."
        )
    taken = _own(name) or _registered.setdefault(name, metric_class)
    if taken is not metric_class:
        raise UsageError(
            f"The metric name {name!r} is taken by {taken.__module__}.{taken.__qualname__}; choose another."
        )
    return metric_class


def native_metrics() -> tuple[str, ...]:
    """Return the names of merilo's own metrics, in the order in which they are shown."""
    return tuple(metric.name for metric in native())


def core_metrics(fields: Collection[str]) -> tuple[str, ...]:
    """Return the metrics that a run computes if none is named, on data with these fields; the same for every judge.

    A run leaves out those that data or judge do not support, and those that are weak with the judge.
    """
    return (*(_CORE_ANSWERS if "response" in fields else _CORE_RETRIEVAL), *_CORE)


def all_metrics() -> tuple[str, ...]:
    """Return merilo's own metrics that need no choice, in order: those of `--metrics all`."""
    return tuple(name for name in (_CORE_ANSWERS[0], *_ORDER) if name not in _CHOSEN)


def metric_names() -> tuple[str, ...]:
    """Return the names of all known metrics, native ones first."""
    _plugin_problems()
    return tuple(_all_known())


def families() -> dict[str, tuple[str, ...]]:
    """Return the names of all known metrics by the family on their cards, in the order of registration."""
    found: dict[str, tuple[str, ...]] = {}
    for name, metric_class in _all_known().items():
        family = str(metric_class.card.family)
        found[family] = (*found.get(family, ()), name)
    return found


def find_metric(name: str, *, recorded: bool = False) -> type[Definition]:
    """Return the class of the metric or composite with this name; a system without a version is its newest.

    Names are those of merilo and of installed plug-ins. `path/to/file.py:ClassName` is a class in a file, which runs as
    code. A `recorded` name comes from a run or another file, which may be a stranger's, so it never runs code.

    Raises UsageError that names the nearest ones, and the plug-ins that could not be loaded.
    """
    if names_file(name) and not recorded:
        return _in_file(name)
    if name.endswith(".py"):
        raise UsageError(f"Name the metric class in {name}: {name}:CLASS.")
    if ":" in name and name not in _registered:
        published_metrics()
    if (found := _known(name) or _known(with_version(name))) is not None:
        return found
    problems = _plugin_problems()
    if (found := _known(name)) is not None:
        return found
    if ":" in name and not published_metrics():
        raise UsageError(f"No metric {name!r}; the definitions of other systems are in {PUBLISHED}.")
    near = _near(name)
    advice = f"did you mean {' or '.join(near)}?" if near else "to list all: merilo metrics."
    raise UsageError(" ".join([f"No metric {name!r}; {advice}", *problems]))


def _in_file(text: str) -> type[Definition]:
    found = object_in_file(text)
    if not (isinstance(found, type) and hasattr(found, "name") and hasattr(found, "plan")):
        raise UsageError(f"{text} is not a metric class; a metric has a name and a plan.")
    return register(cast("type[Definition]", found))


def also_called(name: str) -> list[str]:
    """Return merilo's metrics with the meaning of a name that users and other tools use; empty for other names."""
    bare = _SUFFIX.sub("", name.lower())
    return guesses("metrics").get(bare, []) or [each for each in _ORDER if _SUFFIX.sub("", each.lower()) == bare]


def _near(name: str) -> list[str]:
    """Return the names that a user may have meant by this one, the nearest first."""
    if found := also_called(name):
        return found
    low = name.lower()
    if low and (of_system := [f"{system}:..." for system in systems() if system.startswith(low)]):
        return of_system
    shown = {each.lower(): each for each in _all_known() if (":" in each) == (":" in low)}
    if low in shown:
        return [shown[low]]
    return [shown[found] for found in get_close_matches(low, shown, n=3, cutoff=0.5)]


def parse_metric(text: str) -> Definition:
    """Return the metric or composite that a text names, as `metric_text` writes it; defaults may be written out.

    `path/to/file.py:ClassName` is the class in that file, which runs as code; parameters may follow.

    Raises UsageError for an unknown name (with the nearest ones), for an invalid parameter (with those allowed), and
    for a missing required parameter.
    """
    file, parameters = split_file(text)
    if file:
        text = f"{_in_file(file).name}{parameters}"
    call = read_call(text)
    return build(find_metric(call.name), call)


def parse_recorded(text: str) -> Definition:
    """Return the metric or composite that a run recorded. Raises UsageError as `parse_metric` does."""
    call = read_call(text)
    return build(find_metric(call.name, recorded=True), call)


def known_definition(text: str) -> Definition | None:
    """Parse a recorded text; return None for another version's, a file's, a script's or an imported one."""
    return _recorded(text, len(_registered))


@lru_cache(maxsize=256)
def _recorded(text: str, known: int) -> Definition | None:
    """Return the definition; `known`: the number of known metrics, since a new one may give a text a meaning."""
    del known
    try:
        return parse_recorded(text)
    except MeriloError:
        return None


def known_metric(text: str) -> Metric | None:
    """Parse as `known_definition`; return None for a composite too."""
    found = known_definition(text)
    return (
        None if found is None or is_composite(found) else cast("Metric", found)
    )  # a definition is either a composite or a metric


def asks_judge(text: str) -> bool:
    """Return True if a metric's values come from a judge, or if the metric is not known here."""
    found = known_definition(text)
    return found is None or (not is_composite(found) and bool(getattr(found, "asks", True)))
