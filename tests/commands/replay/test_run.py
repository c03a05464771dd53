"""Replay: the scores of a run or a tape, recomputed bit for bit without a call; and tapes that come from anywhere."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import re
import shutil
import socket
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judged_rivers import canonical, rows, verdict_for
from seals import remove_seal
from server import Asked, JudgeServer, contradiction, drop_verdicts, malformed, refusal, truncated
from silent import Silent

import merilo
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.ask import ask
from merilo.judging.kinds.relevance import Relevance, RelevanceVerdict
from merilo.metrics.base import MetricDefaults, Score
from merilo.metrics.context_relevance import ContextRelevance
from merilo.metrics.registry import default_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.judging.questions import Question
    from merilo.judging.reply_parsing import AskedForm

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
    return merilo.evaluate(rows(12), judge=ScriptedJudge.by(sulky, version="1"), out=out, cache=False, **arguments)


def embedded(out: Path, **arguments: Any) -> merilo.Run:
    return merilo.evaluate(rows(12), out=out, cache=False, **arguments)


def over_http(out: Path, **arguments: Any) -> merilo.Run:
    """Packs, re-asks, replies that stay unreadable, refusals: each is a part of the run."""
    with JudgeServer() as server:
        for seed, fault in enumerate((malformed(), drop_verdicts(), contradiction(), truncated(), refusal())):
            server.fail(fault, share=0.15, seed=seed)
        options = {"judge": "openai:test-model", "base_url": server.base_url, "cache": False}
        return merilo.evaluate(rows(12), out=out, **options, **arguments)


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
        return merilo.evaluate(rows(6), out=out, metrics=metrics, **options, **arguments)


@pytest.mark.parametrize("made", [scripted, embedded, over_http, published])
@pytest.mark.parametrize("form", ["run", "tape.jsonl", "tape.jsonl.gz"])
def test_a_replay_is_bit_equal(
    made: Callable[..., merilo.Run], form: str, tmp_path: Path, offline: Callable[[], None]
) -> None:
    """From a run and from its tape all scores come out again, byte for byte, with every socket closed."""
    run = made(tmp_path / "run", record=None if form == "run" else tmp_path / form)
    if form != "run":
        expected = tmp_path / "kept"
        shutil.move(run.path, expected)  # the tape stands alone
        run = merilo.Run.open(expected)
    offline()
    found = merilo.replay(run.path if form == "run" else tmp_path / form)
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


def test_equal_runs_give_equal_tapes(tmp_path: Path) -> None:
    """A tape has the same bytes whatever the concurrency and the order in which replies came."""
    for name, concurrency in (("a", 1), ("b", 16)):
        with JudgeServer(delay_s=0.001 * concurrency) as server:
            provider = merilo.evaluate(
                rows(8),
                judge=judge_at(server),
                out=tmp_path / name,
                cache=False,
                concurrency=concurrency,
                record=tmp_path / f"{name}.jsonl.gz",
            )
            assert provider.complete
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def judge_at(server: JudgeServer) -> Any:
    """An LLM judge whose fingerprint does not name the port, which differs from test to test."""
    from merilo.judges.llm import LLMJudge
    from merilo.providers.openai import OpenAIProvider

    class Portless(OpenAIProvider):
        def fingerprint(self) -> dict[str, object]:
            return {**super().fingerprint(), "base_url": "http://127.0.0.1/v1"}

    return LLMJudge(Portless("test-model", base_url=server.base_url))


def test_a_tape_holds_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted key reaches the server, and neither tape nor replayed run."""
    monkeypatch.setenv("PLANTED", "sk-planted-0123456789")
    with JudgeServer() as server:
        options = {"judge": "openai:test-model", "base_url": server.base_url, "api_key_env": "PLANTED"}
        merilo.evaluate(rows(3), out=tmp_path / "r", cache=False, record=tmp_path / "t.jsonl", **options)
        assert server.headers[0]["Authorization"].endswith("sk-planted-0123456789")
    assert b"sk-planted" not in (tmp_path / "t.jsonl").read_bytes()
    merilo.replay(tmp_path / "t.jsonl", out=tmp_path / "o")
    for path in (tmp_path / "o").iterdir():
        assert b"sk-planted" not in path.read_bytes()


