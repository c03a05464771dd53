"""Published formulas over merilo's own verdicts, and the metric `same_verdicts` that computes one.

A `DefinitionFormula` separates a published formula from the questions that its system asks. So definitions can be
compared on one set of verdicts, with any judge, and the only difference is the formula.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from merilo.errors import UsageError
from merilo.judging.ask import both
from merilo.judging.kinds.contexts import Relevance, Support, SupportLabel, Usefulness
from merilo.judging.kinds.responses import Addresses, Noncommittal, Statements
from merilo.metrics.base import Card, Kinds, MetricDefaults, Score, Undefined
from merilo.metrics.formulas import average_precision, mean
from merilo.metrics.steps import (
    NOTHING_RETRIEVED,
    DistinctStatement,
    StatedField,
    about_contexts,
    about_statements,
    addressing_of,
    declines,
    max_contexts,
    max_statements,
    most_support,
    relevance_of_contexts,
    statements_of,
    states_nothing,
    support_counts,
    support_of,
    usefulness_of_contexts,
)
from merilo.metrics.text import with_version
from merilo_published.axion.response import WEIGHTS, Faith
from merilo_published.definition import (
    by_parameters,
    capped_fraction,
    clipped_mean,
    fraction,
    joined,
    scaled_rating,
    smoothed_average_precision,
)
from merilo_published.ragas_v0_0 import at_full_stops

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

Counts = dict[str, "int | None"]


class Lineage(StrEnum):
    """Families of definitions with one name; each is named like merilo's own metric."""

    CONTEXT_RELEVANCE = "context_relevance"
    CONTEXT_PRECISION = "context_precision"
    CONTEXT_RECALL = "context_recall"
    FAITHFULNESS = "faithfulness"
    ANSWER_RELEVANCY = "answer_relevancy"


class Seen(NamedTuple):
    """merilo's verdicts on one sample: one for each context, or for each statement of a text."""

    sample: Sample
    verdicts: Sequence[Any]  # Any: one type a family
    statements: Sequence[DistinctStatement] | None = None
    """The statements; None if the verdicts are on contexts."""
    declined: bool = False

    @property
    def positive(self) -> list[bool]:
        """For each verdict, True if it is a yes; a grade of 1 is one."""
        return [verdict.positive for verdict in self.verdicts]

    @property
    def grades(self) -> list[int]:
        """The grade of each context."""
        return [verdict.grade for verdict in self.verdicts]


class SharedVerdicts(NamedTuple):
    """The native verdicts that the formulas of a family share, and the plan that asks for them."""

    needs: frozenset[str]
    asks: Kinds
    plan: Callable[[Sample], Plan[Seen]]
    max_questions: Callable[[Sample], int]
    counts: Callable[[Seen], Counts]


class DefinitionFormula(NamedTuple):
    """A published definition's formula over native verdicts."""

    definition: str
    """The text of the published metric."""
    left_out: str
    """The parts of the definition that are not in the formula."""
    formula: str
    """The formula in words."""
    lineage: Lineage
    shared: SharedVerdicts
    working: str
    """The computation of the value, with the names of counts in braces: `{relevant} of {contexts} contexts`."""
    value: Callable[[Seen], float]
    """The value of at least one verdict."""
    empty: float | None
    """The value of no verdict; None for Undefined."""
    more: Callable[[Seen], Counts] = lambda _: {}
    """Counts that differ from those of the family."""
    tells: bool = False
    """True if the judge must distinguish contradicted from not stated."""

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        seen = yield from self.shared.plan(sample)
        counts = self.shared.counts(seen) | self.more(seen)
        if not seen.verdicts and self.empty is None:
            return Undefined(NOTHING_RETRIEVED if seen.statements is None else "the text makes no statement")
        if not seen.verdicts:
            return Score(self.empty or 0.0, counts=counts)
        if self.tells and not all(verdict.tells_contradicted for verdict in seen.verdicts):
            return Undefined("this judge does not tell contradicted from not stated, which the definition needs")
        verdicts, statements = seen.verdicts, seen.statements
        evidence = about_contexts(verdicts) if statements is None else about_statements(statements, verdicts)
        return Score(self.value(seen), evidence, counts)

    def row(
        self, definition: str, left_out: str, *, value: Callable[[Seen], float] | None = None, **changes: Any
    ) -> DefinitionFormula:
        """Return the formula of a definition: this one of its family with these changes."""
        return self._replace(definition=definition, left_out=left_out, value=value or self.value, **changes)

    def explain(self, counts: Mapping[str, int | None]) -> str:
        """Return the computation of a value with these counts; an unknown count is a dash."""
        return self.working.format_map({name: "-" if count is None else count for name, count in counts.items()})


