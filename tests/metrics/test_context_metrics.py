from math import log2

import pytest
from each_case import each_case
from metrics.saying import Says, outcome, value

from merilo.data.sample import Sample
from merilo.errors import MissingField, UsageError
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict, SufficiencyLabel, Usefulness
from merilo.metrics.base import EvidenceTarget, Score, Undefined
from merilo.metrics.context_metrics import (
    ContextPrecision,
    ContextRanking,
    ContextRelevance,
    ContextSufficiency,
    RelevanceTarget,
    Unit,
)

GRADES = {"Whole.": 2, "Part.": 1}
BY_QUESTION = ContextPrecision(against=RelevanceTarget.QUESTION)
BY_REFERENCE = ContextPrecision(against=RelevanceTarget.REFERENCE)


def asked(*contexts: str, reference: str | None = None) -> Sample:
    return Sample("s", user_input="Why?", retrieved_contexts=contexts, reference=reference)


def of_flags(flags: str) -> Sample:
    return asked(*("Whole." if flag == "1" else "None." for flag in flags))


@each_case(
    ("metric", "expected"),
    [
        (ContextRelevance(), (1 + 0.5 + 0 + 0) / 4),
        (ContextRelevance(unit=Unit.CONTEXT), 2 / 4),
        (ContextRelevance(unit=Unit.CONTEXT, at=2), 1 / 4),
        (ContextRelevance(unit=Unit.SENTENCE), 2 / 5),
    ],
)
def test_relevance_counts_in_its_unit(metric: ContextRelevance, expected: float) -> None:
    """By grade, by context at a grade, and by sentence are three shares of one set of verdicts."""
    sample = asked("Whole.", "Part. Padding.", "None.", "Nothing.")
    assert value(metric, sample, Says(grades=GRADES)) == pytest.approx(expected)


def test_one_answering_sentence_of_ten() -> None:
    """One context of ten sentences with one that answers is 0.1 by sentence and 1.0 by context."""
    sample = asked(" ".join(["Whole.", *(f"Padding is number {at}." for at in range(9))]))
    assert len(sample.contexts[0].sentences) == 10
    says = Says(grades=GRADES)
    assert value(ContextRelevance(unit=Unit.SENTENCE), sample, says) == pytest.approx(0.1)
    assert value(ContextRelevance(unit=Unit.CONTEXT), sample, says) == 1.0
    assert len(set(says.asked)) == 1


def test_relevance_shows_its_counts_and_evidence() -> None:
    """A score names each context's verdict and the counts behind every unit."""
    found = outcome(ContextRelevance(), asked("Whole.", " ", "Part. More."), Says(grades=GRADES))
    assert isinstance(found, Score)
    assert found.counts == {
        "contexts": 3,
        "relevant": 2,
        "fully_relevant": 1,
        "sentences": 3,
        "evidence_sentences": 2,
    }
    assert [(each.about, each.index) for each in found.evidence] == [(EvidenceTarget.CONTEXT, at) for at in range(3)]


def test_a_blank_context_is_irrelevant_without_a_question() -> None:
    """A blank context gets grade 0 with a reason, counts among the contexts, and is not asked about."""
    says = Says(grades=GRADES)
    found = outcome(ContextRelevance(), asked("Whole.", " \n"), says)
    assert isinstance(found, Score)
    assert found.value == 0.5
    assert found.evidence[1].verdict == RelevanceVerdict(0, reason="The context is blank.")
    assert says.asked == [Relevance("Why?", ("Whole.",))]


def test_at_is_for_the_unit_context_alone() -> None:
    """A threshold with another unit is an error that says where it belongs."""
    with pytest.raises(UsageError, match="at=2 with unit=context only, got unit=sentence"):
        ContextRelevance(unit=Unit.SENTENCE, at=2)


@each_case(
    ("contexts", "k", "expected"),
    [
        (["Whole.", "Part.", "None."], None, 1.0),
        (["None.", "Whole."], None, 1 / log2(3)),
        (["None.", "Whole."], 1, 0.0),
        (["Part.", "Whole.", "None."], 1, 0.5),
        (["Part.", "", "Whole."], None, (1 + 1) / (2 + 1 / log2(3))),
    ],
)
def test_ranking_is_ndcg_of_the_grades(contexts: list[str], k: int | None, expected: float) -> None:
    """The grades in their order against the same grades sorted, over the first k ranks."""
    found = value(ContextRanking(k=k), asked(*contexts), Says(grades=GRADES))
    assert found == pytest.approx(expected)


def test_ranking_can_fall_when_a_grade_rises() -> None:
    """Not monotone: a last context that becomes relevant makes a perfect order imperfect."""
    says = Says(grades=GRADES)
    before = value(ContextRanking(), asked("Whole.", "None.", "None."), says)
    after = value(ContextRanking(), asked("Whole.", "None.", "Whole."), says)
    assert after < before == 1.0


def test_ranking_judges_all_contexts_whatever_k_is() -> None:
    """The ideal order is made of all grades, so @1 asks about every context too."""
    says = Says(grades=GRADES)
    outcome(ContextRanking(k=1), asked("Whole.", "Part.", "None."), says)
    assert len(says.asked) == 3


@each_case(
    ("contexts", "reason"),
    [
        ([], "no context was retrieved"),
        (["Whole."], "one context has no order"),
        (["None.", "Nothing."], "no retrieved context is relevant"),
        (["", ""], "no retrieved context is relevant"),
    ],
)
def test_ranking_is_undefined_without_an_order(contexts: list[str], reason: str) -> None:
    """Where there is nothing to put in order there is no value."""
    assert outcome(ContextRanking(), asked(*contexts), Says(grades=GRADES)) == Undefined(reason)


@each_case(("flags", "expected"), [("10000", 1.0), ("10001", 0.7), ("01", 0.5), ("00", 0.0)])
def test_precision_is_average_precision(flags: str, expected: float) -> None:
    """Grade 1 or more is relevant; a later relevant context can lower the value (1.0 to 0.7); none gives 0."""
    found = value(BY_QUESTION, of_flags(flags), Says(grades={"Whole.": 1}))
    assert found == pytest.approx(expected)


def test_precision_against_the_reference_asks_for_usefulness() -> None:
    """Against the reference it asks whether a context helps to arrive there; a later one can lower it."""
    says = Says(useful={"Whole."})
    sample = asked("Whole.", "", "None.", reference="So.")
    found = value(BY_REFERENCE, sample, says)
    assert found == 1.0
    assert says.asked == [
        Usefulness("Why?", "So.", ("Whole.",)),
        Usefulness("Why?", "So.", ("None.",)),
    ]
    lower = value(BY_REFERENCE, asked("Whole.", "None.", "None.", "None.", "Whole.", reference="So."), says)
    assert lower == pytest.approx(0.7)


def test_precision_against_the_reference_needs_one() -> None:
    """A sample without a reference has no value against it, and one against the question."""
    with pytest.raises(MissingField) as error:
        outcome(BY_REFERENCE, asked("Whole."), Says())
    assert error.value.field == "reference"
    assert value(BY_QUESTION, asked("Whole."), Says(grades=GRADES)) == 1.0


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (SufficiencyLabel.SUFFICIENT, 1.0),
        (SufficiencyLabel.PARTLY, 0.5),
        (SufficiencyLabel.INSUFFICIENT, 0.0),
    ],
)
def test_sufficiency_has_three_values(label: SufficiencyLabel, expected: float) -> None:
    """Sufficient is 1, partly 0.5, insufficient 0."""
    assert value(ContextSufficiency(), asked("Whole."), Says(sufficiency=label)) == expected
