"""Outcomes as Parquet are those of `outcomes.jsonl`, sealed by the same digest, and every reader takes them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from edits import byte_edits, printed, readers
from labelled_run import contexts_rows, lenient
from merilo.commands.convert.run import convert_run

import merilo
from merilo.api import merge
from merilo.errors import RunError, UsageError
from merilo.runs.files import OUTCOMES, SEAL, TABLE
from merilo.runs.outcome_lines import outcome_lines
from merilo.runs.outcome_table import ROWS, write_table
from merilo.runs.publish import PART
from merilo.runs.seal import recover

if TYPE_CHECKING:
    from pathlib import Path

parquet = pytest.importorskip("pyarrow.parquet")

METRIC = "context_relevance"
ROWS_OF_DATA = [*contexts_rows(20), {"id": 'say "ä\\', "user_input": "What is 21?", "retrieved_contexts": []}]
READERS = ("show --sample", "show --worst", "compare", "gate --baseline", "label", "judge agree")
RESULTS = ("manifest.json", "summary.json", "outcomes.jsonl")


def evaluated(out: Path, **options: Any) -> merilo.Run:
    judge = merilo.ScriptedJudge.by(lenient, version="1")
    return merilo.evaluate(ROWS_OF_DATA, metrics=[METRIC], judge=judge, out=out, cache=False, **options)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run in both forms."""
    path = tmp_path_factory.mktemp("runs")
    evaluated(path / "lines")
    evaluated(path / "table", outcomes="parquet")
    return path


@pytest.fixture
def table(here: Path, tmp_path: Path) -> Path:
    shutil.copytree(here / "table", tmp_path / "table")
    return tmp_path / "table"


def test_both_forms_hold_the_same_lines(here: Path) -> None:
    """A run with Parquet has no outcomes.jsonl, and its lines are those of the run with JSON Lines."""
    lines = (here / "lines" / OUTCOMES).read_bytes()
    assert not (here / "table" / OUTCOMES).exists()
    assert b"".join(outcome_lines(here / "table" / TABLE)) == lines
    assert [*merilo.Run.open(here / "table").records()] == [*merilo.Run.open(here / "lines").records()]


def test_other_tools_read_the_columns(here: Path) -> None:
    """The Parquet file has a column for sample, metric, outcome, value and reason."""
    found = parquet.read_table(here / "table" / TABLE).to_pylist()
    stored = [*merilo.Run.open(here / "lines").records()]
    assert [row["sample"] for row in found] == [each["sample"] for each in stored]
    assert [row["value"] for row in found] == [each.get("value") for each in stored]
    assert {row["outcome"] for row in found} == {"score", "undefined"}
    assert [row["reason"] for row in found] == [each.get("reason") for each in stored]


def test_every_reader_prints_the_same_for_both_forms(here: Path, tmp_path: Path) -> None:
    """Commands that read outcomes give the same output, whichever form the outcomes have."""
    found = {}
    for form in ("lines", "table"):
        shutil.copytree(here / form, tmp_path / "run")
        commands = readers(tmp_path / "run", here / "lines", tmp_path, sample="s3", metric=METRIC)
        found[form] = {name: printed(*commands[name]) for name in READERS}
        found[form]["report"] = printed("report", tmp_path / "run", "-o", tmp_path / "page.html")
        found[form]["export"] = printed("export", tmp_path / "run", "-o", tmp_path / "table.csv")
        shutil.rmtree(tmp_path / "run")
    assert {name: code for name, (code, _) in found["table"].items() if code not in {0, 1, 3}} == {}
    assert {
        name: (found["lines"][name], text) for name, text in found["table"].items() if text != found["lines"][name]
    } == {}


def test_a_run_is_verified_in_both_forms(here: Path) -> None:
    """`merilo runs verify` recomputes a run with Parquet."""
    assert [printed("runs", "verify", here / form)[0] for form in ("lines", "table")] == [0, 0]


def test_converting_there_and_back_gives_the_first_bytes(here: Path, tmp_path: Path) -> None:
    """JSON Lines to Parquet and back changes no byte of any file; Parquet has the bytes of a run made with it."""
    shutil.copytree(here / "lines", tmp_path / "run")
    before = {name: (tmp_path / "run" / name).read_bytes() for name in (*RESULTS, SEAL, "usage.json")}
    assert convert_run(tmp_path / "run", "parquet").read_bytes() == (here / "table" / TABLE).read_bytes()
    assert not (tmp_path / "run" / OUTCOMES).exists()
    assert (tmp_path / "run" / SEAL).read_bytes() == (here / "table" / SEAL).read_bytes()
    convert_run(tmp_path / "run", "jsonl")
    assert not (tmp_path / "run" / TABLE).exists()
    assert {name: (tmp_path / "run" / name).read_bytes() for name in before} == before


def test_a_changed_byte_is_refused(table: Path) -> None:
    """No reader opens a run whose outcomes.parquet was edited."""
    content = (table / TABLE).read_bytes()
    for edited in byte_edits(content, 40, seed=1):
        if edited != content:
            (table / TABLE).write_bytes(edited)
            with pytest.raises(RunError, match=r"outcomes\.parquet was changed"):
                merilo.Run.open(table)


