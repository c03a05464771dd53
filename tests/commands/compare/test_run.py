"""Runs compared: what is paired, what may be said, and which samples carry it."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from compared import compare_runs
from graded_runs import FAILS, graded, judge, many
from seals import seal_again

import merilo
import merilo as api
from merilo.commands.compare.options import ComparisonRequest
from merilo.commands.compare.record import comparison_record
from merilo.commands.compare.result import Row, RunComparison
from merilo.commands.compare.text import comparison_markdown, comparison_page, verdict_text, why_of
from merilo.commands.report.run_page import comparison_page as report_page
from merilo.errors import DataError, UsageError
from merilo.results.estimate import Verdict
from merilo.runs.files import MANIFEST
from merilo.stats.compare import Comparison

METRIC = "context_relevance"
NO_SCORE = "no sample has a score in both runs (8 {}); see the reasons with merilo show"


def row_of(found: RunComparison) -> Row:
    """The row of its one metric."""
    return found.metrics[METRIC]


def compared(first: merilo.Run, second: merilo.Run) -> Comparison:
    """The comparison of their one metric, second minus first."""
    return row_of(compare_runs([first, second])).comparison


def said(found: RunComparison) -> str:
    """The verdict of each row and its explanation, in one line."""
    return "; ".join(": ".join(filter(None, (verdict_text(row), why_of(row)))) for row in found.rows)


def full(found: RunComparison) -> str:
    """The full page in one line."""
    return " ".join(str(comparison_page(found, 100, full=True)).split())


def change(run: merilo.Run, **fields: object) -> merilo.Run:
    """The run, sealed again, with these fields of its manifest."""
    path = run.path / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | fields), encoding="utf-8")
    return merilo.Run.open(seal_again(run.path))


# -- the example's two retrievers ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def retrievers(tmp_path_factory: pytest.TempPathFactory) -> tuple[merilo.Run, merilo.Run]:
    folder = tmp_path_factory.mktemp("retrievers")
    found = []
    for name in ("bm25", "opening_overlap"):
        data = folder / f"{name}.jsonl"
        data.write_bytes(files("merilo.examples").joinpath("retrieval", f"{name}.jsonl").read_bytes())
        found.append(
            merilo.evaluate(data, metrics=[METRIC], judge="embedded", storage={"cache": False}, out=folder / name)
        )
    return found[0], found[1]


def hits(run: merilo.Run) -> dict[str, bool]:
    """By sample, whether the passage that a person wrote the answer from was retrieved."""
    return {
        each.sample.id: bool(
            {*each.sample.require("reference_context_ids")} & {*each.sample.require("retrieved_context_ids")}
        )
        for each in run.samples
    }


def test_the_judge_agrees_with_the_passages_that_people_chose(retrievers: tuple[merilo.Run, merilo.Run]) -> None:
    """By the embedded judge the same retriever leads as by the hit rate of the gold passage, and is not called better
    for it, since nobody checked the judge.
    """
    found = compare_runs(retrievers)
    gold = [hits(run) for run in retrievers]
    row = row_of(found)
    assert sum(gold[0].values()) - sum(gold[1].values()) == 11
    assert (row.difference or 0) < 0
    assert row.unchecked
    assert (row.verdict, found.verdict) == (Verdict.CANNOT_TELL, Verdict.CANNOT_TELL)
    assert found.conclusion == "Cannot tell which is better: no one has checked the judge."
    record = comparison_record(found)
    assert (record["verdict"], record["comparisons"][0]["verdict"]) == ("cannot tell", "cannot tell")
    for text in (str(found), report_page(found), comparison_markdown(found), json.dumps(record)):
        assert not re.search(r"is (better|worse)", text.replace("which is better", ""))


def test_the_samples_that_carry_it_are_shown(retrievers: tuple[merilo.Run, merilo.Run]) -> None:
    """Among the 20 samples that changed most are most of those whose gold passage one retriever alone found.

    They carry the difference: together the 20 of 60 make more than three quarters of it.
    """
    found = compare_runs(retrievers)
    gold = [hits(run) for run in retrievers]
    decided = {sample for sample in gold[0] if gold[0][sample] != gold[1][sample]}
    shown = {each.sample: each for each in found.moved}
    assert len(shown) == 20
    assert len(decided & set(shown)) > 0.6 * len(decided)
    carried = sum(each.step for each in found.moved) / found.common
    assert carried <= 0.75 * (row_of(found).difference or 0)
    first = found.moved[0]
    for case, value in zip(first.cases, first.values, strict=True):
        outcome = case.result.outcomes[METRIC]
        assert isinstance(outcome, merilo.Score)
        assert outcome.value == value


# -- pairing ------------------------------------------------------------------------------------------


def test_samples_are_paired_by_id_over_the_common_ones(tmp_path: Path) -> None:
    """Data sets may differ in order and samples; what is not common is counted and named, and not compared."""
    first = graded(tmp_path / "a", {"only": [2], **many(10, 2)})
    second = graded(tmp_path / "b", dict(reversed(many(12, 1).items())))
    found = compare_runs([first, second])
    assert found.common == 10
    assert [(side.name, side.absences, side.absent) for side in found.sides] == [
        ("a", 1, ("only",)),
        ("b", 2, ("s11", "s10")),
    ]
    row = row_of(found)
    assert (row.base_mean, row.run_mean, row.difference) == (1.0, 0.5, -0.5)
    assert row.comparison.counts.losses == 10


def test_no_sample_in_common_is_an_error(tmp_path: Path) -> None:
    """Runs without a common id cannot be compared, and it is said how ids pair."""
    first, second = graded(tmp_path / "a", many(3, 2)), graded(tmp_path / "b", many(3, 2, start=10))
    with pytest.raises(DataError, match=r"no sample in common: no id occurs in all of them \(a: s0, s1, s2; b: s10"):
        compare_runs([first, second])


def test_other_questions_under_the_same_ids_are_refused(tmp_path: Path) -> None:
    """Ids that were counted up pair questions that have nothing in common; with --across-data only equal ones pair."""
    first = graded(tmp_path / "a", many(30, 2))
    second = graded(tmp_path / "b", {**many(25, 1), **{f"s{n}": [0] for n in range(25, 30)}})
    rows = [replace_question(each.sample, "What else?" if each.sample.id > "s25" else None) for each in second.samples]
    other = merilo.evaluate(
        rows,
        metrics=[METRIC],
        judge=merilo.ScriptedJudge.by(judge, version="1"),
        out=tmp_path / "c",
        storage={"cache": False},
    )
    unlike = sum(row.user_input == "What else?" for row in rows)
    with pytest.raises(
        UsageError, match=rf"{unlike} of 30 samples have another user_input in c than in a .*across-data"
    ):
        compare_runs([first, other])
    found = compare_runs([first, other], ComparisonRequest(across_data=True))
    assert found.common == 30 - unlike
    (note,) = [each.sentence for each in found.caveats if each.code == "questions"]
    assert note in " ".join(str(found).split())
    assert compare_runs([first, second]).caveats == ()


def replace_question(sample: merilo.Sample, question: str | None) -> merilo.Sample:
    """The sample with this question, or as it is."""
    record = {**sample.to_record(), **({} if question is None else {"user_input": question})}
    return merilo.Sample.from_record(record)


def test_three_runs_are_each_held_against_the_best(tmp_path: Path) -> None:
    """Over the samples that all have; every page has the sentence and no second conclusion."""
    ways = {"a": [1, 1], "b": [1, 2], "c": [1, 0]}
    runs = [graded(tmp_path / name, {f"s{n}": [way[n % 4 > 0]] for n in range(30)}) for name, way in ways.items()]
    runs.append(graded(tmp_path / "d", many(20, 1)))
    found = compare_runs(runs)
    assert found.common == 20
    assert [(row.other, row.difference, row.verdict) for row in found.rankings[0].rows] == [
        (0, -0.375, Verdict.WORSE),
        (3, -0.375, Verdict.WORSE),
        (2, -0.75, Verdict.WORSE),
    ]
    assert (found.rankings[0].best, found.rankings[0].may_be_best, found.verdict) == (1, (1,), Verdict.BETTER)
    assert found.moved[0].values == (0.5, 1.0, 0.0, 0.5)
    assert len(found.moved[0].cases) == 4
    for page in (str(found), report_page(found), comparison_markdown(found), found.conclusion):
        assert "b is better than every other run, by the judge alone" in " ".join(page.split())


# -- the same yardstick -------------------------------------------------------------------------------


def test_other_judges_are_refused_with_what_differs(tmp_path: Path) -> None:
    """Runs of different judges are refused with the difference, and compared on demand, with it said."""
    first, second = graded(tmp_path / "a", many(30, 2)), graded(tmp_path / "b", many(30, 1), version="2")
    with pytest.raises(UsageError, match=r"not comparable: .*version.*--across-judges") as refusal:
        compare_runs([first, second])
    assert '"1"' in str(refusal.value)
    assert '"2"' in str(refusal.value)
    found = compare_runs([first, second], ComparisonRequest(across_judges=True))
    assert [each.code for each in found.caveats] == ["judges-differ"]
    assert "Not comparable: the judge" in str(found)
    assert said(found) == "cannot tell: the runs have different judges, rubrics or versions"
    for text in (str(found), report_page(found), comparison_markdown(found), str(comparison_record(found))):
        assert not re.search(r"is (better|worse)", text.replace("which is better", ""))
        assert "different judges, rubrics or versions" in " ".join(text.split())
    assert comparison_record(found)["comparisons"][0]["verdict"] == "cannot tell"


def test_another_scale_is_an_error(tmp_path: Path) -> None:
    """One metric with two ranges is no one metric."""
    first, second = graded(tmp_path / "a", many(8, 2)), graded(tmp_path / "b", many(8, 1))
    change(second, scales={METRIC: {"range": [0, 5], "higher_is_better": True}})
    with pytest.raises(DataError, match=r"different scales in b \(0 to 5, higher is better\) and a \(0 to 1"):
        compare_runs([first, merilo.Run.open(second.path)])


# -- what may be said ---------------------------------------------------------------------------------


def test_silence_does_not_win(tmp_path: Path) -> None:
    """A retriever that brings nothing on hard questions leads over the pairs, and is not called better for it."""
    easy, worse = ({f"easy{n}": [2 - below * (n % 4 > 0)] for n in range(40)} for below in (0, 1))
    loud = graded(tmp_path / "loud", {**worse, **many(20, 2)})
    silent = graded(tmp_path / "silent", {**easy, **{name: [] for name in many(20, 1)}})
    found = compare_runs([silent, loud])
    each = row_of(found).comparison
    assert (each.difference or 0) < 0
    assert each.p is not None
    assert each.p < 1e-5  # over the pairs alone nobody would doubt it
    assert row_of(found).verdict is Verdict.CANNOT_TELL
    assert each.counts.second_undefined == 20
    assert said(found).startswith("cannot tell: 20 samples have a score in one run only")
    assert said(found).endswith("which could change the result; read them")  # there is no failed one to retry
    assert "20 undefined in silent, scored in loud" in full(found)
    assert "s0, s1, s2, s3, s4" in full(found)


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        (many(30, 1), many(30, 1), "the scores of all 30 pairs are equal, their inputs are not"),
        ({**many(30, 1), "s0": [2]}, many(30, 1), "only 1 of 30 samples differ, and a test needs 6"),
        (many(8, FAILS), many(8, FAILS), NO_SCORE.format("scored in none")),
        (many(8, FAILS), many(8, 1), NO_SCORE.format("failed in one")),
        ({name: [] for name in many(8, 1)}, many(8, 1), NO_SCORE.format("undefined in one")),
    ],
    ids=["all equal", "one differs", "all failed", "one side failed", "one side undefined"],
)
def test_degenerate_runs_get_a_sentence(
    tmp_path: Path, first: dict[str, list[int]], second: dict[str, list[int]], sentence: str
) -> None:
    """Where nothing can be told, it is said why and what to do; every page can still be made."""
    found = compare_runs([graded(tmp_path / "a", first), graded(tmp_path / "b", second)])
    assert said(found) == f"cannot tell: {sentence}"
    assert sentence in " ".join(str(found).split())
    assert row_of(found).comparison.p is None


def test_a_run_that_repeats_the_base_is_no_change(tmp_path: Path) -> None:
    """Equal inputs and equal outcomes are "no change", also for a run compared with itself; not for other inputs."""
    grades = many(30, 1)
    first = graded(tmp_path / "a" / "run", grades)
    again = graded(tmp_path / "b" / "run", grades)
    for other in (again, first):
        found = compare_runs([first, other])
        assert (row_of(found).verdict, found.verdict) == (Verdict.NO_CHANGE, Verdict.NO_CHANGE)
        assert found.conclusion.startswith("No change: ")
        assert "no change" in str(found)
        assert comparison_record(found)["verdict"] == "no change"


def test_samples_in_clusters_count_together(tmp_path: Path) -> None:
    """30 samples of one document are one unit; `cluster` names what they share."""
    runs = [graded(tmp_path / name, many(30, grade), metadata={"doc": 1}) for name, grade in (("a", 2), ("b", 0))]
    assert row_of(compare_runs(runs)).verdict is Verdict.WORSE
    found = compare_runs(runs, ComparisonRequest(cluster="doc"))
    assert (found.cluster, row_of(found).comparison.clusters) == ("doc", 1)
    assert "cannot tell: 1 of 1 clusters have differences" in said(found)
    with pytest.raises(DataError, match="no cluster field 'page'"):
        compare_runs(runs, ComparisonRequest(cluster="page"))


def test_a_lower_value_may_be_better(tmp_path: Path) -> None:
    """Who is better follows from the metric's scale, not from the sign."""
    runs = [graded(tmp_path / name, many(30, grade)) for name, grade in (("a", 2), ("b", 0))]
    for run in runs:
        change(run, scales={METRIC: {"range": [0, 1], "higher_is_better": False}})
    found = compare_runs([run.path for run in runs])
    assert (row_of(found).difference, row_of(found).verdict) == (-1.0, Verdict.BETTER)
    for text in (str(found), report_page(found), comparison_markdown(found)):
        assert f"{METRIC} (lower is better)" in text


