"""The flags of a command, made from the fields of its options class."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import typer
from typer.core import TyperCommand

from merilo.commands.option import Flag, OptionGroup, flags_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping


_OTHER: Final = "Options"
_CONTEXT: Final = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
_NO_CONFIG: Final = inspect.Parameter(
    "no_config",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, typer.Option("--no-config", help="Ignore merilo.toml.")],
)


def takes_options(
    make: Callable[..., object],
    *,
    names: tuple[str, ...] | None = None,
    without: tuple[str, ...] = (),
    visible: tuple[str, ...] | None = None,
    **changed: Flag,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a flag for each field of an options class, and pass the options as its argument `options`.

    Args:
        make: the options class.
        names: the fields to take. None: all that have a flag.
        without: fields to leave out of these.
        visible: the fields whose flags the help lists. None: all.
        **changed: field → the flag that replaces the declared one.
    """
    flags = {
        name: changed.get(name, flag)
        for name, flag in flags_of(make).items()
        if name not in without and (names is None or name in names)
    }

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        def command(context: typer.Context, **values: Any) -> None:  # Any: what typer read
            no_config = values.pop("no_config", True)
            given = {name for name, flag in flags.items() if _is_given(context, _parameter(name, flag))}
            read = {name: _value(flag, values.pop(_parameter(name, flag))) for name, flag in flags.items()}
            if not no_config:
                read |= _project_settings(flags_of(make), flags, given, quiet=bool(values.get("quiet")))
            function(**values, options=make(**read))

        hidden = frozenset(flags) - (flags.keys() if visible is None else {*visible})
        _sign(command, function, flags, configurable=names is None, hidden=hidden)
        return command

    return decorate


class GroupedOptions(TyperCommand):
    """A command whose help lists evaluation options under headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:  # Any: typer renames click's classes between versions
        """Write one list for each group of options."""
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in ("Arguments", *OptionGroup, _OTHER)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                rows[_heading(parameter)].append(record)
        for heading, group in rows.items():
            if group:
                with formatter.section(heading):
                    formatter.write_dl(group)


def _is_given(context: typer.Context, parameter: str) -> bool:
    """Return True if the flag is on the command line."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def _project_settings(
    known: Mapping[str, Flag], wanted: Mapping[str, Flag], given: set[str], *, quiet: bool
) -> dict[str, Any]:  # Any: values of options
    """Return the settings of merilo.toml that this command takes, and name them on stderr."""
    from merilo.commands.project_file import project_file
    from merilo.rendering.terminal import tell

    found = project_file(known)
    settings = {} if found is None else found.options(wanted, given)
    if found is not None and settings and not quiet:
        tell(f"Settings from {found.name}: {', '.join(settings)} (merilo runs config shows them).")
    return settings


def _heading(parameter: Any) -> str:  # Any: as above
    if parameter.param_type_name == "argument":
        return "Arguments"
    return parameter.rich_help_panel or _OTHER


def _flag_name(field: str, flag: Flag) -> str:
    return flag.name or "--" + field.replace("_", "-")


def _parameter(field: str, flag: Flag) -> str:
    """Return the name of the command's parameter: the flag's, since messages of the command line show it."""
    return _flag_name(field, flag).partition("/")[0].removeprefix("--").replace("-", "_")


def _value(flag: Flag, value: Any) -> Any:  # Any: as above
    return value if flag.read is None else flag.read(value)


def _sign(
    command: Callable[..., None],
    function: Callable[..., None],
    flags: Mapping[str, Flag],
    *,
    configurable: bool,
    hidden: Container[str],
) -> None:
    """Give the new command the parameters of the function, with the flags in place of `options`."""
    hints = get_type_hints(function, include_extras=True)
    own = [
        each.replace(annotation=hints[each.name], kind=each.KEYWORD_ONLY)
        for each in inspect.signature(function).parameters.values()
        if each.name != "options"
    ]
    made = [_flag_parameter(name, flag, hidden=name in hidden) for name, flag in flags.items()]
    command.__doc__ = function.__doc__
    command.__name__, command.__module__ = function.__name__, function.__module__
    made += [_CONTEXT, *([_NO_CONFIG] if configurable else [])]
    command.__annotations__ = {each.name: each.annotation for each in (*own, *made)}
    command.__signature__ = inspect.Signature([*own, *made])  # type: ignore[attr-defined]  # typer reads it


def _flag_parameter(field: str, flag: Flag, *, hidden: bool) -> inspect.Parameter:
    if flag.many:
        annotation: Any = list[str] | None
    elif flag.type is bool or flag.default is not None:
        annotation = flag.type
    else:
        annotation = flag.type | None
    name = _flag_name(field, flag)
    shown = flag.type is not bool
    option = typer.Option(
        name, metavar=flag.metavar, help=flag.help, show_default=shown, rich_help_panel=flag.group, hidden=hidden
    )
    return inspect.Parameter(
        _parameter(field, flag),
        inspect.Parameter.KEYWORD_ONLY,
        default=flag.default,
        annotation=Annotated[annotation, option],
    )