def test_an_interrupted_run_has_a_tape_of_what_it_did(tmp_path: Path, judge: ScriptedJudge) -> None:
    """A run that is cancelled leaves a tape of its finished samples, which replays as an incomplete run."""

    async def cancelled() -> None:
        task: asyncio.Task[merilo.Run] | None = None

        class Stop(Silent):
            done = 0

            def advance(self, samples: int) -> None:
                self.done += samples
                if self.done == 5 and task is not None:
                    task.cancel()

        options: dict[str, Any] = {"judge": slow(judge), "metrics": NATIVE, "out": tmp_path / "r", "cache": False}
        work = merilo.aevaluate(rows(40), progress=Stop(), record=tmp_path / "t.jsonl.gz", concurrency=1, **options)
        task = asyncio.create_task(work)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    run = merilo.Run.open(tmp_path / "r")
    found = merilo.replay(tmp_path / "t.jsonl.gz")
    assert not found.run.complete
    assert 0 < found.equal < 40 * len(NATIVE)
    assert found.same
    assert canonical(found.run) == canonical(run)


def slow(judge: ScriptedJudge) -> Any:
    """A callable that answers as this judge, but gives way to the loop first."""
    del judge

    async def answer(question: Question[Any]) -> dict[str, Any]:
        await asyncio.sleep(0.002)
        return verdict_for(question)

    return answer


def test_the_same_command_makes_the_tape_of_a_run_that_has_none(tmp_path: Path, judge: ScriptedJudge) -> None:
    """A run that was made without a tape, or killed before it wrote one, gets it by resuming, with the same bytes."""
    options: dict[str, Any] = {"judge": judge, "cache": False}
    merilo.evaluate(rows(5), out=tmp_path / "a", record=tmp_path / "a.jsonl", **options)
    merilo.evaluate(rows(5), out=tmp_path / "b", **options)
    merilo.evaluate(rows(5), out=tmp_path / "b", record=tmp_path / "b.jsonl", **options)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_verdicts_from_the_cache_are_counted_and_said(tmp_path: Path) -> None:
    """Answers that came from the cache have no raw reply: the tape's first line counts them and the user is told."""
    said: list[str] = []

    class Watch(Silent):
        def note(self, text: str) -> None:
            said.append(text)

    with JudgeServer() as server:
        options: dict[str, Any] = {"judge": "openai:test-model", "base_url": server.base_url, "metrics": NATIVE}
        options |= {"cache": tmp_path / "cache.sqlite"}
        first = merilo.evaluate(rows(4), out=tmp_path / "a", record=tmp_path / "a.jsonl", **options)
        merilo.evaluate(rows(4), out=tmp_path / "b", record=tmp_path / "b.jsonl", progress=Watch(), **options)
    heads = [json.loads((tmp_path / f"{name}.jsonl").read_text().splitlines()[0]) for name in "ab"]
    assert heads[0]["cached"] == 0
    assert heads[1]["cached"] == heads[1]["questions"] > 0
    assert [text for text in said if "no raw replies" in text]
    assert canonical(merilo.replay(tmp_path / "b.jsonl").run) == canonical(first)


def test_the_command_that_records_a_miss_asks_the_same_endpoint(tmp_path: Path) -> None:
    """It names the judge's own address, so that no text goes to another's."""
    with JudgeServer() as server:
        options: dict[str, Any] = {"judge": "openai:test-model", "base_url": server.base_url, "cache": False}
        merilo.evaluate(rows(2), out=tmp_path / "r", metrics=["context_relevance"], **options)
    with pytest.raises(merilo.RunError, match=re.escape(f"--base-url {server.base_url} --record TAPE")):
        merilo.replay(tmp_path / "r", metrics=["context_sufficiency"])


