"""Recall, faithfulness and answer relevancy: published formulas over merilo's verdicts on statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.judging.ask import both
from merilo.judging.kinds.addresses import Addresses
from merilo.judging.kinds.noncommittal import Noncommittal
from merilo.judging.kinds.statements import Statements
from merilo.judging.kinds.support import Support, SupportLabel, SupportVerdict
from merilo.metrics.base import Kinds, Score, Undefined
from merilo.metrics.formulas import clipped_mean, fraction, scaled_rating
from merilo.metrics.steps import (
    DistinctStatement,
    StatedField,
    about_statements,
    addressing_of,
    declines,
    max_statements,
    most_support,
    statements_of,
    states_nothing,
    support_counts,
    support_of,
)
from merilo_published.lineage.formula import DefinitionFormula, Lineage, SharedVerdicts

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.judging.verdicts import DecisionVerdict

_NO_STATEMENT: Final = "the text makes no statement"
_UNKNOWN: Final = "this judge does not tell contradicted from not stated, which the definition needs"


@dataclass(frozen=True, slots=True)
class Supported:
    """The distinct statements of a text, with the contexts' support for each."""

    statements: Sequence[DistinctStatement]
    verdicts: Sequence[SupportVerdict]


@dataclass(frozen=True, slots=True)
class Addressed:
    """The distinct statements of a response, each with whether it addresses the user input."""

    statements: Sequence[DistinctStatement]
    verdicts: Sequence[DecisionVerdict]
    declined: bool


def _supported(field: StatedField) -> Callable[[Sample], Plan[Supported]]:
    def plan(sample: Sample) -> Plan[Supported]:
        sample.require("retrieved_contexts")
        if states_nothing(sample, field):
            return Supported((), ())
        statements = yield from statements_of(sample, field)
        return Supported(statements, (yield from support_of(sample, statements)))

    return plan


def _addressed(sample: Sample) -> Plan[Addressed]:
    sample.require("user_input")
    if states_nothing(sample, "response"):
        return Addressed((), (), declined=False)
    declined, statements = yield from both(declines(sample), statements_of(sample, "response"))
    verdicts = yield from addressing_of(sample, statements)
    return Addressed(statements, verdicts, declined)


_RECALL: Final = SharedVerdicts(
    frozenset({"retrieved_contexts", "reference"}),
    Kinds({Statements, Support}),
    _supported("reference"),
    lambda sample: 1 + most_support(sample, "reference"),
)
_SUPPORT: Final = SharedVerdicts(
    frozenset({"retrieved_contexts", "response"}),
    Kinds({Statements, Support}),
    _supported("response"),
    lambda sample: 1 + most_support(sample, "response"),
)
_ADDRESSES: Final = SharedVerdicts(
    frozenset({"user_input", "response"}),
    Kinds({Addresses, Noncommittal, Statements}),
    _addressed,
    lambda sample: 2 + max_statements(sample, "response"),
)

_Scored = Callable[["Sample", Supported], Score | Undefined]


def _mean_weight(weights: Sequence[float]) -> float:
    return fraction(sum(weights), len(weights))


def _share(
    weight: Callable[[SupportVerdict], float],
    *,
    empty: float | None,
    tells: bool = False,
    formula: Callable[[Sequence[float]], float] = _mean_weight,
) -> _Scored:
    """Return the score by a formula of the statements' weights; `empty` if there is none, None for Undefined."""

    def score(_: Sample, seen: Supported) -> Score | Undefined:
        counts = support_counts(seen.verdicts)
        if not seen.verdicts:
            return Undefined(_NO_STATEMENT) if empty is None else Score(empty, counts=counts)
        if tells and any(not each.tells_contradicted for each in seen.verdicts):
            return Undefined(_UNKNOWN)
        value = formula([weight(verdict) for verdict in seen.verdicts])
        return Score(value, about_statements(seen.statements, seen.verdicts), counts)

    return score


def _weight_of_support(verdict: SupportVerdict) -> float:
    return float(verdict.supported)


