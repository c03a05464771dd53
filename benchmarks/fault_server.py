"""A judge with configurable rates of faults, in its own process, that counts its requests.

    python benchmarks/fault_server.py --fault reset=0.05 --fault malformed=0.05

Each conversation is identified by the digest of its first question, and each of its requests is an attempt. The fault
of an attempt depends only on seed, digest and number of the attempt, and not on the order of arrival or the clock.
Right verdicts follow from the digest. A GET returns the tally.

Over 200 lines: every fault is in this file, together with the answer of a correct judge.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import socket
import struct
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

from judge_server import completion, framed, serve, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

REASKS = 2
"""The default of an LLM judge."""
ENLARGEMENTS = 2
"""Maximum requests with a larger limit after a truncated reply."""
RETRY_AFTER_MS = 50
"""The wait that a 429 names, unless the server is started with another."""
STATEMENTS = 3
_LABELS = ("supported", "contradicted", "not_stated")
_STATEMENT = re.compile(r"^<<<statement(?: \d+)? ", re.MULTILINE)
_UNREADABLE = (
    '{"reason": "It names the ye',
    '{"reason": "It names the year.", "grade": ',
    "I would say that it is quite relevant.",
    "...",  # not empty: a reply without any token is an error of the server, and the same request is sent again
)
_OTHER_SCHEMA = (
    '{"score": 5, "explanation": "fine"}',
    '{"reason": "fine", "grade": "high", "label": "yes", "evidence": [1]}',
    '{"reason": "fine", "grade": 7, "label": 7, "evidence": [1], "statements": 7}',
)


@dataclass
class Tally:
    """Counts of the server's requests."""

    requests: int = 0
    conversations: int = 0
    distinct: int = 0
    """The number of different bodies."""
    struck: dict[str, int] = field(default_factory=dict)
    """Fault → number of times."""
    lost: int = 0
    """Conversations that must end in a failure: as many bad replies in a row as the judge accepts."""
    too_early: int = 0
    """Requests that were repeated before the time given in a 429."""


@dataclass(frozen=True)
class Asked:
    """The content of one request."""

    name: str
    """The name of the schema."""
    digest: bytes
    statements: int
    tokens: int
    limit: int | None
    """Maximum tokens of the reply."""

    @property
    def number(self) -> int:
        """A number that follows from the question."""
        return self.digest[0]