@pytest.mark.parametrize("record", [False, True])
def test_a_new_metric_is_computed_from_what_was_asked(tmp_path: Path, judge: ScriptedJudge, *, record: bool) -> None:
    """A metric that the run did not have, but whose questions it asked, gets the scores that a run would give it."""
    new = ["context_relevance(unit=context)", "context_precision"]
    options: dict[str, Any] = {"judge": judge, "cache": False}
    tape = tmp_path / "t.jsonl" if record else None
    merilo.evaluate(rows(6), out=tmp_path / "r", metrics=["context_relevance"], record=tape, **options)
    found = merilo.replay(tape or tmp_path / "r", metrics=[*new, "context_relevance"])
    assert canonical(found.run) == canonical(
        merilo.evaluate(rows(6), out=tmp_path / "s", metrics=[*new, "context_relevance"], **options)
    )
    assert found.new == tuple(new)
    assert (found.equal, found.different) == (6, 0)


def test_a_miss_names_the_question_and_the_command(tmp_path: Path) -> None:
    """A question that was never asked is told with its beginning, cleaned, and with the command that records it."""
    row = {**rows(1)[0], "response": "Red \x1b[31m river. " + "long " * 40}
    judge = ScriptedJudge.by(verdict_for, version="1")
    merilo.evaluate([row], out=tmp_path / "r", metrics=["context_relevance"], judge=judge, cache=False)
    with pytest.raises(merilo.RunError) as error:
        merilo.replay(tmp_path / "r", metrics=["faithfulness"])
    told = str(error.value)
    assert "\x1b" not in told
    assert len(told.splitlines()) == 1
    assert (
        "faithfulness about sample 's0': noncommittal (user_input 'How long is river 0?'; response 'Red \\x1b" in told
    )
    assert "long long...')" in told
    assert "merilo run DATA --metrics context_relevance,faithfulness --judge " in told
    assert told.endswith("--record TAPE")


@dataclass(frozen=True, slots=True)
class First(MetricDefaults):
    """The grade of the first context."""

    name: ClassVar[str] = "made:first"
    version: ClassVar[int] = 1
    needs = frozenset({"user_input", "retrieved_contexts"})
    asks = frozenset({Relevance})

    def max_questions(self, sample: Sample) -> int:
        del sample
        return 1

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
    merilo.evaluate(rows(3), out=tmp_path / "r", metrics=[First()], judge=judge, cache=False)
    assert merilo.replay(tmp_path / "r", metrics=[First()]).same
    found = merilo.replay(tmp_path / "r", metrics=[Halved()])
    assert not found.same
    assert (found.equal, found.different) == (0, 3)
    first = found.differences[0]
    assert (first.sample, first.recorded["value"], first.now["value"]) == ("s0", 0.5, 0.25)
    assert first.fields == ("value",)
    assert found.versions == {"made:first": (1, 2)}
    assert found.means == ("made:first",)


def test_a_metric_without_its_fields_is_refused(tmp_path: Path, judge: ScriptedJudge) -> None:
    """A metric that no sample has the fields for is an error when it is asked for by name, as in a run."""
    merilo.evaluate(rows(2), out=tmp_path / "r", metrics=["context_relevance"], judge=judge, cache=False)
    with pytest.raises(merilo.UsageError, match="hit_rate@1 cannot be computed: no sample has reference_context_ids"):
        merilo.replay(tmp_path / "r", metrics=["hit_rate@1"])


def test_a_metric_that_is_not_known_here_is_named(tmp_path: Path, judge: ScriptedJudge) -> None:
    """A run with a metric that cannot be made from its text says so, and takes the object instead."""
    merilo.evaluate(rows(2), out=tmp_path / "r", metrics=[First(), "context_relevance"], judge=judge, cache=False)
    with pytest.raises(merilo.UsageError, match="has the metric made:first, which cannot be built here"):
        merilo.replay(tmp_path / "r")
    assert merilo.replay(tmp_path / "r", metrics=["context_relevance"]).same


class Thrifty(ContextRelevance):
    """A version that leaves the first context out, so that every later question stands elsewhere in the trail."""

    version: ClassVar[int] = 9

    def plan(self, sample: Sample) -> Any:
        shorter = replace(sample, retrieved_contexts=sample.contexts[1:])
        return super().plan(shorter)


