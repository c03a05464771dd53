"""After a kill at any moment a reader sees the old or the new, and the same command finishes with the same bytes."""

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from edits import printed
from killing import killed_at_each_step
from labelled_run import by_grade, contexts_rows, fill_in, judged_run

import merilo
from merilo.commands.calibrate.run import label_agreement
from merilo.commands.label.run import label_run
from merilo.errors import RunError
from merilo.runs import files
from merilo.runs.files import SEAL, create_file, part_of, staged, write_file
from merilo.runs.seal import RESULTS

RUN_FILES = (*RESULTS, SEAL)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with data, scores, a run, and labels for the run."""
    here = tmp_path_factory.mktemp("template")
    rows = contexts_rows(24)
    (here / "few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:6]), encoding="utf-8")
    scores = "".join(f"s{number},{number % 5}\n" for number in range(50))
    (here / "scores.csv").write_text(f"id,rating\n{scores}", encoding="utf-8")
    run = judged_run(here / "run", rows, ["context_relevance"])
    label_run(run, here / "first.jsonl", samples=22)
    fill_in(here / "first.jsonl", lambda _: "0")
    label_agreement(run, here / "first.jsonl", attach=True)
    label_run(run, here / "labels.jsonl", samples=23)
    fill_in(here / "labels.jsonl", by_grade)
    (here / "new.html").write_text("an older page", encoding="utf-8")
    return here


@contextlib.contextmanager
def inside(path: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


def content(path: Path) -> dict[str, bytes]:
    """The bytes of a file, or of the reproducible files of a run, by name."""
    if path.is_dir():
        return {name: (path / name).read_bytes() for name in (*RUN_FILES, "labels.jsonl") if (path / name).exists()}
    return {path.name: path.read_bytes()} if path.exists() else {}


COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "run": (("run", "few.jsonl", "--metrics", "context_relevance", "--no-cache", "--quiet", "--out", "new"), "new"),
    "run again": (
        ("run", "few.jsonl", "--metrics", "context_relevance", "--no-cache", "--retry-failed", "--out", "new"),
        "new",
    ),
    "import": (("import", "scores.csv", "--score", "rating=0..4", "--out", "new"), "new"),
    "replay": (("runs", "verify", "run", "--out", "new"), "new"),
    "label --labels": (("label", "run", "--labels", "labels.jsonl"), "run"),
    "label": (("label", "run", "--metric", "context_relevance", "-o", "new.jsonl"), "new.jsonl"),
    "page": (("report", "run", "--out", "new.html"), "new.html"),
    "tests": (
        ("gate", "run", "--min", "context_relevance=0.1", "--judge-only", "--junit", "new.xml"),
        "new.xml",
    ),
}
"""By name: a command, and what it writes."""
ALWAYS = ("run", "import", "label --labels", "page")
"""Commands of `make test`: each kind of output once, a new run, an existing one and single files."""


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in ALWAYS else pytest.mark.long) for each in COMMANDS]
)
def test_a_command_that_is_killed_finishes_when_it_is_repeated(name: str, template: Path, tmp_path: Path) -> None:
    """Killed before each of its writes: what a reader sees is old or new, and the same command gives the same bytes."""
    words, target = COMMANDS[name]
    before = content(template / target)
    if name == "run again":
        with inside(template):
            assert printed(*words)[0] == 0
        before = content(template / target)
    *killed, whole = killed_at_each_step(words, template, tmp_path / "killed")
    if name == "run again":
        remove_tree(template / target)
    expected = content(whole / target)
    assert expected
    assert len(killed) > 3
    for place in killed:
        path = place / target
        if path.is_dir() and not before:  # a run that was not there: it is whole, or no run yet
            with contextlib.suppress(RunError):
                run = merilo.Run.open(path)
                assert run.metrics
                assert len(list(run.samples)) == run.done
        elif path.is_dir():
            assert printed("show", path)[0] == (0 if SEAL in content(path) else 2)
        else:
            assert content(path) in (before, expected)
        with inside(place):
            code, _ = printed(*words)
        assert code == 0
        assert content(path) == expected
        assert not list(place.rglob("*.part"))


def test_no_part_file_is_a_link(tmp_path: Path) -> None:
    """Someone else's link beside an output leads to no other file."""
    (tmp_path / "victim").write_text("mine")
    part_of(tmp_path / "page.html").symlink_to("victim")
    with pytest.raises((OSError, RunError)):
        write_file(tmp_path / "page.html", "new")
    assert (tmp_path / "victim").read_text() == "mine"


def remove_tree(path: Path) -> None:
    for each in path.iterdir():
        each.unlink()
    path.rmdir()


def test_a_file_that_fails_to_be_written_stays(tmp_path: Path) -> None:
    """After an error inside the block the old content is there, and no part file."""
    path = tmp_path / "page.html"
    write_file(path, "old")

    def fail() -> None:
        with staged(path) as out:
            out.write(b"half of ")
            raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_part_that_another_process_writes_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer waits for the other one, and then says that the file is being written."""
    path = tmp_path / "page"
    monkeypatch.setattr(files, "_PART_WAIT_S", 0.1)
    with staged(path) as out:
        out.write(b"first")
        with pytest.raises(RunError, match="page is being written by another process"):
            write_file(path, "second")
    assert path.read_text() == "first"
    monkeypatch.setattr(files, "_PART_WAIT_S", 60.0)
    with staged(path) as out:
        later = threading.Thread(target=write_file, args=(path, "second"))
        later.start()
        time.sleep(0.05)
        out.write(b"third")
    later.join()
    assert path.read_text() == "second"


def test_a_new_file_is_never_overwritten(tmp_path: Path) -> None:
    """The same content counts as written; other content is an error and stays."""
    create_file(tmp_path / "tasks", b"tasks")
    create_file(tmp_path / "tasks", b"tasks")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "tasks", b"others")
    assert (tmp_path / "tasks").read_bytes() == b"tasks"


@pytest.mark.parametrize("write", [write_file, lambda path, text: path.write_text(text)])
def test_a_link_a_pipe_and_a_mode_stay_what_they_are(tmp_path: Path, write: Callable[[Path, str], object]) -> None:
    """A link leads to the new content, a pipe is written into, and a file keeps its permissions."""
    (tmp_path / "file").write_text("old")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    os.mkfifo(tmp_path / "pipe")
    reader = threading.Thread(target=lambda: (tmp_path / "got").write_bytes((tmp_path / "pipe").read_bytes()))
    reader.start()
    write(tmp_path / "pipe", "through")
    reader.join()
    assert (tmp_path / "got").read_text() == "through"
