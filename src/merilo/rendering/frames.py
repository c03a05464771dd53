"""A run as a table with one row per sample, as in `merilo export`, and as a data frame of a library of the user.

The columns are the id, the fields, the language, the metadata, the number of contexts, the fault with its cause and the
unsupported statements, one column per frequent key of the metadata, and three columns per metric. Composites have no
value per sample, so they have no column.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from math import nan
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from merilo.data.sample import FIELDS
from merilo.errors import UsageError
from merilo.lazy import optional_module
from merilo.results.faults import FAULTS, PLACES, sample_fault, unsupported
from merilo.runs.run import Run, SampleResult, open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from merilo.runs.outcomes import OutcomeRecord

Cell: TypeAlias = Any  # Any: text, a number, a JSON value, or None if missing
Row: TypeAlias = tuple[Cell, ...]


class Kind(StrEnum):
    """The type of the values in a column; every value may be missing."""

    TEXT = "text"
    COUNT = "count"
    SCORE = "score"
    JSON = "json"
    """Lists and objects: contexts, their ids, and metadata. A text stays as it is."""


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
    Column("fault", Kind.TEXT),
    Column("cause", Kind.TEXT),
    Column("unsupported", Kind.TEXT),
)
_CAUSES: Final = Column("cause_p", Kind.SCORE), Column("cause_right", Kind.TEXT)
_EXACT: Final = 2**53
"""Smaller whole numbers are exact as a double."""
MAX_KEYS: Final = 50
"""Maximum number of keys of the metadata with a column: the most frequent ones."""
_STATUS: Final = {"score": "scored", "undefined": "undefined", "failed": "failed"}


@dataclass(frozen=True, slots=True)
class SampleTable:
    """The samples of a run with outcomes, in dataset order, read from disk while they are iterated."""

    run: Run
    columns: tuple[Column, ...]
    keys: tuple[str, ...]
    """The keys of the metadata with a column."""
    causes: Mapping[str, tuple[str, float, str]]
    """By question, the cause that a diagnosis has shown, its p-value, and the right answers in each arm."""

    @classmethod
    def of(cls, run: Run, causes: Mapping[str, tuple[str, float, str]] = MappingProxyType({})) -> SampleTable:
        """Return the table of a run. `causes`: see the field.

        A key of the metadata or a metric that is called like another column gets `metadata_` or `metric_` in front of
        its name, so that names are unique.
        """
        taken = {column.name for column in (*_SAMPLE, *_CAUSES)}
        columns, kinds = [*_SAMPLE], _metadata_kinds(run)
        for key, kind in kinds.items():
            name = key
            while name in taken:
                name = f"metadata_{name}"
            taken.add(name)
            columns.append(Column(name, kind))
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
        columns += _CAUSES if causes else ()
        return cls(run, tuple(columns), tuple(kinds), causes)

    def rows(self) -> Iterator[Row]:
        """Yield the cells of each sample, in the order of `columns`; None is a missing value."""
        metrics = tuple(self.run.manifest.metrics)
        for result in self.run.read_samples():
            outcomes = [cell for metric in metrics for cell in _outcome(result.records.get(metric))]
            metadata = result.sample.metadata
            cause, *of_cause = self.causes.get(result.sample.user_input or "", (None, *[None] * len(_CAUSES)))
            last = of_cause if self.causes else ()
            yield (*_fields(result, cause), *map(metadata.get, self.keys), *outcomes, *last)


def cell_text(cell: Cell, kind: Kind) -> str | float | None:
    """Return a cell with lists and objects as JSON text, for formats that hold only texts and numbers."""
    if kind is Kind.SCORE and cell is not None:
        return float(cell)
    if cell is None or kind is not Kind.JSON or isinstance(cell, str):
        return cell  # type: ignore[no-any-return]  # the kind says what it is
    return json.dumps(cell, ensure_ascii=False)


def _fields(result: SampleResult, cause: str | None) -> Row:
    record, contexts = result.sample.to_record(), result.sample.retrieved_contexts
    fault = sample_fault(result)
    cause = cause or (None if fault is None else FAULTS[PLACES[fault]].cause)
    statements = "\n".join(unsupported(result)) or None
    known = (record.get(column.name) for column in _SAMPLE[:-4])
    return (*known, None if contexts is None else len(contexts), fault, cause, statements)


def _metadata_kinds(run: Run) -> dict[str, Kind]:
    """Return the most frequent keys of the metadata and the kind of their values, in the order of the data."""
    amounts, kinds = Counter[str](), dict[str, set[Kind]]()
    with closing(open_store(run)) as store:
        for sample in store.samples():
            amounts.update(sample.metadata.keys())
            for key, value in sample.metadata.items():
                kinds.setdefault(key, set()).update(() if value is None else (_kind(value),))
    frequent = dict(amounts.most_common(MAX_KEYS))
    return {key: _common(found) for key, found in kinds.items() if key in frequent}


def _kind(value: object) -> Kind:
    if isinstance(value, float):
        return Kind.SCORE
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < _EXACT
    return Kind.COUNT if whole else Kind.JSON


def _common(kinds: set[Kind]) -> Kind:
    return kinds.pop() if len(kinds) == 1 else Kind.SCORE if kinds == {Kind.COUNT, Kind.SCORE} else Kind.JSON


def _outcome(record: OutcomeRecord | None) -> Row:
    """Return score, status and reason; a failed outcome's reason is its error message."""
    if record is None:
        return None, None, None
    reason = record.get("reason") or record.get("error", {}).get("message")
    return record.get("value"), _STATUS[record["outcome"]], reason


