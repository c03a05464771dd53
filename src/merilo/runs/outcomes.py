"""Outcomes as JSON records and back: one line of a run's `outcomes.jsonl` per sample and metric.

Every reader takes its lines from `outcome_lines`, a few at a time, so no reader holds all outcomes of a run.
`short_outcomes` reads only what aggregates need of a line, without decoding its evidence.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from json.encoder import encode_basestring
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, NotRequired, cast

from typing_extensions import TypedDict  # pydantic reads those of typing from Python 3.12 on

from merilo.judging.json_types import compact
from merilo.judging.registry import KINDS, kind_of
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import Evidence, EvidenceTarget, Failed, Outcome, Score, Undefined
from merilo.runs.files import MAX_LINE_BYTES, bounded_lines
from merilo.runs.manifest import Counts, Number, check_shape

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path


class EvidenceRecord(TypedDict):
    """One piece of evidence; `question` is the hex key of the question asked, None if none was needed."""

    about: str
    index: int
    text: NotRequired[str]
    value: NotRequired[Number]
    kind: str
    verdict: dict[str, Any]  # Any: the fields of the verdict type named by `kind`
    question: str | None


class OutcomeRecord(TypedDict):
    """One outcome, as stored and as `Run.records()` yields it."""

    sample: str
    metric: str
    outcome: Literal["score", "undefined", "failed"]
    value: NotRequired[Number]
    counts: NotRequired[Counts]
    evidence: NotRequired[list[EvidenceRecord]]
    flags: NotRequired[list[str]]
    averaged: NotRequired[bool]
    draws: NotRequired[list[Number]]
    reason: NotRequired[str]
    probability: NotRequired[Number]
    error: NotRequired[dict[str, str]]
    trail: NotRequired[list[str]]


@dataclass(frozen=True, slots=True)
class Result:
    """One metric's outcome on one sample, with the keys of the questions asked, in order."""

    sample: str
    metric: str
    outcome: Outcome
    trail: tuple[bytes, ...] = ()
    keys: Mapping[int, bytes] | None = None
    """`id(verdict)` → key, while the verdicts of the plan are alive; None if read back."""

    def record(self) -> OutcomeRecord:
        """Return this result as a JSON-able record."""
        return cast("OutcomeRecord", json.loads(self.line()))  # what `line` wrote

    def line(self) -> str:
        """Return this result as one line of compact JSON. A verdict's JSON is copied as it is in the run's store."""
        outcome = self.outcome
        start = f'{{"sample":{_quoted(self.sample)},"metric":{_quoted(self.metric)},"outcome":'
        keys = '["' + '","'.join([key.hex() for key in self.trail]) + '"]' if self.trail else "[]"
        trail = f',"trail":{keys}}}\n'
        if isinstance(outcome, Undefined):
            given = f',"evidence":[{self._evidence_texts(outcome)}]' if outcome.evidence else ""
            open_at = "" if outcome.probability is None else f',"probability":{_number(outcome.probability)}'
            return (
                f'{start}"undefined","reason":{_quoted(outcome.reason)}{open_at}{_counts_text(outcome)}{given}{trail}'
            )
        if isinstance(outcome, Failed):
            kind, message = outcome.error.kind, outcome.error.message
            return f'{start}"failed","error":{{"kind":{_quoted(kind)},"message":{_quoted(message)}}}{trail}'
        counts = _counts_text(outcome)
        evidence = self._evidence_texts(outcome)
        flags = f',"flags":{compact(list(outcome.flags))}' if outcome.flags else ""
        averaged = ',"averaged":true' if outcome.averaged else ""
        draws = f',"draws":[{",".join(map(_number, outcome.draws))}]' if outcome.draws else ""
        value = _number(outcome.value)
        return f'{start}"score","value":{value}{counts},"evidence":[{evidence}]{flags}{averaged}{draws}{trail}'

    def _evidence_texts(self, outcome: Score | Undefined) -> str:
        return ",".join([self._evidence_text(piece) for piece in outcome.evidence])

    def _evidence_text(self, piece: Evidence) -> str:
        key = self.keys.get(id(piece.verdict)) if self.keys else None
        asked = f'"{key.hex()}"' if key else "null"
        text = f',"text":{_quoted(piece.text)}' if piece.text else ""
        value = "" if piece.value is None else f',"value":{_number(piece.value)}'
        return (
            f'{{"about":"{piece.about}","index":{piece.index},"kind":"{kind_of(piece.verdict)}",'
            f'"verdict":{piece.verdict.to_json()},"question":{asked}{text}{value}}}'
        )


