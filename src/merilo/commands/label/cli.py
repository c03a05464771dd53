"""`merilo label`: sample items from a run for annotators, and label them in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import Debug, Json, given
from merilo.errors import Interrupted, UsageError

if TYPE_CHECKING:
    from merilo.commands.label.run import Tasks

HELP = """Sample items from a run for people to label, or label a file of items in the terminal.

With -o, WHAT is a run directory: the sampled items are written to a .jsonl or .csv file, without the judge's verdicts.
Fill in the `label` field with any tool, or run `merilo label FILE --ask`. It saves each answer at once; repeat the
command to resume.

Then: merilo calibrate RUN --labels FILE
"""
EXAMPLES = """\b
Examples:
  merilo label runs/first --metric faithfulness --sample 60 -o tasks.jsonl
  merilo label tasks.jsonl --ask --annotator ann
  merilo label runs/first --metric context_precision -o tasks.csv
"""


def label(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT", help="A run directory, or with --ask a file of tasks.", callback=given, show_default=False
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="New file for the tasks: .jsonl or .csv."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(metavar="M", help="Metric to label. [default: the only one with a judge]"),
    ] = None,
    sample: Annotated[int, typer.Option(metavar="N", min=1, help="Number of samples to draw.")] = 40,
    items: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Contexts or statements per sample; all if the metric needs whole samples.",
        ),
    ] = 3,
    stratify: Annotated[
        bool, typer.Option("--stratify", help="Stratify by score (minimum, maximum, in between), in proportion.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the draw; another seed draws other samples.")] = 0,
    ask: Annotated[bool, typer.Option("--ask", help="Label the tasks of the file WHAT in this terminal.")] = False,
    annotator: Annotated[
        str, typer.Option(metavar="NAME", help="With --ask: name of the annotator, stored with each label.")
    ] = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Draw tasks, or ask for their labels."""
    del debug  # main reads it
    if ask:
        if output is not None or json:
            raise UsageError("--ask writes the labels to the file WHAT; leave out --output and --json.")
        _ask(Path(what), annotator)
        return
    if output is None:
        raise UsageError(
            "Name a new file for the tasks: -o tasks.jsonl or tasks.csv. To label an existing file, add --ask."
        )
    if Path(what).is_file():
        raise UsageError(f"Expected a run directory, got the file {what}. To label its tasks, add --ask.")
    from merilo.commands.label.run import label_run

    tasks = label_run(what, output, metric=metric, samples=sample, items=items, stratify=stratify, seed=seed)
    _report(tasks, what, output, json=json)


def _ask(path: Path, annotator: str) -> None:
    from merilo.commands.label.interview import ask_tasks
    from merilo.commands.label.task_file import TaskFile

    if path.is_dir():
        raise UsageError(f"--ask needs a file of tasks, got the run directory {path}.")
    try:
        ask_tasks(TaskFile(path), annotator=annotator)
    except KeyboardInterrupt:
        raise Interrupted(f"Stopped. The answers are saved in {path}; repeat the command to resume.") from None


def _report(tasks: Tasks, run: str, output: str, *, json: bool) -> None:
    from merilo.rendering.overview import command
    from merilo.rendering.page import Page
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write
    from merilo.rendering.wording import count

    if json:
        write(json_text(_record(tasks, run, output)) + "\n")
        return
    page = Page(page_width())
    drawn = f"{tasks.samples:,} of {count(tasks.population, 'scored sample')}"
    how = "stratified by score" if tasks.stratified else "drawn uniformly"
    page.text(f"{count(tasks.to_answer, 'task')} for {tasks.metric}: {drawn}, {how} (seed {tasks.seed}).")
    for sentence in tasks.remarks:
        page.text(sentence)
    page.heading("Next")
    page.line("  " + command("label", output, "--ask"))
    page.line("  " + command("calibrate", run, "--labels", output))
    show(page)


def _record(tasks: Tasks, run: str, output: str) -> dict[str, object]:
    return {
        "run": run,
        "file": output,
        "metric": tasks.metric,
        "unit": tasks.unit.value,
        "tasks": tasks.to_answer,
        "samples": tasks.samples,
        "scored_samples": tasks.population,
        "stratified": tasks.stratified,
        "seed": tasks.seed,
        "remarks": list(tasks.remarks),
    }


COMMAND = Command(
    name="label",
    section=Section.JUDGES,
    summary="Sample items for people to label.",
    help=HELP,
    call=label,
    examples=EXAMPLES,
)
