"""The pages of `merilo view` that are its own: the list of runs, the progress of one run, and errors."""

from __future__ import annotations

from collections import Counter
from math import isfinite
from typing import TYPE_CHECKING, Final

from merilo.commands.report.page import chip, heading, page, text
from merilo.commands.runs.run import State
from merilo.commands.view.catalog import MOST, changes
from merilo.metrics.registry import asks_judge
from merilo.rendering.markup import Markup, el, json_text, raw_element
from merilo.rendering.weak import WeakMarks, weak_legend
from merilo.rendering.wording import count, money, number
from merilo.results.basis import BY_JUDGE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from merilo.commands.view.catalog import Change, LiveProgress, Point, Trend, TrendGroup, ViewedRun, ViewedTasks

SHOWN: Final = 500
"""Number of runs in the list, the newest ones."""
_COLUMNS: Final = 6
_WIDTH, _HEIGHT, _EDGE = 190, 44, 5
_SAID: Final = 20
"""Number of means in the text for screen readers, the newest ones."""
_CHIPS: Final = {
    State.RUNNING: ("good", "\u25b6", "running"),
    State.INTERRUPTED: ("warn", "!", "interrupted"),
    State.UNREADABLE: ("bad", "\u2717", "unreadable"),
}
_NOT_RUN: Final = "To make some: merilo demo --out demo, then merilo view demo. Or run merilo run on your data."


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
    shown = runs[:SHOWN]
    facts = [el("span", text(str(directory))), el("span", count(len(runs), "run"))]
    if len(shown) < len(runs):
        facts.append(el("span", f"the newest {len(shown):,} are shown; name a directory below this one for others"))
    head = el("header", el("h1", "Runs"), el("p", facts, cls="facts"), _lost(), cls="wrap head")
    if not runs:
        empty = el("p", el("b", "No run here yet. "), _NOT_RUN, cls="empty")
        return _served("Runs", [head, el("main", empty, *_labelling(tasks), cls="wrap")], version)
    trends = [_group(each) for each in groups]
    body = el("main", _table(shown, changes(groups), live), *_labelling(tasks), trends, cls="wrap runlist")
    return _served("Runs", [head, body], version)


def progress_page(run: ViewedRun, live: LiveProgress, version: str) -> str:
    """Return the page of a run that another process is writing; it becomes the report when the run is finished."""
    body = el(
        "main",
        el("h1", text(run.name)),
        el("p", el("span", _about(run)), cls="facts"),
        _live(run, live),
        el("p", "The report appears when the run is finished.", cls="soft"),
        _lost(),
        cls="wrap head",
    )
    return _served(f"{run.name}: running", [back(), body], version)


def error_page(title: str, message: str) -> str:
    """Return a page that says what is wrong, with a link to the list."""
    body = el("main", el("h1", title), text(message, tag="p", cls="lead"), cls="wrap head")
    return _served(title, [back(), body], "")


def _served(title: str, body: list[Markup], version: str) -> str:
    data = raw_element("script", json_text({"version": version}), type="application/json", id="state")
    return page(
        f"{title}: merilo", body, scripts=("view.js",) if version else (), data=[data], sheet="view.css", served=True
    )


def back() -> Markup:
    """Return the link to the list, the first line of every other page."""
    return el("nav", el("a", "\u2190 All runs", href="/"), cls="wrap head", aria_label="merilo")


def _lost() -> Markup:
    words = "The server does not answer. Start merilo view again."
    return el("p", words, cls="note", id="lost", role="status", hidden=True)


def _labelling(tasks: Sequence[ViewedTasks]) -> list[Markup]:
    """Return the links to the labelling pages; nothing if there are no tasks."""
    if not tasks:
        return []
    links = [
        el(
            "li",
            el("a", text(each.path.name), href=f"/labels/{each.id}"),
            text(f" {each.metric}, {_annotators(each.annotators)}"),
        )
        for each in tasks
    ]
    title = heading("Tasks to label", "each answer is saved next to the file of tasks", anchor="labels")
    return [el("section", title, el("ul", links, cls="tasks"), aria_labelledby="labels")]


def _annotators(number: int) -> str:
    return f"answers of {count(number, 'annotator')}" if number else "no answers yet"


# -- trends -------------------------------------------------------------------------------------------


