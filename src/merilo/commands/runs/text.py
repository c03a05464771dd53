"""A list of runs as a page: a row for each run, with its data, judge and means below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.commands.runs.run import State
from merilo.rendering.page import GAP, Page, Span, Tone, cells_of, columns, cut, pad
from merilo.rendering.sanitize import clean
from merilo.rendering.weak import WeakMarks, weak_legend
from merilo.rendering.wording import NONE, count, money, number

if TYPE_CHECKING:
    from merilo.commands.runs.run import ListedRun, RunList

MEANS: Final = 3
"""Maximum number of means that are shown for a run."""
_HEADINGS: Final = ("changed", "samples", "state", "USD")
_TONES: Final = {State.UNREADABLE: Tone.BAD, State.INTERRUPTED: Tone.BAD, State.RUNNING: Tone.GOOD}


def runs_page(found: RunList, width: int) -> Page:
    """Return the page, the newest run first."""
    page = Page(width)
    place = clean(str(found.directory))
    if not found.runs:
        page.text(f"No runs in {place}.")
        return page
    page.text(f"{count(found.found, 'run')} in {place}, newest first", tone=Tone.STRONG)
    page.blank()
    cells = columns([_HEADINGS, *map(_cells, found.runs)], left=frozenset({0, 2}))
    room = page.width - cells_of(cells[0]) - GAP
    names = [clean(str(run.path)) for run in found.runs]
    column = max(len("run"), *(cells_of(name) for name in names if cells_of(name) <= room), 0)
    page.line(Span(f"{pad('run', column)}{' ' * GAP}{cells[0]}", Tone.STRONG))
    for run, name, row in zip(found.runs, names, cells[1:], strict=True):
        fits = cells_of(name) <= column
        if not fits:
            page.line(name)  # never wrapped, so that it can be copied
        page.line(Span(f"{pad(name if fits else '', column)}{' ' * GAP}{row}", _TONES.get(run.state, Tone.PLAIN)))
        if run.data is not None:
            page.line("  ", Span(cut(_about(run, page.width - 2), page.width - 2), Tone.QUIET))
        if run.reason:
            page.text(run.reason, indent=2)
    if legend := weak_legend(metric for run in found.runs for metric in run.means if metric in run.weak):
        page.blank()
        page.text(legend, tone=Tone.QUIET)
    if (older := found.found - len(found.runs)) > 0:
        page.blank()
        page.text(f"{count(older, 'older run')} not shown (--limit).", tone=Tone.QUIET)
    return page


def _cells(run: ListedRun) -> tuple[str, ...]:
    done = "?" if run.done is None else f"{run.done:,}"
    samples = NONE if run.samples is None else f"{done}/{run.samples:,}"
    changed = f"{run.changed.astimezone():%Y-%m-%d %H:%M}"
    return (changed, samples, run.state.value, NONE if run.data is None else money(run.cost_usd))


def _about(run: ListedRun, width: int) -> str:
    """Return data, judge and the first means that fit in one line."""
    by = f"scores of {run.origin}" if run.origin else f"judge {run.judge or NONE}"
    about = clean(f"{run.data}, {by}")
    marks = WeakMarks(run.weak)
    known = [f"{clean(marks.name(metric))} {number(mean)}" for metric, mean in run.means.items() if mean is not None]
    for shown in range(min(MEANS, len(known)), 0, -1):
        more = f" and {len(known) - shown} more" if len(known) > shown else ""
        text = f"{about}: {', '.join(known[:shown])}{more}"
        if cells_of(text) <= width:
            return text
    return about


def runs_record(found: RunList) -> dict[str, Any]:  # Any: JSON
    """Return the list as a JSON-able object; a value that a run's files do not give is None."""
    return {"directory": str(found.directory), "found": found.found, "runs": [_record(each) for each in found.runs]}


def _record(run: ListedRun) -> dict[str, Any]:  # Any: JSON
    return {
        "run": str(run.path),
        "state": run.state.value,
        "reason": run.reason or None,
        "changed": run.changed.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "data": run.data,
        "judge": run.judge,
        "origin": run.origin,
        "done": run.done,
        "samples": run.samples,
        "cost_usd": run.cost_usd,
        "means": dict(run.means),
        "weak": sorted(run.weak & run.means.keys()),
    }
