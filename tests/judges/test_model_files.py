"""The files of the embedded judge are what was shipped, or nothing is judged."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from each_case import each_case

from merilo.errors import DataError
from merilo.judges import words
from merilo.judges.words import LOCK, model_file

FILES = ("curves.v3.json", "words.v1.json")
JUDGES = Path(words.__file__).parent


def test_files_are_those_of_the_lock() -> None:
    """Whoever fits the model anew writes the digests anew: training/README.md says how."""
    assert all(model_file(name) for name in FILES)


@each_case("name", FILES)
@each_case("damage", ["one digit", "cut", "empty", "swapped", "gone"])
def test_a_damaged_file_is_named(name: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed digit would be another threshold, and so other verdicts."""
    for each in (*FILES, LOCK):
        shutil.copy(JUDGES / each, tmp_path)
    path = tmp_path / name
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
    monkeypatch.setattr(words, "files", lambda _: tmp_path)
    with pytest.raises(DataError, match="reinstall merilo") as raised:
        model_file(name)
    assert name in str(raised.value)


def test_a_damaged_file_ends_the_run_before_anything_is_judged(tmp_path: Path) -> None:
    """The command ends with one sentence and writes no result."""
    package = tmp_path / "merilo"
    shutil.copytree(JUDGES.parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "judges" / FILES[0]).write_bytes(b"{}")
    data = tmp_path / "data.jsonl"
    data.write_text('{"user_input": "How long is it?", "retrieved_contexts": ["It is 5 km long."]}\n')
    command = [sys.executable, "-m", "merilo", "run", str(data), "--metrics", "context_relevance", "--no-cache"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "run")],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert FILES[0] in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run" / "summary.json").exists()
