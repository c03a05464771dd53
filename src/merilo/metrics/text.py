"""The text form of a metric: `name`, `name@k`, `name(parameter=value, ...)`, and its parser.

A parameter is a field of the metric's dataclass: text, a whole number, a number, true or false, an enumeration
member, or `none`. The parameter `k` is written after an @. Canonical text omits defaults, except a cutoff `k`:
`precision@10` is always distinguished from `precision@5`.

Text values are quoted as in JSON if they contain other characters than letters, digits and `_.:/+-`.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import MISSING, Field, dataclass, fields
from enum import StrEnum
from types import NoneType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast, get_args, get_type_hints

from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.metrics.base import Definition

FOREIGN: Final = "foreign:"
"""Prefix of the names of all metrics that merilo did not compute."""

NAME: Final = re.compile(r"[^\W_][\w.:/+-]*")
"""The pattern of a metric's name."""

NEWEST: Final = {"deepeval": "deepeval-4.3.1"}
"""Published systems that may be named without a version, and the newest version, which is then used."""

_CALL: Final = re.compile(r"\s*(?P<name>[^\s@(]+)\s*(?:@\s*(?P<k>[^\s(]+)\s*)?(?:\((?P<inside>.*)\)\s*)?", re.DOTALL)
_PAIR: Final = re.compile(r'\s*(?P<name>\w+)\s*=\s*(?P<value>"(?:[^"\\]|\\.)*"|[^\s,()="]+)\s*(?:,|$)')
_BARE: Final = re.compile(r"[\w.:/+-]+")
_DESCRIBED: Final = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "NoneType": "none",
}
_FORM: Final = "write name, name@k or name(parameter=value, parameter=value)"


def bare_name(text: str) -> str:
    """Return the name in a metric's canonical text, without its parameters."""
    return text.partition("(")[0].partition("@")[0]


def with_version(text: str) -> str:
    """Return the name or text of a metric with its system's version; `deepeval:faithfulness` gets the newest one."""
    system, colon, metric = text.partition(":")
    return f"{NEWEST.get(system, system)}{colon}{metric}"


def is_called(text: str, name: str) -> bool:
    """Return True if this name refers to the metric: its text, with or without parameters and `foreign:`."""
    bare = bare_name(text)
    return with_version(name) in {with_version(text), with_version(bare), bare.removeprefix(FOREIGN)}


@dataclass(frozen=True, slots=True)
class Call:
    """A metric's name and its parameters as written, with values not yet parsed."""

    name: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a metric, as shown to users."""

    name: str
    allowed: str
    """Its allowed values: `grade, context or sentence`, `a whole number`."""
    default: str | None
    """The text of its default; None if the parameter is required."""


def metric_text(metric: Definition) -> str:
    """Return the canonical text of a metric: its identity everywhere. Defaults are omitted, except a cutoff `k`."""
    suffix = ""
    pairs: list[str] = []
    for field in _fields(type(metric)):
        value = getattr(metric, field.name)
        if value == _default(field) and (field.name != "k" or value is None):
            continue
        if field.name == "k":
            suffix = f"@{written_value(value)}"
        else:
            pairs.append(f"{field.name}={written_value(value)}")
    inside = f"({', '.join(pairs)})" if pairs else ""
    return f"{metric.name}{suffix}{inside}"


def read_call(text: str) -> Call:
    """Return the name and the parameters in a metric's text. Raises UsageError if it has another form."""
    found = _CALL.fullmatch(text)
    if found is None:
        raise UsageError(f"Invalid metric {text!r}; {_FORM}.")
    written = {} if found["k"] is None else {"k": found["k"]}
    inside, at = (found["inside"] or "").strip(), 0
    while at < len(inside):
        pair = _PAIR.match(inside, at)
        if pair is None:
            raise UsageError(f"Invalid metric {text!r} at {inside[at:]!r}; {_FORM}.")
        if pair["name"] in written:
            raise UsageError(f"Metric {text!r} has the parameter {pair['name']!r} twice.")
        written[pair["name"]] = pair["value"]
        at = pair.end()
    return Call(found["name"], written)


