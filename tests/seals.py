"""Changes the seal of a run, so that its files can be changed in a test."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from merilo.runs.lock import RunLock
from merilo.runs.seal import publish
from merilo.runs.store import Store

if TYPE_CHECKING:
    from pathlib import Path


def remove_seal(run: Path) -> Path:
    """Make a run one that merilo 0.1.0 could have written, in its format and without a seal; return its directory."""
    (run / "seal.json").unlink(missing_ok=True)
    with closing(sqlite3.connect(run / "store.sqlite")) as db, db:
        (found,) = db.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
        columns = (("samples", "seal"), ("exchanges", "seal"), ("answers", "row_seal"))
        for table, column in columns if found == "4" else ():
            db.execute(f"DROP INDEX {table}_seal")
            db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        db.execute("DELETE FROM meta WHERE name <> 'format'")
        db.execute("UPDATE meta SET value = '3' WHERE name = 'format'")
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8")) | {"format": 3}
    (run / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    usage = json.loads((run / "usage.json").read_text(encoding="utf-8"))
    usage.pop("seal", None)
    (run / "usage.json").write_text(json.dumps(usage, indent=2) + "\n", encoding="utf-8")
    return run


def seal_again(run: Path, **usage: object) -> None:
    """Compute every digest of a run again, as a careful forger does; `usage` replaces fields of its usage."""
    fields = {**json.loads((run / "usage.json").read_text(encoding="utf-8")), **usage}
    fields.pop("seal", None)
    with RunLock(run):
        store = Store.open(run / "store.sqlite")
        publish(run, {}, usage=fields, store=store)
        store.close()
