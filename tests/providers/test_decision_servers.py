"""The conformance suite of the System One wire against the mock, and merilo with real servers (`make test-extras`)."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from command_line import SAMPLES, Here
from decision_server import DecisionServer

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.extras,
    pytest.mark.timeout(1800),  # on a CPU `callo` takes up to three seconds for each question
    pytest.mark.skipif(find_spec("jevcompat") is None, reason="jevcompat is not installed here"),
]


def conformance(url: str, folder: Path, *options: str) -> dict[str, Any]:
    """The summary of the suite for one server."""
    report = folder / "report.json"
    command = [sys.executable, "-m", "jevcompat.cli", "test", url, "--json", str(report), *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert report.exists(), done.stderr
    found: dict[str, Any] = json.loads(report.read_text())["summary"]
    return found


def test_the_mock_keeps_every_requirement(tmp_path: Path) -> None:
    """The mock that the other tests ask keeps all MUST and SHOULD requirements of the wire."""
    with DecisionServer(key="sesame") as server:
        summary = conformance(server.url, tmp_path, "--key", "sesame")
    assert summary["MUST"] == {"passed": 32, "failed": 0, "skipped": 1, "tested": 32}
    assert summary["SHOULD"] == {"passed": 14, "failed": 0, "skipped": 1, "tested": 14}


@pytest.fixture(scope="module", params=["sparrow", "callo", "laya"])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a real server."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "tools/decision_servers.py", ".venv-extras/servers", request.param, str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        address = running.stdout.readline().strip()
        assert address == f"http://127.0.0.1:{port}"
        yield address
        running.terminate()


def test_a_real_server_keeps_every_must(server: str, tmp_path: Path) -> None:
    """A server that fails here is no proof against merilo in the tests below."""
    summary = conformance(server, tmp_path)
    assert summary["MUST"]["failed"] == 0
    assert summary["verdict"] == "conformant"


def asked(folder: Path, server: str, *arguments: str) -> dict[str, Any]:
    """What the command prints as JSON with a server as the judge."""
    done = Here(folder).merilo(*arguments, "--base-url", server, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_run_gets_every_answer(server: str, tmp_path: Path) -> None:
    """All samples of a run are scored or undefined, and none fails, with a server that merilo does not know."""
    data = Here(tmp_path).write("data.jsonl", SAMPLES[:2])
    metrics = "context_relevance,faithfulness,answer_relevancy"
    result = asked(tmp_path, server, "run", data, "--judge", "systemone:jev-latest", "--metrics", metrics)
    assert result["complete"]
    counts = {name: (each["scored"] + each["undefined"], each["failed"]) for name, each in result["metrics"].items()}
    assert counts == dict.fromkeys(metrics.split(","), (2, 0))


def test_each_kind_of_question_works(server: str, tmp_path: Path) -> None:
    """`judge check` gets a valid verdict for each kind that a decision model answers."""
    result = asked(tmp_path, server, "judge", "check", "systemone:jev-latest", "--task", "trial")
    assert result["works"]
    assert {"relevance", "support", "sufficiency", "usefulness"} <= {*result["kinds"]}
