"""Runs with a cascade: thresholds from a pilot of the data, audits, and that no question is paid for twice."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from seals import seal_again
from server import Asked, JudgeServer, prose, status

from merilo.commands.evaluate.options import Options
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.plan.run import run_estimate
from merilo.commands.replay.run import replay_run
from merilo.commands.verify.run import State, verify_run
from merilo.engine.cascade_pilot import first_ids
from merilo.errors import ProviderDown
from merilo.judges.cascade import Cascade, cascade_of
from merilo.judges.llm import LLMJudge, StatementMode
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.kinds.relevance import Relevance, RelevanceVerdict
from merilo.judging.kinds.support import Support, SupportLabel, SupportVerdict
from merilo.providers.openai import OpenAIProvider
from merilo.rendering.cascade import cascade_rows
from merilo.rendering.overview import overview_page, overview_record
from merilo.results.early_stopping import EarlyStop
from merilo.runs.files import SUMMARY
from merilo.runs.shapes import SUMMARY_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict
    from merilo.runs.run import Run

COUNT = 300
PILOT = 120
"""Two thirds of the questions are confident noes, so that about 80 of these are: enough to pass without an error."""
CONFIDENT = 200
UNSURE = COUNT - CONFIDENT
AUDITED = 50


def number_of(text: str) -> int:
    found = re.search(r"Context (\d+)", text)
    assert found is not None
    return int(found[1])


def first_says(question: Question[Any]) -> Verdict:
    """A confident no to two of three contexts, an unsure yes to the third; statements are never sure."""
    if isinstance(question, Support):
        return SupportVerdict(SupportLabel.SUPPORTED, (0,), probability=0.6)
    assert isinstance(question, Relevance)
    if number_of(question.sentences[0]) % 3:
        return RelevanceVerdict(0, (), "confident", 0.02)
    return RelevanceVerdict(1, (0,), "unsure", 0.6)


FIRST = ScriptedJudge.by(first_says, version="1", answers=frozenset({Relevance, Support}))


def agrees(asked: Asked) -> object:
    """The last judge: as the first if that is confident, and grade 2 if it is not."""
    return None if asked.kind != "relevance" else 0 if number_of(asked.user) % 3 else 2


def disagrees(asked: Asked) -> object:
    """The last judge, to which everything is relevant: the first is confidently wrong."""
    return None if asked.kind != "relevance" else 2


IDS = [str(n) for n in range(COUNT)]
IN_PILOT = frozenset(map(int, first_ids(IDS, PILOT, 0)))


def agrees_in_pilot(asked: Asked) -> object:
    """The last judge, which agrees on the pilot by bad luck, and on nothing else."""
    return agrees(asked) if asked.kind == "relevance" and number_of(asked.user) in IN_PILOT else disagrees(asked)


def data(count: int = COUNT) -> list[dict[str, Any]]:
    return [
        {"id": n, "user_input": "What is asked?", "retrieved_contexts": [f"Context {n} says so."]} for n in range(count)
    ]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("MERILO_CACHE", str(tmp_path / "user-cache.sqlite"))


def last(server: JudgeServer) -> LLMJudge:
    return LLMJudge(OpenAIProvider("test-model", base_url=server.base_url), judged=StatementMode.EACH)


def cascade(server: JudgeServer, pilot: int = PILOT) -> Cascade:
    return cascade_of([FIRST, last(server)], pilot=pilot)


async def run(judge: Any, out: Path, records: Any = None, **options: Any) -> Run:
    """Evaluate; whatever the run went through, its summary then follows from its store."""
    options = {"metrics": ["context_relevance"], "cache": False, **options}
    found = await run_evaluation(data() if records is None else records, Options(judge=judge, out=out, **options))
    assert verify_run(found.path).state is State.VERIFIED
    return found


def kept(found: Run) -> tuple[bytes, ...]:
    return tuple((found.path / name).read_bytes() for name in ("manifest.json", "outcomes.jsonl", "summary.json"))


def relevance(found: Run) -> dict[str, Any]:
    (record,) = found.cascades
    kind: dict[str, Any] = record["kinds"]["relevance"]
    return kind


def once(server: JudgeServer) -> bool:
    """Whether no request was sent twice."""
    return max(Counter(server.sent).values()) == 1


def forget(server: JudgeServer) -> None:
    server.asked.clear()
    server.sent.clear()


async def test_a_pilot_finds_who_answers_what(tmp_path: Path) -> None:
    """The first judge answers from the laxest threshold that the pilot shows to hold; the last answers the rest."""
    with JudgeServer(agrees) as server:
        found = await run(cascade(server), tmp_path / "run")
        assert once(server)
        sent = server.count
    kind = relevance(found)
    assert kind["questions"] == COUNT
    assert kind["answered"] == {FIRST.name: CONFIDENT, "openai:test-model": UNSURE}
    assert (kind["pilot"]["drawn"], kind["pilot"]["wanted"]) == (PILOT, PILOT)
    yes, no = kind["pilot"]["classes"]
    assert (yes["verdict"], yes["threshold"]) == ("yes", None)
    assert (no["verdict"], no["threshold"]) == ("no", 0.98)
    in_pilot = sum(bool(n % 3) for n in IN_PILOT)
    (test,) = no["tests"]
    assert (test["answered"], test["errors"], test["passed"]) == (in_pilot, 0, True)
    assert test["upper_limit"] == pytest.approx(1 - 0.025 ** (1 / in_pilot), abs=1e-6)
    assert (kind["audit"]["wanted"], kind["audit"]["asked"], kind["audit"]["failed"]) == (AUDITED, AUDITED, False)
    unsure_in_pilot = PILOT - in_pilot
    assert PILOT + UNSURE - unsure_in_pilot <= sent <= PILOT + UNSURE - unsure_in_pilot + AUDITED
    assert found.usage["requests"] == sent
    assert found.metrics["context_relevance"].mean == pytest.approx(UNSURE / COUNT)


async def test_a_confidently_wrong_judge_answers_nothing(tmp_path: Path) -> None:
    """If the last judge says otherwise, the run has the last judge's mean, whatever the first one's confidence."""
    with JudgeServer(disagrees) as server:
        found = await run(cascade(server), tmp_path / "run")
        assert once(server)
        assert server.count == COUNT
    kind = relevance(found)
    assert kind["answered"] == {FIRST.name: 0, "openai:test-model": COUNT}
    assert all(each["threshold"] is None for each in kind["pilot"]["classes"])
    assert found.metrics["context_relevance"].mean == 1.0


async def test_the_embedded_judge_brings_no_thresholds(tmp_path: Path) -> None:
    """`embedded>MODEL` takes its thresholds from the data: on contexts on the subject without the answer, none."""
    records = [
        {
            "id": n,
            "user_input": f"When was bridge number {n} over the river Aln completed?",
            "retrieved_contexts": [
                f"Bridge number {n} over the river Aln is built of stone and carries a narrow road."
            ],
        }
        for n in range(220)
    ]
    script = tmp_path / "last.jsonl"
    script.write_text(json.dumps({"kind": "relevance", "verdict": {"grade": 0}}) + "\n", encoding="utf-8")
    found = await run(f"embedded>scripted:{script}", tmp_path / "run", records)
    alone = await run("embedded", tmp_path / "alone", records)
    alone_mean = alone.metrics["context_relevance"].mean
    assert alone_mean is not None
    assert alone_mean > 0.4
    assert found.metrics["context_relevance"].mean == 0.0


async def test_an_audit_that_fails_asks_the_last_judge_about_everything(tmp_path: Path) -> None:
    """If a pilot passed by luck, no verdict of the first judge is left in the end, and nothing is paid for twice."""
    notes: list[str] = []

    class Watcher:
        def begin(self, run: Path, samples: int) -> None: ...
        def advance(self, samples: int) -> None:
            notes.append(f"{samples}")

        def note(self, text: str) -> None:
            notes.append(text)

        def end(self) -> None: ...

    with JudgeServer(agrees_in_pilot) as server:
        found = await run(cascade(server), tmp_path / "run", progress=Watcher())
        assert once(server)
        assert server.count == COUNT
        forget(server)
        again = await run(cascade(server), tmp_path / "run")
        assert server.count == 0
    assert notes.count("1") == COUNT
    (note,) = (each for each in notes if each != "1")
    assert "openai:test-model disagrees with" in note
    kind = relevance(found)
    assert kind["answered"] == {FIRST.name: 0, "openai:test-model": COUNT}
    assert kind["pilot"]["classes"][1]["threshold"] == 0.98
    assert kind["audit"]["failed"]
    (own,) = kind["audit"]["classes"]
    assert own["lower_limit"] > 0.05
    expected = [0.0 if n in IN_PILOT and n % 3 else 1.0 for n in range(COUNT)]
    assert [record.get("value") for record in found.records()] == expected
    assert found.complete
    assert kept(again) == kept(found)


STOPS = {
    "in the pilot": 40,
    "after the pilot": PILOT,
    "in the main pass": PILOT + 30,
    "in the audit": PILOT + 70,
    "asking again": COUNT - 30,
}


@pytest.mark.parametrize("says", [agrees, disagrees, agrees_in_pilot])
async def test_a_run_resumes_in_every_phase_to_the_same_bytes(tmp_path: Path, says: Callable[[Asked], object]) -> None:
    """Stopped in the pilot, the main pass, the audit and the second pass, it ends as if it had never been stopped."""
    with JudgeServer(says) as server:
        whole = await run(cascade(server), tmp_path / "whole")
        needed = server.count
        for stop in STOPS.values():
            if stop >= needed:
                continue
            forget(server)
            out = tmp_path / str(stop)
            part = await run(cascade(server), out, max_requests=stop)
            assert not part.complete
            assert server.count == stop
            done = await run(cascade(server), out)
            assert done.complete
            assert kept(done) == kept(whole)
            assert server.count == needed
        forget(server)
        for turn in range(needed // 31 + 2):
            done = await run(cascade(server), tmp_path / "parts", max_requests=31 * (turn + 1))
        assert kept(done) == kept(whole)
        assert once(server)


async def test_order_of_arrival_changes_nothing(tmp_path: Path) -> None:
    """One request at a time or sixteen: the same bytes."""
    with JudgeServer(agrees_in_pilot) as server:
        one = await run(cascade(server), tmp_path / "one", concurrency=1)
        many = await run(cascade(server), tmp_path / "many", concurrency=16)
    assert kept(one) == kept(many)


async def test_an_audit_that_a_limit_stops_is_no_finished_run(tmp_path: Path) -> None:
    """Until the audit is done, the run is incomplete and says why."""
    with JudgeServer(agrees) as server:
        whole = await run(cascade(server), tmp_path / "whole")
        stop = server.count - 5
        part = await run(cascade(server), tmp_path / "part", max_requests=stop)
    assert whole.complete
    assert not part.complete
    assert part.done == COUNT
    assert "the audit of the cascade" in part.usage["stopped"]
    assert "run the same command to resume" in " ".join(str(overview_page(part, 200)).split())


async def test_too_little_data_goes_to_the_last_judge(tmp_path: Path) -> None:
    """With fewer samples than pilot questions nothing is tested, and the page says so."""
    with JudgeServer(agrees) as server:
        found = await run(cascade(server, pilot=200), tmp_path / "run", data(150))
        assert server.count == 150
    kind = relevance(found)
    assert kind["answered"] == {FIRST.name: 0, "openai:test-model": 150}
    assert kind["pilot"] == {"wanted": 200, "drawn": 0, "without_verdict": 0, "classes": []}
    assert "everything goes to openai:test-model" in " ".join(str(overview_page(found, 200)).split())


async def test_pilot_questions_come_from_different_samples(tmp_path: Path) -> None:
    """One question at most is drawn from a sample: with 3 contexts each, 100 samples are too few for a pilot of 120."""
    records = [
        {"id": n, "user_input": "Q?", "retrieved_contexts": [f"Context {3 * n + k} says so." for k in range(3)]}
        for n in range(130)
    ]
    with JudgeServer(agrees) as server:
        few = await run(cascade(server), tmp_path / "few", records[:100])
        enough = await run(cascade(server), tmp_path / "enough", records)
        assert relevance(few)["pilot"]["drawn"] == 0
        assert relevance(enough)["pilot"]["drawn"] == PILOT


async def test_verdicts_are_shared_with_each_judge_alone(tmp_path: Path) -> None:
    """A warm cache answers pilot and audit too; the last judge alone is then asked only what it has not seen."""
    with JudgeServer(agrees) as server:
        cold = await run(cascade(server), tmp_path / "cold", cache=True)
        asked = server.count
        forget(server)
        warm = await run(cascade(server), tmp_path / "warm", cache=True)
        assert server.count == 0
        assert kept(warm) == kept(cold)
        await run(last(server), tmp_path / "alone", cache=True)
        assert server.count == COUNT - asked


SURE_OF = re.compile(r"Fact (\d+)")


def sure_of_most(question: Question[Any]) -> Verdict:
    """A judge of statements that is confident about two of three."""
    assert isinstance(question, Support)
    found = SURE_OF.search(question.statement)
    confident = found is not None and bool(int(found[1]) % 3)
    return SupportVerdict(SupportLabel.SUPPORTED, (0,), probability=0.97 if confident else 0.6)


def responses(samples: int, facts: int = 6) -> list[dict[str, Any]]:
    return [
        {
            "id": n,
            "user_input": "Q?",
            "retrieved_contexts": ["Text."],
            "response": " ".join(f"Fact {n * facts + k} holds." for k in range(facts)),
        }
        for n in range(samples)
    ]


def supported_in_pilot(ids: frozenset[str]) -> Callable[[Asked], object]:
    def says(asked: Asked) -> object:
        found = SURE_OF.search(asked.about)
        if asked.kind != "support" or found is None:
            return None
        number = int(found[1])
        return "supported" if number % 3 and str(number // 6) in ids else "not_stated"

    return says


@pytest.mark.parametrize("lucky", [False, True])
async def test_statements_are_packed_and_none_is_judged_twice(tmp_path: Path, *, lucky: bool) -> None:
    """Unsure statements go to the last judge in packs, pilot questions alone; also if an audit fails."""
    first = ScriptedJudge.by(sure_of_most, version="1", answers=frozenset({Support}))
    ids = first_ids([str(n) for n in range(240)], 120, 0) if lucky else [str(n) for n in range(240)]
    judged: Counter[str] = Counter()
    says = supported_in_pilot(frozenset(ids))

    def counting(asked: Asked) -> object:
        if asked.kind == "support":
            judged[asked.about] += 1
        return says(asked)

    with JudgeServer(counting) as server:
        judge = cascade_of([first, LLMJudge(OpenAIProvider("test-model", base_url=server.base_url))], pilot=120)
        found = await run(judge, tmp_path / "run", responses(240), metrics=["faithfulness"])
        assert any(asked.together for asked in server.asked if asked.kind == "support")
    kind = found.cascades[0]["kinds"]["support"]
    assert kind["audit"]["failed"] is lucky
    assert kind["answered"][first.name] == (0 if lucky else 960)
    assert max(judged.values()) == 1
    assert len(judged) == 1_440 if lucky else len(judged) < 700


async def test_each_judge_of_a_chain_has_its_own_pilot(tmp_path: Path) -> None:
    """Of three judges, the second is tested on what the first leaves, with questions that tested nothing before."""

    def second_says(question: Question[Any]) -> Verdict:
        assert isinstance(question, Relevance)
        number = number_of(question.sentences[0])
        return RelevanceVerdict(2, (0,), "", 0.99) if number % 3 == 0 else RelevanceVerdict(1, (0,), "", 0.7)

    second = ScriptedJudge.by(second_says, version="1", answers=frozenset({Relevance}))
    with JudgeServer(agrees) as server:
        judge = cascade_of([FIRST, second, last(server)], pilot=250)
        found = await run(judge, tmp_path / "run", data(600))
        assert once(server)
    kind = relevance(found)
    assert kind["pilot"]["wanted"] == 500
    assert kind["answered"] == {FIRST.name: 400, second.name: 200, "openai:test-model": 0}
    assert found.metrics["context_relevance"].mean == pytest.approx(200 / 600)


async def test_questions_that_the_last_judge_cannot_answer(tmp_path: Path) -> None:
    """They are left out of pilot and audit and counted; re-asks after unreadable replies change nothing."""
    with JudgeServer(agrees) as server:
        fine = await run(cascade(server), tmp_path / "fine")
    with JudgeServer(agrees) as server:
        server.fail(prose(), share=0.3, seed=1)
        reasked = await run(cascade(server), tmp_path / "reasked")
    assert relevance(reasked) == relevance(fine)
    refused = min(IN_PILOT)
    with JudgeServer(lambda asked: {"grade": 7} if f"Context {refused} " in asked.user else agrees(asked)) as server:
        found = await run(cascade(server), tmp_path / "run")
    assert relevance(found)["pilot"]["without_verdict"] == 1
    assert relevance(found)["failed"] == (refused % 3 == 0)


async def test_retried_failures_measure_the_thresholds_again(tmp_path: Path) -> None:
    """After `retry_failed` the pilot may decide otherwise: no verdict of the cascade under old thresholds is left."""
    broken = {"on": True}

    def says(asked: Asked) -> object:
        if broken["on"] and asked.kind == "relevance" and number_of(asked.user) in IN_PILOT:
            return {"grade": 7}
        return agrees(asked)

    with JudgeServer(says) as server:
        found = await run(cascade(server), tmp_path / "run")
        assert relevance(found)["answered"][FIRST.name] == 0
        broken["on"] = False
        retried = await run(cascade(server), tmp_path / "run", retry_failed=True)
        fresh = await run(cascade(server), tmp_path / "fresh")
    assert relevance(retried)["answered"][FIRST.name] == CONFIDENT
    assert kept(retried) == kept(fresh)


async def test_a_server_that_refuses_everything_ends_the_run(tmp_path: Path) -> None:
    """A wrong key is not a failure of single questions."""
    with JudgeServer() as server:
        server.fail(status(401, "no such key"))
        with pytest.raises(ProviderDown):
            await run(cascade(server), tmp_path / "run")


async def test_a_plan_gives_both_ends(tmp_path: Path) -> None:
    """Amounts count every question; beside them stand pilot, audit and the fewest that can reach the last judge."""
    with JudgeServer(agrees) as server:
        options = Options(judge=cascade(server), metrics=["context_relevance"], cache=False)
        found = await run_estimate(data(), options)
        assert server.count == 0
        (planned,) = found.cascades
        counts = (planned.questions, planned.pilot, planned.audited, planned.fewest)
        assert counts == (COUNT, PILOT, AUDITED, PILOT + AUDITED)
        alone = await run_estimate(data(), Options(judge=last(server), metrics=["context_relevance"], cache=False))
        assert found.typical == alone.typical
        assert found.at_most.requests == alone.at_most.requests
        (small,) = (await run_estimate(data(100), options)).cascades
        assert (small.pilot, small.fewest) == (0, 100)
        out = tmp_path / "run"
        await run(cascade(server), out)
        done = await run_estimate(data(), Options(judge=cascade(server), metrics=["context_relevance"], out=out))
    assert done.typical.requests == 0


async def test_a_plan_counts_pilot_questions_that_leave_their_packs(tmp_path: Path) -> None:
    """Statements come in packs, pilot and audit questions alone: these are requests of their own."""
    with JudgeServer() as server:
        judge = LLMJudge(OpenAIProvider("test-model", base_url=server.base_url))
        first = ScriptedJudge.by(sure_of_most, version="1", answers=frozenset({Support}))
        records, options = responses(150), {"metrics": ["faithfulness"], "cache": False}
        alone = await run_estimate(records, Options(judge=judge, **options))
        found = await run_estimate(records, Options(judge=cascade_of([first, judge], pilot=120), **options))
    assert found.typical.requests == alone.typical.requests + 120 + AUDITED
    del tmp_path


async def test_the_summary_shows_pilot_and_audit(tmp_path: Path) -> None:
    """Page and record of a run hold who answered how much, the thresholds with their tests, the promise, the audit."""
    with JudgeServer(agrees) as server:
        found = await run(cascade(server), tmp_path / "run")
    page = " ".join(str(overview_page(found, 200)).split())
    assert f"relevance: 300 questions, answered by {FIRST.name} 200, openai:test-model 100" in page
    assert f"pilot of {PILOT} questions: {FIRST.name} yes passed on (too few in the pilot);" in page
    assert f"{FIRST.name} no from 0.98 (0 of " in page
    assert f"audit: 0 of {AUDITED} differ from openai:test-model; passed" in page
    assert "of its yes and of its no answers, each at most 5% differ from openai:test-model" in page
    record = overview_record(found)
    assert record["cascades"] == [dict(each) for each in found.cascades]
    json.dumps(record)


def test_runs_of_earlier_versions_are_shown() -> None:
    """Their records hold no pilot: the page gives who answered how much, and says where the thresholds were from."""
    kind = {"questions": 120, "failed": 0, "answered": {"embedded": 80, "openai:m": 40}, "agreement": {}}
    old = {"judge": "embedded>openai:m", "max_error": 0.05, "kinds": {"relevance": kind}, "checked": {"wanted": 50}}
    ((label, text),) = cascade_rows([old])
    assert label == "cascade"
    assert "relevance: 120 questions, answered by embedded 80, openai:m 40" in text
    assert "The thresholds of this run come from other data" in text
    agreement = {"asked": 50, "without_verdict": 0, "agreeing": 45, "share": 0.9, "interval": [0.8, 0.96]}
    old["checked"] = {"wanted": 50, **agreement, "level": 0.95, "same_grade": 40, "graded": 50}
    summary = {"complete": True, "samples": 120, "metrics": [], "cascades": [old]}
    assert not SUMMARY_FIELDS(summary)
    assert SUMMARY_FIELDS({**summary, "cascades": [{**old, "level": 0.95}]})  # one with a pilot has other fields


async def test_a_run_that_its_gates_end_has_no_audit(tmp_path: Path) -> None:
    """Thresholds come from a pilot of all data; after the last decision nothing more is asked, and the run is whole."""
    with JudgeServer(agrees) as server:
        until = EarlyStop({"context_relevance": 0.9})
        found = await run(cascade(server), tmp_path / "run", until_decided=until)
        first = kept(found)
        found = await run(cascade(server), tmp_path / "run", until_decided=until)
    assert kept(found) == first
    assert found.complete
    assert found.done < COUNT
    assert found.until_decided is not None
    assert found.until_decided["gates"][0]["verdict"] == "fail"
    kind = relevance(found)
    assert kind["pilot"]["drawn"] == PILOT
    assert kind["audit"] is None


async def test_a_sample_shows_who_answered(tmp_path: Path) -> None:
    """What was asked names the judge of the cascade that gave the answer, with its raw reply."""
    with JudgeServer(agrees) as server:
        found = await run(cascade(server), tmp_path / "run")
    for sample, name, replies in (("4", FIRST.name, 0), ("3", "openai:test-model", 1)):
        record = found.sample(sample).records["context_relevance"]
        (asked,) = found.asked(record["trail"])
        assert (asked.judge, len(asked.replies)) == (name, replies)
        assert asked.question.role == "judge"
        assert asked.key.hex() == record["trail"][0]


NEW = "context_relevance(unit=context)"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("answered", FIRST.name), 250),
        (("questions",), 301),
        (("audit", "classes", 0, "errors"), 1),
        (("pilot", "classes", 1, "threshold"), 0.5),
    ],
)
async def test_a_forged_share_of_the_cheap_judge_is_found(
    path: tuple[str | int, ...], value: float, tmp_path: Path
) -> None:
    """`merilo verify` counts again who answered, and compares thresholds and audit with the store."""
    with JudgeServer(agrees) as server:
        found = await run(cascade(server), tmp_path / "run")
    summary = json.loads((found.path / SUMMARY).read_text(encoding="utf-8"))
    holder: Any = summary["cascades"][0]["kinds"]["relevance"]
    for key in path[:-1]:
        holder = holder[key]
    assert holder[path[-1]] != value
    holder[path[-1]] = value
    (found.path / SUMMARY).write_text(json.dumps(summary, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    seal_again(found.path)
    verified = verify_run(found.path)
    assert verified.state is State.DIFFERENT
    assert "The answers of a cascade's judges do not follow from the store" in verified.other[0]


@pytest.mark.parametrize("says", [agrees, agrees_in_pilot])
async def test_a_replay_and_a_tape_keep_it(tmp_path: Path, says: Callable[[Asked], object]) -> None:
    """Scores are recomputed bit-equal from run and tape; a metric that is new gets the cascade's own verdicts."""
    with JudgeServer(says) as server:
        found = await run(cascade(server), tmp_path / "run", record=tmp_path / "tape.jsonl.gz")
    assert verify_run(found.path).state is State.VERIFIED
    for source in (found.path, tmp_path / "tape.jsonl.gz"):
        again = replay_run(source)
        assert again.same
        assert again.run.cascades == found.cascades
        other = replay_run(source, metrics=["context_relevance", NEW])
        means = [other.run.metrics["context_relevance"].mean, found.metrics["context_relevance"].mean]
        assert means[0] == means[1]
        new = [record.get("value") for record in other.run.records() if record["metric"] == NEW]
        assert new == [record.get("value") for record in found.records()]
