"""What an engineer on call reads in a week of traffic, with a judge behind a server."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import COMMAND, Here
from server import Asked, JudgeServer
from watching import content

from merilo.runs.database import COMMIT_ROWS, MAX_UNREAD


class Judge(JudgeServer):
    """A judge of relevance that is served by others: its model can be swapped in silence."""

    def __init__(self) -> None:
        super().__init__(self.grade)
        self.strictness = 0.0

    def grade(self, asked: Asked) -> int:
        number = int(asked.user.partition("row ")[2].split()[0])
        swapped = random.Random(number).random() < self.strictness
        return 0 if "no use" in asked.user or swapped else 2


@pytest.fixture(scope="module")
def server() -> Iterator[Judge]:
    with Judge() as found:
        yield found


@pytest.fixture
def judge(server: Judge) -> Judge:
    server.strictness = 0.0
    return server


def traffic(here: Here, first: int, count: int, good: float) -> None:
    source = random.Random(first)
    with (here.path / "traffic.jsonl").open("a") as file:
        for number in range(first, first + count):
            text = f"Text of row {number} " + ("helps." if source.random() < good else "is of no use.")
            print(json.dumps({"id": f"r{number}", "question": f"Which {number % 10}?", "contexts": [text]}), file=file)


def words_of(judge: Judge, day: int) -> list[str]:
    words = ["watch", "traffic.jsonl", "--state", "prod", "--judge", "openai:test-model", "--base-url", judge.base_url]
    words += ["--metrics", "context_relevance", "--rate", "1", "--learn", "300", "--anchors", "60", "--json"]
    return [*words, "--once", "--now", f"2026-11-{day:02}T06:00"]


def look(here: Here, judge: Judge, day: int, *more: str) -> tuple[int, dict]:
    done = here.merilo(*words_of(judge, day), *more, env={"OPENAI_API_KEY": "k"})
    assert done.returncode in {0, 1, 3, 5, 7}, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def watched(server: Judge, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A watch that has learned a reference and seen two quiet days."""
    here = Here(tmp_path_factory.mktemp("watched"))
    traffic(here, 0, 300, 0.8)
    assert look(here, server, 1)[1]["reference_units"] == 300
    for day in (2, 3):
        traffic(here, 1_000 * day, 100, 0.8)
        assert look(here, server, day)[0] == 0
    return here.path


@pytest.fixture
def quiet(watched: Path, tmp_path: Path) -> Here:
    """A copy of the watch."""
    return Here(Path(shutil.copytree(watched, tmp_path / "quiet")))


def test_a_drop_of_the_system_is_told_from_a_swap_of_the_judge(quiet: Here, judge: Judge) -> None:
    """When answers get worse the anchors are answered as before; when the judge is swapped they are not."""
    traffic(quiet, 5_000, 120, 0.2)
    code, found = look(quiet, judge, 5)
    assert (code, found["state"]) == (1, "your system changed"), found
    assert found["alarm"]["metric"] == "context_relevance"
    code, found = look(quiet, judge, 6)
    assert code == 1, "the alarm is repeated"


def test_a_swapped_judge_is_named(quiet: Here, judge: Judge) -> None:
    """The judge's answers to the anchors changed, so nothing is said about the system."""
    judge.strictness = 0.8
    traffic(quiet, 5_000, 120, 0.8)
    code, found = look(quiet, judge, 5)
    assert (code, found["state"]) == (7, "your judge changed"), found


def test_the_money_of_a_day_holds(here: Here, judge: Judge) -> None:
    """The rate is lowered to what the rows cost; a look that the limit stopped ends on later days, with new money."""
    (here.path / "prices.toml").write_text('[[price]]\nmodel = "test-model"\ninput = 100.0\noutput = 100.0\n')
    traffic(here, 0, 300, 0.8)
    paid = ("--prices", "prices.toml", "--max-cost", "5", "--no-cache")
    spent = 0.0
    for day in range(1, 6):
        code, found = look(here, judge, day, *paid)
        assert code in {3, 5}
        assert found["counts"]["cost_usd"] - spent <= 5
        spent = found["counts"]["cost_usd"]
    assert found["counts"]["judged"] > 0
    assert spent > 0


