"""`merilo runs cache`: where it is, what it holds, and how verdicts leave it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from command_line import SAMPLES, SCRIPT, Here


@pytest.fixture
def here(tmp_path: Path) -> Here:
    """A directory in which a run has filled a cache."""
    here = Here(tmp_path)
    here.write("data.jsonl", SAMPLES)
    here.write("script.jsonl", SCRIPT)
    done = here.merilo(
        "run", "data.jsonl", "--judge", "scripted:script.jsonl", "--metrics", "context_relevance", "--max-failed", "1"
    )
    assert done.returncode == 0, done.stderr
    return here


def age(here: Here, seconds: int, count: int) -> None:
    """Make some verdicts older."""
    with closing(sqlite3.connect(here.path / "cache.sqlite")) as db, db:
        db.execute("UPDATE verdicts SET added = added - ? WHERE rowid <= ?", (seconds, count))


def test_info_says_where_and_what(here: Here) -> None:
    """Path, size, how many verdicts, and whose on which kind of question."""
    shown = here.merilo("runs", "cache")
    assert shown.returncode == 0
    assert shown.stderr == ""
    lines = shown.stdout.splitlines()
    assert lines[0] == str(here.path / "cache.sqlite")
    assert lines[1].startswith("3 verdicts, ")
    assert lines[3].split() == ["judge", "question", "verdicts", "oldest", "newest"]
    assert lines[4].split()[:3] == ["scripted:script.jsonl", "relevance", "3"]


def verdicts(here: Here) -> str:
    """Return the amount that the command shows."""
    return here.merilo("runs", "cache").stdout.splitlines()[1].partition(",")[0]


def test_prune_by_age(here: Here) -> None:
    """Only what was stored longer ago goes, counted in hours, days or weeks."""
    age(here, 3 * 86_400, 1)
    kept = here.merilo("runs", "cache", "--older-than", "1w")
    assert kept.stdout == "Removed 0 verdicts and freed 0 bytes; 3 verdicts left.\n"
    pruned = here.merilo("runs", "cache", "--older-than", "71h")
    assert pruned.stdout == "Removed 1 verdict and freed 0 bytes; 2 verdicts left.\n"
    assert verdicts(here) == "2 verdicts"


def test_prune_all(here: Here) -> None:
    """Everything goes, and the next run asks again."""
    assert here.merilo("runs", "cache", "--all").stdout.startswith("Removed 3 verdicts")
    assert verdicts(here) == "0 verdicts"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--all", "--older-than", "3d"), "Choose --older-than AGE or --all"),
        (("--older-than", "soon"), "hours, days or weeks, such as 36h, 90d or 12w, got 'soon'"),
        (("--older-than", "-3d"), "hours, days or weeks"),
    ],
)
def test_prune_wants_to_know_what(here: Here, arguments: tuple[str, ...], message: str) -> None:
    """Nothing goes by accident."""
    refused = here.merilo("runs", "cache", *arguments)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert verdicts(here) == "3 verdicts"


def test_a_foreign_file_is_left_alone(here: Here) -> None:
    """A file that is no cache is neither read nor pruned."""
    with closing(sqlite3.connect(here.path / "mail.sqlite")) as db, db:
        db.execute("CREATE TABLE mail (sender TEXT)")
    before = (here.path / "mail.sqlite").read_bytes()
    for arguments in ((), ("--all",)):
        refused = here.merilo("runs", "cache", *arguments, env={"MERILO_CACHE": str(here.path / "mail.sqlite")})
        assert refused.returncode == 2
        assert "is not a verdict cache of merilo" in refused.stderr
    assert (here.path / "mail.sqlite").read_bytes() == before
