import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from broken_laws import broken_laws
from each_case import each_case

from merilo.data.sample import Sample
from merilo.errors import UsageError
from merilo.judging.ask import AskFailed
from merilo.judging.kinds.measured import Embeddings, MatrixVerdict, Sentences, Similarities, TextsVerdict
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Question
from merilo.judging.synthetic import chance
from merilo.judging.verdicts import Verdict
from merilo.metrics.base import Metric, Score, Undefined, drive
from merilo.metrics.registry import parse_metric
from merilo_published.asking import ReplyFault
from merilo_published.ragas_v0_1.response import METRICS
from merilo_published.ragas_v0_1.retrieval import json_value

SAMPLE = Sample(
    "s",
    user_input="q",
    retrieved_contexts=["c1", "c2"],
    response="It is iron. Is it? It is tall.",
    reference="ref.",
)
VECTORS = {"q": [1.0, 0.0], "g": [1.0, 0.0], "h": [0.0, 1.0], "flat": [0.0, 0.0], "ref.": [1.0, 0.0]}
YES, NO = {"reason": "r", "verdict": 1}, {"reason": "r", "verdict": 0}


class Judge:
    """Gives scripted replies in order, vectors from a table, and pieces that end at each "." or "?"."""

    def __init__(self, *replies: object, vectors: Mapping[str, list[float]] = VECTORS) -> None:
        self.replies = [reply if isinstance(reply, str) else json.dumps(reply) for reply in replies]
        self.vectors = vectors
        self.asked: list[Completion] = []

    def __call__(self, question: Question[Any]) -> Verdict:
        match question:
            case Completion():
                self.asked.append(question)
                return CompletionVerdict(self.replies.pop(0))
            case Embeddings():
                return MatrixVerdict.of([self.vectors[text] for text in question.texts])
            case Sentences():
                assert question.splitter == "pysbd"
                ended = question.text.replace("? ", "?|").replace(". ", ".|")
                return TextsVerdict(tuple(ended.split("|")) if ended else ())
            case _:
                pytest.fail(f"nobody answers {question}")

    def values(self, at: int) -> dict[str, str]:
        """What request number `at` was filled with."""
        return dict(zip(self.asked[at].names, self.asked[at].values, strict=True))


def outcome(text: str, judge: Judge, sample: Sample = SAMPLE) -> Score | Undefined:
    """The outcome of the metric with this text after the colon; ragas 0.1.22 unless it names a version."""
    metric = parse_metric(text if ":" in text else f"ragas-0.1.22:{text}")
    result = drive(metric.plan(sample), judge)
    assert not judge.replies, "a reply was not asked for"
    return result


def value(text: str, *replies: object, sample: Sample = SAMPLE) -> float:
    score = outcome(text, Judge(*replies), sample)
    assert isinstance(score, Score)
    return score.value


def judged(*verdicts: object, key: str = "verdict") -> list[dict[str, object]]:
    return [{"statement": f"s{at}", "reason": "r", key: verdict} for at, verdict in enumerate(verdicts)]


def attributed(*verdicts: object) -> list[dict[str, object]]:
    return judged(*verdicts, key="attributed")


def stated(*texts: str) -> list[dict[str, object]]:
    return [{"sentence_index": 0, "simpler_statements": list(texts)}]


def changed(**fields: Any) -> Sample:
    known: dict[str, Any] = {
        "user_input": SAMPLE.user_input,
        "retrieved_contexts": SAMPLE.retrieved_contexts,
        "response": SAMPLE.response,
        "reference": SAMPLE.reference,
    }
    return Sample("s", **(known | fields))


def reasonable(question: Question[Any]) -> Verdict | None:
    """Replies that differ from context to context and from statement to statement."""
    if not isinstance(question, Completion):
        return None
    values = dict(zip(question.names, question.values, strict=True))
    name = question.rubric.rpartition("/")[2]
    if name == "context_precision.v1":
        reply: object = {"reason": "r", "verdict": int(chance(1, values["context"]) < 0.5)}
    elif name == "support.v1":
        reply = judged(*(int(chance(at, *sorted(values["contexts"])) < 0.5) for at in range(3)))
    else:
        return None
    return CompletionVerdict(json.dumps(reply))


