"""One set of verdicts, many definitions: `merilo metrics NAME --on DATA`."""

from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from grouping import grouped

import merilo
from merilo.commands.blocking import run_blocking
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.kinds.contexts import Relevance, Support, Usefulness
from merilo.judging.kinds.responses import Addresses, Noncommittal, Statements
from merilo.judging.questions import Question
from merilo.metrics.registry import parse_metric
from merilo.metrics.text import metric_text
from merilo_published.definition_tables import (
    CommonSamples,
    DefinitionRow,
    DefinitionTables,
    _common_text,
    _compared,
    _shared,
    compute_definitions,
    definitions_page,
    definitions_record,
)
from merilo_published.lineage import FORMS, Lineage, SameVerdicts

CONTEXTS = [
    "Paris is the capital of France. It lies on the Seine. It has two million people.",
    "France is known for its wine.",
    "The capital of France was moved more than once. Kings lived in Versailles.",
]
ROW: dict[str, Any] = {
    "id": "capital",
    "user_input": "What is the capital of France?",
    "retrieved_contexts": CONTEXTS,
    "response": "Paris is the capital. It has ten million people.",
    "reference": "Paris is the capital of France.",
}
SILENT: dict[str, Any] = {**ROW, "id": "silent", "retrieved_contexts": []}


def answer(question: Question[Any]) -> dict[str, Any]:
    """Grades 2, 0 and 1; the first context supports what is said of the capital, and contradicts the people."""
    match question:
        case Relevance():
            grade = 2 if question.sentences[0].startswith("Paris") else int("capital" in question.sentences[0])
            return {"grade": grade, "evidence": [0] if grade else []}
        case Usefulness():
            useful = "Paris" in question.sentences[0]
            return {"useful": useful, "evidence": [0] if useful else []}
        case Statements():
            return {"statements": [{"text": text, "sentence": i} for i, text in enumerate(question.sentences)]}
        case Support():
            told = "capital" in question.statement
            return {"label": "supported" if told else "contradicted", "evidence": [0]}
        case Addresses():
            return {"addresses": "capital" in question.statement}
        case Noncommittal():
            return {"noncommittal": False}
    raise AssertionError(question.kind)


def untold(question: Question[Any]) -> dict[str, Any]:
    """The same answers by a judge that does not tell contradicted from not stated."""
    found = answer(question)
    if isinstance(question, Support):
        found |= {"tells_contradicted": False}
        found |= {} if found["label"] == "supported" else {"label": "unsupported", "evidence": []}
    return found


def computed(
    rows: list[dict[str, Any]], family: str, judge: ScriptedJudge, out: Path, **options: Any
) -> DefinitionTables:
    return run_blocking(compute_definitions(rows, family, judge, **grouped(out=out, cache=False, **options)))


