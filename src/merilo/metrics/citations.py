"""Citations: whether the contexts that a response cites support what it states, and which citations are right.

The module is long because three metrics share one plan, and metrics do not import one another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.data.answer import Reading
from merilo.data.citations import CitedText, Contexts, cited
from merilo.errors import UsageError
from merilo.judging.ask import Plan, both, together
from merilo.judging.kinds.contexts import Support, SupportLabel, SupportVerdict
from merilo.judging.kinds.responses import Noncommittal, Statements
from merilo.judging.verdicts import counting_only
from merilo.metrics.base import Kinds, Score, Undefined
from merilo.metrics.formulas import f_measure
from merilo.metrics.steps import (
    BLANK_RESPONSE,
    RESPONSE_STATES_NOTHING,
    about_statements,
    any_averaged,
    declines,
    is_blank,
    mean_credit,
    statements_of,
    states_nothing,
    support_counts,
    support_of,
)
from merilo.metrics.variants import ResponseMetric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.data.sample import Sample
    from merilo.metrics.steps import DistinctStatement

_DECLINES: Final = "the response declines to answer and makes no claim"
_CITES_NOTHING: Final = "the response has no citation of a statement"
_UNCITED: Final = "No context is cited."


@dataclass(frozen=True, slots=True)
class _Citations(ResponseMetric):
    """What the metrics of citations share: the parameter, and the plan up to the verdicts.

    Undefined: the response is blank | the response declines to answer and makes no claim | the response makes no
        statement
    Source: After ALCE (Gao et al. 2023, arXiv 2305.14627): recall and precision of citations. Here statements are
        judged, not sentences; a citation to nothing counts as wrong; a redundant citation that supports its statement
        is right.
    """

    name: ClassVar[str]
    ranked = True
    reads_answer = Reading.MARKED
    needs = frozenset({"user_input", "retrieved_contexts", "response"})
    asks = Kinds({Noncommittal, Statements, Support})
    alone: ClassVar[bool] = True
    """True if the value depends on the right citations: each is judged, not only those of a statement together."""
    of_recall: ClassVar[bool] = True
    """True if the value depends on the statements that their citations support."""

    first: int = 1
    """The number of the first context: 1, or 0."""

    def __post_init__(self) -> None:
        if self.first not in (0, 1):
            raise UsageError(f"Metric {self.name!r} takes first=0 or first=1, got {self.first!r}.")

    def shows(self, sample: Sample) -> bool | None:
        """See `ShownInRun.shows`: whether the response cites a context, or a number or id that no context has."""
        if sample.retrieved_contexts is None or sample.response is None or is_blank(sample.response):
            return None
        return any(each.contexts or each.unknown for each in self._text(sample).sentences)

    def not_shown(self, samples: int) -> str:
        return f"0 of {samples:,} response{'s' * (samples != 1)} cite a context"

    def _text(self, sample: Sample) -> CitedText:
        return cited(sample.require("response"), Contexts.of(sample), first=self.first, language=sample.language)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        sample.require("user_input")
        sample.require("retrieved_contexts")
        text = self._text(sample)
        clean = replace(sample, response=text.text)
        if states_nothing(clean, "response"):
            return Undefined(BLANK_RESPONSE)
        declined, statements = yield from both(declines(sample), statements_of(clean, "response"))
        if declined:
            return Undefined(_DECLINES)
        if not statements:
            return Undefined(RESPONSE_STATES_NOTHING)
        cited_by = [sorted({c for each in one.sentences for c in text.sentences[each].contexts}) for one in statements]
        verdicts = yield from _support(sample, statements, cited_by, alone=self.alone)
        # A citation is right if the context supports a statement of the sentence.
        right = {
            (sentence, context)
            for statement, verdict in zip(statements, verdicts, strict=True)
            for sentence in statement.sentences
            for context in verdict.evidence
            if verdict.supported and context in text.sentences[sentence].contexts
        }
        stating = {sentence for each in statements for sentence in each.sentences}
        to_nothing = sum(len(each.unknown) for each in text.sentences)
        citations = to_nothing + sum(len(text.sentences[sentence].contexts) for sentence in stating)
        if not citations and not self.of_recall:
            return Undefined(_CITES_NOTHING)
        precision, recall = len(right) / citations if citations else 0.0, mean_credit(verdicts)
        value = recall if not self.alone else f_measure(precision, recall) if self.of_recall else precision
        counts: dict[str, int | None] = {}
        if self.of_recall:
            counts |= {**support_counts(verdicts), "uncited": sum(not each for each in cited_by)}
        if self.alone:
            counts |= {"citations": citations, "right": len(right), "to_nothing": to_nothing}
        averaged = self.of_recall and any_averaged(verdicts)
        return Score(value, evidence=about_statements(statements, verdicts), counts=counts, averaged=averaged)


def _support(
    sample: Sample, statements: Sequence[DistinctStatement], cited_by: Sequence[Sequence[int]], *, alone: bool
) -> Plan[tuple[SupportVerdict, ...]]:
    """Judge whether the contexts that each statement cites support it together.

    If `alone`, each cited context that the verdict on a supported statement does not name is also judged alone: a
    redundant context supports the statement, though a judge need not name it as well. It is added to the evidence.
    """
    verdicts = yield from _judge(sample, [*zip(statements, cited_by, strict=True)])
    if not alone:
        return verdicts
    rest = [
        (place, context)
        for place, verdict in enumerate(verdicts)
        for context in cited_by[place]
        if verdict.supported and context not in verdict.evidence
    ]
    singles = yield from _judge(sample, [(statements[place], (context,)) for place, context in rest])
    evidence = [{*verdict.evidence} for verdict in verdicts]
    for (place, context), single in zip(rest, singles, strict=True):
        if single.supported:
            evidence[place].add(context)
    return tuple(
        replace(verdict, evidence=tuple(sorted(each))) for verdict, each in zip(verdicts, evidence, strict=True)
    )


def _judge(
    sample: Sample, pairs: Sequence[tuple[DistinctStatement, Sequence[int]]]
) -> Plan[tuple[SupportVerdict, ...]]:
    """Judge each statement against some contexts; statements about the same contexts may be judged together."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, (_, contexts) in enumerate(pairs):
        groups.setdefault(tuple(contexts), []).append(place)
    judged = yield from together(
        [_by(sample, contexts, [pairs[place][0] for place in places]) for contexts, places in groups.items()]
    )
    found = {
        place: verdict
        for places, verdicts in zip(groups.values(), judged, strict=True)
        for place, verdict in zip(places, verdicts, strict=True)
    }
    return tuple(found[place] for place in range(len(pairs)))


