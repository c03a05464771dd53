"""Answers that a labelling page sends to a server: checked against the tasks, and stored in the annotator's file."""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.commands.label.choices import Key, meant
from merilo.commands.label.task_file import TaskFile
from merilo.commands.label.tasks import first_ticket
from merilo.errors import RunError, UsageError
from merilo.rendering.sanitize import clean

if TYPE_CHECKING:
    from pathlib import Path

    from merilo.commands.label.task_file import OpenTask

MAX_BYTES: Final = 4096
"""Bytes that one answer may have."""
_LONGEST_NAME: Final = 60
_FIELDS: Final = frozenset({"annotator", "task", "label"})
_PLAIN_NAME: Final = re.compile(r"[a-z0-9]{1,40}", re.ASCII)
_WRITING: Final = Lock()


def store_answer(tasks: Path, body: bytes) -> dict[str, str]:
    """Store one answer of a labelling page, and return all labels of its annotator by task.

    `tasks`: the file of tasks that the page was made from. `body`: the page's request, a JSON object with `annotator`,
    and `task` and `label` unless it only asks for the labels; an empty label removes one. The answer is on disk, in
    `answers_file`, before the function returns. Raises UsageError for any other body, DataError if a file has no
    tasks, RunError if the answer could not be stored and may be sent again.
    """
    annotator, task, label = _read(body)
    with _WRITING:
        file = _opened(tasks, annotator, task)
        if task is not None:
            place = next((at for at, each in enumerate(file.tasks) if each.id == task), None)
            if place is None:
                raise _unknown(task, tasks, file)
            file.answer(place, _label(file.tasks[place], label), annotator)
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


def _read(body: bytes) -> tuple[str, str | None, str]:
    """Return annotator, task and label of a request. Raises UsageError."""
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
    return annotator, task, label


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
        try:
            file.copy(path)
        except FileExistsError:  # another process created it meanwhile
            pass
        except OSError as error:
            raise RunError(f"Cannot write {path} ({error.strerror}); the answer was not saved.") from error
    return TaskFile(path)
