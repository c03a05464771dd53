"""A forked run is to a test what a started one is."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from command_line import COMMAND, SAMPLES, Here


@pytest.mark.parametrize(
    "arguments", [["--version"], ["show", "none"], ["run", "-", "--out", "r", "--metrics", "hit_rate(k=1)"]]
)
def test_a_fork_does_what_a_start_does(tmp_path: Path, arguments: list[str]) -> None:
    """Status and both streams are equal but for the seconds, with input too."""
    given = json.dumps({**SAMPLES[0], "retrieved_context_ids": ["a", "b"], "reference_context_ids": ["a"]})
    started, forked = Here(tmp_path / "started"), Here(tmp_path / "forked")
    for here in (started, forked):
        here.path.mkdir()
    expected = subprocess.run(
        [COMMAND, *arguments],
        cwd=started.path,
        env=started.environment,
        input=given,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    found = forked.merilo(*arguments, stdin=given)
    told, wanted = (re.sub(r"[\d.]+ s\b", "", each.stdout + each.stderr) for each in (found, expected))
    assert (found.returncode, told) == (expected.returncode, wanted)


def run(folder: Path, code: str) -> str:
    """Return the output of a fork whose command runs this Python code, in the file of a metric."""
    here = Here(folder)
    (folder / "metric.py").write_text(f"import os, sys\n{code}\n", encoding="utf-8")
    here.write("data.jsonl", SAMPLES)
    return here.merilo("run", "data.jsonl", "--metrics", "metric.py:None_").stdout


def test_a_fork_keeps_nothing_for_the_next(tmp_path: Path) -> None:
    """Changes that a run makes to its memory, environment and directory do not reach later runs."""
    code = (
        "print(getattr(sys, 'left', 0), os.environ.get('LEFT'), os.getcwd(), file=sys.__stdout__)\n"
        "sys.left = 1; os.environ['LEFT'] = 'x'; os.chdir('/')"
    )
    assert {run(tmp_path, code) for _ in range(3)} == {f"0 None {tmp_path}\n"}
