"""The judge that splits texts into sentences exactly as pysbd does, for published metrics that depend on it.

pysbd searches with regular expressions that can take hours on a run of digits, and nothing within a process stops them.
So one worker process splits one text after another over its pipes. It is killed and restarted if a text takes too long
or if it dies.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, cast

from merilo.errors import Permanent, ProviderDown, Temporary
from merilo.judges.base import Conversation, JudgeDefaults, OutgoingRequest
from merilo.judging.json_types import Json, as_list, as_object, loaded
from merilo.judging.kinds.measured import Sentences, TextsVerdict
from merilo.judging.questions import Pack, Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Connection, Message, Reply, ReplyPath, Request, Usage

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncGenerator, Mapping

    from merilo.judging.ask import Answer

PACKAGE = "pysbd"
TIMEOUT_S = 5.0
_START_S = 60.0
_LONGEST_LINE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class SplitterJudge(JudgeDefaults):
    """A judge that answers `Sentences` with `splitter="pysbd"`: English rules, whitespace kept, none for an empty
    text.

    `timeout_s`: the limit for one text; a text that takes longer gets a Failure. `worker`: the command of another
    worker, for tests. pysbd is a dependency of merilo; `unavailable_reason` reports an installation that lacks it.
    """

    name = PACKAGE
    answers = frozenset({Sentences})

    timeout_s: float = TIMEOUT_S
    worker: tuple[str, ...] = ()

    @property
    def unavailable_reason(self) -> str | None:
        """The reason why it cannot answer anything here, as a phrase; None if it can."""
        if self.worker or installed() is not None:
            return None
        return f"its package {PACKAGE}, a dependency of merilo, is not installed (pip install {PACKAGE})"

    def fingerprint(self) -> Mapping[str, object]:
        """Return the version of pysbd and its settings."""
        return {"judge": "splitter", "provider": dict(self._provider.fingerprint())}

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """Return the sentences of each text, with one request per text; questions for another splitter fail."""
        questions = question.questions if isinstance(question, Pack) else (question,)
        own = [each for each in questions if isinstance(each, Sentences) and each.splitter == PACKAGE]
        # pysbd runs in a worker process behind a provider, so that a text that takes too long can be stopped.
        replies = iter((yield tuple(self._send(each.text) for each in own)) if own else ())
        return tuple(_read(next(replies)) if each in own else _unknown(each) for each in questions)

    def _send(self, text: str) -> OutgoingRequest:
        return OutgoingRequest(self._provider, Request((Message("user", text),)))

    @cached_property
    def _provider(self) -> SplitterProvider:
        return SplitterProvider(self.timeout_s, self.worker)


def _read(reply: Reply | Failure) -> Answer:
    if isinstance(reply, Failure):
        return reply
    return TextsVerdict(tuple(str(piece) for piece in as_list(loaded(reply.text)) or ()))


def _unknown(question: Question[Any]) -> Failure:
    named = getattr(question, "splitter", question.kind)
    return Failure(FailureKind.PERMANENT, f"No sentence splitter {named!r}; available: {PACKAGE!r}.")


@dataclass(frozen=True)
class SplitterProvider:
    """pysbd for English, without changes to the text. `timeout_s`: the maximum time for one text.

    `worker`: the command of another worker with the protocol of `splitter_worker`; empty for that one.
    """

    timeout_s: float = TIMEOUT_S
    worker: tuple[str, ...] = ()
    drops_at_limit: ClassVar[bool] = True
    """True: a run that reaches a limit does not wait for these replies, since they cost nothing."""

    def fingerprint(self) -> Mapping[str, object]:
        """Return the version of pysbd and its settings; the time limit is omitted, since it changes no sentence."""
        return {"provider": PACKAGE, "version": installed() or "not installed", "language": "en", "clean": False}

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncGenerator[Connection, None]:
        """Open a connection; the worker is started with the first text and ended with the connection."""
        del known
        connection = _SplitterConnection(self)
        try:
            yield connection
        finally:
            await connection.stop()

    def price_usd(self, usage: Usage) -> float | None:
        """Return 0.0: it is free."""
        del usage
        return 0.0

    @property
    def command(self) -> tuple[str, ...]:
        """Command that starts the worker. `-P` keeps the directory of the script and the user off its path."""
        script = str(Path(__file__).with_name("splitter_worker.py"))
        return self.worker or (sys.executable, "-P", "-W", "ignore", script, str(self.timeout_s))


def installed() -> str | None:
    """Return the installed version of pysbd; None if it is not installed."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return None


class _SplitterConnection(Connection):
    def __init__(self, provider: SplitterProvider) -> None:
        self._provider = provider
        self._turn = asyncio.Lock()
        self._process: Process | None = None

    async def send(self, request: Request) -> Reply:
        """Return the sentences as a JSON list. Raises Permanent for a text that takes too long, or if pysbd fails.

        Raises Temporary if the worker dies: the text is sent again, to another worker.
        """
        text = request.messages[0].text
        async with self._turn:
            began = perf_counter()
            sentences = json.dumps(_pieces(await self._ask(text), text), ensure_ascii=False)
        return Reply((sentences,), usage=Usage(0, 0, 0), path=ReplyPath.LOCAL, seconds=perf_counter() - began)

    async def stop(self) -> None:
        """End the worker, whatever its state; the next text starts another."""
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
                f"{PACKAGE} was stopped after {self._provider.timeout_s:g} s on {_shown(text)}: "
                "it never finishes on some texts."
            ) from None
        except (OSError, ValueError):
            await self.stop()
            raise Temporary(f"The process of {PACKAGE} died while it split {_shown(text)}.") from None
        except BaseException:
            await self.stop()  # otherwise its late answer would be read as the answer to the next text
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
                first = await _exchange(process, None)
        except (OSError, ValueError, TimeoutError) as error:
            await self.stop()
            raise ProviderDown(f"The process of {PACKAGE} does not start ({type(error).__name__}).") from error
        except BaseException:
            await self.stop()
            raise
        if "error" in first:
            await self.stop()
            raise ProviderDown(f"{PACKAGE} cannot be imported ({first['error']}). Reinstall it: pip install {PACKAGE}.")
        return process


async def _exchange(process: Process, line: str | None) -> Json:
    """Send the worker a line, if one is given, and return its next line. Raises ValueError if it sends none."""
    stdin, stdout = cast("asyncio.StreamWriter", process.stdin), cast("asyncio.StreamReader", process.stdout)  # pipes
    if line is not None:
        stdin.write(line.encode() + b"\n")
        await stdin.drain()
    received = as_object(loaded((await stdout.readline()).decode()))
    if received is None:
        raise ValueError("The worker did not send a JSON object.")
    return received


def _pieces(received: Json, text: str) -> list[str]:
    pieces = as_list(received.get("texts"))
    if pieces is None:
        raise Permanent(f"{PACKAGE} failed on {_shown(text)}: {received.get('error')}.")
    return [str(piece) for piece in pieces]


def _shown(text: str) -> str:
    return f"a text of {len(text):,} characters that starts with {text[:40]!r}"
