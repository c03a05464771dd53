"""The labelling page: one HTML file with tasks of `merilo label`, to be answered in a browser.

It has the questions and texts that the terminal form shows, and no verdict, score or path of a run. Answers are saved
in the browser, or sent to a server that stores them with `store_answer`. Without scripts it lists the tasks.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from hashlib import blake2b
from math import isfinite
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from merilo.commands.label.task_file import READ, Key, TaskFile, keys_of, meant, named, open_task, range_of
from merilo.commands.label.tasks import (
    ASSUMED_S,
    COLUMNS,
    PAUSE_S,
    SETTLED,
    first_ticket,
    labelling_time,
    read_seconds,
    things_of,
)
from merilo.data.sanitize import clean, command
from merilo.errors import DataError, UsageError
from merilo.numbers import count
from merilo.rendering.markup import page, write_page
from merilo.rendering.page import Page
from merilo.runs.files import writing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from merilo.commands.label.run import Tasks
    from merilo.commands.label.task_file import OpenTask

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


def label_page(records: Sequence[Mapping[str, object]], *, save: str | None = None) -> str:
    """Return the page for these tasks, in their order; equal arguments give an equal page.

    `records`: as in `TaskLine.record` and `TaskFile.records`. `save`: the address on the server of the page that stores
    an answer; None if answers stay in the browser and are downloaded as a file. Raises DataError if no task needs an
    answer.
    """
    tasks = [open_task(place, record) for place, record in enumerate(records)]
    asked = [task for task in tasks if task is not None]
    if not asked:
        raise DataError("No task needs an answer, so there is nothing to label.")
    texts = [sorted(task.texts, key=lambda each: each[0] in READ) for task in asked]
    return page(
        "label.html",
        {"tasks": _data(records, tasks, save)},
        scripts=("label.js",),
        sheet="label.css",
        served=save is not None,
        tasks=list(zip(asked, texts, strict=True)),
        named=named,
    )


def _data(
    records: Sequence[Mapping[str, object]], tasks: Sequence[OpenTask | None], save: str | None
) -> dict[str, Any]:  # Any: JSON
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
        "save": save,
    }


def _form(task: OpenTask) -> dict[str, Any]:  # Any: JSON
    """Return how a task is answered: by keys, or by a number in a range (None for an end without a limit)."""
    low, high = (end if isfinite(end) else None for end in range_of(task))
    return {"keys": [(key.typed, key.label, key.meaning) for key in keys_of(task, _TAKEN)], "low": low, "high": high}


MAX_BYTES: Final = 4096
"""Bytes that one answer may have."""
_LONGEST_NAME: Final = 60
_FIELDS: Final = frozenset({"annotator", "task", "label", "seconds"})
_PLAIN_NAME: Final = re.compile(r"[a-z0-9]{1,40}", re.ASCII)
_WRITING: Final = Lock()


def store_answer(tasks: Path, body: bytes) -> dict[str, str]:
    """Store one answer of a labelling page, and return all labels of its annotator by task.

    `tasks`: the file of tasks that the page was made from. `body`: the page's request, a JSON object with `annotator`,
    and `task` and `label` unless it only asks for the labels; an empty label removes one. It may have `seconds`. The
    answer is on disk, in `answers_file`, before the function returns. Raises UsageError for any other body, DataError
    if a file has no tasks, RunError if the answer could not be stored and may be sent again.
    """
    annotator, task, label, seconds = _read(body)
    with _WRITING:
        file = _opened(tasks, annotator, task)
        if task is not None:
            place = next((at for at, each in enumerate(file.tasks) if each.id == task), None)
            if place is None:
                raise _unknown(task, tasks, file)
            file.answer(place, _label(file.tasks[place], label), annotator, seconds)
    own = file.tasks if file.path != tasks else []
    return {each.id: each.label for each in own if each.label}


def answers_file(tasks: Path, annotator: str) -> Path:
    """Return the file, next to the tasks, that has the answers of one annotator."""
    # Names that differ only in case or in characters that a file name cannot have must not share a file.
    short = annotator
    if not _PLAIN_NAME.fullmatch(annotator):
        letters = re.sub(r"[^a-z0-9]+", "-", annotator.lower(), flags=re.ASCII).strip("-")[:30]
        short = f"{letters or 'annotator'}-{blake2b(annotator.encode(), digest_size=4).hexdigest()}"
    return tasks.with_name(f"{tasks.stem}.{short}{tasks.suffix}")


def answer_files(tasks: Path) -> list[Path]:
    """Return the files of all annotators of these tasks, by name."""
    prefix, ticket = f"{tasks.stem}.", first_ticket(tasks)
    if ticket is None:
        return []
    found = [
        path
        for path in tasks.parent.iterdir()
        if path.suffix == tasks.suffix and path.stem.startswith(prefix) and "." not in path.stem[len(prefix) :]
    ]
    return sorted(path for path in found if path.is_file() and first_ticket(path) == ticket)


def _read(body: bytes) -> tuple[str, str | None, str, float | None]:
    """Return annotator, task, label and seconds of a request. Raises UsageError."""
    if len(body) > MAX_BYTES:
        raise UsageError(f"The answer is too long: {len(body):,} bytes, at most {MAX_BYTES:,}.")
    try:
        value: Any = json.loads(body)  # Any: JSON, not validated yet
    except (ValueError, RecursionError):
        raise UsageError("The answer is not valid JSON.") from None
    if not isinstance(value, dict):
        raise UsageError("The answer is not a JSON object.")
    fields = cast("dict[str, object]", value)
    if unknown := set(fields) - _FIELDS:
        raise UsageError(f"The answer has an unknown field: {clean(min(unknown))[:_LONGEST_NAME]!r}.")
    annotator, task, label = fields.get("annotator"), fields.get("task"), fields.get("label", "")
    if not isinstance(annotator, str) or not 0 < len(annotator) <= _LONGEST_NAME or clean(annotator) != annotator:
        raise UsageError(f"The annotator's name must be one line of 1 to {_LONGEST_NAME} characters.")
    if not isinstance(label, str) or not isinstance(task, str | None) or (task is None and "label" in fields):
        raise UsageError("The answer needs a task and a label, both texts.")
    return annotator, task, label, read_seconds(fields.get("seconds"))


def _label(task: OpenTask, label: str) -> str:
    """Return the label, or "" for none. Raises UsageError if the task has no such answer."""
    found = label and meant(tuple(Key(each, each, "") for each in task.labels), task, label.casefold())
    if found is None or (task.labels and found != label):
        raise UsageError(f"Expected one of these answers: {'; '.join(task.labels) or task.explained or 'a number'}.")
    return found


def _unknown(task: str, tasks: Path, file: TaskFile) -> UsageError:
    """Return the error for a task that the annotator's file does not have."""
    if file.path != tasks and any(each.id == task for each in TaskFile(tasks).tasks):
        return UsageError(f"{file.path.name} has the answers to other tasks. Move it elsewhere, or use another name.")
    return UsageError("The page is not of these tasks: the task is unknown. Reload the page.")


def _opened(tasks: Path, annotator: str, task: str | None) -> TaskFile:
    """Return the annotator's file; the tasks themselves if it does not exist and there is no such task to answer."""
    path = answers_file(tasks, annotator)
    if (path.exists() or path.is_symlink()) and not path.is_file():  # opening a pipe would wait for ever
        raise UsageError(f"{path.name} is not a regular file. Move it elsewhere, or use another name.")
    if not path.exists():
        file = TaskFile(tasks)
        if all(each.id != task for each in file.tasks):
            return file
        with writing(path, "the answer was not saved"), suppress(FileExistsError):  # another process created it
            file.copy(path)
    return TaskFile(path)


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
