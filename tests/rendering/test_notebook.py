"""A run in a notebook: a screen to look at, a data frame to go on with."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from imported import import_scores

import merilo
from merilo.commands.export.run import export_run
from merilo.errors import UsageError


@pytest.fixture
def run(tmp_path: Path) -> merilo.Run:
    (tmp_path / "scores.csv").write_text("id,s\na,0.5\nb,\n=1+1,0.25\n", encoding="utf-8")
    return merilo.Run.of(import_scores(tmp_path / "scores.csv", scores=["s"], out=tmp_path / "run"))


def test_a_frame_has_a_row_for_each_outcome(run: merilo.Run) -> None:
    """Where there is no score the value is empty, the outcome says so and the reason says why."""
    pandas = pytest.importorskip("pandas")
    frame = run.to_frame(rows="outcomes")
    assert [*frame.columns] == ["sample", "metric", "outcome", "value", "reason"]
    assert frame["outcome"].tolist() == ["score", "undefined", "score"]
    assert frame["value"].tolist()[::2] == [0.5, 0.25]
    assert pandas.isna(frame["value"][1])
    assert frame["reason"].tolist() == ["", "not scored there", ""]
    assert frame["sample"].tolist() == ["a", "b", "=1+1"]


def _columns(frame: Any, backend: str) -> dict[str, list[object]]:  # Any: of three libraries
    if backend == "pyarrow":
        return dict(frame.to_pydict())
    if backend == "polars":
        return dict(frame.to_dict(as_series=False))
    found = frame.astype(object).where(frame.notna(), None)
    return {name: found[name].tolist() for name in found.columns}


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_frame_has_the_columns_of_an_export(run: merilo.Run, tmp_path: Path, backend: str) -> None:
    """In pandas, polars and pyarrow, a frame has the names, cells and missing values of an exported file."""
    pytest.importorskip(backend, reason=f"{backend} is not installed")
    frame = run.to_frame(backend)
    assert type(frame).__module__.startswith(backend)
    export_run(run, tmp_path / "x.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()]
    assert _columns(frame, backend) == {name: [row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize("backend", ["polars", "pyarrow"])
def test_columns_without_a_value_have_a_type(run: merilo.Run, backend: str) -> None:
    """A run whose samples have no field still has a text column, so that frames of several runs can be joined."""
    pytest.importorskip(backend, reason=f"{backend} is not installed")
    schema = run.to_frame(backend).schema
    types = [str(schema[name] if backend == "polars" else schema.field(name).type) for name in ("response", "contexts")]
    assert types == (["String", "Int64"] if backend == "polars" else ["string", "int64"])


@pytest.mark.parametrize("module", ["pandas", "polars", "pyarrow"])
def test_without_a_library_it_is_said_what_to_do(run: merilo.Run, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the package; nothing else of a run needs it."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=rf"needs {module}.*pip install {module}"):
        run.to_frame(module)
