"""`merilo lineage`: how the published definitions of one name score the same data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import Debug, Json, Quiet, given
from merilo.commands.lineage.options import LineageOptions
from merilo.commands.option_flags import takes_options
from merilo.errors import UsageError

if TYPE_CHECKING:
    from os import PathLike

    from merilo.commands.evaluate.options import Options
    from merilo.commands.lineage.result import LineageTables
    from merilo.data.load import Records

HELP = """Compare the published definitions of context relevance, faithfulness and so on, on DATA.

By default each published formula is computed over the verdicts of merilo's own metrics, so only the formulas differ
and nothing is asked twice. Notes name what each formula leaves out of its definition. With --as-published each
definition asks its own questions, in its own steps and in our wording. That needs a judge that writes free text.

Means and tau-b are compared over the samples that every definition scored.

With --sample only that sample is evaluated, unless --out is a run of the data, which then includes the others.
"""
EXAMPLES = """\b
Examples:
  merilo lineage answers.jsonl
  merilo lineage answers.jsonl --family context_relevance --sample 17
  merilo lineage answers.jsonl --as-published --judge openai:gpt-4.1-mini
"""
_WRITES_NOTHING = (
    'No published definition could ask its own questions; see "Left out". Use an LLM judge (--judge openai:MODEL), or '
    "omit --as-published."
)


@takes_options(
    LineageOptions,
    without=(
        "metrics",
        "shard",
        "draws",
        "prompts",
        "max_cost_usd",
        "max_requests",
        "max_seconds",
        "unanswered",
        "record",
        "outcomes",
        "prices",
        "until_decided",
        "batch",
        "batch_files",
        "runner",
        "workers",
        "baseline",
    ),
)
def lineage(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="The file to evaluate.", callback=given, show_default=False)
    ],
    options: LineageOptions,
    sample: Annotated[
        str | None, typer.Option(metavar="ID", help="Show how each definition arrives at its number for this sample.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Evaluate all definitions and report."""
    from merilo.commands.blocking import run_blocking
    from merilo.commands.lineage.run import run_lineage
    from merilo.rendering.progress_line import ProgressLine
    from merilo.rendering.terminal import tell

    options = replace(options, progress=ProgressLine(quiet=quiet, plain=debug))
    records: str | Records = data
    if sample is not None and not (options.out and _is_run(options.out)):
        records = _only(data, sample, options)
        options = replace(options, mapping=None, limit=None)  # they were applied to the file
    tables = run_blocking(run_lineage(records, options))
    _report(tables, sample, json=json)
    if options.as_published and not any(":" in row.definition for rows in tables.families.values() for row in rows):
        tell(_WRITES_NOTHING)


def _is_run(out: str | PathLike[str]) -> bool:
    from pathlib import Path

    from merilo.runs.run import MANIFEST

    return (Path(out) / MANIFEST).exists()


def _only(data: str, sample: str, options: Options) -> Records:
    """Return the sample of the data with this id, as a data set.

    Raises UsageError if there is none, and DataError for a file that cannot be read.
    """
    from merilo.data.load import load
    from merilo.data.sample import BadRecord, Dataset, Sample

    dataset = load(data, mapping=options.mapping, language=options.language, limit=options.limit)
    ids: list[str] = []
    for each in dataset:
        if isinstance(each, Sample):
            if each.id == sample:
                chosen: list[Sample | BadRecord] = [each]
                return Dataset(dataset.name, chosen.__iter__)
            ids.append(str(each.id))
    raise UsageError(f"{dataset.name} has no sample with the id {sample!r}; its first ones are {', '.join(ids[:3])}.")


def _report(tables: LineageTables, sample: str | None, *, json: bool) -> None:
    from merilo.commands.lineage import text as report
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    if json:
        record = report.lineage_record(tables) if sample is None else report.lineage_sample_record(tables, sample)
        write(json_text(record) + "\n")
    elif sample is None:
        show(report.lineage_page(tables, page_width()))
    else:
        show(report.lineage_sample_page(tables, sample, page_width()))


COMMAND = Command(
    name="lineage",
    section=Section.LOOK,
    summary="Compare the definitions of one name.",
    help=HELP,
    call=lineage,
    examples=EXAMPLES,
)
