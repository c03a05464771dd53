"""The joint verdict: its categories, what it asks, and what moves a sample from one category to another."""

from dataclasses import replace
from typing import Any

import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st

import merilo
from merilo.data.sample import Sample
from merilo.judging.kinds.contexts import (
    Sufficiency,
    SufficiencyLabel,
    SufficiencyVerdict,
    Support,
    SupportLabel,
    SupportVerdict,
)
from merilo.judging.kinds.responses import Noncommittal, NoncommittalVerdict, Statement, Statements, StatementsVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.answering import Category
from merilo.metrics.base import Score, Undefined, drive
from merilo.metrics.contract import SyntheticAnswers, check_metric, synthetic_samples
from merilo.metrics.registry import all_metrics, parse_metric

NAMES = ("answering", *(f"answering.{each}" for each in Category))
FACT, OTHER = "The tower is 330 m tall.", "It was painted red."
NO_ANSWER = "I do not know."
IDS = ["retrieved_context_ids", "reference_context_ids"]
OPEN = "Nobody can say."
"""A sentence that the reader does not judge."""


class Reader:
    """A scripted judge that reads: a fact is in a text or it is not."""

    def __init__(self) -> None:
        self.asked: list[Question[Any]] = []

    def __call__(self, question: Question[Any]) -> Any:  # Any: the verdict of each kind
        self.asked.append(question)
        match question:
            case Sufficiency() | Support() if OPEN in (*question.contexts, getattr(question, "statement", "")):
                return Failure(FailureKind.NOT_JUDGED, "open", 0.4)
            case Sufficiency():
                there = any(FACT in text for text in question.contexts)
                return SufficiencyVerdict(SufficiencyLabel.SUFFICIENT if there else SufficiencyLabel.INSUFFICIENT)
            case Noncommittal():
                return NoncommittalVerdict(question.response == NO_ANSWER)
            case Statements():
                stated = [(place, text) for place, text in enumerate(question.sentences) if "know" not in text]
                return StatementsVerdict(tuple(Statement(text, place) for place, text in stated))
            case Support():
                found = tuple(place for place, text in enumerate(question.contexts) if question.statement in text)
                return SupportVerdict(SupportLabel.SUPPORTED if found else SupportLabel.NOT_STATED, found)
            case _:
                raise AssertionError(question)


def category(sample: Sample, name: str = "answering") -> str:
    """Return the category that the counts name; "cannot tell" if the outcome is undefined."""
    outcome = drive(parse_metric(name).plan(sample), Reader())  # type: ignore[union-attr]  # no composite
    if isinstance(outcome, Undefined):
        return "cannot tell"
    (found,) = [key for key, value in outcome.counts.items() if value and key != "responses"]
    return found


def sample(contexts: list[str], response: str, reference: str | None = None, **fields: object) -> Sample:
    return Sample(
        "a", user_input="How tall is it?", retrieved_contexts=contexts, response=response, reference=reference, **fields
    )


def by_ids(contexts: list[str], response: str, *gold: str, **qrels: float) -> Sample:
    """A sample whose contexts have the ids a, b, ..., and with the ids of the passages that hold the answer."""
    return sample(
        contexts,
        response,
        retrieved_context_ids=list("abc"[: len(contexts)]),
        reference_context_ids=list(gold),
        metadata={"qrels": qrels} if qrels else {},
    )


CASES = {
    "right": sample([FACT], FACT),
    "right, by the reference": sample([FACT], FACT, FACT),
    "rightly_declined": sample([OTHER], NO_ANSWER),
    "rightly_declined, as the reference": sample([FACT], NO_ANSWER, NO_ANSWER),
    "rightly_declined, nothing retrieved": sample([], NO_ANSWER),
    "declined_wrongly": sample([FACT], NO_ANSWER),
    "declined_wrongly, by the reference": sample([FACT], NO_ANSWER, FACT),
    "declined_wrongly, blank": sample([FACT], " "),
    "beyond_evidence": sample([FACT], f"{FACT} {OTHER}"),
    "beyond_evidence, right all the same": sample([FACT], f"{FACT} {OTHER}", FACT),
    "wrong": sample([FACT, OTHER], OTHER, FACT),
    "wrong, and unsupported": sample([FACT], OTHER, FACT),
    "wrong, answered what has no answer": sample([FACT], FACT, NO_ANSWER),
    "evidence_missing, declined": sample([OTHER], NO_ANSWER, FACT),
    "evidence_missing, in part": sample([OTHER], OTHER),
    "invented": sample([OTHER], FACT),
    "invented, nothing retrieved": sample([], FACT),
    "invented, by luck right": sample([OTHER], FACT, FACT),
    "cannot tell": sample([FACT], "Who knows?"),
    "cannot tell, a statement is open": sample([FACT], f"{FACT} {OPEN}"),
    "cannot tell, the contexts are open": sample([OPEN], FACT),
    "cannot tell, the reference is open": sample([FACT], FACT, OPEN),
    "wrong, though a statement is open": sample([FACT, OTHER], f"{OTHER} {OPEN}", FACT),
    "beyond_evidence, though a statement is open": sample([FACT], f"{OTHER} {OPEN}"),
    "invented, though a statement is open": sample([OTHER], f"{FACT} {OPEN}"),
    "evidence_missing, though nothing is judged": sample([OTHER], OPEN),
    "evidence_missing, by ids": by_ids([FACT], FACT, "z"),
    "evidence_missing, by ids, though nothing is judged": by_ids([OPEN], OPEN, "z"),
    "evidence_missing, graded 0 by people": by_ids([FACT, OTHER], FACT, a=0, b=0),
    "right, by ids": by_ids([OTHER], OTHER, "a"),
    "right, some ids are found": by_ids([FACT], FACT, "a", "z"),
    "invented, some ids are found": by_ids([OTHER], FACT, "a", "z"),
}


