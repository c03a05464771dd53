"""Options that are declared once, as fields of a dataclass.

The metadata of a field holds its text in the Python reference, and its flag. `with_options` makes the signature and
docstring of a public function from them, and `commands/option_flags.py` the flags of a command.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import DataclassInstance

P = ParamSpec("P")
O = TypeVar("O")  # noqa: E741  an options class
R = TypeVar("R")
D = TypeVar("D")


class OptionGroup(StrEnum):
    """A heading in the help of a command that takes evaluation options."""

    DATA = "Data"
    JUDGES = "Metrics and judges"
    LIMITS = "Requests and limits"
    OUTPUT = "Results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """An option on the command line."""

    help: str
    group: OptionGroup
    metavar: str | None = None
    name: str | None = None
    """The flag if it is not the field's name with dashes, such as `--rpm`."""
    type: type = str
    many: bool = False
    """True if the flag is repeatable."""
    default: object = None
    """The value that the command line passes to `read` if the flag is absent."""
    read: Callable[[Any], Any] | None = None  # Any: typer's value of this flag to the field's value
    """Turns the value on the command line into the value of the field. None: the value is used as it is."""
    in_project_file: bool = True
    """False if `merilo.toml` cannot set the option, because it is a file to write or belongs to one call."""


def option(doc: str, flag: Flag | None = None) -> dict[str, object]:
    """Return the metadata of an option: its text in the Python reference, and its flag unless it is Python only."""
    return {"doc": doc, "flag": flag}


def opt(default: Any, group: OptionGroup | None, text: str, *, details: str = "", **flag: Any) -> Any:  # Any: a field
    """Return the field of an option: `text` is its help and its text in the reference, unless `details` replaces that.

    `flag`: the arguments of `Flag`. Its default is the field's, unless the flag is repeatable or a value is given.
    """
    if group is None:
        return field(default=default, metadata=option(text))
    flag_default = flag.pop("flag_default", None if flag.get("many") else default)
    return field(
        default=default,
        metadata=option(
            details or text[0].lower() + text[1:], Flag(help=text, group=group, default=flag_default, **flag)
        ),
    )


def flags_of(make: Callable[..., object]) -> dict[str, Flag]:
    """Return field → flag for all fields of an options class that have one."""
    flags = {each.name: each.metadata.get("flag") for each in fields(cast("type[DataclassInstance]", make))}
    return {name: flag for name, flag in flags.items() if isinstance(flag, Flag)}


def with_options(make: Callable[P, O]) -> Callable[[Callable[[D, O], R]], Callable[Concatenate[D, P], R]]:
    """Give a public function of data the fields of an options class as keyword arguments.

    The signature lists the fields that have metadata. In the docstring, `{options}` becomes one entry for each of them.
    A call with an unknown argument raises TypeError with the closest name.
    """

    def decorate(function: Callable[[D, O], R]) -> Callable[Concatenate[D, P], R]:
        def call(*args: Any, **kwargs: Any) -> R:  # Any: bound to the signature below
            values = _bound(function.__name__, signature, args, kwargs)
            data = values.pop(parameter)
            return function(data, cast("Callable[..., O]", make)(**values))

        signature = _describe(call, function, make)
        parameter = next(iter(signature.parameters))
        return cast("Callable[Concatenate[D, P], R]", call)

    return decorate


def _bound(
    function: str, signature: inspect.Signature, args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, Any]:  # Any: the values of all parameters
    for name in kwargs:
        if name not in signature.parameters:
            close = get_close_matches(name, signature.parameters, n=1)
            advice = f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(signature.parameters)}."
            raise TypeError(f"{function}() has no argument {name!r}; {advice}")
    try:
        return signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"{function}(): {error}") from None


def _describe(
    call: Callable[..., object], function: Callable[..., object], make: Callable[..., object]
) -> inspect.Signature:
    """Copy name and docstring to the new function; return its signature."""
    options = cast("type[DataclassInstance]", make)
    docs = {each.name: each.metadata["doc"] for each in fields(options) if each.metadata}
    keywords = [each for name, each in inspect.signature(options).parameters.items() if name in docs]
    own = inspect.signature(function)
    data = [each for each in own.parameters.values() if each.name != "options"]
    signature = inspect.Signature([*data, *keywords], return_annotation=own.return_annotation)
    text = inspect.getdoc(function) or ""
    call.__doc__ = text.replace("{options}", "\n    ".join(f"{name}: {doc}" for name, doc in docs.items()))
    for name in ("__name__", "__qualname__", "__module__"):
        setattr(call, name, getattr(function, name))
    call.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it; typeshed does not declare it
    return signature
