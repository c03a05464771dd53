"""The report on a watch: each metric by day with its line and evidence, the slices, and the lowest samples."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from math import inf, sqrt
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.report.page import breakable, heading, page, table, text
from merilo.commands.view.catalog import Point, Trend
from merilo.commands.view.html import reach, sparkline
from merilo.commands.watch.evidence import DAY_S
from merilo.commands.watch.journal import Journal
from merilo.commands.watch.look import TRAFFIC, run_of
from merilo.commands.watch.report import FIELDS, watch_record
from merilo.rendering.markup import Markup, el
from merilo.rendering.page import cut
from merilo.rendering.wording import number
from merilo.runs.run import Run
from merilo.runs.run_metrics import Scale, worst_scores

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_WORST: Final = 10
_CHARS: Final = 300
_Z: Final = 1.96
_UNIT, _ANY = Scale((0.0, 1.0)), Scale((-inf, inf))


def watch_report(directory: Path) -> str:
    """Return the page on the watch in a directory."""
    with Journal(directory, writing=False) as journal:
        found = watch_record(journal)
        results = [(each.at, each.result) for each in journal.entries(TRAFFIC) if each.result]
        worst = _worst(journal, found["alarm"]) if found["alarm"] else []
    cards = [
        el("div", _card(each, results, found["rebases"]), cls="spark") for each in found["metrics"] if not each["slice"]
    ]
    keys = [key for key in FIELDS if key != "mean"]
    rows = [
        el("tr", el("th", text(f"{each['slice']}: {each['metric']}"), scope="row"), *_numbers(each, keys))
        for each in sorted(found["metrics"], key=lambda each: -each["evidence_ratio"])
        if each["slice"]
    ]
    slices = table(["slice: metric", *(FIELDS[key][0] for key in keys)], rows, cls="slices")
    said = found["alarm"]["text"] if found["alarm"] else f"{found['at']}: no alarm."
    body = el(
        "main",
        el("h1", f"{found['state'][:1].upper()}{found['state'][1:]}"),
        text(said, tag="p", cls="lead"),
        heading("By day", "mean with its interval, alarm line; below: evidence, from none to an alarm"),
        el("div", cards, cls="sparks", tabindex=0, role="group", aria_label="By day"),
        el("div", heading("Slices"), slices, cls="gap") if rows else None,
        el("div", heading("Lowest since the change"), el("ol", worst, cls="tasks"), cls="gap") if worst else None,
        cls="wrap head",
    )
    return page(f"Watch {directory.name}", [body], sheet="view.css")


def _numbers(row: dict[str, Any], keys: Iterable[str]) -> list[Markup]:  # Any: JSON
    return [el("td", number(row[key]), cls="num") for key in keys]


def _card(
    row: dict[str, Any],  # Any: JSON
    results: Sequence[tuple[float, dict[str, Any]]],  # Any: JSON
    rebases: Sequence[str],
) -> list[Markup]:
    name, days = row["metric"], dict[float, dict[str, Any]]()  # Any: JSON
    for at, result in results:
        day = days.setdefault(at // DAY_S, {"sums": (0.0, 0.0, 0.0)})
        day["sums"] = [a + b for a, b in zip(day["sums"], result.get("sums", {}).get(name, (0, 0, 0)), strict=True)]
        day["line"], day["evidence"] = result.get("lines", {}).get(name), result.get("evidence")
    means = [_point(place, *day["sums"]) for place, day in enumerate(days.values()) if day["sums"][0]]
    line, evidence = (
        [Point(at, day[key], None) for at, day in enumerate(days.values()) if day[key] is not None]
        for key in ("line", "evidence")
    )
    drawings = [
        Trend(title, scale, weak=False, lines=tuple(tuple(each) for each in lines if each))
        for title, scale, lines in ((name, _ANY, [means, line]), ("evidence", _UNIT, [evidence]))
        if any(lines)
    ]
    first, last = (f"{datetime.fromtimestamp(each * DAY_S, UTC):%d %b}" for each in (min(days), max(days)))
    rebased = {datetime.fromisoformat(each).timestamp() // DAY_S for each in rebases}
    return [
        el("span", breakable(name), cls="n"),
        el("span", number(row["mean"]), cls="v"),
        el("span", f"reference {number(row['reference'])}, alarm line {number(row['alarm_line'])}", cls="small soft"),
        *(part for each in drawings for part in (sparkline(each, len(days)), _axis(first, each, last))),
        *(el("span", f"rebased on day {place}", cls="small") for place, day in enumerate(days, 1) if day in rebased),
    ]


def _axis(first: str, drawn: Trend, last: str) -> Markup:
    """Return the line below a drawing: its first day, its lowest and highest value, its last day."""
    low, high = reach(drawn)
    return el("div", [el("span", each) for each in (first, f"{low:.2f} - {high:.2f}", last)], cls="ends")


def _point(place: int, count: float, total: float, squares: float) -> Point:
    mean = total / count
    half = _Z * sqrt(max(0.0, squares / count - mean * mean) / count)
    return Point(place, mean, (max(0.0, mean - half), min(1.0, mean + half)))


def _worst(journal: Journal, alarm: dict[str, Any]) -> list[Markup]:  # Any: JSON
    """Return the samples with the lowest scores since the change: texts, and the command that shows each."""
    since, found = datetime.fromisoformat(f"{alarm['since']}T00:00Z").timestamp(), list[tuple[float, str, Run]]()
    for entry in journal.entries(TRAFFIC):
        if entry.at >= since and entry.judged and alarm["metric"] in (run := Run.open(run_of(journal, entry))).metrics:
            worst = worst_scores(run.manifest, run.brief_records([alarm["metric"]]), alarm["metric"], _WORST)
            found += [(value, id_, run) for id_, value in worst.samples]
    return [_sample(*each) for each in sorted(found, key=lambda each: each[:2])[:_WORST]]


def _sample(value: float, id_: str, run: Run) -> Markup:
    sample = run.sample(id_).sample
    command = shlex.join(["merilo", "show", str(run.path), "--sample", id_])
    return el(
        "li",
        f"{number(value)} ",
        text(cut(sample.user_input or id_, _CHARS), tag="b"),
        text(cut(sample.response or "", _CHARS), tag="p"),
        el("code", command, cls="small"),
    )
