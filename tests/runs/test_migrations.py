"""Stores and caches that earlier formats wrote stay usable; `format1/` was written by format 1 itself."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import merilo
from merilo.engine.cache import VerdictCache
from merilo.judges.scripted import FileScript
from merilo.judging.kinds.embeddings import Embeddings
from merilo.judging.kinds.relevance import RelevanceVerdict
from merilo.judging.kinds.support import Support, SupportLabel, SupportVerdict
from merilo.judging.matrix import MatrixVerdict
from merilo.judging.verdicts import Failure, FailureKind
from merilo.runs import migrations
from merilo.runs.run import MANIFEST
from merilo.runs.store import FORMAT, Store

if TYPE_CHECKING:
    from merilo.judging.questions import Question

WRITTEN = Path(__file__).parent / "format1"


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which format 1 made a run and a cache."""
    shutil.copytree(WRITTEN, tmp_path, dirs_exist_ok=True)
    for packed in tmp_path.rglob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evaluate(**arguments: object) -> merilo.Run:
    """The call that made the run."""
    return merilo.evaluate(
        "data.jsonl",
        metrics=["context_relevance"],
        judge="scripted:script.jsonl",
        **{"out": "run", "cache": False, **arguments},
    )


@pytest.mark.parametrize("opened", [Store.open, Store.read])
def test_what_format_1_kept_is_read(old: Path, opened: object) -> None:
    """Verdicts, failures, questions, rubrics and replies come back as they were stored, migrated or only read."""
    store: Store = opened(old / "run" / "store.sqlite")
    asked = store.asked(b"k" * 16)
    assert asked is not None
    assert asked.question == Support("The cloth is blue.", ("Ткань синяя.",), language="ru", role="second")
    assert asked.answer == SupportVerdict(SupportLabel.SUPPORTED, (0,), "Da.")
    assert (asked.judge, asked.rubric, asked.cached) == ("openai:m", "the rubric", False)
    assert [*asked.replies[0]] == ["failure"]
    assert asked.replies[1]["usage"] == {"input_tokens": 12, "output_tokens": 7}
    vectors = store.asked(b"e" * 16)
    assert vectors is not None
    assert vectors.question == Embeddings(("a", "б"))
    assert vectors.answer == MatrixVerdict.of([[0.1, 1.0], [2.0, -3.5]])
    assert vectors.cached
    refused = bytes.fromhex("247f0b1638a74ef053439015a925fb03")
    assert store.answer(refused, RelevanceVerdict) == Failure(FailureKind.REFUSED, "It will not.")
    assert len(list(store.keys())) == 5
    assert store.spent().requests == 2
    store.close()


def test_a_reader_leaves_the_format_alone(old: Path) -> None:
    """Only who writes migrates."""
    before = (old / "run" / "store.sqlite").read_bytes()
    Store.read(old / "run" / "store.sqlite").close()
    assert (old / "run" / "store.sqlite").read_bytes() == before


def test_a_run_of_format_1_goes_on(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resumed, it asks nothing again, keeps what it said, and its store has this format from then on."""
    before = merilo.Run.open(old / "run")
    outcomes, means = [*before.records()], [each.mean for each in before.metrics.values()]
    told = json.loads((before.path / MANIFEST).read_text(encoding="utf-8"))
    asked: list[Question[Any]] = []
    monkeypatch.setattr(FileScript, "find", lambda _, question: asked.append(question))
    run = evaluate()
    assert [*run.records()] == outcomes
    assert [each.mean for each in run.metrics.values()] == means
    assert told.items() <= json.loads((run.path / MANIFEST).read_text(encoding="utf-8")).items()
    assert asked == []
    assert run.usage["requests"] == 2  # those of the run so far
    with sqlite3.connect(old / "run" / "store.sqlite") as db:
        assert db.execute("SELECT value FROM meta WHERE name = 'format'").fetchone() == (str(FORMAT),)
        assert db.execute("SELECT count(*) FROM answers WHERE seal IS NULL").fetchone() == (0,)
    db.close()
    assert [asked.answer for asked in run.asked(["ce3946857bbf0c39d892b629bcc0f95b"])] == [
        RelevanceVerdict(2, (1,), "It names the year.", 0.9)
    ]


def test_a_cache_of_format_1_serves(old: Path) -> None:
    """Its verdicts are found, dated by its file, and it has this format from then on."""
    cache = old / "cache.sqlite"
    os.utime(cache, (1_000_000_000, 1_000_000_000))
    run = evaluate(out="fresh", cache=cache)
    assert run.usage["cached"] == 2
    with sqlite3.connect(cache) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
        assert db.execute("SELECT DISTINCT added, source FROM verdicts").fetchall() == [(1_000_000_000, None)]
    db.close()
    VerdictCache(cache).close()


def test_a_stopped_migration_leaves_the_old_format(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a migration does not come to its end, the store is as it was, and the next one succeeds."""
    path = old / "run" / "store.sqlite"

    def stops(db: sqlite3.Connection) -> None:
        db.execute("ALTER TABLE answers ADD COLUMN seal INTEGER")
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(migrations, "MIGRATIONS", {2: stops})
        with pytest.raises(KeyboardInterrupt):
            Store.open(path)
    Store.open(path).close()
    run = merilo.Run.open(old / "run")
    assert run.asked([(b"k" * 16).hex()])[0].judge == "openai:m"


def test_migrations_are_numbered_without_a_gap() -> None:
    """Every format but the first has its migration."""
    assert sorted(migrations.MIGRATIONS) == list(range(2, FORMAT + 1))


def test_a_newer_store_is_refused(old: Path) -> None:
    """A format that is not known is neither read nor written."""
    path = old / "run" / "store.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = '99'")
    db.close()
    for look in (Store.open, Store.read):
        with pytest.raises(merilo.RunError, match=r"has format 99; this merilo reads formats up to 4\. Upgrade merilo"):
            look(path)
