"""Measures: numbers of a sample that are not scores, such as latency and cost; they are in its metadata."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Final

from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MEASURED: Final = "merilo:latency_s"
"""Key of the seconds that `evaluate_pipeline` measured. They differ between two calls, so no digest covers them."""


@dataclass(frozen=True, slots=True)
class MeasureColumn:
    """A key of the metadata that holds a measure."""

    name: str
    """The measure; several keys may have the same one."""
    unit: str = ""
    higher_is_better: bool = False
    factor: float = 1.0
    """The measure in its unit is the number times this factor."""


_SECONDS: Final = MeasureColumn("latency_s", "s")
KNOWN: Final[Mapping[str, MeasureColumn]] = {
    "cost_usd": MeasureColumn("cost_usd", "USD"),
    **dict.fromkeys(("latency_s", MEASURED), _SECONDS),
    "latency_ms": MeasureColumn("latency_s", "s", factor=1e-3),
    **{key: MeasureColumn(key) for key in ("tokens", "input_tokens", "output_tokens")},
}


def measure_columns(declared: Iterable[str]) -> dict[str, MeasureColumn]:
    """Return the known columns, and those declared as `COLUMN`, `COLUMN=UNIT`, `COLUMN=higher` or both with a blank.

    Raises UsageError for a text without a column.
    """
    found = dict(KNOWN)
    for text in declared:
        column, _, rest = text.partition("=")
        unit = " ".join(word for word in rest.split() if word != "higher")
        if not column:
            raise UsageError(f"--measure needs COLUMN, COLUMN=UNIT or COLUMN=higher, got {text!r}.")
        found[column] = MeasureColumn(column, unit, higher_is_better="higher" in rest.split())
    return found


def number_in(value: object) -> float | None:
    """Return the finite number in a value of the metadata or in a cell; None for anything else."""
    try:
        found = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        return None
    return found if found is not None and isfinite(found) else None
