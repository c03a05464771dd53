"""The report on a watch: each metric by day with its line and evidence, the slices, and the lowest samples."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf, sqrt
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.watch.evidence import DAY_S
from merilo.commands.watch.journal import Journal
from merilo.commands.watch.look import TRAFFIC, run_of
from merilo.commands.watch.report import FIELDS, watch_record
from merilo.numbers import number
from merilo.rendering.markup import page
from merilo.rendering.page import cut
from merilo.rendering.sparkline import Point, sparkline
from merilo.runs.run import Run
from merilo.runs.run_metrics import worst_scores

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_WORST: Final = 10
_CHARS: Final = 300
_Z: Final = 1.96
_UNIT, _ANY = (0.0, 1.0), (-inf, inf)


def watch_report(directory: Path) -> str:
    """Return the page on the watch in a directory."""
    with Journal(directory, writing=False) as journal:
        found = watch_record(journal)
        results = [(each.at, each.result) for each in journal.entries(TRAFFIC) if each.result]
        worst = _worst(journal, found["alarm"]) if found["alarm"] else []
        learned = [{"metric": each, "slice": "", **dict.fromkeys(FIELDS)} for each in journal.facts.get("names", [])]
    rows = found["metrics"] or learned  # the first days have means, and no line yet
    keys = [key for key in FIELDS if key != "mean"]
    slices = sorted((each for each in found["metrics"] if each["slice"]), key=lambda each: -each["evidence_ratio"])
    return page(
        "watch.html",
        sheet="view.css",
        name=directory.name,
        state=f"{found['state'][:1].upper()}{found['state'][1:]}",
        said=found["alarm"]["text"] if found["alarm"] else f"{found['at']}: no alarm.",
        cards=[_card(each, results, found["rebases"]) for each in rows if not each["slice"]],
        head=["slice: metric", *(FIELDS[key][0] for key in keys)],
        slices=[("", f"{each['slice']}: {each['metric']}", [number(each[key]) for key in keys]) for each in slices],
        worst=worst,
    )


def _card(
    row: dict[str, Any],  # Any: JSON
    results: Sequence[tuple[float, dict[str, Any]]],  # Any: JSON
    rebases: Sequence[str],
) -> dict[str, Any]:  # Any: values of a template
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
        sparkline(title, span, [each for each in lines if each], len(days))
        for title, span, lines in ((name, _ANY, [means, line]), ("evidence", _UNIT, [evidence]))
        if any(lines)
    ]
    first, last = (f"{datetime.fromtimestamp(each * DAY_S, UTC):%d %b}" for each in (min(days), max(days)))
    rebased = {datetime.fromisoformat(each).timestamp() // DAY_S for each in rebases}
    return {
        "row": row,
        "first": first,
        "last": last,
        "drawings": drawings,
        "rebased": [place for place, day in enumerate(days, 1) if day in rebased],
    }


def _point(place: int, count: float, total: float, squares: float) -> Point:
    mean = total / count
    half = _Z * sqrt(max(0.0, squares / count - mean * mean) / count)
    return Point(place, mean, (max(0.0, mean - half), min(1.0, mean + half)))


def _worst(journal: Journal, alarm: dict[str, Any]) -> list[tuple[str, ...]]:  # Any: JSON
    """Return the samples with the lowest scores since the change: score, question, answer and place.

    Rows of the reference are left out, also if they were judged on the day of the change.
    """
    since, found = datetime.fromisoformat(f"{alarm['since']}T00:00Z").timestamp(), list[tuple[float, str, Run]]()
    since_reference = [each for each in journal.entries(TRAFFIC) if each.number > journal.facts["learned"]]
    for entry in since_reference:
        if entry.at >= since and entry.judged and alarm["metric"] in (run := Run.open(run_of(journal, entry))).metrics:
            worst = worst_scores(run.manifest, run.brief_records([alarm["metric"]]), alarm["metric"], _WORST)
            found += [(value, id_, run) for id_, value in worst.samples]
    return [_sample(*each) for each in sorted(found, key=lambda each: each[:2])[:_WORST]]


def _sample(value: float, id_: str, run: Run) -> tuple[str, ...]:
    sample = run.sample(id_).sample
    question, response = cut(sample.user_input or id_, _CHARS), cut(sample.response or "", _CHARS)
    return number(value), question, response, f"{run.path.name}: {id_}"
