"""The pages of `merilo view` that are its own: the list of runs, the progress of one run, and errors."""

from __future__ import annotations

from collections import Counter
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.runs.run import State
from merilo.commands.view.catalog import MOST, changes
from merilo.metrics.registry import asks_judge
from merilo.numbers import count, money, number
from merilo.rendering.markup import page
from merilo.results.estimate import BY_JUDGE
from merilo.results.means import WeakMarks, weak_legend

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from merilo.commands.view.catalog import Change, LiveProgress, Point, Trend, TrendGroup, ViewedRun, ViewedTasks

SHOWN: Final = 500
"""Number of runs in the list, the newest ones."""
_COLUMNS: Final = 6
_WIDTH, _HEIGHT, _EDGE = 190, 44, 5
"""The sizes of the drawing in the template."""
_SAID: Final = 20
"""Number of means in the text for screen readers, the newest ones."""
_CHIPS: Final = {
    State.RUNNING: ("good", "\u25b6", "running"),
    State.INTERRUPTED: ("warn", "!", "interrupted"),
    State.UNREADABLE: ("bad", "\u2717", "unreadable"),
}


def list_page(
    directory: Path,
    runs: Sequence[ViewedRun],
    groups: Sequence[TrendGroup],
    *,
    tasks: Sequence[ViewedTasks],
    live: Mapping[str, LiveProgress],
    version: str,
) -> str:
    """Return the list of runs, the newest first, with trends. `live`: progress of the runs that are being written."""
    shown, changed = runs[:SHOWN], changes(groups)
    metrics, marks = _columns(shown), WeakMarks(frozenset[str]().union(*(run.listed.weak for run in shown)))
    judged = f"Means of judged metrics are {BY_JUDGE}, except those marked as corrected by human labels."
    compared = (
        "Small numbers: difference from the comparable run of this name before, coloured if the intervals do not "
        "overlap."
    )
    notes = [
        judged if any(map(asks_judge, metrics)) else "",
        compared if changed else "",
        f"Trends read the newest {MOST} finished runs." if len(shown) > MOST else "",
        weak_legend(metric for metric in metrics if metric in marks.weak),
    ]
    return _served(
        "list.html",
        version,
        directory=str(directory),
        total=len(runs),
        rows=[_row(run, metrics, changed) for run in shown],
        heads=[*map(marks.name, metrics)],
        notes=" ".join(filter(None, notes)),
        groups=[(_title(each), [_card(trend, len(each.runs)) for trend in each.trends]) for each in groups],
        tasks=tasks,
        live=live,
    )


def progress_page(run: ViewedRun, live: LiveProgress, version: str) -> str:
    """Return the page of a run that another process is writing; it becomes the report when the run is finished."""
    return _served("progress.html", version, run=run, live=live, about=_about(run))


def error_page(title: str, message: str, back: str = "../") -> str:
    """Return a page that says what is wrong, with a link to the list."""
    return page("error.html", sheet="view.css", served=True, title=title, message=message, back=back)


def _served(template: str, version: str, **values: object) -> str:
    state = {"state": {"version": version}}
    return page(template, state, scripts=("view.js",), sheet="view.css", served=True, **values)


# -- trends -------------------------------------------------------------------------------------------


def _title(group: TrendGroup) -> str:
    samples = next((run.listed.samples for run in reversed(group.runs) if run.listed.samples is not None), 0)
    return f"{group.name}: {count(len(group.runs), 'run')} over the same {count(samples, 'question')}"


def _card(trend: Trend, runs: int) -> dict[str, Any]:  # Any: values of a template
    *before, last = trend.lines[-1]
    return {
        "name": WeakMarks(frozenset({trend.metric} if trend.weak else ())).name(trend.metric),
        "metric": trend.metric,
        "weak": trend.weak,
        "mean": last.mean,
        "change": _signed(last.mean - before[-1].mean) if before else "",
        "drawn": sparkline(trend, runs),
    }


def _signed(difference: float) -> str:
    return f"{difference:+.3f}".replace("-", "\u2212") if abs(difference) >= 0.0005 else "="


def sparkline(trend: Trend, runs: int) -> dict[str, Any]:  # Any: values of a template
    """Return the drawing. Runs have equal distances, in their order; the height is the range of the metric."""
    points = sorted((point for line in trend.lines for point in line), key=lambda point: point.place)
    low, high = trend.scale.span
    if not isfinite(high - low) or high <= low:
        values = [value for point in points for value in (point.mean, *(point.interval or ()))]
        low, high = min(values), max(values)
    low, high = (low, high) if high > low else (low - 0.5, low + 0.5)
    step = (_WIDTH - 2 * _EDGE) / max(1, runs - 1)

    def at(point: Point, value: float) -> str:
        y = _HEIGHT - _EDGE - (min(max(value, low), high) - low) / (high - low) * (_HEIGHT - 2 * _EDGE)
        return f"{_EDGE + point.place * step:.1f} {y:.1f}"

    def path(line: Sequence[Point]) -> dict[str, str]:
        known = [(point, point.interval) for point in line if point.interval is not None]
        band = [*(at(point, ends[1]) for point, ends in known), *(at(point, ends[0]) for point, ends in known[::-1])]
        means = [at(point, point.mean) for point in line]
        return {"band": "L".join(band), "path": "L".join(means), "end": means[-1]}

    means = ", ".join(number(point.mean) for point in points[-_SAID:])
    joined = "" if len(trend.lines) == 1 else f", in {len(trend.lines)} sets that are not comparable"
    label = f"{trend.metric} over {len(points)} runs{joined}: {means}"
    return {"label": label, "span": f"{low:.2f} - {high:.2f}", "lines": [*map(path, trend.lines)]}


# -- the table ----------------------------------------------------------------------------------------


def _columns(runs: Sequence[ViewedRun]) -> list[str]:
    """Return the metrics that most runs have: corrected ones first, weak ones last, half of them without a judge."""
    corrected = frozenset[str]().union(*(run.listed.corrected for run in runs))
    having = Counter(metric for run in runs for metric in run.listed.means)
    weak = Counter(metric for run in runs for metric in run.listed.means if metric in run.listed.weak)
    places = {metric: at for run in reversed(runs) for at, metric in enumerate(run.listed.means)}
    order = sorted(having, key=lambda each: (2 * weak[each] > having[each], each not in corrected, -having[each]))
    by_rule = [each for each in order if not asks_judge(each)][: _COLUMNS // 2]
    return sorted([*by_rule, *(each for each in order if each not in by_rule)][:_COLUMNS], key=places.__getitem__)


def _row(run: ViewedRun, metrics: Sequence[str], changed: Mapping[tuple[str, str], Change]) -> tuple[object, ...]:
    """Return the run, if it can be compared, its state, what it is about, and its means with their changes."""
    own = run.listed
    comparable = own.done is not None and own.state in {State.FINISHED, State.INTERRUPTED}
    means: list[tuple[object, ...]] = []
    for metric in metrics:
        change = changed.get((run.id, metric))
        tone = "soft" if change is None or not change.apart else "up" if change.better else "down"
        small = ["corrected"] * (metric in own.corrected) + ([] if change is None else [_signed(change.difference)])
        means.append((metric, own.means.get(metric), tone, ", ".join(small)))
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
