"""The GitHub action in action.yml: its steps run one by one, as a runner would run them."""

import json
import os
import re
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import Here

ROOT = Path(__file__).parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]

GH = f'''#!{sys.executable}
"""Keeps the comments of one pull request in comments.json."""
import json, os, sys
from pathlib import Path
words, path = sys.argv[1:], Path(os.environ["STATE"])
if path.with_name("denied").exists():
    sys.exit("HTTP 403")
comments = json.loads(path.read_text()) if path.exists() else []
if "--jq" in words:
    assert "env.MARKER" in words[-1]
    print(*(each["id"] for each in comments if each["body"].startswith(os.environ["MARKER"])), sep="\\n")
else:
    target = next(word for word in words if word.startswith("repos/"))
    body = Path(words[-1].removeprefix("body=@")).read_text()
    if "PATCH" in words:
        next(each for each in comments if str(each["id"]) == target.rpartition("/")[2])["body"] = body
    else:
        assert target == "repos/me/rag/issues/7/comments"
        comments.append({{"id": len(comments) + 100, "body": body}})
    path.write_text(json.dumps(comments))
'''


@dataclass
class Runner:
    """What a runner gives to the steps of the action, and what it collects from them."""

    here: Here
    inputs: dict[str, str]
    event: str = "pull_request"
    outputs: dict[str, str] = field(default_factory=dict)
    done: list[tuple[str, int]] = field(default_factory=list)
    log: str = ""

    def value(self, expression: str) -> str:
        """Return an expression without operators."""
        known = {
            "github.event_name": self.event,
            "github.repository": "me/rag",
            "github.event.pull_request.number": "7",
            "github.token": "",
        }
        if found := re.fullmatch(r"inputs\.([\w-]+)", expression):
            default = str(ACTION["inputs"][found[1]].get("default", ""))
            return self.inputs.get(found[1], self.filled(default))
        if found := re.fullmatch(r"steps\.([\w-]+)\.outputs\.([\w-]+)", expression):
            return self.outputs.get(f"{found[1]}.{found[2]}", "")
        return known[expression]

    def filled(self, text: str) -> str:
        """Return a text with its expressions replaced."""
        return re.sub(r"\$\{\{ *(.*?) *\}\}", lambda found: self.value(found[1]), text)

    def wanted(self, condition: str) -> bool:
        """Return True if a step with this condition runs; a step without one runs unless a step failed."""
        clauses = [clause.strip() for clause in condition.split("&&") if clause.strip()]
        if "always()" not in clauses and any(code for _, code in self.done):
            return False
        pairs = [re.fullmatch(r"(\S+) (==|!=) '(.*)'", clause) for clause in clauses if clause != "always()"]
        return all(pair and (self.value(pair[1]) == pair[3]) is (pair[2] == "==") for pair in pairs)

    def run(self) -> int:
        """Run the steps; return the exit code of the first that failed, else 0."""
        for step in STEPS:
            if "run" in step and self.wanted(step.get("if", "")):
                self.done.append((step["name"], self._step(step)))
        return next((code for _, code in self.done if code), 0)

    def _step(self, step: dict[str, Any]) -> int:
        path = self.here.path
        script, output = path / "step.sh", path / "output.txt"
        script.write_text(step["run"], encoding="utf-8")
        output.write_text("", encoding="utf-8")
        environment = {
            **self.here.environment,
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(path / "summary.md"),
            "STATE": str(path / "comments.json"),
            **{name: self.filled(text) for name, text in step.get("env", {}).items()},
        }
        environment["PATH"] = os.pathsep.join([str(path / "bin"), environment["PATH"]])
        finished = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=path,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=100,
        )
        self.log += finished.stdout + finished.stderr
        for line in output.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            self.outputs[f"{step['id']}.{name}"] = value
        return finished.returncode

    @property
    def comments(self) -> list[str]:
        """The comments on the pull request."""
        path = self.here.path / "comments.json"
        return [each["body"] for each in json.loads(path.read_text(encoding="utf-8"))] if path.exists() else []


@pytest.fixture
def here(tmp_path: Path) -> Here:
    """A checkout with answers and suites, and a `gh` that keeps comments in a file."""
    made = Here(tmp_path)
    (tmp_path / "bin").mkdir()
    gh = tmp_path / "bin" / "gh"
    gh.write_text(GH, encoding="utf-8")
    gh.chmod(gh.stat().st_mode | stat.S_IXUSR)
    answers(made, "a")
    (tmp_path / "gates.toml").write_text("[max_drop]\nid_recall = 0.1\n", encoding="utf-8")
    return made


JUDGED = {"qrels": {"a": 1, "b": 0}}
"""Both ids are judged, so a run that retrieves only b has a recall of 0."""


def answers(here: Here, retrieved: str) -> None:
    """Write 30 samples that retrieved this id."""
    here.write(
        "answers.jsonl",
        [
            {"id": f"q{n}", "retrieved_context_ids": [retrieved], "reference_context_ids": ["a"], "metadata": JUDGED}
            for n in range(30)
        ],
    )


def runner(here: Here, **inputs: str) -> Runner:
    """Return a runner for an evaluation of answers.jsonl by id_recall."""
    fixed = {"data": "answers.jsonl", "options": "--metrics\nid_recall\n", "install": "none", "suite": "gates.toml"}
    return Runner(here, {**fixed, "baseline": "baseline/merilo-run", "out": "merilo-run", **inputs})