def _group(group: TrendGroup) -> Markup:
    samples = next((run.listed.samples for run in reversed(group.runs) if run.listed.samples is not None), 0)
    title = f"{group.name}: {count(len(group.runs), 'run')} over the same {count(samples, 'question')}"
    note = "oldest left; band: interval of the mean; a line joins comparable runs only"
    cards = el(
        "div", [_card(each, group) for each in group.trends], cls="sparks", tabindex=0, role="group", aria_label=title
    )
    return el("section", heading(title, note), cards)


def _card(trend: Trend, group: TrendGroup) -> Markup:
    line = trend.lines[-1]
    last, before = line[-1], line[-2].mean if len(line) > 1 else None
    name = WeakMarks(frozenset({trend.metric}) if trend.weak else frozenset()).name(trend.metric)
    return el(
        "div",
        el("span", name, cls="n", title=trend.metric),
        el("span", number(last.mean), cls="v"),
        el("span", "" if before is None else _signed(last.mean - before), cls="small soft"),
        sparkline(trend, len(group.runs)),
        cls=f"spark{' weak' * trend.weak}",
    )


def _signed(difference: float) -> str:
    return f"{difference:+.3f}".replace("-", "\u2212") if abs(difference) >= 0.0005 else "="


def sparkline(trend: Trend, runs: int) -> Markup:
    """Return the drawing. Runs have equal distances, in their order; the height is the range of the metric."""
    low, high = reach(trend)
    step = (_WIDTH - 2 * _EDGE) / max(1, runs - 1)

    def place(point: Point, value: float) -> str:
        y = _HEIGHT - _EDGE - (min(max(value, low), high) - low) / (high - low) * (_HEIGHT - 2 * _EDGE)
        return f"{_EDGE + point.place * step:.1f} {y:.1f}"

    parts: list[Markup] = []
    for line in trend.lines:
        banded = [(point, point.interval) for point in line if point.interval is not None]
        edges = [place(point, ends[1]) for point, ends in banded]
        edges += [place(point, ends[0]) for point, ends in reversed(banded)]
        if edges:
            parts.append(el("path", cls="band", d=f"M{'L'.join(edges)}Z"))
        parts.append(el("path", cls="line", d=f"M{'L'.join(place(point, point.mean) for point in line)}"))
        parts += [_dot(place(point, point.mean)) for point in (line if len(line) == 1 else line[-1:])]
    base = _HEIGHT - _EDGE
    axis = el("line", cls="ax", x1=_EDGE, x2=_WIDTH - _EDGE, y1=base, y2=base)
    return el(
        "svg",
        axis,
        parts,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=_label(trend),
    )


def _dot(place: str) -> Markup:
    """Return a dot that stays round if the drawing is stretched: a line without length, with round ends."""
    return el("path", cls="dot", d=f"M{place}h.01")


def reach(trend: Trend) -> tuple[float, float]:
    """Return the values at the bottom and the top of the drawing."""
    low, high = trend.scale.span
    if not isfinite(high - low) or high <= low:
        values = [value for line in trend.lines for point in line for value in (point.mean, *(point.interval or ()))]
        low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _label(trend: Trend) -> str:
    points: Sequence[Point] = sorted((point for line in trend.lines for point in line), key=lambda point: point.place)
    means = ", ".join(number(point.mean) for point in points[-_SAID:])
    joined = "" if len(trend.lines) == 1 else f", in {len(trend.lines)} sets that are not comparable"
    return f"{trend.metric} over {len(points)} runs{joined}: {means}"


# -- the table ----------------------------------------------------------------------------------------


