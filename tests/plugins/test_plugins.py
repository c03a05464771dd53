"""Metrics, judges, providers and adapters of other packages and files are used like merilo's own."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest
from command_line import Here
from each_case import each_case

from merilo.errors import UsageError
from merilo.metrics.registry import parse_metric
from merilo.plugins import Group, Plugin

EXAMPLES = Path(__file__).parents[2] / "examples" / "plugins"
ROWS = [
    {"id": "a", "user_input": "When?", "retrieved_contexts": ["In 1889.", "Rome has hills."], "response": "In 1889."},
    {"id": "b", "user_input": "Where?", "retrieved_contexts": ["It rains.", "In Paris."], "response": "In Paris."},
]
JUDGE = """
async def judge(question):
    return {"grade": 2, "evidence": [0]} if "1889" in str(question) else {"grade": 0, "evidence": []}
"""
METRIC = """
from dataclasses import dataclass
from typing import ClassVar
from merilo.metrics import Card, MetricDefaults, Score
from near import FACTOR

@dataclass(frozen=True)
class Length(MetricDefaults):
    name: ClassVar[str] = "response_length"
    version: ClassVar[int] = 1
    needs = frozenset({"response"})
    asks = frozenset()
    card: ClassVar[Card] = Card(summary="Characters of the response.", family="mine")
    per: int = 10
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def plan(self, sample):
        return Score(min(1.0, FACTOR * len(sample.require("response")) / self.per))
        yield
"""


UNFINISHED = """
from merilo.metrics import Card, MetricDefaults

FACTOR = 1

class Bare:
    name = "bare"
    plan = None

class Plain(MetricDefaults):
    name, version, card = "plain", 1, Card("Plain.")
    needs = asks = frozenset()
    plan = None

class Half(MetricDefaults):
    name = "half"
    plan = None
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which both example packages are installed, and one that is broken."""
    target = tmp_path_factory.mktemp("site")
    broken = tmp_path_factory.mktemp("broken")
    (broken / "broken_plugin.py").write_text("raise RuntimeError('out of order')\n")
    (broken / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "broken-plugin"\nversion = "1"\n'
        '[project.entry-points."merilo.metrics"]\nbroken = "broken_plugin:Nothing"\n'
        '[tool.hatch.build.targets.wheel]\nonly-include = ["broken_plugin.py"]\n'
    )
    packages = [str(EXAMPLES / "metric"), str(EXAMPLES / "provider"), str(broken)]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--disable-pip-version-check", "--target", str(target), *packages], check=True)
    return target


@pytest.fixture
def here(tmp_path: Path) -> Here:
    found = Here(tmp_path)
    found.write("data.jsonl", ROWS)
    return found


class _Server(BaseHTTPRequestHandler):
    keys: ClassVar[list[str | None]] = []

    def do_POST(self) -> None:
        self.keys.append(self.headers["Authorization"])
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        grade = 0 if "It rains." in asked["prompt"] else 2
        text = json.dumps({"grade": grade, "evidence": [1] if grade else [], "reason": "as asked"})
        body = json.dumps({"text": text, "input_tokens": 9, "output_tokens": 5}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    running = HTTPServer(("127.0.0.1", 0), _Server)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}/generate"
    running.shutdown()
    thread.join()
    running.server_close()


def test_installed_plugins_are_used_from_the_command_line(here: Here, installed: Path, server: str) -> None:
    """A metric and a provider of installed packages work in a run; a broken package is named only if it matters."""
    env = {"PYTHONPATH": str(installed), "PLAIN_HTTP_KEY": "key-of-the-example"}
    arguments = ("--metrics", "first_context_relevance", "--judge", "plain-http:m", "--base-url", server)
    done = here.merilo("run", "data.jsonl", *arguments, "--out", "run", "--json", env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"]["first_context_relevance"]["mean"] == 0.5
    assert set(_Server.keys) == {"Bearer key-of-the-example"}
    assert "key-of-the-example" not in (here.path / "run" / "manifest.json").read_text(encoding="utf-8")
    listed = here.merilo("metrics", "first_context_relevance", env=env)
    assert "Relevance of the first retrieved context." in listed.stdout
    unknown = here.merilo("run", "data.jsonl", "--metrics", "first_context_relevances", env=env)
    assert "The plug-in broken of broken-plugin cannot be loaded (RuntimeError: out of order)" in unknown.stderr


def test_a_run_with_a_plugin_is_shown_without_it(here: Here, installed: Path) -> None:
    """Where the package is missing, the run is still readable; only a new evaluation needs it."""
    env = {"PYTHONPATH": str(installed)}
    done = here.merilo("run", "data.jsonl", "--metrics", "first_context_relevance", "--out", "run", env=env)
    assert done.returncode == 0, done.stderr
    shown = here.merilo("show", "run")
    assert shown.returncode == 0, shown.stderr
    assert "first_context_relevance" in shown.stdout
    again = here.merilo("run", "data.jsonl", "--metrics", "first_context_relevance", "--out", "other")
    assert again.returncode == 2
    assert "No metric 'first_context_relevance'" in again.stderr


ADAPTER = """
class Trace:
    def __init__(self, question, chunks):
        self.question, self.chunks = question, chunks


