"""The keywords of the public functions: read, refused with the form that is meant, and documented."""

from __future__ import annotations

import inspect
import re
import shlex
from contextlib import contextmanager
from dataclasses import fields
from difflib import get_close_matches
from functools import cache, wraps
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from merilo.commands.option import check_span, docs_of, parts_of
from merilo.data import check
from merilo.data.guesses import guesses
from merilo.errors import MeriloError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from _typeshed import DataclassInstance

O = TypeVar("O")  # noqa: E741  an options class
F = TypeVar("F", bound="Callable[..., object]")


def keyword_options(make: type[O], values: Mapping[str, Any]) -> O:  # Any: values of options
    """Return the options that a call of a public function gave; a part may be a dict with its fields.

    Raises UsageError for a value of another type.
    """
    parts = parts_of(make)
    given = {name: value for name, value in values.items() if value is not None or name not in parts}
    for name, value in given.items():
        # judges are read later, with their kinds
        if name in parts and name != "judge" and not isinstance(value, parts[name]):
            if not check.is_record(value):
                named = f"{name} takes {parts[name].__name__}(...) or a dict with its fields"
                raise UsageError(f"{named}, got {type(value).__name__}.")
            given[name] = part_from(parts[name], value)
    made = make(**given)
    _check_types(made)
    return made


_signature: Final = cache(inspect.signature)


def _check_call(
    function: Callable[..., object],
    arguments: tuple[object, ...],
    keywords: Mapping[str, object],
    parts: Mapping[str, type[Any]],
) -> None:
    """Raise UsageError for a keyword that a public function has not, and for an argument of another type."""
    called = _signature(function)
    for name, value in keywords.items():
        if name not in called.parameters:
            meant = _meant(name, value, [*called.parameters], parts, function.__name__)
            raise UsageError(f"{function.__name__}() has no {name}=: {meant}.")
    try:
        given = called.bind(*arguments, **keywords).arguments
    except TypeError:  # the call raises it with Python's own message
        return
    for name, value in given.items():
        parameter = called.parameters[name]
        wanted = wrong_type(str(parameter.annotation), value) if parameter.kind != parameter.VAR_POSITIONAL else ""
        if wanted and value is not parameter.default:
            raise UsageError(f"{name} must be {wanted}, got {value!r:.60}.")


def wrong_type(annotation: str, value: object) -> str:
    """Return the type of an annotation in words if the value has another one. Empty if it may fit."""
    known = [_TYPES.get(each) for each in map(str.strip, _ALTERNATIVES.findall(annotation))]
    words = [each[0] for each in known if each is not None and not each[1](value)]
    return " or ".join(filter(None, words)) if len(words) == len(known) else ""


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


_ALTERNATIVES: Final = re.compile(r"(?:[^\[|]|\[[^\]]*\]?)+")
_TYPES: Final[Mapping[str, tuple[str, Callable[[object], bool]]]] = {
    "None": ("", lambda value: value is None),
    "str": ("a text", lambda value: isinstance(value, str)),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "int": ("a whole number", lambda value: isinstance(value, Integral) and _is_number(value)),
    "float": ("a number", _is_number),
    "PathLike[str]": ("a path", lambda value: isinstance(value, PathLike)),
    "list[str]": (
        "a list of texts",
        lambda value: check.is_list(value) and bool(value) and all(isinstance(each, str) for each in value),
    ),
    "Mapping[str, str]": (
        "a table of texts",
        lambda value: check.is_record(value) and all(isinstance(each, str) for each in value.values()),
    ),
    "Sequence[str | Definition]": (
        "a list of metrics",
        lambda value: check.is_list(value) and all(isinstance(each, str) or hasattr(each, "name") for each in value),
    ),
    "prices": (
        "the path of a file or a list of tables",
        lambda value: isinstance(value, str) or (check.is_list(value) and all(map(check.is_mapping, value))),
    ),
}
"""Annotation → the type in words, and its check; the values of others are checked where they are used."""


def _check_types(options: Any, before: str = "") -> None:  # Any: options of any class
    """Raise UsageError for an option of another type than its annotation or outside its span, also in the parts."""
    for each in fields(options):
        value = getattr(options, each.name)
        if value is each.default:
            continue
        if isinstance(value, each.metadata.get("part", ())):
            _check_types(value, f"{each.name}.")
        elif "doc" in each.metadata and (wanted := wrong_type(str(each.type), value)):
            raise UsageError(f"{before}{each.name} must be {wanted}, got {value!r:.60}.")
        elif "flag" in each.metadata:
            check_span(f"{before}{each.name}", value, each.metadata["flag"])


