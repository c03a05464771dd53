"""Answering: the joint verdict on evidence, response and reference, with the probable culprit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.judging.ask import Plan, both, if_judged, together
from merilo.judging.kinds.contexts import Sufficiency, SufficiencyLabel, Support
from merilo.judging.kinds.responses import Noncommittal, Statements
from merilo.judging.verdicts import Failure
from merilo.metrics.base import Card, Evidence, EvidenceTarget, Family, Kinds, Score, Undefined, not_judged
from merilo.metrics.steps import (
    BLANK_USER_INPUT,
    RESPONSE_STATES_NOTHING,
    about_judged,
    declines,
    evidence_of,
    is_blank,
    judged_support_of,
    statements_of,
    states_nothing,
    support_by,
)
from merilo.metrics.variants import ResponseMetric, variant

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.metrics.steps import DistinctStatement

RESPONSES: Final = "responses"
"""Name of the count that is 1 for each scored sample, of which the categories are parts."""


class Category(StrEnum):
    """The categories of `answering`; a sample that fits none is undefined."""

    INVENTED = "invented"
    WRONG = "wrong"
    BEYOND_EVIDENCE = "beyond_evidence"
    DECLINED_WRONGLY = "declined_wrongly"
    EVIDENCE_MISSING = "evidence_missing"
    RIGHTLY_DECLINED = "rightly_declined"
    RIGHT = "right"

    @property
    def good(self) -> bool:
        """True if the system did what it should: it answered rightly, or rightly declined."""
        return self in {Category.RIGHT, Category.RIGHTLY_DECLINED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering(ResponseMetric):
    """Share of samples that are answered rightly or rightly declined, with a category for each sample.

    Meaning: answered rightly, or rightly declined
    Formula: 1 for right and rightly_declined; 0 for wrong, beyond_evidence, declined_wrongly, evidence_missing and
        invented.
    Questions: The questions of context_sufficiency and faithfulness; with a reference one Statements question and one
        Support question for each of its statements, as answer_correctness. All are shared with these metrics.
    Undefined: the user input is blank | the response makes no statement
    Use: To see whether retriever or generator is the culprit, and whether the system declines when it should.
    Not: As the only metric with a weak judge: one wrong verdict on evidence or support changes the category.
    See: context_sufficiency | faithfulness | answer_correctness
    Source: merilo's own; sufficiency as in Joren et al. 2024, Sufficient Context (arXiv 2411.06037).

    Evidence is enough if the ids of relevant contexts are all retrieved, and not enough if none is, or if people grade
    each retrieved one 0. Otherwise it is enough if the contexts are sufficient; `partly` is not. A blank response
    counts as declined. A reference agrees if the response supports at least the share `agreement` of its statements. A
    reference that makes no statement, such as "I do not know.", shows that declining is right.

    - `right`: enough evidence, answered, every statement supported, the reference (if any) agrees;
    - `wrong`: enough evidence, answered, the reference does not agree;
    - `beyond_evidence`: enough evidence, answered, some statement is not supported;
    - `declined_wrongly`: enough evidence, declined;
    - `rightly_declined`: declined, and no evidence or no answer: the reference makes no statement, or there is none;
    - `evidence_missing`: not enough evidence, declined though the reference has an answer, or answered without a
      statement that is known not to be supported;
    - `invented`: not enough evidence, answered, some statement is not supported.

    Undefined, so "cannot tell", when the user input is blank, when the response answers but makes no statement, and
    when the category depends on what the judge leaves open.

    Each category also is a metric, such as `answering.invented`: 1 for its samples and 0 for all others.

    Source: merilo's own. Sufficiency and support as in context_sufficiency and faithfulness.
    """

    name: ClassVar[str] = "answering"
    version: ClassVar[int] = 2
    not_monotone_in: ClassVar[Kinds] = frozenset({Sufficiency, Noncommittal})
    needs = frozenset({"user_input", "retrieved_contexts", "response"})
    asks = Kinds({Sufficiency, Noncommittal, Statements, Support})
    only: ClassVar[Category | None] = None
    """The category that the value is an indicator of; None for right or rightly declined."""

    agreement: float = 0.5
    """The share of the reference's statements that a right response supports at least, in (0, 1]."""

    def __post_init__(self) -> None:
        if not 0 < self.agreement <= 1:
            raise UsageError(f"Metric {self.name!r} takes agreement=a number above 0, up to 1, got {self.agreement}.")

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input = sample.require("user_input")
        sample.require("retrieved_contexts")
        sample.require("response")
        if is_blank(user_input):
            return Undefined(BLANK_USER_INPUT)
        given = sample.reference is not None and not states_nothing(sample, "reference")
        # a plan for each reference: none or one
        of_reference = together([statements_of(sample, "reference")] if given else [])
        evidence, (response, reference) = yield from both(evidence_of(sample), both(_response_of(sample), of_reference))
        (declined, statements), truth = response, next(iter(reference), ())
        answered = not declined and bool(statements)
        verdicts, covered = yield from both(
            judged_support_of(sample, statements if answered else ()),
            if_judged(support_by(sample, "response", truth if answered else ())),
        )
        if not declined and not statements:
            return Undefined(RESPONSE_STATES_NOTHING)
        enough = None if isinstance(evidence, Failure) else evidence.label is SufficiencyLabel.SUFFICIENT
        known = [verdict.supported for verdict in verdicts if not isinstance(verdict, Failure)]
        # True if every statement is supported, False if one is not; None if it depends on those that are not judged
        supported = None if all(known) and len(known) < len(verdicts) else all(known)
        said = None if isinstance(covered, Failure) else sum(verdict.supported for verdict in covered)
        agrees = (None if said is None else said >= self.agreement * len(truth)) if truth else not given
        if declined:
            category = _declined(enough=enough, given=given, answerable=bool(truth))
        else:
            category = _answered(enough=enough, supported=supported, agrees=agrees)
        whole = () if isinstance(evidence, Failure) else (Evidence(EvidenceTarget.TEXT, 0, evidence),)
        about = (*whole, *about_judged(statements if answered else (), verdicts))
        if category is None:
            missing = [each for each in (evidence, *verdicts, covered) if isinstance(each, Failure)]
            return not_judged(missing, evidence=about)
        of_truth = about_judged(truth, covered) if answered and not isinstance(covered, Failure) else ()
        return Score(
            float(category.good if self.only is None else category is self.only),
            evidence=(*about, *of_truth),
            counts={} if self.only else {RESPONSES: 1, **{str(each): int(each is category) for each in Category}},
        )


