"""Context relevance: the fraction of the retrieved text that helps to answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.kinds.relevance import TOP_GRADE, Relevance
from merilo.metrics.base import Kinds, Score, Undefined, choice
from merilo.metrics.formulas import mean
from merilo.metrics.steps import (
    BLANK_USER_INPUT,
    NOTHING_RETRIEVED,
    about_contexts,
    any_averaged,
    check_evidence,
    is_blank,
    max_contexts,
    mean_credit,
    relevance_of_contexts,
)
from merilo.metrics.variants import RetrievalMetric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.data.sample import Context, Sample
    from merilo.judging.ask import Plan
    from merilo.judging.kinds.relevance import RelevanceVerdict


class Unit(StrEnum):
    """Units in which relevant text is counted."""

    GRADE = "grade"
    """Each context counts by its grade: 0, a half or 1."""
    CONTEXT = "context"
    """Each context counts as relevant or not."""
    SENTENCE = "sentence"
    """Each sentence of all contexts counts as evidence or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRelevance(RetrievalMetric):
    """Share of the retrieved text that helps to answer the user input.

    Meaning: retrieved text that helps
    Formula: unit=grade: mean of grade / 2 over the contexts. unit=context: share of contexts with a grade of at least
        `at`. unit=sentence: evidence sentences / all sentences. If the judge's probabilities are averaged, a context
        counts as its probability of being relevant (not with at=2 or unit=sentence).
    Questions: One Relevance question for each context that is not blank.
    Undefined: no context was retrieved | the user input is blank
    Use: To see how much noise the retriever returns, whatever the order.
    Not: To see whether the answer was found: one good context among ten scores low here, as it should. Use
        context_recall or context_sufficiency.
    See: context_precision | context_ranking | context_sufficiency
    Source: Grades 0 to 2 as in graded relevance assessment at TREC. | unit=sentence: context relevance of Es et al.
        2023 (arXiv 2309.15217), but by sentence number.

    The three units use the same verdicts; `unit=sentence` is pooled, so that a long context weighs more. A context
    without any sentence has grade 0 without a question; if all are like this, the value is 0. In the RAGAS paper (Es et
    al. 2023, section 3) the judge retypes sentences of all contexts joined; here it names those of one by number.
    """

    name: ClassVar[str] = "context_relevance"
    contexts_judged_alone: ClassVar[bool] = True
    needs = frozenset({"user_input", "retrieved_contexts"})
    asks = Kinds({Relevance})

    unit: Unit = Unit.GRADE
    at: int = 1
    """The lowest grade that counts, 1 or 2; for `unit=context` only."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", choice(Unit, self.unit, metric=self.name, parameter="unit"))
        if self.at not in {1, 2}:
            raise UsageError(f"Metric {self.name!r} takes at=1 or at=2, got at={self.at}.")
        if self.at != 1 and self.unit is not Unit.CONTEXT:
            raise UsageError(
                f"Metric {self.name!r} takes at={self.at} with unit=context only, got unit={self.unit.value}."
            )

    def max_questions(self, sample: Sample) -> int:
        return max_contexts(sample)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), sample.contexts
        if not contexts:
            return Undefined(NOTHING_RETRIEVED)
        if is_blank(user_input):
            return Undefined(BLANK_USER_INPUT)
        verdicts = yield from relevance_of_contexts(sample)
        return self._score(contexts, verdicts)

    def _score(self, contexts: Sequence[Context], verdicts: Sequence[RelevanceVerdict]) -> Score:
        sentences = sum(len(context.sentences) for context in contexts)
        evidence_sentences = sum(len(verdict.evidence) for verdict in verdicts)
        relevant = sum(verdict.grade >= 1 for verdict in verdicts)
        fully_relevant = sum(verdict.grade == TOP_GRADE for verdict in verdicts)
        if self.unit is Unit.SENTENCE:
            check_evidence(Relevance("", ()), verdicts)
            share = evidence_sentences / sentences if sentences else 0.0
        elif self.unit is Unit.CONTEXT:
            share = self._share_of_contexts(verdicts)
        else:
            share = mean_credit(verdicts)
        return Score(
            share,
            evidence=about_contexts(verdicts),
            counts={
                "contexts": len(verdicts),
                "relevant": relevant,
                "fully_relevant": fully_relevant,
                "sentences": sentences,
                "evidence_sentences": evidence_sentences,
            },
            averaged=self._averages and any_averaged(verdicts),
        )

    @property
    def _averages(self) -> bool:
        """True unless the value depends on sentences or on the full grade, for which there are no probabilities."""
        return self.unit is Unit.GRADE or (self.unit is Unit.CONTEXT and self.at == 1)

    def _share_of_contexts(self, verdicts: Sequence[RelevanceVerdict]) -> float:
        if not self._averages:
            return sum(verdict.grade >= self.at for verdict in verdicts) / len(verdicts)
        return mean(verdict.credit if verdict.averaged else float(verdict.positive) for verdict in verdicts)


METRICS: Final = (ContextRelevance,)
