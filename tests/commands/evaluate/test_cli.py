"""`merilo run`."""

import json
import re
import shlex
import signal
import subprocess
import time

import pytest
from command_line import COMMAND, Here
from seals import seal_again
from server import JudgeServer, hang, rate_limited, status

from merilo.commands.option import metric_texts, share
from merilo.errors import UsageError

SUMMARY = """\
4 answers: 3 not supported, 1 declined.
By scripted:script.jsonl, not checked on this data.

metric              mean  95 % interval  scored
faithfulness       0.167  0.000 - 0.884       3  1 undefined
context_relevance  0.250  0.000 - 1.000       2  1 undefined; 1 failed
context_precision  0.500  0.000 - 1.000       2  1 undefined; 1 failed

Read first
  river  Not supported  How long is the river?
  lost   Not supported  What is lost?
  tower  Not supported  When was the tower completed?

2 outcomes failed: It will not.

Intervals cover sampling of questions, not judge error.

This run
  judge  scripted:script.jsonl; agreement with human labels unknown
  cost   0 requests, free of charge, 0.0 s

Not scored, and not in the means
  faithfulness  1 undefined: the response declines to answer and makes no claim
                (1)
  context_relevance, context_precision
                1 undefined, 1 failed: It will not (1); no context was retrieved
                (1)

Bounds of the means, if these samples were worst or best
  faithfulness       0.125 - 0.375 with undefined samples
  context_relevance  0.167 - 0.500 with failed samples, 0.125 - 0.625 with
                     undefined samples
  context_precision  0.333 - 0.667 with failed samples, 0.250 - 0.750 with
                     undefined samples

Counts by the judge, and shares with their intervals
  faithfulness       contradicted not distinguished by this judge
  faithfulness       supported: 1 of 4 statements, 0.250 (0.000 - 1.000)
  context_relevance, context_precision
                     relevant: 1 of 3 contexts, 0.333 (0.000 - 1.000)
  context_relevance  fully relevant: 1 of 3 contexts, 0.333 (0.000 - 1.000)
  context_relevance  evidence sentences: 1 of 4 sentences, 0.250 (0.000 - 1.000)

To check the judge: 20 labelled samples are needed; 3 can be labelled here.
Evaluate more questions.
Report: merilo report out      Read it: merilo show out --sample river
"""
PROMISED = {
    "run", "judge", "samples", "skipped", "metrics", "left_out", "requests", "cached",
    "input_tokens", "output_tokens", "cost_usd", "seconds",
}  # fmt: skip
OF_A_METRIC = {"mean", "interval", "level", "bounds", "scored", "undefined", "failed"}
ARGUMENTS = ("run", "data.jsonl", "--judge", "scripted:script.jsonl", "--out", "out")


def test_the_summary_at_80_columns(run: Here) -> None:
    """With --full the summary is this text, and no line of it is wider than the terminal."""
    seal_again(run.path / "out", seconds=0.0)
    shown = run.merilo("show", "out", "--full").stdout
    assert shown == SUMMARY
    assert max(map(len, shown.splitlines())) <= 80


def test_json_is_one_object_and_nothing_else(run: Here) -> None:
    """With --json standard output is one object that holds at least what is promised."""
    found = run.json(*ARGUMENTS, "--metrics", "context_relevance", "--out", "json", "--max-failed", "1")
    assert found.keys() >= PROMISED
    assert found["metrics"]["context_relevance"].keys() >= OF_A_METRIC
    assert (found["samples"], found["skipped"], found["cost_usd"]) == (4, 0, 0.0)
    assert found["metrics"]["context_relevance"]["bounds"] == pytest.approx([1 / 6, 1 / 2])


