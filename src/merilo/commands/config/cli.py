"""`merilo runs config`: show the settings that apply, and allow a project file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.data import check
from merilo.errors import UsageError

if TYPE_CHECKING:
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
) -> None:
    """Show the settings."""
    from merilo.commands.evaluate.options import Options
    from merilo.commands.option import flags_of
    from merilo.commands.project_file import project_file
    from merilo.rendering.page import show

    found = project_file(flags_of(Options))
    if allow:
        if found is None:
            raise UsageError("No merilo.toml, and no [tool.merilo] in pyproject.toml, here or in a parent directory.")
        found.allow()
    show(_page(found))


def _page(found: ProjectFile | None) -> Page:
    from merilo.commands.evaluate.options import Options
    from merilo.commands.option import default_of, flags_of
    from merilo.commands.project_file import uses
    from merilo.rendering.page import Page, columns, page_width

    page = Page(page_width())
    if found is None:
        page.line("No merilo.toml here or in a parent directory; the defaults apply.")
    else:
        page.line(str(found.path))
        if used := uses(found.settings):
            state = "allowed" if found.allowed else "not allowed; read it, then run merilo runs config --allow"
            page.text(f"{state}: {'; '.join(used)}", indent=2)
    page.blank()
    options = [name for name, flag in flags_of(Options).items() if flag.in_project_file]
    rows = {**{name: (default_of(Options, name), "default") for name in options}, "suite": (None, "default")}
    if found is not None:
        rows |= {name: (value, found.name) for name, value in found.settings.items()}
    shown = [(name, _text(value), source) for name, (value, source) in rows.items()]
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
    options="--allow",
    examples=EXAMPLES,
)
