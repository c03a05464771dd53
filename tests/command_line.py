"""The installed command, run as users run it: in a process of its own, in an empty directory."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forked_commands import can_fork, run_forked

COMMAND = str(Path(sys.executable).with_name("merilo"))
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT", "COVERAGE_PROCESS_START")


@dataclass(frozen=True)
class Here:
    """A directory in which the command is run."""

    path: Path

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of the developer's own: no colours, no key, a cache of its own."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        kept["PATH"] = os.pathsep.join([str(Path(COMMAND).parent), kept.get("PATH", "")])
        return {**kept, "MERILO_CACHE": str(self.path / "cache.sqlite"), "COLUMNS": "80"}

    def merilo(
        self, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The command with these arguments, to its end."""
        environment = {**self.environment, **(env or {})}
        if can_fork(env):
            return run_forked(arguments, folder=self.path, environment=environment, stdin=stdin, timeout=180)
        return subprocess.run(
            [COMMAND, *arguments],
            cwd=self.path,
            env=environment,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=180,
        )

    def json(self, *arguments: str) -> Any:  # Any: JSON
        """What the command prints with --json; it must be one JSON value and nothing else."""
        return json.loads(self.merilo(*arguments, "--json").stdout)

    def write(self, name: str, records: Sequence[object]) -> str:
        """A JSON Lines file here; its name."""
        text = "".join(json.dumps(record) + "\n" for record in records)
        (self.path / name).write_text(text, encoding="utf-8")
        return name


SAMPLES = (
    {
        "id": "tower",
        "user_input": "When was the tower completed?",
        "retrieved_contexts": ["It stands in Paris. It was completed in 1889.", "Rome has seven hills."],
        "response": "It was completed in 1889. It is made of stone.",
    },
    {
        "id": "river",
        "user_input": "How long is the river?",
        "retrieved_contexts": ["Rivers are long."],
        "response": "It is 120 km long.",
    },
    {"id": "empty", "user_input": "Who is king?", "retrieved_contexts": [], "response": "I do not know."},
    {
        "id": "lost",
        "user_input": "What is lost?",
        "retrieved_contexts": ["Nothing is lost."],
        "response": "All is lost.",
    },
)

SCRIPT = (
    {
        "kind": "relevance",
        "match": {"user_input": {"contains": "lost"}},
        "failure": {"kind": "refused", "message": "It will not."},
    },
    {
        "kind": "relevance",
        "match": {"sentences": {"contains": "1889"}},
        "verdict": {"grade": 2, "evidence": [1], "reason": "It names the year.", "probability": 0.9},
    },
    {"kind": "relevance", "verdict": {"grade": 0, "reason": "It does not help."}},
    {"kind": "noncommittal", "match": {"response": {"contains": "do not know"}}, "verdict": {"noncommittal": True}},
    {"kind": "noncommittal", "verdict": {"noncommittal": False}},
    {
        "kind": "statements",
        "match": {"sentences": {"contains": "1889"}},
        "verdict": {
            "statements": [
                {"text": "The tower was completed in 1889.", "sentence": 0},
                {"text": "The tower is made of stone.", "sentence": 1},
            ]
        },
    },
    {"kind": "statements", "verdict": {"statements": [{"text": "The statement.", "sentence": 0}]}},
    {
        "kind": "support",
        "match": {"statement": {"contains": "1889"}},
        "verdict": {"label": "supported", "evidence": [0], "reason": "Word for word."},
    },
    {"kind": "support", "verdict": {"label": "unsupported", "tells_contradicted": False}},
)

METRICS = "context_relevance,faithfulness,context_precision"
