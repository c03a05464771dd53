"""Runs with a cascade: who is asked how often, what is checked, and that neither limits nor caches change a score."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from server import Asked, JudgeServer, prose, status

from merilo.errors import ProviderDown
from merilo.estimate import run_estimate
from merilo.evaluation import run_evaluation
from merilo.judges.cascade import Cascade, Stage
from merilo.judges.llm import Judged, LLMJudge
from merilo.judges.reliability import Sure
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.questions import Question, Relevance, Support
from merilo.judging.verdicts import RelevanceVerdict, SupportLabel, SupportVerdict, Verdict
from merilo.options import Options
from merilo.providers.openai import OpenAIProvider
from merilo.replaying.replay import replay_run
from merilo.reports.overview import overview_page, overview_record

if TYPE_CHECKING:
    from pathlib import Path

    from merilo.runs.run import Run

COUNT = 120
SURE = 80
"""Contexts of which the first judge is sure; of every tenth of them it is wrong in the eyes of the last."""
CHECKED = 50
REST = COUNT - SURE


def first_says(question: Question[Any]) -> Verdict:
    """Sure of contexts below SURE, where even ones are relevant to it; of statements never."""
    if isinstance(question, Support):
        return SupportVerdict(SupportLabel.SUPPORTED, (0,), probability=0.6)
    assert isinstance(question, Relevance)
    number = int(question.sentences[0].split()[1])
    if number >= SURE:
        return RelevanceVerdict(1, (0,), "unsure", 0.6)
    even = number % 2 == 0
    return RelevanceVerdict(int(even), (0,) if even else (), "sure", 0.97 if even else 0.02)


FIRST = ScriptedJudge.by(first_says, version="1", answers=frozenset({Relevance, Support}))


def last_says(asked: Asked) -> object:
    """As the first, but for every tenth context, and all of which the first is unsure have grade 2."""
    if asked.kind != "relevance":
        return None
    number = int(asked.user.split("Context ", 1)[1].split()[0].rstrip("."))
    if number >= SURE:
        return 2
    return int((number % 2 == 0) != (number % 10 == 0))


def data(count: int = COUNT) -> list[dict[str, Any]]:
    return [
        {
            "id": n,
            "user_input": "What is asked?",
            "retrieved_contexts": [f"Context {n} says so."],
            "response": f"R {n}.",
        }
        for n in range(count)
    ]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("MERILO_CACHE", str(tmp_path / "user-cache.sqlite"))


def last(server: JudgeServer) -> LLMJudge:
    return LLMJudge(OpenAIProvider("test-model", base_url=server.base_url), judged=Judged.EACH)


def cascade(server: JudgeServer, **fields: Any) -> Cascade:
    sure = {"relevance": Sure(0.9, SURE / COUNT, 100, 1)}
    return Cascade((Stage(FIRST, sure),), last(server), **fields)


async def run(judge: Any, out: Path, records: Any = None, **options: Any) -> Run:
    options = {"metrics": ["context_relevance"], "cache": False, **options}
    return await run_evaluation(data() if records is None else records, Options(judge=judge, out=out, **options))


def kept(found: Run) -> tuple[bytes, bytes]:
    return tuple((found.path / name).read_bytes() for name in ("outcomes.jsonl", "summary.json"))  # type: ignore[return-value]  # two names


async def test_who_answers_what(tmp_path: Path) -> None:
    """The last judge gets what the first is unsure of, and fifty of the others; scores are of whoever answered."""
    with JudgeServer(last_says) as server:
        found = await run(cascade(server), tmp_path / "run")
        assert server.count == REST + CHECKED
    (record,) = found.cascades
    relevance = record["kinds"]["relevance"]
    assert relevance["questions"] == COUNT
    assert relevance["answered"] == {FIRST.name: SURE, "openai:test-model": REST}
    assert record["checked"]["wanted"] == record["checked"]["asked"] == CHECKED
    wrong = CHECKED - record["checked"]["agreeing"]
    assert 0 < wrong <= SURE / 10
    low, high = record["checked"]["interval"]
    assert low < 1 - wrong / CHECKED == record["checked"]["share"] < high
    assert found.metrics["context_relevance"].mean == pytest.approx((SURE / 2 * 0.5 + REST * 1.0) / COUNT)
    assert found.usage["requests"] == REST + CHECKED


async def test_what_is_checked_changes_no_score(tmp_path: Path) -> None:
    """Without any check the outcomes are the same bytes; with a share of 1 everything is checked."""
    with JudgeServer(last_says) as server:
        usual = await run(cascade(server), tmp_path / "usual")
        server.asked.clear()
        none = await run(cascade(server, checked_share=0.0, least_checked=0), tmp_path / "none")
        assert server.count == REST
        server.asked.clear()
        every = await run(cascade(server, checked_share=1.0), tmp_path / "all")
        assert server.count == COUNT

    def outcomes(found: Run) -> list[Any]:
        return [(record["outcome"], record.get("value")) for record in found.records()]

    assert outcomes(usual) == outcomes(none) == outcomes(every)
    assert every.cascades[0]["checked"]["agreeing"] == SURE - SURE / 10
    assert none.cascades[0]["checked"]["share"] is None


async def test_a_stopped_run_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    """Stopped among the samples and again among the checks, it ends as if it had not been, and asks nothing twice."""
    with JudgeServer(last_says) as server:
        whole = await run(cascade(server), tmp_path / "whole")
        server.asked.clear()
        first = await run(cascade(server), tmp_path / "parts", max_requests=25)
        assert not first.complete
        second = await run(cascade(server), tmp_path / "parts", max_requests=50)
        assert second.complete
        assert second.cascades[0]["checked"]["asked"] == 50 - REST
        assert "go on" in str(overview_page(second, 80)) or "goes on" in str(overview_page(second, 80))
        third = await run(cascade(server), tmp_path / "parts")
        assert server.count == REST + CHECKED
    assert kept(third) == kept(whole)


async def test_verdicts_are_shared_with_each_judge_alone(tmp_path: Path) -> None:
    """A warm cache answers all of it, checks too; the last judge alone is then asked only what it has not seen."""
    with JudgeServer(last_says) as server:
        cold = await run(cascade(server), tmp_path / "cold", cache=True)
        server.asked.clear()
        warm = await run(cascade(server), tmp_path / "warm", cache=True)
        assert server.count == 0
        assert kept(warm) == kept(cold)
        await run(last(server), tmp_path / "alone", cache=True)
        assert server.count == COUNT - REST - CHECKED
        server.asked.clear()
        await run(cascade(server, seed=1), tmp_path / "other", cache=True)
        assert server.count == 0  # what another seed chooses has been asked meanwhile


async def test_statements_that_stay_are_judged_together(tmp_path: Path) -> None:
    """Statements of which the first is unsure go to the last in one request, as if it were alone."""
    record = {"id": 1, "user_input": "Q?", "retrieved_contexts": ["Text."], "response": "One. Two. Three."}
    with JudgeServer() as server:
        provider = OpenAIProvider("test-model", base_url=server.base_url)
        judge = Cascade((Stage(FIRST, {"support": Sure(0.9, 0.5, 100, 1)}),), LLMJudge(provider))
        found = await run(judge, tmp_path / "run", [record], metrics=["faithfulness"])
        (asked,) = (each for each in server.asked if each.kind == "support")
        assert asked.together
    assert found.cascades[0]["kinds"]["support"]["answered"]["openai:test-model"] == 3


async def test_unreadable_replies_of_the_last_fail(tmp_path: Path) -> None:
    """A question that the last judge cannot answer fails; re-asks and faults are its own affair."""
    with JudgeServer(last_says) as server:
        server.fail(prose(), share=0.3, seed=1)
        fine = await run(cascade(server), tmp_path / "fine")
        assert fine.metrics["context_relevance"].failed == 0
    with JudgeServer(lambda asked: {"grade": 7} if "Context 100 " in asked.user else last_says(asked)) as server:
        found = await run(cascade(server), tmp_path / "run")
    assert found.metrics["context_relevance"].failed == 1
    assert found.cascades[0]["kinds"]["relevance"]["failed"] == 1
    assert found.cascades[0]["kinds"]["relevance"]["answered"]["openai:test-model"] == REST - 1


async def test_a_server_that_refuses_everything_ends_the_run(tmp_path: Path) -> None:
    """A wrong key is no failure of single questions, also where the first judge has answered many."""
    with JudgeServer() as server:
        server.fail(status(401, "no such key"))
        with pytest.raises(ProviderDown):
            await run(cascade(server), tmp_path / "run")


async def test_a_plan_counts_what_is_likely_and_bounds_it(tmp_path: Path) -> None:
    """Typical: what is not answered before, by the share measured, and the check; at most: all of it, at its worst."""
    with JudgeServer(last_says) as server:
        options = Options(judge=cascade(server), metrics=["context_relevance"], cache=False)
        found = await run_estimate(data(), options)
        assert server.count == 0
        (told,) = found.cascades
        assert (round(told.questions), round(told.answered), round(told.checked)) == (COUNT, SURE, CHECKED)
        assert found.typical.requests == pytest.approx(REST + CHECKED)
        assert found.at_most.requests >= COUNT
        alone = await run_estimate(data(), Options(judge=last(server), metrics=["context_relevance"], cache=False))
        assert found.at_most.requests == alone.at_most.requests
        assert found.typical.input_tokens == pytest.approx(alone.typical.input_tokens * (REST + CHECKED) / COUNT)
        out = tmp_path / "run"
        await run(cascade(server), out)
        done = await run_estimate(data(), Options(judge=cascade(server), metrics=["context_relevance"], out=out))
    assert done.typical.requests == 0


async def test_the_summary_tells_it(tmp_path: Path) -> None:
    """The page and the record of a run say who answered how much, and the realised agreement with its interval."""
    with JudgeServer(last_says) as server:
        found = await run(cascade(server), tmp_path / "run")
    page = " ".join(str(overview_page(found, 100)).split())
    assert f"relevance: 120 questions, answered by {FIRST.name} 80, openai:test-model 40" in page
    assert "checked by lot: openai:test-model agrees with" in page
    record = overview_record(found)
    assert record["cascades"] == [dict(each) for each in found.cascades]
    json.dumps(record)


async def test_a_sample_shows_who_answered(tmp_path: Path) -> None:
    """What was asked names the judge of the cascade that gave the answer, with its raw reply."""
    with JudgeServer(last_says) as server:
        found = await run(cascade(server), tmp_path / "run")
    for sample, name, replies in (("3", FIRST.name, 0), ("100", "openai:test-model", 1)):
        record = found.sample(sample).records["context_relevance"]
        (asked,) = found.asked(record["trail"])
        assert (asked.judge, len(asked.replies)) == (name, replies)
        assert asked.question.role == "judge"
        assert asked.key.hex() == record["trail"][0]


async def test_a_replay_keeps_what_is_known_of_it(tmp_path: Path) -> None:
    """Scores are recomputed bit-equal, and who answered what is told as it was recorded."""
    with JudgeServer(last_says) as server:
        found = await run(cascade(server), tmp_path / "run")
    again = replay_run(found.path)
    assert again.same
    assert again.run.cascades == found.cascades


async def test_thresholds_that_do_not_fit_are_told(tmp_path: Path) -> None:
    """Where the last judge disagrees with much of what was checked, the page says what to do."""
    with JudgeServer(lambda _: 2) as server:
        found = await run(cascade(server), tmp_path / "run")
    assert found.cascades[0]["checked"]["interval"][1] < 0.9
    assert "--max-error" in str(overview_page(found, 100))
