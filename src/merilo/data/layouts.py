"""One JSON object as records: a list under a key, columns of values, records by their ids, or one record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.data import check
from merilo.data.aliases import TEXT_FIELDS, aliases
from merilo.data.fit import are_messages
from merilo.data.sample import FIELDS
from merilo.errors import DataError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

WRAPPERS: Final = ("samples", "data", "rows")
"""Keys whose array holds the records, whatever the other keys hold."""
_MESSAGES: Final = "messages"
NEEDED: Final = "an array of objects, or an object that contains one as 'samples', 'data' or 'rows'"
_ADVICE: Final = "write the records as an array, or as JSON Lines with one object per line"


def records_in(
    value: Mapping[str, object], choose: str = "write one of them to another file"
) -> list[Mapping[str, object]]:
    """Return the records that an object holds in one of the forms that tools write. `choose`: advice for several lists.

    Raises DataError for several lists of records, for columns of different lengths and for anything else.
    """
    known = {name: field for name in value if (field := aliases().field_of(name)) in FIELDS}
    is_one = any(_is_text(value[name], field) for name, field in known.items()) or are_messages(value.get(_MESSAGES))
    listed = {name: items for name in value if name not in known and (items := _objects(value[name]))}
    records = {name: items for name, items in listed.items() if name in WRAPPERS}
    records = records or {name: items for name, items in listed.items() if any(map(_is_record, items))}
    records = records or ({} if is_one else listed)
    if check.is_list(names := value.get("columns")) and check.is_list(rows := value.get("data")):  # pandas: split
        return [dict(zip(map(str, names), row, strict=False)) for row in rows if check.is_list(row)]
    if len(records) > 1:
        named = ", ".join(f"{name!r} ({len(items):,})" for name, items in records.items())
        raise DataError.of(Problem("one list of records", f"several: {named}", advice=choose))
    if records:
        return [*next(iter(records.values()))]
    if is_one:
        return [value]
    if (
        columns := {name: [*items] for name, items in value.items() if check.is_list(items)}
    ) and known.keys() & columns:
        return _of_columns(value, columns, known)
    rows_by_id = {name: item for name, item in value.items() if check.is_record(item)}
    if value and len(rows_by_id) == len(value):
        keys = [*next(iter(rows_by_id.values()))]
        if known and all(
            [*item] == keys for item in rows_by_id.values()
        ):  # pandas: each column by the names of its rows
            return [{name: item[key] for name, item in rows_by_id.items()} for key in keys]
        if all(_is_record(item) for item in rows_by_id.values()):
            return [item if "id" in item else {"id": name, **item} for name, item in rows_by_id.items()]
    raise DataError.of(Problem(NEEDED, check.shown(value), advice=_ADVICE))


def _of_columns(
    value: Mapping[str, object], columns: Mapping[str, list[object]], known: Mapping[str, str]
) -> list[Mapping[str, object]]:
    """Return one record for each position in lists of equal length; any other value belongs to each record."""
    if not any(known.get(name) in TEXT_FIELDS for name in columns):
        got = f"lists in {', '.join(map(repr, columns))} alone, which may be one record or columns of several"
        raise DataError.of(Problem("a column of questions or answers", got, advice=_ADVICE))
    lengths = {name: len(items) for name, items in columns.items()}
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{name!r} ({number:,})" for name, number in lengths.items())
        raise DataError.of(Problem("columns of equal length", got))
    rest = {name: item for name, item in value.items() if name not in columns}
    return [{**rest, **dict(zip(columns, items, strict=True))} for items in zip(*columns.values(), strict=True)]


def _is_text(value: object, field: str) -> bool:
    return field in TEXT_FIELDS and (isinstance(value, str) or are_messages(value))


def _objects(value: object) -> list[Mapping[str, object]]:
    """Return the items of a list of objects; an empty list for any other value."""
    return [each for each in value if check.is_record(each)] if check.is_list(value) and value else []


def _is_record(item: object) -> bool:
    """Return True for an object with a field of a sample, which a context or a message has not."""
    return check.is_record(item) and any(aliases().field_of(name) in FIELDS for name in item)
