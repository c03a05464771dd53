"""The pages and the JSON object of `merilo label` on drawn tasks and attached labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.commands.label.tasks import SETTLED, labelling_time, things_of
from merilo.rendering.overview import command
from merilo.rendering.page import Page
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.label.run import Tasks
    from merilo.commands.label.task_file import TaskFile

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


def attached_page(file: TaskFile, runs: Sequence[str], decision: str, found: Sequence[Agreed], width: int) -> Page:
    """Return what was answered and attached, where the judge differs most, and the command that uses the labels.

    `decision`: what the labels decided, if they should. `found`: by run, how often the judge agrees.
    """
    page = Page(width)
    if decision:
        page.text(f"{decision}.".replace("..", "."))
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
        "stratified": False,
        "seed": tasks.seed,
        "minutes": round(tasks.to_answer * tasks.seconds / 60, 1),
        "remarks": list(tasks.remarks),
    }