def _weight_of_axion(verdict: SupportVerdict) -> float:
    return {SupportLabel.SUPPORTED: 1.0, SupportLabel.CONTRADICTED: -1.0}.get(verdict.label, 0.0)


def _weight_of_deepeval(verdict: SupportVerdict) -> float:
    return float(verdict.label is not SupportLabel.CONTRADICTED)


def _all_or_half(_: Sample, seen: Supported) -> Score | Undefined:
    """Rate the whole response: 2 if all is supported, 1 if some is, 0 if nothing is."""
    counts = support_counts(seen.verdicts)
    if not seen.verdicts:
        return Score(0.0, counts=counts)
    supported = sum(each.supported for each in seen.verdicts)
    rating = 2 if supported == len(seen.verdicts) else int(supported > 0)
    return Score(scaled_rating(rating, 2), about_statements(seen.statements, seen.verdicts), counts)


def _whole(_: Sample, seen: Supported) -> Score | Undefined:
    counts = support_counts(seen.verdicts)
    if not seen.verdicts:
        return Undefined(_NO_STATEMENT)
    value = float(all(each.supported for each in seen.verdicts))
    return Score(value, about_statements(seen.statements, seen.verdicts), counts)


_SHARE = "{supported} of {statements} statements supported"


def _recall(definition: str, left_out: str, *, empty: float | None) -> DefinitionFormula[Supported]:
    formula = "supported statements of the reference / its statements" + ("; 0 for none" if empty == 0.0 else "")
    score = _share(_weight_of_support, empty=empty)
    return DefinitionFormula(definition, Lineage.CONTEXT_RECALL, formula, left_out, _SHARE, _RECALL, score)


RECALL_FORMS: Final = (
    _recall("ragas-0.0.12:context_recall", "lines of the reply are counted, blank ones too", empty=0.0),
    _recall("ragas-0.1.9:context_recall", "the judge splits the reference and judges it in one reply", empty=None),
    _recall("axion:contextual_recall", "a lost verdict counts as not supported", empty=None),
    _recall("deepeval-4.3.1:contextual_recall", "the judge splits the reference into sentences", empty=0.0),
    _recall("spring-ai-ragas:context_recall", "several models averaged; split and judged in one reply", empty=0.0),
    _recall("ragchecker:claim_recall", "each context is compared with each claim separately", empty=0.0),
)
"""Context recall, oldest first."""


def _faith(
    definition: str, formula: str, left_out: str, score: _Scored, working: str = _SHARE
) -> DefinitionFormula[Supported]:
    return DefinitionFormula(definition, Lineage.FAITHFULNESS, formula, left_out, working, _SUPPORT, score)


_PLAIN = "supported statements of the response / its statements"
_KNOWN = "{supported} supported and {contradicted} contradicted of {statements} statements"

FAITHFULNESS_FORMS: Final = (
    _faith(
        "ragas-0.0.12:faithfulness",
        "1 - unsupported statements / statements; 1 for none",
        "a statement without a verdict counts as supported, a verdict too many below zero",
        _share(_weight_of_support, empty=1.0),
    ),
    _faith(
        "ragas-0.1.9:faithfulness",
        _PLAIN,
        "statements of sentences that end with a full stop only; verdicts returned are counted",
        _share(_weight_of_support, empty=None),
    ),
    _faith(
        "nvidia:response_groundedness",
        "1 when all statements are supported, 0.5 when some are, 0 when none is",
        "one rating of the whole response, by two prompts averaged; a response that occurs in the contexts is 1",
        _all_or_half,
    ),
    _faith(
        "axion:faithfulness",
        "sum of 1 for supported, 0 for not stated, -1 for contradicted / statements, at least 0; 1 for none",
        "partial support, which counts a half",
        _share(_weight_of_axion, empty=1.0, tells=True, formula=clipped_mean),
        _KNOWN,
    ),
    _faith(
        "deepeval-4.3.1:faithfulness",
        "statements that are not contradicted / statements; 1 for none",
        "statements are compared with truths extracted from the contexts",
        _share(_weight_of_deepeval, empty=1.0, tells=True),
        _KNOWN,
    ),
    _faith(
        "spring-ai-ragas:faithfulness",
        f"{_PLAIN}; 0 for none",
        "several models averaged, each with its own statements",
        _share(_weight_of_support, empty=0.0),
    ),
    _faith(
        "ragchecker:faithfulness",
        f"{_PLAIN}; 0 for none",
        "each context is compared with each claim separately",
        _share(_weight_of_support, empty=0.0),
    ),
    _faith(
        "ares:answer_faithfulness", "1 when all statements are supported, else 0", "one verdict on the whole", _whole
    ),
)
"""Faithfulness, oldest first."""


