"""Runs by batches against a server with the three APIs, and as files."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grouping
import pytest
from batch_server import BatchServer, Plan
from command_line import Here
from grouping import grouped

import merilo
from merilo.engine import batch_rounds
from merilo.errors import ProviderDown, UsageError

KINDS = ("openai", "anthropic", "google")
METRICS = ["faithfulness", "context_relevance"]
PRICES = [{"model": "m", "input": 10.0, "output": 20.0, "batch": 0.5}]


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "user_input": f"How long is river {n}?",
            "retrieved_contexts": [f"It is {n} km long."],
            "response": f"It is {n} km long. It is wide.",
        }
        for n in range(count)
    ]


def judge(server: BatchServer, kind: str = "openai") -> dict[str, Any]:
    url = server.base_url if kind == "openai" else server.root_url
    return {"judge": f"{kind}:m", "base_url": url, "metrics": METRICS, "cache": False}


def batched(server: BatchServer, out: Path, count: int, *, kind: str = "openai", **options: Any) -> merilo.Run:
    """Submit and collect until nothing is left."""
    for _ in range(12):
        run = merilo.evaluate(rows(count), **grouped(out=out, batch=True, **judge(server, kind), **options))
        if run.complete:
            return run
        server.run_batches()
    raise AssertionError(run.usage["stopped"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_batched_run_equals_the_direct_one(kind: str, tmp_path: Path) -> None:
    """Errors of some lines and a batch that expires change no outcome, and no line is run twice."""
    with BatchServer() as server:
        direct = merilo.evaluate(rows(20), **grouped(out=tmp_path / "direct", **judge(server, kind)))
        single = sorted(json.dumps(json.loads(body)) for body in server.sent)
        server.sent.clear()
        server.plan = Plan(errors=0.2, expires=0.3)
        run = batched(server, tmp_path / "batched", 20, kind=kind)
        assert sorted(json.dumps(json.loads(body)) for body in server.sent) == single
        assert len(server.plan.struck) >= 3
        assert server.batches[0].expired
    assert (run.path / "outcomes.jsonl").read_bytes() == (direct.path / "outcomes.jsonl").read_bytes()
    assert (run.path / "summary.json").read_bytes() == (direct.path / "summary.json").read_bytes()
    assert run.usage["input_tokens"] == direct.usage["input_tokens"]
    assert not run.usage["unanswered"]


def test_draws_are_separate_lines(tmp_path: Path) -> None:
    """Each draw of a question has its own line, so a run with draws equals the direct one too."""
    with BatchServer() as server:
        direct = merilo.evaluate(rows(3), **grouped(out=tmp_path / "direct", draws=2, **judge(server)))
        run = batched(server, tmp_path / "batched", 3, draws=2)
    assert (run.path / "outcomes.jsonl").read_bytes() == (direct.path / "outcomes.jsonl").read_bytes()


def test_a_rejected_parameter_is_left_out_of_the_next_batch(tmp_path: Path) -> None:
    """A parameter that the model rejects fails every line; a batch with a small value is tried, then one without it."""
    with BatchServer() as server:
        server.refuse("temperature")
        run = batched(server, tmp_path / "run", 2)
        assert len(server.batches) == 4
    assert list(run.usage["adaptations"].values()) == [{"temperature": "dropped"}]
    assert all(each.failed == 0 for each in run.metrics.values())


def test_a_line_that_always_fails_is_retried_five_times(tmp_path: Path) -> None:
    """After six attempts its outcome is Failed; the other samples are scored."""
    with BatchServer() as server:
        server.plan = Plan(broken="river 1?", status=500)
        run = batched(server, tmp_path / "run", 3)
        assert sum("river 1?" in json.dumps(batch.lines) for batch in server.batches) == 6
    aggregate = run.metrics["context_relevance"]
    assert (aggregate.scored, aggregate.failed) == (2, 1)


def test_failed_lines_are_asked_again_on_demand(tmp_path: Path) -> None:
    """`retry_failed` submits the failed questions again; the run then equals one without failures."""
    with BatchServer() as server:
        direct = merilo.evaluate(rows(3), **grouped(out=tmp_path / "direct", **judge(server)))
        server.plan = Plan(broken="river 1?", status=400)
        assert any(each.failed for each in batched(server, tmp_path / "run", 3).metrics.values())
        server.plan = Plan()
        merilo.evaluate(rows(3), **grouped(out=tmp_path / "run", batch=True, retry_failed=True, **judge(server)))
        with pytest.raises(UsageError, match="waits for batches"):
            merilo.evaluate(rows(3), **grouped(out=tmp_path / "run", batch=True, retry_failed=True, **judge(server)))
        server.run_batches()
        run = batched(server, tmp_path / "run", 3)
    assert (run.path / "outcomes.jsonl").read_bytes() == (direct.path / "outcomes.jsonl").read_bytes()


def test_requests_in_batches_cost_their_own_price(tmp_path: Path) -> None:
    """With `batch = 0.5` a run costs half; the most it can cost is reserved while it waits."""
    with BatchServer() as server:
        direct = merilo.evaluate(rows(4), **grouped(out=tmp_path / "direct", prices=PRICES, **judge(server)))
        waiting = merilo.evaluate(rows(4), **grouped(out=tmp_path / "run", prices=PRICES, batch=True, **judge(server)))
        assert waiting.usage["unanswered_usd"] > 0
        server.run_batches()
        run = batched(server, tmp_path / "run", 4, prices=PRICES)
    assert run.usage["cost_usd"] == pytest.approx(direct.usage["cost_usd"] / 2)
    assert run.usage["unanswered_usd"] == 0


def test_a_plan_uses_the_prices_of_batches() -> None:
    """`plan` with `batch` predicts half the cost."""
    options: dict[str, Any] = {"judge": "openai:gpt-4.1-mini", "metrics": METRICS, "cache": False}
    usd = [merilo.plan(rows(2), **grouped(batch=batch, **options)).typical.usd for batch in (False, True)]
    assert usd[0] is not None
    assert usd[1] == pytest.approx(usd[0] / 2)


def test_a_batch_stays_within_the_limits(tmp_path: Path) -> None:
    """Only as many requests are submitted as could all be paid; the rest follows when replies have cost less."""
    with BatchServer() as server:
        limited = {"prices": PRICES, "max_cost_usd": 0.15}
        first = merilo.evaluate(rows(4), **grouped(out=tmp_path / "run", batch=True, **limited, **judge(server)))
        assert 0 < first.usage["waiting"]["requests"] < 12
        server.run_batches()
        run = batched(server, tmp_path / "run", 4, **limited)
        assert run.usage["cost_usd"] <= 0.15
        stopped = merilo.evaluate(rows(4), **grouped(out=tmp_path / "few", batch=True, max_requests=3, **judge(server)))
        assert stopped.usage["waiting"]["requests"] == 3
        server.run_batches()
        stopped = merilo.evaluate(rows(4), **grouped(out=tmp_path / "few", batch=True, max_requests=3, **judge(server)))
    assert stopped.usage["stopped"].startswith("Limit of 3 requests reached")


def test_keys_are_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that a reply repeats is removed before the reply is stored."""
    key = "sk-secret-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with BatchServer() as server:
        merilo.evaluate(rows(1), **grouped(out=tmp_path / "run", batch=True, **judge(server)))
        server.plan = Plan(broken="river", status=500)
        server.run_batches()
        assert server.batches[0].results is not None
        server.batches[0].results = [(name, 500, {"error": {"message": key}}) for name, _ in server.batches[0].lines]
        run = merilo.evaluate(rows(1), **grouped(out=tmp_path / "run", batch=True, **judge(server)))
    assert not run.complete
    assert not [each for each in run.path.iterdir() if key.encode() in each.read_bytes()]


