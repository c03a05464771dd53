# For type checkers: `lines.py` makes this module from the table when `merilo.compat.ragas` is imported.
from typing import Any

METRICS: dict[str, Any]

def __getattr__(name: str) -> Any: ...  # pyright: ignore[reportIncompleteStub]  the names are rows
