"""A watch that is killed anywhere continues with equal bytes, and loses or repeats no alarm."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import Here
from killing import killed_at_each_step
from watching import SETTINGS, content, learned, look, runs, write

from merilo.cli import outcome
from merilo.commands.watch.journal import Journal

DAY_2 = ("watch", "traffic.jsonl", "--state", "prod", *SETTINGS, "--now", "2026-11-02T06:00", "--no-cache")


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A directory with a learned reference and a day of new, worse traffic."""
    here = Here(tmp_path / "template")
    here.path.mkdir()
    learned(here)
    write(here.path / "traffic.jsonl", 1_000, 120, 0.3)
    return here.path


def test_killed_before_each_write_of_a_look(tmp_path: Path) -> None:
    """Wherever the look is killed, the same command gives the same runs, evidence and journal."""
    template = Here(tmp_path / "template")
    template.path.mkdir()
    learned(template)
    write(template.path / "traffic.jsonl", 1_000, 40)
    *killed, whole = killed_at_each_step(DAY_2, template.path, tmp_path / "copies")
    assert len(killed) > 5
    for each in killed[:: max(1, len(killed) // 6)]:
        assert Here(each).merilo(*DAY_2).returncode in {0, 3}, "3: the look was finished before"
        assert (content(each / "prod"), runs(each / "prod")) == (content(whole / "prod"), runs(whole / "prod"))


@pytest.mark.parametrize("committed", [False, True])
def test_killed_at_each_commit_of_the_state(
    begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    """Killed just before or just after any commit, the same command ends with the same alarm, once."""
    commit = Journal.writing
    left = 0

    @contextmanager
    def dies(journal: Journal) -> Iterator[dict]:
        nonlocal left
        with commit(journal) as facts:
            yield facts
            if not committed and left == 0:
                raise Killed
            left -= 1
        if committed and left == -1:
            raise Killed

    expected = None
    for step in range(20):
        place = tmp_path / f"{committed}-{step}"
        shutil.copytree(begun, place)
        monkeypatch.chdir(place)
        left = step
        with monkeypatch.context() as patched:
            patched.setattr(Journal, "writing", dies)
            code = outcome(DAY_2)
        if code == 1:  # it was not killed
            assert step > 2
            expected = content(place / "prod"), runs(place / "prod")
            break
        assert code == 70
    for each in range(step):
        monkeypatch.chdir(tmp_path / f"{committed}-{each}")
        assert outcome(DAY_2) == 1
        assert (content(Path("prod")), runs(Path("prod"))) == expected, each


def test_two_processes_do_not_share_a_state(begun: Path) -> None:
    """A second command on the same state is refused while the first one works."""
    with Journal(begun / "prod"):
        done = Here(begun).merilo(*DAY_2)
    assert done.returncode == 2
    assert "is being written by another process" in done.stderr


def test_a_clock_that_went_back_is_repaired(begun: Path) -> None:
    """After a look with a wrong clock, a message says so, days go on from the right time, and budgets begin anew."""
    here = Here(begun)
    look(here, 25)
    code, found = look(here, 2)
    assert (code, found["at"]) == (1, "2026-11-02T06:00:00Z")
    facts, (*looks, _) = content(begun / "prod")
    assert facts["now"] == facts["evidence"]["started"] == max(each[2] for each in looks)
    assert facts["day"] == facts["now"] // 86_400
    words = ("watch", "traffic.jsonl", "--state", "prod", *SETTINGS, "--now", "2026-11-01T06:00")
    assert "The clock is 86,400 s behind the last look." in here.merilo(*words).stderr