def test_a_conclusion_of_several_tests_shows_the_interval_that_decides(tmp_path: Path) -> None:
    """Alone a difference is shown; among three runs none is, and the interval is as wide as all of them need."""
    first = many(120, 1) | many(8, 2)
    third = first | {f"s{n}": [2 * (n % 2)] for n in range(20, 30)}
    runs = [graded(tmp_path / name, own) for name, own in (("a", first), ("b", many(120, 1)), ("c", third))]
    alone, both = compare_runs(runs[:2]), compare_runs(runs).rankings[0].row_of(1)
    assert both is not None
    assert max(row_of(alone).interval or ()) < 0 < max(both.interval or ())
    assert (row_of(alone).verdict, both.verdict) == (Verdict.WORSE, Verdict.NOT_SHOWN)
    assert "over 2 tests" not in str(alone)


# -- metrics and samples ------------------------------------------------------------------------------


def test_metrics_that_one_run_lacks_are_named(tmp_path: Path) -> None:
    """What is not in every run is left out with the reason; asked for by name, it is an error."""
    first = graded(tmp_path / "a", many(8, 2), metrics=(METRIC, "context_ranking"))
    second = graded(tmp_path / "b", many(8, 1))
    found = compare_runs([first, second])
    assert list(found.metrics) == [METRIC]
    assert [(each.about, each.sentence) for each in found.caveats] == [("context_ranking", "not in b")]
    with pytest.raises(UsageError, match="Cannot compare context_ranking: no such metric in b"):
        compare_runs([first, second], ComparisonRequest(metrics=["context_ranking"]))
    with pytest.raises(UsageError, match=r"No metric 'context_relevanc' in .*did you mean context_relevance"):
        compare_runs([first, second], ComparisonRequest(metrics=["context_relevanc"]))
    other = graded(tmp_path / "c", many(8, 1), metrics=("context_precision",))
    with pytest.raises(UsageError, match="no metric in common: b has context_relevance; c has context_precision"):
        compare_runs([second, other])