def part_from(make: type[O], values: Mapping[str, Any]) -> O:  # Any: values of options
    """Return a part from a dict with its fields. Raises UsageError for another field."""
    names = [*docs_of(make)]
    for each in values:
        if each not in names:
            close = get_close_matches(each, names, n=1) or guesses("keywords").get(each, [""])
            advice = f"did you mean {close[0]!r}?" if close[0] in names else f"it has {', '.join(names)}."
            raise UsageError(f"{make.__name__} has no {each!r}; {advice}")
    return make(**values)


def _meant(
    name: str, value: object, known: Sequence[str], parts: Mapping[str, type[Any]], function: str
) -> str:  # Any: an options class
    """Return the form that is meant by a former or guessed keyword."""
    for meant in [name, *guesses("keywords").get(name, [])]:
        word = meant.partition("=")[0]
        if word in known:
            return f"use {meant}" if meant != word else f"did you mean {meant}="
        if keyword := next((keyword for keyword, make in parts.items() if meant in docs_of(make)), None):
            first = '"openai:MODEL", ' if keyword == "judge" else ""
            shown = repr(value) if isinstance(value, bool | int | float) else "..."
            return f"use {keyword}={parts[keyword].__name__}({first}{meant}={shown})"
        if not word.isidentifier() and "data" in known:
            return meant
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}=" if close else f"help(merilo.{function}) shows those that it has"


def public(make: type[Any] | None = None) -> Callable[[F], F]:  # Any: an options class
    """Give a public function its checks: wrong keywords are refused with the form that is meant.

    Messages name keywords instead of flags. With an options class, its keywords are the function's signature, and
    `{options}` in the docstring becomes an entry for each, `{own}` one for each that is not inherited.
    """

    def decorate(function: F) -> F:
        shown: Any = function if make is None else _documented(function, make)  # Any: a function with any signature
        parts = {} if make is None else parts_of(make)

        @wraps(shown)
        def called(*arguments: Any, **keywords: Any) -> Any:  # Any: as the function
            with _in_python():
                _check_call(shown, arguments, keywords, parts)
                return shown(*arguments, **keywords)

        @wraps(shown)
        async def awaited(*arguments: Any, **keywords: Any) -> Any:  # Any: as the function
            with _in_python():
                _check_call(shown, arguments, keywords, parts)
                return await shown(*arguments, **keywords)

        made: Any = awaited if inspect.iscoroutinefunction(function) else called
        return cast("F", made)

    return decorate


@contextmanager
def _in_python() -> Generator[None]:
    """Put the flags in the message of an error into Python's words: `--map a=b` is `mapping={'a': 'b'}`."""
    try:
        yield
    except MeriloError as error:
        if error.args and isinstance(error.args[0], str):
            error.args = (_FLAGS.sub(_as_keyword, error.args[0]), *error.args[1:])
        raise


_TEXT: Final = r"(?:'[^']*'|[^\s',.;)]|[.,;)](?=\w))+"
_FLAGS: Final = re.compile(
    r"merilo [a-z][^;\n]*|--(skip-invalid)|--(map|min|max|judge|metrics|suite|max-drop|baseline|base-url)(?![\w-])"
    rf"(?: (?![a-z]+ [a-z]){_TEXT}(?: --\2 {_TEXT})*)?"
)
"""Matches flags, with their values unless the sentence continues, and whole commands, in which they stay."""
_PAIRS: Final = {"map": "mapping", "min": "minimums", "max": "maximums"}


def _as_keyword(found: re.Match[str]) -> str:
    if found[1]:
        return "reading=Reading(skip_invalid=True)"
    if not found[2] or '"' in found[0] or "\\" in found[0]:  # a command, or a text that no message of merilo has
        return found[0]
    option, values = found[2], shlex.split(found[0])[1::2]
    if option not in _PAIRS or not values:
        name = _PAIRS.get(option, option.replace("-", "_"))
        return name if not values else f"{name}={values[0] if option == 'max-drop' else repr(values[0])}"
    pairs = (each.rpartition("=") for each in values)
    items = [f"{name!r}: {value!r}" if option == "map" else f"{name!r}: {value}" for name, _, value in pairs]
    return f"{_PAIRS[option]}={{{', '.join(items)}}}"


def _documented(function: F, make: type[DataclassInstance]) -> F:
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
