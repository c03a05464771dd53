"""Scores in the files that other systems write: traces, logs and results of evaluation tools."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING

from merilo.adapters.exports import export_of
from merilo.commands.imports.tables import Rows
from merilo.data.load import load
from merilo.data.source import data_name
from merilo.errors import Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from merilo.adapters.exports import Export


def export_rows(source: str | PathLike[str], *, scores: Mapping[str, object]) -> Rows | None:
    """Return the samples and scores of a file that another system wrote; None if it is not one.

    Raises DataError if the file cannot be read, UsageError if it has no scores or not the ones that are named.
    """
    found = export_of(Path(source))
    if found is None:
        return None
    scored = _scored(found)
    if not scored.values:
        name = found.path.name
        raise UsageError(
            f"{name} ({found.title}) has no scores to import. To list its samples, add --list. To evaluate them: "
            f"merilo run {name}. To write them: merilo import {name} --out samples.jsonl."
        )
    unknown = [name for name in scores if name not in scored.values]
    if unknown:
        raise UsageError(f"No scores {unknown[0]!r} in {found.path.name}; it has {', '.join(scored.values)}.")
    chosen = {name: scored.values[name] for name in (scores or scored.values)}

    def outside(name: str, span: tuple[float, float]) -> Problem:
        place, value = next(
            (place, value)
            for place, value in zip(scored.places, chosen[name], strict=True)
            if not isnan(value) and not span[0] <= value <= span[1]
        )
        expected = f"a number from {span[0]:g} to {span[1]:g}"
        return Problem(expected, f"{value:g}", name, found.path.name, place, found.unit)

    loaded = load(found.path)
    return Rows(
        dataset=replace(loaded, name=data_name(found.path)),
        origin=f"{found.title}, {found.path.name}",
        offered=tuple(scored.values),
        scores=lambda: chosen,
        problems=[],
        outside=outside,
    )


@dataclass(slots=True)
class _Scored:
    places: array[int] = field(default_factory=lambda: array("q"))
    values: dict[str, array[float]] = field(default_factory=dict[str, "array[float]"])


def _scored(found: Export) -> _Scored:
    """Return the scores of each sample, in the order in which `load` reads the samples."""
    scored = _Scored()
    for item in found.items():
        if item.record is None and not item.problems:
            continue  # a trace that is not a sample
        for name in item.scores:
            scored.values.setdefault(name, array("d", [nan]) * len(scored.places))
        scored.places.append(item.place)
        for name, values in scored.values.items():
            values.append(item.scores.get(name, nan))
    return scored
