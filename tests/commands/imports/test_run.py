"""Scores of another tool become a run like any other: nothing is judged, nothing is asked.

The files in `files/` were written by ragas 0.4.3 and DeepEval 4.1.10 themselves, with scores made for the purpose.
"""

import json
from html import unescape
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import pytest
from imported import import_scores
from page_text import page_text

import merilo
from merilo.commands.compare.text import comparison_markdown
from merilo.commands.gate.text import gates_page
from merilo.commands.imports.cli import score_and_range
from merilo.commands.report.run import report_run
from merilo.commands.report.run_page import comparison_page
from merilo.commands.report.run_page import run_page as report_page
from merilo.commands.show.summary import run_page
from merilo.commands.verify.replay import replay_run
from merilo.errors import DataError, RunError, UsageError
from merilo.rendering.explain import evidence_groups
from merilo.results.sample_detail import SampleDetail
from merilo.results.scores import read_scores
from merilo.runs.seal import RESULTS

FILES = Path(__file__).parent / "files"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory in which the test works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(name: str, text: str) -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def values(run: merilo.Run, metric: str) -> list[float | str]:
    """The scores of a metric, and the reason in the place of one."""
    found = (record for record in run.records() if record["metric"] == metric)
    return [record.get("value", record.get("reason", "")) for record in found]


def test_a_column_of_scores_becomes_a_metric(here: Path) -> None:
    """Rows are samples by their id, a blank cell is undefined, and other columns are their metadata."""
    file = written("scores.csv", "qid,helpful,doc\na,0.5,x\nb,,x\nc,1,y\n")
    run = import_scores(file, id="qid", scores=["helpful"], out=here / "run")
    assert values(run, "foreign:helpful") == [0.5, "not scored there", 1.0]
    assert [sample.sample.id for sample in run.samples] == ["a", "b", "c"]
    assert run.metrics["foreign:helpful"].undefined == 1
    assert run.sample("c").sample.metadata == {"doc": "y"}
    assert run.manifest.judges == {}
    assert run.manifest.origin == "scores.csv"
    assert run.complete


@pytest.mark.parametrize("cell", ["", "nan", "NaN", "null", "None", "NA", "n/a", "<NA>", " "])
def test_what_stands_for_nothing_is_undefined(here: Path, cell: str) -> None:
    """However a table spells that there is no score, it is not 0."""
    file = written("scores.csv", f"id,s\na,0.5\nb,{cell}\n")
    assert values(import_scores(file, scores=["s"], out=here / "run"), "foreign:s") == [0.5, "not scored there"]


def test_json_lines_may_say_nan_null_or_nothing(here: Path) -> None:
    """All three are undefined; true and false are 1 and 0."""
    lines = '{"id":"a","s":NaN}\n{"id":"b","s":null}\n{"id":"c"}\n{"id":"d","s":true}\n{"id":"e","s":false}\n'
    run = import_scores(written("scores.jsonl", lines), scores=["s"], out=here / "run")
    assert values(run, "foreign:s") == [*["not scored there"] * 3, 1.0, 0.0]


def test_a_text_in_a_column_of_scores_is_told_with_its_line(here: Path) -> None:
    """Every such cell is told; lines count as an editor counts them, and nothing is left behind."""
    file = written("scores.csv", 'id,note,s\na,"two\nlines",0.5\nb,,"0,7"\nc,,high\n')
    with pytest.raises(DataError) as caught:
        import_scores(file, scores=["s"], out=here / "run")
    told = "scores.csv, lines 4 to 5, field 's': expected a number or nothing, got the text '0,7', the text 'high'."
    assert told in str(caught.value)
    assert [problem.line for problem in caught.value.problems] == [4, 5]
    assert not (here / "run").exists()


@pytest.mark.parametrize(("first", "second", "line"), [("0.5", "inf", 3), ("-inf", "0.5", 2)])
def test_an_infinite_score_is_named_with_its_row(here: Path, first: str, second: str, line: int) -> None:
    """A column with one is still a column of scores: the error names row, column and value."""
    file = written("r.csv", f"question,answer,contexts,faithfulness\nq,a,['c'],{first}\nr,a,['c'],{second}\n")
    told = rf"r.csv, line {line}, field 'faithfulness': expected a finite number or nothing, got the text '-?inf'"
    with pytest.raises(DataError, match=told):
        import_scores(file, out=here / "run")


