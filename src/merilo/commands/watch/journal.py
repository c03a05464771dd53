"""The state of a watch: one SQLite file with what was seen, chosen and concluded.

A look is an entry of the journal, committed with the rows that it judges; then an ordinary run below `looks/`; then its
result and the new evidence, committed together. So a killed command continues with the entry that is not done.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from merilo.commands.watch.evidence import Evidence
from merilo.errors import RunError
from merilo.runs.database import ERRORS, connected, error_text, seal
from merilo.runs.files import WATCH, RunLock

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from pathlib import Path

    from merilo.commands.watch.tail import Arrival

_MALFORMED: Final = (LookupError, TypeError, ValueError)
"""Exceptions of facts that merilo did not write."""
_WAIT_S: Final = 10.0
_REMEMBERED_S: Final = 30 * 86_400.0
"""How long a unit or trace is remembered after its last turn, to recognise late ones and duplicates."""
_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS facts (facts TEXT NOT NULL, seal INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS seen (key BLOB PRIMARY KEY, at REAL NOT NULL, spans INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE IF NOT EXISTS waiting (row INTEGER PRIMARY KEY, id TEXT NOT NULL, unit TEXT NOT NULL,
    u REAL NOT NULL, look INTEGER NOT NULL, record TEXT NOT NULL, UNIQUE (id, look))""",
    """CREATE TABLE IF NOT EXISTS looks (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, at REAL NOT NULL,
    rate REAL NOT NULL, weight REAL NOT NULL, result TEXT)""",
)


class Entry(NamedTuple):
    """A look of the journal. `kind`: traffic, or a pass over anchors. `weight`: of its evidence, fixed before it."""

    number: int
    kind: str
    at: float
    rate: float
    weight: float
    result: dict[str, Any] | None  # Any: JSON
    """None until the look is done."""

    @property
    def judged(self) -> int:
        """The number of units that have scores."""
        return int((self.result or {}).get("judged", 0))