# -- answer relevancy ---------------------------------------------------------------------------------

_Answered = Callable[["Sample", Addressed], Score | Undefined]


def _addressing(value: Callable[[Addressed], float], *, empty: float | None) -> _Answered:
    def score(_: Sample, seen: Addressed) -> Score | Undefined:
        counts = {
            "statements": len(seen.verdicts),
            "addressing": sum(each.positive for each in seen.verdicts),
            "declined": int(seen.declined),
        }
        if not seen.verdicts:
            return Undefined(_NO_STATEMENT) if empty is None else Score(empty, counts=counts)
        return Score(value(seen), about_statements(seen.statements, seen.verdicts), counts)

    return score


def _addressing_share(seen: Addressed) -> float:
    return fraction(sum(each.positive for each in seen.verdicts), len(seen.verdicts))


def _unless_declined(seen: Addressed) -> float:
    return 0.0 if seen.declined else _addressing_share(seen)


def _in_thirds(seen: Addressed) -> float:
    """Rate the whole response: 3 if all statements address the input, 2 if at least half do, 1 if some do."""
    share = _addressing_share(seen)
    return scaled_rating(3 if share == 1 else 2 if share >= 0.5 else 1 if share else 0, 3)


def _any_addresses(seen: Addressed) -> float:
    return float(not seen.declined and any(each.positive for each in seen.verdicts))


def _answer(definition: str, formula: str, left_out: str, score: _Answered) -> DefinitionFormula[Addressed]:
    working = "{addressing} of {statements} statements address the input"
    return DefinitionFormula(definition, Lineage.ANSWER_RELEVANCY, formula, left_out, working, _ADDRESSES, score)


_ADDRESSING = "statements that address the input / statements"

ANSWER_FORMS: Final = (
    _answer(
        "ragas-0.0.12:answer_relevancy",
        _ADDRESSING,
        "questions generated from the answer and their cosine with the input, in place of statements",
        _addressing(_addressing_share, empty=None),
    ),
    _answer(
        "ragas-0.1.9:answer_relevancy",
        f"{_ADDRESSING}; 0 when the response declines to answer",
        "questions generated from the answer and their cosine with the input; one sample of three may decline",
        _addressing(_unless_declined, empty=None),
    ),
    _answer(
        "axion:answer_relevancy",
        f"{_ADDRESSING}; 1 for none",
        "an undecided verdict counts as addressing; a lost reply scores 1",
        _addressing(_addressing_share, empty=1.0),
    ),
    _answer(
        "deepeval-4.3.1:answer_relevancy",
        f"{_ADDRESSING}; 1 for none",
        "only a plain no counts against the response",
        _addressing(_addressing_share, empty=1.0),
    ),
    _answer(
        "trulens:relevance",
        "a rating / 3: 3 when all statements address the input, 2 when half or more do, 1 when some do",
        "one rating of the whole response",
        _addressing(_in_thirds, empty=None),
    ),
    _answer(
        "ares:answer_relevance",
        "1 when any statement addresses the input and the response does not decline, else 0",
        "one verdict on the whole response",
        _addressing(_any_addresses, empty=None),
    ),
)
"""Answer relevancy, oldest first."""
