"""Labels of people, read back from the files that a labelling tool or the terminal form filled in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.commands.label.csv_escaping import plain
from merilo.commands.label.tasks import SETTLED, Ticket, unsealed
from merilo.data import check
from merilo.data.labels import Task
from merilo.data.source import Format, RecordFile, format_of
from merilo.errors import DataError, Problem
from merilo.runs.publish import PART

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from os import PathLike

_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class PersonLabel:
    """What one person said of one task."""

    ticket: Ticket
    label: str
    annotator: str
    """A name; the file's where none is given and there are several files."""
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class PeopleLabels:
    """What was read."""

    labels: tuple[PersonLabel, ...]
    """One for each task and annotator."""
    tasks: int
    """Different tasks, labelled or not."""
    blank: int
    """Those of them without a label."""
    repeated: int
    """Labels that stand twice, by the same person and alike; counted once."""
    changed: int
    """Labels that a later line by the same person replaced by another."""
    problems: tuple[Problem, ...]
    """Lines that could not be read; the others count all the same."""


def read_people(paths: Iterable[str | PathLike[str]]) -> PeopleLabels:
    """The labels in all files (.jsonl, .csv, .tsv, .json, each perhaps .gz), of tasks that `merilo label` drew.

    Raises DataError where a file cannot be read or holds no task at all, UsageError for a name without a format.
    """
    files = [Path(path) for path in paths]
    lines, problems = list[_Line](), list[Problem]()
    for path in files:
        before = len(lines)
        for each in _lines(path):
            if isinstance(each, Problem):
                problems.append(each)
            else:
                lines.append(each)
        if len(lines) == before:
            raise _no_task(path, problems)
    return _gathered(lines, problems, several=len(files) > 1)


@dataclass(frozen=True, slots=True)
class _Line:
    task: str
    ticket: str
    label: str
    annotator: str
    file: str
    line: int


def _lines(path: Path) -> Iterator[_Line | Problem]:
    named = path.with_name(path.name.removesuffix(PART))  # attached labels whose publication was interrupted
    file = RecordFile(path, format_of(named))
    cells = file.format in {Format.CSV, Format.TSV}
    for raw in file.records():
        if raw.problems or raw.value is None:
            for problem in raw.problems:
                yield replace(problem, source=file.name, line=raw.place, unit=file.unit)
            continue
        found = {name.strip().casefold(): _text(value, cell=cells) for name, value in raw.value.items()}
        task, ticket = found.get("task", ""), found.get("ticket", "")
        if task in set(Task):
            raise DataError(
                f"{file.name} holds whole records with labels, which merilo judge check reads; calibrate reads tasks "
                "that merilo label drew from a run, filled in."
            )
        if not task and not ticket:
            yield Problem("a task", "a line without its id", "task", file.name, raw.place, file.unit)
            continue
        yield _Line(
            task, ticket, found.get("label", "").strip(), found.get("annotator", "").strip(), file.name, raw.place
        )


def _text(value: object, *, cell: bool) -> str:
    if check.is_missing(value):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return plain(str(value)) if cell else str(value)


def _no_task(path: Path, problems: Sequence[Problem]) -> DataError:
    said = f" {problems[0].message}" if problems else ""
    return DataError(f"{path.name} holds no task; give a file that merilo label wrote and people filled in.{said}")


def _gathered(lines: Sequence[_Line], problems: list[Problem], *, several: bool) -> PeopleLabels:
    tickets = _tickets(lines, problems)
    found: dict[tuple[str, str], PersonLabel] = {}
    settled: dict[str, PersonLabel] = {}
    repeated = changed = 0
    for line, ticket in zip(lines, _of_lines(lines, tickets, problems), strict=True):
        if ticket is None:
            continue
        if ticket.settled:
            settled[ticket.task] = PersonLabel(ticket, SETTLED, "", line.file, line.line)
        elif line.label:
            given = PersonLabel(
                ticket, line.label, line.annotator or (line.file if several else ""), line.file, line.line
            )
            earlier = found.get((ticket.task, given.annotator))
            if earlier is not None:
                repeated += earlier.label == given.label
                changed += earlier.label != given.label
            found[ticket.task, given.annotator] = given
    tasks = len(tickets) - len(settled)
    return PeopleLabels(
        labels=(*found.values(), *settled.values()),
        tasks=tasks,
        blank=tasks - len({task for task, _ in found}),
        repeated=repeated,
        changed=changed,
        problems=tuple(problems),
    )


def _tickets(lines: Sequence[_Line], problems: list[Problem]) -> Mapping[str, Ticket]:
    """The ticket of each task, from whichever line has it."""
    found: dict[str, Ticket] = {}
    for line in lines:
        ticket = unsealed(line.ticket) if line.ticket else None
        if ticket is not None and line.task in {"", ticket.task}:
            found[ticket.task] = ticket
        elif ticket is None and line.ticket:
            problems.append(Problem("a ticket as merilo wrote it", "another", "ticket", line.file, line.line))
        elif ticket is not None:
            got = f"{line.task[:_SHOWN]!r}, which is not that of its ticket"
            problems.append(Problem("the task's own id", got, "task", line.file, line.line))
    return found


def _of_lines(
    lines: Sequence[_Line], tickets: Mapping[str, Ticket], problems: list[Problem]
) -> Iterator[Ticket | None]:
    """The ticket that counts for each line; None for a line that is left out."""
    for line in lines:
        if line.ticket:
            ticket = unsealed(line.ticket)
            yield ticket if ticket is not None and line.task in {"", ticket.task} else None
        else:
            if line.task not in tickets:
                advice = "give the file that merilo label wrote too (--labels may be repeated)"
                problems.append(Problem("a ticket", "none", "ticket", line.file, line.line, advice=advice))
            yield tickets.get(line.task)
