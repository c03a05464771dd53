"""Outcomes as JSON records and back: one line of a run's `outcomes.jsonl` per sample and metric."""

from __future__ import annotations

from dataclasses import dataclass
from json.encoder import encode_basestring
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from merilo.judging.json_types import compact
from merilo.judging.registry import KINDS, kind_of
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import Evidence, EvidenceTarget, Failed, Outcome, Score, Undefined

if TYPE_CHECKING:
    from collections.abc import Mapping


class EvidenceRecord(TypedDict):
    """One piece of evidence; `question` is the hex key of the question asked, None if none was needed."""

    about: str
    index: int
    text: NotRequired[str]
    value: NotRequired[float]
    kind: str
    verdict: dict[str, Any]  # Any: the fields of the verdict type named by `kind`
    question: str | None


class OutcomeRecord(TypedDict):
    """One outcome, as stored and as `Run.records()` yields it."""

    sample: str
    metric: str
    outcome: Literal["score", "undefined", "failed"]
    value: NotRequired[float]
    counts: NotRequired[dict[str, int | None]]
    evidence: NotRequired[list[EvidenceRecord]]
    flags: NotRequired[list[str]]
    averaged: NotRequired[bool]
    draws: NotRequired[list[float]]
    reason: NotRequired[str]
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
        record: OutcomeRecord = {"sample": self.sample, "metric": self.metric, "outcome": "score"}
        match self.outcome:
            case Score():
                record["value"] = self.outcome.value
                if self.outcome.counts:
                    record["counts"] = dict(self.outcome.counts)
                record["evidence"] = [self._evidence(piece) for piece in self.outcome.evidence]
                if self.outcome.flags:
                    record["flags"] = list(self.outcome.flags)
                if self.outcome.averaged:
                    record["averaged"] = True
                if self.outcome.draws:
                    record["draws"] = list(self.outcome.draws)
            case Undefined():
                record["outcome"] = "undefined"
                record["reason"] = self.outcome.reason
            case Failed():
                record["outcome"] = "failed"
                record["error"] = self.outcome.error.to_fields()
        record["trail"] = [key.hex() for key in self.trail]
        return record

    def line(self) -> str:
        """Return `record()` as one line of compact JSON. A verdict's JSON is copied as it is in the run's store."""
        outcome = self.outcome
        start = f'{{"sample":{_quoted(self.sample)},"metric":{_quoted(self.metric)},"outcome":'
        trail = f',"trail":{_keys_text(self.trail)}}}\n'
        if isinstance(outcome, Undefined):
            return f'{start}"undefined","reason":{_quoted(outcome.reason)}{trail}'
        if isinstance(outcome, Failed):
            kind, message = outcome.error.kind, outcome.error.message
            return f'{start}"failed","error":{{"kind":{_quoted(kind)},"message":{_quoted(message)}}}{trail}'
        counts = f',"counts":{compact(dict(outcome.counts))}' if outcome.counts else ""
        evidence = ",".join([self._evidence_text(piece) for piece in outcome.evidence])
        flags = f',"flags":{compact(list(outcome.flags))}' if outcome.flags else ""
        averaged = ',"averaged":true' if outcome.averaged else ""
        draws = f',"draws":[{",".join(map(_number, outcome.draws))}]' if outcome.draws else ""
        value = _number(outcome.value)
        return f'{start}"score","value":{value}{counts},"evidence":[{evidence}]{flags}{averaged}{draws}{trail}'

    def _evidence_text(self, piece: Evidence) -> str:
        key = self.keys.get(id(piece.verdict)) if self.keys else None
        asked = f'"{key.hex()}"' if key else "null"
        text = f',"text":{_quoted(piece.text)}' if piece.text else ""
        value = "" if piece.value is None else f',"value":{_number(piece.value)}'
        return (
            f'{{"about":"{piece.about.value}","index":{piece.index},"kind":"{kind_of(piece.verdict)}",'
            f'"verdict":{piece.verdict.to_json()},"question":{asked}{text}{value}}}'
        )

    def _evidence(self, piece: Evidence) -> EvidenceRecord:
        key = (self.keys or {}).get(id(piece.verdict))
        record: EvidenceRecord = {
            "about": piece.about.value,
            "index": piece.index,
            "kind": kind_of(piece.verdict),
            "verdict": piece.verdict.to_fields(),
            "question": key.hex() if key else None,
        }
        if piece.text:
            record["text"] = piece.text
        if piece.value is not None:
            record["value"] = piece.value
        return record


def _number(value: float) -> str:
    return repr(value) if type(value) is float and isfinite(value) else compact(value)


def _keys_text(keys: tuple[bytes, ...]) -> str:
    return '["' + '","'.join([key.hex() for key in keys]) + '"]' if keys else "[]"


_quoted = encode_basestring


def outcome_from(record: OutcomeRecord) -> Outcome:
    """Return the outcome in a record that `Result.record` made."""
    if record["outcome"] == "undefined":
        return Undefined(record.get("reason", ""))
    if record["outcome"] == "failed":
        error = record.get("error", {})
        return Failed(Failure(FailureKind(error.get("kind", "broken")), error.get("message", "")))
    evidence = tuple(_evidence_from(piece) for piece in record.get("evidence", []))
    flags = tuple(record.get("flags", ()))
    averaged, draws = record.get("averaged", False), tuple(record.get("draws", ()))
    return Score(record.get("value", float("nan")), evidence, record.get("counts", {}), flags, averaged, draws)


def _evidence_from(record: EvidenceRecord) -> Evidence:
    verdict = KINDS[record["kind"]].verdict.from_fields(record["verdict"])
    text, value = record.get("text", ""), record.get("value")
    return Evidence(EvidenceTarget(record["about"]), record["index"], verdict, text, value)