def test_a_look_that_the_limit_stopped_continues_the_next_day(quiet: Here, judge: Judge) -> None:
    """Its money of earlier days does not count again, so what the limit stopped is finished a day later."""
    (quiet.path / "prices.toml").write_text('[[price]]\nmodel = "test-model"\ninput = 100.0\noutput = 100.0\n')
    traffic(quiet, 5_000, 120, 0.8)
    codes = [look(quiet, judge, day, "--prices", "prices.toml", "--max-cost", "2")[0] for day in range(5, 11)]
    assert 5 in codes[:-1]
    assert codes[codes.index(5) + 1] != 5


def test_anchors_are_asked_anew(quiet: Here, judge: Judge, tmp_path: Path) -> None:
    """A second watch of the same traffic, with the same cache, asks its anchors again."""
    before = judge.count
    shutil.move(quiet.path / "prod", tmp_path / "first")
    assert look(quiet, judge, 4)[1]["reference_units"] == 300
    assert judge.count - before >= 6 * 60


def test_nothing_is_paid_twice(quiet: Here, judge: Judge) -> None:
    """Killed in the middle of a look, the same command asks only what was in flight or not stored again."""
    traffic(quiet, 5_000, 200, 0.8)
    before = judge.count
    environment = {**os.environ, **quiet.environment, "OPENAI_API_KEY": "k"}
    process = subprocess.Popen(
        [COMMAND, *words_of(judge, 5)], cwd=quiet.path, env=environment, stdout=subprocess.DEVNULL
    )
    while judge.count < before + 60 and process.poll() is None:
        time.sleep(0.005)
    assert process.poll() is None
    process.kill()
    process.wait()
    assert judge.count < before + 200, "it was killed before its end"
    code, found = look(quiet, judge, 5)
    assert (code, found["look"]["judged"]) == (0, 200)
    assert judge.count <= before + 200 + COMMIT_ROWS + MAX_UNREAD + 16


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("swap", "good", "code"), [(0.8, 0.8, 7), (0.0, 0.2, 1)])
def test_killed_at_random_moments(
    quiet: Here, judge: Judge, tmp_path: Path, swap: float, good: float, code: int
) -> None:
    """Of 15 looks killed in traffic, in the pass over the anchors and around the command, none loses or repeats one."""
    judge.strictness = swap
    traffic(quiet, 5_000, 120, good)
    (quiet.path / "told.py").write_text("open('told', 'a').write('x')\n")
    words = [*words_of(judge, 5), "--no-cache", "--on-alarm", f"{sys.executable} told.py"]
    environment = {**os.environ, **quiet.environment, "OPENAI_API_KEY": "k"}
    source, phases, told, killed, rounds = random.Random(code), Counter[str](), 0, 0, 0
    expected, seconds = None, 0.0
    while killed < 15:
        place = tmp_path / f"copy-{rounds}"
        shutil.copytree(quiet.path, place)
        for _ in range(3 if rounds else 0):
            process = subprocess.Popen([COMMAND, *words], cwd=place, env=environment, stdout=subprocess.DEVNULL)
            with suppress(subprocess.TimeoutExpired):
                process.wait(source.uniform(0.25, 1) * seconds)
            killed += process.poll() is None
            process.kill()
            process.wait()
            facts, (*looks, _) = content(place / "prod")
            phases[
                "alarm raised" if "alarm" in facts else next((each[1] for each in looks if each[5] is None), "before")
            ] += 1
        started = time.monotonic()
        assert (
            subprocess.run([COMMAND, *words], cwd=place, env=environment, check=False, capture_output=True).returncode
            == code
        )
        seconds = seconds or time.monotonic() - started
        facts = content(place / "prod")[0]
        expected = expected or facts["alarm"]
        assert facts["alarm"] == expected
        told += len((place / "told").read_text())
        rounds += 1
    assert {"traffic", "alarm"} <= phases.keys(), phases
    assert rounds <= told <= rounds + 1, "a kill between the end of the command and its note calls it again"
