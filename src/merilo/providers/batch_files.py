"""Batches as files: requests in OpenAI's format for `vllm run-batch` or any other program, and its outputs.

A batch is `MARK.requests.jsonl`; its results are expected as `MARK.output.jsonl` in the same directory.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from merilo.errors import ProviderDown
from merilo.providers.openai_batches import read_results, request_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from merilo.providers.batch_api import BatchLine, Intent, LineResult


class BatchFiles:
    """Batches in a directory. All methods raise OSError if it cannot be used."""

    max_lines = 10_000
    max_bytes = 64 * 1024 * 1024

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def submit(self, mark: str, lines: Sequence[BatchLine]) -> str:
        """See `BatchApi`. The file appears under its name when it is complete."""
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._requests(mark)
        part = path.with_suffix(".part")
        with part.open("wb") as out:
            out.write(request_lines(lines))
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)
        return mark

    async def find(self, intent: Intent) -> str | None:
        """See `BatchApi`."""
        return intent.mark if self._requests(intent.mark).exists() else None

    async def ended(self, batch: str) -> bool:
        """See `BatchApi`. A file without a final newline is still being written."""
        path = self._output(batch)
        if not path.exists() and not self._requests(batch).exists():
            raise ProviderDown(
                f"{self._requests(batch)} and its output are missing. Put them back, or use another run."
            )
        return path.exists() and _complete(path)

    async def results(self, batch: str, ids: Sequence[str]) -> list[LineResult]:
        """See `BatchApi`."""
        path = self._output(batch)
        found = read_results(path.read_text(encoding="utf-8", errors="replace"), what=str(path))
        if found and {each.id for each in found}.isdisjoint(ids):  # otherwise all would be paid for again
            raise ProviderDown(
                f"{path} has the results of other requests: no custom_id is one of {self._requests(batch).name}. "
                "Replace it by the results of these requests."
            )
        return found

    def _requests(self, mark: str) -> Path:
        return self._directory / f"{mark}.requests.jsonl"

    def _output(self, mark: str) -> Path:
        return self._directory / f"{mark}.output.jsonl"


def _complete(path: Path) -> bool:
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
