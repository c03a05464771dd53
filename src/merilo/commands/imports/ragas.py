"""Detection of results of ragas 0.1.0 to 0.1.9 whose scores may be in the wrong rows.

Those versions run one job for each row and metric, row by row, and sort the results by the number of the job. A job
that raises an exception gets the number -1 (if `raise_exceptions=False`), so its NaN moves to the front and the scores
before it move back by one job: to the next metric, and from the last metric to the first one of the next row.
0.1.10 keeps the order. The file does not say which version wrote it, and the columns of all 0.1 versions are the same.
"""

from __future__ import annotations

from math import isnan, nan
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FIELDS: Final = frozenset({"question", "contexts", "answer", "ground_truth"})
"""The names that ragas before 0.2 gives to fields; a result has at least two of them."""
_METRICS: Final = (
    *("faithfulness", "answer_relevancy", "context_precision", "context_utilization", "context_recall"),
    *("context_relevancy", "context_entity_recall", "answer_similarity", "answer_correctness"),
    *("harmfulness", "maliciousness", "coherence", "correctness", "conciseness"),
)
"""The names that the affected versions give to metrics; users name their own critiques."""


def unscored_at_the_front(
    columns: Sequence[str], numeric: Sequence[str], first: Mapping[str, float], *, found: bool
) -> str | None:
    """Return the column of scores that shows that scores may be in the wrong rows, or None if they are in order.

    If any job failed, the first result of all is NaN: that of the first row and the first metric. The columns of the
    data come first, then the metrics in their order, so the first metric is at or before the first known name. If the
    first row lacks a metric's column altogether, someone dropped missing values, and that metric may be the first.

    Args:
        columns: all columns in their order.
        numeric: those of them, in order, that may hold scores.
        first: the numbers in the first row, by column; NaN for a value that is not a number.
        found: True if the table is known to be a result of ragas; otherwise a column must have the name of a metric.
    """
    known = [place for place, name in enumerate(numeric) if name in _METRICS]
    if len(_FIELDS.intersection(columns)) < 2 or not (known or found):
        return None
    candidates = numeric[: known[0] + 1] if known else numeric
    dropped = (name for name in numeric if name in _METRICS and name not in first)
    return next((name for name in candidates if isnan(first.get(name, nan))), None) or next(dropped, None)


def order_unknown(file: str, column: str) -> str:
    """Return the message that refuses a result whose scores may be in the wrong rows."""
    return (
        f"{file}: the first row has no score in {column!r}. ragas 0.1.0 to 0.1.9 moves the scores that failed to the "
        "front, so the other scores may be in the wrong rows. Run ragas again with raise_exceptions=True, or with "
        "ragas 0.1.10 or later. If ragas 0.1.10 or later wrote this file, add --in-order (in_order=True)."
    )