def test_a_batch_that_is_rejected_ends_the_call(tmp_path: Path) -> None:
    """The reason is reported, and the next call submits the lines again."""
    with BatchServer() as server:
        merilo.evaluate(rows(1), **grouped(out=tmp_path / "run", batch=True, **judge(server)))
        server.refusal = "The file is empty."
        with pytest.raises(ProviderDown, match="batch_0 was rejected: The file is empty"):
            merilo.evaluate(rows(1), **grouped(out=tmp_path / "run", batch=True, **judge(server)))
        server.refusal = None
        assert batched(server, tmp_path / "run", 1).complete


def test_a_wrong_key_leaves_nothing(tmp_path: Path) -> None:
    """A submission that the server rejects costs nothing and leaves no run directory."""
    with BatchServer() as server:
        server.keys = frozenset({"Bearer other"})
        with pytest.raises(ProviderDown, match="rejected the key"):
            merilo.evaluate(rows(1), **grouped(out=tmp_path / "run", batch=True, **judge(server)))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"judge": "azure:m", "base_url": "http://127.0.0.1:9"}, "merilo knows no batch API for azure:m"),
        ({"judge": "embedded"}, "No judge of this run has a batch API"),
        ({"judge": "anthropic:m", "base_url": "http://127.0.0.1:9", "batch_files": "x"}, "writes OpenAI's format"),
    ],
)
def test_what_cannot_be_batched_is_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    """The error names the judge and what to use instead, before anything is sent."""
    with pytest.raises(UsageError, match=message):
        merilo.evaluate(rows(1), **grouped(out=tmp_path / "run", batch=True, metrics=METRICS, cache=False, **options))


