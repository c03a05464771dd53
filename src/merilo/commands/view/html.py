"""The pages of `merilo view` that are its own: the list of runs, and errors."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from merilo.commands.runs.run import State
from merilo.metrics.registry import asks_judge
from merilo.numbers import count, money
from merilo.rendering.markup import page
from merilo.results.estimate import BY_JUDGE
from merilo.results.means import WeakMarks, weak_legend

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from merilo.commands.view.catalog import ViewedRun

SHOWN: Final = 500
"""Number of runs in the list, the newest ones."""
_COLUMNS: Final = 6
_CHIPS: Final = {
    State.RUNNING: ("good", "\u25b6", "running"),
    State.INTERRUPTED: ("warn", "!", "interrupted"),
    State.UNREADABLE: ("bad", "\u2717", "unreadable"),
}


def list_page(directory: Path, runs: Sequence[ViewedRun]) -> str:
    """Return the list of runs, the newest first."""
    shown = runs[:SHOWN]
    metrics, marks = _columns(shown), WeakMarks(frozenset[str]().union(*(run.listed.weak for run in shown)))
    judged = f"Means of judged metrics are {BY_JUDGE}, except those marked as corrected by human labels."
    notes = [
        judged if any(map(asks_judge, metrics)) else "",
        weak_legend(metric for metric in metrics if metric in marks.weak),
    ]
    return page(
        "list.html",
        scripts=("view.js",),
        sheet="view.css",
        served=True,
        directory=str(directory),
        total=len(runs),
        rows=[_row(run, metrics) for run in shown],
        heads=[*map(marks.name, metrics)],
        notes=" ".join(filter(None, notes)),
    )


def error_page(title: str, message: str, back: str = "../") -> str:
    """Return a page that says what is wrong, with a link to the list."""
    return page("error.html", sheet="view.css", served=True, title=title, message=message, back=back)


def _columns(runs: Sequence[ViewedRun]) -> list[str]:
    """Return the metrics that most runs have: corrected ones first, weak ones last, half of them without a judge."""
    corrected = frozenset[str]().union(*(run.listed.corrected for run in runs))
    having = Counter(metric for run in runs for metric in run.listed.means)
    weak = Counter(metric for run in runs for metric in run.listed.means if metric in run.listed.weak)
    places = {metric: at for run in reversed(runs) for at, metric in enumerate(run.listed.means)}
    order = sorted(having, key=lambda each: (2 * weak[each] > having[each], each not in corrected, -having[each]))
    by_rule = [each for each in order if not asks_judge(each)][: _COLUMNS // 2]
    return sorted([*by_rule, *(each for each in order if each not in by_rule)][:_COLUMNS], key=places.__getitem__)


def _row(run: ViewedRun, metrics: Sequence[str]) -> tuple[object, ...]:
    """Return the run, if it can be compared, its state, what it is about, and its means, corrected or not."""
    own = run.listed
    comparable = own.done is not None and own.state in {State.FINISHED, State.INTERRUPTED}
    means = [(metric, own.means.get(metric), "corrected" * (metric in own.corrected)) for metric in metrics]
    return run, comparable, _CHIPS.get(own.state), _about(run), means


def _about(run: ViewedRun) -> str:
    """Return samples, judge, failures and cost in a line."""
    listed = run.listed
    parts = [listed.data or ""]
    if listed.samples is not None:
        part = "" if listed.done in {None, listed.samples} else f"{listed.done:,} of "
        parts.append(f"{part}{count(listed.samples, 'sample')}")
    parts += [listed.by, f"{listed.failed:,} failed" if listed.failed else ""]
    if listed.cost_usd:
        parts.append(f"${money(listed.cost_usd)}")
    return " \u00b7 ".join(filter(None, parts))
