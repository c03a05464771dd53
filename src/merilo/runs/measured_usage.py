"""Measured usage of a run so far: means of requests, tokens and seconds by rubric, for estimates."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.runs.database import ERRORS, read_only
from merilo.runs.schema import STORE_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LEAST = 10
"""Minimum number of conversations through a rubric whose means are used to predict the next ones."""


@dataclass(frozen=True, slots=True)
class MeasuredUsage:
    """Means over the conversations of one judge through one rubric, re-asks included."""

    conversations: int
    requests: float
    input_tokens: float
    output_tokens: float
    seconds: float


def measured_in(store: Path) -> Mapping[tuple[str, bytes], MeasuredUsage]:
    """Return means by judge and digest of the rubric, if there are enough conversations and all tokens are known.

    Empty if the store cannot be read.
    """
    statement = (
        "SELECT judge, rubric, count(*), sum(requests), sum(input_tokens), sum(output_tokens), sum(seconds)"
        " FROM exchanges WHERE requests > 0 GROUP BY judge, rubric"
        " HAVING count(*) >= ? AND count(input_tokens) = count(*) AND count(output_tokens) = count(*)"
    )
    try:
        with closing(read_only(store, STORE_SCHEMA)) as db:
            rows = db.execute(statement, (LEAST,)).fetchall()
    except ERRORS:
        return {}
    return {
        (judge, rubric): MeasuredUsage(count, *(total / count for total in totals))
        for judge, rubric, count, *totals in rows
    }
