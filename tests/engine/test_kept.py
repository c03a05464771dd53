"""What is kept: resumed runs, recorded failures, the cache, and flights that outlive their plan."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from judged_rivers import Evaluate, canonical, rows, verdict_for
from plan_running import run_plan
from server import JudgeServer

import merilo
from merilo.data.sample import Sample
from merilo.engine.answer_store import AnswerStore, JudgeRoles
from merilo.engine.dispatcher import Dispatcher
from merilo.engine.drivers import AsyncDriver
from merilo.engine.plan_run import PlanRun
from merilo.engine.rate_limits import RequestLimits
from merilo.judges.callables import CallableJudge
from merilo.judging.kinds.measured import Embeddings, Similarities
from merilo.judging.kinds.responses import Completion
from merilo.judging.questions import Question
from merilo.judging.registry import KINDS
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.registry import parse_metric
from merilo.runs.files import RunLock
from merilo.runs.records import Exchange
from merilo.runs.store import FORMAT, Store


def asked(tmp_path: Path) -> int:
    log = tmp_path / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_a_run_is_resumed_with_other_data_never(evaluated: Evaluate, tmp_path: Path) -> None:
    """A directory with a run of other data is refused, and that run is left as it was."""
    run = evaluated(rows(3), out=tmp_path / "r")
    before = canonical(run)
    with pytest.raises(merilo.RunError, match="holds a run that differs in data"):
        evaluated(rows(4), out=tmp_path / "r")
    assert canonical(run) == before
    assert len(list(run.samples)) == 3


def test_a_run_is_resumed_with_another_judge_never(evaluated: Evaluate, tmp_path: Path) -> None:
    """Where only the address of the judge is another, the message names both."""
    with JudgeServer() as there, JudgeServer() as here:
        options = {"judge": "openai:m", "metrics": ["context_relevance"], "out": tmp_path / "r"}
        evaluated(rows(3), base_url=there.base_url, **options)
        said = f'differs in provider.base_url "{there.base_url}" there, "{here.base_url}" here). Choose'
        with pytest.raises(merilo.RunError, match=re.escape(said)):
            evaluated(rows(3), base_url=here.base_url, **options)
        assert here.count == 0


def test_failures_are_kept_until_asked_again(evaluated: Evaluate, tmp_path: Path) -> None:
    """Resuming keeps recorded failures; retry_failed asks them again and says how many."""
    broken = [True]

    def answer(question: Question[Any]) -> dict[str, Any] | Failure:
        return Failure(FailureKind.REFUSED, "not now") if broken[0] else verdict_for(question)

    judge = merilo.ScriptedJudge.by(answer)
    assert (
        evaluated(rows(2), judge=judge, metrics=["context_relevance"], out=tmp_path / "r")
        .metrics["context_relevance"]
        .failed
        == 2
    )
    broken[0] = False
    kept = evaluated(rows(2), judge=judge, metrics=["context_relevance"], out=tmp_path / "r")
    assert kept.metrics["context_relevance"].failed == 2
    again = evaluated(rows(2), judge=judge, metrics=["context_relevance"], out=tmp_path / "r", retry_failed=True)
    assert again.metrics["context_relevance"].failed == 0


def test_a_judge_without_version_is_not_cached(evaluated: Evaluate, tmp_path: Path) -> None:
    """A plain callable is asked anew in each run: nobody can see whether its code has changed."""

    async def judge(question: Question[Any]) -> dict[str, Any]:
        return verdict_for(question)

    cache = tmp_path / "cache.sqlite"
    evaluated(rows(2), judge=judge, cache=cache)
    assert evaluated(rows(2), judge=judge, cache=cache).usage["cached"] == 0


def test_a_flight_outlives_the_plan_that_asked(tmp_path: Path) -> None:
    """When the plan that asked first is cancelled, the one that waits for the same verdict still gets it."""
    calls = 0

    async def judge(question: Question[Any]) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.05)
        return verdict_for(question)

    async def both() -> PlanRun:
        answers = AnswerStore(
            JudgeRoles({"judge": CallableJudge(judge)}), Store.open(tmp_path / "s", create=True), None
        )
        metric = parse_metric("context_relevance")
        sample = Sample("1", user_input="q?", retrieved_contexts=["a river"])
        async with Dispatcher(RequestLimits(concurrency=2)) as dispatcher:
            driver = AsyncDriver(answers, dispatcher)
            first = asyncio.create_task(run_plan(driver, PlanRun(metric, "m", sample)))
            second = asyncio.create_task(run_plan(driver, PlanRun(metric, "m", sample)))
            await asyncio.sleep(0.01)
            first.cancel()
            return await second

    result = asyncio.run(both()).result()
    assert result.outcome.value == 0.5
    assert calls == 1


def test_a_run_has_one_writer(evaluated: Evaluate, tmp_path: Path) -> None:
    """A second process that wants to write the run is told so."""
    path = tmp_path / "busy"
    path.mkdir()
    with RunLock(path), pytest.raises(merilo.RunError, match="being written by another process"):
        evaluated(rows(1), out=path)


QUESTIONS: list[Question[Any]] = [
    *(kind("text", ("a", "b")) for kind in KINDS.values() if kind.kind in {"relevance", "support", "sufficiency"}),
    KINDS["usefulness"]("q", "r", ("s",)),
    KINDS["statements"](("One.", "Two."), "q"),
    KINDS["addresses"]("s", "q"),
    KINDS["noncommittal"]("q", "r", language="ru", draw=3, role="second"),
    Completion("published/x.v1", ("question",), ("q",), temperature=0.3),
    Embeddings(("a", "б")),
    Similarities(("a",), ("b", "c")),
]


@each_case("question", QUESTIONS)
def test_questions_are_read_back_as_asked(question: Question[Any], tmp_path: Path) -> None:
    """A stored question is read back equal, for every kind, with its guess as answer."""
    store = Store.open(tmp_path / "s", create=True)
    store.keep([(b"k", question, question.guess())], Exchange("j", "the rubric"))
    store.commit()
    stored = store.asked(b"k")
    assert stored is not None
    assert stored.question == question
    assert stored.answer == question.guess()
    assert stored.rubric == "the rubric"


def test_equal_completions_have_one_key() -> None:
    """A temperature of 1 is one of 1.0: equal questions have equal content."""
    whole, broken = (Completion("r", ("q",), ("v",), temperature) for temperature in (1, 1.0))
    assert whole == broken
    assert whole.content == broken.content


def test_the_store_refuses_a_newer_format(evaluated: Evaluate) -> None:
    """A run of a newer format is refused with the advice to upgrade."""
    run = evaluated(rows(1))
    manifest = json.loads((run.path / "manifest.json").read_text())
    (run.path / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    with pytest.raises(merilo.RunError, match=f"has format 99; this merilo reads format {FORMAT}"):
        merilo.Run.open(run.path)
