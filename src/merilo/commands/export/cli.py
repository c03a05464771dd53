"""`merilo export`: write runs to a file for other tools, as samples or as relevance labels of document spans."""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.commands.command import Command, Json, Section, given, given_some

HELP = """Export a run as a table with one row per sample: its fields and, for each metric, score, status and reason.

RUN is the directory that merilo run printed. The ending of FILE chooses the format: .csv, .jsonl, .parquet or .xlsx.
A file that ends in .otlp.jsonl holds one gen_ai.evaluation.result event per score for the spans of evaluated traces.

With --documents, pool relevance labels of document spans over runs, for merilo run --qrels. Labels come from files of
span labels (--labels), human labels attached to the runs, and the evidence sentences of the judge's stored verdicts on
context relevance. Human labels take precedence over a judge's. Nothing is asked. A file that ends in .trec holds TREC
qrels: the highest grade of each document.
"""
EXAMPLES = """\b
Examples:
  merilo export runs/first -o first.csv
  merilo export runs/traces -o scores.otlp.jsonl
  merilo export runs/bm25 runs/dense --documents documents.jsonl -o qrels.jsonl
  merilo export runs/new --documents documents.jsonl --labels qrels.jsonl --missing -o missing.jsonl
"""


def export(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Run directories.", callback=given_some, show_default=False)
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="File to write (.csv, .jsonl, .parquet, .xlsx, .otlp.jsonl, .trec). An existing one is replaced.",
            callback=given,
            show_default=False,
        ),
    ] = None,
    documents: Annotated[
        str | None, typer.Option(metavar="FILE", help="Source documents (`id`, `text`): pool labels of their spans.")
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
    json: Json = False,
) -> None:
    """Export runs."""
    from merilo.errors import UsageError
    from merilo.rendering.page import page_width, print_result

    if documents is not None:
        from merilo.commands.export.qrels import pool_qrels, qrels_page, qrels_record

        pool = pool_qrels(runs, documents, given(out), labels=labels or (), missing=missing, characters=characters)
        print_result(qrels_record(pool) if json else qrels_page(pool, page_width()))
    elif labels or missing or characters is not None:
        raise UsageError("--labels, --missing and --characters are for pooled labels. Add --documents FILE.")
    elif len(runs) > 1:
        raise UsageError("A table holds one run. Export the runs one by one, or add --documents FILE to pool labels.")
    else:
        from merilo.commands.export.run import export_page, export_record, export_run

        table = export_run(runs[0], given(out))
        print_result(export_record(table) if json else export_page(table, page_width()))


COMMAND = Command(
    name="export",
    section=Section.LOOK,
    summary="Export a run as a table, or labels of spans.",
    help=HELP,
    call=export,
    options="--out --documents --missing --json",
    examples=EXAMPLES,
)
