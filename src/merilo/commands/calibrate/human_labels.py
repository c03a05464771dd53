"""Human labels: read from files that a labelling tool or the terminal form filled in, and stored with a run."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from merilo.commands.label.tasks import SETTLED, Ticket, read_seconds, unsealed
from merilo.data import check
from merilo.data.labels import Task
from merilo.data.source import Format, RecordFile, format_of, plain
from merilo.errors import DataError, Problem, RunError, UsageError
from merilo.results.records import grouped
from merilo.runs.files import LABELS, PART, RunLock
from merilo.runs.run import Run, opened
from merilo.runs.seal import publish, recover

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
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
    seconds: float | None = None
    """The time that the label took, if it is known."""


@dataclass(frozen=True, slots=True)
class HumanLabels:
    """The labels of all files, with counts of what was left out."""

    labels: tuple[HumanLabel, ...]
    """One per task and annotator, the last one, and one per task that needs no label (`SETTLED`)."""
    tasks: int
    """Number of different tasks, labelled or not."""
    blank: int
    """Number of tasks without a label."""
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
    ticket: Ticket | None
    label: str
    annotator: str
    file: str
    line: int
    seconds: float | None


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
                f"{file.name} contains labelled records for merilo judge check. merilo label --labels needs the "
                "filled-in tasks of merilo label."
            )
        known = unsealed(ticket) if ticket else None
        if not task and not ticket:
            yield Problem("a task", "a line without its id", "task", file.name, raw.place, file.unit)
        elif ticket and known is None:
            yield Problem("a ticket that merilo wrote", "other text", "ticket", file.name, raw.place)
        elif known is not None and task not in {"", known.task}:
            got = f"{task[:_SHOWN]!r}, which does not match the ticket"
            yield Problem("the id of the task", got, "task", file.name, raw.place)
        else:
            label, annotator = found.get("label", "").strip(), found.get("annotator", "").strip()
            yield _Line(task, known, label, annotator, file.name, raw.place, read_seconds(found.get("seconds")))


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
    tickets = {line.ticket.task: line.ticket for line in lines if line.ticket is not None}
    found: dict[tuple[str, str], HumanLabel] = {}
    settled: dict[str, HumanLabel] = {}
    for line in lines:
        ticket = line.ticket or tickets.get(line.task)
        if ticket is None:
            advice = "add the file that merilo label wrote (--labels is repeatable)"
            problems.append(Problem("a ticket", "none", "ticket", line.file, line.line, advice=advice))
        elif ticket.settled:
            settled[ticket.task] = HumanLabel(ticket, SETTLED, "", line.file, line.line)
        elif line.label:
            annotator = line.annotator or (line.file if several else "")
            found[ticket.task, annotator] = HumanLabel(
                ticket, line.label, annotator, line.file, line.line, line.seconds
            )
    tasks = len(tickets) - len(settled)
    return HumanLabels(
        labels=(*found.values(), *settled.values()),
        tasks=tasks,
        blank=tasks - len({task for task, _ in found}),
        problems=tuple(problems),
    )


LabelDraw: TypeAlias = Ticket
"""A draw of any size: the ticket of its tasks without what differs between these."""


def draws_of(labels: Iterable[HumanLabel]) -> dict[LabelDraw, list[HumanLabel]]:
    """Group the labels by the draw of their tasks, in order of first appearance."""
    return grouped((draw_of(each), each) for each in labels)


def draw_of(label: HumanLabel) -> LabelDraw:
    """Return the draw of the task of a label."""
    return replace(label.ticket, fingerprint="", sample="", mark="", probability=1.0, labels=())


def attach_labels(run: Run, labels: Sequence[HumanLabel]) -> dict[str, int]:
    """Store these labels with the run and seal them.

    They replace earlier labels of tasks for the same metric and the same pair of runs (or for this run alone). Return
    the number of earlier labels that remain, by the metric that their tasks were drawn for. Raises RunError.
    """
    replaced = {_purpose(each) for each in labels}
    earlier = [each for each in _attached(run) if _purpose(each) not in replaced]
    lines = [
        json.dumps(
            {
                "task": each.ticket.task,
                "label": each.label,
                "annotator": each.annotator or None,
                **({} if each.seconds is None else {"seconds": each.seconds}),
                "ticket": each.ticket.sealed(),
            },
            ensure_ascii=False,
        )
        for each in (*earlier, *labels)
    ]
    path = run.path / LABELS
    text = ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace").decode()
    try:
        with RunLock(run.path):
            recover(run.path)
            publish(run.path, {LABELS: text})
    except OSError as error:
        raise RunError(f"Cannot store the labels with the run ({path}: {error.strerror}).") from error
    return dict(Counter(each.ticket.metric for each in earlier if not each.ticket.settled))


def earlier_labels(run: Run, labels: Sequence[HumanLabel], *, whole: bool = False) -> list[HumanLabel]:
    """Return the labels stored with the run that count together with these, which are for the same purposes.

    A later label of the same item by the same annotator takes the place of the earlier one. `whole`: the labels are all
    that their annotators gave in these draws, so an earlier one that is not among them was withdrawn.
    """
    purposes = {_purpose(each) for each in labels}
    names = [(each, name) for each in labels for name in (each.annotator, each.file)]
    given = {(_item(each), name) for each, name in names}
    answered = {(draw_of(each), each.ticket.probability, name) for each, name in names} if whole else set[object]()

    def remains(each: HumanLabel) -> bool:
        return (
            _purpose(each) in purposes
            and (_item(each), each.annotator) not in given
            and (draw_of(each), each.ticket.probability, each.annotator) not in answered
        )

    return [each for each in _attached(run) if remains(each)]


def _item(label: HumanLabel) -> tuple[LabelDraw, str, str]:
    return draw_of(label), label.ticket.sample, label.ticket.mark


def attach_files(runs: Sequence[str], labels: Sequence[str]) -> int:
    """Store the labels of these files with each run that their tasks were drawn from; return the number of labels.

    The labels of other draws, and of other annotators, remain (`earlier_labels`). Raises DataError if a file
    cannot be read, RunError if the labels cannot be stored.
    """
    found = read_people(labels).labels
    given = sum(not each.ticket.settled for each in found)
    for path in runs if given else ():
        run = opened(path, labels=False)
        own = [each for each in found if each.ticket.drawn_from(run.manifest.fingerprint)]
        attach_labels(run, [*earlier_labels(run, own, whole=True), *own])
    return given


def _purpose(label: HumanLabel) -> tuple[str, str, str]:
    """Return the metric and the runs that a label's task was drawn for."""
    ticket = label.ticket
    return (ticket.metric, ticket.fingerprint, ticket.other)


