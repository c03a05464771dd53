"""`merilo lineage`: how the published definitions of one name score the same data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from merilo.cli.options import ApiKeyEnv, BaseUrl, Debug, Json, column_mapping, given

if TYPE_CHECKING:
    from merilo.reports.definitions import LineageTables

HELP = """Show how each published definition of context relevance and its kin scores DATA, side by side.

By default each published formula is taken over the verdicts of our own metrics, so that only the formulas differ and
nothing is asked twice; what a definition has beyond its formula is named as left out. With --as-published each asks
its own questions, as its system does; that needs a judge that writes free text.
"""
EXAMPLES = """\b
Examples:
  merilo lineage answers.jsonl
  merilo lineage answers.jsonl --family context_relevance --sample 17
  merilo lineage answers.jsonl --as-published --judge openai:gpt-4.1-mini
"""


def lineage(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="The file to evaluate.", callback=given, show_default=False)
    ],
    family: Annotated[list[str] | None, typer.Option(metavar="NAME", help="This family only. May be repeated.")] = None,
    as_published: Annotated[
        bool,
        typer.Option("--as-published/--same-verdicts", help="Ask each definition's own questions.", show_default=False),
    ] = False,
    sample: Annotated[
        str | None, typer.Option(metavar="ID", help="Show how each definition arrives at its number for this sample.")
    ] = None,
    judge: Annotated[list[str] | None, typer.Option(metavar="SPEC", help="As in merilo run. May be repeated.")] = None,
    out: Annotated[str | None, typer.Option(metavar="RUN", help="Directory of the run.")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Look at so many records only.")] = None,
    mapping: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="COLUMN=FIELD", help="Which field a column fills. May be repeated."),
    ] = None,
    language: Annotated[str | None, typer.Option(metavar="CODE", help="Language of the data, such as ru.")] = None,
    concurrency: Annotated[int, typer.Option(metavar="N", help="Requests in the air at once.")] = 16,
    base_url: BaseUrl = None,
    api_key_env: ApiKeyEnv = None,
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Leave bad records out instead of stopping.")
    ] = False,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no messages.")] = False,
    debug: Debug = False,
) -> None:
    """Evaluate all definitions and report; the help stands in HELP."""
    del debug  # read in main, where errors are told
    from merilo import api
    from merilo.reports.terminal import Watch

    tables = api.lineage(
        data,
        families=family or (),
        as_published=as_published,
        judge=judge or ["embedded"],
        out=out,
        limit=limit,
        mapping=column_mapping(mapping or []) or None,
        language=language,
        concurrency=concurrency,
        base_url=base_url,
        api_key_env=api_key_env,
        skip_invalid=skip_invalid,
        progress=Watch(quiet=quiet),
    )
    _report(tables, sample, json=json)


def _report(tables: LineageTables, sample: str | None, *, json: bool) -> None:
    from merilo.reports import lineage as report
    from merilo.reports.clean import json_text
    from merilo.reports.terminal import page_width, show, write

    if json:
        record = report.lineage_record(tables) if sample is None else report.lineage_sample_record(tables, sample)
        write(json_text(record) + "\n")
    elif sample is None:
        show(report.lineage_page(tables, page_width()))
    else:
        show(report.lineage_sample_page(tables, sample, page_width()))
