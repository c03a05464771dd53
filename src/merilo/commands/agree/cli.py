"""`merilo judge agree`: compare the verdicts of several judges."""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import Cluster, Debug, Json

HELP = """Measure how well judges agree: compare their verdicts on the same questions in two or more runs.

No judge is called. Runs of the same judge are pooled, such as its runs over the answers of several systems. If two
judges both judged five or more systems, their rankings of the systems are compared too. If all runs have the same
judge, its agreement with itself is measured; use merilo run --no-cache for these runs.

Exit codes: 0 success, 2 usage error or runs without a common question.
"""
EXAMPLES = """\b
Examples:
  merilo judge agree runs/mini runs/large
  merilo judge agree runs/mini-* runs/large-* --json
"""


def agree(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="RUN", help="Two or more run directories.", show_default=False)
    ] = None,
    cluster: Cluster = None,
    level: Annotated[float, typer.Option(metavar="L", help="Confidence level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the bootstrap.")] = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare judges."""
    del debug  # main reads it
    from merilo.commands.agree.run import judges_agreement
    from merilo.commands.agree.text import judges_page, judges_record
    from merilo.commands.judge.output import tell

    found = judges_agreement(runs or [], cluster=cluster, level=level, seed=seed)
    tell(judges_record(found), lambda width: judges_page(found, width), out=None, name="", json=json)


COMMAND = Command(
    name="judge agree",
    section=Section.JUDGES,
    summary="Compare judges with each other.",
    help=HELP,
    call=agree,
    examples=EXAMPLES,
)
