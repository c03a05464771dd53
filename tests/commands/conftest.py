"""Places in which the installed command is run."""

from pathlib import Path

import pytest
from command_line import METRICS, SAMPLES, SCRIPT, Here


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


@pytest.fixture
def run(here: Here) -> Here:
    """A directory with data.jsonl, script.jsonl and a finished run of them in `out`; some outcomes failed."""
    here.write("data.jsonl", SAMPLES)
    here.write("script.jsonl", SCRIPT)
    done = here.merilo(
        "run",
        "data.jsonl",
        "--judge",
        "scripted:script.jsonl",
        "--metrics",
        METRICS,
        "--out",
        "out",
        "--max-failed",
        "1",
    )
    assert done.returncode == 0, done.stderr
    return here
