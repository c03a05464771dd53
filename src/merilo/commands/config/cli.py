"""`merilo runs config`: show the settings that apply, and allow a project file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from merilo.commands.command import Command, Json, Section
from merilo.data import check
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.commands.project_file import ProjectFile
    from merilo.rendering.page import Page

HELP = """Show the settings of merilo.toml that apply here, and where each comes from.

merilo reads merilo.toml, or the table [tool.merilo] of pyproject.toml, in the working directory or the nearest parent.
Flags on the command line come before it; --no-config ignores it.

If the file names a judge that sends data, a server, the variable of a key, prices or code, merilo refuses to run until
you have allowed this content of the file with --allow. A file that another user could have written is refused.
"""
EXAMPLES = """\b
Examples:
  merilo runs config
  merilo runs config --allow
"""


def config(
    allow: Annotated[
        bool, typer.Option("--allow", help="Allow the judges, servers, keys, prices and code that the file names now.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the settings."""
    from merilo.commands.evaluate.options import Options
    from merilo.commands.option import flags_of
    from merilo.commands.project_file import project_file
    from merilo.rendering.page import print_result

    found = project_file(flags_of(Options))
    if allow:
        if found is None:
            raise UsageError("No merilo.toml, and no [tool.merilo] in pyproject.toml, here or in a parent directory.")
        found.allow()
    record = _record(found)
    print_result(record if json else _page(found, record))


def _record(found: ProjectFile | None) -> dict[str, Any]:  # Any: JSON
    from merilo.commands.evaluate.options import Options
    from merilo.commands.option import default_of, flags_of
    from merilo.commands.project_file import uses

    settings: Mapping[str, Any] = {} if found is None else found.settings  # Any: values of options
    options = [name for name, flag in flags_of(Options).items() if flag.in_project_file]
    defaults = {**{name: default_of(Options, name) for name in options}, "suite": None}
    source = "" if found is None else found.name
    rows = [
        {"option": name, "value": settings.get(name, default), "from": source if name in settings else "default"}
        for name, default in defaults.items()
    ]
    return {
        "file": None if found is None else str(found.path),
        "allowed": found is not None and found.allowed,
        "uses": uses(settings),
        "settings": rows,
    }


def _page(found: ProjectFile | None, record: dict[str, Any]) -> Page:  # Any: JSON
    from merilo.rendering.page import Page, columns, page_width

    page = Page(page_width())
    if found is None:
        page.line("No merilo.toml here or in a parent directory; the defaults apply.")
    else:
        page.line(str(found.path))
        if record["uses"]:
            state = "allowed" if found.allowed else "not allowed; read it, then run merilo runs config --allow"
            page.text(f"{state}: {'; '.join(record['uses'])}", indent=2)
    page.blank()
    shown = [(row["option"], _text(row["value"]), row["from"]) for row in record["settings"]]
    for line in columns([("option", "value", "from"), *shown], left=frozenset({0, 1, 2})):
        page.line(line)
    return page


def _text(value: object) -> str:
    if check.is_list(value):
        return ", ".join(map(str, value))
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


COMMAND = Command(
    name="runs config",
    section=Section.MAINTAIN,
    summary="Show the settings of merilo.toml.",
    help=HELP,
    call=config,
    options="--allow --json",
    examples=EXAMPLES,
)
