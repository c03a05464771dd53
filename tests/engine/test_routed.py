"""Runs in which each kind of question has its own judge: keys, the cache, resuming and replay."""

import re
from pathlib import Path
from typing import Any

import pytest
from grouping import grouped
from judged_rivers import canonical, rows, verdict_for
from server import JudgeServer

from merilo.commands.evaluate.options import Options
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.verify.replay import State, verify_run
from merilo.errors import UsageError
from merilo.judges.llm import LLMJudge
from merilo.judges.scripted import ScriptedJudge
from merilo.providers.openai import OpenAIProvider
from merilo.runs.run import Run

METRICS = ("context_relevance", "faithfulness")
RIVERS = ScriptedJudge.by(verdict_for, version="1")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("MERILO_CACHE", str(tmp_path / "user-cache.sqlite"))


async def run(judge: Any, out: Path, records: Any = None, **options: Any) -> Run:
    """Evaluate; the results must follow from the run's store."""
    options = {"metrics": METRICS, **options}
    found = await run_evaluation(
        rows(6) if records is None else records, Options(**grouped(judge=judge, out=out, **options))
    )
    assert verify_run(found.path).state is State.VERIFIED
    return found


def model(server: JudgeServer) -> LLMJudge:
    return LLMJudge(OpenAIProvider("test-model", base_url=server.base_url))


def answered(found: Run) -> dict[str, set[str | None]]:
    """Kind of question → the judges that answered it, as the run's store names them."""
    keys = [key for record in found.records() for key in record.get("trail", ())]
    judges: dict[str, set[str | None]] = {}
    for each in found.asked(keys):
        judges.setdefault(each.question.kind, set()).add(each.judge)
    return judges


async def test_each_question_is_answered_by_the_judge_of_its_kind(tmp_path: Path) -> None:
    """The server is asked about support alone, and the store names the judge of each answer."""
    with JudgeServer() as server:
        found = await run({"support": model(server), "rest": RIVERS}, tmp_path / "run")
        assert server.count > 0
    judges = answered(found)
    assert judges["support"] == {"openai:test-model"}
    assert judges["relevance"] == judges["statements"] == {RIVERS.name}


async def test_a_judge_shares_its_verdicts_between_routes_and_runs(tmp_path: Path) -> None:
    """A route uses what its judge answered alone, and the judge alone uses what it answered on a route."""
    with JudgeServer() as server:
        await run(model(server), tmp_path / "alone")
        count = server.count
        await run({"support": model(server), "rest": "embedded"}, tmp_path / "routed", metrics=["context_relevance"])
        await run({"relevance": model(server), "rest": RIVERS}, tmp_path / "warm", metrics=["context_relevance"])
        assert server.count == count
    with JudgeServer() as server:
        routed = {"support,noncommittal,statements": model(server)}
        await run(routed, tmp_path / "cold", metrics=["faithfulness"])
        count = server.count
        assert count > 0
        await run(model(server), tmp_path / "again", metrics=["faithfulness"])
        assert server.count == count


async def test_scores_are_those_of_the_judges_alone(tmp_path: Path) -> None:
    """A metric whose kinds all go to one judge has that judge's outcomes, bit by bit."""
    with JudgeServer() as server:
        alone = await run("embedded", tmp_path / "alone", metrics=["faithfulness"])
        routed = await run(
            {"relevance": model(server), "rest": "embedded"}, tmp_path / "routed", metrics=["faithfulness"]
        )
        assert server.count == 0
    assert [*alone.records()] == [*routed.records()]


async def test_a_kind_without_a_judge_leaves_metrics_out(tmp_path: Path) -> None:
    """The reason names the route to add; a metric asked for by name is an error."""
    found = await run({"relevance": RIVERS}, tmp_path / "run", metrics=None)
    assert "context_relevance" in found.metrics
    assert re.search(r"cannot answer '\w+' questions \(add --judge \w+=SPEC\)", found.manifest.left_out["faithfulness"])
    with pytest.raises(UsageError, match=r"faithfulness cannot be computed: the judge relevance=.* \(add --judge"):
        await run({"relevance": RIVERS}, tmp_path / "other")


async def test_only_metrics_with_a_weak_judge_are_called_weak(tmp_path: Path) -> None:
    """A metric is weak if the embedded judge decides something for it; splitting into statements is no decision."""
    metrics = ["answer_relevancy"]
    weak = await run({"addresses": "embedded", "rest": RIVERS}, tmp_path / "weak", metrics=metrics)
    other = await run({"addresses,noncommittal": RIVERS, "rest": "embedded"}, tmp_path / "other", metrics=metrics)
    assert weak.manifest.judges["judge"]["weak"] == metrics
    assert "weak" not in other.manifest.judges["judge"]


async def test_an_interrupted_run_ends_with_the_same_bytes(tmp_path: Path) -> None:
    """Stopped by a limit after each few requests, it ends as if it had never been stopped, and pays nothing twice."""
    with JudgeServer() as server:
        judge = {"support,relevance": model(server), "rest": RIVERS}
        whole = await run(judge, tmp_path / "whole", cache=False)
        needed = server.count
        server.sent.clear()
        for limit in range(5, needed + 5, 5):
            parts = await run(judge, tmp_path / "parts", cache=False, max_requests=limit)
            assert parts.complete == (limit >= needed)
        assert len(server.sent) == needed
    assert canonical(parts) == canonical(whole)
