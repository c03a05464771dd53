"""A cascade as people type it: a plan, a run that is killed in every phase, and what it shows."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from command_line import COMMAND
from server import JudgeServer

from merilo.engine.cascade_pilot import first_ids

if TYPE_CHECKING:
    from pathlib import Path

    from command_line import Here
    from server import Asked

KEY = {"OPENAI_API_KEY": "sk-test"}
COUNT, PILOT = 240, 100
DATA = [
    {"id": f"n{n}", "user_input": f"Is {n} {'open' if n % 5 == 0 else 'known'}?", "retrieved_contexts": [f"Text {n}."]}
    for n in range(COUNT)
]
IN_PILOT = frozenset(first_ids([str(each["id"]) for each in DATA], PILOT, 0))
SCRIPT = (
    {
        "kind": "sufficiency",
        "match": {"user_input": {"contains": "known"}},
        "verdict": {"label": "sufficient", "probability": 0.96},
    },
    {"kind": "sufficiency", "verdict": {"label": "sufficient", "probability": 0.6}},
)


def number_of(asked: Asked) -> int:
    return int(asked.user.partition("Is ")[2].split()[0])


def agrees(asked: Asked) -> object:
    return "insufficient" if number_of(asked) % 5 == 0 else "sufficient"


def agrees_in_pilot(asked: Asked) -> object:
    return agrees(asked) if f"n{number_of(asked)}" in IN_PILOT else "insufficient"


def words(here: Here, server: JudgeServer) -> list[str]:
    here.write("script.jsonl", SCRIPT)
    here.write("data.jsonl", DATA)
    found = ["data.jsonl", "--metrics", "context_sufficiency", "--judge", "scripted:script.jsonl>openai:m"]
    return [*found, "--base-url", server.base_url, "--cascade-pilot", str(PILOT), "--no-cache"]


def test_from_a_plan_to_a_run(here: Here) -> None:
    """The plan gives both ends, the run measures the threshold, and show reports pilot, answers and audit."""
    with JudgeServer(agrees) as server:
        given = words(here, server)
        planned = json.loads(here.merilo("plan", *given, "--json").stdout)
        assert planned["typical"]["requests"] == COUNT
        assert planned["cascades"]["scripted:script.jsonl>openai:m"] == {
            "questions": COUNT,
            "pilot": PILOT,
            "audited": 50,
            "fewest": PILOT + 50,
        }
        page = " ".join(here.merilo("plan", *given).stdout.split())
        assert "150 to 240 of 240 questions reach openai:m" in page
        done = here.merilo("run", *given, "--out", "out", "--full", env=KEY)
        assert done.returncode == 0, done.stderr
        assert server.count < COUNT
    shown = here.json("show", "out")["cascades"][0]
    kind = shown["kinds"]["sufficiency"]
    assert kind["answered"] == {"scripted:script.jsonl": COUNT * 4 // 5, "openai:m": COUNT // 5}
    assert [each["threshold"] for each in kind["pilot"]["classes"]] == [0.96, None]
    assert (kind["audit"]["asked"], kind["audit"]["failed"]) == (50, False)
    shown_page = " ".join(done.stdout.split())
    assert f"pilot of {PILOT} questions: scripted:script.jsonl yes from 0.96 (0 of " in shown_page
    assert "Agreement with that judge is not agreement with human labels." in shown_page


@pytest.mark.parametrize("lucky", [False, True])
def test_kills_in_every_phase(here: Here, tmp_path: Path, *, lucky: bool) -> None:
    """Killed again and again, through pilot, main pass, audit and second pass, the run ends with the same bytes."""
    with JudgeServer(agrees_in_pilot if lucky else agrees, delay_s=0.002) as server:
        given = [*words(here, server), "--quiet", "--concurrency", "4"]
        assert here.merilo("run", *given, "--out", "whole", env=KEY).returncode == 0
        needed = set(server.sent)
        server.sent.clear()
        assert len(needed) == COUNT if lucky else len(needed) < COUNT
        kills = 0
        while True:
            process = subprocess.Popen(
                [COMMAND, "run", *given, "--out", "killed"], cwd=here.path, env=here.environment | KEY
            )
            enough = len(server.sent) + 75
            while len(server.sent) < enough and process.poll() is None:
                time.sleep(0.001)
            if process.poll() is not None:
                break
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
        assert process.returncode == 0
        assert kills >= 2
        assert set(server.sent) == needed
        assert len(server.sent) - len(needed) <= kills * (4 + 50)
    for name in ("manifest.json", "outcomes.jsonl", "summary.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_usage_errors(here: Here) -> None:
    """An option without a cascade, and a pilot that can show nothing, give one sentence and status 2."""
    here.write("data.jsonl", DATA)
    done = here.merilo("run", "data.jsonl", "--max-error", "1%")
    assert done.returncode == 2
    assert "are options of a cascade" in done.stderr
    done = here.merilo("run", "data.jsonl", "--judge", "embedded>openai:m", "--cascade-pilot", "50", env=KEY)
    assert done.returncode == 2
    assert "at least 72" in done.stderr
    done = here.merilo("judge", "test", "embedded>openai:m", env=KEY)
    assert done.returncode == 2
    assert "Test each of its judges separately" in done.stderr