# -- contexts -----------------------------------------------------------------------------------------

_FOUR_LEVELS: Final = {0: 0, 1: 2, 2: 3}
"""merilo's grades on a scale of 0 to 3, whose level 1 ("related, but no answer") they cannot express."""


def _of_contexts(ask: Callable[[Sample], Plan[Sequence[Any]]], sample: Sample) -> Plan[Seen]:
    return Seen(sample, (yield from ask(sample)))


def _relevance_counts(seen: Seen) -> Counts:
    return {
        "contexts": len(seen.grades),
        "relevant": sum(seen.positive),
        "best": max(seen.grades, default=0),
        "points": sum(seen.grades),
        "points_of_three": sum(_FOUR_LEVELS[grade] for grade in seen.grades),
        "sentences": _sentences(seen),
        "evidence_sentences": _evidence_sentences(seen),
    }


def _evidence_sentences(seen: Seen) -> int:
    return sum(len(verdict.evidence) for verdict in seen.verdicts)


def _rank_counts(seen: Seen) -> Counts:
    flags = seen.positive
    return {"contexts": len(flags), "useful": sum(flags), "first": flags.index(True) + 1 if any(flags) else None}


def _sentences(seen: Seen) -> int:
    return sum(len(context.sentences) for context in seen.sample.contexts)


def _pieces(seen: Seen) -> int:
    return len(at_full_stops(joined(seen.sample)))


def _counted_pieces(seen: Seen) -> Counts:
    return {"sentences": _pieces(seen)}


def _sentence_ratio(seen: Seen) -> float:
    return capped_fraction(_evidence_sentences(seen), _sentences(seen))


def _best_grade(seen: Seen) -> float:
    question, contexts = seen.sample.require("user_input").strip(), joined(seen.sample).strip()
    if not question or not contexts or contexts in question:
        return 0.0  # decided without a request
    return scaled_rating(max(seen.grades), 2)


def _share(seen: Seen) -> float:
    return fraction(sum(seen.positive), len(seen.verdicts))


_RELEVANCE: Final = SharedVerdicts(
    frozenset({"user_input", "retrieved_contexts"}),
    Kinds({Relevance}),
    partial(_of_contexts, relevance_of_contexts),
    max_contexts,
    _relevance_counts,
)
_USEFULNESS: Final = SharedVerdicts(
    frozenset({"user_input", "retrieved_contexts", "reference"}),
    Kinds({Usefulness}),
    partial(_of_contexts, usefulness_of_contexts),
    max_contexts,
    _rank_counts,
)

# -- statements ---------------------------------------------------------------------------------------


def _supported(field: StatedField, sample: Sample) -> Plan[Seen]:
    sample.require("retrieved_contexts")
    if states_nothing(sample, field):
        return Seen(sample, (), ())
    statements = yield from statements_of(sample, field)
    return Seen(sample, (yield from support_of(sample, statements)), statements)


def _addressed(sample: Sample) -> Plan[Seen]:
    sample.require("user_input")
    if states_nothing(sample, "response"):
        return Seen(sample, (), ())
    declined, statements = yield from both(declines(sample), statements_of(sample, "response"))
    return Seen(sample, (yield from addressing_of(sample, statements)), statements, declined)


def _max_supported(field: StatedField, sample: Sample) -> int:
    return 1 + most_support(sample, field)


def _supported_counts(seen: Seen) -> Counts:
    return support_counts(seen.verdicts)


def _support(field: StatedField) -> SharedVerdicts:
    needs, asks = frozenset({"retrieved_contexts", field}), Kinds({Statements, Support})
    return SharedVerdicts(needs, asks, partial(_supported, field), partial(_max_supported, field), _supported_counts)


def _max_addressed(sample: Sample) -> int:
    return 2 + max_statements(sample, "response")


def _addressed_counts(seen: Seen) -> Counts:
    return {"statements": len(seen.positive), "addressing": sum(seen.positive), "declined": int(seen.declined)}