def _attached(run: Run) -> Sequence[HumanLabel]:
    """Return the labels stored with the run; empty if there are none, or if they cannot be read."""
    try:
        return () if run.labels is None else read_people([run.labels]).labels
    except DataError:
        return ()


def labels_of(run: Run) -> list[HumanLabel]:
    """Return the labels stored with the run; empty if none are stored.

    Raises RunError for labels that cannot be read, or that were drawn from other samples than the run has now.
    """
    path = run.labels
    if path is None:
        return []
    try:
        labels = read_people([path]).labels
    except DataError as error:
        raise _not_usable(path, str(error)) from error
    own = [each for each in labels if each.ticket.drawn_from(run.manifest.fingerprint)]
    if not own:
        raise _not_usable(path, "They were drawn from other samples than the run has now.")
    return own


def attached_file(run: Run) -> Path:
    """Return the file of the labels stored with the run. Raises UsageError if none are stored."""
    if run.labels is None:
        raise UsageError(f"No human labels are stored with {run.path}. Label some: merilo label {run.path}.")
    return run.labels


def _not_usable(path: Path, why: str) -> RunError:
    advice = f"Attach them again (merilo label RUN --labels FILE), or remove {path}."
    return RunError(f"The labels stored with the run cannot be used. {why} {advice}")
