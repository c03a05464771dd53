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
from merilo.judging.kinds.addresses import Addresses
from merilo.judging.kinds.noncommittal import Noncommittal
from merilo.judging.kinds.relevance import Relevance
from merilo.judging.kinds.statements import Statements
from merilo.judging.kinds.support import Support, SupportLabel
from merilo.judging.kinds.usefulness import Usefulness
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
    lineage: Lineage
    formula: str
    """The formula in words."""
    left_out: str
    """The parts of the definition that are not in the formula."""
    working: str
    """The computation of the value, with the names of counts in braces: `{relevant} of {contexts} contexts`."""
    shared: SharedVerdicts
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

    def explain(self, counts: Mapping[str, int | None]) -> str:
        """Return the computation of a value with these counts; an unknown count is a dash."""
        return self.working.format_map({name: "-" if count is None else count for name, count in counts.items()})


# -- contexts -----------------------------------------------------------------------------------------

_FOUR_LEVELS: Final = {0: 0, 1: 2, 2: 3}
"""merilo's grades on a scale of 0 to 3, whose level 1 ("related, but no answer") they cannot express."""


def _relevance(sample: Sample) -> Plan[Seen]:
    return Seen(sample, (yield from relevance_of_contexts(sample)))


def _usefulness(sample: Sample) -> Plan[Seen]:
    return Seen(sample, (yield from usefulness_of_contexts(sample)))


def _relevance_counts(seen: Seen) -> Counts:
    return {
        "contexts": len(seen.grades),
        "relevant": sum(seen.positive),
        "best": max(seen.grades, default=0),
        "points": sum(seen.grades),
        "points_of_three": sum(_FOUR_LEVELS[grade] for grade in seen.grades),
        "sentences": sum(len(context.sentences) for context in seen.sample.contexts),
        "evidence_sentences": _evidence_sentences(seen),
    }


def _evidence_sentences(seen: Seen) -> int:
    return sum(len(verdict.evidence) for verdict in seen.verdicts)


def _rank_counts(seen: Seen) -> Counts:
    flags = seen.positive
    return {"contexts": len(flags), "useful": sum(flags), "first": flags.index(True) + 1 if any(flags) else None}


def _pieces(seen: Seen) -> int:
    return len(at_full_stops(joined(seen.sample)))


def _sentences_as_pieces(seen: Seen) -> Counts:
    return {"sentences": _pieces(seen)}


def _sentence_ratio(seen: Seen) -> float:
    return capped_fraction(_evidence_sentences(seen), sum(len(context.sentences) for context in seen.sample.contexts))


def _best_grade(seen: Seen) -> float:
    question, contexts = seen.sample.require("user_input").strip(), joined(seen.sample).strip()
    if not question or not contexts or contexts in question:
        return 0.0  # decided without a request
    return scaled_rating(max(seen.grades), 2)


def _share(seen: Seen) -> float:
    return fraction(sum(seen.positive), len(seen.verdicts))


