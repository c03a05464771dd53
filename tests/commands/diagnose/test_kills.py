"""A diagnosis that is killed anywhere continues with equal bytes, and no answer that was received is asked again."""

import json
import runpy
import shutil
from pathlib import Path

import pytest
from command_line import Here

EXAMPLE = Path(__file__).parents[3] / "examples" / "diagnose_app.py"
WORDS = ("diagnose", "app.py:dying", "questions.jsonl", "--right", "app.py:judging", "--each", "4", "--out", "out")
ONE = ("--concurrency", "1", "--no-cache", "--quiet")
DYING = '''

def dying(question, contexts=None):
    """Write the call down, and die at the call whose number is in the file `die`, once."""
    import os, signal

    with open("asked.txt", "a") as file:
        file.write(json.dumps([question, contexts]) + "\\n")
    with open("asked.txt") as file:
        number = sum(1 for _ in file)
    if os.path.exists("die") and number == int(open("die").read()):
        os.remove("die")
        os.kill(os.getpid(), signal.SIGKILL)
    return answer(question, contexts)


def judging(answer, sample):
    """Judge, and die at the judgement whose number is in the file `die_judging`, once."""
    import os, signal

    judging.number = getattr(judging, "number", 0) + 1
    if os.path.exists("die_judging") and judging.number == int(open("die_judging").read()):
        os.remove("die_judging")
        os.kill(os.getpid(), signal.SIGKILL)
    return right(answer, sample)
'''


def prepared(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    (path / "app.py").write_text(EXAMPLE.read_text(encoding="utf-8") + DYING, encoding="utf-8")
    Here(path).write("questions.jsonl", runpy.run_path(str(EXAMPLE))["questions"]()[:12])
    return path


def content(path: Path) -> dict[str, bytes]:
    """Return what a diagnosis consists of: results of all runs, and the calls in any order."""
    names = ("manifest.json", "outcomes.jsonl", "summary.json")
    found = {str(each.relative_to(path)): each.read_bytes() for name in names for each in path.glob(f"**/{name}")}
    calls = sorted((path / "calls" / "answers.jsonl").read_bytes().splitlines())
    return {**found, "calls": b"\n".join(each for each in calls if each)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which the command was not killed."""
    path = prepared(tmp_path_factory.mktemp("whole"))
    done = Here(path).merilo(*WORDS, *ONE)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("at", [1, 40, 63, 90])
def test_killed_in_a_call(whole: Path, tmp_path: Path, at: int) -> None:
    """Killed by -9 while the application works, only that call is repeated."""
    path = prepared(tmp_path / "killed")
    (path / "die").write_text(str(at))
    assert Here(path).merilo(*WORDS, *ONE).returncode == -9
    assert Here(path).merilo(*WORDS, *ONE).returncode == 0
    assert content(path / "out") == content(whole / "out")
    asked = [(each / "asked.txt").read_text().splitlines() for each in (path, whole)]
    assert len(asked[0]) == len(asked[1]) + 1
    assert asked[0][at - 1] == asked[0][at], "the call in flight"


@pytest.mark.parametrize("at", [30, 80])
def test_killed_while_answers_are_judged(whole: Path, tmp_path: Path, at: int) -> None:
    """Killed between the answers and the results of a level, no answer is asked for again."""
    path = prepared(tmp_path / "killed")
    (path / "die_judging").write_text(str(at))
    assert Here(path).merilo(*WORDS, *ONE).returncode == -9
    assert Here(path).merilo(*WORDS, *ONE).returncode == 0
    assert content(path / "out") == content(whole / "out")
    assert (path / "asked.txt").read_text() == (whole / "asked.txt").read_text()


def test_a_torn_line_of_calls_is_asked_again(whole: Path, tmp_path: Path) -> None:
    """A line that was written in part does not count, and is completed."""
    path = tmp_path / "torn"
    shutil.copytree(whole, path)
    calls = path / "out" / "calls" / "answers.jsonl"
    lines = calls.read_bytes().splitlines(keepends=True)
    calls.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])
    assert Here(path).merilo(*WORDS, *ONE).returncode == 0
    found = [json.loads(each) for each in calls.read_text(encoding="utf-8").splitlines() if each.endswith("}")]
    assert len(found) == len(lines)
