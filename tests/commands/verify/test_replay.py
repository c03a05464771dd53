"""The scores of a run, recomputed bit for bit without a call."""

import gc
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest
from grouping import grouped
from judged_rivers import canonical, rows, verdict_for
from seals import seal_again
from server import Asked, JudgeServer, contradiction, drop_verdicts, malformed, refusal, says, truncated

import merilo
from merilo.commands.verify.replay import replay_run
from merilo.data.sample import Sample
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.ask import Plan, ask
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict
from merilo.judging.questions import Question
from merilo.judging.reply_parsing import AskedForm
from merilo.metrics.base import MetricDefaults, Score
from merilo.metrics.context_metrics import ContextRelevance

NATIVE = ("context_relevance", "faithfulness", "answer_relevancy")
PUBLISHED = (
    "ragas-0.1.9:answer_relevancy",
    "ragas-0.1.9:faithfulness",
    "nvidia:context_relevance",
    "deepeval-4.3.1:contextual_relevancy",
    "spring-ai-ragas:context_relevance",
    "ragas-0.4.3:collections.faithfulness",
)


@pytest.fixture
def judge() -> ScriptedJudge:
    return ScriptedJudge.by(verdict_for, version="1")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Once called, nothing can open a socket any more."""

    class Closed(socket.socket):
        def __init__(self, *_: Any, **__: Any) -> None:
            raise AssertionError("a replay opened a socket")

    def close() -> None:
        monkeypatch.setattr(socket, "socket", Closed)

    return close


def sulky(question: Question[Any]) -> dict[str, Any] | merilo.Failure:
    """Verdicts by the words of the question, and none on some of them."""
    texts = [text for name in ("statement", "user_input") if (text := getattr(question, name, ""))]
    if any("3" in text for text in texts):
        return merilo.Failure("refused", "It will not.")  # type: ignore[arg-type]  # a StrEnum's value is stored alike
    return verdict_for(question)


def scripted(out: Path, **arguments: Any) -> merilo.Run:
    return merilo.evaluate(
        rows(12), **grouped(judge=ScriptedJudge.by(sulky, version="1"), out=out, cache=False, **arguments)
    )


def embedded(out: Path, **arguments: Any) -> merilo.Run:
    return merilo.evaluate(rows(12), **grouped(out=out, cache=False, **arguments))


def over_http(out: Path, **arguments: Any) -> merilo.Run:
    """Packs, re-asks, replies that stay unreadable, refusals: each is a part of the run."""
    with JudgeServer() as server:
        for seed, fault in enumerate((malformed(), drop_verdicts(), contradiction(), truncated(), refusal())):
            server.fail(fault, share=0.15, seed=seed)
        options = {"judge": "openai:test-model", "base_url": server.base_url, "cache": False}
        return merilo.evaluate(rows(12), **grouped(out=out, **options, **arguments))


def published(out: Path, **arguments: Any) -> merilo.Run:
    """Draws, vectors, free replies of which some cannot be read, and a composite."""
    replies = count()

    def free(asked: Asked) -> object:
        number = next(replies)
        if asked.kind != "completion":
            return None
        return ('{"question": "How long is it?", "noncommittal": 0}', "2", '{"verdicts": []}', "no")[number % 4]

    with JudgeServer(free) as server:
        options = {"judge": ["a=openai:one", "b=openai:two"], "base_url": server.base_url, "cache": False}
        metrics = [*PUBLISHED, "ragas-0.0.15:ragas_score"]
        return merilo.evaluate(rows(6), **grouped(out=out, metrics=metrics, **options, **arguments))


@pytest.mark.parametrize("made", [scripted, embedded, over_http, published])
def test_a_replay_is_bit_equal(made: Callable[..., merilo.Run], tmp_path: Path, offline: Callable[[], None]) -> None:
    """All scores come out again, byte for byte, with every socket closed."""
    run = made(tmp_path / "run")
    offline()
    found = replay_run(run.path)
    assert canonical(found.run) == canonical(run)
    assert found.same
    assert (found.equal, found.different) == (sum(1 for _ in run.records()), 0)


def test_the_runs_above_hold_what_is_to_be_replayed(tmp_path: Path) -> None:
    """The runs that are replayed have failures, packs, re-asks, several draws, vectors and a composite among them."""
    http, free = over_http(tmp_path / "http"), published(tmp_path / "free")
    assert any(each.failed for each in http.metrics.values())
    assert any(each.failed for each in scripted(tmp_path / "scripted").metrics.values())
    asked = [each for record in http.records() for each in http.asked(record["trail"])]
    assert any(len(each.replies) > 1 for each in asked)
    assert sum(each.question.kind == "support" for each in asked) > http.usage["requests"] / 10
    kinds = [each.question for record in free.records() for each in free.asked(record["trail"])]
    assert {"embeddings", "completion"} <= {question.kind for question in kinds}
    assert any(question.draw for question in kinds)
    assert any(getattr(question, "earlier", ()) for question in kinds)
    assert any(getattr(question, "schema", "") for question in kinds)
    assert {question.role for question in kinds} >= {"a", "b"}
    assert any(each.parts for each in free.metrics.values())


def test_a_new_metric_is_computed_from_what_was_asked(tmp_path: Path, judge: ScriptedJudge) -> None:
    """A metric that the run did not have, but whose questions it asked, gets the scores that a run would give it."""
    new = ["context_relevance(unit=context)", "context_precision"]
    options: dict[str, Any] = {"judge": judge, "cache": False}
    merilo.evaluate(rows(6), **grouped(out=tmp_path / "r", metrics=["context_relevance"], **options))
    found = replay_run(tmp_path / "r", metrics=[*new, "context_relevance"])
    assert canonical(found.run) == canonical(
        merilo.evaluate(rows(6), **grouped(out=tmp_path / "s", metrics=[*new, "context_relevance"], **options))
    )
    assert found.new == tuple(new)
    assert (found.equal, found.different) == (6, 0)


def test_a_miss_names_the_question_and_the_command(tmp_path: Path) -> None:
    """A question that was never asked is told with its beginning, cleaned, and with the command that records it."""
    row = {**rows(1)[0], "response": "Red \x1b[31m river. " + "long " * 40}
    judge = ScriptedJudge.by(verdict_for, version="1")
    merilo.evaluate([row], out=tmp_path / "r", metrics=["context_relevance"], judge=judge, storage={"cache": False})
    with pytest.raises(merilo.RunError) as error:
        replay_run(tmp_path / "r", metrics=["faithfulness"])
    told = str(error.value)
    assert "\x1b" not in told
    assert len(told.splitlines()) == 1
    assert (
        "faithfulness about sample 's0': noncommittal (user_input 'How long is river 0?'; response 'Red \\x1b" in told
    )
    assert "long long...')" in told
    assert told.endswith("merilo run DATA --metrics faithfulness")


@dataclass(frozen=True, slots=True)
class First(MetricDefaults):
    """The grade of the first context."""

    name: ClassVar[str] = "made:first"
    version: ClassVar[int] = 1
    needs = frozenset({"user_input", "retrieved_contexts"})
    asks = frozenset({Relevance})

    def plan(self, sample: Sample) -> Plan[Score]:
        verdict = yield from ask(Relevance(sample.require("user_input"), sample.contexts[0].sentences))
        return Score(self.value(verdict))

    def value(self, verdict: RelevanceVerdict) -> float:
        return verdict.grade / 2


class Halved(First):
    """The same metric after a change of its formula."""

    version: ClassVar[int] = 2

    def value(self, verdict: RelevanceVerdict) -> float:
        return verdict.grade / 4


def test_a_changed_metric_is_told_with_old_and_new_values(tmp_path: Path, judge: ScriptedJudge) -> None:
    """Where a formula has changed since, each outcome that differs is listed, and the versions are."""
    merilo.evaluate(rows(3), out=tmp_path / "r", metrics=[First()], judge=judge, storage={"cache": False})
    assert replay_run(tmp_path / "r", metrics=[First()]).same
    found = replay_run(tmp_path / "r", metrics=[Halved()])
    assert not found.same
    assert (found.equal, found.different) == (0, 3)
    first = found.differences[0]
    assert (first.sample, first.recorded["value"], first.now["value"]) == ("s0", 0.5, 0.25)
    assert first.fields == ("value",)
    assert found.versions == {"made:first": (1, 2)}
    assert found.means == ("made:first",)


class Thrifty(ContextRelevance):
    """A version that leaves the first context out, so that every later question stands elsewhere in the trail."""

    version: ClassVar[int] = 9

    def plan(self, sample: Sample) -> Any:
        shorter = replace(sample, retrieved_contexts=sample.contexts[1:])
        return super().plan(shorter)


def test_a_metric_that_asks_less_finds_its_questions(tmp_path: Path, judge: ScriptedJudge) -> None:
    """A plan that asks in another order than its trail is answered by what is asked, not by the place."""
    merilo.evaluate(rows(4), out=tmp_path / "r", metrics=["context_relevance"], judge=judge, storage={"cache": False})
    found = replay_run(tmp_path / "r", metrics=[Thrifty()])
    assert found.different == 4
    assert found.run.metrics["context_relevance"].mean == 0.0  # the river stands in the first context alone
    assert found.run.metrics["context_relevance"].counts["contexts"] == 8


def test_changed_outcomes_are_found(tmp_path: Path, judge: ScriptedJudge) -> None:
    """A recorded value that the recorded answers do not give is listed; evidence and trail are held to as well."""
    run = merilo.evaluate(
        rows(3), out=tmp_path / "r", metrics=["context_relevance"], judge=judge, storage={"cache": False}
    )
    lines = (run.path / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    first, second = json.loads(lines[0]), json.loads(lines[1])
    first["value"] += 1e-16 + first["value"] * 3e-16
    second["evidence"][0]["verdict"]["reason"] = "another"
    lines[:2] = [json.dumps(first), json.dumps(second)]
    (run.path / "outcomes.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = replay_run(seal_again(run.path))
    assert [each.fields for each in found.differences] == [("value",), ("evidence",)]
    assert not found.means


def test_a_replay_can_be_kept_shown_and_replayed(tmp_path: Path, judge: ScriptedJudge) -> None:
    """With `out` the recomputed run stands alone: it has its samples and questions, and replays once more."""
    options: dict[str, Any] = {"judge": judge, "cache": False}
    run = merilo.evaluate(rows(3), **grouped(out=tmp_path / "r", **options))
    kept = tmp_path / "kept"
    found = replay_run(run.path, out=kept)
    assert found.run.path == kept
    assert canonical(merilo.Run.open(kept)) == canonical(run)
    assert replay_run(kept).same
    sample = merilo.Run.open(kept).sample("s1")
    assert all(found.run.asked(sample.records["faithfulness"]["trail"]))
    replay_run(tmp_path / "r", out=kept)  # the same results: it may be repeated
    with pytest.raises(merilo.RunError, match="holds a run with other results"):
        replay_run(tmp_path / "r", metrics=["context_relevance"], out=kept)
    assert canonical(merilo.Run.open(kept)) == canonical(run)
    assert not list(kept.glob("*.part"))


def test_a_run_without_a_directory_is_whole_and_goes_with_its_object(tmp_path: Path, judge: ScriptedJudge) -> None:
    """Without `out` the recomputed run has samples and questions as long as somebody holds it, and then is gone."""
    merilo.evaluate(rows(3), out=tmp_path / "r", metrics=NATIVE, judge=judge, storage={"cache": False})
    run = replay_run(tmp_path / "r").run
    assert [each.sample.id for each in run.samples] == ["s0", "s1", "s2"]
    path = run.path
    del run
    assert not path.exists()
    assert replay_run(tmp_path / "r").same


def test_reading_again_by_the_same_rules_changes_nothing(tmp_path: Path) -> None:
    """`reread` of a run over HTTP, with re-asks, cut and refused replies and packs, gives every answer as recorded."""
    run = over_http(tmp_path / "r")
    found = replay_run(tmp_path / "r", reread=True)
    assert found.reread is not None
    assert found.same
    assert (found.reread.different, found.reread.unread) == (0, 0)
    trails = {key for record in run.records() for key in record["trail"]}
    assert found.reread.read >= len(trails) > 0


def test_reading_again_shows_what_another_parser_would_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With rules that read replies differently, the answers and scores that would change are told, nothing is asked."""
    from merilo.judges import llm
    from merilo.judging.reply_parsing import ParsedReply, read_reply

    with JudgeServer() as server:
        options: dict[str, Any] = {"judge": "openai:test-model", "base_url": server.base_url, "cache": False}
        run = merilo.evaluate(rows(4), **grouped(out=tmp_path / "r", metrics=["context_relevance"], **options))

    def strict(text: str, question: Question[Any], form: AskedForm) -> ParsedReply:
        reading = read_reply(text, question, form)
        (verdict,) = reading.verdicts
        if isinstance(verdict, RelevanceVerdict):
            return ParsedReply((RelevanceVerdict(0, (), verdict.reason),))
        return reading

    monkeypatch.setattr(llm, "read_reply", strict)
    assert replay_run(tmp_path / "r").same
    found = replay_run(tmp_path / "r", reread=True)
    assert found.reread is not None
    assert found.reread.different > 0
    assert run.metrics["context_relevance"].mean == pytest.approx(1 / 3)
    assert found.run.metrics["context_relevance"].mean == 0.0


