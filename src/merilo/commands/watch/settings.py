"""The settings of a watch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from merilo.data import check

if TYPE_CHECKING:
    from pathlib import Path

    from merilo.commands.evaluate.options import Options


@dataclass(frozen=True, kw_only=True)
class Watch:
    """The settings of a watch. `learn`: None for 2,000 units and seven days."""

    source: Path
    evaluation: Options
    rate: float
    learn: int | None
    baseline: Path | None
    anchors: int
    by: str | None
    tolerance: float | None
    false_alarms: float
    settle_s: float

    def unit_of(self, record: dict[str, Any]) -> str:  # Any: JSON
        """Return the key of a row's unit: the conversation if the row has one, otherwise the row."""
        return _field(record, self.evaluation.cluster or "session") or str(record["id"])

    def slice_of(self, record: dict[str, Any]) -> str:  # Any: JSON
        """Return the slice of a row."""
        return (_field(record, self.by) or "unknown") if self.by else ""


def _field(record: dict[str, Any], field: str) -> str | None:  # Any: JSON
    """Return a field or a key of the metadata as text; None if the record has neither."""
    metadata = record.get("metadata")
    value: object = record.get(field, metadata.get(field) if check.is_record(metadata) else None)
    return value if value is None else storable(value if isinstance(value, str) else json.dumps(value, sort_keys=True))


def storable(text: str) -> str:
    """Return a text without halves of surrogate pairs, which a database refuses."""
    return text.encode("utf-8", "backslashreplace").decode()