def test_a_metric_that_asks_less_finds_its_questions(tmp_path: Path, judge: ScriptedJudge) -> None:
    """A plan that asks in another order than its trail is answered by what is asked, not by the place."""
    merilo.evaluate(rows(4), out=tmp_path / "r", metrics=["context_relevance"], judge=judge, cache=False)
    found = merilo.replay(tmp_path / "r", metrics=[Thrifty()])
    assert found.different == 4
    assert found.run.metrics["context_relevance"].mean == 0.0  # the river stands in the first context alone
    assert found.run.metrics["context_relevance"].counts["contexts"] == 8


def test_changed_outcomes_are_found(tmp_path: Path, judge: ScriptedJudge) -> None:
    """A recorded value that the recorded answers do not give is listed; evidence and trail are held to as well."""
    run = merilo.evaluate(rows(3), out=tmp_path / "r", metrics=["context_relevance"], judge=judge, cache=False)
    lines = (remove_seal(run.path) / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    first, second = json.loads(lines[0]), json.loads(lines[1])
    first["value"] += 1e-16 + first["value"] * 3e-16
    second["evidence"][0]["verdict"]["reason"] = "another"
    lines[:2] = [json.dumps(first), json.dumps(second)]
    (run.path / "outcomes.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = merilo.replay(run.path)
    assert [each.fields for each in found.differences] == [("value",), ("evidence",)]
    assert not found.means


def test_a_replay_can_be_kept_shown_and_replayed(tmp_path: Path, judge: ScriptedJudge) -> None:
    """With `out` the recomputed run stands alone: it has its samples and questions, and replays once more."""
    options: dict[str, Any] = {"judge": judge, "cache": False}
    run = merilo.evaluate(rows(3), out=tmp_path / "r", record=tmp_path / "t.jsonl.gz", **options)
    for source in (tmp_path / "r", tmp_path / "t.jsonl.gz"):
        kept = tmp_path / f"kept-{source.name}"
        found = merilo.replay(source, out=kept)
        assert found.run.path == kept
        assert canonical(merilo.Run.open(kept)) == canonical(run)
        assert merilo.replay(kept).same
        sample = merilo.Run.open(kept).sample("s1")
        assert all(found.run.asked(sample.records["faithfulness"]["trail"]))
    merilo.replay(tmp_path / "r", out=kept)  # the same results: it may be repeated
    with pytest.raises(merilo.RunError, match="holds a run with other results"):
        merilo.replay(tmp_path / "r", metrics=["context_relevance"], out=kept)
    with pytest.raises(merilo.RunError, match="is not empty"):
        merilo.replay(tmp_path / "r", out=run.path)
    assert canonical(merilo.Run.open(kept)) == canonical(run)
    assert not list(kept.glob("*.part"))


def test_a_run_without_a_directory_is_whole_and_goes_with_its_object(tmp_path: Path, judge: ScriptedJudge) -> None:
    """Without `out` the recomputed run has samples and questions as long as somebody holds it, and then is gone."""
    merilo.evaluate(rows(3), out=tmp_path / "r", metrics=NATIVE, judge=judge, cache=False, record=tmp_path / "t.gz")
    for source in ("r", "t.gz"):
        run = merilo.replay(tmp_path / source).run
        assert [each.sample.id for each in run.samples] == ["s0", "s1", "s2"]
        path = run.path
        del run
        assert not path.parent.exists()
    assert merilo.replay(tmp_path / "r").same


def test_reading_again_by_the_same_rules_changes_nothing(tmp_path: Path) -> None:
    """`reread` of a run over HTTP, with re-asks, cut and refused replies and packs, gives every answer as recorded."""
    run = over_http(tmp_path / "r")
    found = merilo.replay(tmp_path / "r", reread=True)
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
        run = merilo.evaluate(rows(4), out=tmp_path / "r", metrics=["context_relevance"], **options)

    def strict(text: str, question: Question[Any], form: AskedForm) -> ParsedReply:
        reading = read_reply(text, question, form)
        (verdict,) = reading.verdicts
        if isinstance(verdict, RelevanceVerdict):
            return ParsedReply((RelevanceVerdict(0, (), verdict.reason),))
        return reading

    monkeypatch.setattr(llm, "read_reply", strict)
    assert merilo.replay(tmp_path / "r").same
    found = merilo.replay(tmp_path / "r", reread=True)
    assert found.reread is not None
    assert found.reread.different > 0
    assert run.metrics["context_relevance"].mean == pytest.approx(1 / 3)
    assert found.run.metrics["context_relevance"].mean == 0.0


def test_what_was_asked_again_later_is_read_as_it_was(tmp_path: Path) -> None:
    """Of a pack of which some verdicts failed and were asked for again, the first reply is not taken for the rest."""
    with JudgeServer() as server:
        options: dict[str, Any] = {"judge": "openai:test-model", "base_url": server.base_url, "cache": False}
        options |= {"out": tmp_path / "r", "metrics": ["faithfulness"]}
        server.fail(drop_verdicts(1))
        many = [{**row, "response": "One is long. Two is long. Three is long. Four is blue."} for row in rows(4)]
        assert merilo.evaluate(many, **options).metrics["faithfulness"].failed
        server.behave()
        assert not merilo.evaluate(many, retry_failed=True, **options).metrics["faithfulness"].failed
    found = merilo.replay(tmp_path / "r", reread=True)
    assert found.same
    assert found.reread is not None
    assert found.reread.different == 0
    assert found.reread.unread > 0


def test_answers_of_judges_without_a_model_stand(tmp_path: Path, judge: ScriptedJudge) -> None:
    """A scripted or embedded judge leaves no raw reply: its answers are taken as recorded, and counted."""
    merilo.evaluate(rows(2), out=tmp_path / "r", metrics=["context_relevance"], judge=judge, cache=False)
    found = merilo.replay(tmp_path / "r", reread=True)
    assert found.same
    assert found.reread is not None
    assert (found.reread.read, found.reread.unread) == (0, 4)


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("tape")
    judge = ScriptedJudge.by(sulky, version="1")
    metrics = ["context_relevance", "faithfulness"]
    merilo.evaluate(rows(4), judge=judge, metrics=metrics, out=folder / "r", cache=False, record=folder / "t.jsonl")
    return (folder / "t.jsonl").read_bytes()


def sealed(lines: list[bytes]) -> bytes:
    """Lines as a tape with the right digest, as somebody who means ill would make it."""
    body = b"".join(line + b"\n" for line in lines)
    return body + json.dumps({"end": blake2b(body, digest_size=16).hexdigest()}).encode() + b"\n"


def with_line(tape: bytes, name: str, change: Callable[[Any], Any]) -> bytes:
    """The tape with the first line of this name changed, and a digest that fits."""
    lines = tape.splitlines()[:-1]
    at = next(n for n, line in enumerate(lines) if line.startswith(f'{{"{name}"'.encode()))
    value = json.loads(lines[at])
    lines[at] = json.dumps(change(value)).encode()
    return sealed(lines)


def asked(change: Callable[[dict[str, Any]], Any]) -> Callable[[Any], Any]:
    """A change of the first question of a conversation."""

    def changed(value: dict[str, Any]) -> dict[str, Any]:
        change(value["conversation"]["asked"][0])
        return value

    return changed


HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "no tape": lambda _: b'{"id": "tower"}\n',
    "not JSON": lambda _: b"\x00\xff\xfe",
    "a list": lambda _: b"[]\n",
    "no number": lambda tape: tape.replace(b'{"merilo_tape":1', b'{"merilo_tape":"1"', 1),
    "newer": lambda tape: tape.replace(b'{"merilo_tape":1', b'{"merilo_tape":99', 1),
    "cut in a line": lambda tape: tape[: len(tape) // 2],
    "cut at a line": lambda tape: b"".join(tape.splitlines(keepends=True)[:-1]),
    "one line less": lambda tape: b"".join((lines := tape.splitlines(keepends=True))[:7] + lines[8:]),
    "two lines changed": lambda tape: b"".join([*(t := tape.splitlines(keepends=True))[:3], t[4], t[3], *t[5:]]),
    "more after the end": lambda tape: tape + b'{"sample":{}}\n',
    "deep": lambda tape: sealed([tape.splitlines()[0], b'{"manifest":' + b"[" * 100_000]),
    "no manifest": lambda tape: sealed([line for line in tape.splitlines()[:-1] if b'{"manifest"' not in line]),
    "two manifests": lambda tape: sealed([tape.splitlines()[n] for n in (0, 1, 1)]),
    "manifest without metrics": lambda tape: with_line(tape, "manifest", lambda _: {"manifest": {"samples": 1}}),
    "metrics as a list": lambda tape: with_line(
        tape, "manifest", lambda m: {"manifest": {**m["manifest"], "metrics": ["faithfulness"]}}
    ),
    "a sample that is none": lambda tape: with_line(tape, "sample", lambda _: {"sample": {"id": 7, "path": "/etc"}}),
    "a sample twice": lambda tape: sealed([*(t := tape.splitlines()[:-1])[:3], t[2], *t[3:]]),
    "a kind that is none": lambda tape: with_line(
        tape, "conversation", asked(lambda each: each.update(kind="__class__"))
    ),
    "a short key": lambda tape: with_line(tape, "conversation", asked(lambda each: each.update(key="00"))),
    "a key that is none": lambda tape: with_line(tape, "conversation", asked(lambda each: each.update(key="zz" * 16))),
    "numbers for texts": lambda tape: with_line(
        tape, "conversation", asked(lambda each: each["question"].update(sentences=[1, 2]))
    ),
    "unknown fields": lambda tape: with_line(
        tape, "conversation", asked(lambda each: each["question"].update(extra="x"))
    ),
    "a text that is not there": lambda tape: with_line(
        tape, "conversation", asked(lambda each: each["question"].update(user_input={"text": "00" * 16}))
    ),
    "a verdict of another kind": lambda tape: with_line(
        tape, "conversation", asked(lambda each: each.update(verdict={"label": "x"}))
    ),
    "no answer": lambda tape: with_line(tape, "conversation", asked(lambda each: each.pop("verdict"))),
    "an outcome without a trail": lambda tape: with_line(
        tape, "outcome", lambda _: {"outcome": {"sample": "s0", "metric": "x"}}
    ),
    "an outcome of nobody": lambda tape: with_line(
        tape, "outcome", lambda o: {"outcome": {**o["outcome"], "sample": "nobody"}}
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_tape_that_is_none_is_told_in_one_sentence(name: str, tape: bytes, tmp_path: Path) -> None:
    """Damaged, cut, newer and forged tapes are refused with one line that names the file, and nothing is left."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(HOSTILE[name](tape))
    with pytest.raises(merilo.RunError) as error:
        merilo.replay(path, out=tmp_path / "o")
    assert str(path) in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert not (tmp_path / "o").exists()


def test_a_directory_that_was_there_stays(tape: bytes, tmp_path: Path) -> None:
    """An empty directory that was named for the result is there and empty after a replay that failed."""
    (tmp_path / "t").write_bytes(HOSTILE["one line less"](tape))
    (tmp_path / "o").mkdir()
    with pytest.raises(merilo.RunError):
        merilo.replay(tmp_path / "t", out=tmp_path / "o")
    assert list((tmp_path / "o").iterdir()) == []


def test_a_newer_tape_says_what_to_do(tape: bytes, tmp_path: Path) -> None:
    """A tape of a later format is told apart from a damaged one."""
    (tmp_path / "t").write_bytes(HOSTILE["newer"](tape))
    with pytest.raises(merilo.RunError, match=r"has format 99; this merilo reads formats up to 1\. Upgrade merilo"):
        merilo.replay(tmp_path / "t")


def test_a_forged_answer_is_found(tape: bytes, tmp_path: Path) -> None:
    """Whoever changes an answer and makes the digest fit is still found: the recorded outcome no longer follows."""
    forged = with_line(tape, "conversation", asked(lambda each: each.update(verdict={"grade": 2, "evidence": [0]})))
    (tmp_path / "t").write_bytes(forged)
    assert not merilo.replay(tmp_path / "t").same


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_damage_gives_another_number(tape: bytes, data: st.DataObject, tmp_path_factory: Any) -> None:
    """Any byte changed, anywhere, packed or not, is told as a RunError, or changes nothing at all."""
    zipped = data.draw(st.booleans())
    damaged = bytearray(gzip.compress(tape, mtime=0) if zipped else tape)
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("damage") / "t"
    path.write_bytes(damaged)
    try:
        found = merilo.replay(path)
    except merilo.RunError:
        return
    assert found.same


def test_what_is_there_and_no_tape_is_never_written_over(tmp_path: Path, judge: ScriptedJudge) -> None:
    """`record` refuses a file that is no tape, a directory and a place that is not there, before anything is asked."""
    data = tmp_path / "data.jsonl"
    data.write_text('{"user_input": "Who?"}\n', encoding="utf-8")
    for path, told in (
        (data, "is not a tape"),
        (tmp_path, "is a directory"),
        (tmp_path / "no" / "t", "does not exist"),
    ):
        with pytest.raises(merilo.UsageError, match=told):
            merilo.evaluate(rows(1), judge=judge, out=tmp_path / "r", record=path)
    assert data.read_text(encoding="utf-8") == '{"user_input": "Who?"}\n'
    assert not (tmp_path / "r").exists()


def test_a_tape_is_written_over_only_when_the_new_one_is_whole(tmp_path: Path, judge: ScriptedJudge) -> None:
    """Recording again to the same name replaces the old tape by the new one, and leaves nothing beside it."""
    options: dict[str, Any] = {"judge": judge, "metrics": ["context_relevance"], "cache": False}
    for number, name in ((2, "a"), (3, "b")):
        merilo.evaluate(rows(number), out=tmp_path / name, record=tmp_path / "t.jsonl", **options)
    assert merilo.replay(tmp_path / "t.jsonl").equal == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "t.jsonl", "temporary"]


def test_long_tapes_forget_texts_alike(tmp_path: Path, judge: ScriptedJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writer and reader hold so many texts and no more: a tape with more of them replays as well."""
    monkeypatch.setattr("merilo.runs.tape_writer.HELD_TEXTS", 3)
    monkeypatch.setattr("merilo.runs.tape_reader.HELD_TEXTS", 3)
    long = [{**row, "response": row["response"] + " and so on" * 9} for row in rows(8)]
    run = merilo.evaluate(long, judge=judge, out=tmp_path / "r", cache=False, record=tmp_path / "t.jsonl")
    assert canonical(merilo.replay(tmp_path / "t.jsonl").run) == canonical(run)


def test_every_default_metric_is_among_those_replayed(tmp_path: Path) -> None:
    """The scripted run that is replayed has every native metric that a run takes by default and its data allow."""
    run = scripted(tmp_path / "r")
    names = {text.partition("(")[0].partition("@")[0] for text in run.metrics}
    assert names >= set(default_metrics()) - {text.partition("(")[0] for text in run.manifest.left_out}


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No replay leaves anything in the system's temporary directory."""
    work = tmp_path / "temporary"
    work.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(work))
    yield
    gc.collect()  # a failure that a plan kept holds the frames that it came through
    assert list(work.iterdir()) == []


def test_replies_of_the_first_rubric_of_support_are_read_by_its_rules() -> None:
    """A tape of 0.1.0 has replies that name contexts; parsed again, they give the recorded verdicts."""
    found = merilo.replay(Path(__file__).parents[2] / "tapes" / "fence_of_each_text.jsonl.gz", reread=True)
    assert (found.equal, found.different) == (6, 0)
    assert found.reread is not None
    assert (found.reread.different, found.reread.unread) == (0, 0)
    assert found.reread.read > 0


def test_a_tape_of_other_fence_tokens_replays() -> None:
    """A tape whose prompts had a token for each text gives the same numbers: replies are found by question."""
    found = merilo.replay(Path(__file__).parents[2] / "tapes" / "fence_of_each_text.jsonl.gz")
    assert (found.equal, found.different) == (6, 0)