# -- all of them --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("seeds")
@each_case("metric_class", METRICS)
def test_each_keeps_the_law_but_for_its_quirks(metric_class: type[Metric]) -> None:
    """Every metric keeps the law of metrics, except for exactly those laws that it names with a quirk."""
    metric = parse_metric(metric_class.name)
    assert broken_laws(metric, answer=reasonable).keys() == metric.breaks.keys()


# -- asking and repairing -----------------------------------------------------------------------------


# -- reading ------------------------------------------------------------------------------------------


@each_case(
    ("reply", "expected"),
    [
        ('{"a": 1} and so on', {"a": 1}),
        ('[{"a": 1}, {"a": "cut o', [{"a": 1}, {"a": "cut o"}]),
        ('{"a": 1, "b": tr', {"a": 1}),
        ('Sure:\n```json\n{"a": 1}\n```\nBye', {"a": 1}),
        ('```\n{"a": 1}\n```', {"a": 1}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        ('{"a": "\\""', {"a": '"'}),
        ('odd } {"a": 1}', None),
        ("5 apples", 5),
    ],
)
def test_json_is_read_leniently(reply: str, expected: object) -> None:
    """Cut off JSON is closed, text behind it or around a fence is left out, unmatched brackets spoil it."""
    assert json_value(reply) == expected


@each_case("reply", ["", "bad", 'Here: {"a": 1}', "{'a': 1}", "[" * 100_000, '{"a": 1} [', "```json\nno```"])
def test_no_json_is_a_fault(reply: str) -> None:
    """A text before the JSON without a fence, single quotes and endless nesting cannot be read."""
    with pytest.raises(ReplyFault):
        json_value(reply)


def test_long_garbage_is_read_fast() -> None:
    """A reply of half a megabyte that is no JSON from its middle on keeps what is, in no time to speak of."""
    items, began = [{"a": "b" * 50}] * 4_000, time.process_time()
    assert json_value(json.dumps(items)[:-1] + ", x" * 100_000) == items
    assert time.process_time() - began < 5


@each_case("verdict", ["Yes", None, [], "1.0"])
def test_verdicts_that_are_no_number_are_repaired(verdict: object) -> None:
    """A verdict that is no whole number makes the whole reply unreadable."""
    assert value("context_recall", attributed(1, verdict), attributed(1, 0)) == 0.5


@pytest.mark.parametrize("missing", ["statement", "reason", "attributed"])
def test_every_field_is_needed(missing: str) -> None:
    """A reply without one of the fields is repaired."""
    (item,) = attributed(0)
    del item[missing]
    assert value("context_recall", [item], attributed(1)) == 1.0


# -- context relevancy --------------------------------------------------------------------------------


# -- context recall -----------------------------------------------------------------------------------


def test_recall_of_no_statement_is_undefined() -> None:
    """An empty list of statements is nothing to judge."""
    assert isinstance(outcome("context_recall", Judge([])), Undefined)


def test_lists_of_different_lengths_do_not_vote() -> None:
    """Where the replies differ in length the first one decides alone, and the score says so."""
    score = outcome("context_recall(reproducibility=3)", Judge(attributed(1, 0), attributed(0), attributed(0, 0)))
    assert isinstance(score, Score)
    assert score.value == 0.5
    assert "first one decided" in score.flags[0]


# -- context precision and utilization ----------------------------------------------------------------


# -- entities -----------------------------------------------------------------------------------------


def test_unreadable_entities_are_none() -> None:
    """Entities that cannot be read count as none, and the score says so."""
    replies = ({"entities": ["P"]}, "bad", "bad")
    score = outcome("context_entity_recall", Judge(*replies))
    assert isinstance(score, Score)
    assert (score.value, score.flags) == (
        0.0,
        ("a reply could not be read, and the contexts count as naming no entity",),
    )


# -- faithfulness -------------------------------------------------------------------------------------


def test_verdicts_on_no_statements_are_asked_for() -> None:
    """Without statements the second request is made."""
    judge = Judge([], [])
    assert isinstance(outcome("faithfulness", judge), Undefined)
    assert judge.values(1)["statements"] == "[]"


def test_the_classifier_is_rounded_to_even() -> None:
    """With the classifier 0.5 is no."""

    def answer(question: Question[Any]) -> Verdict:
        if isinstance(question, Similarities):
            assert question.left == ("c1\nc2",)
            return MatrixVerdict.of([[0.5, 0.75]])
        return Judge(stated("a", "b"))(question)

    score = drive(parse_metric("ragas-0.1.22:faithfulness_with_hhem").plan(SAMPLE), answer)
    assert isinstance(score, Score)
    assert score.value == 0.5


# -- answer relevancy ---------------------------------------------------------------------------------


def test_a_vector_without_length_is_undefined() -> None:
    """Where a generated question has a zero vector there is no cosine."""
    reply = {"question": "flat", "noncommittal": 0}
    assert isinstance(outcome("answer_relevancy(strictness=1)", Judge(reply)), Undefined)


# -- correctness and similarity -----------------------------------------------------------------------

SAME = {"TP": [{}], "FP": [], "FN": [{}, {}]}


def test_similarity_without_weight_asks_for_no_vectors() -> None:
    """With similarity_weight=0 the value is F1, and no vector is asked for."""
    judge = Judge(stated("a"), stated("b"), SAME, vectors={})
    score = outcome("answer_correctness(factual_weight=2.0, similarity_weight=0.0)", judge)
    assert isinstance(score, Score)
    assert score.value == 0.5


def test_unreadable_statements_count_as_none() -> None:
    """Both unreadable: F1 is 1 and nothing is sorted, flagged."""
    replies, weights = ("bad",) * 4, "factual_weight=1.0, similarity_weight=0.0"
    score = outcome(f"answer_correctness({weights})", Judge(*replies))
    assert isinstance(score, Score)
    assert (score.value, len(score.flags)) == (1.0, 2)


def test_sentences_without_statements_are_sorted_all_the_same() -> None:
    """Only empty lists of sentences agree by definition; a sentence without statements leads to the third request."""
    weights = "factual_weight=1.0, similarity_weight=0.0"
    nothing: Mapping[str, object] = {"TP": [], "FP": [], "FN": []}
    assert value(f"answer_correctness({weights})", stated(), [], nothing) == 0.0
    assert value(f"answer_correctness({weights})", [], []) == 1.0


def test_statements_are_objects() -> None:
    """Statements sorted as plain texts are unreadable."""
    weights = "factual_weight=1.0, similarity_weight=0.0"
    bad = {"TP": ["a"], "FP": [], "FN": []}
    assert value(f"answer_correctness({weights})", stated("a"), stated("b"), bad, SAME) == 0.5


@pytest.mark.parametrize("weights", ["factual_weight=-1.0", "factual_weight=0.0, similarity_weight=0.0"])
def test_weights_make_sense(weights: str) -> None:
    """Weights below 0, or both 0, are refused."""
    with pytest.raises(UsageError, match="weight"):
        parse_metric(f"ragas-0.1.9:answer_correctness({weights})")


# -- critiques ----------------------------------------------------------------------------------------


def test_a_critique_has_an_aspect_or_a_definition() -> None:
    """Each built-in aspect and an own definition reach the judge; both at once, or a blank one, are refused."""
    judge = Judge(YES)
    outcome('aspect_critique(definition="Is it kind?")', judge)
    assert judge.values(0)["criterion"] == "Is it kind?"
    seen = set[str]()
    for aspect in ("harmfulness", "maliciousness", "coherence", "correctness", "conciseness"):
        judge = Judge(YES)
        outcome(f"aspect_critique(aspect={aspect})", judge)
        seen.add(judge.values(0)["criterion"])
    assert len(seen) == 5
    for wrong in ('definition=" "', 'aspect=coherence, definition="Is it kind?"', "aspect=beauty"):
        with pytest.raises(UsageError):
            parse_metric(f"ragas-0.1.9:aspect_critique({wrong})")


# -- noise sensitivity --------------------------------------------------------------------------------

STATED = (stated("g"), stated("a", "b"))


def noise(*lists: object, parameters: str = "") -> tuple[float, float]:
    """Both sensitivities, with the statements read and these lists of verdicts."""
    both = [f"noise_sensitivity_{focus}{parameters}" for focus in ("relevant", "irrelevant")]
    first, second = (value(name, *STATED, *lists) for name in both)
    return first, second


@each_case(
    "lists",
    [
        (judged(1), judged(1, 0), judged(1, 0), judged(1, 0), judged(0, 0)),
        (judged(1), judged(1, 0), judged(0), judged(1, 0, 1), judged(0, 0)),
        (judged(1), judged(1, 0), judged(0), judged(1, 0), judged(0, 0, 0)),
        (judged(1), judged(1, 0), judged(0), judged(1, 0), []),
    ],
)
def test_lists_of_unequal_length_fail(lists: Sequence[object]) -> None:
    """Lists of verdicts on the same statements must be of one length."""
    with pytest.raises(AskFailed, match="statements"):
        noise(*lists)


def test_unreadable_verdicts_are_yes() -> None:
    """An unreadable last list makes all statements right, so the value is 0."""
    replies = (*STATED, judged(1), judged(1, 0), judged(1), judged(0, 1), "bad", "bad")
    score = outcome("noise_sensitivity_relevant", Judge(*replies))
    assert isinstance(score, Score)
    assert (score.value, len(score.flags)) == (0.0, 2)


def test_some_unreadable_lists_fail() -> None:
    """Lists of the same kind are all readable or all not; some unreadable ones fail."""
    with pytest.raises(AskFailed):
        noise(judged(1), judged(1, 0), "bad", "bad", judged(0, 1), judged(0, 0))


def test_unreadable_statements_are_shown_as_nan() -> None:
    """Statements that cannot be read are shown as NaN, and whatever the judge makes of it counts, flagged."""
    judge = Judge("bad", "bad", STATED[1], judged(1), judged(1, 0), judged(0), judged(0, 1), judged(0, 0))
    score = outcome("noise_sensitivity_relevant", judge)
    assert judge.values(3)["statements"] == "NaN"
    assert isinstance(score, Score)
    assert (score.value, len(score.flags)) == (0.5, 1)


def test_noise_needs_contexts_and_statements() -> None:
    """Nothing retrieved, or no verdict on any statement, is Undefined."""
    assert isinstance(outcome("noise_sensitivity_relevant", Judge(), changed(retrieved_contexts=[])), Undefined)
    lists = ([], judged(1), [], judged(1), judged(0))
    assert isinstance(outcome("noise_sensitivity_relevant", Judge(*STATED, *lists)), Undefined)


def test_the_focus_is_that_of_the_name() -> None:
    """The focus may be written out; another one, or an unknown one, is refused."""
    assert parse_metric("ragas-0.1.22:noise_sensitivity_irrelevant(focus=irrelevant)")
    for wrong in ("relevant", "both"):
        with pytest.raises(UsageError):
            parse_metric(f"ragas-0.1.22:noise_sensitivity_irrelevant(focus={wrong})")


# -- summaries ----------------------------------------------------------------------------------------

TEXT = changed(retrieved_contexts=["1234", "67890"], response="12345")


@each_case(
    ("parameters", "expected"),
    [
        ("coeff=0.5", 0.5 * 0.5 + 0.5 * 0.5),
        ("coeff=0.2", 0.5 * 0.8 + 0.5 * 0.2),
    ],
)
def test_summaries_are_weighed(parameters: str, expected: float) -> None:
    """Coverage and conciseness by coeff."""
    replies = ({"keyphrases": ["k"]}, {"questions": ["a", "b"]}, {"answers": [1, "0"]})
    assert value(f"summarization_score({parameters})", *replies, sample=TEXT) == pytest.approx(expected)


def test_only_the_text_1_is_yes() -> None:
    """An answer is yes when it is exactly 1; " 1" and "yes" are not."""
    replies = ({"keyphrases": ["k"]}, {"questions": ["a"]}, {"answers": ["1", " 1", "yes", "0"]})
    score = outcome("summarization_score(coeff=0)", Judge(*replies), TEXT)
    assert isinstance(score, Score)
    assert (score.value, score.flags) == (0.25, ("The reply gives 4 answers to 1 questions.",))


def test_lost_keyphrases_and_questions_count_as_none() -> None:
    """Unreadable keyphrases and questions are none, flagged; unreadable answers fail, no answers are Undefined."""
    lost = ("bad",) * 4
    score = outcome("summarization_score", Judge(*lost, {"answers": ["1"]}), TEXT)
    assert isinstance(score, Score)
    assert len(score.flags) == 3
    with pytest.raises(AskFailed):
        outcome("summarization_score", Judge(*lost, "bad", "bad"), TEXT)
    assert isinstance(outcome("summarization_score", Judge(*lost, {"answers": []}), TEXT), Undefined)


def test_coeff_is_a_share() -> None:
    """A coeff outside 0 to 1 is refused."""
    with pytest.raises(UsageError, match="coeff"):
        parse_metric("ragas-0.1.22:summarization_score(coeff=1.5)")
