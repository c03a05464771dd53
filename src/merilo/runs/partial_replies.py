"""Partial replies of judge sessions that were interrupted, stored so that the sessions can be resumed.

They are rows of the table `unfinished`, each with the number of its exchange and a seal. Stored replies are handed out
once, to the session that resumes. They are dropped when that session's own replies, which include them, are stored.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from merilo.runs import schema
from merilo.runs.database import seal
from merilo.runs.records import CorruptRow

if TYPE_CHECKING:
    import sqlite3

    from merilo.judging.verdicts import Failure
    from merilo.providers.base import Reply
    from merilo.runs.store_errors import StoreErrorContext


class SavedReplies(NamedTuple):
    """The replies received before a session was interrupted."""

    replies: tuple[Reply | Failure | None, ...]
    """None for a parallel request that had no reply yet."""
    cost_usd: float | None
    """Cost in USD; None if the price is unknown."""


class PartialReplies:
    """The partial replies of one store, by the key of the question. Rows are held in memory until the store calls
    `write`.
    """

    def __init__(self, connection: sqlite3.Connection, error_context: StoreErrorContext) -> None:
        self._db = connection
        self._error_context = error_context
        self._read: dict[bytes, int] | None = None  # exchange number by key; read when first needed
        self._added: dict[bytes, tuple[int, int]] = {}  # pending inserts: exchange and seal by key
        self._over: list[tuple[bytes, int]] = []  # pending deletions: key and exchange
        self._since: set[bytes] = set()  # keys added since the store was opened
        self._handed_out: set[bytes] = set()  # keys whose replies a session has received already

    def __bool__(self) -> bool:
        """Return True if there are any partial replies."""
        return bool(self._exchanges)

    def __contains__(self, key: bytes) -> bool:
        """Return True if there are partial replies under this key that were not handed out yet."""
        return key in self._exchanges and key not in self._handed_out

    def awaits(self, key: bytes) -> bool:
        """Return True if no session with this key was added since the store was opened; only the first is resumed."""
        return key not in self._since

    def add(self, key: bytes, exchange: int, replies: str, cost_usd: float | None) -> None:
        """Add an interrupted session; `exchange` is the number of its row, with these replies and cost."""
        self._since.add(key)
        self._added[key] = (exchange, _seal_of(key, replies, cost_usd))
        self._exchanges[key] = exchange

    def saved_replies(self, key: bytes) -> SavedReplies:
        """Return the partial replies under this key. They are returned only once, and must have been written before."""
        from merilo.judges.recorded_replies import saved_reply

        self._handed_out.add(key)
        with self._error_context:
            joined = "unfinished JOIN exchanges ON id = exchange"
            statement = f"SELECT replies, cost_usd, unfinished.seal FROM {joined} WHERE key = ?"  # noqa: S608  our own
            row = self._db.execute(statement, (key,)).fetchone()
            if row is None or _seal_of(key, str(row[0]), row[1]) != row[2]:
                raise CorruptRow("the replies of an interrupted conversation do not match their seal")
            replies = json.loads(row[0])
            return SavedReplies(tuple(None if each is None else saved_reply(each) for each in replies), row[1])

    def drop(self, key: bytes) -> bool:
        """Drop the partial replies under this key; return True if there were any."""
        exchange = self._exchanges.pop(key, None)
        if exchange is None:
            return False
        self._added.pop(key, None)
        self._since.discard(key)
        self._over.append((key, exchange))
        return True

    def write(self) -> None:
        """Write the pending rows, within the store's transaction. The store calls `written` after the commit."""
        if self._over:
            self._db.executemany("DELETE FROM unfinished WHERE key = ?", ((key,) for key, _ in self._over))
            for _, exchange in self._over:
                schema.delete(self._db, "exchanges", "id = ?", (exchange,))
        if self._added:
            rows = ((key, *own) for key, own in self._added.items())
            self._db.executemany("INSERT INTO unfinished VALUES (?, ?, ?)", rows)

    def written(self) -> None:
        """Forget the pending rows after they were committed."""
        self._added.clear()
        self._over.clear()

    @property
    def _exchanges(self) -> dict[bytes, int]:
        if self._read is None:
            with self._error_context:
                rows = self._db.execute("SELECT key, exchange FROM unfinished").fetchall()
                if not all(isinstance(key, bytes) and isinstance(number, int) for key, number in rows):
                    raise CorruptRow("an interrupted conversation has no key")
                self._read = dict(rows)
        return self._read


def _seal_of(key: bytes, replies: str, cost_usd: float | None) -> int:
    cost = None if cost_usd is None else float(cost_usd)  # the column stores a real number
    return seal(key, f"{cost} {replies}")
