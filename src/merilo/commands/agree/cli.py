"""`merilo judge agree`: how far do judges agree with each other?"""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import Cluster, Debug, Json

HELP = """Hold judges against each other: what they said of the same questions in two runs or more.

Nothing is asked. Runs of one judge are taken together, such as those over the answers of several systems; where two
judges both judged five systems or more, it is told too how far they rank them alike. Runs of one and the same judge,
asked anew each time, say how far it agrees with itself.

Exit codes: 0 done, 2 wrong use, or runs without a common question.
"""
EXAMPLES = """\b
Examples:
  merilo judge agree runs/mini runs/large
  merilo judge agree runs/mini-* runs/large-* --json
"""


def agree(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="RUN", help="Directories of two runs or more.", show_default=False)
    ] = None,
    cluster: Cluster = None,
    level: Annotated[float, typer.Option(metavar="L", help="Confidence level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the resamples.")] = 0,
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
