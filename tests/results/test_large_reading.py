"""Readers that hold little of a run give what readers of all its outcomes would give."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from labelled_run import contexts_rows, lenient, strict

import merilo
from merilo.commands.compare.options import ComparisonRequest
from merilo.commands.compare.run import compare_runs
from merilo.commands.report.run import compared_samples, report_run
from merilo.results.contents import has_order
from merilo.runs.files import OUTCOMES
from merilo.runs.outcomes import outcome_lines, short_outcomes
from merilo.runs.run_metrics import worst_scores

METRICS = ["context_relevance", "context_ranking"]
ROWS = [*contexts_rows(20), {"id": 'a "quoted\\ id', "user_input": "What is 21?", "retrieved_contexts": []}]


def evaluated(out: Path, rows: list[dict[str, Any]], judge: Any) -> merilo.Run:
    scripted = merilo.ScriptedJudge.by(judge, version="1")
    return merilo.evaluate(rows, metrics=METRICS, judge=scripted, out=out, storage={"cache": False})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, merilo.Run]:
    """A run, a run with other scores, and that one with its samples in another order and one more in front."""
    path = tmp_path_factory.mktemp("runs")
    shuffled = random.Random(1).sample(ROWS, len(ROWS))
    more = {"id": "more", "user_input": "What is 50?", "retrieved_contexts": []}
    return {
        "first": evaluated(path / "first", ROWS, lenient),
        "second": evaluated(path / "second", ROWS, strict),
        "shuffled": evaluated(path / "shuffled", [more, *shuffled], strict),
    }


def test_brief_records_are_the_records_without_their_details(runs: dict[str, merilo.Run]) -> None:
    """`brief_records` yields the sample, outcome and value of `records`, and whole records where they are wanted."""
    run = runs["first"]
    records = [each for each in run.records() if each["metric"] == METRICS[0]]
    brief = [
        {name: each[name] for name in ("sample", "metric", "outcome", "value") if name in each} for each in records
    ]
    assert [*run.brief_records([METRICS[0]])] == brief
    assert [*run.brief_records(METRICS, whole=METRICS)] == [*run.records()]
    assert {each["outcome"] for each in brief} == {"score", "undefined"}


def test_short_outcomes_read_lines_of_any_layout(runs: dict[str, merilo.Run]) -> None:
    """A line with blanks or another order of fields gives the same outcome as the line that merilo wrote."""
    lines = [*outcome_lines(runs["first"].file(OUTCOMES))]
    other = [json.dumps(dict(reversed(json.loads(line).items()))).encode() + b"\n" for line in lines]
    wanted = frozenset(METRICS)
    assert [*short_outcomes(other, wanted)] == [*short_outcomes(lines, wanted)]


@pytest.mark.parametrize("block", [1, 7, 100, 1 << 16])
def test_lines_are_whole_whatever_the_block(
    runs: dict[str, merilo.Run], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines that cross the blocks in which a file is read are not cut."""
    monkeypatch.setattr("merilo.runs.outcomes._BLOCK", block)
    path = runs["first"].file(OUTCOMES)
    with path.open("rb") as lines:
        expected = [*lines][:6]
    found = outcome_lines(path, reopen=True)
    assert [next(found) for _ in expected] == expected


def test_the_worst_scores_are_those_of_a_sorted_list(runs: dict[str, merilo.Run]) -> None:
    """`worst_scores` returns the lowest scores, equal ones in the order of the data."""
    run = runs["first"]
    scored = [
        (each["value"], each["sample"]) for each in run.records() if each["metric"] == METRICS[0] and "value" in each
    ]
    expected = tuple((sample, value) for value, sample in sorted(scored, key=lambda each: each[0])[:7])
    assert worst_scores(run.manifest, run.records(), METRICS[0], 7).samples == expected


def test_a_report_of_a_part_lists_the_first_of_the_whole(runs: dict[str, merilo.Run]) -> None:
    """A report that shows five samples lists the first five of the report that shows all, with the same counts."""
    whole, part = report_run(runs["first"]), report_run(runs["first"], most=5)
    assert [each.row for each in part.entries] == [each.row for each in whole.entries][:5]
    assert (part.faults.counts, part.samples) == (whole.faults.counts, whole.samples)
    assert [card.bins for card in part.cards] == [card.bins for card in whole.cards]
    values = [each.row.values[0] for each in whole.entries]
    assert sum(part.cards[0].bins) == len([value for value in values if value is not None and value is not False])


def test_a_comparison_does_not_depend_on_the_order_of_samples(runs: dict[str, merilo.Run]) -> None:
    """Two runs with other orders compare as with the same order: rows, moved samples and the report's entries."""
    wanted = ComparisonRequest(across_data=True, across_judges=True)
    same, other = (compare_runs([runs["first"], runs[name]], wanted) for name in ("second", "shuffled"))
    assert [row.comparison.difference for row in other.rows] == [row.comparison.difference for row in same.rows]
    assert [each.sample for each in other.moved] == [each.sample for each in same.moved]
    assert (other.sides[1].absent, other.sides[1].absences) == (("more",), 1)
    shown = [compared_samples(each, most=6) for each in (same, other)]
    ids = [[entry.row.id for entry in side] for found in shown for side in found.entries]
    assert ids[0] == ids[1] == ids[2] == ids[3]
    assert [entry.row.values for entry in shown[0].entries[1]] == [entry.row.values for entry in shown[1].entries[1]]


@pytest.mark.parametrize(
    ("stored", "wanted", "ordered"),
    [("abcd", "abcd", True), ("abcd", "bd", True), ("abcd", "db", False), ("abcd", "x", False), ("", "", True)],
)
def test_an_order_may_have_others_between(stored: str, wanted: str, ordered: bool) -> None:
    """`has_order` accepts ids between the wanted ones and no other order."""
    assert has_order(iter(stored), [*wanted]) is ordered
