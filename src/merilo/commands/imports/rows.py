"""The rows of a file of scores, whichever tool wrote it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.commands.imports.deepeval import deepeval_rows
from merilo.commands.imports.exports import export_rows
from merilo.commands.imports.tables import table_rows
from merilo.commands.imports.trulens import trulens_rows

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from merilo.commands.imports.tables import Rows


def score_rows(
    source: str | PathLike[str],
    *,
    id: str | None = None,
    scores: Mapping[str, object],
    mapping: Mapping[str, str] | None = None,
    in_order: bool = False,
) -> Rows:
    """Return the rows of a DeepEval test run, TruLens records, another system's export, a ragas result or a table.

    Raises DataError and UsageError as `table_rows` does.
    """
    return (
        deepeval_rows(source, id=id, scores=scores)
        or (trulens_rows(source, id=id, scores=scores) if not mapping else None)
        or (export_rows(source, scores=scores) if not mapping and id is None else None)
        or table_rows(source, id=id, scores=scores, mapping=mapping, in_order=in_order)
    )
