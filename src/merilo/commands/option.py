"""Options that are declared once, as fields of a dataclass.

A field has its help, its text in the Python reference, and its flag. A part is a field that is itself such a dataclass:
`Limits(max_cost_usd=2)` in Python, `--max-cost 2` on the command line, `max_cost_usd = 2` under `[limits]` in
`merilo.toml`, and `limits.max_cost_usd` here. Its field that needs no name in Python, as in `Model("embedded")`, goes
by the name of the part: `judge`. `commands/keywords.py` reads the keywords of a public function, and
`commands/command.py` makes the flags of a command.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.engine.budget import Unanswered


O = TypeVar("O")  # noqa: E741  an options class
_UNSET: Final = object()


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
    group: OptionGroup | None
    """Its heading; None for that of options without one."""
    metavar: str | None = None
    name: str | None = None
    """The flag if it is not the field's name with dashes, such as `--rpm`."""
    type: type = str
    span: tuple[float, float] = (0, 1e15)
    """The smallest and the largest value, if the type is a number."""
    many: bool = False
    """True if the flag is repeatable."""
    default: object = None
    """The value that the command line passes to `read` if the flag is absent."""
    read: Callable[[Any], Any] | None = None  # Any: typer's value of this flag to the field's value
    """Turns the value on the command line into the value of the field. None: the value is used as it is."""
    in_project_file: bool = True
    """False if `merilo.toml` cannot set the option, because it is a file to write or belongs to one call."""


def opt(
    default: Any,  # Any: as the field, also the result
    group: OptionGroup | None,
    text: str,
    *,
    details: str = "",
    flag_default: object = _UNSET,
    **flag: Any,  # Any: the arguments of `Flag`
) -> Any:
    """Return the field of an option: `text` is its help and its text in the reference, unless `details` replaces that.

    The flag's default is the field's, unless it is repeatable or `flag_default` is given.
    """
    if flag_default is _UNSET:
        flag_default = None if flag.get("many") else default
    doc = details or text[0].lower() + text[1:]
    made = Flag(help=text, group=group, default=flag_default, **flag)
    return field(default=default, metadata={"doc": doc, "flag": made})


def keyword(default: Any, doc: str) -> Any:  # Any: as the field, also the result
    """Return the field of an option that only Python has."""
    return field(default=default, metadata={"doc": doc})


def part(make: type[Any], doc: str, *, default: Any = _UNSET) -> Any:  # Any: as the field, also the result
    """Return the field of a part, by default `make()`."""
    return field(default=make() if default is _UNSET else default, metadata={"doc": doc, "part": make})


def parts_of(make: type[Any]) -> dict[str, type[Any]]:  # Any: an options class
    """Return field → options class for all parts of an options class."""
    return {each.name: each.metadata["part"] for each in _fields(make) if "part" in each.metadata}


def docs_of(make: type[Any]) -> dict[str, str]:
    """Return field → its text in the Python reference, for the fields that users may set."""
    return {each.name: each.metadata["doc"] for each in _fields(make) if "doc" in each.metadata}


def flags_of(make: type[Any]) -> dict[str, Flag]:
    """Return option → flag for all options of a class and of its parts, such as `limits.max_cost_usd`."""
    found: dict[str, Flag] = {}
    for each in _fields(make):
        if "flag" in each.metadata:
            found[each.name] = each.metadata["flag"]
        elif "part" in each.metadata:
            inner = _fields(each.metadata["part"])
            found |= {_option(each, one): one.metadata["flag"] for one in inner if "flag" in one.metadata}
    return found


def flag_name(option: str, flag: Flag) -> str:
    """Return the flag of an option: `--rpm`, or the option's name with dashes."""
    return flag.name or "--" + option.rpartition(".")[2].replace("_", "-")


def check_span(name: str, value: Any, flag: Flag) -> None:  # Any: value of an option
    """Raise UsageError for a number outside the span of its option, also for one that is not finite."""
    if flag.type in (int, float) and value is not None and not flag.span[0] <= value <= flag.span[1]:
        raise UsageError(f"{name} must be from {flag.span[0]:g} to {flag.span[1]:g}, got {value!r:.60}.")


def options_from(make: type[O], values: Mapping[str, Any]) -> O:  # Any: values of options
    """Return the options with these values. Raises UsageError for a number outside its span."""
    for name, flag in flags_of(make).items():
        check_span(flag_name(name, flag), values.get(name), flag)
    given: dict[str, Any] = {}  # Any: as above
    for each in _fields(make):
        if "part" not in each.metadata:
            given |= {each.name: values[each.name]} if each.name in values else {}
            continue
        inner = _fields(each.metadata["part"])
        known = {one.name: values[name] for one in inner if (name := _option(each, one)) in values}
        given[each.name] = each.metadata["part"](**known)
    return make(**given)


def default_of(make: type[Any], name: str) -> object:
    """Return the default of an option, such as `limits.concurrency`."""
    first, _, rest = name.partition(".")
    (found,) = (each for each in _fields(make) if each.name == first)
    return default_of(found.metadata["part"], rest) if rest else found.default


def _option(part: Any, field: Any) -> str:  # Any: dataclass fields of any type
    return f"{part.name}.{field.name}" if field.kw_only else part.name


def _fields(make: type[Any]) -> tuple[Any, ...]:  # Any: fields of any type
    return fields(make)


# -- readers of what a user wrote ----------------------------------------------------------------------


def metric_texts(texts: list[str]) -> list[str]:
    """The metrics in comma-separated texts; a comma within parentheses belongs to its metric.

    Raises UsageError when a text names none.
    """
    found: list[str] = []
    for text in texts:
        names = [part.strip() for part in split_texts(text) if part.strip()]
        if not names:
            raise UsageError(f"--metrics takes comma-separated metrics, got {text!r}. To list them: merilo metrics.")
        found += names
    return found


def column_mapping(texts: list[str]) -> dict[str, str]:
    """Column to field, from texts of the form `column=field`. Raises UsageError for any other form."""
    found: dict[str, str] = {}
    for text in texts:
        parts = split_texts(text)
        for part in parts if all("=" in each for each in parts) else [text]:
            column, sign, field = map(str.strip, part.rpartition("="))
            if not (column and sign and field):
                raise UsageError(f"--map takes column=field, such as question=user_input; got {text!r}.")
            if found.setdefault(column, field) != field:
                raise UsageError(f"--map names the column {column!r} twice; name it once.")
    return found


def share(text: str, *, above: float = -1.0) -> float:
    """A share between 0 and 1, from `0.01` or `1%`. Raises UsageError for anything else, and up to `above`."""
    number = text.strip()
    try:
        value = float(number[:-1]) / 100 if number.endswith("%") else float(number)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1 or value <= above:
        more = f", more than {above:g}" if above >= 0 else ""
        raise UsageError(f"A share is a number from 0 to 1 or a percentage such as 1%{more}; got {text!r}.")
    return value


def unanswered_as(text: str) -> Unanswered:
    """Return the text if it is `charged` or `free`. Raises UsageError for any other."""
    if text == "free":
        return "free"
    if text == "charged":
        return "charged"
    raise UsageError(f"--unanswered must be charged or free, got {text!r}.")


def split_texts(text: str) -> list[str]:
    """Return the parts of a comma-separated text; a comma in parentheses or quotes divides nothing."""
    parts, depth, quoted = [""], 0, False
    for sign in text:
        quoted ^= sign == '"'
        if not quoted:
            depth += (sign == "(") - (sign == ")")
        if sign == "," and depth <= 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += sign
    return parts