def test_first_without_then_with_a_baseline(here: Here) -> None:
    """The first run checks minimums only; the next is gated against it, fails, and updates the same comment."""
    first = runner(here, minimums="id_recall=0.5\n")
    assert first.run() == 0, first.log
    assert first.outputs == {"run.code": "0", "gate.code": "0"}
    assert "no baseline" in first.log
    assert len(first.comments) == 1
    assert "### pass: 1 passed" in first.comments[0]
    assert "**no baseline**: `baseline/merilo-run does not exist." in first.comments[0]

    (here.path / "baseline").mkdir()
    (here.path / "merilo-run").rename(here.path / "baseline" / "merilo-run")  # as the artifact of main has it
    answers(here, "b")
    second = runner(here)
    assert second.run() == 1, second.log
    assert second.outputs == {"run.code": "0", "gate.code": "1"}
    assert "::error title=merilo gate%3A fail::id_recall is worse: 1.000 to 0.000" in second.log
    assert len(second.comments) == 1
    assert "### fail: 1 failed" in second.comments[0]
    assert "1.000 -> 0.000" in second.comments[0]
    assert (here.path / "merilo-reports" / "gates.xml").exists()
    summary = (here.path / "summary.md").read_text(encoding="utf-8")
    assert summary.count("### ") == 4  # two runs and two gates


def test_a_run_that_fails_is_reported(here: Here) -> None:
    """The gate is skipped, the comment says that the run failed, and the action has its exit code."""
    done = runner(here, data="absent.jsonl")
    assert done.run() == 2
    assert "Gate" not in [name for name, _ in done.done]
    assert done.comments == ["<!-- merilo:merilo -->\n**merilo run failed** (exit code 2). The log has the reason.\n"]


def test_a_token_without_rights_is_a_warning(here: Here) -> None:
    """On a pull request from a fork no comment can be written; the decision does not depend on it."""
    (here.path / "denied").touch()
    done = runner(here)
    assert done.run() == 0, done.log
    assert "::warning title=merilo::The comment could not be written." in done.log


def test_inputs_are_never_code(here: Here) -> None:
    """Names and options with shell syntax are plain arguments, and a comment's name cannot end its marker."""
    hostile = "$(touch owned)`touch owned`;touch owned"
    done = runner(here, data=f"{hostile}.jsonl", name=f"x --> @you {hostile}", minimums=hostile, options=hostile)
    assert done.run() == 2
    assert not (here.path / "owned").exists()
    assert done.comments[0].splitlines()[0].count("-->") == 1


def test_no_expression_is_part_of_a_script() -> None:
    """Each `run` is fixed text and ignores merilo.toml, which a pull request may change.

    Foreign actions are pinned to a commit, and every output and input is declared.
    """
    for step in STEPS:
        assert "${{" not in step.get("run", "")
        assert step.get("shell", "bash") == "bash"
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", step["uses"])
        commands = re.findall(r"merilo (?:run|gate) .*", step.get("run", ""))
        assert all("--no-config" in each for each in commands if "failed" not in each)
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(ACTION["inputs"])


def test_the_workflow_of_the_documentation(here: Here) -> None:
    """The example asks for no right but three, and its inputs exist.

    It installs the clone that the action is in. Its first run passes and makes the baseline. Equal answers then pass;
    a retriever that finds nothing fails.
    """
    page = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
    workflow = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0])
    job = workflow["jobs"]["evaluate"]
    assert workflow["permissions"] == {}
    assert job["permissions"] == {"contents": "read", "actions": "read", "pull-requests": "write"}
    assert all("${{" not in step.get("run", "") for step in job["steps"])
    given = next(step["with"] for step in job["steps"] if "merilo" in step.get("uses", ""))
    assert set(given) <= set(ACTION["inputs"])

    pip = here.path / "bin" / "python"
    pip.write_text('#!/bin/sh\necho "$@" >> pip.txt\n', encoding="utf-8")
    pip.chmod(pip.stat().st_mode | stat.S_IXUSR)
    inputs = {name: text for name, text in given.items() if name != "artifact"}
    first = Runner(here, inputs, "push")
    system(here)
    assert first.run() == 0, first.log
    pinned, own = (here.path / "pip.txt").read_text(encoding="utf-8").splitlines()
    files = [f"-r {ROOT / 'requirements' / name}" for name in ("runtime.txt", "build.txt")]
    assert pinned == f"-m pip install --quiet --require-hashes {' '.join(files)}"
    assert own == f"-m pip install --quiet --no-deps --no-build-isolation {ROOT}"
    assert "no baseline" in first.log
    (here.path / inputs["baseline"]).parent.mkdir()
    (here.path / "merilo-run").rename(here.path / inputs["baseline"])  # as the fetched artifact has it
    same, worse = Runner(here, inputs), Runner(here, inputs)
    assert same.run() == 0, same.log
    assert "no change" in same.log
    (here.path / "merilo-run").rename(here.path / "before")
    system(here, missing=True)
    assert worse.run() == 1, worse.log
    assert "id_recall is worse" in worse.log


def system(here: Here, *, missing: bool = False) -> None:
    """Write what the example calls the user's system returned: 30 answers, with the right passages or with others."""
    here.write(
        "answers.jsonl",
        [
            {
                "id": f"q{n}",
                "question": f"What is known of house {n}?",
                "contexts": [f"House {n} was painted in {1850 + n}. It has two doors."],
                "answer": f"House {n} was painted in {1850 + n}.",
                "retrieved_context_ids": [f"house {(n + missing) % 30}"],
                "reference_context_ids": [f"house {n}"],
            }
            for n in range(30)
        ],
    )
