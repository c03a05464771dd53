"""Citations: whether the contexts that a response cites support what it states, and which citations are right.

The module is long because three metrics share one plan, and metrics do not import one another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from merilo.data.answer import Reading
from merilo.data.citations import Contexts, cited
from merilo.errors import UsageError
from merilo.judging.ask import both, together
from merilo.judging.kinds.noncommittal import Noncommittal
from merilo.judging.kinds.statements import Statements
from merilo.judging.kinds.support import Support, SupportLabel, SupportVerdict
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
    max_statements,
    mean_credit,
    statements_of,
    states_nothing,
    support_counts,
    support_of,
)
from merilo.metrics.variants import ResponseMetric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.data.citations import CitedText
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.metrics.steps import DistinctStatement

_DECLINES: Final = "the response declines to answer and makes no claim"
_CITES_NOTHING: Final = "the response has no citation of a statement"
_UNCITED: Final = "No context is cited."


@dataclass(frozen=True, slots=True)
class _Judged:
    """The statements of a response, and the support of each by what it cites."""

    text: CitedText
    statements: tuple[DistinctStatement, ...]
    verdicts: tuple[SupportVerdict, ...]
    """Support by the contexts that the statement cites, together. `evidence` has every one that was found to support
    it, alone or with others."""

    @property
    def uncited(self) -> int:
        """The number of statements without a citation of a context."""
        return sum(not _contexts(self.text, each) for each in self.statements)

    @property
    def right(self) -> int:
        """The number of right citations: the context supports a statement of the sentence."""
        pairs = {
            (sentence, context)
            for statement, verdict in zip(self.statements, self.verdicts, strict=True)
            for sentence in statement.sentences
            for context in verdict.evidence
            if verdict.supported and context in self.text.sentences[sentence].contexts
        }
        return len(pairs)

    @property
    def citations(self) -> int:
        """The number of citations in sentences that make a statement, and of citations to nothing."""
        stating = {sentence for each in self.statements for sentence in each.sentences}
        return self.to_nothing + sum(len(self.text.sentences[sentence].contexts) for sentence in stating)

    @property
    def to_nothing(self) -> int:
        """The number of cited numbers and ids that no context has."""
        return sum(len(each.unknown) for each in self.text.sentences)

    @property
    def recall(self) -> float:
        """The fraction of statements that their citations support."""
        return mean_credit(self.verdicts)

    @property
    def precision(self) -> float | None:
        """The fraction of citations that are right; None without a citation."""
        return self.right / self.citations if self.citations else None

    def score(self, value: float, *, recall: bool, precision: bool) -> Score:
        """Return the score with this value, and the counts of the quantities it is computed from."""
        counts: dict[str, int | None] = {**support_counts(self.verdicts), "uncited": self.uncited} if recall else {}
        if precision:
            counts |= {"citations": self.citations, "right": self.right, "to_nothing": self.to_nothing}
        return Score(
            value,
            evidence=about_statements(self.statements, self.verdicts),
            counts=counts,
            averaged=recall and any_averaged(self.verdicts),
        )


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
    """True if each citation is judged, and not only the citations of a statement together."""

    first: int = 1
    """The number of the first context: 1, or 0."""

    def __post_init__(self) -> None:
        if self.first not in (0, 1):
            raise UsageError(f"Metric {self.name!r} takes first=0 or first=1, got {self.first!r}.")

    def max_questions(self, sample: Sample) -> int:
        """Return an upper bound: two questions about the response, and for each possible statement one and one for each
        cited context.
        """
        if sample.response is None or sample.retrieved_contexts is None:
            return 0
        text = self._text(sample)
        asked = max_statements(replace(sample, response=text.text), "response")
        contexts = {context for each in text.sentences for context in each.contexts}
        readable = sum(not is_blank(sample.retrieved_contexts[context]) for context in contexts)
        each = 1 + (readable if self.alone and readable > 1 else 0) if readable else 0
        return 2 + asked * each if asked else 0

    def shows(self, sample: Sample) -> bool | None:
        """See `ShownInRun.shows`: whether the response cites a context, or a number or id that no context has."""
        if sample.retrieved_contexts is None or sample.response is None or is_blank(sample.response):
            return None
        return any(each.contexts or each.unknown for each in self._text(sample).sentences)

    def not_shown(self, samples: int) -> str:
        return f"0 of {samples:,} response{'s' * (samples != 1)} cite a context"

    def _text(self, sample: Sample) -> CitedText:
        return cited(sample.require("response"), Contexts.of(sample), first=self.first, language=sample.language)

    @staticmethod
    def scored(judged: _Judged) -> Score | Undefined:
        raise NotImplementedError  # each metric has its own

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
        cited_by = [_Cited(each, _contexts(text, each)) for each in statements]
        verdicts = yield from _support(sample, cited_by, alone=self.alone)
        return self.scored(_Judged(text, statements, verdicts))


class _Cited(NamedTuple):
    """A statement, and the contexts that it is judged against."""

    statement: DistinctStatement
    contexts: tuple[int, ...]


def _contexts(text: CitedText, statement: DistinctStatement) -> tuple[int, ...]:
    found = (context for sentence in statement.sentences for context in text.sentences[sentence].contexts)
    return tuple(sorted(set(found)))


def _support(sample: Sample, cited_by: Sequence[_Cited], *, alone: bool) -> Plan[tuple[SupportVerdict, ...]]:
    """Judge whether the contexts that each statement cites support it together.

    If `alone`, each cited context that the verdict on a supported statement does not name is also judged alone: a
    redundant context supports the statement, though a judge need not name it as well. It is added to the evidence.
    """
    verdicts = yield from _judge(sample, cited_by)
    if not alone:
        return verdicts
    rest = [
        (place, context)
        for place, (cited_one, verdict) in enumerate(zip(cited_by, verdicts, strict=True))
        for context in cited_one.contexts
        if verdict.supported and context not in verdict.evidence
    ]
    singles = yield from _judge(sample, [_Cited(cited_by[place].statement, (context,)) for place, context in rest])
    evidence = [{*verdict.evidence} for verdict in verdicts]
    for (place, context), single in zip(rest, singles, strict=True):
        if single.supported:
            evidence[place].add(context)
    return tuple(
        replace(verdict, evidence=tuple(sorted(each))) for verdict, each in zip(verdicts, evidence, strict=True)
    )


def _judge(sample: Sample, cited_by: Sequence[_Cited]) -> Plan[tuple[SupportVerdict, ...]]:
    """Judge each statement against some contexts; statements about the same contexts may be judged together."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, each in enumerate(cited_by):
        groups.setdefault(each.contexts, []).append(place)
    judged = yield from together(
        [_by(sample, contexts, [cited_by[place].statement for place in places]) for contexts, places in groups.items()]
    )
    found = {
        place: verdict
        for places, verdicts in zip(groups.values(), judged, strict=True)
        for place, verdict in zip(places, verdicts, strict=True)
    }
    return tuple(found[place] for place in range(len(cited_by)))


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

    @staticmethod
    def scored(judged: _Judged) -> Score | Undefined:
        return judged.score(judged.recall, recall=True, precision=False)


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

    @staticmethod
    def scored(judged: _Judged) -> Score | Undefined:
        if judged.precision is None:
            return Undefined(_CITES_NOTHING)
        return judged.score(judged.precision, recall=False, precision=True)


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

    @staticmethod
    def scored(judged: _Judged) -> Score | Undefined:
        return judged.score(f_measure(judged.precision or 0.0, judged.recall), recall=True, precision=True)


METRICS: Final = (CitationRecall, CitationPrecision, CitationF1)