def test_a_range_is_zero_to_one_unless_it_is_given(here: Path) -> None:
    """Values beyond it are not guessed at: the error says how far they go and how to give the range."""
    file = written("scores.csv", "id,rating\na,1\nb,5\n")
    with pytest.raises(UsageError, match=r"'rating' go from 1 to 5, .*--score 'rating=LOW\.\.HIGH'"):
        import_scores(file, scores=["rating"], out=here / "run")
    run = import_scores(file, scores={"rating": (1, 5)}, out=here / "run")
    assert read_scores(run).columns["foreign:rating"].span == (1.0, 5.0)
    assert run.metrics["foreign:rating"].mean == 3.0


def test_rounding_does_not_put_a_score_outside_its_range(here: Path) -> None:
    """A value at most 1e-9 beyond an end counts as the end; a column with one further out is left out."""
    rows = "q,a,['c'],1.0000000000000002,0.5\nr,a,['c'],-1e-10,1.00000001\n"
    file = written("r.csv", f"question,answer,contexts,answer_relevancy,other\n{rows}")
    run = import_scores(file, out=here / "run")
    assert values(run, "foreign:answer_relevancy") == [1.0, 0.0]
    assert list(run.manifest.left_out) == ["other"]
    with pytest.raises(DataError, match=r"line 3, field 'other': expected a number from 0 to 1, got 1"):
        import_scores(file, scores={"answer_relevancy": (0, 1), "other": (0, 1)}, out=here / "run2")


def test_a_range_may_be_open(here: Path) -> None:
    """An end may be infinite; an infinite score may not."""
    file = written("scores.csv", "id,loss\na,12\nb,0.5\n")
    run = import_scores(file, scores={"loss": (0, inf)}, lower_is_better=["loss"], out=here / "run")
    column = read_scores(run).columns["foreign:loss"]
    assert (column.span, column.higher_is_better) == ((0.0, inf), False)
    assert run.manifest.notes[-1] == "A lower value is the better one of loss."
    file = written("more.csv", "id,loss\na,12\nb,inf\n")
    with pytest.raises(DataError, match=r"line 3"):
        import_scores(file, scores={"loss": (0, inf)}, out=here / "more")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"scores": ["helpfull"]}, "did you mean helpful?"),
        ({"scores": ["zzz"]}, "it has id, helpful."),
        ({"scores": ["helpful"], "id": "key"}, "No column 'key'"),
        ({"scores": ["helpful"], "lower_is_better": ["id"]}, "no column of scores 'id'"),
        ({"scores": {"helpful": (1, 0)}}, "needs a minimum below its maximum"),
        ({}, "name the columns of scores (--score COL"),
    ],
)
def test_wrong_columns_are_named(here: Path, arguments: dict[str, Any], told: str) -> None:
    """The error says what there is."""
    file = written("scores.csv", "id,helpful\na,0.5\n")
    with pytest.raises(UsageError) as caught:
        import_scores(file, out=here / "run", **arguments)
    assert told in str(caught.value)


def test_an_id_that_comes_twice_is_refused(here: Path) -> None:
    """Runs are compared by the ids; no advice is given that this command does not take."""
    file = written("scores.csv", "id,s\na,0.5\na,0.6\n")
    with pytest.raises(DataError, match=r"'a', the id of sample 1") as caught:
        import_scores(file, scores=["s"], out=here / "run")
    assert "skip" not in str(caught.value)


@pytest.mark.parametrize("scores", ["id,s\na,0.6\n", "id,s\nb,0.5\n"], ids=["other scores", "other samples"])
def test_a_run_is_not_overwritten(here: Path, scores: str) -> None:
    """The same import may be repeated; an import of other scores or samples leaves the run as it is."""
    file = written("scores.csv", "id,s\na,0.5\n")
    run = import_scores(file, scores=["s"], out=here / "run")
    before = [(run.path / name).read_bytes() for name in RESULTS]
    import_scores(file, scores=["s"], out=here / "run")
    written("scores.csv", scores)
    with pytest.raises(RunError, match=r"already (holds|contains) a run"):
        import_scores(file, scores=["s"], out=here / "run")
    assert [(run.path / name).read_bytes() for name in RESULTS] == before
    assert (run.path / "seal.json").exists()


