"""Labelling in the viewer: files of tasks in the directory, and the runs that their answers correct.

A file of tasks is addressed by an id, which is looked up among the files that were found, like a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from merilo.commands.calibrate.human_labels import attach_files, read_people
from merilo.commands.label.page import answer_files
from merilo.commands.label.tasks import first_ticket
from merilo.commands.runs.run import State
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from merilo.commands.view.catalog import ViewedRun

_SUFFIX: Final = ".jsonl"
_ID_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class ViewedTasks:
    """A file of tasks."""

    path: Path

    @property
    def id(self) -> str:
        """The name of the file as the last part of an address."""
        return blake2b(self.path.name.encode("utf-8", "surrogatepass"), digest_size=_ID_BYTES).hexdigest()

    @property
    def metric(self) -> str:
        """The metric that the tasks are for."""
        ticket = first_ticket(self.path)
        return "" if ticket is None else ticket.metric

    @property
    def annotators(self) -> int:
        """The number of annotators with a file of answers."""
        return len(answer_files(self.path))


def task_files(directory: Path) -> tuple[ViewedTasks, ...]:
    """Return the files of tasks directly in a directory, by name; files of answers are not listed."""
    found = [path for path in sorted(directory.glob(f"*{_SUFFIX}")) if path.is_file() and first_ticket(path)]
    answers = {each for path in found for each in answer_files(path)}
    return tuple(ViewedTasks(path) for path in found if path not in answers)


def attached_to(tasks: ViewedTasks, runs: Sequence[ViewedRun]) -> tuple[ViewedRun, ...]:
    """Attach the answers of all annotators to the finished runs that the tasks were drawn from; return these runs.

    Raises UsageError if nothing is answered yet, or if none of the runs is of these tasks.
    """
    files = answer_files(tasks.path)
    labels = [each for each in read_people(files).labels if not each.ticket.settled] if files else []
    if not labels:
        raise UsageError("There are no answers yet.")
    drawn_from = {found for each in labels for found in (each.ticket.fingerprint, each.ticket.other)}
    found = [
        run
        for run in runs
        if run.listed.state is State.FINISHED
        and run.listed.manifest is not None
        and run.listed.manifest.fingerprint in drawn_from
    ]
    if not found:
        raise UsageError("The runs that the tasks were drawn from are not in this directory.")
    attach_files([str(run.listed.path) for run in found], [str(file) for file in files])
    return tuple(found)