def outputs(directory: Path, reply: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer each file of requests that has no output."""
    for path in directory.glob("*.requests.jsonl"):
        output = path.with_name(path.name.replace(".requests.", ".output."))
        if not output.exists():
            lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
            output.write_text("".join(json.dumps(reply(line)) + "\n" for line in lines), encoding="utf-8")


def test_batches_as_files(tmp_path: Path) -> None:
    """The command writes requests and exits with 6 until their outputs are there; a file being written is not read."""
    here = Here(tmp_path)
    here.write("data.jsonl", rows(2))
    command = ("run", "data.jsonl", "--judge", "openai:m", "--batch-files", "jobs", "--out", "run", "--no-cache")
    metrics = ("--metrics", "context_relevance")
    first = here.merilo(*command, *metrics)
    assert (first.returncode, "Waiting for 2 requests in 1 batch." in first.stderr) == (6, True)
    (requests,) = (tmp_path / "jobs").iterdir()
    output = requests.with_name(requests.name.replace(".requests.", ".output."))
    output.write_text('{"custom_id": "x"', encoding="utf-8")
    assert here.merilo(*command, *metrics).returncode == 6
    output.unlink()

    for line in map(json.loads, requests.read_text(encoding="utf-8").splitlines()):
        assert (line["method"], line["url"], line["body"]["model"]) == ("POST", "/v1/chat/completions", "m")
    outputs(tmp_path / "jobs", _graded)
    done = here.merilo(*command, *metrics)
    assert done.returncode == 0, done.stderr
    assert "context_relevance  1.000" in done.stdout


def _graded(line: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a line: grade 2."""
    content = json.dumps({"reason": "It says so.", "grade": 2, "evidence": [1]})
    body = {"model": "m", "choices": [{"message": {"content": content}, "finish_reason": "stop"}]}
    return {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}


def _with_files(tmp_path: Path, count: int) -> merilo.Run:
    return merilo.evaluate(
        rows(count),
        out=tmp_path / "run",
        storage={"batch_files": tmp_path / "jobs", "cache": False},
        judge={"spec": "openai:m", "base_url": "http://127.0.0.1:9/v1"},
        metrics=["context_relevance"],
    )


def test_outputs_in_any_order_and_twice_are_read_once(tmp_path: Path) -> None:
    """Reordered, repeated and foreign lines change nothing, and an error after a reply does not ask again."""
    _with_files(tmp_path, 3)
    (path,) = (tmp_path / "jobs").iterdir()
    lines = [*map(json.loads, path.read_text(encoding="utf-8").splitlines())]
    wrong = [{"custom_id": each["custom_id"], "response": {"status_code": 500, "body": {}}} for each in lines]
    found = [*map(_graded, reversed(lines)), *wrong, _graded({"custom_id": "other"})]
    output = path.with_name(path.name.replace(".requests.", ".output."))
    output.write_text("".join(json.dumps(each) + "\n" for each in found), encoding="utf-8")
    run = _with_files(tmp_path, 3)
    assert (run.complete, run.usage["requests"], run.metrics["context_relevance"].mean) == (True, 3, 1.0)


def test_an_output_of_other_requests_is_refused(tmp_path: Path) -> None:
    """It would look as if no request had been run, and all would be submitted again."""
    _with_files(tmp_path, 2)
    outputs(tmp_path / "jobs", lambda line: _graded({"custom_id": "x" + line["custom_id"]}))
    with pytest.raises(ProviderDown, match="results of other requests"):
        _with_files(tmp_path, 2)
    assert len([*(tmp_path / "jobs").glob("*.requests.jsonl")]) == 1


_KILLED = """
import json, os, random, signal, sys, urllib.request
from pathlib import Path
import merilo
import merilo.providers.batch_apis
from merilo.engine import batch_rounds
from merilo.providers.endpoint import Wire
from merilo.runs.batch_store import BatchStore
from merilo.runs.ledger import Ledger

sys.path.insert(0, sys.argv[5])
from grouping import grouped

url, out, options, rows = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
batch_rounds.INTERRUPTED_S = 0.02
left = 0
files = {**options, "judge": "openai:m", "base_url": url, "batch_files": out + "-files"}
merilo.evaluate(rows, out=out + "-warm", **grouped(**files))  # what is imported here need not be imported in each child

def step():
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

def dies(call):
    def run(*values, **named):
        step()
        result = call(*values, **named)
        step()
        return result
    return run

def dies_async(call):
    async def run(*values, **named):
        step()
        result = await call(*values, **named)
        step()
        return result
    return run

kills = 0
luck = random.Random(3)
while True:
    child = os.fork()
    if not child:
        left = luck.randrange(1, 30) if kills < 7 else 0
        for owner, name in ((BatchStore, "_write"), (Ledger, "_write")):
            setattr(owner, name, dies(getattr(owner, name)))
        Wire._exchange = dies_async(Wire._exchange)
        run = merilo.evaluate(rows, out=out, **grouped(batch=True, **options))
        os._exit(0 if run.complete else 6)
    luck.random()
    _, status = os.waitpid(child, 0)
    kills += os.WIFSIGNALED(status)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status) == 0:
        break
    if luck.random() < 0.5:
        urllib.request.urlopen(urllib.request.Request(url + "/run", method="POST")).read()
print(kills)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_kills_lose_nothing_and_pay_for_nothing_twice(kind: str, tmp_path: Path) -> None:
    """Killed before or after writes and requests in turn, with line errors and a batch that expires, a run ends with
    the same bytes, and each line ran once.
    """
    with BatchServer() as server:
        direct = merilo.evaluate(rows(2), **grouped(out=tmp_path / "direct", **judge(server, kind)))
        needed = len(server.sent)
        server.sent.clear()
        server.plan = Plan(errors=0.2, expires=0.4)
        words = [server.root_url, str(tmp_path / "run"), json.dumps(judge(server, kind)), json.dumps(rows(2))]
        words.append(str(Path(grouping.__file__).parent))
        done = subprocess.run(
            [sys.executable, "-c", _KILLED, *words], capture_output=True, text=True, check=False, timeout=250
        )
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) >= 5
        assert len(server.sent) == needed
        assert any(each.expired for each in server.batches)
    run = merilo.Run.open(tmp_path / "run")
    assert (run.path / "outcomes.jsonl").read_bytes() == (direct.path / "outcomes.jsonl").read_bytes()
    assert run.usage["input_tokens"] == direct.usage["input_tokens"]
    assert not run.usage["unanswered"]


def test_an_unanswered_submission_of_anthropics_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its batches have no name, so a batch in progress may be the lost one: nothing is submitted until it ends."""
    monkeypatch.setattr(batch_rounds, "INTERRUPTED_S", 0.0)
    with BatchServer() as server:
        server.on_batch = server.stop_answering
        with pytest.raises(merilo.MeriloError):
            merilo.evaluate(rows(1), **grouped(out=tmp_path / "run", batch=True, **judge(server, "anthropic")))
        server.on_batch = lambda: None
        waiting = merilo.evaluate(rows(1), **grouped(out=tmp_path / "run", batch=True, **judge(server, "anthropic")))
        assert waiting.usage["waiting"]["batches"] == [None]
        assert len(server.batches) == 1
        server.run_batches()
        run = merilo.evaluate(rows(1), **grouped(out=tmp_path / "run", batch=True, **judge(server, "anthropic")))
        assert run.usage["waiting"]["batches"] == ["msgbatch_1"]
        server.run_batches()
        assert batched(server, tmp_path / "run", 1, kind="anthropic").complete
        assert len(server.batches) == 2