def test_a_judged_run_is_not_overwritten(here: Path) -> None:
    """Scores are not imported into the directory of a run that merilo computed, even one of the same samples."""
    rows = [{"id": "a", "retrieved_context_ids": ["x"], "reference_context_ids": ["x"]}]
    merilo.evaluate(rows, metrics=["recall@1"], out=here / "run", storage={"cache": False})
    file = written("scores.csv", "id,s\na,0.5\n")
    with pytest.raises(RunError, match=r"already (holds|contains) a run"):
        import_scores(file, scores=["s"], out=here / "run")
    assert merilo.Run.open(here / "run").complete


@pytest.mark.parametrize("name", ["ragas-0.4.csv", "ragas-0.4.json", "ragas-0.4.jsonl"])
def test_a_result_of_ragas_is_read_as_it_was_saved(here: Path, name: str) -> None:
    """From a data frame as CSV or JSON: its fields are the samples', its numbers from 0 to 1 are scores."""
    run = import_scores(FILES / name, out=here / "run")
    assert run.manifest.origin == f"ragas, {name}"
    assert list(run.metrics) == [
        "foreign:faithfulness",
        "foreign:answer_relevancy",
        "foreign:noise_sensitivity_mode_relevant",
    ]
    assert values(run, "foreign:faithfulness") == [1.0, "not scored there", 0.5, 0.0, 1.0, 1.0]
    assert "--measure" in run.manifest.left_out["rubrics_score"]
    columns = read_scores(run).columns
    assert not columns["foreign:noise_sensitivity_mode_relevant"].higher_is_better
    assert columns["foreign:faithfulness"].higher_is_better
    sample = run.sample("1").sample
    assert sample.user_input == "How long is river 0?"
    assert [context.text for context in sample.contexts] == [
        'River 0, "the long", is 0 km long.\nFish live in it.',
        "It's a town.",
    ]
    assert "Kept in the metadata" not in " ".join(run.manifest.notes).replace("unread: rubrics_score", "")


def test_a_score_of_ragas_may_be_named_with_its_range(here: Path) -> None:
    """What is named is taken, and nothing else."""
    run = import_scores(FILES / "ragas-0.4.csv", scores={"rubrics_score": (1, 5)}, out=here / "run")
    assert values(run, "foreign:rubrics_score") == [4.0, 5.0, 1.0, 3.0, 3.0, 2.0]
    assert list(run.metrics) == ["foreign:rubrics_score"]


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_test_run_of_deepeval_is_read(here: Path, wrapped: bool) -> None:
    """Its test cases are samples by their names; its reasons and errors are kept beside them."""
    record = json.loads((FILES / "deepeval-4.1.json").read_text(encoding="utf-8"))
    file = written("run.json", json.dumps({"testRunData": record} if wrapped else record))
    run = import_scores(file, out=here / "run")
    assert run.manifest.origin == "DeepEval test run, run.json"
    assert values(run, "foreign:Answer_Relevancy") == [1.0, 0.25, "not scored there", 0.5]
    assert values(run, "foreign:Correctness_GEval") == [0.8] * 4
    columns = read_scores(run, cluster="document").columns
    assert {text: column.higher_is_better for text, column in columns.items()} == {
        "foreign:Answer_Relevancy": True,
        "foreign:Correctness_GEval": True,
        "foreign:Hallucination": False,
    }
    sample = run.sample("test_case_2").sample
    assert (sample.user_input, sample.response, sample.reference) == ("How long is river 2?", "2 km.", "2 km")
    assert [context.text for context in sample.contexts] == ["River 2 is long.", "A town."]
    assert [context.text for context in sample.require("reference_contexts")] == ["River 2 is 2 km long."]
    assert sample.metadata["deepeval_errors"] == {"Answer Relevancy": "Timed out."}
    assert sample.metadata["document"] == "d0"


