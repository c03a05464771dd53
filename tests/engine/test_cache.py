"""The verdict cache: first writer wins, several processes at once, and only a file of its own is ever touched."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from grouping import grouped
from judged_rivers import rows, verdict_for
from server import JudgeServer, says

import merilo
from merilo.engine import cache as caches
from merilo.engine.cache import VerdictCache, contents, default_path, prune
from merilo.errors import RunError
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import Verdict

QUESTION = Relevance("q?", ("One.", "Two."))
YES, NO = RelevanceVerdict(2, (1,), "So it is."), RelevanceVerdict(0)


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def put(cache: VerdictCache, verdict: Verdict, *numbers: int) -> None:
    asked: list[tuple[bytes, Question[Any], Verdict]] = [(key(number), QUESTION, verdict) for number in numbers]
    cache.put(asked, "judge:a", paid=True)


def find(cache: VerdictCache, *numbers: int) -> dict[int, Verdict]:
    found = cache.find({key(number): QUESTION for number in numbers})
    return {int.from_bytes(each, "big"): verdict for each, verdict in found.items()}


class Heard:
    """Watches a run for what it says."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def begin(self, run: Path, samples: int) -> None:
        pass

    def advance(self, samples: int) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)

    def end(self) -> None:
        pass


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in" / "here" / "verdicts.sqlite"


@pytest.fixture
def cache(path: Path) -> Iterator[VerdictCache]:
    with closing(VerdictCache(path)) as opened:
        yield opened


def test_a_verdict_is_found_at_once_and_after_a_commit(cache: VerdictCache, path: Path) -> None:
    """What was put is found before it is committed; others find it after."""
    put(cache, YES, 1, 2)
    assert find(cache, 1, 2, 3) == {1: YES, 2: YES}
    with closing(VerdictCache(path)) as other:
        assert find(other, 1) == {}
        cache.commit()
        assert find(other, 1, 2, 3) == {1: YES, 2: YES}


def test_the_first_writer_wins(cache: VerdictCache, path: Path) -> None:
    """Of two verdicts under one key the one committed first stays."""
    with closing(VerdictCache(path)) as other:
        put(other, NO, 1)
        put(cache, YES, 1, 2)
        cache.commit()
    with closing(VerdictCache(path)) as later:
        assert find(later, 1, 2) == {1: YES, 2: YES}


def test_a_verdict_that_does_not_answer_is_replaced(cache: VerdictCache, path: Path) -> None:
    """A row that contradicts its question, does not match its seal or is no verdict is not served, but replaced."""
    put(cache, RelevanceVerdict(2, (7,)), 1)
    put(cache, YES, 2, 3, 4)
    cache.commit()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE verdicts SET verdict = ? WHERE key = ?", (NO.to_json().encode(), key(2)))
        db.execute("UPDATE verdicts SET verdict = 7 WHERE key = ?", (key(3),))
        db.execute("UPDATE verdicts SET key = ? WHERE key = ?", (key(5), key(4)))
    with closing(VerdictCache(path)) as other:
        assert find(other, 1, 2, 3, 4, 5) == {}
        put(other, YES, 1, 2, 3, 4, 5)
    with closing(VerdictCache(path)) as later:
        assert find(later, 1, 2, 3, 4, 5) == dict.fromkeys(range(1, 6), YES)


