"""Citation precision and recall: counts by hand, laws, and the questions that are shared with other metrics."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merilo.data.sample import Sample
from merilo.errors import UsageError
from merilo.judging.kinds.contexts import Support, SupportLabel, SupportVerdict
from merilo.judging.kinds.responses import Noncommittal, NoncommittalVerdict, Statement, Statements, StatementsVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import Verdict
from merilo.metrics.base import Score, Undefined, drive
from merilo.metrics.contract import check_metric
from merilo.metrics.registry import parse_metric

FACT = re.compile(r"f\d")
NAMES = ("citation_recall", "citation_precision", "citation_f1")


@dataclass
class Oracle:
    """Knows facts: each sentence is a statement, supported by contexts that have all its facts together.

    It names the fewest contexts that it needs, first ones first.
    """

    declines: bool = False
    asked: list[Question[Any]] = field(default_factory=list)

    def __call__(self, question: Question[Any]) -> Verdict:
        self.asked.append(question)
        if isinstance(question, Noncommittal):
            return NoncommittalVerdict(self.declines)
        if isinstance(question, Statements):
            stating = [(at, text) for at, text in enumerate(question.sentences) if FACT.search(text)]
            return StatementsVerdict(tuple(Statement(text, at) for at, text in stating))
        assert isinstance(question, Support)
        missing, named = set(FACT.findall(question.statement)), []
        for index, text in enumerate(question.contexts):
            if missing & set(FACT.findall(text)):
                missing -= set(FACT.findall(text))
                named.append(index)
        if missing:
            return SupportVerdict(SupportLabel.NOT_STATED)
        return SupportVerdict(SupportLabel.SUPPORTED, tuple(named))


def sample(response: str, *contexts: str) -> Sample:
    """A sample with these contexts."""
    return Sample("s", user_input="Which facts?", retrieved_contexts=contexts, response=response)


def outcome(name: str, given_sample: Sample, oracle: Oracle | None = None) -> Score | Undefined:
    """What the metric makes of the sample."""
    metric: Any = parse_metric(name)
    return drive(metric.plan(given_sample), oracle or Oracle())


def value(name: str, given_sample: Sample) -> float | None:
    """The value of the metric; None if it is undefined."""
    found = outcome(name, given_sample)
    return found.value if isinstance(found, Score) else None


CITED = sample("It is f1 [1]. It is f2 and f3 [1][2][3]. It is f4. It is f5 [9].", "f1", "f2", "f3", "f4", "f5")


def test_counts_by_hand() -> None:
    """Two of four statements are supported; of five citations three are right, and one is to nothing."""
    recall, precision, both = (outcome(name, CITED) for name in NAMES)
    assert isinstance(recall, Score)
    assert isinstance(precision, Score)
    assert isinstance(both, Score)
    assert (recall.value, precision.value) == (0.5, 0.6)
    assert both.value == pytest.approx(2 * 0.5 * 0.6 / 1.1)
    assert recall.counts == {"statements": 4, "supported": 2, "contradicted": 0, "uncited": 2}
    assert precision.counts == {"citations": 5, "right": 3, "to_nothing": 1}
    assert both.counts == {**recall.counts, **precision.counts}
    assert [getattr(each.verdict, "evidence", None) for each in recall.evidence] == [(0,), (1, 2), (), ()]


def test_a_redundant_citation_that_supports_is_right() -> None:
    """The judge names one of two equal contexts; the other one is asked about alone."""
    oracle = Oracle()
    found = outcome("citation_precision", sample("It is f1 [1][2].", "f1", "Also f1"), oracle)
    assert isinstance(found, Score)
    assert found.value == 1
    assert [len(each.contexts) for each in oracle.asked if isinstance(each, Support)] == [2, 1]


def test_equal_questions_are_shared() -> None:
    """F1 asks what precision asks, recall a part of it; faithfulness asks for the same statements."""
    oracles = {name: Oracle() for name in (*NAMES, "faithfulness")}
    for name in NAMES:
        outcome(name, CITED, oracles[name])
    outcome(
        "faithfulness",
        replace(CITED, response="It is f1. It is f2 and f3. It is f4. It is f5."),
        oracles["faithfulness"],
    )
    asked = {name: set(oracle.asked) for name, oracle in oracles.items()}
    assert asked["citation_recall"] <= asked["citation_precision"] == asked["citation_f1"]
    about_text = {each for each in asked["faithfulness"] if isinstance(each, Statements)}
    assert about_text
    assert about_text <= asked["citation_recall"]


def test_a_reason_names_the_contexts_that_it_counts() -> None:
    """A judge numbers the contexts that it is given, so a reason says which they are, unless they are the first."""

    def answer(question: Question[Any]) -> Verdict:
        verdict = Oracle()(question)
        return replace(verdict, reason="By context 1.") if isinstance(verdict, SupportVerdict) else verdict

    metric: Any = parse_metric("citation_recall")
    found = drive(metric.plan(sample("It is f1 [1]. It is f2 [2].", "f1", "f2")), answer)
    assert isinstance(found, Score)
    reasons = [getattr(each.verdict, "reason", None) for each in found.evidence]
    assert reasons == ["By context 1.", "Counting only context 2: By context 1."]


def test_contexts_may_be_named_by_id() -> None:
    """An id of a context is a citation of it, wherever the ids are given."""
    by_context = replace(
        CITED, response="It is f2 [b].", retrieved_contexts=[{"text": "f1", "id": "a"}, {"text": "f2", "id": "b"}]
    )
    by_field = replace(
        CITED, response="It is f2 [doc:b].", retrieved_contexts=["f1", "f2"], retrieved_context_ids=["a", "b"]
    )
    assert [value("citation_f1", each) for each in (by_context, by_field)] == [1, 1]


def test_the_first_number_may_be_zero() -> None:
    """With first=0 the marker [0] is the first context; another first number is a usage error."""
    assert value("citation_f1(first=0)", sample("It is f1 [0].", "f1")) == 1
    assert value("citation_f1", sample("It is f1 [0].", "f1")) == 0
    with pytest.raises(UsageError, match="first=0 or first=1"):
        parse_metric("citation_recall(first=2)")


@pytest.mark.usefixtures("seeds")
@pytest.mark.parametrize("name", NAMES)
def test_the_contract_is_met(name: str) -> None:
    """The metrics meet the contract on responses with citations, in which the order of contexts matters."""
    samples = [
        Sample(
            f"c{number}",
            user_input="Where?",
            retrieved_contexts=[f"Paris {number}.", f"Rome {number}.", f"Bern {number}."],
            response=f"It is in {number} [1]. The {number} is big [2][3]. All {number}.\n\nOther {number} [1, 2] [7].",
        )
        for number in range(4)
    ]
    metric: Any = parse_metric(name)
    check_metric(metric, samples)


# -- laws ---------------------------------------------------------------------------------------------

CONTEXTS = st.lists(st.sets(st.sampled_from("12345"), max_size=3), min_size=1, max_size=4)
STATED = st.lists(
    st.tuples(st.sets(st.sampled_from("12345"), min_size=1, max_size=2), st.lists(st.integers(1, 5), max_size=3)),
    min_size=1,
    max_size=4,
)


def made(stated: list[tuple[set[str], list[int]]], contexts: list[set[str]], marker: str = "[{}]") -> Sample:
    """A sample whose sentences state facts and cite numbers."""
    response = " ".join(
        f"Nr {at} is {' and '.join(f'f{fact}' for fact in sorted(facts))} {''.join(map(marker.format, cites))}."
        for at, (facts, cites) in enumerate(stated)
    )
    return sample(response, *(f"It has {' '.join(f'f{fact}' for fact in sorted(facts))}." for facts in contexts))


@given(STATED, CONTEXTS, st.data())
@settings(max_examples=60, deadline=None)
def test_a_wrong_citation_never_helps(
    stated: list[tuple[set[str], list[int]]], contexts: list[set[str]], data: st.DataObject
) -> None:
    """A citation of a context without the facts of its sentence, or of nothing, raises neither precision nor recall."""
    at = data.draw(st.integers(0, len(stated) - 1))
    facts, cites = stated[at]
    wrong = [number for number in range(1, 6) if number > len(contexts) or not facts & contexts[number - 1]]
    wrong = [number for number in wrong if number not in cites]
    if not wrong:
        return
    more = [*stated]
    more[at] = (facts, [*cites, data.draw(st.sampled_from(wrong))])
    before, after = made(stated, contexts), made(more, contexts)
    first, second = value("citation_precision", before), value("citation_precision", after)
    assert second is not None
    assert first is None or second <= first
    assert value("citation_recall", after) == value("citation_recall", before)


@given(STATED, CONTEXTS)
@settings(max_examples=60, deadline=None)
def test_without_the_cited_evidence_recall_is_lost(
    stated: list[tuple[set[str], list[int]]], contexts: list[set[str]]
) -> None:
    """If the contexts that a statement cites lose its facts, exactly the statements supported by them are lost."""
    before = outcome("citation_recall", made(stated, contexts))
    after = outcome("citation_recall", made(stated, [facts - stated[0][0] for facts in contexts]))
    assert isinstance(before, Score)
    assert isinstance(after, Score)
    supported = [getattr(each.verdict, "supported", None) for each in before.evidence]
    assert not getattr(after.evidence[0].verdict, "supported", None)
    assert after.value <= before.value - supported[0] / len(stated) + 1e-12


@given(
    st.lists(
        st.tuples(st.sampled_from("12345"), st.integers(1, 4)), min_size=1, max_size=4, unique_by=lambda pair: pair[0]
    ),
    st.lists(st.sets(st.sampled_from("12345"), max_size=3), min_size=4, max_size=4),
)
@settings(max_examples=30, deadline=None)
def test_one_valid_citation_per_sentence_gives_alces_numbers(
    stated: list[tuple[str, int]], contexts: list[set[str]]
) -> None:
    """Where the definitions do not differ, the native metrics and ALCE's are equal."""
    simple = made([({fact}, [number]) for fact, number in stated], contexts)
    for name in ("citation_recall", "citation_precision"):
        assert value(name, simple) == value(f"alce:{name}", simple)


@given(STATED, CONTEXTS)
@settings(max_examples=30, deadline=None)
def test_the_form_of_a_marker_changes_nothing(
    stated: list[tuple[set[str], list[int]]], contexts: list[set[str]]
) -> None:
    """Numbers in square brackets, in lenticular brackets and after a word give the same scores."""
    for name in NAMES:
        scores = {value(name, made(stated, contexts, marker)) for marker in ("[{}]", "【{}】", "(Doc {})", " [^{}] ")}
        assert len(scores) == 1
