"""The command of a finished run, repeated: nothing is read or judged again unless an input changed."""

import json
from pathlib import Path
from typing import Any

import pytest

import merilo
from merilo.commands.evaluate import run as evaluating
from merilo.runs.files import OUTCOMES


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Five samples with ids."""
    path = tmp_path / "data.jsonl"
    rows = [{"id": f"s{n}", "retrieved_context_ids": ["a", "b"], "reference_context_ids": ["b"]} for n in range(5)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def evaluated(data: Path, metric: str = "precision@2", **options: Any) -> merilo.Run:
    return merilo.evaluate(data, metrics=[metric], out=data.with_name("run"), storage={"cache": False}, **options)


def test_an_equal_command_reads_and_writes_nothing(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run comes back as it is, with limits of its own, though its data cannot be read any longer."""
    first = evaluated(data)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in first.path.iterdir() if path.is_file()}
    monkeypatch.setattr(evaluating, "prepared", None)
    again = evaluated(data, limits={"concurrency": 2})
    assert again.metrics == first.metrics
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before


@pytest.mark.parametrize("changed", ["data", "metrics"])
def test_a_changed_input_is_seen(data: Path, changed: str) -> None:
    """One other byte in the data, or another metric, is another run."""
    evaluated(data)
    if changed == "data":
        data.write_text(data.read_text("utf-8").replace('"a"', '"c"', 1), "utf-8")
    with pytest.raises(merilo.RunError, match=f"differs in {changed}"):
        evaluated(data, "precision@2" if changed == "data" else "precision@1")


def test_a_changed_file_of_the_run_is_computed_again(data: Path) -> None:
    """A finished run whose outcomes were edited is not taken as it is."""
    path = evaluated(data).path / OUTCOMES
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"0.5", b"0.6"))
    evaluated(data)
    assert path.read_bytes() == whole