def test_too_many_failed_outcomes_exit_with_4(run: Here) -> None:
    """More failed outcomes than --max-failed give exit code 4 and the command that asks again."""
    done = run.merilo(*ARGUMENTS, "--metrics", "context_relevance", "--out", "failing", "--max-failed", "24%")
    assert done.returncode == 4
    assert "1 of 4 outcomes failed (25.0%)" in done.stderr
    assert shlex.split(done.stderr.split("again: ")[1])[-1] == "--retry-failed"
    followed = run.merilo(*shlex.split(done.stderr.split("again: ")[1])[1:])
    assert followed.returncode == 4
    assert "1 of 4 outcomes failed (25.0%)" in followed.stderr
    assert "--retry-failed" not in followed.stdout + followed.stderr
    assert (
        run.merilo(*ARGUMENTS, "--metrics", "context_relevance", "--out", "failing", "--max-failed", "0.25").returncode
        == 0
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "missing.jsonl"), "missing.jsonl"),
        (("run", "data.jsonl", "--metrics", ","), "--metrics"),
        (("run", "data.jsonl", "--judge", "oracle"), "embedded, local:MODEL, openai:MODEL"),
        (("run", "data.jsonl", "--map", "question"), "--map takes column=field"),
        (("run", "data.jsonl", "--max-failed", "2"), "A share is a number from 0 to 1"),
        (("run", "data.jsonl", "--limit", "x"), "merilo run --help"),
        (("run",), "merilo run --help"),
        (("frobnicate",), "merilo --help"),
        (("show", "out", "--sample", "nobody"), "nobody"),
        (("metrics", "nope"), "No metric"),
        (("judge", "check", "scripted:none.json", "--task", "trial"), "none.json"),
    ],
)
def test_wrong_use_exits_with_2_and_one_message(run: Here, arguments: tuple[str, ...], message: str) -> None:
    """A mistake of the user gives exit code 2, a message that says what to write, and no traceback."""
    done = run.merilo(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_bad_records_refuse_the_data_or_are_named(here: Here) -> None:
    """Bad data stops the run with each fault's place; --skip-invalid leaves those records out and counts them."""
    here.write(
        "data.jsonl",
        [{"id": "a", "user_input": "u", "retrieved_contexts": ["c."]}, {"id": "a"}, {"id": [], "user_input": 1}],
    )
    refused = here.merilo("run", "data.jsonl", "--out", "out")
    assert refused.returncode == 2
    assert "line 3, field 'user_input'" in refused.stderr
    assert "--skip-invalid" in refused.stderr
    found = here.json("run", "data.jsonl", "--out", "out", "--skip-invalid")
    assert (found["samples"], found["skipped"], len(found["skipped_records"])) == (1, 2, 2)
    assert "Skipped 2 invalid records" in here.merilo("show", "out").stdout


def test_data_from_standard_input_and_a_mapped_column(here: Here) -> None:
    """A dash reads JSON Lines from standard input; --map fills a field from a column of another name."""
    record = json.dumps({"frage": "Who?", "retrieved_contexts": ["A king."]})
    done = here.merilo(
        "run", "-", "--map", "frage=user_input", "--metrics", "context_relevance", "--json", stdin=record
    )
    assert json.loads(done.stdout)["samples"] == 1


def test_an_interrupted_run_says_how_to_go_on_and_does(here: Here) -> None:
    """SIGTERM gives exit code 130 and a command that finishes the run, asking nothing again that was kept."""
    rows = [{"id": f"s{n}", "user_input": f"Where is {n}?", "retrieved_contexts": [f"Here is {n}."]} for n in range(20)]
    here.write("data.jsonl", rows)
    with JudgeServer(delay_s=0.1) as server:
        words = ["run", "data.jsonl", "--judge", "openai:test-model", "--base-url", server.base_url]
        words += ["--metrics", "context_relevance", "--concurrency", "2"]
        stopped = interrupted(here, words, server, signal.SIGTERM)
        assert stopped.returncode == 130
        command = shlex.split(stopped.stderr.split("To resume: ")[1])
        asked = server.count
        done = here.merilo(*command[1:])
        assert done.returncode == 0
        assert re.search(r"context_relevance .* 20$", done.stdout, re.MULTILINE)
        assert server.count <= 20 + 2 * 2  # in the air, or just arrived, when it was stopped
        assert server.count > asked


def interrupted(
    here: Here, words: list[str], server: JudgeServer, how: signal.Signals, requests: int = 6
) -> subprocess.CompletedProcess[str]:
    """The command, stopped by a signal once the server has seen some requests."""
    process = subprocess.Popen(
        [COMMAND, *words],
        cwd=here.path,
        env=here.environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    waited_until = time.monotonic() + 100
    while server.count < requests and time.monotonic() < waited_until:
        time.sleep(0.05)
    process.send_signal(how)
    out, err = process.communicate(timeout=100)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


ONE = [{"id": "a", "user_input": "u", "retrieved_contexts": ["c."]}]


def left(here: Here) -> list[str]:
    """The run directories in `runs` and in the default place."""
    return sorted(str(path.relative_to(here.path)) for path in here.path.glob("**/runs/*"))


def test_a_provider_that_cannot_be_used_leaves_no_run(here: Here) -> None:
    """A wrong key or an unreachable server gives exit code 2, no run directory and no command that resumes one."""
    here.write("data.jsonl", ONE)
    with JudgeServer() as server:
        server.fail(status(401))
        words = ("run", "data.jsonl", "--out", "runs/new", "--judge", "openai:test-model", "--base-url")
        refused = here.merilo(*words, server.base_url)
    unreachable = here.merilo(*words, server.base_url)  # it is closed by now
    for done, message in ((refused, "401"), (unreachable, "No server at ")):
        assert done.returncode == 2
        assert message in done.stderr
        assert "resume" not in done.stderr
        assert "Traceback" not in done.stderr
    assert left(here) == []


def test_ctrl_c_before_the_first_answer_leaves_no_run(here: Here) -> None:
    """A run that is stopped while the server refuses everything leaves nothing, because nothing can be resumed."""
    here.write("data.jsonl", ONE)
    with JudgeServer() as server:
        server.fail(rate_limited("5"))
        words = ["run", "data.jsonl", "--judge", "openai:test-model", "--base-url", server.base_url]
        stopped = interrupted(here, words, server, signal.SIGINT, requests=1)
    assert (stopped.returncode, stopped.stdout) == (130, "")
    assert "resume" not in stopped.stderr
    assert left(here) == []


def test_a_request_that_may_be_billed_keeps_the_run(here: Here) -> None:
    """A request in flight at Ctrl-C may be billed, so the run and its ledger stay."""
    here.write("data.jsonl", ONE)
    with JudgeServer() as server:
        server.fail(hang())
        words = ["run", "data.jsonl", "--judge", "openai:test-model", "--base-url", server.base_url, "--out", "runs/a"]
        stopped = interrupted(here, words, server, signal.SIGINT, requests=1)
    assert "To resume: merilo run data.jsonl" in stopped.stderr
    assert left(here) == ["runs/a"]


def test_a_directory_that_existed_is_not_removed(here: Here) -> None:
    """A directory with earlier answers, an empty one, and one with another file stay when the server is gone."""
    here.write("data.jsonl", ONE)
    (here.path / "runs" / "empty").mkdir(parents=True)
    with JudgeServer() as server:
        words = ["run", "data.jsonl", "--judge", "openai:test-model", "--base-url", server.base_url]
        assert here.merilo(*words, "--metrics", "context_relevance", "--out", "runs/done").returncode == 0
    earlier = (here.path / "runs" / "done" / "summary.json").read_bytes()
    here.merilo(*words, "--out", "runs/empty")
    (here.path / "runs" / "noted").mkdir()
    here.write("runs/noted/notes.txt", ["mine"])
    here.merilo(*words, "--out", "runs/noted")
    here.merilo(*words, "--metrics", "context_relevance", "--out", "runs/done", "--retry-failed")
    assert left(here) == ["runs/done", "runs/empty", "runs/noted"]
    assert (here.path / "runs" / "done" / "summary.json").read_bytes() == earlier


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["a,b"], ["a", "b"]),
        (["a(x=1, y=2),b", "c"], ["a(x=1, y=2)", "b", "c"]),
        (['a(x="1),2"), b'], ['a(x="1),2")', "b"]),
    ],
)
def test_metrics_are_divided_by_commas_outside_parentheses(given: list[str], found: list[str]) -> None:
    """A comma within parentheses or quotes belongs to its metric."""
    assert metric_texts(given) == found


@pytest.mark.parametrize(("text", "value"), [("0.01", 0.01), ("1%", 0.01), ("0", 0.0), ("100 %", 1.0)])
def test_a_share_is_a_number_or_a_percentage(text: str, value: float) -> None:
    """0.01 and 1% are the same share."""
    assert share(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["-1", "1.5", "101%", "x", "nan"])
def test_a_share_lies_between_0_and_1(text: str) -> None:
    """Anything else is refused."""
    with pytest.raises(UsageError):
        share(text)
