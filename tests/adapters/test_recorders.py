"""The newest version of each system still writes what the recorded files hold (`make test-extras`)."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from merilo.adapters.exports import export_of

HERE = Path(__file__).parent
FILES = HERE / "files"
RECORDERS = {
    "otel": ("opentelemetry.exporter.otlp.json.file", ("openinference.otlp.jsonl", "gen_ai.otlp.jsonl")),
    "mlflow": ("mlflow.entities", ("mlflow.json",)),
    "langfuse": ("langfuse", ("langfuse.jsonl",)),
    "langsmith": ("langsmith", ("langsmith.jsonl",)),
    "inspect": ("inspect_ai", ("inspect.json",)),
    "deepeval": ("deepeval", ("deepeval.json",)),
    "promptfoo": ("", ("promptfoo.json", "promptfoo.jsonl")),
}
"""Script → the module that it needs, and the files that it writes."""


def records(path: Path) -> list[tuple[dict[str, Any] | None, dict[str, str]]]:
    """Return the records and scores of a file; a NaN equals another."""
    found = export_of(path)
    assert found is not None
    return [(item.record, {name: str(value) for name, value in item.scores.items()}) for item in found.items()]


@pytest.mark.extras
@pytest.mark.parametrize("name", RECORDERS)
def test_a_newly_recorded_file_gives_the_same_samples(name: str, tmp_path: Path) -> None:
    """The samples and scores of a file recorded now equal those of the file in the repository."""
    module, files = RECORDERS[name]
    command = [sys.executable, str(HERE / "recorders" / f"record_{name}.py")]
    if module:
        pytest.importorskip(module, reason=f"{name} is not installed here")
    else:
        if shutil.which("promptfoo") is None:
            pytest.skip("promptfoo, a package of Node.js, is not on PATH")
        command = ["sh", str(HERE / "recorders" / f"record_{name}.sh")]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    for file in files:
        assert records(tmp_path / file) == records(FILES / file)
