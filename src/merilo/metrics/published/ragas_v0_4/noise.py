"""The noise sensitivity of ragas 0.2 to 0.4."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.metrics.base import EvidenceTarget, Score, Undefined, choice
from merilo.metrics.published.asking import ReadReply
from merilo.metrics.published.ragas_v0_4.prompter import (
    JudgedMetric,
    Judgements,
    ask_statements,
    ask_verdicts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

Verdicts = ReadReply[Judgements]
"""Verdicts on the statements of one text, and the reply that holds them."""

_EMPTY: Final = "an input is empty"
_NO_STATEMENT: Final = "the response makes no statement"


class Mode(StrEnum):
    """The contexts whose errors are counted."""

    RELEVANT = "relevant"
    """Contexts that support the reference somewhere."""
    IRRELEVANT = "irrelevant"
    """All others, where no relevant context supports the statement too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSensitivity(JudgedMetric):
    """Which share of the response is wrong because of what was retrieved, as ragas scores it.

    Formula: Mean of (unsupported by the reference and supported by a relevant context), or by irrelevant ones.
    Questions: 3 + 2 N requests for N contexts: statements twice, verdicts twice a context and once more.
    Undefined: an input is empty | the response makes no statement | the reference makes no statement
    Use: To compare with noise sensitivity of ragas 0.2 to 0.4.
    Not: On many contexts: it is the dearest of these metrics.
    See: faithfulness | context_relevance
    Source: ragas 0.4.3, metrics/_noise_sensitivity.py

    A context is relevant if it supports a statement of the reference. `mode=irrelevant`: supported by an irrelevant
    context and by no relevant one. Verdict lists of unequal length fail the metric.
    """

    name: ClassVar[str] = "ragas-0.4.3:noise_sensitivity"
    version: ClassVar[int] = 1
    higher_is_better: ClassVar[bool] = False
    needs = frozenset({"user_input", "response", "reference", "retrieved_contexts"})

    mode: Mode = Mode.RELEVANT

    def __post_init__(self) -> None:
        JudgedMetric.__post_init__(self)
        object.__setattr__(self, "mode", choice(Mode, self.mode, metric=self.name, parameter="mode"))

    def max_questions(self, sample: Sample) -> int:
        return self._bound(3 + 2 * len(sample.retrieved_contexts or ()))

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, response = sample.require("user_input"), sample.require("response")
        reference, contexts = sample.require("reference"), sample.contexts
        if not (user_input and response and reference and contexts):
            return Undefined(_EMPTY)
        prompter = self._prompter()
        expected = (yield from ask_statements(prompter, user_input, reference)).value
        statements = (yield from ask_statements(prompter, user_input, response)).value
        references: list[Verdicts] = []
        responses: list[Verdicts] = []
        for context in contexts:
            references.append((yield from ask_verdicts(prompter, expected, context.text)))
            responses.append((yield from ask_verdicts(prompter, statements, context.text)))
        _check_lengths(references)
        _check_lengths(responses)
        right = yield from ask_verdicts(prompter, statements, reference)
        return self._score(references, responses, right)

    def _score(self, references: list[Verdicts], responses: list[Verdicts], right: Verdicts) -> Score | Undefined:
        if not references[0].value:
            return Undefined("the reference makes no statement")
        size = _common_length(right, responses[0])
        if not size:
            return Undefined(_NO_STATEMENT)
        relevant = [any(item.value for item in read.value) for read in references]
        wrong = [not value for value in _stretched(right, size)]
        tables = [_stretched(read, size) for read in responses]
        by_relevant = [any(t[at] for t, r in zip(tables, relevant, strict=True) if r) for at in range(size)]
        by_others = [any(t[at] for t, r in zip(tables, relevant, strict=True) if not r) for at in range(size)]
        if self.mode is Mode.RELEVANT:
            noisy = [w and r for w, r in zip(wrong, by_relevant, strict=True)]
        else:
            noisy = [w and o and not r for w, r, o in zip(wrong, by_relevant, by_others, strict=True)]
        evidence = tuple(
            right.evidence(EvidenceTarget.STATEMENT, index, int(item.value != 0), item.statement)
            for index, item in enumerate(right.value)
        ) + tuple(
            read.evidence(EvidenceTarget.CONTEXT, index, int(relevant[index])) for index, read in enumerate(references)
        )
        counts = {"statements": size, "wrong": sum(wrong), "noisy": sum(noisy), "relevant": sum(relevant)}
        return Score(sum(noisy) / size, evidence, counts)


def _check_lengths(reads: Sequence[Verdicts]) -> None:
    for read in reads:
        if len(read.value) != len(reads[0].value):
            sizes = f"{len(read.value)} verdicts where another context has {len(reads[0].value)}"
            raise read.reply.unreadable(f"The reply holds {sizes}.")


def _common_length(right: Verdicts, other: Verdicts) -> int:
    """Return the number of statements that both judge; a single verdict is used for all, as numpy broadcasts it."""
    sizes = {len(right.value), len(other.value)}
    if len(sizes - {1}) > 1:
        raise right.reply.unreadable(f"The reply holds {len(right.value)} verdicts, not {len(other.value)}.")
    return min(sizes) and max(sizes)


def _stretched(read: Verdicts, size: int) -> list[bool]:
    values = [item.value != 0 for item in read.value]
    return values * size if len(values) == 1 else values