def _counts_text(outcome: Score | Undefined) -> str:
    return f',"counts":{compact(dict(outcome.counts))}' if outcome.counts else ""


def _number(value: float) -> str:
    return repr(value) if type(value) is float and isfinite(value) else compact(value)


_quoted = encode_basestring


def outcome_from(record: OutcomeRecord) -> Outcome:
    """Return the outcome in a record that `Result.record` made."""
    if record["outcome"] == "failed":
        error = record.get("error", {})
        return Failed(Failure(FailureKind(error.get("kind", "broken")), error.get("message", "")))
    evidence = tuple(_evidence_from(piece) for piece in record.get("evidence", []))
    if record["outcome"] == "undefined":
        return Undefined(record.get("reason", ""), evidence, record.get("probability"), record.get("counts", {}))
    flags = tuple(record.get("flags", ()))
    averaged, draws = record.get("averaged", False), tuple(record.get("draws", ()))
    return Score(record.get("value", float("nan")), evidence, record.get("counts", {}), flags, averaged, draws)


def _evidence_from(record: EvidenceRecord) -> Evidence:
    verdict = KINDS[record["kind"]].verdict.from_fields(record["verdict"])
    text, value = record.get("text", ""), record.get("value")
    return Evidence(EvidenceTarget(record["about"]), record["index"], verdict, text, value)


SCORED, UNDEFINED, FAILED = 0, 1, 2
_STATES: Final = {"score": SCORED, "undefined": UNDEFINED, "failed": FAILED}
_BLOCK: Final = 64 * 1024
"""Bytes that are read from a file of lines at once."""
_TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_NUMBERS = rb"\{(?:" + _TEXT + rb":(?:-?[0-9]+|null),?)+\}"
_START: Final = re.compile(rb'\{"sample":(' + _TEXT + rb'),"metric":(' + _TEXT + rb"),")
_LINE: Final = re.compile(
    rb'\{"sample":(' + _TEXT + rb'),"metric":(' + _TEXT + rb'),"outcome":"(?:score","value":(-?[0-9][^,]*)'
    rb'(?:,"counts":' + _NUMBERS + rb')?,"evidence":|(undefined)"|failed")'
)
"""The beginning of a line as merilo writes it; whatever else is JSON is read as such."""


class ShortOutcome(NamedTuple):
    """The parts of a line that aggregates use."""

    sample: str
    metric: str | None
    """None for a metric that is not wanted; the rest is then not read."""
    state: int
    """SCORED, UNDEFINED or FAILED."""
    value: float


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
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def short_outcomes(lines: Iterable[bytes], wanted: frozenset[str]) -> Iterator[ShortOutcome]:
    """Yield the outcome in each line. Raises ValueError for a line that is not an outcome."""
    metrics: dict[bytes, str | None] = {}
    raw, sample = b"", ""
    for line in lines:
        found = _LINE.match(line)
        if found is None or not line.endswith(b"}\n"):
            record = record_in(line)  # laid out in another way
            raw, sample, name = b"", record["sample"], record["metric"]
            state, amount = _STATES[record["outcome"]], record.get("value", 0.0)
            yield ShortOutcome(sample, name if name in wanted else None, state, amount)
            continue
        if found[1] != raw:
            raw = found[1]
            sample = _text(raw)
        if found[2] not in metrics:
            name = _text(found[2])
            metrics[found[2]] = name if name in wanted else None
        metric, value = metrics[found[2]], found[3]
        if value is not None:
            yield ShortOutcome(sample, metric, SCORED, float(value))
        else:
            yield ShortOutcome(sample, metric, UNDEFINED if found[4] else FAILED, 0.0)


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
        check_shape(OutcomeRecord, record)
    except ValueError as error:
        raise ValueError(f"in an outcome, {error}") from error
    if record["outcome"] == "score" and "value" not in record:
        raise ValueError("a score has no value")
    return cast("OutcomeRecord", record)


def _text(quoted: bytes) -> str:
    return str(json.loads(quoted)) if b"\\" in quoted else quoted[1:-1].decode()