def _by(
    sample: Sample, contexts: Sequence[int], statements: Sequence[DistinctStatement]
) -> Plan[tuple[SupportVerdict, ...]]:
    """Judge statements against some contexts of the sample; the verdicts have the sample's indices."""
    if not contexts:
        return tuple(SupportVerdict(SupportLabel.NOT_STATED, reason=_UNCITED) for _ in statements)
    chosen = tuple(sample.contexts[context] for context in contexts)
    part = replace(sample, retrieved_contexts=chosen, retrieved_context_ids=None, response=None)
    verdicts = yield from support_of(part, statements)
    return tuple(
        replace(
            verdict,
            reason=counting_only(contexts, verdict.reason),
            evidence=tuple(contexts[index] for index in verdict.evidence),
            sentences=tuple((contexts[index], sentence) for index, sentence in verdict.sentences),
        )
        for verdict in verdicts
    )


@dataclass(frozen=True, slots=True)
class CitationRecall(_Citations):
    """Share of the response's statements that the contexts they cite support.

    Meaning: statements that what they cite supports
    Formula: Statements supported by what they cite / distinct statements of the response. Each verdict counts as its
        probability if the judge's probabilities are averaged.
    Questions: One Noncommittal and one Statements question, and one Support question for each distinct statement that
        cites a context.
    Use: To find claims without a citation, and citations that do not support their claim.
    Not: If the system was not asked to cite: use faithfulness.
    See: citation_precision | citation_f1 | faithfulness

    Markers such as `[1]` are read and removed before the response is judged. A statement cites what the sentences that
    make it cite, and is judged against these contexts together. A statement without a citation, or with a citation to
    nothing only, is not supported; no question is asked about it.

    - `first`: the number of the first context, 1 or 0.
    """

    name = "citation_recall"
    alone = False


@dataclass(frozen=True, slots=True)
class CitationPrecision(_Citations):
    """Share of the response's citations that support a statement of their sentence.

    Meaning: citations that support their statement
    Formula: Right citations / citations, including those of numbers that no context has.
    Questions: One Noncommittal and one Statements question; for each distinct statement that cites a context one
        Support question about all it cites and, if it is supported, one for each cited context that the verdict does
        not name.
    Undefined: ... | the response has no citation of a statement
    Use: To find wrong citations, superfluous ones, and numbers without a context.
    Not: Alone: a response that cites little has few wrong citations. Also use citation_recall.
    See: citation_recall | citation_f1

    A citation is a pair of a sentence and a context; one that is repeated in its sentence counts once. It is right if a
    statement of the sentence is supported by the contexts it cites together, and this context supports it: the judge
    names the context, or finds it sufficient alone. A number or an id that no context has is a citation to nothing and
    wrong. Citations in sentences that make no statement do not count.

    - `first`: the number of the first context, 1 or 0.
    """

    name = "citation_precision"

    of_recall = False


@dataclass(frozen=True, slots=True)
class CitationF1(_Citations):
    """Harmonic mean of citation precision and citation recall.

    Meaning: citation precision and recall in one
    Formula: 2 x precision x recall / (precision + recall).
    Questions: Those of citation_precision.
    Use: To compare systems by one number.
    Not: To see what is wrong: citation_precision and citation_recall show it at no extra cost.
    See: citation_precision | citation_recall

    0 when the response cites nothing, because then no statement is supported. `first`: as there.
    """

    name = "citation_f1"


METRICS: Final = (CitationRecall, CitationPrecision, CitationF1)
