"""`merilo label`: draw what a person should look at, and ask it in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import Debug, Json, given
from merilo.errors import Interrupted, UsageError

if TYPE_CHECKING:
    from merilo.commands.label.run import Tasks

HELP = """Draw tasks for people from a run, or ask the tasks of a file one by one.

WHAT is the directory of a run, with --output for the file of tasks (.jsonl or .csv); or such a file, with --ask. Fill
in the field label with any tool, or with --ask: each answer is in the file before the next task is shown, and the same
command goes on where it was stopped. The file does not tell what the judge said.

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
            metavar="WHAT", help="A run, or a file of tasks with --ask.", callback=given, show_default=False
        ),
    ],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the tasks here: .jsonl or .csv.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(metavar="M", help="The metric whose judge is to be held against people.")
    ] = None,
    sample: Annotated[int, typer.Option(metavar="N", min=1, help="Draw so many samples.")] = 40,
    items: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="At most so many contexts or statements of each; all, where whole samples are needed.",
        ),
    ] = 3,
    stratify: Annotated[
        bool, typer.Option("--stratify", help="Draw from the lowest, highest and other scores in proportion.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Draw other samples.")] = 0,
    ask: Annotated[bool, typer.Option("--ask", help="Ask the tasks of the file in this terminal.")] = False,
    annotator: Annotated[
        str, typer.Option(metavar="NAME", help="With --ask: who answers; kept beside each label.")
    ] = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Draw tasks or ask them."""
    del debug  # main reads it
    if ask:
        if output is not None or json:
            raise UsageError("--ask fills in the file that is named first; leave --output and --json out.")
        _ask(Path(what), annotator)
        return
    if output is None:
        raise UsageError("Name the file for the tasks with -o (tasks.jsonl or tasks.csv); or ask a file's: --ask.")
    if Path(what).is_file():
        raise UsageError(f"{what} is a file, and tasks are drawn from a run's directory; to have it asked: --ask.")
    from merilo.commands.label.run import label_run

    tasks = label_run(what, output, metric=metric, samples=sample, items=items, stratify=stratify, seed=seed)
    _report(tasks, what, output, json=json)


def _ask(path: Path, annotator: str) -> None:
    from merilo.commands.label.interview import ask_tasks
    from merilo.commands.label.task_file import TaskFile

    if path.is_dir():
        raise UsageError(f"{path} is a run; --ask takes the file of tasks that was drawn from it.")
    try:
        ask_tasks(TaskFile(path), annotator=annotator)
    except KeyboardInterrupt:
        raise Interrupted(f"Stopped. What was answered is in {path}; the same command goes on.") from None


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
    how = "drawn by score" if tasks.stratified else "drawn uniformly"
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
