"""`merilo qrels`: pool labels of document spans over runs."""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import Debug, Json, given, given_some

HELP = """Pool relevance labels of document spans over runs, retrievers and chunkers, for merilo run --qrels.

Labels come from files of span labels, human labels attached to the runs, and the evidence sentences of the judge's
stored verdicts on context relevance. Human labels take precedence over a judge's. Nothing is asked.

--missing writes the retrieved sentences that no one has judged. Fill in `grade` and pass the file as --labels, or
let a judge answer: merilo run missing.jsonl --metrics context_relevance, and add that run.
"""
EXAMPLES = """\b
Examples:
  merilo qrels runs/bm25 runs/dense --documents documents.jsonl -o qrels.jsonl
  merilo qrels runs/new --documents documents.jsonl --labels qrels.jsonl --missing -o missing.jsonl
"""


def qrels(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN...", help="Run directories.", callback=given_some, show_default=False),
    ] = None,
    documents: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Source documents: `id` and `text`.", callback=given, show_default=False),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="File to write (.jsonl). An existing one is replaced.",
            callback=given,
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Span labels (.jsonl) to include. Repeatable.")
    ] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Write the retrieved sentences without a label instead.")
    ] = False,
    characters: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the first N characters that a run retrieved need a label."),
    ] = None,
    trec: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write TREC qrels: the highest grade per document.")
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Pool labels and report."""
    del debug  # main reads it
    from merilo.commands.qrels.run import pool_qrels
    from merilo.commands.qrels.text import qrels_page, qrels_record
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    found = pool_qrels(
        runs or (), given(documents), given(out), labels=labels or (), missing=missing, characters=characters, trec=trec
    )
    if json:
        write(json_text(qrels_record(found)) + "\n")
    else:
        show(qrels_page(found, page_width()))


COMMAND = Command(
    name="qrels",
    section=Section.DECIDE,
    summary="Pool relevance labels of document spans.",
    help=HELP,
    call=qrels,
    examples=EXAMPLES,
)
