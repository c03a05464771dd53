"""A damaged store, a full disk, a place where nothing may be written: one sentence, and never a wrong number."""

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from judged_rivers import canonical, rows, verdict_for
from runs.damaging import WAYS, command, copied
from seals import seal_again

import merilo
from merilo.commands.verify.replay import replay_run
from merilo.errors import MeriloError, RunError
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.runs.database import FORMAT, MAX_VALUE
from merilo.runs.files import LEDGER, MANIFEST, MAX_JSON_BYTES, OUTCOMES, STORE, SUMMARY, RunLock
from merilo.runs.records import packed
from merilo.runs.run import Run
from merilo.runs.store import Store

METRICS = ["context_relevance", "faithfulness"]
ADVICE = "start a new run in another directory (--out)"


def answer(question: Question[Any]) -> dict[str, Any] | Failure:
    refused = Failure(FailureKind.REFUSED, "It will not.")
    return refused if "river 3" in repr(question) else verdict_for(question)


def evaluate(out: Path) -> merilo.Run:
    judge = merilo.ScriptedJudge.by(answer, version="1")
    return merilo.evaluate(rows(8), judge=judge, metrics=METRICS, out=out, storage={"cache": False})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> merilo.Run:
    return evaluate(tmp_path_factory.mktemp("runs") / "whole")


@pytest.mark.parametrize("damage", WAYS, ids=lambda way: way.__name__)
def test_a_damaged_store_is_told_or_does_no_harm(
    damage: Callable[[bytearray, random.Random], None], whole: merilo.Run, tmp_path: Path
) -> None:
    """Whatever became of the file: resuming gives the same bytes or one sentence with advice, and so does looking."""
    good = (whole.path / STORE).read_bytes()
    keys = [key for record in whole.records() for key in record.get("trail", [])]
    for seed in range(12):
        path = tmp_path / str(seed)
        shutil.copytree(whole.path, path)
        copied(path / STORE, good, damage, seed)
        with suppress(MeriloError):
            run = merilo.Run.open(path)
            assert len(list(run.samples)) == 8
            run.asked(keys)
        told = ""
        try:
            assert canonical(evaluate(path)) == canonical(whole)
        except RunError as error:
            told = str(error)
        assert not told or (str(path / STORE) in told and ADVICE in told.lower())


@pytest.mark.parametrize("summary", ["{}", '{"samples": "many"}'])
def test_a_summary_without_samples_is_one_sentence(summary: str, whole: merilo.Run, tmp_path: Path) -> None:
    """A summary that lacks what every summary tells is named, with what to do."""
    shutil.copytree(whole.path, tmp_path / "run")
    (tmp_path / "run" / SUMMARY).write_text(summary, encoding="utf-8")
    seal_again(tmp_path / "run")
    with pytest.raises(
        RunError,
        match=r"summary\.json is damaged \(.* is missing .*\)\. Repeat the command that wrote the run",
    ):
        _ = merilo.Run.open(tmp_path / "run").done