def adapt(source):
    if isinstance(source, Trace):
        return [{"user_input": source.question, "retrieved_contexts": source.chunks}]
    return None
"""
ADAPTED = """
import merilo
from traces import Trace

run = merilo.evaluate(Trace("When?", ["In 1889.", "It rains."]), "context_relevance", storage={"cache": False})
print(len(run.samples))
try:
    merilo.evaluate(object())
except merilo.UsageError as error:
    print(error)
"""


def test_an_adapter_reads_objects_of_another_system(tmp_path: Path) -> None:
    """An object that no adapter knows is refused as before."""
    (tmp_path / "traces.py").write_text(ADAPTER)
    info = tmp_path / "traces-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: traces\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[merilo.adapters]\ntraces = traces:adapt\n")
    done = subprocess.run(
        [sys.executable, "-c", ADAPTED],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "1"
    assert lines[1].startswith("Data must be a path or a list of records, got ")


def test_code_in_files_is_used_from_the_command_line(here: Here) -> None:
    """`--metrics FILE.py:CLASS` and `--judge FILE.py:NAME`, also with parameters and a module beside the file."""
    (here.path / "code").mkdir()
    (here.path / "code" / "mine.py").write_text(METRIC + JUDGE)
    (here.path / "code" / "near.py").write_text("FACTOR = 1\n")
    metrics = "code/mine.py:Length(per=16),context_relevance"
    found: Any = here.json("run", "data.jsonl", "--metrics", metrics, "--judge", "code/mine.py:judge", "--out", "run")
    assert found["metrics"]["response_length(per=16)"]["mean"] == pytest.approx((8 + 9) / 32)
    assert found["metrics"]["context_relevance"]["mean"] == 0.25


@each_case(
    ("text", "message"),
    [
        ("nowhere.py:Metric", "No such file: nowhere.py."),
        ("mine.py", "Name the metric class in mine.py: mine.py:CLASS."),
        ("mine.py:Other", "mine.py has no 'Other'; it defines Bare, Plain, Half."),
        ("mine.py:Bare", "The metric class Bare has no version, card, .*; inherit MetricDefaults."),
        (
            "mine.py:Half",
            "The metric class Half has no version, card, needs, asks; declare what is miss",
        ),
        ("mine.py:Plain", r"The metric class Plain is not a dataclass; write @dataclass\(frozen=True\) above it."),
        ("mine.py:FACTOR", "is not a metric class"),
        ("exits.py:Metric", r"exits.py cannot be imported \(SystemExit: 0\)."),
        ("bad.py:Metric", r"bad.py cannot be imported \(ZeroDivisionError: division by zero\)."),
    ],
)
def test_wrong_code_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    """A missing file or name, another object, a class that lacks something and an error in the file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(UNFINISHED)
    (tmp_path / "bad.py").write_text("1 / 0\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(0)\n")
    with pytest.raises(UsageError, match=message):
        parse_metric(text)


def test_a_plugin_that_exits_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sys.exit(0)` in the module of a plug-in does not end the command as if it had succeeded."""
    (tmp_path / "exiting_plugin.py").write_text("raise SystemExit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("exiting", "exiting_plugin:Metric", Group.METRICS)
    with pytest.raises(UsageError, match=r"exiting of some-package cannot be loaded \(SystemExit: 0\)"):
        Plugin(Group.METRICS, entry, "some-package").load()


@each_case(
    ("group", "factory", "spec", "message"),
    [
        (Group.JUDGES, lambda _: 1 / 0, "broken:x", "The plug-in for 'broken:x' raised ZeroDivisionError"),
        (Group.JUDGES, lambda _: 3, "broken:x", "returned int, which is not a judge"),
        (Group.PROVIDERS, lambda _: 1 / 0, "broken:m", "The plug-in for 'broken:m' raised ZeroDivisionError"),
        (Group.PROVIDERS, lambda _: 3, "broken:m", "returned int, which is not a provider"),
    ],
)
def test_a_plugin_that_fails_is_named(
    monkeypatch: pytest.MonkeyPatch, group: Group, factory: object, spec: str, message: str
) -> None:
    """An error in someone else's package is reported with the judge that it was meant to make."""
    from merilo.judges import spec as specs

    monkeypatch.setattr(specs, "plugin", lambda asked, _: factory if asked is group else None)
    monkeypatch.setattr(specs, "_wires", lambda: frozenset({"broken"} if group is Group.PROVIDERS else ()))
    with pytest.raises(UsageError, match=message):
        specs.judge_from(spec)