def test_imported_runs_are_shown_and_clustered(here: Path) -> None:
    """The page says whose scores these are, and no judge; other clusters and levels work on them."""
    file = written("scores.csv", "id,s,doc\n" + "".join(f"q{i},{i % 5 / 5},d{i % 8}\n" for i in range(80)))
    run = import_scores(file, scores=["s"], out=here / "run")
    page = str(run_page(run, 100, full=True))
    assert "scores: 80 samples, scores of scores.csv" in page
    assert "judged by" not in page
    assert "no judge was asked" in page
    for text in (" ".join(page.split()), page_text(report_page(report_run(run)))):
        assert "the scores imported from scores.csv" in text
        assert "the judge" not in text
    (piece,) = evidence_groups(SampleDetail.of(run, "q1"), "foreign:s")
    assert piece.said == "no verdict: the score was imported"
    clustered = import_scores(file, scores=["s"], cluster="doc", out=here / "clustered")
    assert clustered.metrics["foreign:s"].clusters == 8


def test_imported_runs_are_compared(here: Path) -> None:
    """Two of them are paired by id, like any other."""
    for name, shift in (("a", 0.0), ("b", 0.2)):
        rows = "".join(f"q{i},{i % 5 / 10 + shift * (i % 7 > 0)}\n" for i in range(60))
        import_scores(written(f"{name}.csv", f"id,s\n{rows}"), scores=["s"], out=here / name)
    found = merilo.compare(here / "b", here / "a")
    assert found.metrics["foreign:s"].difference == pytest.approx(-0.2 * 51 / 60)
    assert found.common == 60
    gates = merilo.gate(here / "b", minimums={"foreign:s": 0.1}, baseline=here / "a", max_drop=0.5)
    for page in (str(found), comparison_markdown(found), comparison_page(found), str(gates_page(gates, 200))):
        text = unescape(" ".join(page.split()))
        assert "not the error of the imported scores" in text
        assert "judge error" not in text
    other = import_scores(written("c.csv", "id,t\nq1,0.5\n"), scores=["t"], out=here / "c")
    with pytest.raises(UsageError, match=r"no metric in common: .* that merilo import --source states"):
        merilo.compare(here / "a", other)


def test_there_is_nothing_to_replay(here: Path) -> None:
    """Scores that merilo did not compute cannot be computed again; the error says whose they are."""
    run = import_scores(FILES / "ragas-0.4.csv", out=here / "run")
    with pytest.raises(UsageError, match=r"its scores were imported from ragas, ragas-0.4.csv"):
        replay_run(run.path)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s", ("s", None)),
        ("s=1..5", ("s", (1.0, 5.0))),
        ("a=b=-1..1", ("a=b", (-1.0, 1.0))),
        ("s=0..", ("s", (0.0, inf))),
        ("s=..0", ("s", (-inf, 0.0))),
    ],
)
def test_a_range_is_written_with_two_dots(text: str, found: tuple[str, object]) -> None:
    """`COL`, or `COL=LOW..HIGH` with an end left out where there is none."""
    assert score_and_range(text) == found


@pytest.mark.parametrize("text", ["s=1", "s=a..b", "=0..1", "s="])
def test_a_wrong_range_is_refused(text: str) -> None:
    """The error shows the form."""
    with pytest.raises(UsageError, match=r"COL=LOW\.\.HIGH"):
        score_and_range(text)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("cut.jsonl", '{"id": 1, "score":\n' * 30, "cut.jsonl, all 30 records: expected "),
        (
            "wide.csv",
            "id,score\n1\n2,3,4\n5,6,7\n",
            "wide.csv, all 3 records: expected a row of 2 cells, as in the header, got one of 1, one of 3",
        ),
        ("arrays.jsonl", "[1, 2]\n" * 3, "arrays.jsonl, all 3 records: expected an object"),
    ],
)
def test_where_no_record_can_be_read_that_is_said(here: Path, name: str, text: str, told: str) -> None:
    """The fault of the records, once, with how many have it and where: not that a column is missing."""
    with pytest.raises(DataError) as error:
        import_scores(written(name, text), id="id", scores=["score"], out=here / "run")
    assert told in str(error.value)
    assert "nothing was imported" in str(error.value)
    assert "No column" not in str(error.value)
    assert len(str(error.value).splitlines()) <= 3
    assert not (here / "run").exists()


