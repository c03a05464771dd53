"""The event log: what stands in it, what must not, and what happens where it cannot be written."""

import json
import os
import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from grouping import grouped
from judged_rivers import canonical, rows
from server import JudgeServer, bare, rate_limited, refusal, says, status

import merilo

PLANTED = "sk-planted-0123456789"


def events_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`merilo.evaluate` of river samples by a server, with a key."""
    monkeypatch.setenv("PLANTED", PLANTED)

    def run(server: JudgeServer, samples: int = 6, **arguments: Any) -> merilo.Run:
        return merilo.evaluate(
            rows(samples),
            **grouped(
                **{
                    "judge": "openai:test-model",
                    "base_url": server.base_url,
                    "api_key_env": "PLANTED",
                    "metrics": ["context_relevance", "faithfulness"],
                    "cache": False,
                    "concurrency": 2,
                    "out": tmp_path / "run",
                    "log_json": tmp_path / "events.jsonl",
                }
                | arguments
            ),
        )

    return run


def test_the_events_of_a_run(evaluated: Any, tmp_path: Path) -> None:
    """One object a line: begin, each request, each sample, end; each with its kind and when it was."""
    with JudgeServer(delay_s=0.02) as server:
        server.fail_next(status(500), rate_limited("0"))
        run = evaluated(server)
        address = server.base_url
    events = events_in(tmp_path / "events.jsonl")
    assert (events[0]["event"], events[-1]["event"]) == ("begin", "end")
    kinds = Counter(event["event"] for event in events)
    assert kinds["sample"] == 6
    assert kinds["sent"] == server.count == kinds["replied"] + 2
    assert (kinds["retried"], kinds["limited"]) == (2, 1)
    assert {(event["event"], event["status"]) for event in events if "status" in event} == {
        ("retried", 500),
        ("retried", 429),
        ("limited", 429),
    }
    begin, end = events[0], events[-1]
    assert begin["metrics"] == ["context_relevance", "faithfulness"]
    assert begin["judges"]["judge"] == "openai:test-model"
    assert (begin["run"], begin["samples"], begin["limits"]["concurrency"]) == (str(run.path), 6, 2)
    assert (end["complete"], end["done"], end["error"]) == (True, 6, None)
    assert (end["sent"], end["retries"]) == (server.count, 2)
    assert end["usage"] == run.usage
    assert {event["endpoint"] for event in events if "endpoint" in event} == {f"openai {address} test-model"}
    assert all(event["seconds"] > 0.01 for event in events if event["event"] == "replied")


def test_each_event_says_when(evaluated: Any, tmp_path: Path) -> None:
    """`at` are seconds since the beginning, which never go back; `time` is the same moment, in UTC."""
    with JudgeServer(delay_s=0.05) as server:
        evaluated(server)
    events = events_in(tmp_path / "events.jsonl")
    at = [event["at"] for event in events]
    assert at == sorted(at)
    assert at[0] < 0.1 < at[-1]
    times = [datetime.fromisoformat(event["time"]) for event in events]
    assert {time.utcoffset().total_seconds() for time in times if time.tzinfo} == {0.0}
    for event, time in zip(events, times, strict=True):
        assert (time - times[0]).total_seconds() == pytest.approx(event["at"] - at[0], abs=0.003)


def test_outcomes_of_a_sample(evaluated: Any, tmp_path: Path) -> None:
    """A sample that is done is told with what came of each metric."""
    with JudgeServer() as server:
        server.fail(refusal(), share=0.3, seed=1)
        run = evaluated(server, samples=10)
    told = {
        event["id"]: event["outcomes"] for event in events_in(tmp_path / "events.jsonl") if event["event"] == "sample"
    }
    kept: dict[str, dict[str, str]] = {}
    for record in run.records():
        kept.setdefault(record["sample"], {})[record["metric"]] = record["outcome"]
    assert told == kept
    assert {"score", "failed"} <= {kind for outcomes in told.values() for kind in outcomes.values()}


def test_no_key_and_no_text_is_in_it(evaluated: Any, tmp_path: Path) -> None:
    """Neither the key, nor a word of a sample, nor one of a reply, also where the server repeats them in its errors."""
    echo = json.dumps({"error": {"message": f"cannot read: How long is river 1? {PLANTED}"}})
    with JudgeServer() as server:
        server.fail_next(bare(echo, 500), bare(echo, 429), bare(echo, 400), says(f"a strange reply {PLANTED}"))
        server.refuse("temperature")
        evaluated(server)
    text = (tmp_path / "events.jsonl").read_text(encoding="utf-8")
    assert "retried" in text
    for secret in (PLANTED, "How long", "river", "market", "strange", "cannot read"):
        assert secret not in text.replace(str(tmp_path), "")


def test_a_limit_is_told(evaluated: Any, tmp_path: Path) -> None:
    """A run that reaches a limit says which, and ends incomplete; the resumed one begins again in the same file."""
    with JudgeServer() as server:
        evaluated(server, max_requests=5)
        evaluated(server)
    events = events_in(tmp_path / "events.jsonl")
    ends = [number for number, event in enumerate(events) if event["event"] == "end"]
    assert [event["event"] for event in events].count("begin") == len(ends) == 2
    assert events[ends[0] - 1]["event"] == "limit"
    assert "--max-requests" in events[ends[0] - 1]["text"]
    assert [events[number]["complete"] for number in ends] == [False, True]
    assert events[ends[0] + 1]["event"] == "begin"
    assert events[ends[1]]["known"] > 0


def test_an_error_is_told_by_its_name(evaluated: Any, tmp_path: Path) -> None:
    """A run that breaks off ends with the kind of error."""
    with JudgeServer() as server:
        server.fail(status(401))
        with pytest.raises(merilo.ProviderDown):
            evaluated(server)
    end = events_in(tmp_path / "events.jsonl")[-1]
    assert (end["event"], end["complete"], end["error"]) == ("end", False, "ProviderDown")


def test_the_log_changes_no_byte_of_a_run(evaluated: Any, tmp_path: Path) -> None:
    """With and without it the run is the same."""
    with JudgeServer() as server:
        logged = evaluated(server)
        plain = evaluated(server, out=tmp_path / "plain", log_json=None)
    assert canonical(logged) == canonical(plain)


@each_case("name", ['"; drop', "a\nb", "\x1b[31m", "я", "\u202e", "\ud800"])
def test_hostile_ids_stay_within_their_line(tmp_path: Path, name: str) -> None:
    """Whatever an id holds, each line is one ASCII JSON object."""
    data = [{**row, "id": f"{name} {row['id']}"} for row in rows(3)]
    path = tmp_path / "events.jsonl"
    try:
        merilo.evaluate(
            data, metrics=["context_relevance"], out=tmp_path / "run", storage={"cache": False, "log_json": path}
        )
    except merilo.DataError:
        assert name == "\ud800"  # refused as data
        assert not path.exists()
        return
    assert path.read_bytes().isascii()
    assert "\x1b" not in path.read_text()
    found = [event["id"] for event in events_in(path) if event["event"] == "sample"]
    assert found == [row["id"] for row in data]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("-", "needs a file name"),
        ("", "needs a file name"),
        ("nowhere/events.jsonl", "No such file or directory"),
        (".", "Is a directory"),
        ("data.jsonl", "is not an event log"),
        ("\0", "null byte"),
    ],
)
def test_a_file_that_cannot_be_written_is_told_at_the_door(
    evaluated: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, sentence: str
) -> None:
    """One sentence before anything is asked; what is in the way stays as it is."""
    monkeypatch.chdir(tmp_path)
    Path("data.jsonl").write_text('{"id": "mine"}\n', encoding="utf-8")
    with JudgeServer() as server, pytest.raises(merilo.UsageError, match=re.escape(sentence)):
        evaluated(server, log_json=name)
    assert server.count == 0
    assert Path("data.jsonl").read_text(encoding="utf-8") == '{"id": "mine"}\n'
    assert not Path("run").exists()


def test_a_run_that_does_not_begin_leaves_no_log(tmp_path: Path) -> None:
    """Bad data or a wrong metric leave neither a run nor an empty log; an earlier log keeps its bytes."""
    path = tmp_path / "events.jsonl"
    with pytest.raises(merilo.UsageError):
        merilo.evaluate(rows(1), metrics=["nothing"], out=tmp_path / "run", storage={"log_json": path})
    assert list(tmp_path.iterdir()) == []
    merilo.evaluate(
        rows(1), metrics=["context_relevance"], storage={"cache": False, "log_json": path}, out=tmp_path / "run"
    )
    before = path.read_bytes()
    with pytest.raises(merilo.UsageError):
        merilo.evaluate(rows(1), metrics=["nothing"], out=tmp_path / "other", storage={"log_json": path})
    assert path.read_bytes() == before


def test_it_may_lie_in_the_directory_of_the_run(tmp_path: Path) -> None:
    """A log within a new run's directory is written, and the run can be resumed."""
    for _ in range(2):
        path = tmp_path / "run" / "events.jsonl"
        merilo.evaluate(
            rows(2), metrics=["context_relevance"], storage={"cache": False, "log_json": path}, out=tmp_path / "run"
        )
    assert [event["event"] for event in events_in(path)].count("end") == 2


