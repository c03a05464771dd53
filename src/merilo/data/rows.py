"""Tables with one row for each context: the rows of one question as one record."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.data.context import MAX_CONTEXTS
from merilo.data.lines import RawRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from merilo.data.aliases import Planner
    from merilo.data.sample import Sample

_CONTEXTS: Final = "retrieved_contexts"


class _Row(NamedTuple):
    """The values of all other fields in a row, and its only context, in a column."""

    others: tuple[object, ...]
    column: str
    text: str

    def continues(self, row: _Row) -> bool:
        """Return True if this is a further context of another row: all else is equal, or blank as in merged cells."""
        is_blank = all(each is None or each == "" for each in self.others)
        return self.column == row.column and self.text != row.text and (is_blank or self.others == row.others)


def _row(record: Mapping[str, object], planner: Planner) -> _Row | None:
    fields = dict(planner.plan(record).fields)
    found = fields.pop(_CONTEXTS, ())
    if "user_input" not in fields or len(found) != 1 or len(found[0].columns) != 1:
        return None
    text = record[found[0].columns[0]]
    if not isinstance(text, str) or not text.strip() or text.lstrip()[0] in "[{(":
        return None
    others = tuple(record[source.columns[0]] for source, *_ in fields.values())
    return _Row(others, found[0].columns[0], text)


def has_rows_of_contexts(records: Iterable[Mapping[str, object]], planner: Planner) -> bool:
    """Return True if a question has several adjacent rows, which differ in their only context."""
    rows = [_row(record, planner) for record in records]
    return any(one is not None and other is not None and other.continues(one) for one, other in pairwise(rows))


def joined_rows(
    rows: Iterable[RawRecord | Sample], present: Callable[[Mapping[str, object]], dict[str, object]], planner: Planner
) -> Iterator[RawRecord | Sample]:
    """Yield the records, with the adjacent rows of one question as one record at the place of the first."""
    first: RawRecord | None = None
    last: _Row | None = None
    texts: list[str] = []
    for raw in chain(rows, (None,)):
        is_row = isinstance(raw, RawRecord) and raw.value is not None and not raw.problems
        row = _row(present(raw.value or {}), planner) if is_row and isinstance(raw, RawRecord) else None
        if row is not None and last is not None and row.continues(last):
            texts += [row.text] if len(texts) <= MAX_CONTEXTS else []
            last = last._replace(text=row.text)
            continue
        if first is not None and first.value is not None and last is not None:
            yield first._replace(value={**first.value, last.column: texts})
        first, last, texts = (
            (raw, row, [row.text]) if row is not None and isinstance(raw, RawRecord) else (None, None, [])
        )
        if row is None and raw is not None:
            yield raw
