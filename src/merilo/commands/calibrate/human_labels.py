"""Human labels, read from files that a labelling tool or the terminal form filled in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.commands.label.tasks import SETTLED, Ticket, unsealed
from merilo.data import check
from merilo.data.csv_escaping import plain
from merilo.data.labels import Task
from merilo.data.source import Format, RecordFile, format_of
from merilo.errors import DataError, Problem
from merilo.runs.publish import PART

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from os import PathLike

_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """The label that one annotator gave to one task."""

    ticket: Ticket
    label: str
    annotator: str
    """The annotator's name. If none is given, the file's name if there are several files, otherwise blank."""
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class HumanLabels:
    """The labels of all files, with counts of what was left out."""

    labels: tuple[HumanLabel, ...]
    """One per task and annotator, and one per task that needs no label (`SETTLED`)."""
    tasks: int
    """Number of different tasks, labelled or not."""
    blank: int
    """Number of tasks without a label."""
    repeated: int
    """Number of labels that repeat an earlier equal label by the same annotator; each counts once."""
    changed: int
    """Number of labels that replace an earlier, different label by the same annotator."""
    problems: tuple[Problem, ...]
    """Lines that could not be read; the others still count."""


def read_people(paths: Iterable[str | PathLike[str]]) -> HumanLabels:
    """Read the labels in all files (.jsonl, .csv, .tsv, .json; .gz accepted) of tasks that `merilo label` drew.

    Raises DataError if a file cannot be read or has no task, UsageError for an unknown file type.
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
                f"{file.name} contains labelled records for merilo judge check. merilo calibrate needs the filled-in "
                "tasks of merilo label."
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
    problem = f" {problems[0].message}" if problems else ""
    return DataError(f"No task in {path.name}. Name a filled-in file that merilo label wrote.{problem}")


def _gathered(lines: Sequence[_Line], problems: list[Problem], *, several: bool) -> HumanLabels:
    tickets = _tickets(lines, problems)
    found: dict[tuple[str, str], HumanLabel] = {}
    settled: dict[str, HumanLabel] = {}
    repeated = changed = 0
    for line, ticket in zip(lines, _of_lines(lines, tickets, problems), strict=True):
        if ticket is None:
            continue
        if ticket.settled:
            settled[ticket.task] = HumanLabel(ticket, SETTLED, "", line.file, line.line)
        elif line.label:
            label = HumanLabel(
                ticket, line.label, line.annotator or (line.file if several else ""), line.file, line.line
            )
            earlier = found.get((ticket.task, label.annotator))
            if earlier is not None:
                repeated += earlier.label == label.label
                changed += earlier.label != label.label
            found[ticket.task, label.annotator] = label
    tasks = len(tickets) - len(settled)
    return HumanLabels(
        labels=(*found.values(), *settled.values()),
        tasks=tasks,
        blank=tasks - len({task for task, _ in found}),
        repeated=repeated,
        changed=changed,
        problems=tuple(problems),
    )


def _tickets(lines: Sequence[_Line], problems: list[Problem]) -> Mapping[str, Ticket]:
    """Return the ticket of each task, from any line of the task that has one."""
    found: dict[str, Ticket] = {}
    for line in lines:
        ticket = unsealed(line.ticket) if line.ticket else None
        if ticket is not None and line.task in {"", ticket.task}:
            found[ticket.task] = ticket
        elif ticket is None and line.ticket:
            problems.append(Problem("a ticket that merilo wrote", "other text", "ticket", line.file, line.line))
        elif ticket is not None:
            got = f"{line.task[:_SHOWN]!r}, which does not match the ticket"
            problems.append(Problem("the id of the task", got, "task", line.file, line.line))
    return found


def _of_lines(
    lines: Sequence[_Line], tickets: Mapping[str, Ticket], problems: list[Problem]
) -> Iterator[Ticket | None]:
    """Yield the ticket of each line; None for a line that is left out."""
    for line in lines:
        if line.ticket:
            ticket = unsealed(line.ticket)
            yield ticket if ticket is not None and line.task in {"", ticket.task} else None
        else:
            if line.task not in tickets:
                advice = "add the file that merilo label wrote (--labels is repeatable)"
                problems.append(Problem("a ticket", "none", "ticket", line.file, line.line, advice=advice))
            yield tickets.get(line.task)
