"""Verdicts across runs: one SQLite file in the user's cache directory, first writer wins."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from merilo.errors import RunError
from merilo.runs.store import COMMIT_ROWS, COMMIT_SECONDS

if TYPE_CHECKING:
    from merilo.judging.verdicts import Verdict

FORMAT = 1
_BUSY_MS = 10_000


def default_path() -> Path:
    """`$MERILO_CACHE`, else `merilo/verdicts.sqlite` in the user's cache directory."""
    if named := os.environ.get("MERILO_CACHE"):
        return Path(named)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "merilo" / "verdicts.sqlite"


class VerdictCache:
    """An open cache; holds verdicts only, never failures. Belongs to one thread; processes may share the file."""

    def __init__(self, path: Path) -> None:
        """Open or make the cache. Raises RunError when it cannot be used."""
        self._pending = 0
        self._since = 0.0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._db.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("CREATE TABLE IF NOT EXISTS verdicts (key BLOB NOT NULL, verdict TEXT NOT NULL)")
            self._db.execute("CREATE UNIQUE INDEX IF NOT EXISTS verdicts_key ON verdicts (key)")
            self._db.execute(f"PRAGMA user_version = {FORMAT}")
        except (OSError, sqlite3.Error) as error:
            raise RunError(
                f"The verdict cache {path} cannot be used ({error}); remove it, set MERILO_CACHE to another file, "
                "or run without it (--no-cache)."
            ) from error

    def get(self, key: bytes, verdict: type[Verdict]) -> Verdict | None:
        """The verdict under this key, or None."""
        row = self._db.execute("SELECT verdict FROM verdicts WHERE key = ?", (key,)).fetchone()
        try:
            return verdict.from_json(row[0]) if row else None
        except ValueError:  # written by another hand
            return None

    def replace(self, key: bytes, verdict: Verdict) -> None:
        """Store a verdict in the place of a damaged one."""
        self._begin()
        self._db.execute("UPDATE verdicts SET verdict = ? WHERE key = ?", (verdict.to_json(), key))

    def put(self, key: bytes, verdict: Verdict) -> Verdict:
        """Store a verdict; returns the one that the cache holds now: this one, or an earlier one."""
        self._begin()
        added = self._db.execute("INSERT OR IGNORE INTO verdicts VALUES (?, ?)", (key, verdict.to_json()))
        if added.rowcount:
            return verdict
        return self.get(key, type(verdict)) or verdict

    def _begin(self) -> None:
        if not self._pending:
            self._db.execute("BEGIN IMMEDIATE")
            self._since = time.monotonic()
        self._pending += 1

    def due(self) -> bool:
        """True when the pending rows should be committed."""
        return self._pending >= COMMIT_ROWS or (self._pending > 0 and time.monotonic() - self._since >= COMMIT_SECONDS)

    def commit(self) -> None:
        """Make everything put so far visible to others and durable."""
        if self._pending:
            self._db.execute("COMMIT")
            self._pending = 0

    def close(self) -> None:
        """Commit and close."""
        self.commit()
        self._db.close()
