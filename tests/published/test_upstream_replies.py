"""Readable and unreadable replies lead to the requests and scores of the published packages, over a real server.

`upstream/*.json` holds what the packages themselves did against a loopback server with the same replies: how many
requests they sent, with which messages, and the score. Each file names the versions.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import server as fake
from each_case import each_case
from server import JudgeServer

import merilo

UPSTREAM = Path(__file__).with_name("upstream")
RAGAS_ROW = {"user_input": "q?", "response": "A. B.", "retrieved_contexts": ["A."]}
DEEPEVAL_ROW = {"user_input": "q?", "response": "a. b.", "reference": "e.", "retrieved_contexts": ["c1", "c2"]}
ENOUGH = 50
"""More replies than any case needs; upstream's server repeats the last reply for ever."""


def cases(file: str) -> list[Any]:
    found: list[Any] = json.loads((UPSTREAM / file).read_text(encoding="utf-8"))["cases"]
    return found


def evaluated(metric: str, row: dict[str, Any], replies: Sequence[str], path: Path) -> tuple[float | None, JudgeServer]:
    """The score of a row, None without one, from a server that gives these replies, the last one again and again."""
    with JudgeServer() as server:
        server.fail_next(*(fake.says(text) for text in [*replies, *[replies[-1]] * ENOUGH]))
        run = merilo.evaluate(
            [{"id": "a", **row}],
            metrics=[metric],
            judge={"spec": "openai:test-model", "base_url": server.base_url},
            out=path / "run",
            storage={"cache": False},
            limits={"concurrency": 1},
        )
    (outcome,) = run.sample("a").outcomes.values()
    return (outcome.value if isinstance(outcome, merilo.Score) else None), server


def roles(server: JudgeServer) -> list[str]:
    return ["".join(message["role"][0] for message in asked.messages) for asked in server.asked]


@each_case("case", cases("ragas-0.4.3-instructor-1.14.4.json"))
def test_collections_of_ragas_ask_again_as_instructor_does(case: dict[str, Any], tmp_path: Path) -> None:
    """The collections send the requests of ragas 0.4.3 with instructor 1.14.4, with the same roles, and score alike."""
    metric = f"ragas-0.4.3:collections.{case['metric']}"
    score, server = evaluated(metric, RAGAS_ROW, case["replies"], tmp_path)
    assert roles(server) == case["requests"]
    assert score == case["score"]


@each_case("case", [each for each in cases("ragas-0.4.3-instructor-1.17.0.json") if each["name"] != "fenced"])
def test_later_versions_of_instructor_ask_once_more(case: dict[str, Any], tmp_path: Path) -> None:
    """With reasks=3 the requests are those of instructor 1.17.0, which looks for JSON in a fence in another way."""
    metric = f"ragas-0.4.3:collections.{case['metric']}(reasks=3)"
    score, server = evaluated(metric, RAGAS_ROW, case["replies"], tmp_path)
    assert roles(server) == case["requests"]
    assert score == case["score"]


def test_a_reask_shows_the_reply_and_what_is_wrong(tmp_path: Path) -> None:
    """The assistant's turn is the unreadable reply, and the user's turn after it says what is wrong."""
    good = '{"statements": []}'
    _, server = evaluated("ragas-0.4.3:collections.faithfulness", RAGAS_ROW, ['{"x": 1}', "no", good], tmp_path)
    assert [message["content"] for message in server.asked[2].messages[2:]] == [
        '{"x": 1}',
        'The reply has no "statements". Correct it, and reply with the whole JSON object only.',
        "no",
        "The reply is not one valid JSON object. Correct it, and reply with the whole JSON object only.",
    ]


@each_case("path", ["schema", "loose"])
@each_case("case", cases("deepeval-4.3.1.json"))
def test_deepeval_reads_replies_by_schema_or_loosely(case: dict[str, Any], path: str, tmp_path: Path) -> None:
    """reply=schema is DeepEval's client of a server, reply=loose a model class of the user's own without schemas."""
    upstream = case["by"]["unknown" if path == "schema" else "custom"]
    parameters = f"include_reason={str(case['include_reason']).lower()}, reply={path}"
    score, server = evaluated(f"deepeval-4.3.1:{case['metric']}({parameters})", DEEPEVAL_ROW, case["replies"], tmp_path)
    assert (score, server.count) == (upstream["score"], upstream["requests"])
    assert ("response_format" in server.asked[0].body) == (path == "schema")


@each_case(
    ("metric", "score"),
    [
        ("ragas-0.0.15:context_recall", 0.0),
        ("axion:faithfulness", 1.0),
        ("umbrela:relevance", 0.0),
        ("nvidia:context_relevance", None),
    ],
)
def test_an_empty_reply_is_read_as_upstream_reads_it(metric: str, score: float | None, tmp_path: Path) -> None:
    """A server whose model writes nothing has answered; what that is worth is the definition's to say."""
    row = {
        "user_input": "When?",
        "response": "In 1889. It is old.",
        "reference": "In 1889.",
        "retrieved_contexts": ["A. B."],
    }
    body = json.dumps(
        {
            "choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 90, "completion_tokens": 0},
        }
    )
    with JudgeServer() as server:
        server.fail(fake.bare(body))
        run = merilo.evaluate(
            [{"id": "a", **row}],
            metrics=[metric],
            judge={"spec": "openai:test-model", "base_url": server.base_url},
            out=tmp_path / "run",
            storage={"cache": False},
        )
    (outcome,) = run.sample("a").outcomes.values()
    assert (outcome.value if isinstance(outcome, merilo.Score) else None) == score
    assert "without any token" not in str(outcome)