_RELEVANCE: Final = SharedVerdicts(
    frozenset({"user_input", "retrieved_contexts"}), Kinds({Relevance}), _relevance, max_contexts, _relevance_counts
)
_USEFULNESS: Final = SharedVerdicts(
    frozenset({"user_input", "retrieved_contexts", "reference"}),
    Kinds({Usefulness}),
    _usefulness,
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


def _max_addressed(sample: Sample) -> int:
    return 2 + max_statements(sample, "response")


def _addressed_counts(seen: Seen) -> Counts:
    return {"statements": len(seen.positive), "addressing": sum(seen.positive), "declined": int(seen.declined)}


def _support(field: StatedField) -> SharedVerdicts:
    needs, asks = frozenset({"retrieved_contexts", field}), Kinds({Statements, Support})
    return SharedVerdicts(needs, asks, partial(_supported, field), partial(_max_supported, field), _supported_counts)


_RECALL, _SUPPORT = _support("reference"), _support("response")
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
_RANKED: Final = "{useful} of {contexts} contexts serve, the first at rank {first}"
_STATED: Final = "{supported} of {statements} statements supported"
_KNOWN: Final = "{supported} supported and {contradicted} contradicted of {statements} statements"
_OF_RESPONSE: Final = "supported statements of the response / its statements"
_BY_USE: Final = "average precision over usefulness for the reference"
_ADDRESSING: Final = "statements that address the input / statements"


def _of_contexts(
    definition: str, formula: str, left_out: str, working: str, value: Callable[[Seen], float], *, empty: float | None
) -> DefinitionFormula:
    family = Lineage.CONTEXT_RELEVANCE
    return DefinitionFormula(definition, family, formula, left_out, working, _RELEVANCE, value, empty)


def _ranked(
    definition: str, left_out: str, value: Callable[[Seen], float], formula: str = _BY_USE, working: str = _RANKED
) -> DefinitionFormula:
    family = Lineage.CONTEXT_PRECISION
    return DefinitionFormula(definition, family, formula, left_out, working, _USEFULNESS, value, 0.0)


def _by_rank(seen: Seen) -> float:
    return average_precision(seen.positive)


def _recalled(definition: str, left_out: str, *, empty: float | None) -> DefinitionFormula:
    formula = "supported statements of the reference / its statements" + ("; 0 for none" if empty == 0.0 else "")
    return DefinitionFormula(definition, Lineage.CONTEXT_RECALL, formula, left_out, _STATED, _RECALL, _share, empty)


def _faithful(
    definition: str,
    formula: str,
    left_out: str,
    value: Callable[[Seen], float] = _share,
    *,
    empty: float | None,
    tells: bool = False,
) -> DefinitionFormula:
    family, working = Lineage.FAITHFULNESS, _KNOWN if tells else _STATED
    return DefinitionFormula(definition, family, formula, left_out, working, _SUPPORT, value, empty, tells=tells)


def _answered(
    definition: str, formula: str, left_out: str, value: Callable[[Seen], float] = _share, *, empty: float | None = None
) -> DefinitionFormula:
    working = "{addressing} of {statements} statements address the input"
    return DefinitionFormula(definition, Lineage.ANSWER_RELEVANCY, formula, left_out, working, _ADDRESSES, value, empty)


_FORMULAS: Final = (
    _of_contexts(
        "ragas-0.0.12:context_relevancy",
        'evidence sentences / pieces between ". " of all contexts joined, at most 1',
        "the agreement of several replies; sentences copied by the judge, also some that are in no context",
        "{evidence_sentences} evidence sentences of {sentences} pieces",
        lambda seen: capped_fraction(_evidence_sentences(seen), _pieces(seen)),
        empty=0.0,
    )._replace(more=_sentences_as_pieces),
    _of_contexts(
        "ragas-0.1.9:context_relevancy",
        "evidence sentences / sentences of all contexts, at most 1; 0 for no sentence",
        "sentences copied by the judge and counted by pysbd; a no-answer phrase that counts as a sentence",
        _EVIDENCE,
        _sentence_ratio,
        empty=0.0,
    ),
    _of_contexts(
        "nvidia:context_relevance",
        "best grade of the contexts / 2; 0 where they say no more than the question",
        "one rating of all contexts joined, by two prompts averaged",
        "best grade {best} of 2",
        _best_grade,
        empty=0.0,
    ),
    _of_contexts(
        "spring-ai-ragas:context_relevance",
        "mean of grade / 2 over the contexts",
        "several models averaged; a context that no model rated leaves the mean",
        "{points} points of 2 for each of {contexts} contexts",
        lambda seen: mean(scaled_rating(grade, 2) for grade in seen.grades),
        empty=None,
    ),
    _of_contexts(
        "axion:contextual_relevancy",
        "contexts of grade 1 or 2 / contexts; 0 when nothing was retrieved",
        "all contexts in one request; verdicts missing from the reply leave the denominator",
        _CONTEXTS,
        _share,
        empty=0.0,
    ),
    _of_contexts(
        "axion:contextual_relevancy(mode=holistic, mode_effect=documented)",
        "1 when any context has grade 1 or 2, else 0",
        "the judge sees all contexts joined",
        f"{_CONTEXTS}, one is enough",
        lambda seen: float(any(seen.positive)),
        empty=0.0,
    ),
    _of_contexts(
        "deepeval-4.3.1:contextual_relevancy",
        "evidence sentences / sentences, pooled over the contexts; 0 for none",
        "statements that the judge makes of each context, in place of its sentences",
        f"{_EVIDENCE}, pooled",
        _sentence_ratio,
        empty=0.0,
    ),
    _of_contexts(
        "trulens:context_relevance",
        "mean over the contexts of a rating / 3, with our grades 0, 1, 2 as 0, 2, 3",
        "its level 1 (slightly related), which our grades do not tell from 0",
        "{points_of_three} points of 3 for each of {contexts} contexts",
        lambda seen: mean(scaled_rating(_FOUR_LEVELS[grade], 3) for grade in seen.grades),
        empty=None,
    ),
    _of_contexts(
        "ares:context_relevance",
        "contexts of grade 1 or 2 / contexts",
        "a reply without a label counts as no; correction by human labels",
        _CONTEXTS,
        _share,
        empty=None,
    ),
    _ranked(
        "ragas-0.1.9:context_precision",
        "a context whose reply cannot be read, which fails the sample",
        lambda seen: smoothed_average_precision([float(flag) for flag in seen.positive]),
        f"{_BY_USE}, with 1e-10 added to the number of useful ones",
    ),
    _ranked(
        "axion:contextual_ranking",
        "all contexts in one request",
        _by_rank,
        "average precision over relevance to the user input",
    )._replace(shared=_RELEVANCE._replace(counts=_rank_counts)),
    _ranked("axion:contextual_precision", "a lost reply counts as not useful", _by_rank),
    _ranked(
        "deepeval-4.3.1:contextual_precision",
        "all contexts in one request; verdicts are not counted against contexts",
        _by_rank,
    ),
    _ranked(
        "spring-ai-ragas:context_precision",
        "several models averaged; a failed call counts as not relevant",
        _by_rank,
    ),
    _ranked(
        "ragchecker:context_precision",
        "usefulness is one question here, where it is whether a claim of the reference is entailed",
        _share,
        "useful contexts / contexts, whatever their order",
        "{useful} of {contexts} contexts serve",
    ),
    _recalled("ragas-0.0.12:context_recall", "lines of the reply are counted, blank ones too", empty=0.0),
    _recalled("ragas-0.1.9:context_recall", "the judge splits the reference and judges it in one reply", empty=None),
    _recalled("axion:contextual_recall", "a lost verdict counts as not supported", empty=None),
    _recalled("deepeval-4.3.1:contextual_recall", "the judge splits the reference into sentences", empty=0.0),
    _recalled("spring-ai-ragas:context_recall", "several models averaged; split and judged in one reply", empty=0.0),
    _recalled("ragchecker:claim_recall", "each context is compared with each claim separately", empty=0.0),
    _faithful(
        "ragas-0.0.12:faithfulness",
        "1 - unsupported statements / statements; 1 for none",
        "a statement without a verdict counts as supported, a verdict too many below zero",
        empty=1.0,
    ),
    _faithful(
        "ragas-0.1.9:faithfulness",
        _OF_RESPONSE,
        "statements of sentences that end with a full stop only; verdicts returned are counted",
        empty=None,
    ),
    _faithful(
        "nvidia:response_groundedness",
        "1 when all statements are supported, 0.5 when some are, 0 when none is",
        "one rating of the whole response, by two prompts averaged; a response that occurs in the contexts is 1",
        _all_or_half,
        empty=0.0,
    ),
    _faithful(
        "axion:faithfulness",
        "sum of 1 for supported, 0 for not stated, -1 for contradicted / statements, at least 0; 1 for none",
        "partial support, which counts a half",
        lambda seen: clipped_mean([WEIGHTS[_FAITH[verdict.label]] for verdict in seen.verdicts]),
        empty=1.0,
        tells=True,
    ),
    _faithful(
        "deepeval-4.3.1:faithfulness",
        "statements that are not contradicted / statements; 1 for none",
        "statements are compared with truths extracted from the contexts",
        _not_contradicted,
        empty=1.0,
        tells=True,
    ),
    _faithful(
        "spring-ai-ragas:faithfulness",
        f"{_OF_RESPONSE}; 0 for none",
        "several models averaged, each with its own statements",
        empty=0.0,
    ),
    _faithful(
        "ragchecker:faithfulness",
        f"{_OF_RESPONSE}; 0 for none",
        "each context is compared with each claim separately",
        empty=0.0,
    ),
    _faithful(
        "ares:answer_faithfulness",
        "1 when all statements are supported, else 0",
        "one verdict on the whole",
        lambda seen: float(all(seen.positive)),
        empty=None,
    ),
    _answered(
        "ragas-0.0.12:answer_relevancy",
        _ADDRESSING,
        "questions generated from the answer and their cosine with the input, in place of statements",
    ),
    _answered(
        "ragas-0.1.9:answer_relevancy",
        f"{_ADDRESSING}; 0 when the response declines to answer",
        "questions generated from the answer and their cosine with the input; one sample of three may decline",
        lambda seen: 0.0 if seen.declined else _share(seen),
    ),
    _answered(
        "axion:answer_relevancy",
        f"{_ADDRESSING}; 1 for none",
        "an undecided verdict counts as addressing; a lost reply scores 1",
        empty=1.0,
    ),
    _answered(
        "deepeval-4.3.1:answer_relevancy",
        f"{_ADDRESSING}; 1 for none",
        "only a plain no counts against the response",
        empty=1.0,
    ),
    _answered(
        "trulens:relevance",
        "a rating / 3: 3 when all statements address the input, 2 when half or more do, 1 when some do",
        "one rating of the whole response",
        _in_thirds,
    ),
    _answered(
        "ares:answer_relevance",
        "1 when any statement addresses the input and the response does not decline, else 0",
        "one verdict on the whole response",
        lambda seen: float(not seen.declined and any(seen.positive)),
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

    of: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", with_version(self.of))  # a frozen class has no other way to set a field
        if self.of not in FORMS:
            raise UsageError(f"No formula of {self.of!r} over native verdicts; available: {', '.join(FORMS)}.")

    @property
    def needs(self) -> frozenset[str]:
        """The fields that the native questions of the family need."""
        return FORMS[self.of].shared.needs

    @property
    def asks(self) -> Kinds:
        """The native questions of the family."""
        return FORMS[self.of].shared.asks

    def max_questions(self, sample: Sample) -> int:
        return FORMS[self.of].shared.max_questions(sample)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        return (yield from FORMS[self.of].plan(sample))
