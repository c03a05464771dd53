"""The details of several samples of a run, read in one pass over its outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.errors import RunError
from merilo.results.sample_detail import SampleDetail
from merilo.runs.run import SampleResult, open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.runs.outcomes import OutcomeRecord
    from merilo.runs.run import Run


def cases_of(run: Run, samples: Sequence[str]) -> dict[str, SampleDetail]:
    """Return these samples of the run by id, with their outcomes and questions.

    Raises RunError if the run has no outcome of one of them.
    """
    if not samples:
        return {}
    records: dict[str, list[OutcomeRecord]] = {}
    for record in run.records_of(frozenset(samples)):
        records.setdefault(record["sample"], []).append(record)
    store = open_store(run)
    try:
        texts = {sample: store.sample(sample) for sample in records}
    finally:
        store.close()
    found: dict[str, SampleDetail] = {}
    for sample in samples:
        text = texts.get(sample)
        if text is None:
            raise RunError(f"{run.path} has no outcome of a sample with the id {sample!r}.")
        keys = dict.fromkeys(key for record in records[sample] for key in record.get("trail", []))
        found[sample] = SampleDetail(SampleResult.of(text, records[sample]), tuple(run.asked(list(keys))))
    return found
