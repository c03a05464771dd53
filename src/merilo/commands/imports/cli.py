"""`merilo import`: turn scores that another tool computed into a run."""

from __future__ import annotations

from math import inf
from typing import Annotated

import typer

from merilo.commands.command import Cluster, ColumnFields, Command, Json, Section
from merilo.commands.option import column_mapping
from merilo.errors import UsageError

HELP = """Import scores that another tool computed as a run, to show, compare and gate them without a judge call.

FILE is a table (.csv, .tsv, .jsonl or .json; .gz accepted) with one column per score, a ragas result saved as such a
table, the records of TruLens saved as such a table, a DeepEval test run (.json), or a file of traces or results that
another system wrote: OTLP JSON, Phoenix, Langfuse, LangSmith, MLflow, promptfoo, Inspect. A sample without a score is
undefined. With --source, merilo compare pairs the scores with the same definitions computed by merilo. Traces mostly
have no scores: show their samples with --list, write them with --out FILE.jsonl, or evaluate the file with merilo run.
"""
EXAMPLES = """\b
Examples:
  merilo import scores.csv --id question_id --score faithfulness --score rating=1..5
  merilo import ragas.csv --source ragas-0.4.3 --out runs/ragas
  merilo import .deepeval/.latest_test_run.json --out runs/deepeval
  merilo import traces.jsonl --list
  merilo import traces.jsonl --out samples.jsonl
"""


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="File with the scores.", show_default=False)],
    id: Annotated[str | None, typer.Option(metavar="COL", help="Column with the sample ids.")] = None,
    score: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL[=LOW..HIGH]", help="Column of scores, with its possible range. [default: 0..1] Repeatable."
        ),
    ] = None,
    lower_is_better: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="Column of scores where lower is better. Repeatable.")
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL[=UNIT]", help="Column of a measure, which is not a score. COL=higher: higher is better."
        ),
    ] = None,
    mapping: ColumnFields = None,
    cluster: Cluster = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="NAME-RELEASE", help="Tool that computed the scores, such as ragas-0.4.3, to compare them."
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="RUN", help="New run directory. FILE.jsonl: write the samples of FILE instead."
        ),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Only show the samples, spans and scores found in FILE.")
    ] = False,
    json: Json = False,
) -> None:
    """Import scores and print the summary."""
    from merilo.rendering.page import page_width, print_result

    if list_ or (out is not None and out.lower().endswith(".jsonl")):
        from merilo.commands.imports.text import contents_of, contents_page, contents_record, write_samples

        samples_to = None if list_ else out
        contents, first = contents_of(file) if samples_to is None else (write_samples(file, samples_to), [])
        print_result(
            contents_record(contents, samples_to) if json else contents_page(contents, first, page_width(), samples_to)
        )
        return
    from merilo.commands.blocking import run_blocking
    from merilo.commands.imports.run import ImportRequest, run_import
    from merilo.commands.show.summary import record_of, run_page
    from merilo.rendering.page import page_width, print_result

    wanted = ImportRequest(
        id=id,
        scores=dict(map(score_and_range, score or [])),
        lower_is_better=lower_is_better or [],
        mapping=column_mapping(mapping or []) or None,
        cluster=cluster,
        source=source,
        out=out,
        measures=measure or (),
    )
    found = run_blocking(run_import(file, wanted))
    print_result(record_of(found) if json else run_page(found, page_width()))


def score_and_range(text: str) -> tuple[str, tuple[float, float] | None]:
    """Parse a column and its range from `COL`, `COL=LOW..HIGH`, `COL=LOW..` or `COL=..HIGH`. Raises UsageError."""
    column, equals, ends = text.rpartition("=")
    if not equals:
        return text, None
    low, dots, high = ends.partition("..")
    refused = UsageError(f"--score needs COL or COL=LOW..HIGH, such as rating=1..5, got {text!r}.")
    if not (column and dots):
        raise refused
    try:
        return column, (float(low) if low.strip() else -inf, float(high) if high.strip() else inf)
    except ValueError:
        raise refused from None


COMMAND = Command(
    name="import",
    section=Section.MEASURE,
    summary="Import scores of another tool.",
    help=HELP,
    call=import_,
    options="--score --id --map --source --list --out --json",
    examples=EXAMPLES,
)
