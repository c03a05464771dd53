"""Processes that share a cache ask each question once; a process that dies or fails leaves it to the others."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import COMMAND, Here
from grouping import grouped
from judged_rivers import canonical
from server import JudgeServer, status

import merilo
from merilo.engine import drivers
from merilo.engine.cache import Claims, VerdictCache
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict

PROCESSES = 4
ROWS = [
    {"user_input": f"How long is river {n}?", "retrieved_contexts": [f"It is {n} km long.", f"Fish {n} swim."]}
    for n in range(6)
]
HOLDER = """
import sys, time
from pathlib import Path
from merilo.engine.cache import Claims
claims = Claims(Path(sys.argv[1]))
print(claims.take([bytes.fromhex(sys.argv[2])]), flush=True)
time.sleep(60)
"""
KEY, OTHER = bytes(range(16)), bytes(range(1, 17))


def start(here: Here, server: JudgeServer, name: str) -> subprocess.Popen[bytes]:
    words = ["--judge", "openai:m", "--base-url", server.base_url, "--metrics", "context_relevance", "--quiet"]
    return subprocess.Popen(
        [COMMAND, "run", "data.jsonl", *words, "--max-failed", "1", "--out", name],
        cwd=here.path,
        env=here.environment,
        stdout=subprocess.DEVNULL,
    )


@contextmanager
def claimed(path: Path, key: bytes) -> Iterator[None]:
    """While the block runs, another process has claimed the key; it is then killed."""
    words = [sys.executable, "-c", HOLDER, str(path), key.hex()]
    with subprocess.Popen(words, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        try:
            yield
        finally:
            process.kill()


def test_processes_with_one_cache_ask_each_question_once(tmp_path: Path) -> None:
    """Several processes over the same data send as many requests as one, and their runs are equal."""
    here = Here(tmp_path)
    here.write("data.jsonl", ROWS)
    with JudgeServer(delay_s=0.3) as server:
        processes = [start(here, server, str(number)) for number in range(PROCESSES)]
        assert [process.wait() for process in processes] == [0] * PROCESSES
        assert Counter(server.sent).most_common(1)[0][1] == 1
        assert server.count == 2 * len(ROWS)
    found = [merilo.Run.open(tmp_path / str(number)) for number in range(PROCESSES)]
    assert len({canonical(run) for run in found}) == 1
    assert sum(run.usage["requests"] for run in found) == 2 * len(ROWS)
    assert all(run.usage["requests"] + run.usage["cached"] == 2 * len(ROWS) for run in found)


def test_a_killed_process_leaves_its_questions_to_the_others(tmp_path: Path) -> None:
    """Another process waits for the requests of the first one, and sends them itself once that one is killed."""
    here = Here(tmp_path)
    here.write("data.jsonl", ROWS[:2])
    with JudgeServer(delay_s=3.0) as server:
        first = start(here, server, "first")
        while server.count < 4 and first.poll() is None:
            time.sleep(0.01)
        second = start(here, server, "second")
        time.sleep(1.5)
        assert server.count == 4
        first.send_signal(signal.SIGKILL)
        first.wait()
        server.delay_s = 0.0
        assert second.wait(60) == 0
        assert server.count == 8
    assert merilo.Run.open(tmp_path / "second").complete


def test_a_failed_question_is_asked_by_each_process(tmp_path: Path) -> None:
    """A failure is not shared: the next process asks itself, and does not wait for ever."""
    here = Here(tmp_path)
    here.write("data.jsonl", ROWS[:1])
    with JudgeServer(delay_s=0.2) as server:
        server.fail(status(400))
        processes = [start(here, server, str(number)) for number in range(2)]
        for process in processes:
            process.wait(60)
        assert server.count >= 2


def test_a_claim_is_exclusive_and_ends_with_its_process(tmp_path: Path) -> None:
    """Another process cannot claim a claimed key, but any other key, and the same key once the process is killed."""
    claims = Claims(tmp_path / "claims")
    with claimed(tmp_path / "claims", KEY):
        assert not claims.take([KEY])
        assert claims.take([OTHER])
    assert claims.take([KEY])
    claims.close()


def test_runs_in_one_process_share_their_claims(tmp_path: Path) -> None:
    """Two runs in one process exclude each other too; closing one leaves the claims of the other in place."""
    one, two = Claims(tmp_path / "claims"), Claims(tmp_path / "claims")
    assert one.take([KEY])
    assert one.take([KEY])
    assert not two.take([KEY])
    assert not two.take([OTHER, KEY])
    assert one.take([OTHER])  # which the second run has not claimed, since it did not get both
    one.drop([OTHER])
    assert two.take([OTHER])
    two.close()
    child = "import sys\nfrom pathlib import Path\nfrom merilo.engine.cache import Claims\n"
    child += f"print(Claims(Path({str(tmp_path / 'claims')!r})).take([{KEY!r}]))"
    done = subprocess.run([sys.executable, "-c", child], stdout=subprocess.PIPE, check=True, encoding="utf-8")
    assert done.stdout == "False\n"
    one.drop([KEY])
    three = Claims(tmp_path / "claims")
    assert three.take([KEY])
    three.close()
    one.close()


def test_without_a_file_to_lock_every_question_can_be_claimed(tmp_path: Path) -> None:
    """A directory that cannot be written costs the sharing, not the run."""
    claims = Claims(tmp_path / "nowhere" / "claims")
    assert claims.take([KEY])
    claims.close()


def test_a_question_answered_since_it_was_looked_up_is_not_asked(tmp_path: Path) -> None:
    """Between look-up and claim another process may answer and give its claim up; the claim then finds the verdict."""
    question, verdict = Relevance("q?", ("One.",)), RelevanceVerdict(0)
    slow, fast = VerdictCache(tmp_path / "cache.sqlite"), VerdictCache(tmp_path / "cache.sqlite")
    assert slow.find({KEY: question, OTHER: question}) == {}
    assert fast.claim({KEY: [KEY]}) == set()
    assert slow.claim({KEY: [KEY]}) == {KEY}
    fast.put([(KEY, question, verdict)], "judge", paid=True)
    fast.unclaim([KEY])
    assert slow.claim({KEY: [KEY]}) == {KEY}  # not visible yet, so still claimed
    fast.commit()
    assert slow.claim({KEY: [KEY], OTHER: [OTHER]}) == {KEY}
    assert slow.find({KEY: question}) == {KEY: verdict}
    slow.close()
    fast.close()


def test_a_process_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that stays without an answer delays a run by the longest wait only."""
    monkeypatch.setattr(drivers, "_MAX_WAIT_S", 0.5)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    path = tmp_path / "cache.sqlite"
    with JudgeServer() as server:
        chosen = {"metrics": ["context_relevance"], "judge": "openai:m", "base_url": server.base_url}
        first = merilo.evaluate(ROWS[:1], **grouped(out=tmp_path / "first", cache=False, **chosen))
        keys = [bytes.fromhex(key) for each in first.records() for key in each["trail"]]
        began = time.monotonic()
        with claimed(path.with_name("cache.sqlite.claims"), keys[0]):
            run = merilo.evaluate(ROWS[:1], **grouped(out=tmp_path / "run", cache=path, **chosen))
        assert time.monotonic() - began > 0.5
        assert run.complete
        assert run.usage["requests"] == 2


def test_a_limit_ends_a_run_that_waits_for_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--max-seconds holds while a question is claimed elsewhere, and the same command resumes."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    path = tmp_path / "cache.sqlite"
    with JudgeServer() as server:
        chosen = {"metrics": ["context_relevance"], "judge": "openai:m", "base_url": server.base_url, "cache": path}
        first = merilo.evaluate(ROWS[:1], **grouped(out=tmp_path / "first", **{**chosen, "cache": False}))
        keys = [bytes.fromhex(key) for each in first.records() for key in each["trail"]]
        with claimed(path.with_name("cache.sqlite.claims"), keys[0]):
            run = merilo.evaluate(ROWS[:1], **grouped(out=tmp_path / "run", max_seconds=0.5, **chosen))
        assert not run.complete
        again = merilo.evaluate(ROWS[:1], **grouped(out=tmp_path / "run", **chosen))
    assert again.complete
    assert json.loads((again.path / "usage.json").read_bytes())["requests"] == 2
