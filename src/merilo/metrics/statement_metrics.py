"""Metrics of what contexts support: recall, entity recall, faithfulness, utilization and noise sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import Plan, ask, ask_each, both, together
from merilo.judging.kinds.contexts import Mentions, MentionsVerdict, Relevance, Support
from merilo.judging.kinds.responses import Entities, Noncommittal, Statements
from merilo.metrics.base import Kinds, Score, Undefined, choice
from merilo.metrics.steps import (
    BLANK_EVIDENCE,
    BLANK_REFERENCE,
    BLANK_RESPONSE,
    BLANK_USER_INPUT,
    NO_CONTEXT,
    NOTHING_RELEVANT,
    NOTHING_RETRIEVED,
    REFERENCE_STATES_NOTHING,
    RESPONSE_STATES_NOTHING,
    about_contexts,
    about_statements,
    blank_in,
    check_evidence,
    credit_score,
    declines,
    distinct,
    is_blank,
    judged_support_of,
    most_items,
    relevance_of_contexts,
    statements_of,
    states_nothing,
    support_by,
    support_of,
    support_score,
    texts_of,
    without,
)
from merilo.metrics.variants import ResponseMetric, RetrievalMetric

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.metrics.steps import DistinctStatement


@dataclass(frozen=True, slots=True)
class ContextRecall(RetrievalMetric):
    """Share of the reference's statements that the retrieved contexts support.

    Meaning: the reference found in the contexts
    Formula: Supported statements / distinct statements of the reference. Each verdict counts as its probability if the
        judge's probabilities are averaged.
    Questions: One Statements question, and one Support question for each distinct statement.
    Undefined: the reference is blank | the reference makes no statement
    Use: To see whether the retriever finds everything that a right answer needs; requires a reference.
    Not: Without references: context_sufficiency judges whether the contexts are enough. With references that state more
        than the question asks, it is too strict.
    See: context_sufficiency | context_precision | faithfulness
    Source: Statement-based recall as in the ragas library, after Es et al. 2023 (arXiv 2309.15217).

    All contexts are judged together; contradicted counts like not stated. 0 when nothing was retrieved or all contexts
    are blank; no Support question is asked then. If there is a user input, it makes the statements of a short reference
    ("In 1889.") complete; it is not required.

    Unlike in the ragas library, statements are judged one by one, the judge names the contexts, and an unreadable reply
    is never a number.
    """

    name: ClassVar[str] = "context_recall"
    needs = frozenset({"reference", "retrieved_contexts"})
    asks = Kinds({Statements, Support})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("retrieved_contexts")
        if states_nothing(sample, "reference"):
            return Undefined(BLANK_REFERENCE)
        statements = yield from statements_of(sample, "reference")
        if not statements:
            return Undefined(REFERENCE_STATES_NOTHING)
        return support_score(statements, (yield from judged_support_of(sample, statements)))


_NO_ENTITY = "the reference names no entity"
_CHARACTERS_PER_ENTITY = 2


@dataclass(frozen=True, slots=True)
class ContextEntityRecall(RetrievalMetric):
    """Share of the reference's entities that the retrieved contexts mention.

    Meaning: the reference's names in the contexts
    Formula: Entities of the reference that a context mentions / distinct entities of the reference. Each verdict counts
        as its probability if the judge's probabilities are averaged.
    Questions: One Entities question, and one Mentions question for each distinct entity.
    Undefined: the reference is blank | the reference names no entity
    Use: For questions about names, dates and amounts, where a context without them cannot help.
    Not: To see whether the contexts state the right facts about them: use context_recall.
    See: context_recall | context_sufficiency
    Source: Context entity recall of the ragas library; mentions are judged here, not matched.

    Entities that differ only in case and white space count once. 0 when nothing was retrieved, or only blanks.

    The ragas library intersects two extracted lists word for word. Here each entity is a question, so inflected forms,
    abbreviations and other date formats count.
    """

    name = "context_entity_recall"
    needs = frozenset({"reference", "retrieved_contexts"})
    asks = Kinds({Entities, Mentions})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("retrieved_contexts")
        if states_nothing(sample, "reference"):
            return Undefined(BLANK_REFERENCE)
        sentences = sample.sentences("reference")
        question = Entities(sentences, language=sample.resolved_language)
        verdict = yield from ask(question)
        entities = _distinct_but_for_case(
            distinct(question, (e.text for e in verdict.entities), most=most_items(sentences, _CHARACTERS_PER_ENTITY))
        )
        if not entities:
            return Undefined(_NO_ENTITY)
        contexts, none = sample.contexts, MentionsVerdict(mentioned=False, reason=BLANK_EVIDENCE)
        if not all(map(is_blank, contexts)):
            texts, language = texts_of(contexts), sample.resolved_language
            named = yield from ask_each(Mentions(entity.text, texts, language=language) for entity in entities)
            verdicts = [without(blank_in(contexts), verdict, none) for verdict in named]
        else:
            verdicts = [MentionsVerdict(mentioned=False, reason=NO_CONTEXT) for _ in entities]
        mentioned = sum(verdict.mentioned for verdict in verdicts)
        return credit_score(entities, verdicts, {"entities": len(entities), "mentioned": mentioned})


def _distinct_but_for_case(entities: tuple[DistinctStatement, ...]) -> tuple[DistinctStatement, ...]:
    """Return one entity of each set that differs only in case and space: the first alphabetically, in any order."""
    found: dict[str, DistinctStatement] = {}
    for entity in entities:
        key = " ".join(entity.text.split()).casefold()
        found[key] = min(found.get(key, entity), entity, key=lambda each: each.text)
    return tuple(found.values())


_MAKES_NO_CLAIM = "the response declines to answer and makes no claim"


@dataclass(frozen=True, slots=True)
class Faithfulness(ResponseMetric):
    """Share of the response's statements that the retrieved contexts support.

    Meaning: statements that the contexts support
    Formula: Supported statements / distinct statements of the response. Each verdict counts as its probability if the
        judge's probabilities are averaged.
    Questions: One Noncommittal and one Statements question, and one Support question for each distinct statement.
    Undefined: the response is blank | the response declines to answer and makes no claim | the response makes no
        statement
    Use: To find answers that go beyond the retrieved text, without a reference.
    Not: To see whether the answer is true or addresses the question: a faithful answer can repeat a wrong or an
        irrelevant context. Also use answer_relevancy.
    See: answer_relevancy | context_utilization | context_recall
    Source: Faithfulness of Es et al. 2023, RAGAS (arXiv 2309.15217); refusals are Undefined here.

    All contexts are judged together. Contradicted and not stated both count as 0; `counts` distinguishes them if the
    judge does (otherwise `contradicted` is None). 0 when nothing was retrieved or all contexts are blank: such an
    answer is unsupported.

    Unlike in RAGAS (section 3), whether the response declines is a separate question, a response without statements is
    Undefined, and the judge names the contexts.
    """

    name = "faithfulness"
    needs = frozenset({"user_input", "retrieved_contexts", "response"})
    asks = Kinds({Noncommittal, Statements, Support})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("user_input")
        sample.require("retrieved_contexts")
        if states_nothing(sample, "response"):
            return Undefined(BLANK_RESPONSE)
        declined, statements = yield from both(declines(sample), statements_of(sample, "response"))
        if declined:
            return Undefined(_MAKES_NO_CLAIM)
        if not statements:
            return Undefined(RESPONSE_STATES_NOTHING)
        return support_score(statements, (yield from judged_support_of(sample, statements)))


@dataclass(frozen=True, slots=True)
class ContextUtilization(ResponseMetric):
    """Share of the relevant contexts that the response uses.

    Meaning: relevant contexts that are used
    Formula: Contexts of grade ≥ 1 that support a statement of the response / contexts of grade ≥ 1.
    Questions: One Relevance question for each context that is not blank, one Statements question, and one Support
        question for each distinct statement if a context is relevant; all of them shared with context_relevance and
        faithfulness.
    Undefined: no context was retrieved | no retrieved context is relevant | the response is blank | the user input is
        blank
    Use: To see whether the generator ignores contexts that the retriever found.
    Not: If several contexts state the same: using one of them is enough for a good answer, and a judge may name one or
        all.
    See: context_relevance | faithfulness
    Source: merilo's own; compare the reference-based one of RAGChecker (arXiv 2408.08067).

    A context supports a statement when the judge names it as evidence of a supported verdict. A response that makes no
    statement uses nothing: 0, also if it declines to answer.

    That of RAGChecker is over the claims of the reference; this one needs no reference and counts contexts.

    Not monotone in Relevance: one more relevant context that the response does not use lowers the share.
    """

    name = "context_utilization"
    needs = frozenset({"user_input", "retrieved_contexts", "response"})
    asks = Kinds({Relevance, Statements, Support})
    not_monotone_in = frozenset({Relevance})

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, contexts = sample.require("user_input"), sample.contexts
        if states_nothing(sample, "response"):
            return Undefined(BLANK_RESPONSE)
        if not contexts:
            return Undefined(NOTHING_RETRIEVED)
        if is_blank(user_input):
            return Undefined(BLANK_USER_INPUT)
        if all(is_blank(context) for context in contexts):
            return Undefined(NOTHING_RELEVANT)
        graded, statements = yield from both(relevance_of_contexts(sample), statements_of(sample, "response"))
        relevant = {index for index, verdict in enumerate(graded) if verdict.grade >= 1}
        if not relevant:
            return Undefined(NOTHING_RELEVANT)
        verdicts = yield from support_of(sample, statements)
        check_evidence(Support("", ()), verdicts)
        used = relevant & {index for each in verdicts if each.supported for index in each.evidence}
        return Score(
            len(used) / len(relevant),
            evidence=(*about_contexts(graded), *about_statements(statements, verdicts)),
            counts={"contexts": len(contexts), "relevant": len(relevant), "used": len(used)},
        )


_NOTHING_TO_READ = "no context was retrieved, or every one is blank"


class NoiseSource(StrEnum):
    """Sources of noise among the contexts."""

    RELEVANT = "relevant"
    """Contexts that support at least one statement of the reference."""
    IRRELEVANT = "irrelevant"
    """Contexts that support none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSensitivity(ResponseMetric):
    """Share of the response's statements that are wrong and come from the contexts; lower is better.

    Meaning: wrong statements from the contexts
    Formula: Statements of the response that the reference does not support and a relevant context does (of=irrelevant:
        only contexts do that are not relevant) / distinct statements of the response. A context is relevant when it
        supports a statement of the reference.
    Questions: Two Statements questions; for each distinct statement of the response two Support questions, for each of
        the reference one.
    Undefined: no context was retrieved, or every one is blank | the response is blank | the reference is blank | the
        response makes no statement | the reference makes no statement
    Use: To see whether wrong answers come from contexts that also have the right text (of=relevant) or from contexts
        that should not have been retrieved (of=irrelevant).
    Not: To see how much is wrong in total: use answer_correctness. Made-up statements do not count here.
    See: answer_correctness | faithfulness | context_recall
    Source: Ru et al. 2024, RAGChecker (arXiv 2408.08067), section 3.3; also in the ragas library.

    A context is relevant when it supports at least one statement of the reference. A statement of the response is
    wrong when the reference does not support it. `of=irrelevant` counts those that contexts support, none of them
    relevant. A statement that no context supports counts in neither: it is made up, which faithfulness measures.

    Unlike in RAGChecker, contexts are judged together and named by number, so a statement that only several contexts
    together support counts as coming from them.

    Not monotone in Support: a statement that a context supports after all is noise if the reference does not support
    it, and a reference statement found in a context makes that context relevant.
    """

    name = "noise_sensitivity"
    version = 2
    higher_is_better = False
    not_monotone_in = frozenset({Support})
    needs = frozenset({"retrieved_contexts", "response", "reference"})
    asks = Kinds({Statements, Support})

    of: NoiseSource = NoiseSource.RELEVANT
    """The contexts whose noise is counted."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", choice(NoiseSource, self.of, metric=self.name, parameter="of"))

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("retrieved_contexts")
        if states_nothing(sample, "response"):
            return Undefined(BLANK_RESPONSE)
        if states_nothing(sample, "reference"):
            return Undefined(BLANK_REFERENCE)
        if all(map(is_blank, sample.contexts)):
            return Undefined(_NOTHING_TO_READ)
        response, reference = yield from both(statements_of(sample, "response"), statements_of(sample, "reference"))
        if not response:
            return Undefined(RESPONSE_STATES_NOTHING)
        if not reference:
            return Undefined(REFERENCE_STATES_NOTHING)
        in_contexts, of_reference, right = yield from together(
            [support_of(sample, response), support_of(sample, reference), support_by(sample, "reference", response)]
        )
        check_evidence(Support("", ()), (*in_contexts, *of_reference))
        relevant = {index for verdict in of_reference if verdict.supported for index in verdict.evidence}
        irrelevant = self.of is NoiseSource.IRRELEVANT
        wrong = [
            verdict.supported and not judged.supported and relevant.isdisjoint(verdict.evidence) == irrelevant
            for verdict, judged in zip(in_contexts, right, strict=True)
        ]
        return Score(
            sum(wrong) / len(response),
            evidence=about_statements(response, in_contexts) + about_statements(response, right),
            counts={
                "statements": len(response),
                "supported": sum(verdict.supported for verdict in right),
                "noise": sum(wrong),
                "relevant_contexts": len(relevant),
            },
        )


METRICS: Final = (
    ContextRecall,
    ContextEntityRecall,
    Faithfulness,
    ContextUtilization,
    NoiseSensitivity,
)
