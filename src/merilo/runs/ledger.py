"""The ledger of a run directory: every request that was sent, its cost, and the requests that were never answered.

An append-only file with one JSON array per line. A request is entered before it is sent and settled when its reply or a
refusal has arrived. A process that is killed therefore leaves its requests in flight as open entries, which the next
call counts as unanswered.

::

    ["ledger", 1]                               format
    ["sent", 1, 412, 0.000165, 2048, 0.0033]    number, estimated input tokens and their price in USD, tokens of the
                                                longest reply and their price in USD
    ["reply", 1, 380, 41, 0.000218, 0]          number, tokens in and out, price in USD, 1 if estimated; then the input
                                                tokens that the provider's cache held, if any
    ["lost", 2, 90, 1958]                       no usable reply: tokens received, tokens that may also be billed
    ["unbilled", 3]                             answered with an error that providers do not bill
    ["unsent", 4]                               never left this machine, so it does not count as a request

A line holds numbers only: no text, no address and no key. Lines of earlier releases have a checksum after them.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from merilo.errors import RunError
from merilo.judging.json_types import compact
from merilo.runs.database import file_mode
from merilo.runs.files import bounded_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

FORMAT: Final = 1
_AT_ONCE: Final = 500


class Charge(NamedTuple):
    """The tokens and the price of one request; None if unknown."""

    input_tokens: int | None
    output_tokens: int | None
    usd: float | None
    estimated: bool = False
    """The tokens come from the texts, because the server reported none or an implausible number."""
    reply_tokens: int = 0
    """Output tokens that may be billed in addition, because no usable reply reports how many were generated."""
    reply_usd: float = 0.0
    """Their price; 0 if `usd` is unknown."""
    cached_tokens: int = 0
    """The part of the input tokens that the provider reports as read from its prompt cache."""

    def received(self, tokens: int, unread: int) -> Charge:
        """Return the charge after this many output tokens arrived, if `unread` more may be billed.

        A request that has no output tokens, such as one for vectors, has none whatever arrived.
        """
        if not self.reply_tokens:
            return self
        token_usd = self.reply_usd / self.reply_tokens
        return self._replace(
            output_tokens=tokens,
            usd=None if self.usd is None else self.usd + tokens * token_usd,
            reply_tokens=unread,
            reply_usd=unread * token_usd,
        )


@dataclass(slots=True)
class Charges:
    """Sums of charges. Unknown amounts are counted separately, never taken as 0."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    estimated_usd: float = 0.0
    """The part of `usd` that was estimated from texts."""
    uncounted: int = 0
    """Requests whose tokens are unknown."""
    unpriced: int = 0
    """Requests whose price is unknown."""
    reply_usd: float = 0.0
    """Amount that may be billed in addition for replies that were not received."""
    cached_tokens: int = 0

    def add(self, charge: Charge) -> None:
        """Add the charge of one request."""
        read, written = charge.input_tokens, charge.output_tokens
        self.requests += 1
        self.input_tokens += read or 0
        self.output_tokens += written or 0
        self.cached_tokens += charge.cached_tokens
        self.uncounted += read is None or written is None
        if charge.usd is None:
            self.unpriced += 1
        else:
            self.usd += charge.usd
            self.estimated_usd += charge.usd if charge.estimated else 0.0
            self.reply_usd += charge.reply_usd

    def __add__(self, other: Charges) -> Charges:
        return Charges(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


@dataclass(frozen=True, slots=True)
class Balance:
    """The requests and spending of a run directory."""

    answered: Charges = field(default_factory=Charges)
    unanswered: Charges = field(default_factory=Charges)
    """Requests without a usable reply that may have been billed, each charged for its input and the bytes received."""
    unbilled: int = 0
    """Requests answered with an error that providers do not bill."""

    @property
    def requests(self) -> int:
        """Requests sent, retries included."""
        return self.answered.requests + self.unanswered.requests + self.unbilled

    def __add__(self, other: Balance) -> Balance:
        return Balance(
            self.answered + other.answered, self.unanswered + other.unanswered, self.unbilled + other.unbilled
        )


class Ledger:
    """An open ledger; in memory only if `path` is None. Belongs to one thread, under the lock of its directory."""

    def __init__(self, path: Path | None = None) -> None:
        self.lines = 0
        """Lines in the file; 0 until the first request is entered."""
        self.answered = Charges()
        self.unanswered = Charges()
        self.unbilled = 0
        self.in_flight: dict[int, Charge] = {}
        """The charge of each request in flight, by its number: neither settled nor counted as unanswered."""
        self.number = 0
        """The number of the last request; 0 if there is none."""
        self._size = 0
        self._path = path
        self._file: int | None = None

    @classmethod
    def open(cls, path: Path, *, lines: int = 0, in_flight: Callable[[int], bool] | None = None) -> Self:
        """Return the ledger at `path`; if there is none and needs none, an empty one, created with its first entry.

        `lines`: minimum number of lines that it must have. `in_flight`: returns True for the number of a request whose
        reply may still come, as that of a batch. Other open entries count as unanswered for good. Raises RunError if
        the ledger is damaged or missing.
        """
        ledger = cls(path)
        if not (lines or path.exists()):
            return ledger
        with _reading(path):
            for size, (kind, number, *values) in _entries(path, lines):
                if ledger.lines:
                    ledger._apply(kind, number, values)
                elif [kind, number] != ["ledger", FORMAT]:
                    raise RunError(f"{path} has format {number}; this merilo reads format {FORMAT}.")
                ledger.lines += 1
                ledger._size += size
        for number in [number for number in ledger.in_flight if in_flight is None or not in_flight(number)]:
            ledger.leave(number)
        return ledger

    def sync(self) -> None:
        """Wait until all entries are on the disk."""
        if self._file is not None:
            os.fsync(self._file)

    def close(self) -> None:
        """Write everything to the disk and close the file."""
        if self._file is not None:
            os.fsync(self._file)
            os.close(self._file)
            self._file = None

    @property
    def balance(self) -> Balance:
        """Requests and spending so far; requests in flight count as unanswered."""
        unanswered = replace(self.unanswered)
        for charge in self.in_flight.values():
            unanswered.add(charge)
        return Balance(replace(self.answered), unanswered, self.unbilled)

    @property
    def requests(self) -> int:
        """Requests sent, those in flight included."""
        return self.answered.requests + self.unanswered.requests + self.unbilled + len(self.in_flight)

    def sent(self, charge: Charge) -> int:
        """Enter a request that is about to be sent, with its charge if it is not answered; return its number."""
        number = self.number + 1
        reply = f"{charge.reply_tokens},{charge.reply_usd!r}"
        self._write(f'["sent",{number},{charge.input_tokens!r},{charge.usd!r},{reply}')
        self.number = number
        self.in_flight[number] = charge
        return number

    def replied(self, number: int, charge: Charge) -> None:
        """Settle a request that was answered."""
        tokens = f"{charge.input_tokens!r},{charge.output_tokens!r}"
        cached = f",{charge.cached_tokens}" if charge.cached_tokens else ""
        self._write(f'["reply",{number},{tokens},{charge.usd!r},{int(charge.estimated)}{cached}')
        del self.in_flight[number]
        self.answered.add(charge)

    def not_billed(self, number: int) -> None:
        """Settle a request that was answered with an error that providers do not bill."""
        self._write(f'["unbilled",{number}')
        del self.in_flight[number]
        self.unbilled += 1

    def not_sent(self, number: int) -> None:
        """Remove a request that never left this machine."""
        self._write(f'["unsent",{number}')
        del self.in_flight[number]

    def leave(self, number: int) -> None:
        """Count a request as unanswered. Its entry stays open, so nothing has to be written."""
        self.unanswered.add(self.in_flight.pop(number))

    def lost(self, number: int, received: int = 0, *, complete: bool = False) -> None:
        """Count a request as unanswered, of whose reply this many output tokens arrived.

        `complete`: no more tokens can have been generated.
        """
        charge = self.in_flight[number]
        if charge.reply_tokens:  # a model writes no more, whatever the size of the answer
            received = min(received, charge.reply_tokens)
        unread = 0 if complete else max(0, charge.reply_tokens - received)
        self._write(f'["lost",{number},{received},{unread}')
        del self.in_flight[number]
        self.unanswered.add(charge.received(received, unread))

    def add_ledger(self, path: Path, *, lines: int) -> None:
        """Append the requests of another run's ledger, which must have at least this many lines, with new numbers.

        Its open entries stay open. Raises RunError if it is damaged.
        """
        before, new = self.number, list[str]()
        with _reading(path):
            for _, (kind, number, *values) in islice(_entries(path, lines), 1, None):
                new.append(compact([kind, number + before, *values])[:-1])
                self._apply(kind, number + before, values)
                if len(new) == _AT_ONCE:
                    self._write(*new)
                    new.clear()
        self._write(*new)

    def _write(self, *lines: str) -> None:
        """Append lines. Writing suffices to survive a killed process; only `close` waits for the disk."""
        if self._path is None or not lines:
            return
        if self._file is None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, file_mode(self._path))
            os.ftruncate(self._file, self._size)  # a killed process may have left half a line
        if not self.lines:
            lines = (f'["ledger",{FORMAT}', *lines)
        file, size = self._file, self._size
        data = "".join([f"{line}]\n" for line in lines]).replace("None", "null").encode()  # a line holds no other words
        try:
            while data:
                written = os.write(file, data)
                data, size = data[written:], size + written
        except OSError:
            os.ftruncate(file, self._size)  # later lines must not be appended to half a line
            raise
        self._size, self.lines = size, self.lines + len(lines)

    def _apply(self, kind: object, number: int, values: list[Any]) -> None:  # Any: JSON
        """Process an entry. Raises LookupError, TypeError or ValueError for one that this module did not write."""
        match kind:
            case "sent":
                self.number = number
                read, usd, reply_tokens, reply_usd = values
                charge = Charge(read, 0, usd, estimated=True, reply_tokens=reply_tokens, reply_usd=reply_usd)
                self.in_flight[number] = charge
            case "reply":
                del self.in_flight[number]
                read, written, usd, estimated, *cached = values
                self.answered.add(Charge(read, written, usd, bool(estimated), cached_tokens=sum(cached)))
            case "lost":
                self.unanswered.add(self.in_flight.pop(number).received(*values))
            case "unbilled":
                del self.in_flight[number]
                self.unbilled += 1
            case "unsent":
                del self.in_flight[number]
            case _:
                raise ValueError(f"no entry is called {kind!r}")


_DECODE: Final = json.JSONDecoder().raw_decode  # a third of the time of json.loads


def _entries(path: Path, lines: int) -> Iterator[tuple[int, list[Any]]]:  # Any: JSON
    """Yield the items of each line of a ledger file, with the bytes of the line.

    Raises ValueError at the end if there were fewer than `lines` lines.
    """
    done = 0
    with path.open("rb") as file:
        for line in bounded_lines(file):
            if not line.endswith(b"\n"):  # half a line of a killed process
                break
            done += 1
            items = _DECODE(line.decode())[0]
            yield len(line), items[:-1] if type(items[-1]) is str else items
    if done < max(lines, 1):
        raise ValueError(f"it has {done:,} of at least {max(lines, 1):,} lines")


@contextmanager
def _reading(path: Path) -> Generator[None]:
    """Turn an error in the block, which reads the ledger at `path`, into a RunError."""
    try:
        yield
    except (FileNotFoundError, LookupError, TypeError, ValueError) as error:
        why = "it is missing" if isinstance(error, FileNotFoundError) else error
        raise RunError(
            f"{path} is damaged ({why}), so the run's spending is unknown. Start a new run in another directory "
            "(--out): answers in the verdict cache are not paid for again."
        ) from error