Tables = dict[Lineage, "DefinitionTables"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    judge, folder = ScriptedJudge.by(answer), tmp_path_factory.mktemp("run")
    return {family: computed([ROW, SILENT], family, judge, folder / family) for family in Lineage}


def value(tables: Tables, definition: str, sample: str = "capital") -> float | None:
    found, row = next((found, row) for found in tables.values() for row in found.rows if row.definition == definition)
    outcome = found.run.sample(sample).outcomes[row.metric]
    return outcome.value if isinstance(outcome, merilo.Score) else None


@each_case(
    ("definition", "expected"),
    [
        ("context_relevance", 0.5),
        ("context_relevance(unit=context)", 2 / 3),
        ("context_relevance(unit=sentence)", 2 / 6),
        ("ragas-0.1.9:context_relevancy", 2 / 6),
        ("axion:contextual_relevancy", 2 / 3),
        ("ragas-0.1.9:context_precision", 1.0),
        ("axion:faithfulness", 0.0),
        ("deepeval-4.3.1:faithfulness", 0.5),
        ("axion:answer_relevancy", 0.5),
        ("deepeval-4.3.1:contextual_recall", 1.0),
    ],
)
def test_each_definition_makes_its_own_number_of_the_same_verdicts(
    tables: Tables, definition: str, expected: float
) -> None:
    """Grades 2, 0, 1 over six sentences are 0.5, 2/3, 1/3 or 1, by the definition."""
    assert value(tables, definition) == pytest.approx(expected, abs=1e-9)


@each_case(
    ("definition", "expected"),
    [
        ("context_relevance", None),
        ("ragas-0.1.9:context_relevancy", 0.0),
        ("faithfulness", 0.0),
    ],
)
def test_nothing_retrieved_is_what_the_definition_makes_of_it(
    tables: Tables, definition: str, expected: float | None
) -> None:
    """Where nothing was retrieved some definitions give 0 and others no number."""
    assert value(tables, definition, "silent") == expected


def test_nine_definitions_of_context_relevance_are_compared(tables: Tables) -> None:
    """The family of context relevance has at least nine published definitions, beside our own."""
    rows = tables[Lineage.CONTEXT_RELEVANCE].rows
    assert sum(":" in row.definition for row in rows) >= 9


def test_nothing_is_asked_twice(tables: Tables) -> None:
    """All definitions of a family together ask one question for each thing to know."""
    records = tables[Lineage.CONTEXT_RELEVANCE].run.records()
    assert len({key for record in records for key in record.get("trail", ())}) == len(CONTEXTS)


def test_every_form_says_what_it_leaves_out() -> None:
    """Each form names its formula, what of the definition is left out, and only counts that it has."""
    for form in FORMS.values():
        assert form.formula
        assert form.left_out


def test_a_judge_that_does_not_tell_contradicted_gives_no_biased_number(tmp_path: Any) -> None:
    """Definitions that need contradicted told apart are Undefined for every sample, not for the bad ones only."""
    good = {**ROW, "response": "Paris is the capital."}
    found = computed([good], Lineage.FAITHFULNESS, ScriptedJudge.by(untold), tmp_path / "r")
    tables = {Lineage.FAITHFULNESS: found}
    assert value(tables, "axion:faithfulness") is None
    assert value(tables, "deepeval-4.3.1:faithfulness") is None
    assert value(tables, "ragas-0.1.9:faithfulness") == 1.0


def test_a_form_has_a_text_that_reads_back() -> None:
    """`same_verdicts(of=...)` is a metric's text like any other."""
    for definition in FORMS:
        form = SameVerdicts(of=definition)
        assert parse_metric(metric_text(form)) == form


def test_every_form_is_of_a_published_metric() -> None:
    """What a form is of can be asked for as published."""
    for definition in FORMS:
        assert metric_text(parse_metric(definition)) == definition


# -- the samples over which definitions are compared ----------------------------------------------------


def row_of(tables: DefinitionTables, definition: str) -> DefinitionRow:
    return next(row for row in tables.rows if row.definition == definition)


def graded(grades: list[int | None], tmp_path: Path, **arguments: Any) -> DefinitionTables:
    """One sample for each grade of its only context, None for one without a context, by our own judge's verdicts."""

    def grade(question: Question[Any]) -> dict[str, Any]:
        assert isinstance(question, Relevance)
        found = int(question.sentences[0].split()[1])
        return {"grade": found, "evidence": [0] if found else []}

    rows = [
        {
            "id": f"s{place}",
            "user_input": f"Question {place}?",
            "retrieved_contexts": [] if found is None else [f"Context {found} of {place}."],
            "metadata": {"document": f"d{place % 7}"},
        }
        for place, found in enumerate(grades)
    ]
    judge = ScriptedJudge.by(grade)
    return computed(rows, Lineage.CONTEXT_RELEVANCE, judge, tmp_path / "run", **arguments)


def test_means_are_compared_over_the_samples_that_every_definition_scored(tmp_path: Path) -> None:
    """Ragas scores a sample without contexts 0 and ours leaves it out: over the common samples both have one mean."""
    tables = graded([2, 0, 2, None, None, 2, 0, 1], tmp_path)
    common = tables.common
    assert (common.count, common.most, common.same, dict(common.left_out)) == (6, 8, False, {})
    ours, ragas = row_of(tables, "context_relevance(unit=sentence)"), row_of(tables, "ragas-0.1.9:context_relevancy")
    assert ours.aggregate.mean == pytest.approx(4 / 6)
    assert ragas.aggregate.mean == pytest.approx(4 / 8)
    assert ours.common_mean == ragas.common_mean == pytest.approx(4 / 6)
    assert ours.common_interval == ragas.common_interval == ours.aggregate.interval
    assert {row.compared for row in tables.rows} == {6}


def test_the_rank_correlation_is_over_the_common_samples(tmp_path: Path) -> None:
    """A row that agrees on the common samples has a tau-b of 1, whatever it makes of the others."""
    tables = graded([2, 0, 1, None, None, 2, 0, 1], tmp_path)
    assert row_of(tables, "trulens:context_relevance").tau_b == 1.0
    record = definitions_record(tables)
    assert record["common"] == {"samples": 6, "not_compared": {}, "samples_with_all": 6}
    first = record["definitions"][0]
    assert (first["scored"], first["compared"], first["common_mean"]) == (6, 6, pytest.approx(0.5))


def test_a_definition_with_few_scores_is_named_and_not_compared(tmp_path: Path) -> None:
    """One that scored a rare kind of sample alone does not take the others out of the comparison."""
    rows = [{**ROW, "id": f"s{place}"} for place in range(6)]
    rows += [{**ROW, "id": "nothing", "response": " "}]
    tables = computed(rows, Lineage.FAITHFULNESS, ScriptedJudge.by(untold), tmp_path / "run")
    common = tables.common
    few = {"axion:faithfulness": 1, "deepeval-4.3.1:faithfulness": 1}
    assert (dict(common.left_out), common.count, common.with_all) == (few, 6, 0)
    for definition in few:
        row = row_of(tables, definition)
        assert (row.common_mean, row.common_interval, row.tau_b, row.compared) == (None, None, None, 0)
        assert row.aggregate.scored == 1
    text = str(definitions_page(tables, 200))
    named = "axion:faithfulness (1), deepeval-4.3.1:faithfulness (1)"
    assert f"Not compared, because they scored too few samples: {named}." in text
    assert "over the 6 of 7 samples that every other definition scored" in text


def test_common_intervals_are_clustered_as_the_run_is(tmp_path: Path) -> None:
    """Where all definitions scored all samples, the common interval is that of the run, clusters included."""
    tables = graded([2, 0, 1, 2, 2, 0, 1] * 4, tmp_path, cluster="document")
    assert tables.common.same
    for row in tables.rows:
        assert row.aggregate.clusters == 7
        assert row.common_mean == pytest.approx(row.aggregate.mean, abs=1e-12)
        assert row.common_interval == row.aggregate.interval


def test_samples_that_no_two_definitions_share_are_not_compared() -> None:
    """Two definitions of disjoint samples have nothing in common, which is said instead of a mean."""
    compared = _compared({"a": {"1": 0.0, "2": 1.0}, "b": {"3": 0.0, "4": 1.0}, "c": {}})
    assert [*compared] == ["a", "b"]
    assert _shared(compared.values()) == []
    assert "cannot be compared" in _common_text(CommonSamples(0, 2, {"c": 0}, 0, same=False), 4)


def test_the_page_shows_each_mean_with_its_samples(tmp_path: Path) -> None:
    """In 100 columns each row has its own mean with its coverage, and the mean over the common samples."""
    text = str(definitions_page(graded([2, 0, 2, None, None, 2, 0, 1], tmp_path), 100))
    assert "over the 6 of 8 samples that every definition scored." in text
    line = next(each for each in text.splitlines() if each.startswith("ragas-0.1.9:context_relevancy "))
    assert line.split()[1:4] == ["0.500", "8/8", "0.667"]
    assert max(map(len, text.splitlines()[:20])) <= 100
