"""Comparison of response and reference in ragas 0.2 to 0.4: by statements, claims and embeddings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.ask import ask
from merilo.judging.kinds.completion import Completion
from merilo.judging.kinds.embeddings import Embeddings
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Score, Undefined
from merilo.metrics.formulas import cosine
from merilo_published.asking import on_statements
from merilo_published.definition import Published, by_parameters
from merilo_published.ragas_v0_4.prompter import (
    CLAIMS,
    JudgedMetric,
    Prompter,
    RagasV04ReplySchema,
    RefusesEmpty,
    ask_statements,
    ask_verdicts,
    f_of_counts,
)
from merilo_published.replies import fields_of, given, items_of, text_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.judging.matrix import MatrixVerdict
    from merilo_published.asking import ReadReply
    from merilo_published.ragas_v0_4.prompter import Whole
    from merilo_published.replies import Fields


_KINDS: Final = Kinds({Completion, Embeddings})
_NO_LENGTH: Final = "an embedding has no length"


@dataclass(frozen=True, slots=True)
class _Compared:
    """The cosine of two texts, None if an embedding has no length, with the embeddings."""

    cosine: float | None
    evidence: Evidence


def _compared(reference: str, response: str, *, space_for_empty: bool = True) -> Plan[_Compared]:
    texts = (reference, response)
    matrix: MatrixVerdict = yield from ask(Embeddings(tuple(text or " " * space_for_empty for text in texts)))
    return _Compared(cosine(matrix.row(0), matrix.row(1)), Evidence(EvidenceTarget.TEXT, 0, matrix))


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticSimilarity(Published):
    """How near the embeddings of response and reference are.

    Formula: Cosine; with a threshold 1 where it is reached, else 0.
    Questions: No request to the judge; one for the embeddings.
    Undefined: an embedding has no length
    Use: To compare with semantic similarity of ragas 0.2 to 0.4.
    Not: Across embedding models: the value moves with the model.
    See: ragas-0.4.3:answer_correctness
    Source: ragas 0.4.3, metrics/_answer_similarity.py

    Undefined when an embedding has no length; with a threshold that gives 0 and a flag, as upstream.

    Quirks: a `threshold` of 0 means none. An empty text is embedded as one space.
    """

    name: ClassVar[str] = "ragas-0.4.3:semantic_similarity"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset({"response", "reference"})
    asks = Kinds({Embeddings})
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "an empty text is a space"})

    threshold: float | None = None

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        reference, response = sample.require("reference"), sample.require("response")
        found = yield from _compared(reference, response)
        if found.cosine is None:
            return Score(0.0, (found.evidence,), flags=(_NO_LENGTH,)) if self.threshold else Undefined(_NO_LENGTH)
        value = float(found.cosine >= self.threshold) if self.threshold else found.cosine
        return Score(value, (found.evidence,))


@dataclass(frozen=True, slots=True)
class _Sorted:
    """The statements of response and reference by class."""

    true: tuple[str, ...]
    false: tuple[str, ...]
    missing: tuple[str, ...]


def _sorted(fields: Fields, whole: Whole) -> _Sorted:
    del whole
    found: list[tuple[str, ...]] = []
    for name in ("TP", "FP", "FN"):
        entries = [fields_of(item) for item in items_of(given(fields, name))]
        for entry in entries:
            text_in(entry, "reason")
        found.append(tuple(text_in(entry, "statement") for entry in entries))
    return _Sorted(*found)


_SORTED: Final = RagasV04ReplySchema(
    '{"TP": [{"statement": text, "reason": text}, ...], "FP": [the same], "FN": [the same]}',
    _sorted,
    '{"TP": [{"statement": "A statement.", "reason": "Both say it."}], "FP": [], "FN": []}',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCorrectness(JudgedMetric):
    """Agreement of the response with the reference, by statements and by embeddings, as ragas scores it.

    Formula: (0.75 F(TP, FP, FN) + 0.25 cosine), the weights being parameters.
    Questions: Three requests (statements of the response, of the reference, their classes) and the embeddings.
    Undefined: an embedding has no length
    Use: To compare with answer correctness of ragas 0.2 to 0.4.
    Not: To find out what is wrong: take its parts.
    See: ragas-0.4.3:factual_correctness | nvidia:answer_accuracy
    Source: ragas 0.4.3, metrics/_answer_correctness.py

    In full: (factual_weight F + similarity_weight cosine) / (sum of the weights); F from the judge's lists of true
    positives, false positives and false negatives, recall counting `beta` times as much.

    Quirks: F is 1 without a classification when neither text makes a statement; with `one_empty_is_right` also when
    only one makes none, and when the judge classifies nothing (collections). `space_for_empty`: an empty text is
    embedded as one space (not in the collections). `zero_vector_is_unlike`: an embedding without length has the
    cosine 0 (collections).
    """

    name: ClassVar[str] = "ragas-0.4.3:answer_correctness"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    needs = frozenset({"user_input", "response", "reference"})
    asks = by_parameters(lambda metric: _KINDS if metric.similarity_weight else _KINDS - {Embeddings}, _KINDS)
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({"nothing to judge": "empty inputs are judged"})

    factual_weight: float = 0.75
    similarity_weight: float = 0.25
    beta: float = 1.0
    one_empty_is_right: bool = False
    space_for_empty: bool = True
    zero_vector_is_unlike: bool = False

    def __post_init__(self) -> None:
        JudgedMetric.__post_init__(self)
        weights = (self.factual_weight, self.similarity_weight)
        if not (all(0 <= weight < inf for weight in weights) and any(weights)):
            raise UsageError(f"Metric {self.name!r} takes finite weights of at least 0, not both 0, got {weights}.")

    def max_questions(self, sample: Sample) -> int:
        del sample
        return self._bound(3) + 1

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input = sample.require("user_input")
        response, reference = sample.require("response"), sample.require("reference")
        prompter = self._prompter()
        of_response = yield from ask_statements(prompter, user_input, response)
        of_reference = yield from ask_statements(prompter, user_input, reference)
        f, counts = 1.0, {"TP": 0, "FP": 0, "FN": 0}
        evidence: tuple[Evidence, ...] = (
            of_response.evidence(EvidenceTarget.TEXT, 0),
            of_reference.evidence(EvidenceTarget.TEXT, 0),
        )
        needed = all if self.one_empty_is_right else any
        if needed((of_response.value, of_reference.value)):
            read = yield from self._classes(prompter, user_input, of_response.value, of_reference.value)
            counts = {"TP": len(read.value.true), "FP": len(read.value.false), "FN": len(read.value.missing)}
            f = self._f(counts)
            evidence = _classified(read)
        if not self.similarity_weight:
            return Score(f, evidence, counts)
        found = yield from _compared(reference, response, space_for_empty=self.space_for_empty)
        if found.cosine is None and not self.zero_vector_is_unlike:
            return Undefined(_NO_LENGTH)
        total = self.factual_weight + self.similarity_weight
        value = (self.factual_weight * f + self.similarity_weight * (found.cosine or 0.0)) / total
        flags = (f"{_NO_LENGTH} and was scored 0",) if found.cosine is None else ()
        return Score(value, (*evidence, found.evidence), counts, flags)

    def _classes(
        self, prompter: Prompter, user_input: str, of_response: Sequence[str], of_reference: Sequence[str]
    ) -> Plan[ReadReply[_Sorted]]:
        values = {
            "user_input": user_input,
            "answer": json.dumps(list(of_response), ensure_ascii=False),
            "reference": json.dumps(list(of_reference), ensure_ascii=False),
        }
        return (yield from prompter.ask("correctness", values, _SORTED))

    def _f(self, counts: Mapping[str, int]) -> float:
        if self.one_empty_is_right and not any(counts.values()):
            return 1.0
        return f_of_counts(counts["TP"], counts["FP"], counts["FN"], self.beta)


def _classified(read: ReadReply[_Sorted]) -> tuple[Evidence, ...]:
    classes = ((read.value.true, 1), (read.value.false, 0), (read.value.missing, 0))
    return on_statements(read.reply.verdict, ((value, text) for texts, value in classes for text in texts))


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
class FactualCorrectness(RefusesEmpty):
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
    although there are no claims (not in the collections). `refuses_empty` as in `Faithfulness`.
    """

    name: ClassVar[str] = "ragas-0.4.3:factual_correctness"
    needs = frozenset({"response", "reference"})

    mode: FactualMode = FactualMode.F1
    beta: float = 1.0
    atomicity: Detail = Detail.LOW
    coverage: Detail = Detail.LOW
    asks_about_nothing: bool = True

    def max_questions(self, sample: Sample) -> int:
        del sample
        return self._bound(2 if self.mode is FactualMode.PRECISION else 4)

    def judged(self, sample: Sample, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        del sample
        prompter, response, reference = self._prompter(), texts["response"], texts["reference"]
        evidence, flags = list[Evidence](), list[str]()
        supported = yield from self._checked(prompter, response, reference, evidence, flags)
        covered: list[bool] = []
        if self.mode is not FactualMode.PRECISION:
            covered = yield from self._checked(prompter, reference, response, evidence, flags)
        true, missing = sum(supported), len(covered) - sum(covered)
        counts = {"TP": true, "FP": len(supported) - true, "FN": missing}
        value = self._value(true, len(supported) - true, missing)
        return Score(round(value * 100) / 100, tuple(evidence), counts, tuple(flags))

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
