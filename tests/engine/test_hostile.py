"""What must not end a run, lose it, or get into a number: broken metrics, judges, files and servers."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from judged_rivers import Evaluate, canonical, rows
from server import JudgeServer, bare, says

import merilo
from merilo.judging.kinds.contexts import Relevance
from merilo.judging.kinds.responses import CompletionVerdict
from merilo.metrics.base import Card, Evidence, EvidenceTarget, MetricDefaults, Score
from merilo.runs.files import STORE


@dataclass(frozen=True)
class Odd(MetricDefaults):
    """Returns, after yielding, whatever it is told to."""

    name = "odd"
    version = 1
    card = Card("odd on purpose")
    needs = frozenset({"user_input"})
    asks = frozenset({Relevance})
    returned: str = ""
    yielded: str = ""

    def plan(self, sample: merilo.Sample) -> Any:
        del sample
        if self.yielded:
            yield STEPS[self.yielded]
        return RETURNED.get(self.returned, Score(1.0))


STEPS: dict[str, Any] = {"number": 5, "text": "abc", "groups": ((5,),), "none": (None,)}
RETURNED: dict[str, Any] = {
    "nan": float("nan"),
    "number": 0.5,
    "none": None,
    "class": Score,
    "score of nan": Score(float("nan")),
    "score beyond the range": Score(5.0),
    "score of text": Score("1"),  # type: ignore[arg-type]  # that is the point
    "evidence of 65 MiB": Score(0.5, (Evidence(EvidenceTarget.TEXT, 0, CompletionVerdict("x" * 2**20)),) * 65),
    "counts of shares": Score(0.5, counts={"a": 0.5}),  # type: ignore[dict-item]  # that is the point
}


@pytest.mark.parametrize("returned", RETURNED)
def test_what_is_no_outcome_is_a_failure(evaluated: Evaluate, returned: str) -> None:
    """A metric fails on a sample if it returns no outcome, a value outside its range, or evidence without bound."""
    run = evaluated(rows(1), metrics=[Odd(returned)])
    assert run.metrics["odd"].failed == 1
    assert "NaN" not in (run.path / "outcomes.jsonl").read_text()


@pytest.mark.parametrize("yielded", STEPS)
def test_what_is_no_step_is_a_failure(evaluated: Evaluate, yielded: str) -> None:
    """A metric that yields something else than questions fails on that sample; the run goes on."""
    assert evaluated(rows(2), metrics=[Odd(yielded=yielded)]).metrics["odd"].failed == 2


@pytest.mark.parametrize("reason", ["\ud800", "abc \udcff"])
def test_half_characters_do_not_end_a_run(evaluated: Evaluate, reason: str) -> None:
    """A verdict or an error with half a surrogate pair is a failure that can be kept and shown."""

    def raises(question: object) -> dict[str, object]:
        raise ValueError(reason)

    for judge in (merilo.ScriptedJudge.by(lambda _: {"grade": 0, "reason": reason}), raises):
        run = evaluated(rows(1), judge=judge, metrics=["context_relevance"])
        assert run.metrics["context_relevance"].failed == 1


def test_a_verdict_that_no_store_takes_is_a_failure(evaluated: Evaluate, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict above the limit fails alone; the run and its store stay whole."""
    monkeypatch.setattr("merilo.engine.drivers.MAX_VERDICT", 1_000)
    judge = merilo.ScriptedJudge.by(lambda _: {"grade": 0, "reason": "x" * 2_000})
    run = evaluated(rows(1), judge=judge, metrics=["context_relevance"])
    assert run.metrics["context_relevance"].failed == 1


def test_a_reply_with_half_a_character_is_read(evaluated: Evaluate) -> None:
    """A model's reply that breaks off within an emoji does not end the run."""
    with JudgeServer() as server:
        server.fail_next(bare('{"choices": [{"message": {"content": "abc \\ud83d"}}], "model": "m\\ud83d"}'))
        run = evaluated(rows(1), judge="openai:m", base_url=server.base_url, metrics=["context_sufficiency"])
        assert run.metrics["context_sufficiency"].scored == 1


def test_a_key_that_is_echoed_is_not_kept(evaluated: Evaluate, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that repeats the key in its reply does not get it into the run."""
    monkeypatch.setenv("PLANTED", "sk-planted-0123456789")
    with JudgeServer() as server:
        server.fail(says('{"reason": "sk-planted-0123456789", "label": "partly", "missing": ""}'))
        run = evaluated(
            rows(1), judge="openai:m", base_url=server.base_url, api_key_env="PLANTED", metrics=["context_sufficiency"]
        )
    assert run.metrics["context_sufficiency"].scored == 1
    for path in run.path.iterdir():
        assert b"sk-planted" not in path.read_bytes(), path


def test_absurd_usage_does_not_end_a_run(evaluated: Evaluate) -> None:
    """A token count that no request has is replaced by an estimate from the texts."""
    verdict = json.dumps({"reason": "", "label": "partly", "missing": ""})
    body = {
        "choices": [{"message": {"content": verdict}}],
        "usage": {"prompt_tokens": 10**30, "completion_tokens": 2**62},
    }
    with JudgeServer() as server:
        server.fail(bare(json.dumps(body)))
        run = evaluated(rows(1), judge="openai:m", base_url=server.base_url, metrics=["context_sufficiency"])
    assert 100 < run.usage["input_tokens"] < 10_000
    assert 0 < run.usage["output_tokens"] < 100


def test_a_stopped_repeat_leaves_the_finished_run(evaluated: Evaluate, tmp_path: Path) -> None:
    """A finished run that is begun again and stopped keeps its outcomes: they are replaced whole or not at all."""
    run = evaluated(rows(3), out=tmp_path / "r")
    before = canonical(run)

    def broken() -> Iterator[dict[str, Any]]:
        yield rows(1)[0]
        raise OSError("gone")

    with pytest.raises(merilo.RunError, match="gone"):
        evaluated(broken(), out=tmp_path / "r")
    assert canonical(run) == before
    assert not list(run.path.glob("*.part"))


def test_a_judge_that_runs_dry_does_not_hang(evaluated: Evaluate) -> None:
    """A callable whose iterator is exhausted fails its questions."""
    replies = iter([{"grade": 0}])
    run = evaluated(rows(2), judge=lambda _: next(replies), metrics=["context_relevance"])
    assert run.metrics["context_relevance"].failed >= 1


def test_a_waiting_standard_input_can_be_interrupted(tmp_path: Path) -> None:
    """Ctrl-C twice ends a command that waits for its standard input."""
    command = str(Path(sys.executable).with_name("merilo"))
    with subprocess.Popen(
        [command, "run", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        time.sleep(1.5)  # until it waits; before that one Ctrl-C is enough
        for _ in range(40):
            try:
                process.wait(0.25)
                break
            except subprocess.TimeoutExpired:
                process.send_signal(2)
        assert process.wait(10) in {130, -2}  # -2: it came before the command could say anything


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_is_enough_while_a_pipe_is_silent(tmp_path: Path, number: signal.Signals) -> None:
    """A command that has read some records and waits for the next one stops at the first signal."""
    command = str(Path(sys.executable).with_name("merilo"))
    with subprocess.Popen(
        [command, "run", "-", "--out", "run"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"".join(json.dumps(row).encode() + b"\n" for row in rows(3)))
        process.stdin.flush()
        while not (tmp_path / "run" / STORE).exists():  # it is created before the first record is read
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(60) == 130
