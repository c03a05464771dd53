"""`merilo label`: sample items from a run for annotators, and label them in the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import Debug, Json, given
from merilo.errors import Interrupted, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.label.run import Tasks
    from merilo.commands.label.until import UntilDecided

HELP = """Sample items from a run, or from a pair of runs, for people to label.

Items are written to FILE without the judge's verdicts, nor the run they come from. Label them in the terminal (--ask),
in a browser (--html: one file that needs no server and no Python), or with any tool that fills in the `label` field.
With --ask each answer is saved at once, and the labels are attached to the runs at the end; repeat the command to
resume. Labels of a pair correct `merilo compare` and `merilo gate --baseline`; labels of one run correct `merilo show`
and `merilo gate --min`.

Labels from another tool: merilo calibrate RUN --labels FILE --attach
"""
EXAMPLES = """\b
Examples:
  merilo label runs/bm25 runs/dense --metric context_relevance -o pairs.jsonl --ask
  merilo label runs/first --metric faithfulness --sample 60 -o tasks.csv
  merilo label tasks.jsonl --ask --annotator ann
  merilo label runs/first --metric faithfulness --html tasks.html
"""


def label(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="A run directory, or with --ask or --html a file of tasks.",
            callback=given,
            show_default=False,
        ),
    ],
    other: Annotated[
        str | None,
        typer.Argument(metavar="OTHER", help="A second run directory, to label a pair of runs.", show_default=False),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="New file for the tasks: .jsonl or .csv."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(metavar="M", help="Metric to label. [default: the only one with a judge]"),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Number of samples to draw. [default: 40]", show_default=False),
    ] = None,
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
    until_decided: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="With --ask: stop once `compare` or the gates of a suite file are decided (up to 320 samples).",
            show_default=False,
        ),
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Label the tasks in this terminal.")] = False,
    annotator: Annotated[
        str, typer.Option(metavar="NAME", help="With --ask: name of the annotator, stored with each label.")
    ] = "",
    html: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a page for labelling the tasks in a browser.", show_default=False),
    ] = None,
    guidelines: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --html: text file with your guidelines for annotators, one on each line.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Draw tasks, or ask for their labels."""
    del debug  # main reads it
    _check(ask=ask, output=output, html=html, until_decided=until_decided, json=json)
    if guidelines is not None and html is None:
        raise UsageError("--guidelines are shown on a page; add --html tasks.html.")
    to = None if html is None else _PageFile(html, guidelines)
    if Path(what).is_file() or (ask and output is None):
        _label_file(what, other, output, to, annotator if ask else None, json=json)
        return
    from merilo.commands.label.run import SAMPLES, label_run
    from merilo.commands.label.until import MOST, UntilDecided

    sequential = until_decided is not None
    tasks = label_run(
        what,
        output,
        metric=metric,
        samples=sample or (MOST if sequential else SAMPLES),
        items=items,
        stratify=stratify,
        seed=seed,
        other=other,
        resume=ask,
        sequential=sequential,
    )
    runs = [each for each in (what, other) if each is not None]
    if output is None or not ask:
        _report(tasks, runs, output, to, json=json)
        return
    until = None
    if until_decided is not None:
        until = UntilDecided.of(until_decided, runs, tasks.metric, output)
    try:
        _ask(Path(output), annotator, until)
    finally:
        _attach(runs, output, "" if until is None else until.ending)


def _check(*, ask: bool, output: str | None, html: str | None, until_decided: str | None, json: bool) -> None:
    """Raise UsageError for options that exclude each other."""
    if until_decided is not None and not (ask and output is not None):
        raise UsageError("--until-decided needs --ask and a file for the tasks: -o tasks.jsonl.")
    if ask and json:
        raise UsageError("--ask is a dialogue; leave out --json.")
    if ask and html is not None:
        raise UsageError("--html writes a page to label in a browser; leave out --ask.")
    if output is None and html is None and not ask:
        raise UsageError(
            "Name a new file for the tasks: -o tasks.jsonl or tasks.csv, or --html tasks.html. To label an existing "
            "file, add --ask."
        )


@dataclass(frozen=True, slots=True)
class _PageFile:
    """A page to write."""

    path: str
    guidelines: str | None
    """A file with guidelines, one on each line."""

    def write(self, records: Sequence[Mapping[str, object]]) -> None:
        from merilo.commands.label.page import GUIDELINES, label_page
        from merilo.rendering.html import write_page

        write_page(Path(self.path), label_page(records, guidelines=(*self._own(), *GUIDELINES)))

    def _own(self) -> list[str]:
        if self.guidelines is None:
            return []
        try:
            text = Path(self.guidelines).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"Cannot read the guidelines in {self.guidelines} ({error}).") from error
        return [line.strip() for line in text.splitlines() if line.strip()]


