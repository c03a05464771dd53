"""Trends: the means of each metric over runs of one name and the same questions, joined only if they are comparable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from merilo.commands.runs.run import State
from merilo.metrics.registry import asks_judge
from merilo.results.basis import score_affecting_differences
from merilo.results.records import grouped
from merilo.runs.run_metrics import recorded_scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.view.catalog import Catalog, ViewedRun
    from merilo.runs.manifest import Manifest
    from merilo.runs.run_metrics import Scale

MOST: Final = 100
"""Number of finished runs, the newest ones, whose questions are read for trends."""


@dataclass(frozen=True, slots=True)
class Point:
    """The mean of a metric in one run of a group."""

    place: int
    """The index of the run in its group."""
    mean: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Trend:
    """One metric over the runs of a group."""

    metric: str
    scale: Scale
    weak: bool
    lines: tuple[tuple[Point, ...], ...]
    """Points that are comparable with each other, oldest first; the line with the newest run comes last."""


@dataclass(frozen=True, slots=True)
class TrendGroup:
    """Runs of one name over the same questions, oldest first."""

    name: str
    runs: tuple[ViewedRun, ...]
    trends: tuple[Trend, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """The difference of a mean from that of the comparable run before."""

    difference: float
    apart: bool
    """True if the two intervals do not overlap and no judge computed the means."""
    better: bool


def trend_groups(catalog: Catalog, runs: Sequence[ViewedRun]) -> tuple[TrendGroup, ...]:
    """Return the groups of at least two runs of one name and the same questions; that of the newest run comes first.

    A name is compared without its number or date, as in `nightly-12` or `nightly/2026-11-01`; runs of other names are
    of other systems. `runs`: the newest first. Unfinished runs are left out.
    """
    finished = [run for run in runs if run.listed.state is State.FINISHED]
    found = grouped(
        ((_without_numbers(run.name), questions), run)
        for run in finished[:MOST]
        if (questions := catalog.questions(run)) is not None
    )
    return tuple(_group(name, tuple(reversed(each))) for (name, _), each in found.items() if len(each) > 1)


def changes(groups: Sequence[TrendGroup]) -> Mapping[tuple[str, str], Change]:
    """Return the difference from the comparable run before, by id of the run and metric."""
    found: dict[tuple[str, str], Change] = {}
    for group in groups:
        for trend in group.trends:
            for line in trend.lines:
                for before, now in pairwise(line):
                    key = group.runs[now.place].id, trend.metric
                    change = _change(before, now, higher_is_better=trend.scale.higher_is_better)
                    found[key] = replace(change, apart=change.apart and not asks_judge(trend.metric))
    return found


def _change(before: Point, now: Point, *, higher_is_better: bool) -> Change:
    difference = now.mean - before.mean
    first, second = before.interval, now.interval
    apart = first is not None and second is not None and (first[1] < second[0] or second[1] < first[0])
    return Change(difference, apart, (difference > 0) == higher_is_better)


def _group(name: str, runs: tuple[ViewedRun, ...]) -> TrendGroup:
    metrics = dict.fromkeys(metric for run in reversed(runs) for metric in run.listed.means)
    trends = (_trend(metric, runs) for metric in metrics)
    return TrendGroup(name, runs, tuple(trend for trend in trends if trend.lines))


def _trend(metric: str, runs: Sequence[ViewedRun]) -> Trend:
    lines: list[tuple[ViewedRun, list[Point]]] = []
    for place, run in enumerate(runs):
        mean = run.listed.means.get(metric)
        if mean is None:
            continue
        point = Point(place, mean, run.listed.intervals.get(metric))
        line = next((points for first, points in lines if _comparable(first, run, metric)), None)
        if line is None:
            lines.append((run, [point]))
        else:
            line.append(point)
    newest = next(run for run in reversed(runs) if metric in run.listed.means)
    ordered = sorted((points for _, points in lines), key=lambda points: points[-1].place)
    scale = recorded_scale(_manifest(newest), metric)
    return Trend(metric, scale, metric in newest.listed.weak, tuple(map(tuple, ordered)))


def _comparable(run: ViewedRun, other: ViewedRun, metric: str) -> bool:
    first, second = _manifest(run), _manifest(other)
    if (metric in run.listed.corrected) != (metric in other.listed.corrected):
        return False
    if recorded_scale(first, metric) != recorded_scale(second, metric):
        return False
    if metric in first.composites or metric in second.composites:
        parts = [*first.metrics]
        return first.composites == second.composites and parts == [*second.metrics] and _alike(first, second, parts)
    return _alike(first, second, [metric])


def _alike(first: Manifest, second: Manifest, metrics: Sequence[str]) -> bool:
    return not score_affecting_differences(first, second, metrics=metrics)


def _manifest(run: ViewedRun) -> Manifest:
    """Return the manifest of a finished run, which always has one."""
    manifest = run.listed.manifest
    if manifest is None:
        raise ValueError(f"{run.name} has no manifest")
    return manifest


def _without_numbers(name: str) -> str:
    """Return the name of a run without the numbers at its end, such as `nightly` for `nightly-v2-13`."""
    bare = name.rstrip("0123456789")
    stem = bare.removesuffix("v").rstrip("-_./ ")
    if bare == name or len(stem) == len(bare.removesuffix("v")):
        return name
    return _without_numbers(stem)
