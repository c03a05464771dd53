"""Conversations that were broken off: what they had heard, kept so that they can go on from there.

They stand in the table `unfinished`, each with the number of its exchange and a seal. A conversation goes on once: from
what was stored first, and until what is kept of it holds all of that.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from merilo.runs import content
from merilo.runs.database import seal
from merilo.runs.records import Damaged

if TYPE_CHECKING:
    import sqlite3

    from merilo.judging.verdicts import Failure
    from merilo.providers.base import Reply
    from merilo.runs.telling import Telling


class Heard(NamedTuple):
    """What a conversation had heard when it was broken off."""

    replies: tuple[Reply | Failure | None, ...]
    """None for one that had not come, of requests side by side."""
    cost_usd: float | None
    """None when the price is unknown."""


class BrokenOff:
    """Those of one store, by the key of the question. Rows gather in memory until `write`, which the store calls."""

    def __init__(self, connection: sqlite3.Connection, telling: Telling) -> None:
        self._db = connection
        self._telling = telling
        self._read: dict[bytes, int] | None = None  # the number of the exchange, of each; read when first wanted
        self._added: dict[bytes, tuple[int, int]] = {}  # those that are to be written, with their seals
        self._over: list[tuple[bytes, int]] = []  # those that are to be deleted
        self._since: set[bytes] = set()  # those that were added since the store was opened
        self._told: set[bytes] = set()  # those that one conversation goes on from already

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._exchanges)

    def __contains__(self, key: bytes) -> bool:
        """Whether there is what a conversation had heard, and `heard` has not told it yet."""
        return key in self._exchanges and key not in self._told

    def awaits(self, key: bytes) -> bool:
        """Whether a conversation about this is to be added: none was since the store was opened, and one goes on."""
        return key not in self._since

    def add(self, key: bytes, exchange: int, replies: str, cost_usd: float | None) -> None:
        """Keep that a conversation was broken off; `exchange`: the number of its row, with these replies and cost."""
        self._since.add(key)
        self._added[key] = (exchange, _seal_of(key, replies, cost_usd))
        self._exchanges[key] = exchange

    def heard(self, key: bytes) -> Heard:
        """What one of these conversations had heard; it is told once, and must have been written."""
        from merilo.judges.reread import heard

        self._told.add(key)
        with self._telling:
            joined = "unfinished JOIN exchanges ON id = exchange"
            statement = f"SELECT replies, cost_usd, unfinished.seal FROM {joined} WHERE key = ?"  # noqa: S608  our own
            row = self._db.execute(statement, (key,)).fetchone()
            if row is None or _seal_of(key, str(row[0]), row[1]) != row[2]:
                raise Damaged("a conversation that was broken off does not match its seal")
            told = json.loads(row[0])
            return Heard(tuple(None if each is None else heard(each) for each in told), row[1])

    def drop(self, key: bytes) -> bool:
        """Drop what a conversation had heard; whether there was anything."""
        exchange = self._exchanges.pop(key, None)
        if exchange is None:
            return False
        self._added.pop(key, None)
        self._since.discard(key)
        self._over.append((key, exchange))
        return True

    def write(self) -> None:
        """Write what is pending, within the transaction that the store has begun; see `written`."""
        if self._over:
            self._db.executemany("DELETE FROM unfinished WHERE key = ?", ((key,) for key, _ in self._over))
            for _, exchange in self._over:
                content.delete(self._db, "exchanges", "id = ?", (exchange,))
        if self._added:
            rows = ((key, *own) for key, own in self._added.items())
            self._db.executemany("INSERT INTO unfinished VALUES (?, ?, ?)", rows)

    def written(self) -> None:
        """Forget what was pending: the transaction holds it."""
        self._added.clear()
        self._over.clear()

    @property
    def _exchanges(self) -> dict[bytes, int]:
        if self._read is None:
            with self._telling:
                rows = self._db.execute("SELECT key, exchange FROM unfinished").fetchall()
                if not all(isinstance(key, bytes) and isinstance(number, int) for key, number in rows):
                    raise Damaged("a conversation that was broken off has no key")
                self._read = dict(rows)
        return self._read


def _seal_of(key: bytes, replies: str, cost_usd: float | None) -> int:
    cost = None if cost_usd is None else float(cost_usd)  # as the column has it
    return seal(key, f"{cost} {replies}")
