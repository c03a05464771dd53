"""`merilo show`: show a stored run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from merilo.commands.command import By, Command, Json, Markdown, Section
from merilo.errors import UsageError

if TYPE_CHECKING:
    from merilo.commands.diagnose.page import Diagnosis
    from merilo.rendering.page import Page

HELP = """Show a run: its summary, its worst samples, or one sample with all its evidence.

RUN is the directory that merilo run printed.
"""
EXAMPLES = """\b
Examples:
  merilo show runs/first
  merilo show runs/first --worst 5 --metric faithfulness
  merilo show runs/first --sample 17
  merilo show runs/first --by source
  merilo show runs/first --people
"""
_WORST = 10


def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Directory of the run.", show_default=False)],
    sample: Annotated[
        str | None, typer.Option(metavar="ID", help="Explain this sample: verdicts, reasons, replies.")
    ] = None,
    worst: Annotated[int | None, typer.Option(metavar="N", min=1, help="List the N worst samples of --metric.")] = None,
    metric: Annotated[
        str | None, typer.Option(metavar="M", help=f"Metric for --worst; alone, lists its {_WORST} worst samples.")
    ] = None,
    people: Annotated[bool, typer.Option("--people", help="List where people and the judge differ.")] = False,
    by: By = None,
    full: Annotated[
        bool, typer.Option("--full", help="Everything: all tables and notes, all texts, questions and replies.")
    ] = False,
    language: Annotated[
        str | None, typer.Option(metavar="CODE", help="Language of the screen, en or ru. [default: that of the run]")
    ] = None,
    markdown: Markdown = None,
    json: Json = False,
) -> None:
    """Show a run or a part of it."""
    from merilo.rendering.ci import check_reports

    check_reports(markdown=markdown, json=json, github=False)
    listed = worst is not None or metric is not None
    _check_parts(sample, listed=listed, people=people, by=by, reports=markdown is not None)
    from merilo.commands.show.summary import record_of, run_page
    from merilo.rendering.page import page_width, print_result
    from merilo.runs.files import CALLS
    from merilo.runs.run import Run

    found = _diagnosis(run, by) if (Path(run) / CALLS).is_dir() else None
    if found and sample in found.questions:
        shown = found.shown_question(sample, None if json else page_width())
    elif sample is not None:
        shown = _sample(run, sample, language, json=json, full=full)
    elif people:
        shown = _people(run, full=full, json=json)
    elif listed:
        shown = _worst(run, worst or _WORST, metric, language, json=json)
    elif found:
        shown = found.shown(None if json else page_width(), full=full)
    else:
        opened, own = Run.open(run), by or ()
        if json:
            shown = record_of(opened, by=own)
        else:
            shown = run_page(
                opened,
                page_width(),
                full=full,
                by=own,
                short=bool(own) and not full,
                language=language,
            )
    if markdown is not None:
        from merilo.commands.show.summary import run_markdown
        from merilo.rendering.ci import write_markdown
        from merilo.rendering.doc import doc_markdown

        text = doc_markdown(found.doc) if found else run_markdown(Run.open(run))
        write_markdown(markdown, text)
    if markdown != "-":
        print_result(shown)


def _diagnosis(run: str, by: object) -> Diagnosis:
    from merilo.commands.diagnose.page import Diagnosis

    if by:
        raise UsageError("A diagnosis has no slices: leave out --by.")
    return Diagnosis(Path(run))


def _sample(
    path: str, sample: str, language: str | None, *, json: bool, full: bool
) -> Page | dict[str, Any]:  # Any: JSON
    from merilo.commands.calibrate.people import labels_by_sample, readable_labels
    from merilo.commands.calibrate.slices import shown_run
    from merilo.rendering.explain import case_page
    from merilo.rendering.page import page_width
    from merilo.rendering.sample_page import sample_page
    from merilo.results.means import WeakMarks
    from merilo.results.sample_detail import SampleDetail, case_record
    from merilo.runs.run import Run

    run = Run.open(path)
    case = SampleDetail.of(shown_run(run), sample, labels_by_sample(readable_labels(run)).get(sample, ()))
    if json:
        return case_record(run, case)
    page = case_page if full else sample_page
    return page(case, page_width(), language=language or run.manifest.language, marks=WeakMarks.of(run.manifest))


def _worst(
    path: str, most: int, metric: str | None, language: str | None, *, json: bool
) -> Page | dict[str, Any]:  # Any: JSON
    from merilo.commands.calibrate.slices import shown_run
    from merilo.commands.show.summary import metric_of, worst, worst_page, worst_record
    from merilo.rendering.page import page_width
    from merilo.runs.run import Run

    run = Run.open(path)
    found, texts = worst(shown_run(run), metric_of(run, metric), most)
    return worst_record(run, found, texts) if json else worst_page(run, found, texts, page_width(), language)


def _people(path: str, *, full: bool, json: bool) -> Page | dict[str, Any]:  # Any: JSON
    from merilo.commands.calibrate.human_labels import attached_file
    from merilo.commands.calibrate.people import next_step
    from merilo.commands.calibrate.run import label_agreement
    from merilo.commands.calibrate.text import people_page, people_record
    from merilo.metrics.registry import asks_judge
    from merilo.rendering.page import page_width
    from merilo.runs.run import Run

    run = Run.open(path)
    if run.labels is None and any(map(asks_judge, run.manifest.metrics)):
        raise UsageError(f"No human labels are stored with {run.path}. To label some: {next_step([run])}")
    found = label_agreement(run, attached_file(run))
    return people_record(found) if json else people_page(found, page_width(), full=full)


def _check_parts(sample: str | None, *, listed: bool, people: bool, by: list[str] | None, reports: bool) -> None:
    if by and (sample is not None or listed or people):
        raise UsageError("--by shows slices of the run; leave out the rest.")
    if (sample is not None) + listed + people > 1:
        raise UsageError("--sample, --people and --worst with --metric show different parts; use one of them.")
    if reports and (sample is not None or people):
        raise UsageError("--markdown writes the summary of the run. Do not combine it with --sample or --people.")


COMMAND = Command(
    name="show",
    section=Section.LOOK,
    summary="Show a run or one of its samples.",
    help=HELP,
    call=show,
    options="--sample --worst --metric --by --people --full --markdown --json",
    examples=EXAMPLES,
)
