"""`merilo metrics` and `merilo judge test`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server import JudgeServer, malformed, status

if TYPE_CHECKING:
    from command_line import Here


def test_every_native_metric_is_listed_with_its_needs(here: Here) -> None:
    """The list names each metric with one line and the fields it needs."""
    found = {each["name"]: each for each in here.json("metrics")["metrics"]}
    assert found["faithfulness"]["needs"] == ["response", "retrieved_contexts", "user_input"]
    shown = here.merilo("metrics").stdout
    for name, each in found.items():
        assert f"  {name} " in shown
        assert each["summary"].split()[0] in shown


def test_a_card_says_what_there_is_to_know(here: Here) -> None:
    """A card shows needs, range, formula, questions, when to use it, when not, relatives and parameters."""
    shown = here.merilo("metrics", "context_precision").stdout
    labels = ("needs", "range", "formula", "undefined", "asks", "parameter", "use it", "do not", "see also", "source")
    starts = [line.split("  ")[0] for line in shown.splitlines()]
    assert [label for label in labels if label not in starts] == []
    assert "reference with against=reference" in shown
    assert here.json("metrics", "context_precision")["needs_with"] == {"against=reference": ["reference"]}


def test_a_working_judge_passes_its_test(here: Here) -> None:
    """The judge test asks one question of each kind, reports how the replies came, and exits with 0."""
    with JudgeServer() as server:
        arguments = ("judge", "test", "openai:test-model", "--base-url", server.base_url)
        done, found = here.merilo(*arguments), here.json(*arguments)
    assert done.returncode == 0
    assert found["works"] is True
    assert {each["kind"]: each["paths"] for each in found["kinds"]} == {
        "relevance": ["json_schema"],
        "usefulness": ["json_schema"],
        "statements": ["json_schema"],
        "support": ["json_schema"],
        "sufficiency": ["json_schema"],
        "addresses": ["json_schema"],
        "noncommittal": ["json_schema"],
        "completion": ["text"],
    }
    assert {each["kind"]: each["questions"] for each in found["kinds"]}["support"] == 2
    assert found["not_answered"] == ["sentences", "embeddings", "similarities"]


def test_a_judge_that_fails_a_kind_exits_with_4(here: Here) -> None:
    """A kind without a verdict is named with its reason, and the exit code is 4."""
    here.write("script.jsonl", [
        {"kind": "relevance", "verdict": {"grade": 0}},
        {"kind": "statements", "failure": {"kind": "refused", "message": "It will not."}},
    ])  # fmt: skip
    done = here.merilo("judge", "test", "scripted:script.jsonl")
    assert done.returncode == 4
    assert "statements  no verdict (refused): It will not." in done.stdout


def test_unreadable_replies_are_reported(here: Here) -> None:
    """A judge that damages its replies is asked again, and the requests are counted."""
    with JudgeServer() as server:
        server.fail_next(malformed())
        found = here.json("judge", "test", "openai:test-model", "--base-url", server.base_url)
    assert found["works"] is True


def test_a_judge_that_cannot_be_reached_exits_with_2(here: Here) -> None:
    """A wrong key is told in one message."""
    with JudgeServer() as server:
        server.fail(status(401))
        done = here.merilo("judge", "test", "openai:test-model", "--base-url", server.base_url)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_embedded_judge_passes_its_test(here: Here) -> None:
    """The default judge answers all judgements without a request."""
    found = here.json("judge", "test", "embedded")
    assert found["works"] is True
    assert {each["requests"] for each in found["kinds"]} == {0}
