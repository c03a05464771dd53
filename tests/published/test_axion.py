"""axion's metrics beyond the golden cases: options, failures, short lists, the laws and the shared questions."""

import json
from typing import Any

import pytest
from broken_laws import broken_laws
from each_case import each_case
from scripted_replies import NO_REPLY, Script

from merilo.data.sample import Sample
from merilo.errors import MissingField
from merilo.judging.ask import AskFailed
from merilo.judging.digests import digest_text
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, Verdict
from merilo.metrics.base import Metric, Score, Undefined, drive
from merilo.metrics.registry import parse_metric
from merilo_published.axion import METRICS

LOST = "a judge call failed and was scored all the same"
SHORT = "the judge gave fewer verdicts than it was asked for; the rest left the denominator"

FRANCE = Sample(
    "france",
    user_input="What is the capital of France?",
    retrieved_contexts=[
        "Paris is the capital and largest city of France.",
        "France is known for its wine and cuisine.",
        "The Eiffel Tower was built in 1889.",
    ],
    response="Paris. It lies on the Seine.",
    reference="Paris is the capital. It has two million people.",
)


def relevancy(*verdicts: str) -> dict[str, Any]:
    return {"verdicts": [{"verdict": verdict} for verdict in verdicts]}


def given(*names: str) -> dict[str, Any]:
    return {"statements": list(names)}


def supported(*flags: bool) -> dict[str, Any]:
    return {"verdicts": [{"is_supported": flag} for flag in flags]}


def faith(*verdicts: str) -> dict[str, Any]:
    return {"verdicts": [{"verdict": verdict, "reason": "r"} for verdict in verdicts]}


def used(*flags: bool) -> dict[str, Any]:
    return {"verdicts": [{"is_utilized": flag} for flag in flags]}


def outcome(text: str, *replies: Any, sample: Sample = FRANCE) -> Score | Undefined:
    """The outcome of a metric of axion for these replies, all of which it asks for."""
    answer = Script(list(replies))
    found = drive(parse_metric(f"axion:{text}").plan(sample), answer)
    assert answer.replies == []
    return found


def score(text: str, *replies: Any, sample: Sample = FRANCE) -> Score:
    found = outcome(text, *replies, sample=sample)
    assert isinstance(found, Score)
    return found


def asked(text: str, *replies: Any, sample: Sample = FRANCE) -> list[str]:
    """The rubrics asked through, in order."""
    answer = Script(list(replies))
    drive(parse_metric(f"axion:{text}").plan(sample), answer)
    return answer.rubrics


NOTHING = Sample("n", user_input="q?", retrieved_contexts=[], response="a.", reference="r.")

# -- chunks -------------------------------------------------------------------------------------------


def test_ranking_and_relevancy_ask_the_equal_question() -> None:
    """Relevancy, ranking and utilization share one question about the same contexts, so a run asks it once."""
    seen: list[list[Question[Any]]] = []
    for name in ("contextual_relevancy", "contextual_ranking", "contextual_utilization"):
        questions: list[Question[Any]] = []

        def answer(question: Question[Any], into: list[Question[Any]] = questions) -> Verdict:
            into.append(question)
            guessed: Verdict = question.guess()
            return guessed

        drive(parse_metric(f"axion:{name}").plan(FRANCE), answer)
        seen.append(questions)
    assert seen[0][0] == seen[1][0] == seen[2][0]


def test_utilization_counts_relevant_contexts_only() -> None:
    """Of two relevant contexts one is used; a used one that is not relevant does not count."""
    found = score("contextual_utilization", relevancy("yes", "no", "yes"), used(True, True, False))
    assert found.value == 0.5
    assert found.counts == {"contexts": 3, "relevant": 2, "utilized": 1}


def test_utilization_falls_back_context_by_context() -> None:
    """Where the batch on use fails, each context is asked about, and one that fails is not used."""
    single = [{"is_utilized": True}, NO_REPLY, {"is_utilized": True}]
    found = score("contextual_utilization", relevancy("yes", "yes", "yes"), NO_REPLY, *single)
    assert (found.value, found.flags) == (2 / 3, (LOST,))


def test_the_shorter_list_decides_in_utilization() -> None:
    """With one verdict on use for three relevant contexts, one context is left."""
    found = score("contextual_utilization", relevancy("yes", "yes", "yes"), used(True))
    assert (found.value, found.flags) == (1.0, (SHORT,))


# -- statements ---------------------------------------------------------------------------------------


def test_recall_with_no_verdict_is_a_failure() -> None:
    """Statements of which none got a verdict give no number."""
    with pytest.raises(AskFailed, match="None of its 2 statements got a verdict"):
        outcome("contextual_recall", given("a", "b"), supported())


def test_recall_refuses_a_flood_of_single_requests() -> None:
    """More statements than a text can make are not asked about one by one."""
    with pytest.raises(AskFailed, match="can make at most"):
        outcome("contextual_recall", given(*map(str, range(500))), NO_REPLY)


def test_a_failed_extraction_is_faithful() -> None:
    """Claims that cannot be had score 1 with a flag."""
    found = score("faithfulness", NO_REPLY)
    assert (found.value, found.flags) == (1.0, (LOST,))


def test_a_claim_without_verdict_is_a_failure() -> None:
    """Where the batch and one single request fail, the claim has no verdict and there is no number."""
    one = {"verdict": "Fully Supported", "reason": "r"}
    with pytest.raises(AskFailed):
        outcome("faithfulness", given("a", "b"), NO_REPLY, one, NO_REPLY)
    assert score("faithfulness", given("a", "b"), NO_REPLY, one, one).value == 1.0


EXPLAINED = {"explanation": "e"}