def _response_of(sample: Sample) -> Plan[tuple[bool, tuple[DistinctStatement, ...]]]:
    """Return whether the response declines, and its statements."""
    if states_nothing(sample, "response"):
        return True, ()
    return (yield from both(declines(sample), statements_of(sample, "response")))


def _declined(*, enough: bool | None, given: bool, answerable: bool) -> Category | None:
    """Return the category of a response that declines; None if what is not judged decides it.

    `enough`: None if it is not judged. `given`: there is a reference. `answerable`: it makes a statement; otherwise no
    answer is the right one.
    """
    if given and not answerable:
        return Category.RIGHTLY_DECLINED
    if enough is None:
        return None
    return Category.DECLINED_WRONGLY if enough else Category.EVIDENCE_MISSING if given else Category.RIGHTLY_DECLINED


def _answered(*, enough: bool | None, supported: bool | None, agrees: bool | None) -> Category | None:
    """Return the category of a response that answers; None if what is not judged decides it.

    Each argument is None if it is not judged. `agrees`: the response says enough of the reference, if there is one.
    """
    if enough is None:
        return None
    if not enough:
        return Category.INVENTED if supported is False else Category.EVIDENCE_MISSING
    if agrees is False:
        return Category.WRONG
    if supported is False:
        return Category.BEYOND_EVIDENCE
    return Category.RIGHT if agrees and supported else None


def _only(category: Category, says: str, not_monotone_in: Kinds) -> type[Answering]:
    return variant(
        Answering,
        f"{Answering.name}.{category}",
        f"""1 if the category of `answering` is `{category}`, otherwise 0: {says}

        Undefined when `answering` is, and from the same verdicts. Source: merilo's own.
        """,
        only=category,
        higher_is_better=category.good,
        not_monotone_in=not_monotone_in,
        card=Card(
            summary=f"Share of samples that {says}",
            meaning=f"answers: {category.replace('_', ' ')}",
            formula=f"1 if the category of answering is {category}, otherwise 0.",
            questions="Those of answering.",
            undefined=Answering.card.undefined,
            when="To gate, compare or correct one category. Together with answering it costs nothing more.",
            when_not="For a first look: answering lists all categories.",
            relatives=("answering",),
            sources=Answering.card.sources,
            family=Family.RESPONSE,
        ),
    )


METRICS: Final = (
    Answering,
    _only(Category.RIGHT, "answer rightly, from sufficient evidence.", Kinds()),
    _only(
        Category.RIGHTLY_DECLINED,
        "decline without evidence, or because there is no answer.",
        Kinds({Sufficiency, Noncommittal}),
    ),
    _only(Category.DECLINED_WRONGLY, "decline though the evidence was there (generator).", Kinds({Sufficiency})),
    _only(
        Category.BEYOND_EVIDENCE,
        "have the evidence, but claim what it does not support (generator).",
        Kinds({Sufficiency, Noncommittal, Support}),
    ),
    _only(
        Category.WRONG,
        "have the evidence, but answer against the reference (generator).",
        Kinds({Sufficiency, Noncommittal}),
    ),
    _only(
        Category.EVIDENCE_MISSING,
        "lack evidence, and decline or answer only in part (retriever).",
        Kinds({Noncommittal, Support}),
    ),
    _only(Category.INVENTED, "lack evidence, and claim what no context supports (retriever and generator).", Kinds()),
)
