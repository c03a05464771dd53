from typing import Any

import pytest
from broken_laws import broken_laws
from each_case import each_case
from scripted_replies import NO_REPLY, Script

from merilo.data.sample import Sample
from merilo.errors import UsageError
from merilo.judging.ask import AskFailed
from merilo.judging.digests import digest_text
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Question
from merilo.judging.rubric import render
from merilo.judging.verdicts import Failure, Verdict
from merilo.metrics.base import Metric, Score, Undefined, drive
from merilo.metrics.registry import parse_metric
from merilo_published.nvidia import METRICS

FULL = Sample("full", user_input="What is X?", response="resp", reference="ref", retrieved_contexts=["c1", "c2"])
RELEVANCE, GROUNDEDNESS, ACCURACY = (
    f"nvidia:{name}" for name in ("context_relevance", "response_groundedness", "answer_accuracy")
)


def outcome(text: str, script: Script, sample: Sample = FULL) -> Score | Undefined:
    metric: Any = parse_metric(text)  # a text may also name what has no plan
    found: Score | Undefined = drive(metric.plan(sample), script)
    return found


def value(text: str, *replies: str | Failure, sample: Sample = FULL) -> float:
    script = Script(list(replies))
    found = outcome(text, script, sample)
    assert isinstance(found, Score), found
    assert not script.replies, "replies were left over"
    return found.value


def with_fields(**fields: Any) -> Sample:
    given: dict[str, Any] = {"user_input": "What is X?", "response": "resp", "reference": "ref"}
    return Sample("x", **(given | {"retrieved_contexts": ["c1", "c2"]} | fields))


def rating(number: object) -> str:
    return f'{{"rating": {number}}}'


def plausible(question: Question[Any]) -> Verdict | None:
    """A rating by the texts, whatever the order of their lines; now and then none."""
    assert isinstance(question, Completion)
    lines = sorted("\n".join((question.rubric, *question.values)).split("\n"))
    number = digest_text("\n".join(lines))[0] % 3
    if "json" in question.values:
        return CompletionVerdict(rating(2 * number if "accuracy" in question.rubric else number))
    return CompletionVerdict(f"{number}")


@pytest.mark.usefixtures("seeds")
@each_case("metric", METRICS)
def test_a_metric_breaks_the_laws_that_it_says_it_breaks(metric: type[Metric]) -> None:
    """Each metric keeps the law but for what it names in `breaks`, and does break that."""
    made = metric()
    assert set(broken_laws(made, answer=plausible)) == set(made.breaks)


# -- reading a rating ---------------------------------------------------------------------------------


def test_tries_are_draws_of_the_same_words() -> None:
    """Five tries ask the same question at the next draw; the second rating has words and draws of its own."""
    script = Script(["n/a", "none", "1", "x", "2"])
    found = outcome(RELEVANCE, script)
    assert isinstance(found, Score)
    assert found.value == 0.75
    assert [question.draw for question in script.requests] == [0, 1, 2, 0, 1]
    assert len({question.at(0) for question in script.requests}) == 2
    assert {question.temperature for question in script.requests} == {0.1}


def test_the_two_prompts_differ() -> None:
    """Each metric asks its second rating in other words."""
    for text in (RELEVANCE, GROUNDEDNESS, ACCURACY):
        script = Script(["2", "2"])
        outcome(text, script)
        first, second = map(render, script.requests)
        assert first != second


def test_accuracy_shows_the_reference_first_the_second_time() -> None:
    """In the second prompt reference and response change places."""
    script = Script(["2", "2"])
    outcome(ACCURACY, script)
    first, second = (render(question).user for question in script.requests)
    assert first.index("resp\n") < first.index("ref\n")
    assert second.index("ref\n") < second.index("resp\n")


# -- a rating that cannot be read ---------------------------------------------------------------------


def test_without_the_second_rating_the_first_stands_alone() -> None:
    """max(x, nan) is x, and the score says what happened."""
    found = outcome(RELEVANCE, Script(["1"] + ["x"] * 5))
    assert isinstance(found, Score)
    assert (found.value, found.counts) == (0.5, {"ratings": 1})
    assert found.flags == ("one rating could not be read and the other stands alone",)


@pytest.mark.parametrize("replies", [[NO_REPLY, "1"], ["1", NO_REPLY], ["x", NO_REPLY, "1"]])
def test_a_lost_request_fails_at_once(replies: list[str | Failure]) -> None:
    """An exception inside is NaN upstream, whatever the other rating is."""
    with pytest.raises(AskFailed, match="boom"):
        outcome(RELEVANCE, Script(replies))


# -- shortcuts ----------------------------------------------------------------------------------------


@each_case(
    "fields",
    [
        {"user_input": ""},
        {"retrieved_contexts": [" "]},
        {"retrieved_contexts": ["X"]},
        {"retrieved_contexts": ["  is  "]},
        {"user_input": "is\nX", "retrieved_contexts": ["is", "X"]},
    ],
)
def test_relevance_is_zero_unasked(fields: dict[str, Any]) -> None:
    """Blank inputs and contexts that stand in the question score 0 without a request."""
    found = outcome(RELEVANCE, Script([]), with_fields(**fields))
    assert isinstance(found, Score)
    assert found.value == 0.0
    assert len(found.flags) == 1


