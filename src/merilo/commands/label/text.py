"""The pages and the JSON object of `merilo label` on drawn tasks and attached labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.commands.label.tasks import labelling_time
from merilo.rendering.overview import command
from merilo.rendering.page import Page
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.label.run import Tasks


def drawn_page(
    tasks: Tasks, runs: Sequence[str], output: str | None, html: str | None, width: int, *, asked: bool = False
) -> Page:
    """Return what was drawn, the time that it takes, and how to use the labels; `asked`: the form follows."""
    page = Page(width)
    both = " of both runs" if len(runs) > 1 else ""
    drawn = f"{tasks.samples:,} of {count(tasks.population, 'scored sample')}{both}"
    how = "stratified by score" if tasks.stratified else "drawn uniformly"
    price = f"{count(tasks.to_answer, 'task')}, {labelling_time(tasks.to_answer, tasks.seconds)}"
    page.text(f"{price}, for {tasks.metric}: {drawn}, {how} (seed {tasks.seed}).")
    for sentence in tasks.remarks:
        page.text(sentence)
    if html is not None:
        _in_browser(page, runs, html)
    elif asked:
        page.text(f"You see neither verdict nor run. Answers are saved in {output}. q stops; repeat to resume.")
    elif output is not None:
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


def attached_page(labels: int, runs: Sequence[str], decision: str, width: int) -> Page:
    """Return the number of labels attached, what they decided (if they should), and the command that uses them."""
    page = Page(width)
    if decision:
        page.text(f"{decision}.".replace("..", "."))
    page.text(f"{count(labels, 'label')} attached to {' and '.join(runs)}.")
    page.heading("Next")
    page.line("  " + command("compare" if len(runs) > 1 else "show", *runs))
    page.line("  " + command("show", runs[0], "--people"))
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
        "stratified": tasks.stratified,
        "seed": tasks.seed,
        "minutes": round(tasks.to_answer * tasks.seconds / 60, 1),
        "remarks": list(tasks.remarks),
    }
