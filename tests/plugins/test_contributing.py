"""CONTRIBUTING.md, followed as written in a copy of the repository: a new metric and a new provider."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import venv
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from docs_page import Fence, commands, fences, shows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MADE_BY_THE_READER = "data.jsonl"
RUFF = shutil.which("ruff", path=str(Path(sys.executable).parent))


def section(title: str) -> list[Fence]:
    """The blocks of one section of the page."""
    return fences(re.split(r"^## ", PAGE.partition(f"\n## {title}\n")[2], flags=re.MULTILINE)[0])


def files_of(title: str) -> dict[str, str]:
    """The files that a section writes, by path."""
    return {fence.argument: fence.body + "\n" for fence in section(title) if fence.directive == "file"}


class Copy:
    """The tracked files in another folder, with an environment that borrows the packages of this one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        names = [name for name in listed.split("\0") if name and not re.match("benchmarks/(?!labels/)", name)]
        for name in names:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, path / name)
        self.digests = {name: self._digest(name) for name in names}
        self._make_environment()

    def _make_environment(self) -> None:
        """What `make` does first, without the network: packages come from here, merilo itself from the copy."""
        environment = self.path / ".venv"
        venv.create(environment, symlinks=True)
        site = sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)})
        (Path(site) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        for name in ("hatchling", "pytest"):
            script = environment / "bin" / name
            script.write_text(f'#!/bin/sh\nexec "$(dirname "$0")/python" -m {name} "$@"\n', encoding="utf-8")
            script.chmod(0o755)
        (environment / "stamps").mkdir()
        for stamp in ("runtime", "build", "test"):
            (environment / "stamps" / stamp).touch()

    def run(self, command: str) -> str:
        """Run one command of the page; its output. It must succeed."""
        kept = {"PATH", "TMPDIR", "LANG"}
        env = {name: value for name, value in os.environ.items() if name in kept}
        env |= {"HOME": str(self.path.parent), "COLUMNS": "110", "NO_COLOR": "1"}
        done = subprocess.run(  # noqa: S602 - the page is ours
            command,
            shell=True,
            cwd=self.path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def follow(self, title: str, replacing: tuple[str, str] = ("", "")) -> str:
        """Write the files of a section and run its commands, in order; the output of the last command."""
        printed = ""
        for fence in section(title):
            if fence.directive == "file":
                (self.path / fence.argument).write_text(fence.body + "\n", encoding="utf-8")
                continue
            for command, shown in commands(fence.body):
                printed = self.run(command.replace(*replacing))
                assert fence.directive != "output" or shows(shown, printed), printed
        return printed

    def changed(self) -> set[str]:
        """The tracked files that are not as they were copied."""
        return {name for name, digest in self.digests.items() if self._digest(name) != digest}

    def _digest(self, name: str) -> str:
        return hashlib.sha256((self.path / name).read_bytes()).hexdigest()


class _Generate(BaseHTTPRequestHandler):
    prompts: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["inputs"]
        self.prompts.append(f"{self.path} {prompt}")
        verdict = (
            {"grade": 2, "evidence": [1]} if "[1] It was completed in 1889." in prompt else {"grade": 0, "evidence": []}
        )
        body = json.dumps({"generated_text": json.dumps({**verdict, "reason": "as asked"})}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Generate) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.mark.skipif(not (shutil.which("git") and shutil.which("make")), reason="git or make is not installed")
@pytest.mark.long
def test_a_contributor_adds_a_metric_and_a_provider(tmp_path: Path, address: str) -> None:
    """Every command of both walks succeeds; a metric changes four files and a provider three, each used by name."""
    copy = Copy(tmp_path / "merilo")
    printed = copy.follow("Add a metric")
    assert "best_context_relevance  0.250" in printed
    metric = files_of("Add a metric").keys() - {MADE_BY_THE_READER}
    assert copy.changed() == {"docs/reference/metrics.md"}
    assert len(metric | copy.changed()) == 4
    printed = copy.follow("Add a provider", ("http://127.0.0.1:8080", address))
    assert "context_relevance  0.250" in printed
    assert any(prompt.startswith("/generate ") and "1889" in prompt for prompt in _Generate.prompts)
    assert copy.changed() == {"docs/reference/metrics.md"}
    assert len(files_of("Add a provider")) == 3


@pytest.mark.skipif(RUFF is None, reason="ruff is not installed")
@pytest.mark.parametrize("title", ["Add a metric", "Add a provider"])
def test_the_code_of_the_page_is_in_the_house_format(tmp_path: Path, title: str) -> None:
    """`make check` has nothing to say about the format and the lint of the files."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for source in (ROOT / "src").rglob("*.py"):  # so that the lint knows merilo's own modules
        (tmp_path / source.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / source.relative_to(ROOT)).touch()
    for name, text in files_of(title).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [str(RUFF), *command, *(name for name in files_of(title) if name.endswith(".py"))],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
