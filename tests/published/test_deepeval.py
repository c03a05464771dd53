"""DeepEval's RAG metrics beyond the golden cases: reasons, thresholds, both verdict rules, and mended JSON."""

import json
from typing import Any

import jsonschema
import pytest
from broken_laws import broken_laws
from each_case import each_case
from scripted_replies import Script

from merilo.data.sample import Sample
from merilo.errors import MissingField, UsageError
from merilo.judging.ask import AskFailed
from merilo.judging.digests import digest_text
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import FailureKind, Verdict
from merilo.metrics.base import Metric, Score, Undefined, drive
from merilo_published.asking import ReplyFault
from merilo_published.deepeval import (
    METRICS,
    AnswerRelevancy,
    ContextualPrecision,
    ContextualRecall,
    ContextualRelevancy,
    Faithfulness,
    object_of,
)

SAMPLE = Sample("s", user_input="q", retrieved_contexts=["one", "two"], response="a", reference="e")
LOOSE: Any = "loose"


def outcome(metric: Metric, *replies: Any, sample: Sample = SAMPLE) -> Score | Undefined:
    said = Script(list(replies))
    found = drive(metric.plan(sample), said)
    assert not said.replies
    return found


def score(metric: Metric, *replies: Any, sample: Sample = SAMPLE) -> Score:
    found = outcome(metric, *replies, sample=sample)
    assert isinstance(found, Score), found
    return found


def verdicts(*words: Any) -> dict[str, Any]:
    return {"verdicts": [{"statement": "s", "verdict": word, "reason": "r"} for word in words]}


def quiet(metric: type[Any], **parameters: Any) -> Any:
    return metric(include_reason=False, **parameters)


# -- JSON and words -----------------------------------------------------------------------------------


@each_case(
    "text",
    ['{"a": [1]}', 'So: {"a": [1]} is it.', '```json\n{"a": [1]}\n```', '{"a": [1,]}', '{"a": [1], }', '{"a": [1]'],
)
def test_mended_json(text: str) -> None:
    """The text from the first { to the last } is read, a missing end is added and spare commas are taken out."""
    assert object_of(text) == {"a": [1]}


@each_case("text", ["", "no", "[1]", '{"a": [1}', "{[", '{"a": 1} or {"a": 2}', "}{"])
def test_json_beyond_mending(text: str) -> None:
    """Anything else is unreadable."""
    with pytest.raises(ReplyFault):
        object_of(text)


# -- what a reply must hold ---------------------------------------------------------------------------


@each_case(
    "item",
    [
        {"verdict": "yes", "reason": "r"},
        {"statement": None, "verdict": "yes"},
        {"statement": "s", "verdict": "yes", "reason": 1},
        "yes",
    ],
)
def test_items_that_fail(item: object) -> None:
    """A statement's verdict without its statement, or with a reason that is no text, fails the whole metric."""
    with pytest.raises(AskFailed) as caught:
        outcome(quiet(ContextualRelevancy), {"verdicts": [item]})
    assert caught.value.failure.kind is FailureKind.UNREADABLE


def test_reasons_of_precision_and_recall() -> None:
    """Verdicts on contexts and sentences need a reason, those on statements do not."""
    item = {"verdicts": [{"verdict": "yes", "reason": None}]}
    for metric in (ContextualPrecision, ContextualRecall):
        with pytest.raises(AskFailed):
            outcome(quiet(metric), item)
    assert score(quiet(AnswerRelevancy), {"statements": ["a"]}, item).value == 1.0


@pytest.mark.parametrize("reply", [{}, {"verdicts": None}, {"verdicts": []}])
def test_no_list_of_verdicts(reply: object) -> None:
    """Read loosely, a missing list is an empty one, and scores 0."""
    found = score(quiet(ContextualRecall, reply=LOOSE), reply)
    assert found.value == 0.0
    assert found.flags == ("there was no verdict and that was scored 0",)
    if reply != {"verdicts": []}:
        with pytest.raises(AskFailed):
            outcome(quiet(ContextualRecall), reply)


def test_missing_truths() -> None:
    """A reply without the list that was asked for fails the metric."""
    with pytest.raises(AskFailed, match='no "truths"'):
        outcome(quiet(Faithfulness), {"facts": []})


