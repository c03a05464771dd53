"""`merilo judge check` as people type it."""

import json
from typing import Any

import pytest
from command_line import Here
from server import JudgeServer

LABELS = [
    {
        "id": f"n{number}",
        "source": "ours",
        "task": "sufficiency",
        "query": f"Is {number} {'known' if number % 2 else 'open'}?",
        "context": f"Text {number}.",
        "label": number % 2,
    }
    for number in range(70)
]
SCRIPT = (
    {
        "kind": "sufficiency",
        "match": {"user_input": {"contains": "69"}},
        "failure": {"kind": "refused", "message": "It will not."},
    },
    {
        "kind": "sufficiency",
        "match": {"user_input": {"contains": "known"}},
        "verdict": {"label": "sufficient", "probability": 0.8},
    },
    {"kind": "sufficiency", "verdict": {"label": "insufficient", "probability": 0.3}},
)


@pytest.fixture
def labelled(here: Here) -> Here:
    """A directory with ours.jsonl and a judge in script.jsonl that fails at one record."""
    here.write("ours.jsonl", LABELS)
    here.write("script.jsonl", SCRIPT)
    return here


def check(here: Here, *more: str) -> Any:  # Any: a finished process
    """The command with our labels."""
    return here.merilo(
        "judge", "check", "scripted:script.jsonl", "--labels", "ours.jsonl", "--task", "sufficiency", *more
    )


def test_the_page_and_the_exit_code_of_failures(labelled: Here) -> None:
    """The page has the table and what asking took; one failure in seventy is more than 1 %, so the status is 4."""
    done = check(labelled)
    assert done.returncode == 4
    assert "1 of 70 questions failed" in done.stderr
    row = next(line.split() for line in done.stdout.splitlines() if line.startswith("sufficiency "))
    assert row[1:3] == ["69/69", "1.00"]
    assert "Cost" in done.stdout
    assert len(done.stdout.splitlines()) <= 25


def test_a_kept_check_has_runs_that_can_be_shown(labelled: Here) -> None:
    """--out holds check.json and a run, whose records can be looked at one by one."""
    check(labelled, "--out", "kept", "--quiet")
    kept = json.loads((labelled.path / "kept" / "check.json").read_text(encoding="utf-8"))
    assert kept["tasks"]["sufficiency"]["sources"]["ours"]["n"] == 69
    shown = labelled.merilo("show", "kept/run", "--sample", "sufficiency/n3", "--full")
    assert shown.returncode == 0, shown.stderr
    assert "sufficient" in shown.stdout


def test_a_limit_stops_it(labelled: Here) -> None:
    """With --max-seconds 0 nothing is asked, the status is 5, and the page still comes."""
    done = check(labelled, "--max-seconds", "0")
    assert done.returncode == 5
    assert "limit of 0 s reached" in done.stderr


def test_a_model_behind_an_address(labelled: Here) -> None:
    """A language model is asked over HTTP; it gives no probability, so AUROC says why it is missing; a limit of
    requests holds for all sources together, and the same command goes on from the cache.
    """
    labelled.write("two.jsonl", [{**each, "source": "ab"[n % 2]} for n, each in enumerate(LABELS)])
    with JudgeServer({"known": "sufficient", "open": "insufficient"}) as server:
        words = ["judge", "check", "openai:test-model", "--base-url", server.base_url]
        words += ["--labels", "two.jsonl", "--task", "sufficiency", "--json"]
        done = labelled.merilo(*words, "--max-requests", "50", env={"OPENAI_API_KEY": "sk-test"})
        assert done.returncode == 5, done.stderr
        assert server.count == 50
        done = labelled.merilo(*words, env={"OPENAI_API_KEY": "sk-test"})
        assert done.returncode == 0, done.stderr
        assert server.count == 70
    found = json.loads(done.stdout)
    task = found["tasks"]["sufficiency"]
    assert [task["sources"][source]["n"] for source in "ab"] == [35, 35]
    assert task["kappa"]["value"] == 1.0
    assert task["auroc"]["note"] == "the judge gives no probability"
    assert (found["usage"]["requests"], found["usage"]["cached"]) == (20, 50)


def test_judges_of_one_provider_are_at_the_same_address(labelled: Here) -> None:
    """With --base-url the labelled texts go to that server only; a judge without an address needs none."""
    with JudgeServer({"known": "sufficient", "open": "insufficient"}) as server:
        words = ["judge", "check", "openai:one", "embedded", "openai:two", "--base-url", server.base_url]
        words += ["--labels", "ours.jsonl", "--task", "sufficiency", "--number", "5"]
        done = labelled.merilo(*words, env={"OPENAI_API_KEY": "sk-test"})
        assert done.returncode == 0, done.stderr
        assert {each.body["model"] for each in server.asked} == {"one", "two"}


def test_a_trial_asks_one_question_of_each_kind(here: Here) -> None:
    """A kind that fails is named, and the exit code is 4; the embedded judge works."""
    script = here.write(
        "failing.jsonl", [{"kind": "relevance", "failure": {"kind": "refused", "message": "It will not."}}]
    )
    done = here.merilo("judge", "check", f"scripted:{script}", "--task", "trial")
    assert done.returncode == 4, done.stderr
    assert "relevance FAILED: " in done.stdout
    found = here.json("judge", "check", "--task", "trial")
    assert found["works"]
    assert {"relevance", "support", "sufficiency"} <= found["kinds"].keys()
