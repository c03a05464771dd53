"""`merilo metrics`: list the metrics, or show the card of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from merilo.commands.command import Command, Json, Section
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.rendering.page import Page

HELP = """List the metrics, or explain one: the fields it needs, its formula, and when to use it.

The name of a published system, such as ragas-0.1.9, lists its definitions.

With --on, compare the published definitions of context_relevance, context_precision, context_recall, faithfulness or
answer_relevancy on DATA. Each formula is computed over the verdicts of merilo's own metrics, so only the formulas
differ and nothing is asked twice. For one sample, the page shows how each definition computes its number.
"""
EXAMPLES = """\b
Examples:
  merilo metrics
  merilo metrics faithfulness
  merilo metrics ragas-0.1.9
  merilo metrics ragas-0.1.9:context_relevancy
  merilo metrics context_relevance --on answers.jsonl
"""


def metrics(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A metric or a published system.", show_default=False)
    ] = None,
    on: Annotated[
        str | None, typer.Option(metavar="DATA", help="Compare the published definitions of NAME on this file.")
    ] = None,
    judge: Annotated[
        list[str] | None, typer.Option(metavar="SPEC", help="Judge for --on, as in merilo run. [default: embedded]")
    ] = None,
    json: Json = False,
) -> None:
    """List metrics, show a card, or compare definitions."""
    if on is not None:
        _compare(name, on, judge, json=json)
        return
    if judge is not None:
        raise typer.BadParameter("it needs --on DATA.", param_hint="--judge")
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


def _compare(name: str | None, data: str, judge: list[str] | None, *, json: bool) -> None:
    from merilo.plugins import PUBLISHED, Group, plugin
    from merilo.rendering.page import page_width, print_result
    from merilo.rendering.progress_line import progress_line

    definitions = cast("Callable[..., Page | dict[str, Any]] | None", plugin(Group.PARTS, "definitions"))
    if definitions is None:
        raise UsageError(f"--on needs {PUBLISHED}.")
    progress = progress_line(quiet=json)
    print_result(definitions(data, name or "", judge or "embedded", progress, width=None if json else page_width()))


COMMAND = Command(
    name="metrics",
    section=Section.LOOK,
    summary="List the metrics or explain one.",
    help=HELP,
    call=metrics,
    options="--on --judge --json",
    examples=EXAMPLES,
)
