"""The data of a page as JSON in it: columns of the table, and details and passages in compressed blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from merilo.commands.report.faults import FAULTS
from merilo.rendering.markup import Markup, json_text, packed, raw_element

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.commands.report.result import Entry, Value
    from merilo.runs.scales import Scale

_Item = TypeVar("_Item")
_BLOCK: Final = 50
_LARGE: Final = 2_000
_LARGE_BLOCK: Final = 200


def page_data(
    columns: Mapping[str, Any],  # Any: JSON
    details: Mapping[str, Sequence[Entry]],
    passages: Sequence[tuple[str, Sequence[str]]],
) -> list[Markup]:
    """Return the columns as JSON, and details (by name) and passages in blocks that the page opens when needed."""
    size = _BLOCK if max(map(len, details.values())) < _LARGE else _LARGE_BLOCK
    blocks: dict[str, Any] = {"size": size}  # Any: JSON
    for name, entries in details.items():
        blocks[name] = [packed([each.detail for each in block]) for block in _blocks(entries, size)]
    blocks["passages"] = [packed([[name, *texts] for name, texts in block]) for block in _blocks(passages, size)]
    return [
        raw_element("script", json_text(columns), type="application/json", id="rows"),
        raw_element("script", json_text(blocks), type="application/json", id="blocks"),
    ]


def metric_field(metric: str, scale: Scale, *, weak: bool) -> dict[str, Any]:  # Any: JSON
    """Return what the table knows of a metric; an infinite end of its range is None."""
    span = [None if abs(end) == float("inf") else end for end in scale.span]
    return {"id": metric, "weak": weak, "span": span, "up": scale.higher_is_better}


def fault_fields() -> list[dict[str, Any]]:  # Any: JSON
    """Return what the table knows of each fault."""
    return [
        {"tone": each.tone, "glyph": each.glyph, "name": each.name, "cause": each.cause, "likely": each.likely}
        for each in FAULTS
    ]


def rounded(value: Value) -> Value:
    """Return a score with four decimals; None and False unchanged."""
    return value if value is None or value is False else round(value, 4)


def _blocks(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
