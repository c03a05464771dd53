"""Context entity recall: the fraction of the reference's entities that the retrieved contexts mention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import ask, ask_each
from merilo.judging.kinds.entities import Entities
from merilo.judging.kinds.mentions import Mentions, MentionsVerdict
from merilo.metrics.base import Kinds, Score, Undefined
from merilo.metrics.steps import (
    BLANK_EVIDENCE,
    BLANK_REFERENCE,
    NO_CONTEXT,
    credit_score,
    distinct,
    is_blank,
    max_contexts,
    states_nothing,
    texts_of,
)
from merilo.metrics.variants import RetrievalMetric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.metrics.steps import DistinctStatement

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

    name: ClassVar[str] = "context_entity_recall"
    needs = frozenset({"reference", "retrieved_contexts"})
    asks = Kinds({Entities, Mentions})

    def max_questions(self, sample: Sample) -> int:
        if sample.reference is None or states_nothing(sample, "reference"):
            return 0
        return 1 + (_most(sample.sentences("reference")) if max_contexts(sample) else 0)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("retrieved_contexts")
        if states_nothing(sample, "reference"):
            return Undefined(BLANK_REFERENCE)
        sentences = sample.sentences("reference")
        question = Entities(sentences, language=sample.resolved_language)
        verdict = yield from ask(question)
        entities = _distinct_but_for_case(distinct(question, (e.text for e in verdict.entities), most=_most(sentences)))
        if not entities:
            return Undefined(_NO_ENTITY)
        verdicts = yield from _mentions(sample, entities)
        mentioned = sum(verdict.mentioned for verdict in verdicts)
        return credit_score(entities, verdicts, {"entities": len(entities), "mentioned": mentioned})


def _mentions(sample: Sample, entities: tuple[DistinctStatement, ...]) -> Plan[tuple[MentionsVerdict, ...]]:
    if not max_contexts(sample):
        return tuple(MentionsVerdict(mentioned=False, reason=NO_CONTEXT) for _ in entities)
    contexts, language = texts_of(sample.contexts), sample.resolved_language
    verdicts = yield from ask_each(Mentions(entity.text, contexts, language=language) for entity in entities)
    blank = frozenset(index for index, context in enumerate(sample.contexts) if is_blank(context))
    return tuple(_without(blank, verdict) for verdict in verdicts)


def _without(blank: frozenset[int], verdict: MentionsVerdict) -> MentionsVerdict:
    if blank.isdisjoint(verdict.evidence):
        return verdict
    if evidence := tuple(index for index in verdict.evidence if index not in blank):
        return replace(verdict, evidence=evidence)
    return MentionsVerdict(mentioned=False, reason=BLANK_EVIDENCE)


def _distinct_but_for_case(entities: tuple[DistinctStatement, ...]) -> tuple[DistinctStatement, ...]:
    """Return one entity of each set that differs only in case and space: the first alphabetically, in any order."""
    found: dict[str, DistinctStatement] = {}
    for entity in entities:
        key = " ".join(entity.text.split()).casefold()
        found[key] = min(found.get(key, entity), entity, key=lambda each: each.text)
    return tuple(found.values())


def _most(sentences: Sequence[str]) -> int:
    return 1 + sum(len(sentence) for sentence in sentences) // _CHARACTERS_PER_ENTITY


METRICS: Final = (ContextEntityRecall,)
