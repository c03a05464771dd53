"""`merilo runs merge`: make one run of the runs over all shards of a data set."""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.commands.command import Command, Section

HELP = """Merge the runs over all shards of a data set into one run.

RUN is the directory of a finished shard (merilo run --shard I/N). The merged run has the results that one process
would have written, byte for byte. Its requests and cost are those of all shards.
"""
EXAMPLES = """\b
Examples:
  merilo run answers.jsonl --shard 1/2 --out shards/1
  merilo run answers.jsonl --shard 2/2 --out shards/2
  merilo runs merge shards/1 shards/2 -o runs/whole
"""


def merge(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Directories of all shards, in any order.", show_default=False),
    ],
    out: Annotated[
        str,
        typer.Option(
            "-o",
            "--out",
            metavar="MERGED",
            help="Directory of the merged run, which must be new.",
            show_default=False,
        ),
    ],
) -> None:
    """Merge shards and print the summary of the merged run."""
    from merilo.commands.merge.run import merge_runs
    from merilo.commands.show.summary import run_page
    from merilo.numbers import count
    from merilo.rendering.page import page_width, show, tell
    from merilo.runs.run import Run

    found = merge_runs(runs, out)
    labelled = sum(Run.open(each).labels is not None for each in runs)
    show(run_page(found, page_width()))
    if labelled:
        tell(
            f"{count(labelled, 'shard')} had human labels, which were left out: they were sampled from one "
            "shard only. Sample labels from the merged run."
        )


COMMAND = Command(
    name="runs merge",
    section=Section.MAINTAIN,
    summary="Make one run of shards.",
    help=HELP,
    call=merge,
    options="--out",
    examples=EXAMPLES,
)