# -- order, counts, thresholds ------------------------------------------------------------------------


def test_the_reason_is_one_more_request() -> None:
    """The reason is asked for with the score and kept as evidence on the whole; it does not move the score."""
    said = Script([verdicts("yes"), verdicts("no"), {"reason": "Half of it."}])
    found = drive(ContextualRelevancy().plan(SAMPLE), said)
    assert isinstance(found, Score)
    assert said.rubrics[-1] == "contextual_relevancy.reason"
    assert said.filled[-1]["score"] == "0.50"
    assert (found.value, found.evidence[-1].text) == (0.5, "Half of it.")


@pytest.mark.parametrize("reply", ["Half of it.", {}])
def test_no_reason_no_score(reply: object) -> None:
    """A reason that cannot be read fails the whole metric."""
    with pytest.raises(AskFailed):
        outcome(ContextualRecall(), verdicts("yes"), reply)


def test_a_reason_of_nothing() -> None:
    """The reason is asked for also where there was nothing to judge."""
    bare = Sample("s", user_input="q", retrieved_contexts=[])
    assert score(ContextualRelevancy(), {"reason": "Nothing."}, sample=bare).value == 0.0


# -- what is there ------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [Faithfulness, AnswerRelevancy])
def test_empty_response(metric: Any) -> None:
    """An empty response is refused upstream: Undefined without a question; a blank one is judged."""
    assert isinstance(
        outcome(metric(), sample=Sample("s", user_input="q", response="", retrieved_contexts=[])), Undefined
    )


@each_case("metric", METRICS)
def test_missing_fields(metric: Any) -> None:
    """None of a required field may be missing, the user input not even where it is not shown."""
    with pytest.raises(MissingField):
        outcome(metric(), sample=Sample("s", retrieved_contexts=["c"], response="a", reference="e"))


def test_refused() -> None:
    """A form of reply or a threshold that makes no sense is refused."""
    with pytest.raises(UsageError, match="reply=schema or reply=loose"):
        ContextualRecall(reply="free")
    with pytest.raises(UsageError, match="threshold"):
        ContextualRecall(threshold=float("nan"))


def _schemas(metric: Metric, *replies: Any) -> list[dict[str, Any]]:
    asked: list[Completion] = []
    said = Script(list(replies))

    def answer(question: Question[Any]) -> Verdict:
        assert isinstance(question, Completion)
        asked.append(question)
        return said(question)

    drive(metric.plan(SAMPLE), answer)
    return [json.loads(each.schema) for each in asked]


def test_each_schema_admits_what_is_read() -> None:
    """A reply that fits the schema of its request is readable; what the schema forbids fails the metric."""
    replies = ({"truths": ["t"]}, {"claims": ["a"]}, _bare("borderline"), {"reason": "r"})
    schemas = _schemas(Faithfulness(), *replies)
    for schema, reply in zip(schemas, replies, strict=True):
        jsonschema.validate(reply, schema)
    for bad, at in (({"truths": [1]}, 0), (_bare("idk"), 2), ({"reason": None}, 3)):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, schemas[at])
        with pytest.raises(AskFailed):
            outcome(Faithfulness(), *replies[:at], bad)


def _bare(word: str) -> dict[str, Any]:
    return {"verdicts": [{"verdict": word, "reason": None}]}


# -- the laws -----------------------------------------------------------------------------------------


def _own(question: Question[Any]) -> Verdict | None:
    """Verdicts on contexts that differ with each context."""
    if not isinstance(question, Completion) or "contextual_precision.verdicts" not in question.rubric:
        return None
    nodes = question.values[-1].splitlines()
    words = ["yes" if digest_text(node.partition(":")[2])[0] % 2 else "no" for node in nodes]
    return CompletionVerdict(json.dumps(verdicts(*words)))


@pytest.mark.usefixtures("seeds")
@each_case("metric", METRICS)
def test_laws(metric: Any) -> None:
    """Each metric keeps the law but for what it says it breaks."""
    assert set(broken_laws(metric(), answer=_own)) == set(metric.breaks)
