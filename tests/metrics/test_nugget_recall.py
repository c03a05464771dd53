"""Nugget recall: weights, shared questions and laws."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metrics.saying import Says, outcome, value

from merilo.data.sample import Sample
from merilo.judging.kinds.contexts import Support
from merilo.metrics.base import Score, Undefined
from merilo.metrics.contract import check_metric
from merilo.metrics.registry import parse_metric

NUGGETS = [
    {"text": "Built in 1889.", "vital": True},
    {"text": "330 m tall.", "vital": True},
    {"text": "Made of iron.", "vital": False},
    "In Paris.",
]


def sample(
    nuggets: Sequence[Any] | None = NUGGETS,
    response: str = "It is a tower that was built in 1889, and it is made of iron.",
) -> Sample:
    """A sample with these nuggets; None for no nuggets."""
    metadata = {} if nuggets is None else {"nuggets": list(nuggets)}
    return Sample("s", user_input="What is it?", response=response, metadata=metadata)


def recall(text: str = "nugget_recall") -> Any:
    """The metric with this text."""
    return parse_metric(text)


SAYS = Says(supported={"Built in 1889.": (0,), "Made of iron.": (0,)})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nugget_recall", 1.5 / 3.5),
        ("nugget_recall(okay_weight=0)", 1 / 3),
        ("nugget_recall(okay_weight=1)", 0.5),
    ],
)
def test_weights(text: str, expected: float) -> None:
    """A vital nugget weighs 1, another one `okay_weight`; counts do not depend on it."""
    found = outcome(recall(text), sample(), SAYS)
    assert isinstance(found, Score)
    assert found.value == pytest.approx(expected)
    assert found.counts == {"nuggets": 4, "stated": 2, "vital": 3, "vital_stated": 1}
    assert [piece.text for piece in found.evidence] == ["Built in 1889.", "330 m tall.", "Made of iron.", "In Paris."]


def test_without_nuggets_there_is_no_score() -> None:
    """Missing, empty and invalid nuggets are undefined, and so are okay ones that have no weight."""
    for nuggets in (None, [], [1]):
        assert isinstance(outcome(recall(), sample(nuggets), Says()), Undefined)
    okay = sample([{"text": "In Paris.", "vital": False}])
    assert isinstance(outcome(recall("nugget_recall(okay_weight=0)"), okay, Says()), Undefined)
    assert value(recall(), okay, Says(supported={"In Paris.": (0,)})) == 1


def test_questions_are_those_about_the_response_as_evidence() -> None:
    """Each nugget is one Support question with the response as its only context, whatever its weight."""
    says, other = Says(), Says()
    outcome(recall(), sample(), says)
    outcome(recall("nugget_recall(okay_weight=0)"), sample(), other)
    assert says.asked == other.asked
    assert all(isinstance(each, Support) and each.contexts == (sample().response,) for each in says.asked)


@pytest.mark.usefixtures("seeds")
@pytest.mark.parametrize("text", ["nugget_recall", "nugget_recall(okay_weight=0.0)"])
def test_the_contract_is_met(text: str) -> None:
    """The metric meets the contract on samples with three nuggets."""
    check_metric(recall(text))


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), min_size=1, max_size=6),
    st.sets(st.sampled_from("abcdef")),
    st.randoms(use_true_random=False),
)
@settings(max_examples=50, deadline=None)
def test_laws(nuggets: list[tuple[str, bool]], stated: set[str], random: Any) -> None:
    """The order of nuggets changes nothing, a repeated nugget neither, and one more stated nugget never lowers it."""
    given_nuggets = [{"text": text, "vital": vital} for text, vital in nuggets]
    shuffled = [*given_nuggets, *given_nuggets[:1]]
    random.shuffle(shuffled)
    says = Says(supported=dict.fromkeys(stated, (0,)))
    more = Says(supported=dict.fromkeys({*stated, nuggets[0][0]}, (0,)))
    score = value(recall(), sample(given_nuggets), says)
    assert value(recall(), sample(shuffled), says) == pytest.approx(score)
    assert value(recall(), sample(given_nuggets), more) >= score - 1e-12