def test_a_line_that_a_kill_cut_off_does_not_swallow_the_next(tmp_path: Path) -> None:
    """The next run begins on a line of its own."""
    path = tmp_path / "events.jsonl"
    options = {"metrics": ["context_relevance"], "cache": False, "out": tmp_path / "run", "log_json": path}
    merilo.evaluate(rows(2), **grouped(**options))
    os.truncate(path, path.stat().st_size - 20)
    merilo.evaluate(rows(2), **grouped(**options))
    lines = path.read_text(encoding="utf-8").splitlines()
    broken = [line for line in lines if not line.endswith("}")]
    assert len(broken) == 1
    assert lines[lines.index(broken[0]) + 1].startswith('{"event":"begin"')


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is needed")
def test_a_full_disk_ends_the_log_and_not_the_run(evaluated: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Where it cannot be written any more, one warning says so, and the run continues without it."""
    with JudgeServer() as server:
        assert evaluated(server, log_json="/dev/full").complete
    told = [record.message for record in caplog.records if "event log" in record.message]
    (sentence,) = told
    assert sentence == (
        "Cannot write the event log /dev/full any more ([Errno 28] No space left on device). "
        "The run continues without it."
    )


def test_lines_are_there_within_a_second(evaluated: Any, tmp_path: Path) -> None:
    """While a run goes on, what happened can be read soon, in whole lines."""
    path, seen = tmp_path / "events.jsonl", []

    class Reader:
        def begin(self, run: Path, samples: int) -> None: ...

        def tick(self) -> None:
            text = path.read_text(encoding="utf-8")
            assert text.endswith("}\n")
            seen.append(text.count("\n"))

        def advance(self, samples: int) -> None: ...
        def note(self, text: str) -> None: ...
        def end(self) -> None: ...

    with JudgeServer(delay_s=0.1) as server:
        evaluated(server, progress=Reader())
    assert len(seen) > 2
    assert seen[0] < seen[-1] < path.read_text(encoding="utf-8").count("\n")
