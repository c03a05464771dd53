"""The spending of a run directory that is not open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.runs.files import LEDGER, STORE
from merilo.runs.ledger import Balance, Ledger
from merilo.runs.store import Store

if TYPE_CHECKING:
    from pathlib import Path


def balance_in(directory: Path) -> Balance:
    """Return the requests and spending of the run in this directory; empty if there is no run. Raises RunError."""
    if not (directory / STORE).exists():
        return Balance()
    store = Store.read(directory / STORE)
    try:
        lines = store.ledger_lines
        if lines or (directory / LEDGER).exists():
            return Ledger.read(directory / LEDGER, lines=lines).balance
        return Balance(store.charges())
    finally:
        store.close()