class Journal:
    """The open state; `facts` is stored at the end of each `writing`. Other processes that write are kept out."""

    def __init__(self, directory: Path, *, writing: bool = True) -> None:
        """Open or create the state. Raises RunError if it is missing, damaged, not merilo's, or in use."""
        self.directory, self._path = directory, directory / WATCH
        if not (writing or self._path.is_file()):
            raise RunError(f"There is no watch in {directory}. Start one: merilo watch SOURCE --state {directory}")
        with ExitStack() as opened:
            try:
                if writing:
                    directory.mkdir(parents=True, exist_ok=True)
                    if any((directory / name).is_symlink() for name in ("looks", "input")):
                        raise ValueError("its folders are links, which may lead to any folder")
                    opened.enter_context(RunLock(directory))
                self._db = connected(self._path, _TABLES, wait_s=_WAIT_S, reading=not writing)
                opened.callback(self._db.close)
                for each in (*_TABLES, "PRAGMA synchronous = FULL") if writing else ():
                    self._db.execute(each)
                self.facts = self._stored()
                self.evidence()
                self.entries()
                if writing and not self.facts:
                    with self.writing() as facts:
                        facts |= {"format": 1, "salt": token_hex(16), "now": 0.0, "begun": 0}
                        facts |= {"counts": {}, "positions": []}
                self._salt = bytes.fromhex(self.facts["salt"])
            except (*ERRORS, *_MALFORMED, OSError) as error:
                text = error_text(error)
                raise RunError(f"{self._path} cannot be used ({text}). Name another one (--state).") from error
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def _stored(self) -> dict[str, Any]:  # Any: JSON
        row = self._db.execute("SELECT facts, seal FROM facts").fetchone()
        if row is not None and seal(b"facts", row[0]) != row[1]:
            raise ValueError("its facts were changed")
        return {} if row is None else dict(json.loads(row[0]))

    def evidence(self) -> Evidence | None:
        """Return the evidence since the reference; None while it is learned."""
        found = self.facts.get("evidence")
        return None if found is None else Evidence.from_state(found)

    @contextmanager
    def writing(self) -> Generator[dict[str, Any]]:  # Any: JSON
        """Run one transaction over the tables and `facts`. Raises RunError if the disk is full."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield self.facts
            self._db.execute("DELETE FROM facts")
            text = json.dumps(self.facts)
            self._db.execute("INSERT INTO facts VALUES (?, ?)", (text, seal(b"facts", text)))
            self._db.execute("COMMIT")
        except BaseException as error:
            with suppress(*ERRORS):
                self._db.rollback()
                self.facts = self._stored()
            if isinstance(error, ERRORS):
                advice = "Nothing is lost: free some space and repeat the command."
                raise RunError(f"{self._path} cannot be written ({error_text(error)}). {advice}") from error
            raise

    def set_back(self, now: float) -> None:
        """Move all times after `now` to it, because the clock was wrong then."""
        with self.writing() as facts:
            for statement in ("UPDATE seen SET at = ? WHERE at > ?", "UPDATE looks SET at = ? WHERE at > ?"):
                self._db.execute(statement, (now, now))
            facts["now"] = min(facts["now"], now)
            facts["rebases"] = [min(each, now) for each in facts.get("rebases", [])]
            if "evidence" in facts:
                for name in ("started", "looked"):
                    facts["evidence"][name] = min(facts["evidence"][name], now)

    def count(self, **added: float) -> None:
        """Add to the counts."""
        counts = self.facts["counts"]
        counts.update({name: counts.get(name, 0) + value for name, value in added.items()})

    def position(self, text: str) -> float:
        """Return the position of a unit in [0, 1), unknown without the salt: chosen if below the rate."""
        return int.from_bytes(self._key(text), "big") / 2**64

    def _key(self, text: str) -> bytes:
        return blake2b(self._salt + text.encode("utf-8", "surrogatepass"), digest_size=8).digest()

    def take_in(self, arrivals: Iterable[tuple[Arrival, str]], rate: float, now: float, settle_s: float) -> None:
        """Choose among new rows and traces, each with its unit; only chosen ones are stored."""
        new = duplicates = late = 0
        for (id_, record, spans), unit in arrivals:
            known, begun = self._note("row", id_, now, spans), self._seen("unit", unit)
            if known is not None and known[1] == spans:
                duplicates += not spans  # a trace with the same spans was only read again
            elif known is not None or (begun is not None and now - begun[0] >= settle_s):
                late += 1
            else:
                self._note("unit", unit, now, 0)
                new += begun is None
                if (u := self.position(unit)) < rate:
                    row = (id_, unit, u, json.dumps(record))
                    self._db.execute(
                        "INSERT OR IGNORE INTO waiting (id, unit, u, look, record) VALUES (?, ?, ?, 0, ?)", row
                    )
        self._db.execute("DELETE FROM seen WHERE at < ?", (now - _REMEMBERED_S,))
        self.count(seen=new, duplicates=duplicates, late=late)

    def _seen(self, kind: str, text: str) -> tuple[float, int] | None:
        row: tuple[float, int] | None = self._db.execute(
            "SELECT at, spans FROM seen WHERE key = ?", (self._key(f"{kind} {text}"),)
        ).fetchone()
        return row

    def _note(self, kind: str, text: str, now: float, spans: int) -> tuple[float, int] | None:
        """Remember a row or unit, and return when it was seen before."""
        known = self._seen(kind, text)
        self._db.execute("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", (self._key(f"{kind} {text}"), now, spans))
        return known

    def ready(self, now: float, settle_s: float) -> list[tuple[str, float]]:
        """Return the chosen units that are complete, with their positions, in order of arrival."""
        found = self._db.execute(
            "SELECT unit, u, max(id = unit) FROM waiting WHERE look = 0 GROUP BY unit ORDER BY min(row)"
        )
        return [
            (unit, u)
            for unit, u, alone in found.fetchall()
            if alone or now - (self._seen("unit", unit) or (0,))[0] >= settle_s
        ]

    def begin(self, kind: str, at: float, rate: float, weight: float) -> Entry:
        """Add an entry."""
        row = self._db.execute("INSERT INTO looks VALUES (NULL, ?, ?, ?, ?, NULL)", (kind, at, rate, weight))
        return Entry(int(row.lastrowid or 0), kind, at, rate, weight, None)

    def give(self, entry: Entry, units: Iterable[tuple[str, float]]) -> None:
        """Give an entry the complete units below its rate; forget the other ones of these."""
        for unit, u in units:
            if u < entry.rate:
                self._db.execute("UPDATE waiting SET look = ? WHERE unit = ? AND look = 0", (entry.number, unit))
            else:
                self._db.execute("DELETE FROM waiting WHERE unit = ? AND look = 0", (unit,))

    def add_rows(self, entry: Entry, records: Iterable[dict[str, Any]]) -> None:  # Any: JSON
        """Give an entry rows that are not traffic: anchors."""
        rows = ((each["id"], each["id"], entry.number, json.dumps(each)) for each in records)
        self._db.executemany("INSERT INTO waiting (id, unit, u, look, record) VALUES (?, ?, 0, ?, ?)", rows)

    def rows(self, look: int = 0) -> Iterator[dict[str, Any]]:  # Any: JSON
        """Yield the rows of a look, or those that no look has yet, in order of arrival."""
        for (record,) in self._db.execute("SELECT record FROM waiting WHERE look = ? ORDER BY row", (look,)):
            yield json.loads(record)

    def end(self, entry: Entry, result: dict[str, Any]) -> None:  # Any: JSON
        """Finish an entry; its rows are in the run."""
        self._db.execute("UPDATE looks SET result = ? WHERE number = ?", (json.dumps(result), entry.number))
        self._db.execute("DELETE FROM waiting WHERE look = ?", (entry.number,))

    def entries(self, kind: str = "%") -> list[Entry]:
        """Return the entries of a kind."""
        found = self._db.execute("SELECT * FROM looks WHERE kind LIKE ? ORDER BY number", (kind,))
        return [Entry._make((*row, None if result is None else json.loads(result))) for *row, result in found]
