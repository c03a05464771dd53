"""`merilo label`: ask people about items of a run, attach their labels, and compare the judge with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import Command, Json, Section
from merilo.commands.exit_codes import Exit
from merilo.commands.option import metric_texts
from merilo.errors import Interrupted, UsageError

if TYPE_CHECKING:
    from merilo.commands.label.run import Tasks

HELP = """Ask people about a few samples of a run, or of a pair of runs, to correct the judge.

The questions show neither the judge's verdicts nor the run. Label in this terminal: each answer is saved at once, and
the same command resumes. Or in a browser (--html: one file that needs no server and no Python), or with any tool that
fills in the `label` field of a file (--out). Labels given here are attached to the runs; --labels attaches files.
Labels of one run correct `merilo show` and `merilo gate --min`; labels of a pair also correct `merilo compare` and
`merilo gate --baseline`.

Exit codes: 0 success, 2 usage error or no usable label, 3 too few labels to report a mean (--labels).
"""
EXAMPLES = """\b
Examples:
  merilo label runs/bm25 runs/dense
  merilo label runs/first --metric faithfulness --html tasks.html
  merilo label runs/first --labels labels-ann.jsonl --labels labels-ben.jsonl
  merilo label runs/first --metric faithfulness --number 60 --out tasks.csv
  merilo label tasks.csv --annotator ann
