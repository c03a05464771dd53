"""Metrics of the retrieved contexts by verdicts on them: relevance, ranking, precision and sufficiency."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.kinds.contexts import TOP_GRADE, Relevance, RelevanceVerdict, Sufficiency, Usefulness
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Score, Undefined, choice
from merilo.metrics.formulas import average_precision, mean, ndcg
from merilo.metrics.steps import (
    BLANK_REFERENCE,
    BLANK_USER_INPUT,
    NOTHING_RELEVANT,
    NOTHING_RETRIEVED,
    about_contexts,
    any_averaged,
    check_evidence,
    checked_cutoff,
    is_blank,
    mean_credit,
    relevance_of_contexts,
    sufficiency_of,
    usefulness_of_contexts,
)
from merilo.metrics.variants import RetrievalMetric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.data.context import Context
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


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
        elif self.unit is Unit.CONTEXT and self._averages:
            share = mean(verdict.credit if verdict.averaged else float(verdict.positive) for verdict in verdicts)
        elif self.unit is Unit.CONTEXT:
            share = sum(verdict.grade >= self.at for verdict in verdicts) / len(verdicts)
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


class RelevanceTarget(StrEnum):
    """Targets that a context can be relevant to."""

    QUESTION = "question"
    """The user input: the context answers a part of it (a Relevance grade of at least `at`)."""
    REFERENCE = "reference"
    """The reference: the context helps to arrive at it (Usefulness)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPrecision(RetrievalMetric):
    """Average precision of the retrieved contexts: 1 if all relevant ones are ranked first.

    Meaning: relevant contexts come first
    Formula: Mean, over the ranks r of relevant contexts, of (relevant among the first r) / r; 0 when none is relevant.
    Questions: One question for each context that is not blank: by default Relevance, shared with context_relevance,
        context_ranking and context_utilization; with against=reference Usefulness, which none of them asks.
    Undefined: no context was retrieved | the user input is blank | the reference is blank (against=reference)
    Use: To compare retrievers whose first contexts matter most; with at=2, if only a whole answer counts. With
        against=reference, if relevance means support for the reference and an additional question for each context is
        acceptable.
    Not: To count noise after the last relevant context, which has no effect here. Use context_relevance.
    See: context_ranking | context_relevance | context_recall
    Source: Buckley & Voorhees 2005 (in: TREC, MIT Press), over the relevant contexts retrieved.

    By default, whatever the data, a context is relevant to the user input (`against=question`): the question for each
    context is shared with context_relevance, context_ranking and context_utilization. Its grade must be 1 or more;
    with `at=2` it must be 2, the whole answer. `against=reference` asks one more question for each context: about 40 %
    more tokens together with context_relevance, context_recall and faithfulness. The two forms are not comparable.
    A context without any sentence is irrelevant without a question.

    Not monotone in Relevance and Usefulness: relevant flags 1,0,0,0,0 give 1.0, and 1,0,0,0,1 give 0.7.
    """

    name: ClassVar[str] = "context_precision"
    ranked: ClassVar[bool] = True
    not_monotone_in: ClassVar[Kinds] = frozenset({Relevance, Usefulness})

    against: RelevanceTarget = RelevanceTarget.QUESTION
    at: int = 1
    """The lowest grade of a relevant context, 1 or 2; for `against=question` only."""

    def __post_init__(self) -> None:
        if self.at not in (1, 2):
            raise UsageError(f"Metric {self.name!r} takes at=1 or at=2, got at={self.at}.")
        member = choice(RelevanceTarget, self.against, metric=self.name, parameter="against")
        object.__setattr__(self, "against", member)
        if self.at != 1 and member is RelevanceTarget.REFERENCE:
            raise UsageError(f"Metric {self.name!r} takes at={self.at} with against=question only.")

    @property
    def needs(self) -> frozenset[str]:
        """The user input and the contexts, and the reference with `against=reference`."""
        common = frozenset({"user_input", "retrieved_contexts"})
        return common | {"reference"} if self.against is RelevanceTarget.REFERENCE else common

    @property
    def asks(self) -> Kinds:
        """Relevance or Usefulness."""
        return frozenset({Usefulness if self.against is RelevanceTarget.REFERENCE else Relevance})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), sample.contexts
        if self.against is RelevanceTarget.REFERENCE and is_blank(sample.require("reference")):
            return Undefined(BLANK_REFERENCE)
        if not contexts:
            return Undefined(NOTHING_RETRIEVED)
        if is_blank(user_input):
            return Undefined(BLANK_USER_INPUT)
        if self.against is RelevanceTarget.QUESTION:
            graded = yield from relevance_of_contexts(sample)
            flags, evidence = [verdict.grade >= self.at for verdict in graded], about_contexts(graded)
        else:
            useful = yield from usefulness_of_contexts(sample)
            flags, evidence = [verdict.useful for verdict in useful], about_contexts(useful)
        return Score(
            average_precision(flags), evidence=evidence, counts={"contexts": len(flags), "relevant": sum(flags)}
        )