def test_a_missing_table_is_named(table: Path) -> None:
    """A run without its outcomes.parquet is refused, even with an outcomes.jsonl in its place."""
    (table / TABLE).rename(table / "elsewhere")
    (table / OUTCOMES).write_bytes(b"".join(outcome_lines(_named(table / "elsewhere"))))
    with pytest.raises(RunError, match=r"outcomes\.parquet is missing"):
        merilo.Run.open(table)


def _named(path: Path) -> Path:
    return path.rename(path.with_name(TABLE + ".kept"))


def test_verify_finds_columns_that_contradict_the_records(table: Path) -> None:
    """A table whose columns differ from its records is found, even if its digest was computed again."""
    import pyarrow as pa

    found = parquet.read_table(table / TABLE)
    values = pa.array([1.0] * len(found), pa.float64())
    parquet.write_table(found.set_column(3, "value", values), table / TABLE, row_group_size=ROWS)
    _seal_again(table)
    code, text = printed("runs", "verify", table)
    assert (code, "do not follow from its records" in " ".join(text.split())) == (1, True)


def test_verify_finds_records_that_are_not_those_of_the_seal(table: Path) -> None:
    """A table with other records is found, even if its digest was computed again."""
    lines = [line.replace(b'"value":0.', b'"value":1.') for line in outcome_lines(table / TABLE)]
    write_table(lines, table / TABLE)
    _seal_again(table)
    assert printed("runs", "verify", table)[0] == 1


def _seal_again(run: Path) -> None:
    from merilo.runs.seal import Seal, _read_seal, digest_of_file

    seal = _read_seal(run)
    assert seal is not None
    (run / SEAL).write_text(Seal({**seal.digests, TABLE: digest_of_file(run / TABLE)}).text())


def test_a_resumed_run_keeps_its_form(table: Path) -> None:
    """The same command without --outcomes leaves Parquet as it is; with `jsonl` it writes JSON Lines."""
    before = (table / TABLE).read_bytes()
    evaluated(table)
    assert (table / TABLE).read_bytes() == before
    evaluated(table, outcomes="jsonl")
    assert ((table / OUTCOMES).exists(), (table / TABLE).exists()) == (True, False)


def test_merged_shards_keep_their_form(here: Path, tmp_path: Path) -> None:
    """Shards with Parquet merge into the Parquet that one process would have written."""
    for shard in (1, 2):
        evaluated(tmp_path / str(shard), shard=f"{shard}/2", outcomes="parquet")
    run = merge([tmp_path / "1", tmp_path / "2"], tmp_path / "merged")
    assert run.file(TABLE).read_bytes() == (here / "table" / TABLE).read_bytes()
    assert (run.path / SEAL).read_bytes() == (here / "table" / SEAL).read_bytes()


@pytest.mark.parametrize("sealed", [False, True])
def test_a_conversion_that_was_killed_is_undone_or_finished(here: Path, tmp_path: Path, *, sealed: bool) -> None:
    """Killed before its seal, the run has its earlier outcomes; killed after it, the new ones."""
    shutil.copytree(here / "lines", tmp_path / "run")
    shutil.copy(here / "table" / TABLE, tmp_path / "run" / (TABLE + PART))
    if sealed:
        shutil.copy(here / "table" / SEAL, tmp_path / "run" / SEAL)
    assert merilo.Run.open(tmp_path / "run").sealed
    recover(tmp_path / "run")
    run = merilo.Run.open(tmp_path / "run")
    assert run.file(OUTCOMES).name == (TABLE if sealed else OUTCOMES)
    assert [*run.records()] == [*merilo.Run.open(here / "lines").records()]


def test_a_lost_seal_is_written_again(table: Path) -> None:
    """`merilo runs verify` seals a run with Parquet again if only its seal was lost."""
    (table / SEAL).unlink()
    with pytest.raises(RunError):
        merilo.Run.open(table)
    code, text = printed("runs", "verify", table)
    assert (code, (table / SEAL).exists()) == (0, True), text
    assert merilo.Run.open(table).file(OUTCOMES).name == TABLE


def test_another_form_is_refused(tmp_path: Path) -> None:
    """A form other than jsonl and parquet is refused before anything is asked."""
    with pytest.raises(UsageError, match="jsonl or parquet"):
        evaluated(tmp_path / "run", outcomes="csv")
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_opened_again_gives_the_same_lines(here: Path) -> None:
    """Both ways to read, with the file kept open or not, yield the same lines in both forms."""
    paths = (here / "lines" / OUTCOMES, here / "table" / TABLE)
    found = [[*outcome_lines(path, reopen=reopen)] for path in paths for reopen in (False, True)]
    assert found[0]
    assert found == [found[0]] * 4


def test_a_reader_keeps_the_outcomes_that_it_opened(table: Path, here: Path) -> None:
    """A run that is published again while it is read does not mix its earlier and its later outcomes."""
    for path, part in ((table / TABLE, here / "table" / TABLE), (table / OUTCOMES, here / "lines" / OUTCOMES)):
        shutil.copy(part, path)
        reader = outcome_lines(path)
        first = next(reader)
        shutil.copy(part, path.with_name("new"))
        (path.with_name("new")).write_bytes(b"other")
        path.with_name("new").replace(path)
        assert [first, *reader] == (here / "lines" / OUTCOMES).read_bytes().splitlines(keepends=True)
