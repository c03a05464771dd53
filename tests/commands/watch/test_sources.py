"""Sources of a watch: what is read once, what waits, and what is refused."""

import errno
import gzip
import json
import os
import sqlite3
import subprocess
import time
import tracemalloc
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import UTC, datetime
from io import BytesIO, FileIO, TextIOWrapper
from pathlib import Path

import pytest
from command_line import COMMAND, Here
from hypothesis import given
from hypothesis import strategies as st
from watching import SETTINGS, learned, look, refused, row, write

from merilo.commands.watch import standard_input
from merilo.commands.watch.journal import Journal
from merilo.commands.watch.standard_input import StandardInput
from merilo.commands.watch.tail import Arrival, Position, Tail
from merilo.errors import DataError

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()


class Source:
    """A source that is read again and again; the ids that arrive each time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: list[Position] = []
        self.tail = self._tail(NOW)

    def _tail(self, now: float) -> Tail:
        return Tail(self.path, self.known, now, 600.0)

    def read(self, minutes: float = 0.0) -> list[str]:
        self.tail = self._tail(NOW + 60 * minutes)
        found = [each.id for each in self.tail.arrivals()]
        self.known = self.tail.positions
        return found


def lines(*ids: str) -> str:
    return "".join(json.dumps({"id": each, "question": "Why?"}) + "\n" for each in ids)


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def span(trace: str, number: int, minute: float, *, text: str = "It is so.", session: str = "") -> str:
    at = int((NOW + 60 * minute) * 1e9)
    named = {"openinference.span.kind": "CHAIN", "input.value": "Why?", "output.value": text}
    named |= {"session.id": session} if session else {}
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in named.items()]
    body = {"traceId": f"{int(trace, 36):032x}", "spanId": f"{number:016x}", "name": "ask", "attributes": attributes}
    body |= {"startTimeUnixNano": str(at - 1), "endTimeUnixNano": str(at)}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [body]}]}]}) + "\n"


def test_half_a_line_waits(tmp_path: Path) -> None:
    """A line is read once its end is there, and every line once."""
    path = tmp_path / "t.jsonl"
    whole = lines("a", "b", "c")
    source = Source(path)
    for end, expected in ((len(whole) // 2, ["a"]), (len(whole) - 1, ["b"]), (len(whole), ["c"]), (len(whole), [])):
        path.write_text(whole[:end])
        assert source.read() == expected


def test_a_rotated_file_is_read_to_its_end(tmp_path: Path) -> None:
    """Renamed, packed, or copied and truncated: the rest of the old file and the new one are read, nothing twice."""
    path = tmp_path / "t.jsonl"
    source = Source(path)
    append(path, lines("a"))
    assert source.read() == ["a"]
    append(path, lines("b"))
    path.rename(tmp_path / "t.jsonl.1")
    append(path, lines("c"))
    assert source.read() == ["b", "c"]
    append(path, lines("d"))
    packed = tmp_path / "t.jsonl.2.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.write_text(lines("e"))
    assert sorted(source.read()) == ["d", "e"]
    assert source.read() == []
    append(path, lines("f"))
    path.rename(tmp_path / "t-1.jsonl")
    append(path, lines("g"))
    path.rename(tmp_path / "t.jsonl-2")
    append(path, lines("h"))
    append(tmp_path / "t.jsonl.bak", lines("i"))
    append(tmp_path / "t2.jsonl", lines("j"))
    assert sorted(source.read()) == ["f", "g", "h"], "g was in no file that was read before"


@pytest.mark.parametrize("copied", [False, True])
def test_a_rotated_file_may_begin_like_the_one_before(tmp_path: Path, copied: bool) -> None:
    """With equal first 4 KiB, such as a long prompt, the new file is read: after a move to elsewhere, or a copy."""
    path = tmp_path / "logs" / "t.jsonl"
    path.parent.mkdir()
    head = json.dumps({"id": "head", "question": "x" * 5_000}) + "\n"
    path.write_text(head + lines("a", "b"))
    source = Source(path)
    assert source.read() == ["head", "a", "b"]
    if copied:
        (path.parent / "t.jsonl.1").write_bytes(path.read_bytes())
    else:
        path.rename(tmp_path / "old")
    path.write_text(head + lines("c", "d", "e"))
    os.utime(path, (time.time() + 5, time.time() + 5))
    assert source.read() == ["head", "c", "d", "e"]
    assert source.read() == []


def test_a_folder_is_read_with_packed_and_late_files(tmp_path: Path) -> None:
    """Files that appear later are read from their start; a packed file that is still written waits."""
    folder = tmp_path / "traces"
    folder.mkdir()
    source = Source(folder)
    append(folder / "a.jsonl", lines("a"))
    (folder / "notes.txt").write_text("no data")
    assert source.read() == ["a"]
    packed = gzip.compress("".join(lines(f"p{number}") for number in range(2_000)).encode())
    (folder / "b.jsonl.gz").write_bytes(packed[:-100])
    source.read()
    (folder / "b.jsonl.gz").write_bytes(packed)
    source.read()
    assert source.read() == []


def test_a_source_that_was_rewritten_is_refused(tmp_path: Path) -> None:
    """A change before the position would be read as if nothing had happened."""
    path = tmp_path / "t.jsonl"
    append(path, lines(*(f"r{number}" for number in range(500))))
    source = Source(path)
    source.read()
    path.write_text(path.read_text().replace("r499", "r999"))
    with pytest.raises(DataError, match="was rewritten before byte"):
        source.read()


def test_ids_may_be_any_text(tmp_path: Path) -> None:
    """Line breaks and halves of surrogate pairs are stored; rows without a usable id get one."""
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"id": id_, "question": "Why?"}) + "\n" for id_ in ("a\nb", "\ud800", "", None)))
    with Journal(tmp_path / "state") as found:
        take(found, ((each, each.id) for each in Tail(path, [], NOW, 600.0).arrivals()))
        ids = [unit for unit, _ in found.ready(NOW, 600.0)]
    assert ids[:2] == ["a\nb", "\\ud800"]
    assert len(set(ids)) == 4


def test_a_trace_waits_for_its_last_span(tmp_path: Path) -> None:
    """A trace is read once its last span is ten minutes old, also if its spans are in two files."""
    folder = tmp_path / "traces"
    folder.mkdir()
    source = Source(folder)
    append(folder / "1.jsonl", span("a", 1, 0) + span("b", 1, -30))
    assert source.read(5) == [f"{int('b', 36):032x}"]
    append(folder / "2.jsonl", span("a", 2, 6, text="More."))
    os.utime(folder / "2.jsonl", (time.time() + 5, time.time() + 5))
    assert source.read(12) == [f"{int('b', 36):032x}"], "it is read again, and known by its number of spans"
    assert [each for each in source.read(17) if each.endswith("a")] == [f"{int('a', 36):032x}"]
    assert source.read(18) == []


@pytest.fixture
def journal(tmp_path: Path) -> Iterable[Journal]:
    with Journal(tmp_path / "state") as found:
        yield found


def take(journal: Journal, arrivals: Iterable[tuple[Arrival, str]], rate: float = 1.0, now: float = NOW) -> None:
    with journal.writing():
        journal.take_in(arrivals, rate, now, 600.0)


def test_duplicates_and_late_spans_are_counted_and_not_judged(journal: Journal) -> None:
    """An id counts once; a trace that gets another span after it was read is late."""
    take(journal, [(Arrival(each, {"id": each}), each) for each in ("a", "b", "a")])
    take(journal, [(Arrival("t", {"id": "t"}, 3), "t")] * 2)
    take(journal, [(Arrival("t", {"id": "t"}, 1), "t")])
    assert journal.facts["counts"] == {"seen": 3, "duplicates": 1, "late": 1}
    assert [unit for unit, _ in journal.ready(NOW, 600.0)] == ["a", "b", "t"]


def test_a_conversation_is_judged_once_it_is_quiet(journal: Journal) -> None:
    """Its turns are one unit, which waits for ten minutes after the last turn; a turn after that is late."""
    take(journal, [(Arrival("1", {"id": "1"}), "talk"), (Arrival("1", {"id": "1"}), "talk")])
    take(journal, [(Arrival("2", {"id": "2"}), "talk")], now=NOW + 300)
    assert journal.ready(NOW + 800, 600.0) == []
    assert [unit for unit, _ in journal.ready(NOW + 900, 600.0)] == ["talk"]
    assert [each["id"] for each in journal.rows()] == ["1", "2"]
    take(journal, [(Arrival("3", {"id": "3"}), "talk")], now=NOW + 1_000)
    assert journal.facts["counts"]["late"] == 1


def test_the_choice_depends_on_salt_and_key_only(journal: Journal) -> None:
    """A higher rate chooses the same units and more, in any order."""

    @given(st.sets(st.text(max_size=20), max_size=50), st.floats(0, 1), st.floats(0, 1))
    def check(keys: set[str], low: float, high: float) -> None:
        low, high = sorted((low, high))
        places = {key: journal.position(key) for key in keys}
        assert places == {key: journal.position(key) for key in sorted(keys)}
        assert {key for key, u in places.items() if u < low} <= {key for key, u in places.items() if u < high}

    check()


def test_the_rate_is_the_fraction_of_the_chosen(journal: Journal) -> None:
    """Of 20,000 units a tenth is chosen; rows that are not chosen are stored nowhere."""
    take(journal, ((Arrival(f"r{n}", {"id": f"r{n}", "question": "secret"}), f"r{n}") for n in range(20_000)), 0.1)
    chosen = len(journal.ready(NOW, 600.0))
    assert 1_800 < chosen < 2_200
    assert sum(1 for _ in journal.rows()) == chosen
    assert journal.directory.joinpath("watch.sqlite").read_bytes().count(b"secret") == chosen


@pytest.mark.parametrize("most", [20_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_many_rows_take_constant_memory(tmp_path: Path, most: int) -> None:
    """Taking in rows needs no more memory for ten times as many."""
    peaks = []
    for count in (most // 10, most):
        path = tmp_path / f"{count}.jsonl"
        with path.open("w") as file:
            file.writelines(json.dumps(row(number, hit=True, text="x" * 200)) + "\n" for number in range(count))
        tail = Tail(path, [], NOW, 600.0)
        with Journal(tmp_path / f"state-{count}") as found:
            tracemalloc.start()
            take(found, ((each, each.id) for each in tail.arrivals()), 0.05)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 500_000, peaks


def test_folders_of_traces_are_watched(tmp_path: Path) -> None:
    """Turns of a session are one unit; results of another tool are refused."""
    here = Here(tmp_path)
    folder = tmp_path / "traces"
    folder.mkdir()
    append(folder / "1.jsonl", "".join(span(f"t{n}", n, -60, session=f"s{n // 2}") for n in range(100)))
    words = ("--metrics", "answering", "--learn", "200", "--rate", "1", "--once", "--json", "--now")
    done = here.merilo("watch", "traces", "--state", "prod", *words, "2026-11-01T12:00")
    assert json.loads(done.stdout)["counts"]["seen"] == 50
    write(here.path / "other.jsonl", 0, 1, testCases=[])
    assert "has DeepEval test run, not traffic" in refused(here, "--state", "other", source="other.jsonl")


def test_other_settings_than_before_are_refused(tmp_path: Path) -> None:
    """The source and the fields of units and slices stay; each refusal is one sentence."""
    here = Here(tmp_path)
    learned(here)
    write(here.path / "other.jsonl", 0, 30)
    assert "This watch has source ../traffic.jsonl, got ../other.jsonl" in refused(here, source="other.jsonl")
    for option in ("--by", "--cluster"):
        assert f"This watch has {option} (none), got topic" in refused(here, option, "topic")
    assert "No row has the field 'tpoic' (--by)." in refused(here, "--state", "new", "--by", "tpoic")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE facts SET facts = '{}'", "its facts were changed"),
        ("UPDATE looks SET result = '{'", "Expecting property name"),
        ("CREATE TRIGGER t AFTER INSERT ON facts BEGIN DELETE FROM looks; END", "its trigger t is not one of merilo's"),
        ("CREATE VIEW v AS SELECT * FROM facts", "its view v is not one of merilo's"),
        ("DROP TABLE looks; CREATE VIEW looks AS SELECT * FROM seen", "its view looks is not one of merilo's"),
    ],
)
def test_a_state_that_merilo_did_not_write_is_refused(tmp_path: Path, statement: str, message: str) -> None:
    """A look and the report name what is wrong with the file, in one sentence, and run nothing of it."""
    here = Here(tmp_path)
    learned(here)
    with closing(sqlite3.connect(here.path / "prod" / "watch.sqlite")) as db:
        db.executescript(statement)
    assert message in refused(here)
    done = here.merilo("report", "prod", "-o", "watch.html")
    assert done.returncode == 2
    assert message in done.stderr
    other = here.path / "new"
    other.mkdir()
    other.joinpath("looks").symlink_to(here.path / "prod", target_is_directory=True)
    assert "its folders are links" in refused(here, "--state", "new")


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """At any limit of the size of files a look says so in one sentence, and the next one judges all rows."""
    here = Here(tmp_path)
    learned(here)
    write(here.path / "traffic.jsonl", 1_000, 400)
    for most in (1_000, 150_000):
        words = [COMMAND, "watch", "traffic.jsonl", "--state", "prod", *SETTINGS, "--now", "2026-11-02T06:00"]
        done = subprocess.run(
            ["prlimit", f"--fsize={most}", *words], cwd=here.path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert look(here, 2)[1]["counts"]["judged"] == 600


@pytest.mark.parametrize("row_of", [lambda _: "{", lambda n: json.dumps({"id": f"m{n}", "question": [n]})])
def test_rows_that_cannot_be_read_are_a_problem(tmp_path: Path, row_of: Callable[[int], str]) -> None:
    """If half of the rows are no JSON or no samples, the look says so and exits with 4, not with "nothing changed"."""
    here = Here(tmp_path)
    learned(here)
    write(here.path / "traffic.jsonl", 1_000, 40)
    assert look(here, 2)[0] == 0
    write(here.path / "traffic.jsonl", 2_000, 40)
    append(here.path / "traffic.jsonl", "".join(row_of(number) + "\n" for number in range(40)))
    code, found = look(here, 3)
    assert (code, found["problem"]) == (4, "40 of 80 rows of today cannot be read, and are not judged.")


def test_standard_input_waits_for_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is written in part is taken back and written again, so none is lost and the reader goes on."""

    class Full(FileIO):
        def write(self, line: bytes) -> int:
            fails.append(0)
            if len(fails) in {2, 3}:
                super().write(line[:5])
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(line)

    fails: list[int] = []
    monkeypatch.setattr(standard_input, "_WAIT_S", 0.01)
    monkeypatch.setattr(StandardInput, "_next", lambda self: Full(self.folder / "1.jsonl", "ab"))
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(lines("a", "b", "c").encode())))
    reader = StandardInput(tmp_path / "input")
    assert reader.ended.wait(10)
    assert (tmp_path / "input" / "1.jsonl").read_text() == lines("a", "b", "c")