def test_a_writer_who_is_kept_waiting_goes_on(cache: VerdictCache, path: Path) -> None:
    """While another process writes, commits are put off; nothing is lost and nothing is told."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    put(cache, YES, 1)
    cache.commit(wait_s=0.05)
    assert find(cache, 1) == {1: YES}
    wait = cache.due_in()
    assert wait is not None
    assert wait > 0.5
    assert not cache.due()
    other.execute("ROLLBACK")
    other.close()
    cache.commit()
    assert cache.due_in() is None
    assert find(cache, 1) == {1: YES}
    assert cache.notices() == ()


def test_another_programs_file_is_left_alone(tmp_path: Path) -> None:
    """An SQLite file with other tables, and a file that is none, are refused; nothing is added to or beside them."""
    foreign, text = tmp_path / "foreign.sqlite", tmp_path / "thesis.txt"
    with closing(sqlite3.connect(foreign)) as db, db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE mail (sender TEXT)")
        db.execute("INSERT INTO mail VALUES ('ada')")
    text.write_text("It was a dark and stormy night.")
    before = {each: each.read_bytes() for each in tmp_path.iterdir()}
    for path in (foreign, text):
        with pytest.raises(RunError, match=r"is not a verdict cache of merilo\. .*MERILO_CACHE"):
            VerdictCache(path)
        with pytest.raises(RunError, match="is not a verdict cache of merilo"):
            prune(path)
    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_a_cache_that_stays_locked_is_told_of(monkeypatch: pytest.MonkeyPatch, path: Path, tmp_path: Path) -> None:
    """A run that cannot write its last verdicts into the cache says so once, waits once, and has them itself."""
    monkeypatch.setattr(caches, "_LAST_WAIT_S", 0.2)
    monkeypatch.setattr(caches, "WRITE_SECONDS", 1000.0)
    VerdictCache(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        cache = VerdictCache(path)
        put(cache, YES, 1)
        told = cache.close()
        assert told == (
            f"Another process kept the verdict cache {path} locked for 0.2 s. "
            "The last verdicts are stored in the run only."
        )
        heard, out = Heard(), tmp_path / "run"
        judge = merilo.ScriptedJudge.by(verdict_for, version="1")
        run = merilo.evaluate(
            rows(2), judge=judge, metrics=["context_relevance"], storage={"cache": path}, out=out, progress=heard
        )
        assert run.metrics["context_relevance"].scored == 2
        assert heard.notes == [told]
    assert contents(path).verdicts == 0


def test_a_newer_cache_is_refused(cache: VerdictCache, path: Path) -> None:
    """A format that is not known is neither read nor set aside."""
    put(cache, YES, 1)
    cache.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(RunError, match=r"has format 99; this merilo reads format 2\. Set MERILO_CACHE"):
        VerdictCache(path)
    assert sorted(each.name for each in path.parent.iterdir()) == ["verdicts.sqlite"]


def test_the_environment_names_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """MERILO_CACHE goes before the user's cache directory."""
    monkeypatch.setenv("MERILO_CACHE", "here.sqlite")
    assert default_path() == Path("here.sqlite")
    monkeypatch.delenv("MERILO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert default_path() == tmp_path / "merilo" / "verdicts.sqlite"


def test_nothing_secret_and_no_text_is_in_the_cache(tmp_path: Path) -> None:
    """The file holds verdicts, names of judges and kinds of questions; no question, no text of the data."""
    judge = merilo.ScriptedJudge.by(verdict_for, version="1")
    merilo.evaluate(
        rows(3),
        judge=judge,
        out=tmp_path / "run",
        storage={"cache": tmp_path / "c.sqlite"},
        metrics=["context_relevance"],
    )
    data = (tmp_path / "c.sqlite").read_bytes()
    assert b"about a river" in data
    assert b"How long" not in data
    assert b"market" not in data


def test_what_a_cache_holds_is_counted_by_judge_and_kind(cache: VerdictCache, path: Path) -> None:
    """Contents say how many verdicts each judge gave on each kind, and since when."""
    assert contents(path).verdicts == 0
    put(cache, YES, 1, 2, 3)
    cache.put([(key(4), QUESTION, NO)], "judge:b", paid=False)
    cache.commit()
    found = contents(path)
    assert [(share.judge, share.kind, share.verdicts) for share in found.shares] == [
        ("judge:a", "relevance", 3),
        ("judge:b", "relevance", 1),
    ]
    assert found.verdicts == 4
    assert found.size_bytes > 0


def test_pruning_takes_what_was_named(cache: VerdictCache, path: Path) -> None:
    """Verdicts go by age, or all; the file shrinks, and who has it open goes on."""
    put(cache, YES, *range(3000))
    cache.put([(key(number), QUESTION, NO) for number in range(5000, 5010)], "judge:b", paid=False)
    cache.commit()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE verdicts SET added = 1000 WHERE key < ? OR key = ?", (key(100), key(5000)))
    assert prune(path, before=500).verdicts == 0
    old = prune(path, before=2000)
    assert (old.verdicts, old.left) == (101, 2909)
    assert find(cache, 50, 200) == {200: YES}
    put(cache, YES, 1)
    cache.commit()
    assert find(cache, 1, 200, 5001) == {1: YES, 200: YES, 5001: NO}
    everything = prune(path)
    assert everything.verdicts == 2910
    assert everything.freed_bytes > 100_000
    assert contents(path).verdicts == 0


FAITHFUL = '[{"statement": "a", "verdict": 1, "reason": "b", "simpler_statements": ["x"], "sentence_index": 0}]'


@pytest.mark.parametrize(
    ("metric", "good"),
    [("nvidia:context_relevance", "2"), ("ragas-0.1.9:faithfulness", FAITHFUL), ("trulens:context_relevance", "2")],
)
def test_a_reply_with_which_a_plan_failed_is_not_shared(
    metric: str, good: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unreadable replies are asked again by another run and by `retry_failed`, also after a kill; good ones are not."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    chosen: dict[str, Any] = {"metrics": [metric], "cache": tmp_path / "cache.sqlite", "progress": None}
    with JudgeServer() as server:
        chosen |= {"judge": "openai:m", "base_url": server.base_url}

        def failed(out: str, **more: Any) -> tuple[int, bool]:
            before = server.count
            run = merilo.evaluate(rows(3), **grouped(out=tmp_path / out, **chosen, **more))
            return run.metrics[metric].failed, server.count > before

        server.fail(says("nonsense"), share=1.0, seed=1)
        assert failed("first") == failed("killed") == (3, True)
        assert failed("first", retry_failed=True) == (3, True)
        server.behave()
        server.fail(says(good), share=1.0, seed=1)
        assert failed("first") == (3, False)  # a run keeps its answers
        assert failed("first", retry_failed=True) == (0, True)
        assert failed("other") == failed("first", retry_failed=True) == (0, False)
        (tmp_path / "killed" / "outcomes.jsonl").rename(tmp_path / "killed" / "outcomes.jsonl.part")
        assert failed("killed", retry_failed=True)[0] == 0