_SUPPORT: Final = _support("response")
_ADDRESSES: Final = SharedVerdicts(
    frozenset({"user_input", "response"}),
    Kinds({Addresses, Noncommittal, Statements}),
    _addressed,
    _max_addressed,
    _addressed_counts,
)
_FAITH: Final = {
    SupportLabel.SUPPORTED: Faith.FULLY_SUPPORTED,
    SupportLabel.NOT_STATED: Faith.NO_EVIDENCE,
    SupportLabel.CONTRADICTED: Faith.CONTRADICTORY,
}
"""The words of axion for merilo's labels."""


def _all_or_half(seen: Seen) -> float:
    """Rate the whole response: 2 if all is supported, 1 if some is, 0 if nothing is."""
    return scaled_rating(2 if all(seen.positive) else int(any(seen.positive)), 2)


def _not_contradicted(seen: Seen) -> float:
    labels = [verdict.label for verdict in seen.verdicts]
    return fraction(len(labels) - labels.count(SupportLabel.CONTRADICTED), len(labels))


def _in_thirds(seen: Seen) -> float:
    """Rate the whole response: 3 if all statements address the input, 2 if at least half do, 1 if some do."""
    share = _share(seen)
    return scaled_rating(3 if share == 1 else 2 if share >= 0.5 else 1 if share else 0, 3)


# -- the formulas, oldest first -----------------------------------------------------------------------

_CONTEXTS, _EVIDENCE = "{relevant} of {contexts} contexts", "{evidence_sentences} of {sentences} sentences"
_AT_RANK: Final = "{useful} of {contexts} contexts serve, the first at rank {first}"
_STATED: Final = "{supported} of {statements} statements supported"
_KNOWN: Final = "{supported} supported and {contradicted} contradicted of {statements} statements"
_OF_RESPONSE: Final = "supported statements of the response / its statements"
_OF_REFERENCE: Final = "supported statements of the reference / its statements"
_OR_0: Final = f"{_OF_REFERENCE}; 0 for none"
_BY_USE: Final = "average precision over usefulness for the reference"
_ADDRESSED: Final = "{addressing} of {statements} statements address the input"
_ADDRESSING: Final = "statements that address the input / statements"


def _by_rank(seen: Seen) -> float:
    return average_precision(seen.positive)


_RELEVANT: Final = DefinitionFormula("", "", "", Lineage.CONTEXT_RELEVANCE, _RELEVANCE, _CONTEXTS, _share, 0.0)
_RANKED: Final = DefinitionFormula("", "", _BY_USE, Lineage.CONTEXT_PRECISION, _USEFULNESS, _AT_RANK, _by_rank, 0.0)
_RECALLED: Final = DefinitionFormula("", "", _OR_0, Lineage.CONTEXT_RECALL, _support("reference"), _STATED, _share, 0.0)
_FAITHFUL: Final = DefinitionFormula(
    "", "", f"{_OF_RESPONSE}; 0 for none", Lineage.FAITHFULNESS, _SUPPORT, _STATED, _share, 0.0
)
_ANSWERED: Final = DefinitionFormula(
    "", "", _ADDRESSING, Lineage.ANSWER_RELEVANCY, _ADDRESSES, _ADDRESSED, _share, None
)