def test_the_samples_that_moved_most_come_first(tmp_path: Path) -> None:
    """By the size of the step, whatever its direction; samples that did not move are not among them."""
    first = graded(tmp_path / "a", {"same": [1], "up": [0, 1], "down": [2], "far": [0], "gone": []})
    second = graded(tmp_path / "b", {"same": [1], "up": [1, 1], "down": [0], "far": [2], "gone": [2]})
    found = compare_runs([first, second])
    assert [(each.sample, each.values, each.step) for each in found.moved] == [
        ("down", (1.0, 0.0), -1.0),
        ("far", (0.0, 1.0), 1.0),
        ("up", (0.25, 0.5), 0.25),
    ]
    assert found.movers == 3
    assert len(compare_runs([first, second], ComparisonRequest(samples=1)).moved) == 1
    assert compare_runs([first, second], ComparisonRequest(samples=0)).moved == ()


# -- for notebooks ------------------------------------------------------------------------------------


def test_a_comparison_as_a_frame(tmp_path: Path) -> None:
    """One row for each metric and other run, its columns the fields of the JSON."""
    pytest.importorskip("pandas")
    runs = [graded(tmp_path / name, many(30, grade)) for name, grade in (("a", 2), ("b", 1))]
    found = api.compare(*runs).to_frame()
    row = found.iloc[0]  # type: ignore[attr-defined]  # our stub of pandas has what we call alone
    assert (row["metric"], row["first"], row["second"], row["verdict"]) == (METRIC, "a", "b", "worse")
    assert row["low"] < row["difference"] < row["high"]
