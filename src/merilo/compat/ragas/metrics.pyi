# For type checkers: `merilo.compat.ragas` makes this module from the table when it is imported.
from typing import Any

METRICS: dict[str, Any]

def __getattr__(name: str) -> Any: ...  # pyright: ignore[reportIncompleteStub]  the names are rows