def test_standard_input_is_judged_until_it_ends(tmp_path: Path) -> None:
    """Lines of a pipe are taken in as they come, at its end the last look is done, and no line stays in the state."""
    here = Here(tmp_path)
    text = "".join(json.dumps(row(number, hit=True)) + "\n" for number in range(260))
    every = [each for each in SETTINGS if each != "--once"]
    for state, words in (("prod", (*every, "--every", "1h")), ("other", SETTINGS)):
        done = here.merilo("watch", "-", "--state", state, *words, stdin=text.rstrip("\n"))
        assert done.returncode == 0, done.stderr
        assert "260 judged" in done.stdout
        assert [*(here.path / state / "input").iterdir()] == []


def test_lines_of_standard_input_survive_a_kill(tmp_path: Path) -> None:
    """What a killed command has read and not judged is judged by the next one, once."""
    here = Here(tmp_path)
    text = "".join(json.dumps(row(number, hit=True)) + "\n" for number in range(250))
    words = ["watch", "-", "--state", "prod", *SETTINGS]
    with subprocess.Popen([COMMAND, *words], cwd=here.path, stdin=subprocess.PIPE) as killed:
        assert killed.stdin is not None
        killed.stdin.write(text.encode())
        killed.stdin.flush()
        folder = here.path / "prod" / "input"
        while killed.poll() is None and sum(map(os.path.getsize, folder.glob("*"))) < len(text):
            time.sleep(0.01)
        killed.kill()
    assert "251 judged" in here.merilo(*words, stdin=json.dumps(row(250, hit=True)) + "\n").stdout
