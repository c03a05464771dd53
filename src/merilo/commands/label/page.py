"""The labelling page: one HTML file with tasks of `merilo label`, to be answered in a browser.

It has the questions and texts that the terminal form shows, and no verdict, score or path of a run. Answers are saved
in the browser. Without scripts it lists the tasks.
"""

from __future__ import annotations

from hashlib import blake2b
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.commands.label.task_file import READ, OpenTask, TaskFile, keys_of, named, open_task, range_of
from merilo.commands.label.tasks import (
    ASSUMED_S,
    COLUMNS,
    PAUSE_S,
    SETTLED,
    labelling_time,
    things_of,
)
from merilo.data.sanitize import clean, command
from merilo.errors import DataError
from merilo.numbers import count
from merilo.rendering.markup import page, write_page
from merilo.rendering.page import Page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from merilo.commands.label.run import Tasks

GUIDELINES: Final = (
    "Judge by the texts on this page alone, even if you know more or know better.",
    "Judge each task separately, even if it resembles an earlier one.",
    "If two answers seem possible, choose the one that fits better.",
    "Skip a task only if you cannot read it: skipped tasks make the corrected numbers less reliable.",
    "Do not discuss tasks with other annotators before all of you have finished.",
)
_TAKEN: Final = frozenset({"u", "z", "s", "g", "?"})
"""Keys of commands on the page."""


def write_label_page(path: str | PathLike[str], records: Sequence[Mapping[str, object]]) -> None:
    """Write the page for these tasks to a file. Raises as `label_page`, and RunError if it cannot be written."""
    write_page(Path(path), label_page(records))


def label_page(records: Sequence[Mapping[str, object]]) -> str:
    """Return the page for these tasks, in their order; equal arguments give an equal page.

    `records`: as in `TaskLine.record` and `TaskFile.records`. Raises DataError if no task needs an answer.
    """
    tasks = [open_task(place, record) for place, record in enumerate(records)]
    asked = [task for task in tasks if task is not None]
    if not asked:
        raise DataError("No task needs an answer, so there is nothing to label.")
    texts = [sorted(task.texts, key=lambda each: each[0] in READ) for task in asked]
    return page(
        "label.html",
        {"tasks": _data(records, tasks)},
        scripts=("label.js",),
        sheet="label.css",
        tasks=list(zip(asked, texts, strict=True)),
        named=named,
    )