def test_no_statements_are_relevant_without_more_calls() -> None:
    """A response without statements scores 1 after one request."""
    assert asked("answer_relevancy", given()) == ["statements"]
    assert score("answer_relevancy", given()).value == 1.0
    assert score("answer_relevancy", NO_REPLY).flags == (LOST,)


def test_a_failed_explanation_is_a_failure() -> None:
    """The published code breaks where the score cannot be put into words."""
    with pytest.raises(AskFailed):
        outcome("answer_relevancy", given("a"), relevancy("no"), NO_REPLY)


def facts(*verdicts: object) -> dict[str, Any]:
    return {"verdicts": [{"statement": "s", "is_supported": verdict, "reason": "r"} for verdict in verdicts]}


def test_factual_accuracy_is_the_share_of_verdicts() -> None:
    """Ones among the verdicts, however many statements there were."""
    assert score("factual_accuracy", given("a", "b", "c"), facts(1, 0, 1)).value == pytest.approx(2 / 3)
    assert score("factual_accuracy", given("a", "b"), facts(1)).flags == (SHORT,)
    assert score("factual_accuracy", given("a"), facts(1, 0)).value == 0.5
    assert score("factual_accuracy", given("a"), facts()).value == 0.0
    assert score("factual_accuracy", given()).value == 1.0


@pytest.mark.parametrize("replies", [[NO_REPLY], [given("a"), NO_REPLY], [given("a"), facts(2)]])
def test_factual_accuracy_scores_no_failure(replies: list[Any]) -> None:
    """Neither request may fail, and a verdict is 0 or 1."""
    with pytest.raises(AskFailed):
        outcome("factual_accuracy", *replies)


# -- all of them --------------------------------------------------------------------------------------


@each_case("metric", METRICS)
def test_blank_texts_are_undefined(metric: type[Metric]) -> None:
    """Axion takes a blank text for a missing one, so there is no score; a missing field raises MissingField."""
    build: Any = metric
    made: Metric = build()
    for name in sorted(made.needs - {"retrieved_contexts"}):
        texts: dict[str, Any] = dict.fromkeys(made.needs, "text") | {"retrieved_contexts": ["c"]}
        found = drive(made.plan(Sample("b", **texts | {name: " \n"})), Script([]))
        assert isinstance(found, Undefined)
        with pytest.raises(MissingField):
            drive(made.plan(Sample("b", **texts | {name: None})), Script([]))


def by_chance(question: Question[Any]) -> Verdict | None:
    """Replies that depend on the text judged, and not on the place where it stands."""
    if not isinstance(question, Completion):
        return None
    values = dict(zip(question.names, question.values, strict=True))
    name = question.rubric.rpartition("/")[2].removesuffix(".v1")
    lists = {"texts", "statements", "claims", "contexts"} & values.keys()
    if not lists:
        return None
    texts: list[str] = json.loads(values[lists.pop()])
    chance = [digest_text(text)[0] for text in texts]
    match name.partition("_")[0]:
        case "relevancy":
            return _reply(relevancy(*(("yes", "no", "idk")[number % 3] for number in chance)))
        case "recall":
            return _reply(supported(*(number % 2 == 0 for number in chance)))
        case "utilization":
            return _reply(used(*(number % 2 == 0 for number in chance)))
        case _:
            return None


def each_by_chance(question: Question[Any]) -> Verdict | None:
    """As `by_chance`, also for contexts asked about one by one."""
    if isinstance(question, Completion) and "usefulness" in question.rubric:
        return _reply({"is_useful": digest_text(question.values[0])[0] % 2 == 0})
    return by_chance(question)


def _reply(value: object) -> CompletionVerdict:
    return CompletionVerdict(json.dumps(value))


@pytest.mark.usefixtures("seeds")
@each_case("metric", METRICS)
def test_the_law_is_kept_but_where_said(metric: type[Metric]) -> None:
    """Each metric keeps the law of metrics, and breaks just those laws that it names."""
    build: Any = metric
    made: Metric = build()
    assert set(broken_laws(made, answer=each_by_chance)) == set(made.breaks)


def by_word(question: Question[Any]) -> Verdict | Failure:
    """A judge that gives one verdict for each text it sees: yes if it names the year."""
    assert isinstance(question, Completion)
    texts = json.loads(dict(zip(question.names, question.values, strict=True))["texts"])
    return CompletionVerdict(
        json.dumps({"verdicts": [{"verdict": "yes" if "1889" in text else "no"} for text in texts]})
    )


@each_case(
    ("contexts", "value"),
    [
        (["", "In 1889.", "   "], 1 / 2),
        (["In 1889.", "", ""], 1.0),
        (["", ""], 0.0),
        (["In 1889.", "It rains."], 1 / 2),
    ],
)
def test_empty_texts_are_not_sent(contexts: list[str], value: float) -> None:
    """Axion's serialiser leaves empty texts out of a list, so that they leave the denominator; blank ones stay."""
    sample = Sample("empty", user_input="When was it built?", retrieved_contexts=contexts)
    outcome = drive(parse_metric("axion:contextual_relevancy").plan(sample), by_word)
    assert isinstance(outcome, Score)
    assert outcome.value == value
    left_out = "empty texts were not sent, and the verdicts count for the first texts"
    assert (left_out in outcome.flags) is ("" in contexts)


def test_verdicts_count_for_the_first_texts() -> None:
    """The published code pairs verdicts with texts by place: the rank of what is relevant moves with an empty text."""
    sample = Sample("empty", user_input="When?", retrieved_contexts=["", "It rains.", "In 1889."])
    outcome = drive(parse_metric("axion:contextual_ranking").plan(sample), by_word)
    assert isinstance(outcome, Score)
    assert outcome.value == pytest.approx(1 / 2)  # 1/3 with all texts
