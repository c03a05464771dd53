"""The command line over each provider's wire, against a local server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import Here
from server import JudgeServer

from merilo.commands.evaluate.options import Options
from merilo.commands.evaluate.settings import judges_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = [{"user_input": "How long is the river?", "retrieved_contexts": ["It is long."], "response": "It is long."}]


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


@pytest.mark.parametrize("kind", ["openai", "anthropic", "azure", "bedrock", "google", "ollama"])
def test_a_judge_of_each_kind_can_be_tried(server: JudgeServer, tmp_path: Path, kind: str) -> None:
    """Every question it answers works, by JSON Schema where it is a judgement, and its tokens are told."""
    address = server.base_url if kind == "openai" else server.root_url
    done = Here(tmp_path).merilo("judge", "test", f"{kind}:m", "--base-url", address, "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["judge"], told["works"]) == (0, f"{kind}:m", True)
    paths = {each["kind"]: each["paths"] for each in told["kinds"]}
    assert paths.pop("completion") == ["text"]
    assert set(map(tuple, paths.values())) == {("json_schema",)}
    assert all(each["input_tokens"] > 0 for each in told["kinds"])


def test_the_environment_is_enough(server: JudgeServer, tmp_path: Path) -> None:
    """Address, key and version come from each kind's own variables, and judges of two kinds may share a run."""
    here = Here(tmp_path)
    here.write("data.jsonl", ROWS)
    done = here.merilo(
        *("run", "data.jsonl", "--judge", "anthropic:claude", "--judge", "second=azure:mine", "--out", "run"),
        *("--metrics", "context_relevance,faithfulness"),
        env={
            "ANTHROPIC_BASE_URL": server.root_url,
            "ANTHROPIC_API_KEY": "key-of-anthropic",
            "AZURE_OPENAI_ENDPOINT": server.root_url,
        },
    )
    assert done.returncode == 0, done.stderr
    assert {headers["x-api-key"] for headers in server.headers} == {"key-of-anthropic"}
    judges = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))["judges"]
    assert judges["second"]["fingerprint"]["provider"]["provider"] == "azure"


def test_an_embedder_has_the_address_of_its_own_kind_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge's address is the embedder's too where both are of one kind, or where the judge has none."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    def address(judge: str, embedder: str) -> object:
        judges = judges_of(Options(judge=judge, embedder=embedder, base_url="http://localhost:1"))
        provider: Any = judges["embedder"].fingerprint()["provider"]
        return provider["base_url"]

    assert address("openai:a", "openai:e") == address("azure:a", "azure:e") == "http://localhost:1"
    assert address("embedded", "openai:e") == "http://localhost:1"
    assert address("anthropic:a", "openai:e") == "https://api.openai.com/v1"
