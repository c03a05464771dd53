"""A run in progress, in a thread, that goes as far as a test lets it."""

import asyncio
import re
import threading
from pathlib import Path

from endpoints import Endpoint, Grader

import merilo
from merilo.providers.base import Request

SAMPLES = [
    {"id": str(number), "user_input": "What?", "retrieved_contexts": [f"Context of {number}."]} for number in range(8)
]


class Going:
    """A run in a thread of its own whose judge answers about the samples that are released."""

    def __init__(self, out: Path) -> None:
        self.released = 0
        self._out = out
        self._thread = threading.Thread(target=self._evaluate)
        self._thread.start()

    def _evaluate(self) -> None:
        merilo.evaluate(
            SAMPLES,
            metrics=["context_relevance"],
            judge=Grader(Endpoint(self._answer)),
            out=self._out,
            storage={"cache": False},
        )

    async def _answer(self, request: Request) -> str:
        found = re.search(r"Context of (\d)", request.messages[-1].text)
        assert found is not None
        while int(found[1]) >= self.released:  # noqa: ASYNC110  it is set in another thread
            await asyncio.sleep(0.01)
        return "2"

    def finish(self) -> None:
        """Release everything and wait for the end."""
        self.released = len(SAMPLES)
        self._thread.join()