"""


def label(
    what: Annotated[
        str,
        typer.Argument(metavar="RUN", help="A run directory, or a file of tasks.", show_default=False),
    ],
    other: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="A second run directory, to label a pair of runs.", show_default=False),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(metavar="M", help="Metric to label. [default: that of the fault table; for a pair, relevance]"),
    ] = None,
    number: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of samples to draw. [default: 30 to 40]")
    ] = None,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a page for labelling the tasks in a browser.")
    ] = None,
    annotator: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the annotator, stored with each label given here.")
    ] = "",
    labels: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Attach the labels of this file, and compare the judge with them. Repeatable."
        ),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Only write the tasks: a new .jsonl or .csv file.")
    ] = None,
    json: Json = False,
) -> None:
    """Draw tasks, ask for their labels, or attach labels."""
    runs = [each for each in (what, other) if each is not None]
    _check(labels=labels, out=out, html=html, json=json)
    if labels:
        _attach_files(runs, labels, metric, json=json)
        return
    if Path(what).is_file() or what.endswith((".jsonl", ".ndjson", ".csv")):
        if other is not None or out is not None:
            raise UsageError(f"The tasks are in {what}; leave out --out and the second run.")
        _label_file(what, html, annotator, json=json)
        return
    from merilo.commands.calibrate.people import labelling_price, readable_labels, seconds_of, without_labelled
    from merilo.commands.label.page import drawn_page
    from merilo.commands.label.run import label_run, tasks_file
    from merilo.commands.label.task_file import TaskFile
    from merilo.rendering.page import page_width, show, write
    from merilo.runs.run import Run

    tasks = label_run(what, out, metric=metric, samples=number, items=None, other=other)
    attached = readable_labels(*(Run.open(run) for run in runs))
    tasks = replace(tasks, seconds=seconds_of(attached, annotator))
    if out is not None or html is not None:
        _report(tasks, runs, out, html, json=json)
        return
    tasks = without_labelled(tasks, attached, annotator)
    file = tasks_file(runs, tasks)
    if all(task.label for task in TaskFile(file).tasks):
        _attach(runs, file)
        write(f"\nAll tasks of this draw are labelled. For more: {labelling_price(runs, metric).advice}\n")
        return
    show(drawn_page(tasks, runs, str(file), None, page_width(), asked=True))
    try:
        _ask(file, annotator)
    finally:
        _attach(runs, file)


def _check(*, labels: list[str] | None, out: str | None, html: str | None, json: bool) -> None:
    """Raise UsageError for options that exclude each other."""
    only_writes = out is not None or html is not None
    if labels and only_writes:
        raise UsageError("--labels attaches labels; leave out --out and --html.")
    if json and not (only_writes or labels):
        raise UsageError("Labelling is a dialogue; leave out --json, or name a file for the tasks: --out tasks.jsonl.")


def _label_file(file: str, html: str | None, annotator: str, *, json: bool) -> None:
    """Ask for the labels of an existing file of tasks, or write its page, without the labels that they have."""
    from merilo.commands.label.page import attach_page, file_page, write_label_page
    from merilo.commands.label.task_file import TaskFile
    from merilo.rendering.page import page_width, print_result

    if html is None:
        if json:
            raise UsageError("Labelling is a dialogue; leave out --json.")
        if _ask(Path(file), annotator):
            print_result(attach_page(file, page_width()))
        return
    found = TaskFile(Path(file))
    write_label_page(html, found.records)
    amount, pair = len(found.tasks), any(task.pair for task in found.tasks)
    record = {"file": file, "html": html, "tasks": amount}
    print_result(record if json else file_page(amount, html, page_width(), pair=pair))


def _ask(path: Path, annotator: str) -> bool:
    """Ask for the labels of a file; return True if it has any at the end."""
    from merilo.commands.label.task_file import TaskFile, ask_tasks

    try:
        file = TaskFile(path)
        ask_tasks(file, annotator=annotator)
    except KeyboardInterrupt:
        raise Interrupted(f"Stopped. The answers are saved in {path}; repeat the command to resume.") from None
    return any(task.label for task in file.tasks)


def _attach(runs: list[str], path: Path) -> None:
    """Attach the labels given so far to the runs, and report it."""
    from merilo.commands.calibrate.human_labels import attach_files
    from merilo.commands.calibrate.people import people_and_judge, readable_labels
    from merilo.commands.label.page import Agreed, attached_page
    from merilo.commands.label.task_file import TaskFile
    from merilo.rendering.page import page_width, show
    from merilo.runs.run import Run

    if not attach_files(runs, [str(path)]):
        return
    found: list[Agreed] = []
    for each in map(Run.open, runs):
        agreed, verdicts, differ = people_and_judge(each, readable_labels(each))
        found.append(Agreed(agreed, verdicts, tuple(f"{one.sample} {one.about} ({one.words})" for one in differ)))
    show(attached_page(TaskFile(path), runs, found, page_width()))


def _attach_files(runs: list[str], labels: list[str], metric: str | None, *, json: bool) -> None:
    """Attach the labels of files to the runs, and compare the judge with them. Exits with 3 for too few labels."""
    from merilo.commands.calibrate.run import label_agreement
    from merilo.commands.calibrate.text import people_page, people_record
    from merilo.rendering.page import page_width, print_result

    run, *others = runs
    other = others[0] if others else None
    metrics = None if metric is None else metric_texts([metric])
    found = label_agreement(run, labels, metrics=metrics, other=other, attach=True)
    print_result(people_record(found) if json else people_page(found, page_width()))
    if not found.has_estimate:
        raise typer.Exit(Exit.CANNOT_TELL)


def _report(tasks: Tasks, runs: list[str], output: str | None, html: str | None, *, json: bool) -> None:
    from merilo.commands.label.page import drawn_page, drawn_record
    from merilo.rendering.page import page_width, print_result

    if html is not None:
        from merilo.commands.label.page import write_label_page

        write_label_page(html, [line.record() for line in tasks.lines])
    drawn = tasks, runs, output, html
    print_result(drawn_record(*drawn) if json else drawn_page(*drawn, page_width()))


COMMAND = Command(
    name="label",
    section=Section.DECIDE,
    summary="Ask people about a few samples, to correct the judge.",
    help=HELP,
    call=label,
    options="--metric --number --html --annotator --labels --out --json",
    examples=EXAMPLES,
)
