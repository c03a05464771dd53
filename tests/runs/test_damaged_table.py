"""An `outcomes.parquet` that merilo did not write is refused with its fault, and costs little memory."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from merilo.commands.convert.run import convert_run

import merilo
from merilo.cli import outcome
from merilo.errors import RunError
from merilo.runs.files import OUTCOMES, SEAL, TABLE
from merilo.runs.outcome_table import GROUP_BYTES, table_fault, table_lines, write_table
from merilo.runs.publish import part_of
from merilo.runs.seal import Seal, _read_seal, digest_of_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

MANY = 2_000
LONG = 100_000


@pytest.fixture
def run(tmp_path: Path) -> Path:
    rows = [{"user_input": "When?", "retrieved_contexts": ["Completed in 1889."]}]
    merilo.evaluate(rows, metrics=["context_relevance"], out=tmp_path / "run", cache=False, outcomes="parquet")
    return tmp_path / "run"


def numbered(table: Any) -> Any:
    return table.set_column(5, "record", arrow.array([1] * len(table)))


@pytest.mark.parametrize("resealed", [False, True])
@pytest.mark.parametrize(
    "edit",
    [
        lambda table: table.drop_columns(["record"]),
        lambda table: table.drop_columns(["value"]),
        lambda table: table.append_column("more", table["value"]),
        lambda table: table.set_column(5, "record", arrow.array([None] * len(table), arrow.string())),
        numbered,
    ],
)
def test_a_table_of_another_shape_is_damaged(
    run: Path, edit: Callable[[Any], Any], capsys: pytest.CaptureFixture[str], *, resealed: bool
) -> None:
    """Missing, additional and wrong columns give exit code 2, with and without a seal."""
    parquet.write_table(edit(parquet.read_table(run / TABLE)), run / TABLE)
    if resealed:
        seal = _read_seal(run)
        assert seal is not None
        (run / SEAL).write_text(Seal({**seal.digests, TABLE: digest_of_file(run / TABLE)}).text())
    else:
        (run / SEAL).unlink()
    assert outcome(["runs", "verify", str(run)]) == 2
    assert "outcomes.parquet is damaged (" in capsys.readouterr().err


def test_a_text_that_is_repeated_is_held_once(tmp_path: Path) -> None:
    """A file of a few kilobytes with 2,000 equal records of 100 kB is read in less than 20 MB."""
    texts = {name: ["x"] * MANY for name in ("sample", "metric", "outcome", "reason")}
    long = arrow.DictionaryArray.from_arrays(arrow.array([0] * MANY, arrow.int32()), arrow.array(["x" * LONG]))
    columns = {**texts, "value": [0.0] * MANY, "record": long.cast(arrow.string())}
    order = ("sample", "metric", "outcome", "value", "reason", "record")
    path = tmp_path / TABLE
    parquet.write_table(arrow.table({name: columns[name] for name in order}), path)
    assert path.stat().st_size < LONG
    del long, columns
    before = arrow.total_allocated_bytes()
    tracemalloc.start()
    peak = 0
    for line in table_lines(path):
        assert len(line) == LONG + 1
        peak = max(peak, arrow.total_allocated_bytes() - before)
    assert peak + tracemalloc.get_traced_memory()[1] < 20 * 10**6
    tracemalloc.stop()


def test_a_row_group_that_unpacks_to_gigabytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unpacked size of a row group is limited."""
    monkeypatch.setattr("merilo.runs.outcome_table._MAX_GROUP_BYTES", 100)
    write_table([b'{"sample":"a","metric":"m","outcome":"undefined","reason":"none"}\n'], tmp_path / TABLE)
    with pytest.raises(ValueError, match="unpacks to more than 100 bytes"):
        next(table_lines(tmp_path / TABLE))


def test_very_long_outcomes_make_smaller_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group ends once its lines have so many bytes, and holds the same lines."""
    assert GROUP_BYTES > MANY
    monkeypatch.setattr("merilo.runs.outcome_table.GROUP_BYTES", 150)
    lines = [b'{"sample":"%d","metric":"m","outcome":"undefined","reason":"none"}\n' % each for each in range(7)]
    write_table(lines, tmp_path / TABLE)
    assert parquet.ParquetFile(tmp_path / TABLE).num_row_groups == 3
    assert [*table_lines(tmp_path / TABLE)] == lines
    assert table_fault(tmp_path / TABLE) is None


def test_a_conversion_that_fails_leaves_no_part_files(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk is full, the part files are removed again and the outcomes stay."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("merilo.commands.convert.run.publish", full)
    with pytest.raises(RunError, match="No space left on device"):
        convert_run(run, "jsonl")
    assert not part_of(run / OUTCOMES).exists()
    assert merilo.Run.open(run).complete