def _table(
    runs: Sequence[ViewedRun], changed: Mapping[tuple[str, str], Change], live: Mapping[str, LiveProgress]
) -> Markup:
    metrics = _columns(runs)
    weak = frozenset[str]().union(*(run.listed.weak for run in runs))
    marks = WeakMarks(weak)
    heads = [
        el("th", el("span", "Choose", cls="vh"), scope="col"),
        _sortable("Run", "name"),
        _sortable("Changed", "changed", order="descending"),
        el("th", "Data and judge", scope="col"),
        *(_sortable(marks.name(metric), f"m{at}", cls="num") for at, metric in enumerate(metrics)),
    ]
    rows = [_row(run, metrics, changed, live) for run in runs]
    tools = el(
        "div",
        el("input", type="search", id="find", placeholder="Filter runs", aria_label="Filter runs", cls="scripted"),
        el("button", "Compare selected", type="submit", cls="btn main", id="compare"),
        el("span", count(len(runs), "run"), cls="count", id="count", role="status"),
        cls="tools",
    )
    judged = f"Means of judged metrics are {BY_JUDGE}, except those marked as corrected by human labels."
    notes = [judged] if any(map(asks_judge, metrics)) else []
    if changed:
        notes.append(
            "Small numbers: difference from the comparable run of this name before, coloured if the intervals do not "
            "overlap."
        )
    if len(runs) > MOST:
        notes.append(f"Trends read the newest {MOST} finished runs.")
    notes += filter(None, [weak_legend(metric for metric in metrics if metric in weak)])
    return el(
        "form",
        tools,
        el("table", el("thead", el("tr", heads)), el("tbody", rows), cls="runs"),
        el("p", " ".join(notes), cls="soft small"),
        action="/compare",
        method="get",
    )


def _columns(runs: Sequence[ViewedRun]) -> list[str]:
    """Return the metrics that most runs have: corrected ones first, weak ones last, half of them without a judge."""
    corrected = frozenset[str]().union(*(run.listed.corrected for run in runs))
    having = Counter(metric for run in runs for metric in run.listed.means)
    weak = Counter(metric for run in runs for metric in run.listed.means if metric in run.listed.weak)
    places = {metric: at for run in reversed(runs) for at, metric in enumerate(run.listed.means)}
    order = sorted(having, key=lambda each: (2 * weak[each] > having[each], each not in corrected, -having[each]))
    by_rule = [each for each in order if not asks_judge(each)][: _COLUMNS // 2]
    return sorted([*by_rule, *(each for each in order if each not in by_rule)][:_COLUMNS], key=places.__getitem__)


def _sortable(label: str, key: str, *, order: str | None = None, cls: str = "") -> Markup:
    return el("th", el("button", label, type="button", data_key=key), cls=cls, scope="col", aria_sort=order)


def _row(
    run: ViewedRun, metrics: Sequence[str], changed: Mapping[tuple[str, str], Change], live: Mapping[str, LiveProgress]
) -> Markup:
    listed = run.listed
    usable = listed.done is not None and listed.state in {State.FINISHED, State.INTERRUPTED}
    box = el("input", type="checkbox", name="run", value=run.id, aria_label=f"Choose {run.name}", disabled=not usable)
    state = _CHIPS.get(listed.state)
    local = listed.changed.astimezone()
    when = el("time", f"{local:%Y-%m-%d %H:%M}", datetime=listed.changed.isoformat(timespec="seconds"))
    about: list[object] = [el("span", _about(run), cls="t") if listed.data is not None else None]
    if run.id in live:
        about.append(_live(run, live[run.id]))
    elif listed.reason:
        about.append(text(listed.reason, tag="p", cls="why"))
    return el(
        "tr",
        el("td", box, cls="pick"),
        el(
            "th",
            el("a", text(run.name), href=f"/runs/{run.id}"),
            el("span", chip(*state), cls="state") if state else None,
            cls="nm",
            scope="row",
            data_v=run.name,
        ),
        el("td", when, cls="when", data_v=listed.changed.timestamp()),
        el("td", about, cls="meta"),
        [_mean(run, metric, changed.get((run.id, metric))) for metric in metrics],
        cls=listed.state.value,
    )


def _mean(run: ViewedRun, metric: str, change: Change | None) -> Markup:
    mean = run.listed.means.get(metric)
    tone = "soft" if change is None or not change.apart else "up" if change.better else "down"
    small = ["corrected"] * (metric in run.listed.corrected) + ([] if change is None else [_signed(change.difference)])
    delta = el("span", ", ".join(small), cls=f"delta {tone}")
    label = el("span", metric, cls="lab", aria_hidden="true")
    return el("td", label, el("b", number(mean)), " ", delta, cls=f"num{' none' * (mean is None)}", data_v=mean)


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


def _live(run: ViewedRun, live: LiveProgress) -> Markup:
    bar = el("progress", max=max(1, live.samples), value=live.done, aria_label=f"Progress of {run.name}")
    return el("p", bar, el("span", live.text), cls="live", data_run=run.id)
