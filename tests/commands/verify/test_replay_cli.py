"""`merilo runs verify` with other metrics, with replies read again, and with a place for the recomputed run."""

import pytest
from command_line import METRICS, SAMPLES, SCRIPT, Here
from seals import seal_again

JUDGE = ("--judge", "scripted:script.jsonl")


@pytest.fixture
def recorded(here: Here) -> Here:
    """A directory with data.jsonl, script.jsonl, and a run in `out`."""
    here.write("data.jsonl", SAMPLES)
    here.write("script.jsonl", SCRIPT)
    options = ["--metrics", METRICS, "--out", "out", "--max-failed", "1"]
    done = here.merilo("run", "data.jsonl", *JUDGE, *options)
    assert done.returncode == 0, done.stderr
    return here


def test_a_replay_says_that_it_is_bit_equal(recorded: Here) -> None:
    """The page has the run's table, says how many outcomes are equal, and writes nothing; the status is 0."""
    before = sorted(path.name for path in recorded.path.iterdir())
    done = recorded.merilo("runs", "verify", "out", "--reread")
    assert (done.returncode, done.stderr) == (0, "")
    shown = recorded.merilo("show", "out", "--full").stdout
    assert done.stdout.split("\n\n")[1] == shown.split("\n\n")[1]  # the table
    assert "12 of 12 recomputed, all equal" in done.stdout
    assert "stored in" not in done.stdout
    assert sorted(path.name for path in recorded.path.iterdir()) == before


def test_a_difference_is_listed_and_is_the_exit_code(recorded: Here) -> None:
    """Recorded outcomes that do not follow from the recorded answers are listed with both values; the status is 1."""
    path = recorded.path / "out" / "outcomes.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace('"value":0.5', '"value":0.75'), encoding="utf-8")
    seal_again(recorded.path / "out")
    done = recorded.merilo("runs", "verify", "out", "--reread")
    assert done.returncode == 1
    assert "0.75, now 0.5" in done.stdout
    told = recorded.json("runs", "verify", "out", "--reread")["replay"]
    assert not told["same"]
    assert told["different"] == len(told["differences"]) > 0
    assert (told["differences"][0]["recorded"]["value"], told["differences"][0]["now"]["value"]) == (0.75, 0.5)
