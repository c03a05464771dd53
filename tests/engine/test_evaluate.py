"""`merilo.evaluate` from data to a finished run."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from judged_rivers import Evaluate, canonical, rows, verdict_for

import merilo
from merilo.judging.ask import Plan, ask
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import Card, MetricDefaults, Score, Undefined

_CORE_OF_ANSWERS = ("answering", "context_sufficiency", "context_relevance", "faithfulness")
_CORE_OF_RETRIEVAL = ("context_sufficiency", "context_relevance", "context_precision", "context_ranking")


def test_a_core_set_by_default_and_all_on_demand(evaluated: Evaluate) -> None:
    """Without a choice a core set is computed, which depends on the fields; `all` is what data and judge allow."""
    answered = [*_CORE_OF_ANSWERS, "context_recall"]
    assert list(evaluated(rows(10)).metrics) == answered
    bare = [{key: row[key] for key in ("id", "user_input", "retrieved_contexts")} for row in rows(3)]
    assert list(evaluated(bare).metrics) == [*_CORE_OF_RETRIEVAL]
    run = evaluated(rows(10), metrics=["all"])
    assert list(run.metrics) == [
        "answering",
        "context_relevance",
        "context_ranking",
        "context_precision",
        "context_recall",
        "context_sufficiency",
        "context_entity_recall",
        "context_utilization",
        "faithfulness",
        "noise_sensitivity",
        "answer_relevancy",
        "answer_completeness",
        "answer_correctness",
    ]
    assert run.complete


def test_left_out_metrics_say_why(evaluated: Evaluate) -> None:
    """A metric whose fields no sample has is left out by name, with the reason."""
    data = [{key: row[key] for key in ("id", "user_input", "retrieved_contexts")} for row in rows(3)]
    run = evaluated(data, metrics=["all"])
    assert run.manifest.left_out["faithfulness"] == "no sample has response"
    assert "context_precision" in run.metrics


def test_a_metric_asked_for_by_name_must_be_possible(evaluated: Evaluate) -> None:
    """Asked for by name, an impossible metric is an error that says what is missing."""
    with pytest.raises(merilo.UsageError, match=r"context_recall needs reference\."):
        evaluated([{"user_input": "q", "retrieved_contexts": ["c"]}], metrics=["context_recall"])


def test_equal_input_gives_equal_bytes(evaluated: Evaluate) -> None:
    """Two evaluations of the same data write the same manifest, outcomes and summary."""
    assert canonical(evaluated(rows(30))) == canonical(evaluated(rows(30)))


def test_works_inside_a_running_loop(evaluated: Evaluate) -> None:
    """`evaluate` can be called while an event loop runs, as in a notebook."""

    async def cell() -> merilo.Run:
        return evaluated(rows(4))

    assert asyncio.run(cell()).complete


def test_samples_carry_typed_outcomes(evaluated: Evaluate) -> None:
    """A run gives each sample with Score, Undefined or Failed, and evidence with its verdict."""
    first, second = list(evaluated(rows(2), metrics=["faithfulness"]).samples)
    assert first.outcomes["faithfulness"] == Undefined("the response declines to answer and makes no claim")
    score = second.outcomes["faithfulness"]
    assert isinstance(score, Score)
    assert score.value == 0.0
    assert [piece.text for piece in score.evidence] == ["River 1 is 1 km long.", "It is blue."]


def test_evidence_leads_to_the_question(evaluated: Evaluate) -> None:
    """From a piece of evidence the trail leads to the question as asked and its answer."""
    run = evaluated(rows(1), metrics=["context_relevance"])
    (record,) = run.records()
    (asked,) = run.asked([record["evidence"][0]["question"] or ""])
    assert isinstance(asked.question, Relevance)
    assert asked.question.sentences[0] == "River 0 is a river."
    assert isinstance(asked.answer, RelevanceVerdict)
    assert asked.answer.reason == "about a river"


def test_a_failure_fails_the_plan_whole(evaluated: Evaluate) -> None:
    """One question without a verdict makes the outcome Failed, counted, with bounds from worst to best."""

    def judge(question: Question[Any]) -> dict[str, Any] | Failure:
        if "River 1 " in repr(question):
            return Failure(FailureKind.REFUSED, "it will not say")
        return verdict_for(question)

    run = evaluated(rows(4), judge=merilo.ScriptedJudge.by(judge), metrics=["context_relevance"])
    aggregate = run.metrics["context_relevance"]
    assert (aggregate.scored, aggregate.failed) == (3, 1)
    assert aggregate.reasons == {"it will not say": 1}
    assert aggregate.mean is not None
    assert aggregate.bounds == (pytest.approx(aggregate.mean * 3 / 4), pytest.approx(aggregate.mean * 3 / 4 + 1 / 4))


@dataclass(frozen=True)
class Broken(MetricDefaults):
    """Raises on the second sample."""

    name = "broken"
    version = 1
    card = Card("broken on purpose")
    needs = frozenset({"user_input"})
    asks = frozenset({Relevance})

    def plan(self, sample: merilo.Sample) -> Plan[Score | Undefined]:
        verdict = yield from ask(Relevance(sample.require("user_input"), ("a river",)))
        return Score(1 / (0 if sample.id == "s1" else verdict.grade))


def test_a_broken_metric_costs_its_outcome_only(evaluated: Evaluate, caplog: pytest.LogCaptureFixture) -> None:
    """An exception in a metric becomes Failed with its text, the traceback is logged, and the run goes on."""
    run = evaluated(rows(3), metrics=[Broken()])
    kinds = [record["outcome"] for record in run.records()]
    assert kinds == ["score", "failed", "score"]
    assert "broken raised ZeroDivisionError" in next(iter(run.metrics["broken"].reasons))
    assert "ZeroDivisionError" in caplog.text


def test_a_broken_judge_fails_its_questions(evaluated: Evaluate, caplog: pytest.LogCaptureFixture) -> None:
    """An exception in a judge becomes a failure of the question it was asked."""

    def judge(question: Question[Any]) -> dict[str, Any]:
        raise LookupError("no such page")

    run = evaluated(rows(2), judge=merilo.ScriptedJudge.by(judge), metrics=["context_relevance"])
    assert run.metrics["context_relevance"].failed == 2
    assert "LookupError: no such page" in next(iter(run.metrics["context_relevance"].reasons))
    assert "no such page" in caplog.text


def test_a_judge_that_exits_ends_the_run(tmp_path: Path) -> None:
    """What is no ordinary error in a callable, such as an exit, comes out of the run, which does not hang."""

    async def exits(_: Question[Any]) -> RelevanceVerdict:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        merilo.evaluate(
            rows(2), metrics=["context_relevance"], judge=exits, out=tmp_path / "run", storage={"cache": False}
        )


def test_a_metric_is_found_by_its_name_alone(evaluated: Evaluate) -> None:
    """Where a name stands for one metric of the run it will do as key; where for several, the error names them."""
    relevance = ("context_relevance(unit=context)", "context_relevance(unit=sentence)")
    run = evaluated(rows(3), metrics=["context_precision(against=reference)", *relevance])
    assert run.metrics["context_precision"] is run.metrics["context_precision(against=reference)"]
    (first, *_) = run.samples
    assert first.outcomes["context_precision"] == first.outcomes["context_precision(against=reference)"]
    with pytest.raises(KeyError, match="context_recall"):
        _ = run.metrics["context_recall"]
    with pytest.raises(KeyError, match=r"did you mean context_relevance\(unit=context\) or context_rel"):
        _ = run.metrics["context_relevance"]


def test_a_sample_is_recorded_and_resumed(evaluated: Evaluate, tmp_path: Path) -> None:
    """The manifest names size and seed; the same call resumes the run, and another seed is other data."""
    run = evaluated(rows(30), reading={"sample": 2, "seed": 7}, out=tmp_path / "run")
    assert "2 of 30 records were drawn at random (--sample 2 --seed 7)." in run.manifest.notes
    again = evaluated(rows(30), reading={"sample": 2, "seed": 7}, out=tmp_path / "run")
    assert again.manifest.fingerprint == run.manifest.fingerprint
    with pytest.raises(merilo.RunError, match="differs in data"):
        evaluated(rows(30), reading={"sample": 2, "seed": 8}, out=tmp_path / "run")


def test_resuming_keeps_the_manifest(evaluated: Evaluate, tmp_path: Path) -> None:
    """The same samples from another source resume the run and leave its manifest as it was."""
    (tmp_path / "named.jsonl").write_text("\n".join(json.dumps(row) for row in rows(3)))
    first = evaluated(tmp_path / "named.jsonl", out=tmp_path / "r")
    before = canonical(first)
    assert canonical(evaluated(rows(3), out=tmp_path / "r")) == before
