"""`merilo judge check` as people type it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from server import JudgeServer

if TYPE_CHECKING:
    from command_line import Here

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
    return here.merilo("judge", "check", "--judge", "scripted:script.jsonl", "--labels", "ours.jsonl", *more)


def test_the_page_and_the_exit_code_of_failures(labelled: Here) -> None:
    """The page has the table and what asking took; one failure in seventy is more than 1 %, so the status is 4."""
    done = check(labelled)
    assert done.returncode == 4
    assert "1 of 70 records failed" in done.stderr
    row = next(line.split() for line in done.stdout.splitlines() if line.startswith("  ours "))
    assert row[1:4] == ["69", "34", "1.0"]
    assert "Requests, cost and time" in done.stdout


def test_json_is_one_object_with_figures_by_task_and_source(labelled: Here) -> None:
    """`people` holds task, then source, then each figure with its interval."""
    found = json.loads(check(labelled, "--json").stdout)
    figures = found["people"]["sufficiency"]["ours"]
    assert figures["n"] == 69
    assert figures["kappa"]["value"] == 1.0
    assert figures["undefined"]["count"] == 1
    assert set(figures) >= {"kappa", "balanced_accuracy", "auroc", "ece", "undefined", "confusion"}
    assert found["usage"]["sufficiency"]["ours"]["requests"] is not None
    assert found["labels"][0]["file"] == "ours.jsonl"


def test_a_kept_check_has_runs_that_can_be_shown(labelled: Here) -> None:
    """--out holds check.json and a run for each task and source, whose records can be looked at one by one."""
    check(labelled, "--out", "kept", "--quiet")
    kept = json.loads((labelled.path / "kept" / "check.json").read_text(encoding="utf-8"))
    assert kept["people"]["sufficiency"]["ours"]["n"] == 69
    shown = labelled.merilo("show", "kept/sufficiency/ours", "--sample", "n3")
    assert shown.returncode == 0, shown.stderr
    assert "sufficient" in shown.stdout


def test_files_may_follow_one_option(labelled: Here) -> None:
    """--labels *.jsonl works as a shell spells it out: the files after the first belong to it too."""
    labelled.write("more.jsonl", [{**each, "id": f"m{each['id']}", "source": "more"} for each in LABELS])
    done = check(labelled, "more.jsonl", "--json")
    assert set(json.loads(done.stdout)["people"]["sufficiency"]) == {"ours", "more"}


def test_a_limit_stops_it(labelled: Here) -> None:
    """With --max-seconds 0 nothing is asked, the status is 5, and the page still comes."""
    done = check(labelled, "--max-seconds", "0")
    assert done.returncode == 5
    assert "limit of 0 s reached" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--labels", "none.jsonl"), "No such file"),
        (("--task", "chunks"), "No task 'chunks'"),
        (("--judge", "gpt"), "Unknown judge"),
        (("--sample", "0"), "at least 1"),
    ],
)
def test_wrong_use(here: Here, arguments: tuple[str, ...], says: str) -> None:
    """What cannot be is told in one sentence, status 2."""
    done = here.merilo("judge", "check", *arguments)
    assert done.returncode == 2
    assert says in done.stderr


def test_a_model_behind_an_address(labelled: Here) -> None:
    """A language model is asked over HTTP; it gives no probability, so AUROC says why it is missing; a limit of
    requests holds for all sources together, and the same command goes on from the cache.
    """
    labelled.write("two.jsonl", [{**each, "source": "ab"[n % 2]} for n, each in enumerate(LABELS)])
    with JudgeServer({"known": "sufficient", "open": "insufficient"}) as server:
        words = ["judge", "check", "--judge", "openai:test-model", "--base-url", server.base_url]
        words += ["--labels", "two.jsonl", "--json"]
        done = labelled.merilo(*words, "--max-requests", "50", env={"OPENAI_API_KEY": "sk-test"})
        assert done.returncode == 5, done.stderr
        assert server.count == 50
        done = labelled.merilo(*words, env={"OPENAI_API_KEY": "sk-test"})
        assert done.returncode == 0, done.stderr
        assert server.count == 70
    found = json.loads(done.stdout)
    assert [found["people"]["sufficiency"][source]["n"] for source in "ab"] == [35, 35]
    assert found["tasks"]["people"]["sufficiency"]["pooled"]["kappa"]["value"] == 1.0
    assert found["people"]["sufficiency"]["a"]["auroc"]["note"] != ""
    assert found["tasks"]["people"]["sufficiency"]["pooled"]["auroc"]["note"] == "the judge gives no probability"
    usage = found["usage"]["sufficiency"]
    assert sum(usage[source]["requests"] for source in "ab") == 20
    assert sum(usage[source]["cached"] for source in "ab") == 50
