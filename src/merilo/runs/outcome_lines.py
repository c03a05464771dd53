"""Outcomes as lines: the one way to read `outcomes.jsonl`.

Every reader takes its lines from `outcome_lines`, a few at a time, so no reader holds all outcomes of a run.
`short_outcomes` reads only what aggregates need of a line, without decoding its evidence.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from merilo.runs import shapes
from merilo.runs.files import MAX_LINE_BYTES, bounded_lines, check_values

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from merilo.runs.outcomes import OutcomeRecord

SCORED, UNDEFINED, FAILED = 0, 1, 2
_STATES: Final = {"score": SCORED, "undefined": UNDEFINED, "failed": FAILED}
_BLOCK: Final = 64 * 1024
"""Bytes that are read from a file of lines at once."""
_TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_NUMBERS = rb"\{(?:" + _TEXT + rb":(?:-?[0-9]+|null),?)+\}"
_START: Final = re.compile(rb'\{"sample":(' + _TEXT + rb'),"metric":(' + _TEXT + rb"),")
_LINE: Final = re.compile(
    rb'\{"sample":(' + _TEXT + rb'),"metric":(' + _TEXT + rb'),"outcome":"(?:score","value":(-?[0-9][^,]*)'
    rb'(?:,"counts":(' + _NUMBERS + rb'))?,"evidence":|(undefined)"|failed")'
)
"""The beginning of a line as this merilo writes it; whatever else is JSON is read as such."""


class ShortOutcome(NamedTuple):
    """The parts of a line that aggregates use."""

    sample: str
    metric: str | None
    """None for a metric that is not wanted; the rest is then not read."""
    state: int
    """SCORED, UNDEFINED or FAILED."""
    value: float
    counts: Mapping[str, int | None] | None


def outcome_lines(path: Path, *, reopen: bool = False) -> Iterator[bytes]:
    """Yield the line of every outcome with its end. Raises OSError, and ValueError for a line that is too long.

    `reopen`: do not keep the file open, for a reader of more files than a process may open. It must make sure that no
    file was replaced meanwhile.
    """
    if reopen:
        yield from _lines_of_blocks(path)
    else:
        with path.open("rb") as file:
            yield from bounded_lines(file)


def _lines_of_blocks(path: Path) -> Iterator[bytes]:
    start, rest = 0, b""
    while True:
        with path.open("rb") as file:
            file.seek(start)
            block = file.read(_BLOCK)
        if not block:
            break
        start += len(block)
        *lines, rest = (rest + block).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            raise ValueError(f"a line has more than {MAX_LINE_BYTES:,} bytes")
        for line in lines:
            check_values(line)
            yield line + b"\n"
    if rest:
        yield rest


def short_outcomes(
    lines: Iterable[bytes], wanted: frozenset[str], *, with_counts: bool = False
) -> Iterator[ShortOutcome]:
    """Yield the outcome in each line. Raises ValueError for a line that is not an outcome."""
    metrics: dict[bytes, str | None] = {}
    raw, sample = b"", ""
    for line in lines:
        found = _LINE.match(line)
        if found is None or not line.endswith(b"}\n"):
            outcome = _from_json(line, wanted)
            raw, sample = b"", outcome.sample
            yield outcome
            continue
        if found[1] != raw:
            raw = found[1]
            sample = _text(raw)
        if found[2] not in metrics:
            name = _text(found[2])
            metrics[found[2]] = name if name in wanted else None
        metric, value, counts = metrics[found[2]], found[3], None
        if metric is not None and with_counts and found[4]:
            counts = _counts(found[4])
        if value is not None:
            yield ShortOutcome(sample, metric, SCORED, float(value), counts)
        else:
            yield ShortOutcome(sample, metric, UNDEFINED if found[5] else FAILED, 0.0, None)


def may_be_of(line: bytes, samples: Collection[str], metrics: Collection[str] | None) -> bool:
    """Return False if the beginning of a line shows that it is of another sample or metric; None: of any metric."""
    found = _START.match(line)
    if found is None:
        return True
    return _text(found[1]) in samples and (metrics is None or _text(found[2]) in metrics)


def record_in(line: bytes) -> OutcomeRecord:
    """Return the outcome in one line of the file. Raises ValueError for a line that is not an outcome."""
    record: Any = json.loads(line)  # Any: JSON of unknown shape
    try:
        shapes.check(shapes.Outcome, record)
    except ValueError as error:
        raise ValueError(f"in an outcome, {error}") from error
    if record["outcome"] == "score" and "value" not in record:
        raise ValueError("a score has no value")
    return cast("OutcomeRecord", record)


@lru_cache(maxsize=4_096)
def _counts(text: bytes) -> dict[str, int | None]:
    """Parse counts; cached, because many samples have the same counts."""
    found: dict[str, int | None] = json.loads(text)
    return found


def _text(quoted: bytes) -> str:
    """Return the text of a JSON string."""
    return str(json.loads(quoted)) if b"\\" in quoted else quoted[1:-1].decode()


def _from_json(line: bytes, wanted: frozenset[str]) -> ShortOutcome:
    """Return the outcome in a line that this merilo would lay out differently. Raises ValueError."""
    try:
        record: dict[str, Any] = json.loads(line)  # Any: JSON that has not been checked
        sample, metric = str(record["sample"]), str(record["metric"])
        state = _STATES[record["outcome"]]
        value = float(record["value"]) if state == SCORED else 0.0
        counts: dict[str, int | None] | None = record.get("counts")
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"a line is not an outcome: {type(error).__name__} {error}") from error
    if counts is not None:
        shapes.check(shapes.Counts, counts)
    return ShortOutcome(sample, metric if metric in wanted else None, state, value, counts)
