"""The command line over each provider's wire, against a local server."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Here
from server import JudgeServer

from merilo.commands.evaluate.options import Model, Options
from merilo.commands.evaluate.preparation import judges_of

ROWS = [{"user_input": "How long is the river?", "retrieved_contexts": ["It is long."], "response": "It is long."}]


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
        judges = judges_of(Options(judge=Model(spec=[judge, {"embeddings": embedder}], base_url="http://localhost:1")))
        provider: Any = judges["embedder"].fingerprint()["provider"]
        return provider["base_url"]

    assert address("openai:a", "openai:e") == address("azure:a", "azure:e") == "http://localhost:1"
    assert address("embedded", "openai:e") == "http://localhost:1"
    assert address("anthropic:a", "openai:e") == "https://api.openai.com/v1"


def test_ollama_resumes_with_the_same_model_only(server: JudgeServer, tmp_path: Path) -> None:
    """A run records the digest and the context length; resuming it with a changed model stops with a message."""
    here = Here(tmp_path)
    here.write("data.jsonl", ROWS)
    run = ("run", "data.jsonl", "--judge", "ollama:test-model", "--metrics", "context_relevance,faithfulness")
    env = {"OLLAMA_HOST": server.root_url.removeprefix("http://")}
    stopped = here.merilo(*run, "--out", "run", "--max-requests", "1", env=env)
    assert stopped.returncode == 5, stopped.stderr
    usage = json.loads((tmp_path / "run" / "usage.json").read_text(encoding="utf-8"))
    (adaptations,) = usage["adaptations"].values()
    assert adaptations == {"digest": server.digest, "num_ctx": "16384"}
    right, server.digest = server.digest, "f" * 64
    changed = here.merilo(*run, "--out", "run", env=env)
    assert changed.returncode == 2
    assert "has changed since this run began" in changed.stderr
    server.digest = right
    done = here.merilo(*run, "--out", "run", env=env)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["judges"]["judge"]["fingerprint"]["provider"]["provider"] == "ollama"
