"""`merilo metrics`: list the metrics, or show the card of one."""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import Debug, Json

HELP = """List the metrics, or explain one: the fields it needs, its formula, and when to use it.

The name of a published system, such as ragas-0.1.9, lists its definitions.
"""
EXAMPLES = """\b
Examples:
  merilo metrics
  merilo metrics faithfulness
  merilo metrics ragas-0.1.9
  merilo metrics ragas-0.1.9:context_relevancy
"""


def metrics(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A metric or a published system.", show_default=False)
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """List metrics or show a card."""
    del debug  # main reads it
    from merilo.commands.metrics import text as cards
    from merilo.metrics.registry import systems
    from merilo.metrics.text import NEWEST
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    named = None if name is None else NEWEST.get(name, name)
    system = named if named in systems() else None
    if json:
        if name is None:
            record = {"metrics": cards.list_record(), "published": cards.systems_record()}
        else:
            record = cards.card_record(name) if system is None else {"metrics": cards.list_record(system)}
        write(json_text(record) + "\n")
    elif name is None:
        show(cards.list_page(page_width()))
    else:
        show(cards.card_page(name, page_width()) if system is None else cards.system_page(system, page_width()))


COMMAND = Command(
    name="metrics",
    section=Section.LOOK,
    summary="List the metrics or explain one.",
    help=HELP,
    call=metrics,
    examples=EXAMPLES,
)