_ONE_CONTEXT = "one context has no order"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRanking(RetrievalMetric):
    """nDCG of the retrieved contexts: 1 if the more relevant ones are ranked first.

    Meaning: the more relevant contexts come first
    Formula: nDCG@k: sum of grade / log2(rank + 1) over the first k ranks, divided by the same sum for the same grades
        sorted.
    Questions: One Relevance question for each context that is not blank.
    Undefined: no context was retrieved | one context has no order | no retrieved context is relevant | the user input
        is blank
    Use: To compare rerankers, or to choose how many contexts to pass on (@k).
    Not: To see how good the contexts are: a retriever that returns three poor contexts in a good order scores 1. Use
        context_relevance.
    See: context_precision | context_relevance
    Source: Järvelin & Kekäläinen 2002 (ACM TOIS 20), linear gain, discount 1/log2(rank + 1).

    Without `k`, all ranks count. All contexts are judged whatever `k` is, because the ideal order needs them.

    The ideal order consists of the *retrieved* contexts, so the metric measures the order alone; context_recall
    measures what was missed.

    Not monotone in Relevance: a better grade at a low rank makes the order worse. Grades 2,0 give 1.0 and grades
    2,2,0,2 give less than 2,2,0,0.
    """

    name = "context_ranking"
    needs = frozenset({"user_input", "retrieved_contexts"})
    asks = Kinds({Relevance})
    ranked = True
    not_monotone_in = frozenset({Relevance})

    k: int | None = None
    """The number of ranks that count, at least 1; None for all."""

    def __post_init__(self) -> None:
        checked_cutoff(self.name, self.k)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), sample.contexts
        if not contexts:
            return Undefined(NOTHING_RETRIEVED)
        if len(contexts) == 1:
            return Undefined(_ONE_CONTEXT)
        if is_blank(user_input):
            return Undefined(BLANK_USER_INPUT)
        verdicts = yield from relevance_of_contexts(sample)
        value = ndcg([verdict.grade for verdict in verdicts], self.k)
        if value is None:
            return Undefined(NOTHING_RELEVANT)
        relevant = sum(verdict.grade >= 1 for verdict in verdicts)
        return Score(value, evidence=about_contexts(verdicts), counts={"contexts": len(verdicts), "relevant": relevant})


@dataclass(frozen=True, slots=True)
class ContextSufficiency(RetrievalMetric):
    """Sufficiency of the retrieved contexts together for answering the user input.

    Meaning: the contexts hold the answer
    Formula: Sufficient 1, partly 0.5, insufficient 0; the probability of sufficient if the judge's probabilities are
        averaged.
    Questions: One Sufficiency question.
    Undefined: the user input is blank
    Use: To distinguish the retriever's errors from the generator's, without a reference.
    Not: To see how much noise there is: noise does not lower the score. Use context_relevance.
    See: context_recall | context_relevance | faithfulness
    Source: Joren et al. 2024, Sufficient Context (arXiv 2411.06037); the middle label is merilo's.

    Nothing retrieved, or only blank contexts, is insufficient without a question.

    The label of Joren et al. is binary. `partly` is for questions of several parts of which the contexts answer some.
    """

    name = "context_sufficiency"
    needs = frozenset({"user_input", "retrieved_contexts"})
    asks = Kinds({Sufficiency})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, _ = sample.require("user_input"), sample.contexts
        if is_blank(user_input):
            return Undefined(BLANK_USER_INPUT)
        verdict = yield from sufficiency_of(sample)
        evidence = (Evidence(EvidenceTarget.TEXT, 0, verdict),)
        return Score(verdict.credit, evidence=evidence, averaged=verdict.averaged)


METRICS: Final = (
    ContextRelevance,
    ContextPrecision,
    ContextRanking,
    ContextSufficiency,
)
