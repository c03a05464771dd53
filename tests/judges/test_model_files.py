"""The files of the embedded judge are what was shipped, or nothing is judged."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import merilo
from merilo.judges.model_files import model_file

FILES = ("blend.v2.json", "lexical.v2.json")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package whose files may be damaged."""
    root = tmp_path / "site"
    shutil.copytree(Path(merilo.__file__).parent, root / "merilo", ignore=shutil.ignore_patterns("__pycache__"))
    return root


def judged(root: Path) -> subprocess.CompletedProcess[str]:
    """A run with the embedded judge of this copy."""
    data = root / "data.jsonl"
    data.write_text('{"user_input": "How long is it?", "retrieved_contexts": ["It is 5 km long."]}\n')
    command = [sys.executable, "-m", "merilo", "run", str(data), "--metrics", "context_relevance", "--no-cache"]
    return subprocess.run(
        [*command, "--out", str(root / "run")],
        env={**os.environ, "PYTHONPATH": str(root)},
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )


def test_files_are_those_of_the_lock() -> None:
    """Whoever fits the model anew writes the digests anew: training/README.md says how."""
    assert all(model_file(name) for name in FILES)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["one digit", "cut", "empty", "swapped", "gone"])
def test_a_damaged_file_is_named_before_anything_is_judged(package: Path, name: str, damage: str) -> None:
    """A changed digit would be another threshold, and so other verdicts: it ends the run with one sentence."""
    path = package / "merilo" / "judges" / name
    content = path.read_bytes()
    digit = max(content.find(b"0.1"), content.find(b"0.2"), content.find(b"0.3"))
    match damage:
        case "one digit":
            path.write_bytes(content[:digit] + b"0.9" + content[digit + 3 :])
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "empty":
            path.write_bytes(b"")
        case "swapped":
            path.write_bytes(path.with_name(FILES[1 - FILES.index(name)]).read_bytes())
        case _:
            path.unlink()
    done = judged(package)
    assert done.returncode == 2, done.stderr
    assert name in done.stderr
    assert "reinstall merilo" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (package / "run" / "summary.json").exists()