FIELDS = ("question", "answer", "contexts", "ground_truth")


def result_of_ragas(
    name: str, scores: list[list[float]], failed: set[int], *, columns: list[str], sorted_to_front: bool
) -> str:
    """A result as ragas 0.1 saves it: up to 0.1.9 the NaN of a failed job is sorted to the front, later it stays."""
    jobs = [value for row in scores for value in row]
    if sorted_to_front:
        numbered = [(-1, nan) if number in failed else (number, value) for number, value in enumerate(jobs)]
        jobs = [value for _, value in sorted(numbered, key=lambda job: job[0])]
    else:
        jobs = [nan if number in failed else value for number, value in enumerate(jobs)]
    width = len(columns)
    lines = [f",{','.join(FIELDS)},{','.join(columns)}"]
    for place in range(len(scores)):
        cells = ["" if isnan(value) else str(value) for value in jobs[place * width : (place + 1) * width]]
        lines.append(f"{place},q{place}?,a{place},['c{place}'],g,{','.join(cells)}")
    return written(name, "\n".join(lines) + "\n")


METRICS = ["faithfulness", "answer_relevancy"]
SCORES = [[place / 10, 1 - place / 10] for place in range(10)]


@pytest.mark.parametrize("failed", [{0}, {7}, {19}, {7, 8}, {3, 11, 15}])
@pytest.mark.parametrize("arguments", [{}, {"id": "question"}, {"scores": ["answer_relevancy"]}], ids=str)
def test_a_result_of_ragas_whose_order_is_lost_is_refused(
    here: Path, failed: set[int], arguments: dict[str, Any]
) -> None:
    """Whichever jobs failed, the first score is missing; neither an id nor naming a score brings the order back."""
    file = result_of_ragas("r.csv", SCORES, failed, columns=METRICS, sorted_to_front=True)
    with pytest.raises(DataError) as caught:
        import_scores(file, out=here / "run", **arguments)
    message = str(caught.value)
    assert message.startswith("r.csv: the first row has no score in 'faithfulness'.")
    assert "raise_exceptions=True" in message
    assert "name its release: --source ragas-" in message
    assert not (here / "run").exists()


@pytest.mark.parametrize("failed", [set[int](), {1}, {5, 6}])
def test_a_result_of_ragas_whose_first_score_is_there_is_in_order(here: Path, failed: set[int]) -> None:
    """A missing score anywhere else shows that no job failed in an old version."""
    file = result_of_ragas("r.csv", SCORES, failed, columns=METRICS, sorted_to_front=False)
    run = import_scores(file, out=here / "run")
    found = values(run, "foreign:answer_relevancy")
    assert found == ["not scored there" if 2 * place + 1 in failed else 1 - place / 10 for place in range(10)]


def test_a_release_that_keeps_the_order_may_lack_the_first_score(here: Path) -> None:
    """Ragas 0.1.10 and later leave the scores in their rows; 0.1.9 does not."""
    file = result_of_ragas("r.csv", SCORES, {0}, columns=METRICS, sorted_to_front=False)
    run = import_scores(file, source="ragas-0.1.10", out=here / "run")
    assert values(run, "foreign:faithfulness")[:2] == ["not scored there", 0.1]
    with pytest.raises(DataError, match="the first row has no score"):
        import_scores(file, source="ragas-0.1.9", out=here / "other")


def test_a_table_that_ragas_did_not_write_may_begin_without_a_score(here: Path) -> None:
    """Columns that anyone may have, and no metric of ragas; results of ragas 0.2 keep their order too."""
    file = written("own.csv", "question,answer,helpful\nq0?,a,\nq1?,b,0.5\n")
    assert values(import_scores(file, scores=["helpful"], out=here / "own"), "foreign:helpful")[1] == 0.5
    file = written("new.csv", "user_input,response,faithfulness\nq0?,a,\nq1?,b,0.5\n")
    assert values(import_scores(file, out=here / "new"), "foreign:faithfulness")[1] == 0.5
