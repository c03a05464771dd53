"""The declaration of one command, options that several share, and the flags made from an options class."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, get_type_hints

import typer
from typer.core import TyperCommand, TyperOption

from merilo.commands.exit_codes import Exit
from merilo.commands.option import Flag, OptionGroup, flag_name, flags_of, options_from

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Section(StrEnum):
    """A heading of the command list, in the order in which `merilo --help` prints them."""

    MEASURE = "Measure"
    LOOK = "Look"
    DECIDE = "Decide"
    JUDGES = "Judges"
    MAINTAIN = "Maintain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of the command line."""

    name: str
    """The words after `merilo`, such as `run` or `judge check`."""
    section: Section
    summary: str
    """The line in the command list: a verb and its object."""
    help: str
    call: Callable[..., None]
    options: str = ""
    """The options in `--help`; `--help-all` has the others too."""
    examples: str = ""


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")]
By = Annotated[
    list[str] | None,
    typer.Option("--by", metavar="FIELD", help="Slices by language, length, contexts or a metadata key. Repeatable."),
]
ColumnFields = Annotated[
    list[str] | None, typer.Option("--map", metavar="COLUMN=FIELD", help="Read a field from this column. Repeatable.")
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD", help="Group samples that share this field or metadata key; intervals are over groups."
    ),
]
AcrossData = Annotated[
    bool, typer.Option("--across-data", help="Compare the samples that match, even if more than one in ten do not.")
]
JudgeOnly = Annotated[
    bool, typer.Option("--judge-only", help="Leave human labels out: every number is the judge's own.", hidden=True)
]
Markdown = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write Markdown for a comment; - for standard output.")
]
GitHub = Annotated[
    bool, typer.Option("--github", help="In a GitHub workflow: add to the step summary and print annotations.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no messages.")]


def check_whole(
    stopped: str | None, failed: int, asked: int, what: str, *, retry: str = "use --out and --retry-failed"
) -> None:
    """Exit with an error code if a limit was reached, which `stopped` says, or more than 1 % failed.

    `what`: the things asked about, in the plural. `retry`: what to do about those that failed.
    """
    from merilo.rendering.page import tell

    if stopped is not None:
        tell(f"{stopped} Answers in --out and in the verdict cache are reused at no cost.")
        raise typer.Exit(Exit.LIMIT_REACHED)
    if failed > _MAX_FAILED_RATE * asked:
        tell(f"{failed:,} of {asked:,} {what} failed (more than 1%). To retry them, {retry}.")
        raise typer.Exit(Exit.TOO_MANY_FAILED)


# -- flags from an options class -----------------------------------------------------------------------

_OTHER: Final = "Options"
_MAX_FAILED_RATE: Final = 0.01
_CONTEXT: Final = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
_NO_CONFIG: Final = inspect.Parameter(
    "no_config",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, typer.Option("--no-config", help="Ignore merilo.toml.")],
)


def takes_options(
    make: type[Any], *, without: tuple[str, ...] = (), **changed: Flag
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a flag for each option of a class, and pass the options as its argument `options`.

    Args:
        make: the options class.
        without: options to leave out, such as `limits.runner`.
        **changed: option, with `_` for the dot → the flag that replaces the declared one.
    """
    flags = {
        name: changed.get(name.replace(".", "_"), flag) for name, flag in flags_of(make).items() if name not in without
    }

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        def command(context: typer.Context, **values: Any) -> None:  # Any: what typer read
            no_config = values.pop("no_config", True)
            sources = {name: context.get_parameter_source(_parameter(name, flag)) for name, flag in flags.items()}
            given = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
            read = {name: values.pop(_parameter(name, flag)) for name, flag in flags.items()}
            read = {name: value if (to := flags[name].read) is None else to(value) for name, value in read.items()}
            if not no_config:
                from merilo.commands.project_file import project_file
                from merilo.rendering.page import tell

                found = project_file(flags_of(make))
                settings = {} if found is None else found.options(flags, given)
                if found is not None and settings and not values.get("quiet"):
                    tell(f"Settings from {found.name}: {', '.join(settings)} (merilo runs config shows them).")
                read |= settings
            function(**values, options=options_from(make, read))

        _sign(command, function, flags)
        return command

    return decorate


class GroupedOptions(TyperCommand):
    """A command whose help lists its visible options under headings, and all of them with `--help-all`."""

    shown: ClassVar[frozenset[str]] = frozenset()
    """The visible options. The others are hidden from `--help`."""
    shows_all: ClassVar[bool] = False
    """True if the command line has `--help-all`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # Any: as typer passes them
        """Hide the options that are not visible."""
        super().__init__(*args, **kwargs)
        for each in self.params:
            if isinstance(each, TyperOption):
                each.hidden = not self.shows_all and self.shown.isdisjoint(each.opts)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # Any: click's classes are private in typer
        """Write one list for each group of options."""
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in ("Arguments", *OptionGroup, _OTHER)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                other = getattr(parameter, "rich_help_panel", None) or _OTHER
                rows["Arguments" if parameter.param_type_name == "argument" else other].append(record)
        more = ("--debug", "Show the traceback of an error.") if self.shows_all else ("--help-all", "Show all options.")
        rows[_OTHER].append(more)
        for heading, group in rows.items():
            if group:
                with formatter.section(heading):
                    formatter.write_dl(group)


def _parameter(option: str, flag: Flag) -> str:
    """Return the name of the command's parameter: the flag's, since messages of the command line show it."""
    return flag_name(option, flag).removeprefix("--").replace("-", "_")


def _sign(command: Callable[..., None], function: Callable[..., None], flags: Mapping[str, Flag]) -> None:
    """Give the new command the parameters of the function, with the flags in place of `options`."""
    hints = get_type_hints(function, include_extras=True)
    own = [
        each.replace(annotation=hints[each.name], kind=each.KEYWORD_ONLY)
        for each in inspect.signature(function).parameters.values()
        if each.name != "options"
    ]
    made = [_flag_parameter(name, flag) for name, flag in flags.items()]
    command.__doc__ = function.__doc__
    command.__name__, command.__module__ = function.__name__, function.__module__
    made += [_CONTEXT, *([_NO_CONFIG] if any(flag.in_project_file for flag in flags.values()) else [])]
    command.__annotations__ = {each.name: each.annotation for each in (*own, *made)}
    command.__signature__ = inspect.Signature([*own, *made])  # type: ignore[attr-defined]  # typer reads it


def _flag_parameter(field: str, flag: Flag) -> inspect.Parameter:
    if flag.many:
        annotation: Any = list[str] | None
    elif flag.type is bool or flag.default is not None:
        annotation = flag.type
    else:
        annotation = flag.type | None
    shown = flag.type is not bool
    option = typer.Option(
        flag_name(field, flag), metavar=flag.metavar, help=flag.help, show_default=shown, rich_help_panel=flag.group
    )
    return inspect.Parameter(
        _parameter(field, flag),
        inspect.Parameter.KEYWORD_ONLY,
        default=flag.default,
        annotation=Annotated[annotation, option],
    )
