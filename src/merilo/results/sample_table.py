"""A run as a table with one row per sample: the columns of `merilo export` and of `Run.to_frame`.

Columns are the same for every run: the id, the fields, the language, the metadata, the number of contexts, and three
columns per metric. Composites have no value per sample, so they have no column.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from merilo.data.sample import FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.runs.outcomes import OutcomeRecord
    from merilo.runs.run import Run, SampleResult

Cell: TypeAlias = Any  # Any: text, a number, a JSON value, or None if missing
Row: TypeAlias = tuple[Cell, ...]


class Kind(StrEnum):
    """The type of the values in a column; every value may be missing."""

    TEXT = "text"
    COUNT = "count"
    SCORE = "score"
    JSON = "json"
    """Lists and objects: contexts, their ids, and metadata."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table."""

    name: str
    kind: Kind


CONTEXTS: Final = "contexts"
"""The column with the number of retrieved contexts; empty if the sample has no such field."""
_TEXT_FIELDS: Final = frozenset({"user_input", "response", "reference"})
_SAMPLE: Final = (
    Column("id", Kind.TEXT),
    *(Column(name, Kind.TEXT if name in _TEXT_FIELDS else Kind.JSON) for name in FIELDS),
    Column("language", Kind.TEXT),
    Column("metadata", Kind.JSON),
    Column(CONTEXTS, Kind.COUNT),
)
_STATUS: Final = {"score": "scored", "undefined": "undefined", "failed": "failed"}


@dataclass(frozen=True, slots=True)
class SampleTable:
    """The samples of a run with outcomes, in dataset order, read from disk while they are iterated."""

    run: Run
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, run: Run) -> SampleTable:
        """Return the table of a run.

        A metric that is called like another column gets `metric_` in front of its name, so that names are unique.
        """
        taken = {column.name for column in _SAMPLE}
        columns = [*_SAMPLE]
        for metric in run.manifest.metrics:
            name = metric
            while taken & (own := {name, f"{name}_status", f"{name}_reason"}):
                name = f"metric_{name}"
            taken |= own
            columns += (
                Column(name, Kind.SCORE),
                Column(f"{name}_status", Kind.TEXT),
                Column(f"{name}_reason", Kind.TEXT),
            )
        return cls(run.shown, tuple(columns))

    def rows(self) -> Iterator[Row]:
        """Yield the cells of each sample, in the order of `columns`; None is a missing value."""
        metrics = tuple(self.run.manifest.metrics)
        for result in self.run.read_samples():
            outcomes = [cell for metric in metrics for cell in _outcome(result.records.get(metric))]
            yield (*_fields(result), *outcomes)


def cell_text(cell: Cell, kind: Kind) -> str | float | None:
    """Return a cell with lists and objects as JSON text, for formats that hold only texts and numbers."""
    if cell is None or kind is not Kind.JSON:
        return cell  # type: ignore[no-any-return]  # the kind says what it is
    return json.dumps(cell, ensure_ascii=False)


def _fields(result: SampleResult) -> Row:
    record, contexts = result.sample.to_record(), result.sample.retrieved_contexts
    known = (record.get(column.name) for column in _SAMPLE[:-1])
    return (*known, None if contexts is None else len(contexts))


def _outcome(record: OutcomeRecord | None) -> Row:
    """Return score, status and reason; a failed outcome's reason is its error message."""
    if record is None:
        return None, None, None
    reason = record.get("reason") or record.get("error", {}).get("message")
    return record.get("value"), _STATUS[record["outcome"]], reason