def _asked(body: bytes) -> Asked:
    told = json.loads(body)
    texts = [message["content"] for message in told["messages"][:2]]
    name = told.get("response_format", {}).get("json_schema", {}).get("name", "")
    digest = blake2b("\0".join([name, *texts]).encode(), digest_size=16).digest()
    limit = told.get("max_completion_tokens") or told.get("max_tokens")
    return Asked(name, digest, len(_STATEMENT.findall(texts[-1])), len(body) // 4, limit)


def _verdict(asked: Asked) -> dict[str, Any]:
    number = asked.number
    if asked.name == "relevance":
        return {"reason": f"By {number}.", "grade": number % 3, "evidence": [1] if number % 3 else []}
    if asked.name in {"statements", "texts"}:
        texts = [f"Statement {n} of {asked.digest.hex()} stands alone." for n in range(STATEMENTS)]
        listed: dict[str, Any] = {"statements": [{"sentence": 1, "text": text} for text in texts]}
        return listed if asked.name == "statements" else {"verdicts": [{"number": 1, **listed}]}
    if asked.name == "support_together":
        return {"verdicts": [_support(n, _LABELS[asked.digest[n % 16] % 3]) for n in range(1, asked.statements + 1)]}
    raise ValueError(f"no verdict for the schema {asked.name!r}")


def _support(number: int, label: str) -> dict[str, Any]:
    sentences = [] if label == "not_stated" else [1]
    return {"number": number, "reason": f"By {number}.", "label": label, "sentences": sentences}


# ------------------------------------------------------------------------------------------------ faults


def _reset(_: Asked, transport: asyncio.Transport) -> None:
    stream = transport.get_extra_info("socket")
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _hang(_: Asked, transport: asyncio.Transport) -> None:
    """Do not answer at all; the client must time out."""


def _status_500(_: Asked, transport: asyncio.Transport) -> None:
    body = b'{"error": {"message": "The server had an error.", "type": "server_error"}}'
    transport.write(framed(body, status="500 Internal Server Error"))


def _too_many(transport: asyncio.Transport, wait_ms: int) -> None:
    body = b'{"error": {"message": "Too many requests.", "type": "rate_limit_error"}}'
    waits = "" if not wait_ms else f"Retry-After: {-(-wait_ms // 1000)}\r\nretry-after-ms: {wait_ms}\r\n"
    transport.write(framed(body, status="429 Too Many Requests", headers=waits))


def _says(text: Callable[[Asked], str], *, finish: str = "stop") -> Callable[[Asked, asyncio.Transport], None]:
    def give(asked: Asked, transport: asyncio.Transport) -> None:
        out = asked.limit if finish == "length" else None
        transport.write(framed(completion(text(asked), tokens_in=asked.tokens, tokens_out=out, finish=finish)))

    return give


def _refused(asked: Asked, transport: asyncio.Transport) -> None:
    """Refuse in one of the two possible ways."""
    filtered = asked.number % 2 == 0
    refusal = None if filtered else "I cannot help with that."
    finish = "content_filter" if filtered else "stop"
    transport.write(framed(completion("", tokens_in=asked.tokens, finish=finish, refusal=refusal)))


def _damaged(asked: Asked) -> str:
    """Return JSON in single quotation marks with a superfluous comma."""
    return json.dumps(_verdict(asked)).replace('"', "'")[:-1] + ",}"


def _self_contradicting(asked: Asked) -> str:
    """Return the right decision with evidence if it must have none, or without."""
    verdict = _verdict(asked)
    for each in verdict.get("verdicts", [verdict]):
        name = "sentences" if "label" in each else "evidence"
        each[name] = [] if each[name] else [1]
    return json.dumps(verdict)


def _without_one(asked: Asked) -> str:
    verdict = _verdict(asked)
    del verdict["verdicts"][asked.number % asked.statements]
    return json.dumps(verdict)


FAULTS: Mapping[str, Callable[[Asked, asyncio.Transport], None]] = {
    "500": _status_500,
    "429": lambda _, transport: _too_many(transport, RETRY_AFTER_MS),
    "reset": _reset,
    "hang": _hang,
    "damaged": _says(_damaged),
    "malformed": _says(lambda asked: _UNREADABLE[asked.number % len(_UNREADABLE)]),
    "truncated": _says(lambda asked: json.dumps(_verdict(asked))[:-20], finish="length"),
    "schema": _says(lambda asked: _OTHER_SCHEMA[asked.number % len(_OTHER_SCHEMA)]),
    "missing": _says(_without_one),
    "contradiction": _says(_self_contradicting),
    "refusal": _refused,
}
TRANSPORT = ("500", "429", "reset", "hang")
"""Faults that are retried until the request is answered."""
_ONLY_FOR = {"missing": {"support_together"}, "contradiction": {"relevance", "support_together"}}
_HARMLESS = {*TRANSPORT, "damaged"}


def _is_lost(attempts: list[str], *, rating: bool) -> bool:
    """Return True if a judge must give up after these attempts ("" is a right answer).

    A decision that contradicts its evidence stands if nothing better comes. A truncated rating is re-asked.
    """
    bad = cut = 0
    for fault in attempts:
        if fault in TRANSPORT:
            continue
        if fault == "truncated" and not rating:
            cut += 1
        elif fault in {"", "damaged"}:
            return False
        else:
            bad, cut = bad + 1, 0
        if fault == "refusal":
            return True
        if bad > REASKS or cut > ENLARGEMENTS:
            return "contradiction" not in attempts
    return False


# ---------------------------------------------------------------------------------------------- serving


@dataclass(frozen=True)
class Load:
    """The time that a reply takes, and the requests that the server accepts; above that it answers 429 at once."""

    latency_s: float = 0.0
    at_once: float = math.inf
    per_second: float = math.inf
    """The rate, and the number of requests that may come at once after a break."""
    retry_after_ms: int = RETRY_AFTER_MS
    """0: a 429 names no wait."""
    at_full_speed: float = math.inf
    """Above this number of requests at once each takes longer, so much that fewer are answered per second."""


class Judge:
    """A server's logic that answers requests, or fails as configured."""

    def __init__(
        self, faults: Mapping[str, float], load: Load, *, seed: int, first_only: bool, stubborn: float
    ) -> None:
        """Set up the faults. `stubborn`: the fraction of conversations that never get a readable reply."""
        self._faults = faults
        self._load = load
        self._seed = seed
        self._first_only = first_only
        self._stubborn = stubborn
        self._at_work = 0
        self._left, self._counted_at = load.per_second, time.monotonic()
        self._attempts: dict[bytes, list[str]] = defaultdict(list)
        self._bodies: set[bytes] = set()
        self._struck = Counter[str]()
        self._lost: set[bytes] = set()
        self._requests = self._too_early = 0
        self._not_before: dict[bytes, float] = {}

    def respond(self, body: bytes, transport: asyncio.Transport) -> None:
        """Send the answer to one request, or a fault."""
        if not body:
            transport.write(framed(json.dumps(asdict(self.tally())).encode()))
            return
        self._requests += 1
        self._bodies.add(blake2b(body, digest_size=16).digest())
        asked = _asked(body)
        self._too_early += time.monotonic() < self._not_before.get(asked.digest, 0.0)
        attempts = self._attempts[asked.digest]
        fault = "429" if self._full() else self._fault(asked, len(attempts))
        attempts.append(fault)
        if fault and _is_lost(attempts, rating=asked.name == "relevance"):
            self._lost.add(asked.digest)
        if fault:
            self._struck[fault] += 1
        if fault == "429":
            self._not_before[asked.digest] = time.monotonic() + self._load.retry_after_ms / 1000
            _too_many(transport, self._load.retry_after_ms)
        else:
            self._at_work += 1
            seconds = self._load.latency_s * max(1.0, self._at_work / self._load.at_full_speed) ** 1.2
            asyncio.get_running_loop().call_later(seconds, self._answer, asked, fault, transport)

    def _full(self) -> bool:
        """Return True if the server refuses one more request now; otherwise count it for the rate."""
        now, rate = time.monotonic(), self._load.per_second
        self._left = min(rate, self._left + (now - self._counted_at) * rate)
        self._counted_at = now
        if self._at_work >= self._load.at_once or self._left < 1:
            return True
        self._left -= 1
        return False

    def _answer(self, asked: Asked, fault: str, transport: asyncio.Transport) -> None:
        self._at_work -= 1
        if transport.is_closing():
            return
        if fault:
            FAULTS[fault](asked, transport)
        else:
            transport.write(framed(completion(json.dumps(_verdict(asked)), tokens_in=asked.tokens)))

    def tally(self) -> Tally:
        """Return the counts so far."""
        distinct, lost = len(self._bodies), len(self._lost)
        return Tally(self._requests, len(self._attempts), distinct, dict(self._struck), lost, self._too_early)

    def _fault(self, asked: Asked, attempt: int) -> str:
        if self._stubborn and self._drawn(asked.digest, -1) < self._stubborn:
            return "malformed"
        if attempt and self._first_only:
            return ""
        drawn = self._drawn(asked.digest, attempt)
        for name, share in self._faults.items():
            if asked.name not in _ONLY_FOR.get(name, {asked.name}):
                continue
            if drawn < share:
                return name
            drawn -= share
        return ""

    def _drawn(self, digest: bytes, attempt: int) -> float:
        told = digest + self._seed.to_bytes(4, "little") + attempt.to_bytes(4, "little", signed=True)
        return int.from_bytes(blake2b(told, digest_size=8).digest(), "little") / 2**64


@contextmanager
def fault_server(
    faults: Mapping[str, float] | None = None,
    *,
    seed: int = 0,
    first_only: bool = False,
    stubborn: float = 0.0,
    load: Load = Load(),
    port: int = 0,
) -> Iterator[str]:
    """Yield the base URL of a judge with these rates of faults. `port` 0: any free port."""
    arguments = [f"--fault={name}={share}" for name, share in (faults or {}).items()]
    arguments += [f"--seed={seed}", f"--stubborn={stubborn}", f"--port={port}"]
    arguments += [f"--{name.replace('_', '-')}={value}" for name, value in asdict(load).items()]
    with serving("fault_server.py", [*arguments, *(["--first-only"] if first_only else [])]) as address:
        yield address


def tally_of(address: str) -> Tally:
    """Return the counts of the server at this address."""
    with urlopen(address, timeout=30) as told:  # noqa: S310  our own server
        return Tally(**json.load(told))


def main() -> None:
    """Serve until standard input is closed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", action="append", default=[], metavar="NAME=SHARE", help=", ".join(FAULTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first-only", action="store_true", help="only the first attempt of a conversation is struck")
    parser.add_argument("--stubborn", type=float, default=0.0, help="share of conversations never answered readably")
    for each in fields(Load):
        kind = type(each.default)
        parser.add_argument(f"--{each.name.replace('_', '-')}", type=kind, default=each.default, help="see Load")
    parser.add_argument("--port", type=int, default=0, help="any that is free, if not given")
    chosen = parser.parse_args()
    faults = {name: float(share) for name, _, share in (each.partition("=") for each in chosen.fault)}
    if unknown := faults.keys() - FAULTS.keys():
        parser.error(f"there is no fault {', '.join(sorted(unknown))}; there are {', '.join(FAULTS)}")
    load = Load(**{each.name: getattr(chosen, each.name) for each in fields(Load)})
    judge = Judge(faults, load, seed=chosen.seed, first_only=chosen.first_only, stubborn=chosen.stubborn)
    asyncio.run(serve(judge.respond, 0.0, port=chosen.port))


if __name__ == "__main__":
    main()