@each_case(
    ("fields", "expected"),
    [
        ({"response": "c1"}, 1.0),
        ({"response": " c1\nc2 "}, 1.0),
        ({"response": ""}, 0.0),
        ({"response": " "}, 0.0),
        ({"retrieved_contexts": []}, 0.0),
        ({"retrieved_contexts": [" "]}, 0.0),
    ],
)
def test_groundedness_is_known_unasked(fields: dict[str, Any], expected: float) -> None:
    """A response that stands in the contexts scores 1, a blank input 0."""
    assert value(GROUNDEDNESS, sample=with_fields(**fields)) == expected


# -- earlier versions ---------------------------------------------------------------------------------


def test_0_3_0_sends_the_first_relevance_prompt_twice() -> None:
    """The same words at the next draw, for relevance alone."""
    script = Script(["2", "1"])
    outcome("ragas-0.3.0:nv_context_relevance", script)
    first, second = script.requests
    assert (first.draw, second) == (0, first.at(1))
    script = Script(["2", "1"])
    outcome("ragas-0.3.0:nv_response_groundedness", script)
    assert script.requests[0].rubric != script.requests[1].rubric


@pytest.mark.parametrize("name", ["nv_context_relevance", "nv_response_groundedness"])
def test_0_3_0_shows_7000_characters(name: str) -> None:
    """The joined contexts are cut; 0.4.3 shows them whole."""
    long = with_fields(retrieved_contexts=["z" * 4_000, "z" * 8_000])
    shown: list[int] = []
    for version in ("0.3.0", "0.4.3"):
        script = Script(["2", "1"])
        outcome(f"ragas-{version}:{name}", script, long)
        shown.append(len(script.filled[0]["contexts"]))
    assert shown == [7_000, 12_001]


def test_the_shortcut_looks_at_the_whole_contexts() -> None:
    """A response behind the cut is found all the same."""
    sample = with_fields(response="w", retrieved_contexts=["z" * 8_000 + "w"])
    assert value("ragas-0.3.0:nv_response_groundedness", sample=sample) == 1.0


# -- collections --------------------------------------------------------------------------------------

COLLECTED = "ragas-0.4.3:collections."


@each_case(
    ("name", "replies", "expected"),
    [
        ("context_relevance", [rating(3), rating(2), rating(1)], 0.75),
        ("context_relevance", [rating('"2"'), rating(2), rating(1)], 0.75),
        ("context_relevance", ["{}", "2", rating(1), rating(1)], 0.5),
        ("context_relevance", [rating(2), *[NO_REPLY] * 5], 1.0),
        ("answer_accuracy", [rating(1), rating(3), rating(4), rating(0)], 0.5),
    ],
)
def test_collections_try_again(name: str, replies: list[str | Failure], expected: float) -> None:
    """A rating off the scale, another reply and a lost request are each one more try; one rating is enough."""
    assert value(f"{COLLECTED}{name}", *replies) == expected


@pytest.mark.parametrize("replies", [[NO_REPLY] * 10, [rating(3)] * 10])
def test_collections_fail_without_any_rating(replies: list[str | Failure]) -> None:
    """Ten tries in all, then there is no score."""
    script = Script(list(replies))
    with pytest.raises(AskFailed):
        outcome(f"{COLLECTED}context_relevance", script)
    assert not script.replies


@each_case(
    ("name", "field"),
    [
        ("context_relevance", "user_input"),
        ("context_relevance", "retrieved_contexts"),
        ("response_groundedness", "response"),
        ("response_groundedness", "retrieved_contexts"),
        ("answer_accuracy", "user_input"),
        ("answer_accuracy", "response"),
        ("answer_accuracy", "reference"),
    ],
)
def test_collections_refuse_empty_inputs(name: str, field: str) -> None:
    """Upstream raises; nothing is asked."""
    sample = with_fields(**{field: [] if field == "retrieved_contexts" else ""})
    assert outcome(f"{COLLECTED}{name}", Script([]), sample) == Undefined("an input is empty")


def test_collections_keep_some_shortcuts() -> None:
    """A blank input is 0 and contexts within the question are 0; a blank response is judged for accuracy."""
    assert value(f"{COLLECTED}context_relevance", sample=with_fields(user_input=" ")) == 0.0
    assert value(f"{COLLECTED}context_relevance", sample=with_fields(retrieved_contexts=["X"])) == 0.0
    assert value(f"{COLLECTED}response_groundedness", sample=with_fields(response=" ")) == 0.0
    assert value(f"{COLLECTED}answer_accuracy", rating(4), rating(4), sample=with_fields(response=" ")) == 1.0


def test_collections_swap_the_labels_of_accuracy() -> None:
    """The second time the reference stands where the answer stood."""
    script = Script([rating(4), rating(2)])
    outcome(f"{COLLECTED}answer_accuracy", script)
    assert [question.values[1:3] for question in script.requests] == [("resp", "ref"), ("ref", "resp")]


def test_invalid_options_are_refused() -> None:
    """What makes no sense is refused at construction, with what may be written instead."""
    with pytest.raises(UsageError, match="takes tries="):
        parse_metric(f"{RELEVANCE}(tries=0)")