_FORMULAS: Final = (
    _RELEVANT.row(
        "ragas-0.0.12:context_relevancy",
        "the agreement of several replies; sentences copied by the judge, also some that are in no context",
        formula='evidence sentences / pieces between ". " of all contexts joined, at most 1',
        working="{evidence_sentences} evidence sentences of {sentences} pieces",
        value=lambda seen: capped_fraction(_evidence_sentences(seen), _pieces(seen)),
        more=_counted_pieces,
    ),
    _RELEVANT.row(
        "ragas-0.1.9:context_relevancy",
        "sentences copied by the judge and counted by pysbd; a no-answer phrase that counts as a sentence",
        formula="evidence sentences / sentences of all contexts, at most 1; 0 for no sentence",
        working=_EVIDENCE,
        value=_sentence_ratio,
    ),
    _RELEVANT.row(
        "nvidia:context_relevance",
        "one rating of all contexts joined, by two prompts averaged",
        formula="best grade of the contexts / 2; 0 where they say no more than the question",
        working="best grade {best} of 2",
        value=_best_grade,
    ),
    _RELEVANT.row(
        "spring-ai-ragas:context_relevance",
        "several models averaged; a context that no model rated leaves the mean",
        formula="mean of grade / 2 over the contexts",
        working="{points} points of 2 for each of {contexts} contexts",
        value=lambda seen: mean(scaled_rating(grade, 2) for grade in seen.grades),
        empty=None,
    ),
    _RELEVANT.row(
        "axion:contextual_relevancy",
        "all contexts in one request; verdicts missing from the reply leave the denominator",
        formula="contexts of grade 1 or 2 / contexts; 0 when nothing was retrieved",
    ),
    _RELEVANT.row(
        "axion:contextual_relevancy(mode=holistic, mode_effect=documented)",
        "the judge sees all contexts joined",
        formula="1 when any context has grade 1 or 2, else 0",
        working=f"{_CONTEXTS}, one is enough",
        value=lambda seen: float(any(seen.positive)),
    ),
    _RELEVANT.row(
        "deepeval-4.3.1:contextual_relevancy",
        "statements that the judge makes of each context, in place of its sentences",
        formula="evidence sentences / sentences, pooled over the contexts; 0 for none",
        working=f"{_EVIDENCE}, pooled",
        value=_sentence_ratio,
    ),
    _RELEVANT.row(
        "trulens:context_relevance",
        "its level 1 (slightly related), which our grades do not tell from 0",
        formula="mean over the contexts of a rating / 3, with our grades 0, 1, 2 as 0, 2, 3",
        working="{points_of_three} points of 3 for each of {contexts} contexts",
        value=lambda seen: mean(scaled_rating(_FOUR_LEVELS[grade], 3) for grade in seen.grades),
        empty=None,
    ),
    _RELEVANT.row(
        "ares:context_relevance",
        "a reply without a label counts as no; correction by human labels",
        formula="contexts of grade 1 or 2 / contexts",
        empty=None,
    ),
    _RANKED.row(
        "ragas-0.1.9:context_precision",
        "a context whose reply cannot be read, which fails the sample",
        formula=f"{_BY_USE}, with 1e-10 added to the number of useful ones",
        value=lambda seen: smoothed_average_precision([float(flag) for flag in seen.positive]),
    ),
    _RANKED.row(
        "axion:contextual_ranking",
        "all contexts in one request",
        formula="average precision over relevance to the user input",
        shared=_RELEVANCE._replace(counts=_rank_counts),
    ),
    _RANKED.row("axion:contextual_precision", "a lost reply counts as not useful"),
    _RANKED.row(
        "deepeval-4.3.1:contextual_precision",
        "all contexts in one request; verdicts are not counted against contexts",
    ),
    _RANKED.row("spring-ai-ragas:context_precision", "several models averaged; a failed call counts as not relevant"),
    _RANKED.row(
        "ragchecker:context_precision",
        "usefulness is one question here, where it is whether a claim of the reference is entailed",
        formula="useful contexts / contexts, whatever their order",
        working="{useful} of {contexts} contexts serve",
        value=_share,
    ),
    _RECALLED.row("ragas-0.0.12:context_recall", "lines of the reply are counted, blank ones too"),
    _RECALLED.row(
        "ragas-0.1.9:context_recall",
        "the judge splits the reference and judges it in one reply",
        formula=_OF_REFERENCE,
        empty=None,
    ),
    _RECALLED.row(
        "axion:contextual_recall",
        "a lost verdict counts as not supported",
        formula=_OF_REFERENCE,
        empty=None,
    ),
    _RECALLED.row("deepeval-4.3.1:contextual_recall", "the judge splits the reference into sentences"),
    _RECALLED.row("spring-ai-ragas:context_recall", "several models averaged; split and judged in one reply"),
    _RECALLED.row("ragchecker:claim_recall", "each context is compared with each claim separately"),
    _FAITHFUL.row(
        "ragas-0.0.12:faithfulness",
        "a statement without a verdict counts as supported, a verdict too many below zero",
        formula="1 - unsupported statements / statements; 1 for none",
        empty=1.0,
    ),
    _FAITHFUL.row(
        "ragas-0.1.9:faithfulness",
        "statements of sentences that end with a full stop only; verdicts returned are counted",
        formula=_OF_RESPONSE,
        empty=None,
    ),
    _FAITHFUL.row(
        "nvidia:response_groundedness",
        "one rating of the whole response, by two prompts averaged; a response that occurs in the contexts is 1",
        formula="1 when all statements are supported, 0.5 when some are, 0 when none is",
        value=_all_or_half,
    ),
    _FAITHFUL.row(
        "axion:faithfulness",
        "partial support, which counts a half",
        formula="sum of 1 for supported, 0 for not stated, -1 for contradicted / statements, at least 0; 1 for none",
        working=_KNOWN,
        value=lambda seen: clipped_mean([WEIGHTS[_FAITH[verdict.label]] for verdict in seen.verdicts]),
        empty=1.0,
        tells=True,
    ),
    _FAITHFUL.row(
        "deepeval-4.3.1:faithfulness",
        "statements are compared with truths extracted from the contexts",
        formula="statements that are not contradicted / statements; 1 for none",
        working=_KNOWN,
        value=_not_contradicted,
        empty=1.0,
        tells=True,
    ),
    _FAITHFUL.row("spring-ai-ragas:faithfulness", "several models averaged, each with its own statements"),
    _FAITHFUL.row("ragchecker:faithfulness", "each context is compared with each claim separately"),
    _FAITHFUL.row(
        "ares:answer_faithfulness",
        "one verdict on the whole",
        formula="1 when all statements are supported, else 0",
        value=lambda seen: float(all(seen.positive)),
        empty=None,
    ),
    _ANSWERED.row(
        "ragas-0.0.12:answer_relevancy",
        "questions generated from the answer and their cosine with the input, in place of statements",
    ),
    _ANSWERED.row(
        "ragas-0.1.9:answer_relevancy",
        "questions generated from the answer and their cosine with the input; one sample of three may decline",
        formula=f"{_ADDRESSING}; 0 when the response declines to answer",
        value=lambda seen: 0.0 if seen.declined else _share(seen),
    ),
    _ANSWERED.row(
        "axion:answer_relevancy",
        "an undecided verdict counts as addressing; a lost reply scores 1",
        formula=f"{_ADDRESSING}; 1 for none",
        empty=1.0,
    ),
    _ANSWERED.row(
        "deepeval-4.3.1:answer_relevancy",
        "only a plain no counts against the response",
        formula=f"{_ADDRESSING}; 1 for none",
        empty=1.0,
    ),
    _ANSWERED.row(
        "trulens:relevance",
        "one rating of the whole response",
        formula="a rating / 3: 3 when all statements address the input, 2 when half or more do, 1 when some do",
        value=_in_thirds,
    ),
    _ANSWERED.row(
        "ares:answer_relevance",
        "one verdict on the whole response",
        formula="1 when any statement addresses the input and the response does not decline, else 0",
        value=lambda seen: float(not seen.declined and any(seen.positive)),
    ),
)
FORMS: Final = {form.definition: form for form in _FORMULAS}
"""Published definitions whose formulas can be computed over native verdicts, by their text."""
FAMILIES: Final[Mapping[str, str]] = {definition: form.lineage.value for definition, form in FORMS.items()}
"""The family of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SameVerdicts(MetricDefaults):
    """A published definition's formula over the verdicts of merilo's own metrics, in [0, 1].

    `of` is the text of a published metric, such as "ragas-0.1.9:context_relevancy". Edge cases (nothing retrieved, no
    statement) follow the definition; a lost verdict fails the sample, as in all native metrics. `FORMS[of]` has the
    formula and the parts of the definition that are left out. Raises UsageError for a definition without a form.
    """

    name: ClassVar[str] = "same_verdicts"
    version: ClassVar[int] = 1
    ranked: ClassVar[bool] = True  # the forms of average precision are
    card: ClassVar[Card] = Card(
        summary="A published definition's formula over native verdicts.",
        meaning="the formula of another tool",
        formula="That of the published metric named by `of`.",
        questions="Those of the native metric of the same family.",
        when="To see how much of a difference between two tools comes from the formula.",
        when_not="To reproduce a number of another tool: its judge gets other questions. Use the published "
        "metric itself.",
        family="lineage",
    )

    needs = by_parameters(lambda metric: FORMS[metric.of].shared.needs, frozenset[str]())
    asks = by_parameters(lambda metric: FORMS[metric.of].shared.asks, Kinds())

    of: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", with_version(self.of))  # a frozen class has no other way to set a field
        if self.of not in FORMS:
            raise UsageError(f"No formula of {self.of!r} over native verdicts; available: {', '.join(FORMS)}.")

    def max_questions(self, sample: Sample) -> int:
        return FORMS[self.of].shared.max_questions(sample)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        return (yield from FORMS[self.of].plan(sample))
