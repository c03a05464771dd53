"""The keywords of the public functions: read, refused with the form that is meant, and documented."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from difflib import get_close_matches
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, TypeVar

from merilo.commands.option import docs_of, parts_of
from merilo.data import check
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from _typeshed import DataclassInstance

O = TypeVar("O")  # noqa: E741  an options class
F = TypeVar("F", bound="Callable[..., object]")

_JUDGE: Final = 'use judge="openai:gpt-4.1-mini"'
_EMBEDDINGS: Final = 'use judge={"embeddings": ..., "rest": ...}'
_ROW: Final = 'put the row into a list: merilo.evaluate([{"question": ...}])'
_GUESSES: Final = {
    **dict.fromkeys(("model", "llm", "evaluator", "evaluator_llm", "judges", "judge_model"), _JUDGE),
    **dict.fromkeys(("embedder", "embeddings", "embedding_model", "embedder_model"), _EMBEDDINGS),
    "cross_encoder": 'use judge={"similarities": ..., "rest": ...}',
    **dict.fromkeys(
        ("embedder_base_url", "embedder_api_key_env"),
        'use judge={"embeddings": Model("openai:MODEL", base_url=...), "rest": ...}',
    ),
    **dict.fromkeys(("api_key", "key"), 'use judge=Model("openai:MODEL", api_key_env="NAME")'),
    **dict.fromkeys(
        ("threshold", "thresholds", "minimums", "min_score"),
        "a threshold belongs to merilo.gate(run, minimums={...})",
    ),
    **dict.fromkeys(("question", "user_input", "contexts", "retrieved_contexts", "answer", "response"), _ROW),
    **dict.fromkeys(("dataset", "samples", "rows"), "the data is the first argument: merilo.evaluate(data)"),
    "until_decided": 'use until=Until("gates.toml")',
    "pipeline_version": 'use calls=Calls(version="...")',
    "pipeline_concurrency": "use calls=Calls(concurrency=8)",
}
"""Former and guessed keywords → the form that is meant."""
_SYNONYMS: Final = {
    **dict.fromkeys(("max_workers", "n_jobs", "max_concurrency", "max_concurrent"), "concurrency"),
    **dict.fromkeys(("max_cost", "budget"), "max_cost_usd"),
    "rpm": "requests_per_minute",
    "tpm": "tokens_per_minute",
    "timeout": "timeout_s",
    "use_cache": "cache",
}
"""Guessed keyword → the field of a part that is meant."""


def keyword_options(make: type[O], function: str, values: Mapping[str, Any]) -> O:  # Any: values of options
    """Return the options that a call of a public function gave; a part may be a dict with its fields.

    Raises UsageError for another keyword, with the form that is meant.
    """
    known, parts = docs_of(make), parts_of(make)
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"{function}() has no {name}=: {_meant(name, value, known, parts)}.")
    given = {name: value for name, value in values.items() if value is not None or name not in parts}
    made = make(
        **{name: made_part(parts[name], name, value) if name in parts else value for name, value in given.items()}
    )
    _check_types(made)
    return made


def check_arguments(function: Callable[..., object], values: Mapping[str, object]) -> None:
    """Raise UsageError for an argument of a public function that has another type than its annotation."""
    defaults: Mapping[str, object] = getattr(function, "__kwdefaults__", None) or {}
    for name, value in values.items():
        if value is not defaults.get(name, defaults) and (wanted := wrong_type(function.__annotations__[name], value)):
            raise UsageError(f"{name} must be {wanted}, got {value!r:.60}.")


def wrong_type(annotation: str, value: object) -> str:
    """Return the type of an annotation in words if the value has another one. Empty if it may fit."""
    known = [_TYPES.get(each) for each in map(str.strip, _ALTERNATIVES.findall(annotation))]
    words = [each[0] for each in known if each is not None and not each[1](value)]
    return " or ".join(filter(None, words)) if len(words) == len(known) else ""


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _are_texts(value: object) -> bool:
    return check.is_list(value) and bool(value) and all(isinstance(each, str) for each in value)


def _are_metrics(value: object) -> bool:
    return check.is_list(value) and all(isinstance(each, str) or hasattr(each, "name") for each in value)


_ALTERNATIVES: Final = re.compile(r"(?:[^\[|]|\[[^\]]*\]?)+")
_TYPES: Final[Mapping[str, tuple[str, Callable[[object], bool]]]] = {
    "None": ("", lambda value: value is None),
    "str": ("a text", lambda value: isinstance(value, str)),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "int": ("a whole number", lambda value: isinstance(value, Integral) and _is_number(value)),
    "float": ("a number", _is_number),
    "PathLike[str]": ("a path", lambda value: isinstance(value, PathLike)),
    "list[str]": ("a list of texts", _are_texts),
    "Mapping[str, str]": (
        "a table of texts",
        lambda value: check.is_record(value) and all(isinstance(each, str) for each in value.values()),
    ),
    "Sequence[str | Definition]": ("a list of metrics", _are_metrics),
    "prices": (
        "the path of a file or a list of tables",
        lambda value: isinstance(value, str) or (check.is_list(value) and all(map(check.is_mapping, value))),
    ),
}
"""Annotation → the type in words, and its check; the values of others are checked where they are used."""


def _check_types(options: Any, before: str = "") -> None:  # Any: options of any class
    """Raise UsageError for an option of another type than its annotation, also in the parts."""
    for each in fields(options):
        value = getattr(options, each.name)
        if value is each.default:
            continue
        if isinstance(value, each.metadata.get("part", ())):
            _check_types(value, f"{each.name}.")
        elif "doc" in each.metadata and (wanted := wrong_type(str(each.type), value)):
            raise UsageError(f"{before}{each.name} must be {wanted}, got {value!r:.60}.")


def made_part(make: type[O], name: str, value: Any) -> Any:  # Any: what a user gave, also as the part
    """Return a part of the options from what a user gave. Raises UsageError if it is neither the part nor a dict."""
    if name == "judge" or isinstance(value, make):
        return value  # judges are read later, with their kinds
    if not check.is_record(value):
        raise UsageError(f"{name} takes {make.__name__}(...) or a dict with its fields, got {type(value).__name__}.")
    return part_from(make, value)


def part_from(make: type[O], values: Mapping[str, Any]) -> O:  # Any: values of options
    """Return a part from a dict with its fields. Raises UsageError for another field."""
    names = [*docs_of(make)]
    for each in values:
        if each not in names:
            close = get_close_matches(each, names, n=1) or [_SYNONYMS.get(each, "")]
            advice = f"did you mean {close[0]!r}?" if close[0] in names else f"it has {', '.join(names)}."
            raise UsageError(f"{make.__name__} has no {each!r}; {advice}")
    return make(**values)


def _meant(name: str, value: object, known: Mapping[str, str], parts: Mapping[str, type[Any]]) -> str:
    """Return the form that is meant by a former or guessed keyword."""
    if name in _GUESSES:
        return _GUESSES[name]
    named = _SYNONYMS.get(name, name)
    for keyword, make in parts.items():
        if named in docs_of(make):
            shown = repr(value) if isinstance(value, bool | int | float) else "..."
            first = {"judge": '"openai:MODEL", ', "until": '"gates.toml", '}.get(keyword, "")
            return f"use {keyword}={make.__name__}({first}{named}={shown})"
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}=" if close else "help(merilo.evaluate) shows those that it has"


def documented(make: type[DataclassInstance]) -> Callable[[F], F]:
    """Give a public function the keywords of an options class as its signature, and their texts in its docstring.

    In the docstring, `{options}` becomes an entry for each keyword, and `{own}` one for each that is not inherited.
    """

    def decorate(function: F) -> F:
        docs, parts = docs_of(make), parts_of(make)
        own = [each for each in inspect.signature(function).parameters.values() if each.kind != each.VAR_KEYWORD]
        taken = {each.name for each in own}
        fields_of = {each.name: each for each in fields(make)}
        keywords = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None if name in parts and name != "judge" else fields_of[name].default,
                annotation=fields_of[name].type,
            )
            for name in docs
            if name not in taken
        ]
        text = inspect.getdoc(function) or ""
        own_docs = {name: doc for name, doc in docs.items() if name in make.__annotations__}
        text = text.replace("{options}", "\n    ".join(f"{name}: {doc}" for name, doc in docs.items()))
        function.__doc__ = text.replace("{own}", "\n".join(f"{name}: {doc}" for name, doc in own_docs.items()))
        signature = inspect.signature(function).replace(parameters=[*own, *keywords])
        function.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it; typeshed lacks it
        return function

    return decorate