def _data(records: Sequence[Mapping[str, object]], tasks: Sequence[OpenTask | None]) -> dict[str, Any]:  # Any: JSON
    forms: list[dict[str, Any]] = []  # Any: JSON
    form_of: list[int] = []
    for task in tasks:
        form = None if task is None else _form(task)
        if form is not None and form not in forms:
            forms.append(form)
        form_of.append(-1 if form is None else forms.index(form))
    ids = "\n".join(str(record.get("task")) for record in records)
    return {
        "digest": blake2b(ids.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(),
        "columns": COLUMNS,
        "read": sorted(READ),
        "names": {name: named(name) for task in tasks if task is not None for name, _ in task.texts},
        "records": records,
        "forms": forms,
        "form": form_of,
        "pair": any(task is not None and task.pair for task in tasks),
        "guidelines": GUIDELINES,
        "questions": len({task.sample for task in tasks if task is not None}),
        "assumed": ASSUMED_S,
        "pause": PAUSE_S,
    }


def _form(task: OpenTask) -> dict[str, Any]:  # Any: JSON
    """Return how a task is answered: by keys, or by a number in a range (None for an end without a limit)."""
    low, high = (end if isfinite(end) else None for end in range_of(task))
    return {"keys": [(key.typed, key.label, key.meaning) for key in keys_of(task, _TAKEN)], "low": low, "high": high}


# -- pages and JSON for the terminal -------------------------------------------------------------------

_APART: Final = 3
_MINUTE: Final = 60


class Agreed(NamedTuple):
    """How often the judge of a run agrees with people."""

    agreed: int
    verdicts: int
    apart: tuple[str, ...] = ()
    """The verdicts on which they differ, the judge's most certain first."""


def drawn_page(
    tasks: Tasks, runs: Sequence[str], output: str | None, html: str | None, width: int, *, asked: bool = False
) -> Page:
    """Return what was drawn, the time that it takes, and how to use the labels; `asked`: the form follows."""
    page = Page(width)
    to_label = [line.texts for line in tasks.lines if line.label != SETTLED]
    things = count(tasks.to_answer, things_of(to_label))
    page.text(
        f"{tasks.samples:,} of {count(tasks.population, 'question')}, drawn at random, {things} to label for "
        f"{tasks.metric}: {labelling_time(tasks.to_answer, tasks.seconds)}. You see neither verdict nor run."
        f"{' q stops, nothing is lost.' if asked else ''}"
    )
    for sentence in tasks.remarks:
        page.text(sentence)
    if html is not None:
        _in_browser(page, runs, html)
    elif output is not None and not asked:
        page.heading("Next")
        page.line("  " + command("label", output))
        page.line("  " + command("label", *runs, "--labels", output))
    return page


def file_page(tasks: int, html: str, width: int, *, pair: bool) -> Page:
    """Return how to use the page of an existing file of tasks: it does not say where their runs are.

    `pair`: the tasks were drawn from a pair of runs.
    """
    page = Page(width)
    page.text(f"{count(tasks, 'task')} in {html}.")
    _in_browser(page, ["RUN", "OTHER"] if pair else ["RUN"], html)
    return page


def attach_page(file: str, width: int) -> Page:
    """Return how to attach the labels of a file: it does not say where the runs of its tasks are."""
    page = Page(width)
    page.heading("Next: attach the labels to each run that the tasks were drawn from")
    page.line("  " + command("label", "RUN", "--labels", file))
    return page


def attached_page(file: TaskFile, runs: Sequence[str], found: Sequence[Agreed], width: int) -> Page:
    """Return what was answered and attached, where the judge differs most, and the command that uses the labels.

    `found`: by run, how often the judge agrees.
    """
    page = Page(width)
    done = [task for task in file.tasks if task.label]
    seconds = sum(task.seconds or 0 for task in done)
    took = f" in {round(seconds / 60):,} min" if seconds >= _MINUTE else ""
    thing = things_of(task.texts for task in done)
    agrees = " and ".join(
        f"{each.agreed:,} of {count(each.verdicts, thing)}{f' of {Path(run).name}' if len(runs) > 1 else ''}"
        for run, each in zip(runs, found, strict=True)
        if each.verdicts
    )
    with_you = f" The judge agrees with people on {agrees}." if agrees else ""
    page.text(f"{len(done):,} of {len(file.tasks):,} answered{took}; attached to {' and '.join(runs)}.{with_you}")
    apart = next((each for each in reversed(found) if each.apart), None)
    if apart is not None:
        path = runs[found.index(apart)]
        first = " \u00b7 ".join(f"{clean(each)}" for each in apart.apart[:_APART])
        page.text(f"Farthest apart: {first}.  All: {command('show', path, '--people')}")
    page.line("Next: " + command("compare" if len(runs) > 1 else "show", *runs))
    return page


def _in_browser(page: Page, runs: Sequence[str], html: str) -> None:
    page.heading("Next")
    page.text(f"Open {html} in a browser, or send it to each annotator. Attach the files that they download:", indent=2)
    page.line("  " + command("label", *runs, "--labels", "labels-NAME.jsonl"))


def drawn_record(tasks: Tasks, runs: Sequence[str], output: str | None, html: str | None) -> dict[str, object]:
    """Return the same as a JSON-able object."""
    return {
        "run": runs[0],
        "other": runs[1] if len(runs) > 1 else None,
        "file": output,
        "html": html,
        "metric": tasks.metric,
        "unit": tasks.unit.value,
        "tasks": tasks.to_answer,
        "samples": tasks.samples,
        "scored_samples": tasks.population,
        "minutes": round(tasks.to_answer * tasks.seconds / 60, 1),
        "remarks": list(tasks.remarks),
    }
