"""`merilo metrics`: list the metrics, or show the card of one."""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.commands.command import Command, Json, Section

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
) -> None:
    """List metrics, or show a card."""
    from merilo.commands.metrics import text as cards
    from merilo.metrics.registry import systems
    from merilo.metrics.text import NEWEST
    from merilo.rendering.page import page_width, print_result

    named = None if name is None else NEWEST.get(name, name)
    system = named if named in systems() else None
    if name is None:
        record = {"metrics": cards.list_record(), "published": cards.systems_record()}
        print_result(record if json else cards.list_page(page_width()))
    elif system is None:
        print_result(cards.card_record(name) if json else cards.card_page(name, page_width()))
    else:
        print_result({"metrics": cards.list_record(system)} if json else cards.system_page(system, page_width()))


COMMAND = Command(
    name="metrics",
    section=Section.LOOK,
    summary="List the metrics or explain one.",
    help=HELP,
    call=metrics,
    options="--json",
    examples=EXAMPLES,
)
