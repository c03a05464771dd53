"""Makes a run one that merilo 0.1.0 could have written: without a seal, so that its files can be changed in a test."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def remove_seal(run: Path) -> Path:
    """Remove the seal of a run, wherever it is recorded; return the run's directory."""
    (run / "seal.json").unlink(missing_ok=True)
    with closing(sqlite3.connect(run / "store.sqlite")) as db, db:
        db.execute("DELETE FROM meta WHERE name = 'results'")
    usage = json.loads((run / "usage.json").read_text(encoding="utf-8"))
    usage.pop("seal", None)
    (run / "usage.json").write_text(json.dumps(usage, indent=2) + "\n", encoding="utf-8")
    return run
