"""The details of several samples of a run, read in one pass over its outcomes."""

from __future__ import annotations

from json.encoder import encode_basestring
from typing import TYPE_CHECKING

from merilo.errors import RunError
from merilo.results.sample_detail import SampleDetail
from merilo.runs.run import OUTCOMES, SampleResult, open_store

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
    records = _records(run, samples)
    store = open_store(run)
    try:
        texts = {sample: store.sample(sample) for sample in records}
    finally:
        store.close()
    found: dict[str, SampleDetail] = {}
    for sample in samples:
        text = texts.get(sample)
        if text is None:
            found[sample] = SampleDetail.of(
                run, sample
            )  # reads lines that are laid out differently; raises if there are none
            continue
        keys = dict.fromkeys(key for record in records[sample] for key in record.get("trail", []))
        found[sample] = SampleDetail(SampleResult.of(text, records[sample]), tuple(run.asked(list(keys))))
    return found


def _records(run: Run, samples: Sequence[str]) -> dict[str, list[OutcomeRecord]]:
    """Return the outcomes of these samples, found by the beginning of their lines as merilo writes them."""
    starts = tuple(f'{{"sample":{encode_basestring(sample)},'.encode("utf-8", "replace") for sample in samples)
    path = run.file(OUTCOMES)
    found: dict[str, list[OutcomeRecord]] = {}
    try:
        with path.open("rb") as lines:
            for line in lines:
                if line.startswith(starts):
                    record = run.record(line)
                    found.setdefault(record["sample"], []).append(record)
    except (OSError, ValueError) as error:
        raise RunError(f"{path} is damaged ({error}); repeat the run with the same directory.") from error
    return found
