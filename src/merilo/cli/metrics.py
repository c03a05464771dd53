"""`merilo metrics`: which metrics there are, and the card of each."""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.cli.options import Debug, Json

HELP = """List the metrics, or say all about one: what it needs, how it is computed, when to use it."""
EXAMPLES = """\b
Examples:
  merilo metrics
  merilo metrics faithfulness
"""


def metrics(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The metric.", show_default=False)] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """List metrics or show a card; the help stands in HELP."""
    del debug  # read in main, where errors are told
    from merilo.reports import cards
    from merilo.reports.clean import json_text
    from merilo.reports.terminal import page_width, show, write

    if json:
        record = {"metrics": cards.list_record()} if name is None else cards.card_record(name)
        write(json_text(record) + "\n")
    else:
        show(cards.list_page(page_width()) if name is None else cards.card_page(name, page_width()))
