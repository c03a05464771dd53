"""A damaged cache: an error of one sentence or a fresh start, but never a wrong verdict and never a bug."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from judged_rivers import canonical, rows, verdict_for
from runs.damaging import PAGE, WAYS, command, copied, garbage

import merilo
from merilo.engine import cache_file
from merilo.engine.cache import VerdictCache
from merilo.engine.cache_upkeep import contents
from merilo.errors import RunError
from merilo.judging.kinds.relevance import Relevance, RelevanceVerdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the cache lies by default."""
    path = tmp_path / "home" / "verdicts.sqlite"
    path.parent.mkdir()
    monkeypatch.setattr(cache_file, "_own_path", lambda: path)
    monkeypatch.setattr(cache_file, "_ALONE_WAIT_S", 0.1)
    return path


def aside(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir() if ".damaged-" in each.name)


def half_ruined(good: bytes) -> bytes:
    """The bytes with anything in the place of the later pages, which is not seen when the file is opened."""
    start = len(good) // PAGE // 2 * PAGE
    return good[:start] + random.Random(1).randbytes(len(good) - start)


@pytest.mark.parametrize("damage", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("at_home", [True, False])
def test_no_damage_gives_a_wrong_verdict(
    damage: Callable[[bytearray, random.Random], None], at_home: bool, good: bytes, home: Path, tmp_path: Path
) -> None:
    """Whatever became of the file, it is refused in one sentence, or serves right verdicts alone and takes new ones."""
    for seed in range(15):
        path = home if at_home else tmp_path / f"{seed}.sqlite"
        for each in home.parent.iterdir():
            each.unlink()
        copied(path, good, damage, seed)
        try:
            cache = VerdictCache(path)
        except RunError as error:
            assert "\n" not in str(error)  # noqa: PT017  opening it may go well too
            continue
        with closing(cache):
            assert cache.find(WANTED).items() <= RIGHT.items()
            kept = cache.put([(each, WANTED[each], RIGHT[each]) for each in RIGHT], "judge:a", paid=True)
            assert kept == list(RIGHT.values())
            cache.commit()
            assert cache.find(WANTED).items() <= RIGHT.items()
            assert len(cache.notices()) <= 1


def test_a_damaged_cache_of_ours_is_set_aside(good: bytes, home: Path) -> None:
    """The file is kept under another name, numbered, a new one is begun, and that is told once."""
    for number in (1, 2):
        copied(home, good, garbage, number)
        damaged = home.read_bytes()
        with closing(VerdictCache(home)) as cache:
            (told,) = cache.notices()
            assert told.endswith(f"It was renamed to verdicts.sqlite.damaged-{number}; a new one was created.")
            assert cache.find(WANTED) == {}
        assert home.with_name(f"verdicts.sqlite.damaged-{number}").read_bytes() == damaged
        assert contents(home).verdicts == 0
    assert aside(home) == ["verdicts.sqlite.damaged-1", "verdicts.sqlite.damaged-2"]


def test_damage_met_on_the_way_is_set_aside_too(good: bytes, home: Path) -> None:
    """A page that is met in the middle of a run ends nothing: what was put goes into the new file."""
    home.write_bytes(half_ruined(good))
    with closing(VerdictCache(home)) as cache:
        assert cache.notices() == ()
        assert cache.find(WANTED).items() <= RIGHT.items()
        assert len(cache.notices()) == 1
        cache.put([(each, WANTED[each], RIGHT[each]) for each in RIGHT], "judge:a", paid=True)
    assert aside(home) == ["verdicts.sqlite.damaged-1"]
    with closing(VerdictCache(home)) as later:
        assert later.find(WANTED) == RIGHT


def test_a_file_that_another_uses_is_not_moved(good: bytes, home: Path) -> None:
    """Who meets damage while another has the file open goes on without a cache, or is told at the door."""
    home.write_bytes(half_ruined(good))
    with closing(VerdictCache(home)) as cache, closing(VerdictCache(home)):
        assert cache.find(WANTED).items() <= RIGHT.items()
        (told,) = cache.notices()
        assert "another process uses it. This run continues without it." in told
        assert cache.put([(key(1), question(1), verdict(1))], "judge:a", paid=True) == [verdict(1)]
        assert cache.find(WANTED) == {}
        cache.commit()
        copied(home, good, garbage, 1)
        with pytest.raises(RunError, match=r"another process uses it\. Run without it \(--no-cache\), or try again"):
            VerdictCache(home)
    assert aside(home) == []


OPENS = """
import sys
from pathlib import Path
from merilo.engine import cache_file
from merilo.engine.cache import VerdictCache

path = Path(sys.argv[1])
cache_file._own_path = lambda: path
print("ready", flush=True)
sys.stdin.readline()
cache = VerdictCache(path)
print(len(cache.notices()))
sys.stdin.readline()
cache.close()
"""


def test_two_who_meet_the_same_damage_set_it_aside_once(good: bytes, home: Path) -> None:
    """Processes that open a damaged cache together all end up with the one new file."""
    copied(home, good, garbage, 3)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPENS, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("go\n")
    for process in processes:
        assert process.stdin is not None
        process.stdin.flush()
    told = [process.communicate("end\n", timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(told) == ["0\n", "0\n", "1\n"]
    assert aside(home) == ["verdicts.sqlite.damaged-1"]


def test_a_run_says_what_became_of_its_cache(good: bytes, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with a damaged cache has the outcomes of one without, and its progress is told of the damage once."""
    copied(home, good, garbage, 4)
    monkeypatch.setenv("MERILO_CACHE", str(home))
    judge = merilo.ScriptedJudge.by(verdict_for, version="1")
    notes: list[str] = []

    class Notes:
        def begin(self, run: Path, samples: int) -> None: ...
        def advance(self, samples: int) -> None: ...
        def end(self) -> None: ...
        def note(self, text: str) -> None:
            notes.append(text)

    out = home.parent.parent
    told = merilo.evaluate(rows(5), judge=judge, out=out / "told", progress=Notes())
    without = merilo.evaluate(rows(5), judge=judge, out=out / "without", storage={"cache": False})
    assert canonical(told) == canonical(without)
    assert [note for note in notes if "renamed to verdicts.sqlite.damaged-1" in note] == notes
    assert len(notes) == 1


def test_a_full_disk_leaves_the_run_without_a_cache(home: Path) -> None:
    """Where the cache cannot grow, whoever uses it goes on without it and is told once; what was committed stays."""
    with closing(VerdictCache(home)) as cache:
        cache.put([(key(0), question(0), verdict(0))], "judge:a", paid=True)
        cache.commit()
        assert cache._file is not None
        cache._file.db.execute("PRAGMA max_page_count = 1")  # no fewer than it has: the next page is one too many
        for _ in range(2):
            kept = cache.put([(each, WANTED[each], RIGHT[each]) for each in RIGHT], "judge:a", paid=True)
            assert kept == list(RIGHT.values())
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
