"""Comparison of the claims of response and reference in ragas 0.2 to 0.4."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.metrics.base import Evidence, EvidenceTarget, Score, Undefined, choice
from merilo.metrics.published.ragas_v0_4.prompter import (
    CLAIMS,
    JudgedMetric,
    Prompter,
    ask_verdicts,
    check_beta,
    f_of_counts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

_EPSILON: Final = 1e-8


class FactualMode(StrEnum):
    """The number to report."""

    F1 = "f1"
    PRECISION = "precision"
    RECALL = "recall"


class Detail(StrEnum):
    """The size of the claims into which a text is split."""

    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactualCorrectness(JudgedMetric):
    """How many of the claims of response and reference the other text supports, as ragas scores it.

    Formula: F measure of TP, FP (claims of the response) and FN (claims of the reference), to 2 decimals.
    Questions: Two requests for each text (one text for mode=precision): its claims, then verdicts on them.
    Undefined: an input is empty (collections)
    Use: To compare with factual correctness of ragas 0.2 to 0.4.
    Not: To compare close systems: the value is rounded.
    See: ragas-0.4.3:answer_correctness
    Source: ragas 0.4.3, metrics/_factual_correctness.py

    TP and FP are the response's claims that the reference supports or not, FN the reference's claims that the response
    does not support. By `mode`: the F measure with `beta`, precision TP / (TP + FP + 1e-8), or recall TP / (TP + FN +
    1e-8). 0 when there are no claims.

    `atomicity`, `coverage`: how small the claims are, and how much of a text they cover. Quirks: recall counts
    claims of the response above and claims of the reference below. `asks_about_nothing`: verdicts are asked for
    although there are no claims (not in the collections). `decimals`. `refuses_empty` as in `Faithfulness`.
    """

    name: ClassVar[str] = "ragas-0.4.3:factual_correctness"
    version: ClassVar[int] = 1
    needs = frozenset({"response", "reference"})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "refuses_empty"})

    mode: FactualMode = FactualMode.F1
    beta: float = 1.0
    atomicity: Detail = Detail.LOW
    coverage: Detail = Detail.LOW
    decimals: int = 2
    asks_about_nothing: bool = True
    refuses_empty: bool = False

    def __post_init__(self) -> None:
        JudgedMetric.__post_init__(self)
        check_beta(self.name, self.beta)
        if not 0 <= self.decimals <= 15:
            raise UsageError(f"Metric {self.name!r} rounds to 0 to 15 decimals, got decimals={self.decimals}.")
        put = object.__setattr__  # a frozen class has no other way
        put(self, "mode", choice(FactualMode, self.mode, metric=self.name, parameter="mode"))
        put(self, "atomicity", choice(Detail, self.atomicity, metric=self.name, parameter="atomicity"))
        put(self, "coverage", choice(Detail, self.coverage, metric=self.name, parameter="coverage"))

    def max_questions(self, sample: Sample) -> int:
        del sample
        return self._bound(2 if self.mode is FactualMode.PRECISION else 4)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        response, reference = sample.require("response"), sample.require("reference")
        if self.refuses_empty and not (response and reference):
            return Undefined("an input is empty")
        prompter = self._prompter()
        evidence, flags = list[Evidence](), list[str]()
        supported = yield from self._checked(prompter, response, reference, evidence, flags)
        covered: list[bool] = []
        if self.mode is not FactualMode.PRECISION:
            covered = yield from self._checked(prompter, reference, response, evidence, flags)
        true, missing = sum(supported), len(covered) - sum(covered)
        counts = {"TP": true, "FP": len(supported) - true, "FN": missing}
        value = self._value(true, len(supported) - true, missing)
        scale = 10**self.decimals
        return Score(round(value * scale) / scale, tuple(evidence), counts, tuple(flags))

    def _value(self, true: int, false: int, missing: int) -> float:
        match self.mode:
            case FactualMode.PRECISION:
                return true / (true + false + _EPSILON)
            case FactualMode.RECALL:
                return true / (true + missing + _EPSILON)
            case FactualMode.F1:
                return f_of_counts(true, false, missing, self.beta)

    def _checked(
        self, prompter: Prompter, text: str, against: str, evidence: list[Evidence], flags: list[str]
    ) -> Plan[list[bool]]:
        """Return for each claim of a text whether the other one supports it; adds to `evidence` and `flags`."""
        values = {"text": text, "atomicity": str(self.atomicity), "coverage": str(self.coverage)}
        claims = (yield from prompter.ask("claims", values, CLAIMS)).value
        if not claims and not self.asks_about_nothing:
            return []
        read = yield from ask_verdicts(prompter, claims, against)
        if len(read.value) != len(claims):
            flags.append(f"{len(read.value)} verdicts came for {len(claims)} claims")
        found = [item.value != 0 for item in read.value]
        for item, value in zip(read.value, found, strict=True):
            evidence.append(read.evidence(EvidenceTarget.STATEMENT, len(evidence), int(value), item.statement))
        return found
