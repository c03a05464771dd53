"""Outputs of a pipeline, kept in a JSON Lines file so that a repeated call asks the pipeline nothing twice.

The key of an output is a digest of the version that the user gave the pipeline, and of the question. A line that a
killed process left incomplete is skipped.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from merilo.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class PipelineOutput:
    """The fields of a sample that a pipeline returned, or the message of its error."""

    fields: Mapping[str, Any]  # Any: JSON
    error: str | None = None


def output_key(version: str | None, question: str) -> str:
    """Return the key of the output of one version for one question."""
    return hashlib.blake2b(json.dumps([version, question]).encode(), digest_size=16).hexdigest()


class PipelineOutputs:
    """The known outputs. `path`: the file that holds them; None: they are kept in memory only.

    `errors`: also return outputs that are errors. Raises RunError if the file cannot be read or written.
    """

    def __init__(self, path: Path | None, *, errors: bool) -> None:
        self._path = path
        self._known: dict[str, PipelineOutput] = {}
        self._torn = False
        if path is not None and path.exists():
            for line in self._lines(path):
                self._read(line, errors=errors)

    def get(self, key: str) -> PipelineOutput | None:
        """Return the output with this key; None if it is unknown."""
        return self._known.get(key)

    def add(self, key: str, output: PipelineOutput) -> None:
        """Store an output. It is in the file when this returns."""
        self._known[key] = output
        if self._path is None:
            return
        record = {"key": key, "fields": output.fields} if output.error is None else {"key": key, "error": output.error}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(("\n" if self._torn else "") + json.dumps(record, ensure_ascii=False) + "\n")
        except OSError as error:
            raise RunError(f"Cannot write the outputs of the pipeline to {self._path} ({error}).") from error
        self._torn = False

    def _lines(self, path: Path) -> list[str]:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise RunError(f"Cannot read the outputs of the pipeline in {path} ({error}).") from error
        self._torn = bool(text) and not text.endswith("\n")
        return text.split("\n")

    def _read(self, line: str, *, errors: bool) -> None:
        try:
            record = json.loads(line)
            key, error = record["key"], record.get("error")
            output = PipelineOutput(record.get("fields", {}), error)
        except (ValueError, KeyError, TypeError, AttributeError):
            return
        if error is None or errors:
            self._known[key] = output
