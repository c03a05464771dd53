"""Carries texts to pysbd, which runs in a process of its own because it never comes to an end on some of them.

pysbd searches with regular expressions that can take hours on a run of digits; nothing within a process stops
that. So one worker is kept, is asked one text after another over its pipes, and is ended and started anew when a
text takes too long or it dies.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, cast

from merilo.errors import Permanent, ProviderDown
from merilo.judging.untyped import as_list, as_object, loaded
from merilo.providers.base import Reply, ReplyPath, Usage

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncGenerator, Mapping

    from merilo.judging.untyped import Json
    from merilo.providers.base import Connection, Request

PACKAGE = "pysbd"
TIMEOUT_S = 5.0
_START_S = 60.0
_LONGEST_LINE_BYTES = 64 * 1024 * 1024
_TRIES = 2


@dataclass(frozen=True)
class SplitterProvider:
    """pysbd for English, text left as it is. `timeout_s`: what one text may take.

    `worker`: the command of another worker that speaks as `splitter_worker` does; empty for that one.
    """

    timeout_s: float = TIMEOUT_S
    worker: tuple[str, ...] = ()
    drops_at_limit: ClassVar[bool] = True
    """A limit of the run does not wait for its replies: nothing was paid for them."""

    def fingerprint(self) -> Mapping[str, object]:
        """The version of pysbd and its settings; the time limit decides no sentence."""
        return {"provider": PACKAGE, "version": installed() or "not installed", "language": "en", "clean": False}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[Connection, None]:
        """A connection; the worker is started with the first text and ended with the connection."""
        del known
        connection = _SplitterConnection(self)
        try:
            yield connection
        finally:
            await connection.stop()

    def price_usd(self, usage: Usage) -> float | None:
        """Free."""
        del usage
        return 0.0

    @property
    def command(self) -> tuple[str, ...]:
        """How the worker is started. Without the directory of the script or the user on its path (-P)."""
        script = str(Path(__file__).with_name("splitter_worker.py"))
        return self.worker or (sys.executable, "-P", "-W", "ignore", script, str(self.timeout_s))


def installed() -> str | None:
    """The version of pysbd that is installed; None without it."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return None


class _Ended(Exception):
    """The worker died while it had a text."""


class _SplitterConnection:
    def __init__(self, provider: SplitterProvider) -> None:
        self._provider = provider
        self._turn = asyncio.Lock()
        self._process: Process | None = None

    async def send(self, request: Request) -> Reply:
        """The sentences as a JSON list. Raises Permanent for a text that takes too long, or that breaks pysbd."""
        text = request.messages[0].text
        async with self._turn:
            began = perf_counter()
            for _ in range(_TRIES):
                try:
                    pieces = _pieces(await self._ask(text), text)
                except _Ended:
                    continue
                said = json.dumps(pieces, ensure_ascii=False)
                return Reply((said,), usage=Usage(0, 0, 0), path=ReplyPath.LOCAL, seconds=perf_counter() - began)
        raise Permanent(f"The process of {PACKAGE} died {_TRIES} times while it cut {_shown(text)}.")

    def adaptations(self) -> Mapping[str, str]:
        return {}

    def notices(self) -> tuple[str, ...]:
        return ()

    async def stop(self) -> None:
        """End the worker, whatever it is doing; the next text starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()

    async def _ask(self, text: str) -> Json:
        process = await self._started()
        try:
            async with asyncio.timeout(self._provider.timeout_s):
                return await _exchange(process, json.dumps(text))
        except TimeoutError:
            await self.stop()
            raise Permanent(
                f"{PACKAGE} was stopped after {self._provider.timeout_s:g} s on {_shown(text)}: on some texts it "
                "never comes to an end."
            ) from None
        except (OSError, ValueError):
            await self.stop()
            raise _Ended from None
        except BaseException:
            await self.stop()  # it may still answer the text of a plan that is gone
            raise

    async def _started(self) -> Process:
        if self._process is not None:
            return self._process
        process = self._process = await asyncio.create_subprocess_exec(
            *self._provider.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_LONGEST_LINE_BYTES,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        try:
            async with asyncio.timeout(_START_S):
                said = await _exchange(process, None)
        except (OSError, ValueError, TimeoutError) as error:
            await self.stop()
            raise ProviderDown(f"The process of {PACKAGE} does not start ({type(error).__name__}).") from error
        except BaseException:
            await self.stop()
            raise
        if "error" in said:
            await self.stop()
            raise ProviderDown(
                f"{PACKAGE} cannot be imported ({said['error']}); install it again (pip install {PACKAGE})."
            )
        return process


async def _exchange(process: Process, line: str | None) -> Json:
    """What the worker says next, after it was sent a line or without. Raises ValueError when it says nothing."""
    stdin, stdout = cast("asyncio.StreamWriter", process.stdin), cast("asyncio.StreamReader", process.stdout)  # pipes
    if line is not None:
        stdin.write(line.encode() + b"\n")
        await stdin.drain()
    said = as_object(loaded((await stdout.readline()).decode()))
    if said is None:
        raise ValueError("The worker said something else than an object.")
    return said


def _pieces(said: Json, text: str) -> list[str]:
    pieces = as_list(said.get("texts"))
    if pieces is None:
        raise Permanent(f"{PACKAGE} broke on {_shown(text)}: {said.get('error')}.")
    return [str(piece) for piece in pieces]


def _shown(text: str) -> str:
    return f"a text of {len(text):,} characters that begins {text[:40]!r}"
