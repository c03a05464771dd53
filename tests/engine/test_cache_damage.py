"""A damaged cache: an error of one sentence or a run without it, but never a wrong verdict and never a bug."""

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from judged_rivers import rows, verdict_for
from runs.damaging import PAGE, WAYS, command, copied, garbage

import merilo
from merilo.engine.cache import VerdictCache
from merilo.errors import RunError
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import Verdict

COUNT = 300


def key(number: int) -> bytes:
    return random.Random(number).randbytes(16)


def question(number: int) -> Relevance:
    return Relevance(f"q {number}", (f"One {number}.", "Two."))


def verdict(number: int) -> RelevanceVerdict:
    grade = number % 3
    return RelevanceVerdict(grade, (1,) if grade else (), f"reason {number} " * 4)


WANTED: dict[bytes, Question[Any]] = {key(number): question(number) for number in range(COUNT)}
RIGHT: dict[bytes, Verdict] = {key(number): verdict(number) for number in range(COUNT)}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a sound cache."""
    path = tmp_path_factory.mktemp("cache") / "verdicts.sqlite"
    with closing(VerdictCache(path)) as cache:
        cache.put([(each, WANTED[each], RIGHT[each]) for each in RIGHT], "judge:a", paid=True)
    return path.read_bytes()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The place of a cache."""
    path = tmp_path / "home" / "verdicts.sqlite"
    path.parent.mkdir()
    return path


def half_ruined(good: bytes) -> bytes:
    """The bytes with anything in the place of the later pages, which is not seen when the file is opened."""
    start = len(good) // PAGE // 2 * PAGE
    return good[:start] + random.Random(1).randbytes(len(good) - start)


@pytest.mark.parametrize("damage", WAYS, ids=lambda way: way.__name__)
def test_no_damage_gives_a_wrong_verdict(
    damage: Callable[[bytearray, random.Random], None], good: bytes, tmp_path: Path
) -> None:
    """Whatever became of the file, it is refused in one sentence, or serves right verdicts alone and takes new ones."""
    for seed in range(15):
        path = tmp_path / f"{seed}.sqlite"
        copied(path, good, damage, seed)
        try:
            cache = VerdictCache(path)
        except RunError as error:
            assert "\n" not in str(error)  # noqa: PT017  opening it may go well too
            continue
        with closing(cache):
            assert cache.find(WANTED).items() <= RIGHT.items()
            cache.put([(each, WANTED[each], RIGHT[each]) for each in RIGHT], "judge:a", paid=True)
            cache.commit()
            assert cache.find(WANTED).items() <= RIGHT.items()
            assert len(cache.notices()) <= 1


def test_damage_met_on_the_way_ends_no_run(good: bytes, home: Path) -> None:
    """A page that is met in the middle of a run leaves the run without a cache, which is told once."""
    home.write_bytes(half_ruined(good))
    with closing(VerdictCache(home)) as cache:
        assert cache.notices() == ()
        assert cache.find(WANTED).items() <= RIGHT.items()
        cache.put([(each, WANTED[each], RIGHT[each]) for each in RIGHT], "judge:a", paid=True)
        cache.commit()
        (told,) = cache.notices()
        assert told.endswith("This run continues without it. Delete it after this run.")


def test_a_damaged_cache_is_refused_by_a_run(good: bytes, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run does not start with a cache that is damaged from its beginning; the message says what to do."""
    copied(home, good, garbage, 4)
    monkeypatch.setenv("MERILO_CACHE", str(home))
    judge = merilo.ScriptedJudge.by(verdict_for, version="1")
    with pytest.raises(RunError, match=r"--no-cache"):
        merilo.evaluate(rows(5), judge=judge, out=home.parent.parent / "told")
    home.unlink()
    assert merilo.evaluate(rows(5), judge=judge, out=home.parent.parent / "told").complete


def test_a_full_disk_leaves_the_run_without_a_cache(home: Path) -> None:
    """Where the cache cannot grow, whoever uses it goes on without it and is told once; what was committed stays."""
    with closing(VerdictCache(home)) as cache:
        cache.put([(key(0), question(0), verdict(0))], "judge:a", paid=True)
        cache.commit()
        assert cache._file is not None
        cache._file.db.execute("PRAGMA max_page_count = 1")  # no fewer than it has: the next page is one too many
        for _ in range(2):
            cache.put([(each, WANTED[each], RIGHT[each]) for each in RIGHT], "judge:a", paid=True)
            cache.commit()
        (told,) = cache.notices()
        assert told.endswith("cannot be written (database or disk is full). This run continues without it.")
    with closing(VerdictCache(home)) as later:
        assert later.find(WANTED) == {key(0): verdict(0)}


def test_a_cache_that_may_not_be_written_is_one_sentence(home: Path) -> None:
    """A cache in a read-only directory is refused with what to do; status 2."""
    data = home.parent.parent / "data.jsonl"
    data.write_text('{"user_input": "When was it built?", "retrieved_contexts": ["It was built in 1889."]}\n')
    home.parent.chmod(0o555)
    run = ("run", data, "--metrics", "context_relevance", "--out", home.parent.parent / "run")
    for arguments in (run, ("runs", "cache", "--all")):
        if arguments[0] == "runs":
            home.parent.chmod(0o755)
            VerdictCache(home).close()
            home.parent.chmod(0o555)
            home.chmod(0o444)
        done = command(*arguments, obeying=True, MERILO_CACHE=str(home))
        assert done.returncode == 2, done.stderr
        assert f"The verdict cache {home} cannot be used" in done.stderr
        assert "MERILO_CACHE" in done.stderr
    home.parent.chmod(0o755)