def test_what_was_asked_again_later_is_read_as_it_was(tmp_path: Path) -> None:
    """Of a pack of which some verdicts failed and were asked for again, the first reply is not taken for the rest."""
    with JudgeServer() as server:
        options: dict[str, Any] = {"judge": "openai:test-model", "base_url": server.base_url, "cache": False}
        options |= {"out": tmp_path / "r", "metrics": ["faithfulness"]}
        without_last = drop_verdicts().rewrite or str
        server.fail(says(lambda text: without_last(text) if '"label"' in text else text))
        many = [{**row, "response": "One is long. Two is long. Three is long. Four is blue."} for row in rows(4)]
        assert merilo.evaluate(many, **grouped(**options)).metrics["faithfulness"].failed
        server.behave()
        assert not merilo.evaluate(many, **grouped(retry_failed=True, **options)).metrics["faithfulness"].failed
    found = replay_run(tmp_path / "r", reread=True)
    assert found.same
    assert found.reread is not None
    assert found.reread.different == 0
    assert found.reread.unread > 0


def test_answers_of_judges_without_a_model_stand(tmp_path: Path, judge: ScriptedJudge) -> None:
    """A scripted or embedded judge leaves no raw reply: its answers are taken as recorded, and counted."""
    merilo.evaluate(rows(2), out=tmp_path / "r", metrics=["context_relevance"], judge=judge, storage={"cache": False})
    found = replay_run(tmp_path / "r", reread=True)
    assert found.same
    assert found.reread is not None
    assert (found.reread.read, found.reread.unread) == (0, 4)


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No replay leaves anything in the system's temporary directory."""
    work = tmp_path / "temporary"
    work.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(work))
    yield
    gc.collect()  # a failure that a plan kept holds the frames that it came through
    assert list(work.iterdir()) == []