def _label_file(
    what: str, other: str | None, output: str | None, to: _PageFile | None, annotator: str | None, *, json: bool
) -> None:
    """Ask for the labels of an existing file of tasks, or write its page; `annotator`: None unless asked here."""
    if Path(what).is_dir():
        raise UsageError(f"To draw tasks from {what} and label them, name a new file for them: -o tasks.jsonl.")
    if annotator is not None:
        if output is not None or other is not None:
            raise UsageError("--ask writes the labels to the file WHAT; leave out --output and OTHER.")
        _ask_file(what, annotator)
    elif to is None:
        raise UsageError(f"Expected a run directory, got the file {what}. To label its tasks, add --ask.")
    elif output is not None or other is not None:
        raise UsageError("--html shows the tasks of the file WHAT; leave out --output and OTHER.")
    else:
        _page_of_file(what, to, json=json)


def _ask(path: Path, annotator: str, until: UntilDecided | None = None) -> bool:
    """Ask for the labels of a file; return True if it has any at the end."""
    from merilo.commands.label.interview import ask_tasks
    from merilo.commands.label.task_file import TaskFile

    try:
        file = TaskFile(path)
        ask_tasks(file, annotator=annotator, decided=until)
    except KeyboardInterrupt:
        raise Interrupted(f"Stopped. The answers are saved in {path}; repeat the command to resume.") from None
    return any(task.label for task in file.tasks)


def _ask_file(file: str, annotator: str) -> None:
    """Ask for labels, and print how to attach them: a file does not say where the runs of its tasks are."""
    if not _ask(Path(file), annotator):
        return
    from merilo.rendering.overview import command
    from merilo.rendering.page import Page
    from merilo.rendering.terminal import page_width, show

    page = Page(page_width())
    page.heading("Next: attach the labels to each run that the tasks were drawn from")
    page.line("  " + command("calibrate", "RUN", "--labels", file, "--attach"))
    show(page)


def _attach(runs: list[str], output: str, decision: str) -> None:
    """Attach the labels given so far to the runs, and report it; `decision`: what they decided, if they should."""
    from merilo.commands.calibrate.attached_labels import attach_file
    from merilo.rendering.overview import command
    from merilo.rendering.page import Page
    from merilo.rendering.terminal import page_width, show
    from merilo.rendering.wording import count

    labels = attach_file(runs, output)
    if not labels:
        return
    page = Page(page_width())
    if decision:
        page.text(f"{decision}.".replace("..", "."))
    page.text(f"{count(labels, 'label')} attached to {' and '.join(runs)}.")
    page.heading("Next")
    page.line("  " + command("compare" if len(runs) > 1 else "show", *runs))
    show(page)


def _report(tasks: Tasks, runs: list[str], output: str | None, to: _PageFile | None, *, json: bool) -> None:
    from merilo.commands.label.text import drawn_page, drawn_record
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    html = None if to is None else to.path
    if to is not None:
        to.write([line.record() for line in tasks.lines])
    if json:
        write(json_text(drawn_record(tasks, runs, output, html)) + "\n")
    else:
        show(drawn_page(tasks, runs, output, html, page_width()))


def _page_of_file(file: str, to: _PageFile, *, json: bool) -> None:
    """Write the page for the tasks of a file, without the labels that they have."""
    from merilo.commands.label.task_file import TaskFile
    from merilo.commands.label.text import file_page
    from merilo.rendering.sanitize import json_text
    from merilo.rendering.terminal import page_width, show, write

    found = TaskFile(Path(file))
    to.write(found.records)
    if json:
        write(json_text({"file": file, "html": to.path, "tasks": len(found.tasks)}) + "\n")
    else:
        show(file_page(len(found.tasks), to.path, page_width(), pair=any(task.pair for task in found.tasks)))


COMMAND = Command(
    name="label",
    section=Section.JUDGES,
    summary="Sample items for people to label.",
    help=HELP,
    call=label,
    options="--metric --number --sample --items --stratify --seed --ask --html --annotator --labels --until "
    "--until-decided --out --output --json",
    examples=EXAMPLES,
)