def write_data(path: Path, samples: int) -> None:
    lines = (
        {
            "user_input": f"When was tower {n} completed?",
            "retrieved_contexts": [f"Tower {n} was completed in {n}. " * 9],
        }
        for n in range(samples)
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("limit", [1, 40_000])
def test_a_full_disk_is_one_sentence(limit: int, tmp_path: Path) -> None:
    """Where no file may grow further the run ends with a sentence and status 2; with room it goes on and finishes."""
    write_data(tmp_path / "data.jsonl", 100)
    run = ("run", tmp_path / "data.jsonl", "--metrics", "context_relevance", "--out", tmp_path / "run", "--quiet")
    here = {"MERILO_CACHE": str(tmp_path / "cache.sqlite")}
    full = command(*run, file_limit=limit, **here)
    assert full.returncode == 2, full.stderr
    assert "cannot be written" in full.stderr
    assert "Traceback" not in full.stderr
    again = command(*run, **here)
    assert again.returncode == 0, again.stderr
    assert merilo.Run.open(tmp_path / "run").complete


def test_a_directory_that_may_not_be_written_is_one_sentence(tmp_path: Path) -> None:
    """A run in a read-only directory, a read-only store and a new directory in a read-only one: status 2, told."""
    write_data(tmp_path / "data.jsonl", 2)
    run = ("run", tmp_path / "data.jsonl", "--metrics", "context_relevance", "--no-cache", "--retry-failed", "--out")
    assert command(*run, tmp_path / "run").returncode == 0
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty").chmod(0o555)
    (tmp_path / "run").chmod(0o555)
    for path in (tmp_path / "run").iterdir():
        path.chmod(0o444)
    for out in ("empty", "empty/new", "run"):
        refused = command(*run, tmp_path / out, obeying=True)
        assert refused.returncode == 2, refused.stderr
        assert "Traceback" not in refused.stderr
        assert str(tmp_path / out) in refused.stderr
    shown = command("show", tmp_path / "run", "--worst", 1, "--metric", "context_relevance", obeying=True)
    assert shown.returncode == 0, shown.stderr


def test_a_lock_that_is_none_is_told(tmp_path: Path) -> None:
    """Something else in the place of the lock is named, with what to do."""
    (tmp_path / ".lock").write_bytes(b"not a database, but long enough to be taken for one" * 100)
    with (
        pytest.raises(RunError, match=r"\.lock is not a lock file of merilo .*\. Delete it and try again"),
        RunLock(tmp_path),
    ):
        pass


def test_a_manifest_without_a_field_is_named_with_it(whole: merilo.Run, tmp_path: Path) -> None:
    """The sentence says which field is missing, and of which file."""
    shutil.copytree(whole.path, tmp_path / "run")
    (tmp_path / "run" / "manifest.json").write_text(json.dumps({"format": FORMAT}), encoding="utf-8")
    seal_again(tmp_path / "run")
    with pytest.raises(RunError, match=r"manifest\.json is damaged \(merilo is missing or has a wrong value\)"):
        Run.open(tmp_path / "run")


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, 'a', '{}' FROM n"
MANY = """
INSERT INTO sqlite_master WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 30000)
SELECT 'table', 't' || x, 't' || x, 2, 'CREATE TABLE t' || x || '(a)' FROM n
"""
SCHEMAS = {
    "view": (
        "ALTER TABLE samples RENAME TO other",
        f"CREATE VIEW samples (row, id, record) AS {ENDLESS} LIMIT 9",
    ),
    "more": (f"CREATE VIEW more AS {ENDLESS}",),
    "trigger": ("CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM samples; END",),
    "virtual table": ("CREATE VIRTUAL TABLE v USING fts5(x)",),
    "generated column": ("ALTER TABLE unfinished ADD COLUMN y AS (length(hex(zeroblob(900000000))))",),
    "default": ("ALTER TABLE unfinished ADD COLUMN y DEFAULT (random())",),
    "index on an expression": ("CREATE INDEX i ON answers (abs(cached))",),
    "partial index": ("CREATE INDEX i ON answers (cached) WHERE cached > 7",),
    "check": ("DROP TABLE meta", "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, CHECK (value > 1))"),
    "statistics": ("ANALYZE",),
    "many tables": (
        "PRAGMA writable_schema = ON",
        MANY,
    ),
}


@each_case("name", SCHEMAS)
def test_a_schema_that_merilo_does_not_write_is_refused(name: str, whole: merilo.Run, tmp_path: Path) -> None:
    """Whatever else the schema has, no reader and no writer executes a statement on it; the file stays as it is."""
    path = tmp_path / "run"
    shutil.copytree(whole.path, path)
    with closing(sqlite3.connect(path / STORE, isolation_level=None)) as db:
        for statement in SCHEMAS[name]:
            db.execute(statement)
    before = (path / STORE).read_bytes()
    for opening in (Run.open, lambda each: Store.read(each / STORE), lambda each: Store.open(each / STORE), evaluate):
        with pytest.raises(RunError, match=r"store\.sqlite is damaged"):
            opening(path)
    assert (path / STORE).read_bytes() == before


def test_a_huge_value_is_not_read(whole: merilo.Run, tmp_path: Path) -> None:
    """A value above the limit is one sentence, whichever table has it, and takes no memory."""
    for statement in (
        "UPDATE samples SET record = zeroblob(?) WHERE row = 1",
        "UPDATE exchanges SET record = zeroblob(?)",
        "UPDATE meta SET value = zeroblob(?) WHERE name = 'results'",
    ):
        path = tmp_path / "run"
        shutil.copytree(whole.path, path)
        with closing(sqlite3.connect(path / STORE)) as db, db:
            db.execute(f"{statement} {'' if 'WHERE' in statement else 'WHERE rowid = 1'}", (MAX_VALUE + 1,))
        with pytest.raises(RunError, match=r"store\.sqlite is damaged"):
            replay_run(path)
        shutil.rmtree(path)


def test_a_deeply_nested_record_is_one_sentence(whole: merilo.Run, tmp_path: Path) -> None:
    """A record of a sample that nests too deep to be read is damage, not a bug of merilo."""
    path = shutil.copytree(whole.path, tmp_path / "run")
    with closing(sqlite3.connect(path / STORE)) as db, db:
        db.execute("UPDATE samples SET record = ?", (packed("[" * 50_000),))
    with pytest.raises(RunError, match="is damaged"):
        list(merilo.Run.open(path).samples)


def test_a_journal_that_names_a_file_is_refused(whole: merilo.Run, tmp_path: Path) -> None:
    """SQLite would delete the file that the end of a journal names."""
    shutil.copytree(whole.path, tmp_path / "run")
    (victim := tmp_path / "victim").write_text("mine")
    name, magic = str(victim).encode(), bytes.fromhex("d9d505f920a163d7")
    end = name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + magic
    (tmp_path / "run" / f"{STORE}-journal").write_bytes(magic + bytes(504) + end)
    with pytest.raises(RunError, match=r"store\.sqlite"):
        evaluate(tmp_path / "run")
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("name", [f"{OUTCOMES}.part", LEDGER, ".lock", f"{STORE}-wal", MANIFEST, "seal.json"])
def test_nothing_is_written_through_a_link(name: str, whole: merilo.Run, tmp_path: Path) -> None:
    """A link in place of a file that a command writes in place may lead to any file of the user."""
    shutil.copytree(whole.path, tmp_path / "run")
    (victim := tmp_path / "victim").write_text("mine")
    (tmp_path / "run" / name).unlink(missing_ok=True)
    (tmp_path / "run" / name).symlink_to(victim)
    with pytest.raises(RunError, match=r"is not a regular file|is not a lock file|is damaged"):
        evaluate(tmp_path / "run")
    assert victim.read_text() == "mine"


def test_files_of_any_size_take_little(whole: merilo.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JSON file or a line above the limits is one sentence."""
    shutil.copytree(whole.path, tmp_path / "run")
    path = tmp_path / "run" / MANIFEST
    text = path.read_bytes()
    path.write_bytes(text + b" " * MAX_JSON_BYTES)
    with pytest.raises(RunError, match=r"manifest\.json was changed"):
        Run.open(tmp_path / "run")
    path.write_bytes(text)
    run = Run.open(tmp_path / "run")
    monkeypatch.setattr("merilo.runs.files.MAX_LINE_BYTES", 100)
    with pytest.raises(RunError, match=r"outcomes\.jsonl is damaged \(a line has more than 100 bytes\)"):
        list(run.records())


def test_no_code_is_run_that_a_manifest_names(whole: merilo.Run, tmp_path: Path) -> None:
    """A metric of a manifest is a name; one in a file would run that file in whoever shows the run."""
    shutil.copytree(whole.path, tmp_path / "run")
    code = tmp_path / "run" / "evil.py"
    code.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Metric: name = 'x'\n")
    for file in ("manifest.json", SUMMARY, OUTCOMES):
        path = tmp_path / "run" / file
        path.write_text(path.read_text().replace('"faithfulness"', json.dumps(f"{code}:Metric")))
    seal_again(tmp_path / "run")
    with pytest.raises(RunError, match="names a file of code"):
        str(Run.open(tmp_path / "run"))
    assert not (tmp_path / "ran").exists()
