"""Scores over the first contexts of a sample, computed from stored verdicts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from seals import seal_again

import merilo
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.kinds.contexts import Relevance
from merilo.judging.questions import Question
from merilo.metrics.base import JudgesContextsAlone, Score
from merilo.metrics.registry import native, parse_metric
from merilo.results.judged_samples import score_of_first, scores_of_first
from merilo.runs.files import OUTCOMES

METRICS = (
    "context_relevance",
    "context_relevance(unit=context)",
    "context_relevance(unit=context, at=2)",
    "context_relevance(unit=sentence)",
    "context_precision",
    "context_precision(at=2)",
    "context_precision(against=reference)",
    "context_ranking",
    "context_ranking@2",
)
LENGTHS = 5
BLANK = " \u200b "


def rows(length: int = LENGTHS) -> list[dict[str, Any]]:
    """Samples with up to `length` contexts each: some blank, some repeated, some samples with none at all."""
    grades = {"a": "20112", "b": "0010", "c": "11", "d": "", "e": "0", "f": "2020"}
    return [
        {
            "id": name,
            "user_input": f"What is {name}?",
            "reference": f"It is {name}.",
            "retrieved_contexts": [
                BLANK if name == "b" and place == 1 else f"Grade {grade} for {name}. More text."
                for place, grade in enumerate(each)
            ][:length],
        }
        for name, each in grades.items()
    ]


def counted(question: Question[Any]) -> dict[str, Any]:
    """The grade that the context names, or that it is useful if the grade is not 0."""
    grade = int(" ".join(question.sentences).split()[1])
    evidence = [0] if grade else []
    if isinstance(question, Relevance):
        return {"grade": grade, "evidence": evidence, "probability": 0.1 + 0.4 * grade}
    return {"useful": grade > 0, "evidence": evidence, "probability": 0.1 + 0.4 * grade}


def averaged(question: Question[Any]) -> dict[str, Any]:
    """The same verdicts with probabilities that metrics average."""
    return {**counted(question), "averaged": True}


def run_of(out: Path, length: int = LENGTHS, judge: Callable[[Question[Any]], dict[str, Any]] = counted) -> merilo.Run:
    """A run of all these metrics over the first `length` contexts."""
    return merilo.evaluate(
        rows(length), metrics=METRICS, judge=ScriptedJudge.by(judge), out=out, storage={"cache": False}
    )


@pytest.mark.parametrize("judge", [counted, averaged])
def test_verdicts_on_all_contexts_give_the_stored_score(
    judge: Callable[[Question[Any]], dict[str, Any]], tmp_path: Path
) -> None:
    """For counted verdicts and for averaged probabilities, the value over all contexts is the stored one."""
    run = run_of(tmp_path / "run", judge=judge)
    scored = 0
    for each in run.samples:
        for text, outcome in each.outcomes.items():
            if isinstance(outcome, Score):
                again = score_of_first(parse_metric(text), each.sample, outcome, len(each.sample.contexts))
                assert again == outcome
                scored += 1
    assert scored > 4 * len(METRICS) - 4


@pytest.mark.parametrize("judge", [counted, averaged])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_the_first_contexts_score_as_in_a_run_over_them(
    judge: Callable[[Question[Any]], dict[str, Any]], length: int, tmp_path: Path
) -> None:
    """For each metric and sample, the value over the first contexts is that of a run on a data set cut to them."""
    run, short = run_of(tmp_path / "run", judge=judge), run_of(tmp_path / "short", length, judge)
    found = scores_of_first(run, METRICS, {row["id"]: length for row in rows()})
    assert tuple(found) == METRICS
    compared = 0
    for each in short.samples:
        for text, outcome in each.outcomes.items():
            if each.sample.id in found[text]:
                assert found[text][each.sample.id] == outcome
                compared += 1
    assert compared > 4 * len(METRICS) - 4


def test_a_metric_whose_stored_score_cannot_be_computed_again_is_left_out(tmp_path: Path) -> None:
    """A stored score that differs from the formula over its verdicts removes that metric and no other."""
    run = run_of(tmp_path / "run")
    path = run.path / OUTCOMES
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for record in records:
        if (record["sample"], record["metric"]) == ("a", "context_precision"):
            record["value"] -= 0.01
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    found = scores_of_first(merilo.Run.open(seal_again(run.path)), METRICS, {"a": 1})
    assert tuple(found) == tuple(text for text in METRICS if text != "context_precision")


def test_a_missing_verdict_gives_no_score(tmp_path: Path) -> None:
    """Without the verdict on a context there is no value over contexts that include it."""
    each = run_of(tmp_path / "run").sample("a")
    outcome = each.outcomes["context_relevance"]
    assert isinstance(outcome, Score)
    metric, kept = parse_metric("context_relevance"), Score(outcome.value, outcome.evidence[:1])
    first = score_of_first(metric, each.sample, kept, 1)
    assert isinstance(first, Score)
    assert first.value == 1.0
    assert score_of_first(metric, each.sample, kept, 2) is None


def test_metrics_that_judge_each_context_alone_declare_it() -> None:
    """Only relevance, precision and ranking of contexts do; recall and sufficiency read all contexts together."""
    declared = {metric.name for metric in native() if isinstance(metric, JudgesContextsAlone)}
    assert declared == {"context_relevance", "context_precision", "context_ranking"}


@pytest.mark.parametrize("layout", ["as written", "spaced", "escaped"])
def test_the_outcomes_of_some_samples_are_found_in_any_layout(layout: str, tmp_path: Path) -> None:
    """Ids with quotes, commas, backslashes and other scripts are found, also in lines that another tool wrote."""
    ids = ['a","metric":"x', "back\\slash", "\u6c34", "a", "ab"]
    data = [{"id": name, "user_input": "What is it?", "retrieved_contexts": ["Grade 1 for it."]} for name in ids]
    judge = merilo.ScriptedJudge.by(counted)
    run = merilo.evaluate(
        data, metrics=["context_relevance"], judge=judge, out=tmp_path / "run", storage={"cache": False}
    )
    if layout != "as written":
        path = run.path / OUTCOMES
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        path.write_text("".join(json.dumps(each, ensure_ascii=layout == "escaped") + "\n" for each in records), "utf-8")
        run = merilo.Run.open(seal_again(run.path))
    for wanted in (ids, ids[:1], ids[1:3], ["a"], ["absent"]):
        assert [each["sample"] for each in run.records_of(set(wanted))] == [name for name in ids if name in wanted]