# -- data frames --------------------------------------------------------------------------------------

TEXT: Final = "String"
INTEGER: Final = "Int64"
FLOAT: Final = "Float64"
"""Names of the types of columns, as polars calls them."""
_ARROW: Final = {TEXT: "string", INTEGER: "int64", FLOAT: "float64"}
BACKENDS: Final = ("pandas", "polars", "pyarrow")
_TYPES: Final = {Kind.COUNT: INTEGER, Kind.SCORE: FLOAT}
_WANTED_BY: Final = "to_frame()"


def run_frame(run: Run, *, backend: str | None = None, rows: str = "samples") -> Any:  # Any: a frame of the backend
    """Return the run as a data frame; see `Run.to_frame`."""
    backend = backend or next((each for each in BACKENDS if find_spec(each)), BACKENDS[0])
    if rows == "samples":
        table = SampleTable.of(run)
        names = [column.name for column in table.columns]
        types = {column.name: _TYPES.get(column.kind, TEXT) for column in table.columns}
        cells: Iterable[Sequence[object]] = (
            [cell_text(cell, column.kind) for cell, column in zip(row, table.columns, strict=True)]
            for row in table.rows()
        )
    elif rows == "outcomes":
        names = ["sample", "metric", "outcome", "value", "reason"]
        types = {name: FLOAT if name == "value" else TEXT for name in names}
        cells = map(_row, run.records())
    else:
        raise UsageError(f"rows must be samples or outcomes, got {rows!r}.")
    columns: dict[str, list[object]] = {name: [] for name in names}
    for row in cells:
        for name, cell in zip(names, row, strict=True):
            columns[name].append(cell)
    return frame_of(columns, types, backend)


def frame(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Return a data frame with one column per name. Raises UsageError if pandas is not installed."""
    pandas: Any = optional_module("pandas", wanted_by=_WANTED_BY, install="pandas")  # Any: no stubs
    found: pd.DataFrame = pandas.DataFrame(list(rows))
    return found


def frame_of(
    columns: Mapping[str, Sequence[object]], types: Mapping[str, str], backend: str
) -> Any:  # Any: a frame of the backend
    """Return the columns as a frame of `backend`. None is a missing value of the column's type.

    Raises UsageError for another backend, or if it is not installed.
    """
    if backend not in BACKENDS:
        raise UsageError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}.")
    library: Any = optional_module(backend, wanted_by=_WANTED_BY, install=backend)  # Any: no stubs
    if backend == "polars":
        return library.DataFrame(dict(columns), schema={name: getattr(library, types[name]) for name in columns})
    if backend == "pyarrow":
        return library.table({name: library.array(each, _ARROW[types[name]]) for name, each in columns.items()})
    # pandas infers its types: its integers have no missing value, and before version 3 a cast makes None a text
    return library.DataFrame(
        {
            name: values if types[name] == TEXT else [nan if value is None else value for value in values]
            for name, values in columns.items()
        }
    )


def _row(record: OutcomeRecord) -> list[object]:
    return [
        record["sample"],
        record["metric"],
        record["outcome"],
        record.get("value"),
        record.get("reason") or record.get("error", {}).get("message", ""),
    ]
