"""Trends: which runs are joined, and the differences from the run before."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from graded_runs import graded, many

from merilo.commands.view.catalog import Catalog, TrendGroup, changes, trend_groups
from merilo.commands.view.html import sparkline

WORSE = {**many(15, 0), **many(15, 1, start=15)}
BETTER = many(30, 2)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three runs of one name over the same questions: worse and better with one judge, better with another version."""
    for day, (name, grades, version) in enumerate(
        (("run-1", WORSE, "1"), ("run-2", BETTER, "1"), ("run-3", BETTER, "2"))
    ):
        graded(tmp_path / name, grades, version=version)
        dated(tmp_path / name, day)
    return tmp_path


def dated(run: Path, day: int) -> None:
    """Set the time of a run to a day."""
    for path in run.iterdir():
        os.utime(path, (86_400 * (day + 1), 86_400 * (day + 1)))


def groups_of(directory: Path) -> tuple[TrendGroup, ...]:
    """The groups of runs in a directory."""
    catalog = Catalog(directory)
    return trend_groups(catalog, catalog.runs())


def lines_of(group: TrendGroup) -> Mapping[str, list[list[str]]]:
    """By metric, the names of the runs that each line joins."""
    return {
        trend.metric: [[group.runs[point.place].name for point in line] for line in trend.lines]
        for trend in group.trends
    }


def test_only_comparable_runs_are_joined(runs: Path) -> None:
    """Runs with another judge are in the same drawing, but not on the same line."""
    (group,) = groups_of(runs)
    assert [run.name for run in group.runs] == ["run-1", "run-2", "run-3"]
    assert lines_of(group)["context_relevance"] == [["run-1", "run-2"], ["run-3"]]


def test_runs_over_other_questions_are_other_groups(runs: Path) -> None:
    """A changed question, a changed reference and a missing sample each make another group."""
    graded(runs / "more", {**BETTER, "e": [1]})
    graded(runs / "truth-1", BETTER, reference="Another.")
    graded(runs / "truth-2", WORSE, reference="Another.")
    found = [{run.name for run in group.runs} for group in groups_of(runs)]
    assert found == [{"truth-1", "truth-2"}, {"run-1", "run-2", "run-3"}]


def test_runs_of_other_names_are_other_systems(runs: Path) -> None:
    """A trend has the runs of one name with numbers or dates; a digit inside a name does not count."""
    graded(runs / "bm25", BETTER)
    graded(runs / "bm30", BETTER)
    graded(runs / "nightly" / "2026-11-01", BETTER)
    graded(runs / "nightly" / "2026-11-02", BETTER)
    found = {group.name: {run.name for run in group.runs} for group in groups_of(runs)}
    assert found == {
        "run": {"run-1", "run-2", "run-3"},
        "nightly": {"nightly/2026-11-01", "nightly/2026-11-02"},
    }


def test_an_unfinished_run_has_no_point(runs: Path) -> None:
    """A run that was stopped is not in a trend, since its means are over fewer samples."""
    summary = runs / "run-2" / "summary.json"
    summary.write_text(summary.read_text().replace('"complete": true', '"complete": false'))
    assert lines_of(groups_of(runs)[0])["context_relevance"] == [["run-1"], ["run-3"]]


def test_a_run_without_its_store_has_no_point(runs: Path) -> None:
    """A run whose questions cannot be read is left out."""
    (runs / "run-2" / "store.sqlite").write_bytes(b"no database")
    assert lines_of(groups_of(runs)[0])["context_relevance"] == [["run-1"], ["run-3"]]


def test_a_difference_is_to_the_comparable_run_before(runs: Path) -> None:
    """The difference is that of the means. Higher is better here; means by a judge are never marked as apart."""
    groups = groups_of(runs)
    found = changes(groups)
    names = {run.id: run.name for run in groups[0].runs}
    (change,) = [
        each for (run, metric), each in found.items() if metric == "context_relevance" and names[run] == "run-2"
    ]
    assert change.difference == pytest.approx(0.75)
    assert (change.apart, change.better) == (False, True)
    assert {names[run] for run, _ in found} == {"run-2"}


def test_questions_are_read_once(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The questions of a run are read again only if its store changed."""
    from merilo.commands.view import catalog as module

    read: list[Path] = []
    reading = module._questions_in
    monkeypatch.setattr(module, "_questions_in", lambda store: read.append(store) or reading(store))
    catalog = Catalog(runs)
    for _ in range(3):
        trend_groups(catalog, catalog.runs())
    assert len(read) == 3
    dated(runs / "run-1", 7)
    trend_groups(catalog, catalog.runs())
    assert len(read) == 4


def test_the_drawing_has_a_line_for_each_set(runs: Path) -> None:
    """The drawing has a line and a dot for each set of comparable runs, bands for intervals, and the means in words."""
    (group,) = groups_of(runs)
    trend = next(each for each in group.trends if each.metric == "context_relevance")
    drawn = sparkline(trend, len(group.runs))
    assert len(drawn["lines"]) == 2
    assert any(each["band"] for each in drawn["lines"])
    assert drawn["label"] == "context_relevance over 3 runs, in 2 sets that are not comparable: 0.250, 1.000, 1.000"
    for path in (path for each in drawn["lines"] for path in each.values()):
        assert all(0 <= float(number) <= 190 for number in path.replace("L", " ").split())
