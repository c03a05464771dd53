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


def test_published_systems_are_listed_in_a_line_each(here: Here) -> None:
    """Below the native metrics each system stands with the number of its definitions and how to list them."""
    shown = here.merilo("metrics").stdout
    systems = {each["system"]: each["definitions"] for each in here.json("metrics")["published"]}
    assert {"ragas-0.0.12", "ragas-0.1.9", "nvidia", "deepeval-4.3.1"} <= systems.keys()
    assert f"ragas-0.1.9 {systems['ragas-0.1.9']} definitions; merilo metrics ragas-0.1.9" in " ".join(shown.split())
    assert "ragas-0.1.9:" not in shown


def test_a_system_lists_its_definitions(here: Here) -> None:
    """The name of a system lists what it defines, composites too, with what each needs."""
    found = {each["name"]: each for each in here.json("metrics", "ragas-0.0.12")["metrics"]}
    assert found["ragas-0.0.12:context_relevancy"]["needs"] == ["retrieved_contexts", "user_input"]
    assert "ragas-0.0.12:ragas_score" in found
    shown = here.merilo("metrics", "ragas-0.0.12").stdout
    assert [name for name in found if f"  {name}\n" not in shown] == []


def test_a_published_metric_has_a_card(here: Here) -> None:
    """Its quirks are parameters with their published values; laws that they break are named with them."""
    record = here.json("metrics", "ragas-0.0.15:context_relevancy")
    parameters = {each["name"]: each["default"] for each in record["parameters"]}
    assert parameters["no_sentence_is_zero"] == "true"
    assert record["breaks"] == {"nothing to judge": "no_sentence_is_zero"}
    shown = here.merilo("metrics", "ragas-0.0.15:context_relevancy").stdout
    assert "nothing to judge: broken on purpose by no_sentence_is_zero" in " ".join(shown.split())


def test_a_composite_has_a_card(here: Here) -> None:
    """It names its parts, and needs what any of them needs."""
    record = here.json("metrics", "ragas-0.0.12:ragas_score")
    assert record["made_of"][0] == "ragas-0.0.12:answer_relevancy"
    assert record["needs"] == ["reference", "response", "retrieved_contexts", "user_input"]
    assert "made of" in here.merilo("metrics", "ragas-0.0.12:ragas_score").stdout


def test_an_unknown_system_is_told(here: Here) -> None:
    """A name that is neither metric nor system is an error that names the nearest."""
    done = here.merilo("metrics", "ragas-0.1.9:context_relevance")
    assert done.returncode == 2
    assert "did you mean" in done.stderr
    assert "ragas-0.1.9:context_relevancy" in done.stderr


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
        "parts": ["json_schema"],
        "answered": ["json_schema"],
        "entities": ["json_schema"],
        "mentions": ["json_schema"],
        "choice": ["json_schema"],
        "passage_question": ["json_schema"],
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
    """The default judge answers its judgements, vectors and similarities without a request."""
    found = here.json("judge", "test", "embedded")
    assert found["works"] is True
    assert {"relevance", "embeddings", "similarities"} <= {each["kind"] for each in found["kinds"]}
    assert {"sentences", "completion"} <= set(found["not_answered"])
    assert {each["requests"] for each in found["kinds"]} == {0}