@each_case("case", CASES)
def test_each_case_has_its_category(case: str) -> None:
    """Evidence, response and reference decide the category, as the table of the design says."""
    assert category(CASES[case]) == case.partition(",")[0]


@each_case("case", CASES)
def test_the_metrics_of_the_categories_add_up(case: str) -> None:
    """Exactly one category has 1; `answering` is the sum of the two good ones; all ask the same questions."""
    outcomes: dict[str, Score | Undefined] = {}
    asked: set[tuple[bytes, ...]] = set()
    for name in NAMES:
        reader = Reader()
        outcomes[name] = drive(parse_metric(name).plan(CASES[case]), reader)  # type: ignore[union-attr]  # as above
        asked.add(tuple(each.content for each in reader.asked))
    assert len(asked) == 1
    values = {name: each.value for name, each in outcomes.items() if isinstance(each, Score)}
    if not values:
        assert case.startswith("cannot tell")
        return
    assert sum(value for name, value in values.items() if name != "answering") == 1
    assert values["answering"] == values["answering.right"] + values["answering.rightly_declined"]


@each_case("name", ["answering", "answering.invented"])
def test_the_contract_is_met(name: str) -> None:
    """It is met also without the ids that decide, with and without a reference; test_contract.py has all metrics."""
    without = [
        replace(each, id=f"{each.id}-", **dict.fromkeys([*IDS, *["reference"] * (at % 2)]))
        for at, each in enumerate(synthetic_samples())
    ]
    check_metric(parse_metric(name), without)  # type: ignore[arg-type]  # no composite


def test_together_with_the_all_metrics_nothing_more_is_asked() -> None:
    """All questions of `answering` are among those of the default metrics; that is, no additional request."""
    defaults = [parse_metric(name) for name in all_metrics()]
    for each in (*synthetic_samples(), *(replace(one, reference=None) for one in synthetic_samples())):
        usual, own = _asked(defaults, each), _asked([parse_metric(name) for name in NAMES], each)
        assert own
        assert own <= usual


def _asked(metrics: list[Any], about: Sample) -> set[bytes]:
    found: set[bytes] = set()
    answers = SyntheticAnswers(1)

    def answer(question: Question[Any]) -> Any:  # Any: the verdict of each kind
        found.add(question.content)
        return answers(question)

    for metric in metrics:
        if metric.needs <= about.present:
            drive(metric.plan(about), answer)
    return found


@given(
    st.lists(st.sampled_from([OTHER, "Rome has hills.", " "]), max_size=3),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from([None, FACT]),
)
def test_removing_the_evidence_ends_what_was_right(
    others: list[str], place: int, blank: bool, reference: str | None
) -> None:
    """Without the one context that has the answer, "right" becomes "invented"; a refusal is then no longer wrong."""
    with_evidence = [*others[:place], FACT, *others[place:]]
    without = [*others[:place], *([" "] if blank else []), *others[place:]]
    assert category(sample(with_evidence, FACT, reference)) == "right"
    assert category(sample(without, FACT, reference)) == "invented"
    assert category(sample(with_evidence, NO_ANSWER, reference)) == "declined_wrongly"
    assert category(sample(without, NO_ANSWER, reference)) == (
        "rightly_declined" if reference is None else "evidence_missing"
    )


@pytest.mark.parametrize("reference", ["I do not know.", "Unanswerable.", "The documents do not say."])
def test_the_embedded_judge_reads_the_documented_refusals_of_a_reference(reference: str) -> None:
    """A reference that the documentation names as one without a statement makes declining right."""
    row = {"user_input": "What is the horse called?", "retrieved_contexts": ["Bicycles stand in the cellar."]}
    run = merilo.evaluate(
        [{**row, "response": "I could not find this.", "reference": reference}], metrics=["answering.rightly_declined"]
    )
    assert run.metrics["answering.rightly_declined"].mean == 1
