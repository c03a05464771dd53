"""The report on a watch: each metric by day with its line and evidence, the slices, and the lowest samples."""

from __future__ import annotations

from datetime import datetime
from math import sqrt
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.report.page import breakable, heading, page, table, text
from merilo.commands.view.html import sparkline
from merilo.commands.view.trends import Point, Trend
from merilo.commands.watch.evidence import DAY_S
from merilo.commands.watch.journal import Journal
from merilo.commands.watch.look import LOOKS, TRAFFIC
from merilo.commands.watch.report import alarm_text, watch_record
from merilo.rendering.markup import Markup, el
from merilo.rendering.wording import number
from merilo.runs.metric_names import worst_scores
from merilo.runs.run import Run
from merilo.runs.scales import Scale

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_WORST: Final = 10
_Z: Final = 1.96
_UNIT: Final = Scale((0.0, 1.0))


def watch_report(directory: Path) -> str:
    """Return the page on the watch in a directory."""
    with Journal(directory, writing=False) as journal:
        found = watch_record(journal)
        results = [(each.at, each.result or {}) for each in journal.entries(TRAFFIC) if each.result]
        rebased = [datetime.fromisoformat(each).timestamp() for each in found["rebases"]]
        worst = _worst(journal, found["alarm"]) if found["alarm"] else []
    cards = [_card(name, each, results, rebased) for name, each in found["metrics"].items()]
    rows = [
        el(
            "tr",
            el("th", text(key), scope="row"),
            *(el("td", value, cls="num") for value in (name, *map(number, values))),
        )
        for name, metric in found["metrics"].items()
        for key, each in metric["slices"].items()
        if (values := [each["reference"], each["alarm_line"], each["evidence"]])
    ]
    slices = table(["slice", "metric", "reference", "alarm below", "evidence"], rows, cls="slices")
    return page(
        f"Watch {directory.name}",
        [
            el("h1", f"{found['state'][:1].upper()}{found['state'][1:]}"),
            el("p", alarm_text(found["alarm"]) if found["alarm"] else f"At {found['at']}."),
            el(
                "section",
                heading("By day", "band: interval of the mean; second line: alarm below"),
                *cards,
                cls="sparks",
            ),
            el("section", heading("Slices"), slices) if rows else Markup(""),
            el("section", heading("Lowest since the change"), el("ol", worst)) if worst else Markup(""),
        ],
        sheet="view.css",
    )


def _card(
    name: str,
    metric: dict[str, Any],  # Any: JSON
    results: Sequence[tuple[float, dict[str, Any]]],  # Any: JSON
    rebased: Sequence[float],
) -> Markup:
    days: dict[float, list[float]] = {}
    line, evidence = dict[float, float](), dict[float, float]()
    for at, result in results:
        day = at // DAY_S
        for place, value in enumerate(result.get("sums", {}).get(name, ())):
            days.setdefault(day, [0.0, 0.0, 0.0])[place] += value
        if name in result.get("lines", {}):
            line[day], evidence[day] = result["lines"][name], result["evidence"]
    places = {day: place for place, day in enumerate(days)}
    means = [_point(places[day], *sums) for day, sums in days.items() if sums[0]]
    alarm = [Point(places[day], value, None) for day, value in line.items() if day in places]
    shown = Trend(name, _UNIT, weak=False, lines=tuple(filter(None, (tuple(alarm), tuple(means)))))
    above = [Point(places[day], value, None) for day, value in evidence.items() if day in places]
    drawn = [sparkline(shown, len(places))] if means else []
    drawn += [sparkline(Trend("evidence", _UNIT, weak=False, lines=(tuple(above),)), len(places))] if above else []
    marks = [
        el("span", f"rebased on day {places[day] + 1}", cls="small") for at in rebased if (day := at // DAY_S) in places
    ]
    values = f"reference {number(metric['reference'])}, alarm below {number(metric['alarm_line'])}"
    return el(
        "div",
        el("span", breakable(name), cls="n"),
        el("span", number(metric["mean"]), cls="v"),
        el("span", values, cls="small soft"),
        *drawn,
        *marks,
        cls="spark",
    )


def _point(place: int, count: float, total: float, squares: float) -> Point:
    mean = total / count
    half = _Z * sqrt(max(0.0, squares / count - mean * mean) / count)
    return Point(place, mean, (max(0.0, mean - half), min(1.0, mean + half)))


def _worst(journal: Journal, alarm: dict[str, Any]) -> list[Markup]:  # Any: JSON
    """Return the samples with the lowest scores since the change, with the command that shows each."""
    since, found = datetime.fromisoformat(f"{alarm['since']}T00:00Z").timestamp(), list[tuple[float, str, str]]()
    for entry in journal.entries(TRAFFIC):
        path = journal.directory / LOOKS / f"{entry.number:06d}"
        if (
            entry.at >= since
            and (entry.result or {}).get("judged")
            and alarm["metric"] in (run := Run.open(path)).manifest.metrics
        ):
            worst = worst_scores(run.manifest, run.brief_records([alarm["metric"]]), alarm["metric"], _WORST)
            found += [(value, id_, str(path)) for id_, value in worst.samples]
    return [
        el("li", f"{number(value)} ", text(id_), " ", el("code", f"merilo show {path} --sample {id_}", cls="small"))
        for value, id_, path in sorted(found)[:_WORST]
    ]
