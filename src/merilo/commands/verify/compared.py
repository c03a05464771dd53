"""Compares the JSON files of a run with the recomputed ones: every field, except a short list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from merilo.judging.json_types import as_list, as_object, compact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

JSON = dict[str, Any]  # Any: JSON

NOT_RECOMPUTED: Final[Mapping[str, frozenset[str]]] = {
    "manifest.json": frozenset({"merilo"}),
    "usage.json": frozenset({"seconds", "adaptations", "stopped", "raise_to", "replayed", "seal"}),
}
"""Fields that may differ: the version that recomputes, times, and what a server or a limit did."""

_BY_METHOD: Final = frozenset({"interval", "note", "remark", "method", "seed"})
"""Fields that another method for intervals changes."""


def differing(stored: object, now: object, *, older: bool, path: str = "") -> Iterator[str]:
    """Yield the path of every value that differs.

    `older`: the file was written by an earlier version, so a field that is missing from it is not a difference.
    """
    mine, theirs = as_object(stored), as_object(now)
    if mine is not None and theirs is not None:
        for name in dict.fromkeys([*mine, *theirs]):
            here = f"{path}.{name}" if path else name
            if name in mine and name in theirs:
                yield from differing(mine[name], theirs[name], older=older, path=here)
            elif name in mine or not older:
                yield here
        return
    left, right = as_list(stored), as_list(now)
    if left is not None and right is not None and len(left) == len(right):
        for place, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from differing(one, other, older=older, path=f"{path}[{place}]")
    elif compact(stored) != compact(now):
        yield path


@dataclass(frozen=True, slots=True)
class Rows:
    """The comparison of the rows of a summary."""

    different: tuple[str, ...]
    """Metrics whose row differs."""
    by_method: tuple[str, ...]
    """Metrics whose intervals were made by another method in an earlier version; everything else is equal."""


def compared_rows(stored: list[JSON], now: list[JSON], *, older: bool) -> Rows:
    """Compare the rows of two summaries, which have the same metrics."""
    rows = {row["metric"]: row for row in now}
    different: list[str] = []
    by_method: list[str] = []
    for row in stored:
        text = row["metric"]
        if not any(differing(row, rows[text], older=older)):
            continue
        mine, theirs = _without_intervals(row), _without_intervals(rows[text])
        excused = older and _methods(row) != _methods(rows[text])
        (by_method if excused and not any(differing(mine, theirs, older=True)) else different).append(text)
    return Rows(tuple(different), tuple(by_method))


def _without_intervals(row: JSON) -> JSON:
    comparable = {name: value for name, value in row.items() if name not in _BY_METHOD}
    shares: dict[str, JSON] = row.get("shares") or {}
    if shares:
        comparable["shares"] = {name: {"value": share["value"]} for name, share in shares.items()}
    return comparable


def _methods(row: JSON) -> list[object]:
    shares: dict[str, JSON] = row.get("shares") or {}
    return [row.get("method"), *(share.get("method") for share in shares.values())]