def build(metric_class: type[Definition], call: Call) -> Definition:
    """Return the metric of this class with the parameters as written. Raises UsageError."""
    known = {parameter.name: parameter for parameter in parameters_of(metric_class)}
    name = metric_class.name
    for written in call.parameters:
        if written not in known:
            listed = ", ".join(f"{each.name} ({each.allowed})" for each in known.values())
            has = f"it has {listed}" if known else "it has none"
            raise UsageError(f"Metric {name!r} has no parameter {written!r}; {has}.")
    for parameter in known.values():
        if parameter.default is None and parameter.name not in call.parameters:
            free = parameter.allowed in _DESCRIBED.values()
            takes = f" ({parameter.allowed}); see merilo metrics {name}" if free else f", one of: {parameter.allowed}"
            raise UsageError(f"Metric {name!r} needs {parameter.name}=...{takes}.")
    types = _types(metric_class)
    values = {}
    for written, value in call.parameters.items():
        try:
            values[written] = _read(value, types[written])
        except ValueError:
            allowed = known[written].allowed
            raise UsageError(f"Metric {name!r} takes {written}={allowed}, got {value!r}.") from None
    constructor = cast("Any", metric_class)  # a Protocol has no constructor signature
    return cast("Definition", constructor(**values))


def parameters_of(metric_class: type[Definition]) -> tuple[Parameter, ...]:
    """Return the parameters of a metric, in the order of its fields."""
    types = _types(metric_class)
    return tuple(
        Parameter(
            field.name,
            " or ".join(_described(kind) for kind in types[field.name]),
            None if (default := _default(field)) is MISSING else written_value(default),
        )
        for field in _fields(metric_class)
    )


def _fields(metric_class: type[Definition]) -> tuple[Field[Any], ...]:
    return tuple(field for field in fields(cast("Any", metric_class)) if field.init)  # a Protocol's type


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _types(metric_class: type[Definition]) -> dict[str, tuple[type, ...]]:
    """Return the types of each parameter. Only the fields' own annotations are resolved."""
    hints: dict[str, Any] = {}
    for field in _fields(metric_class):
        home = next(base for base in metric_class.__mro__ if field.name in vars(base).get("__annotations__", ()))
        stand_in = SimpleNamespace(__annotations__={field.name: field.type})
        hints |= get_type_hints(stand_in, globalns=vars(sys.modules[home.__module__]))  # the module of the field
    found = {name: get_args(hint) or (hint,) for name, hint in hints.items()}
    for name, types in found.items():
        if not all(isinstance(kind, type) for kind in types):
            raise UsageError(
                f"Metric {metric_class.name!r} declares {name} as {hints[name]}; a parameter must be text, "
                "a number, true or false, an enumeration (StrEnum) or none."
            )
    return found


def written_value(value: object) -> str:
    """Return a parameter's value as a metric's text has it. Raises UsageError for a value of another type."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case str():
            return _write_text(str(value))
        case int() | float():
            return repr(value)
        case _:
            raise UsageError(
                f"A metric's parameter must be text, a number, true or false, an enumeration or none; got {value!r}."
            )


def _write_text(value: str) -> str:
    return value if _BARE.fullmatch(value) and value != "none" else json.dumps(value, ensure_ascii=False)


def _read(text: str, types: tuple[type, ...]) -> object:
    if text == "none" and NoneType in types:
        return None
    for kind in types:
        if kind is bool and text in {"true", "false"}:
            return text == "true"
        if issubclass(kind, StrEnum):
            return kind(_read_text(text))
        if kind is str:
            return _read_text(text)
        if kind in {int, float}:
            return kind(text)
    raise ValueError(text)


def _read_text(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') else text


def _described(kind: type) -> str:
    if issubclass(kind, StrEnum):
        return " or ".join(member.value for member in kind)
    return _DESCRIBED.get(kind.__name__, kind.__name__)
