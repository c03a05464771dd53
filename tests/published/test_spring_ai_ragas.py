"""spring-ai-ragas' metrics beyond the golden cases: models, aggregators, quirks, and replies read as fields."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from broken_laws import broken_laws
from each_case import each_case

from merilo.compat.spring_ai_ragas import ContextRelevanceConfig
from merilo.data.sample import Sample
from merilo.errors import MissingField, UsageError
from merilo.judging import rubric
from merilo.judging.ask import AskFailed
from merilo.judging.digests import digest_text
from merilo.judging.kinds.measured import Embeddings, MatrixVerdict
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind, Verdict
from merilo.metrics.base import Metric, Score, Undefined, drive
from merilo.metrics.registry import parse_metric
from merilo.metrics.text import metric_text
from merilo_published.spring_ai_ragas import ratings, response
from merilo_published.spring_ai_ragas.models import Aggregator
from merilo_published.spring_ai_ragas.ratings import METRICS

ERROR = "ERROR"
SAMPLE = Sample(
    "s",
    user_input="Who built it?",
    retrieved_contexts=["Ann built it.", "It rains."],
    response="Ann did.",
    reference="Ann built it.",
)


@dataclass
class Models:
    """Replies of each model in the order asked; ERROR is a request that fails, none is left over in the end."""

    left: dict[str, list[Any]]
    vectors: Mapping[str, list[float]] = field(default_factory=dict)
    asked: list[Question[Any]] = field(default_factory=list)

    def __call__(self, question: Question[Any]) -> Verdict | Failure:
        self.asked.append(question)
        if isinstance(question, Embeddings):
            return MatrixVerdict.of([self.vectors[text] for text in question.texts])
        assert isinstance(question, Completion)
        rubric.render(question)
        reply = self.left[question.role].pop(0)
        if reply == ERROR:
            return Failure(FailureKind.TEMPORARY, "No answer.")
        return CompletionVerdict(reply if isinstance(reply, str) else json.dumps(reply))

    def score(self, metric: Metric, sample: Sample = SAMPLE) -> Score:
        outcome = self.outcome(metric, sample)
        assert isinstance(outcome, Score), outcome
        return outcome

    def outcome(self, metric: Metric, sample: Sample = SAMPLE) -> Score | Undefined:
        found = drive(metric.plan(sample), self)
        assert not any(self.left.values()), f"replies are left over: {self.left}"
        return found


def models(**left: list[Any]) -> Models:
    return Models({role: list(items) for role, items in left.items()})


def rated(*ratings: Any) -> list[Any]:
    return [each if each == ERROR else {"score": each, "reasoning": "r"} for each in ratings]


def two(metric: Any) -> Any:
    """The metric for a run of two judges."""
    return metric.for_judges(["m1", "m2"])


# -- aggregators and models ---------------------------------------------------------------------------


def test_models_by_name() -> None:
    """`models` names judges of the run, and the text carries them; a name that is no judge is refused."""
    metric = parse_metric('spring-ai-ragas:context_relevance(models="m2+m1")')
    assert isinstance(metric, ratings.ContextRelevance)
    assert metric.for_judges(["m1", "m2", "m3"]).names == ("m2", "m1")
    assert metric_text(metric) == "spring-ai-ragas:context_relevance(models=m2+m1)"
    with pytest.raises(UsageError, match="'m2', which is no judge of this run; there are m1"):
        metric.for_judges(["m1"])


@each_case("bad", [{"models": "m1+"}, {"aggregator": "mode"}, {"tolerance": -1}, {"temperature": -0.1}])
def test_refused(bad: dict[str, Any]) -> None:
    """Options that make no sense are refused when the metric is made."""
    with pytest.raises(UsageError, match="spring-ai-ragas:context_relevance"):
        ratings.ContextRelevance(**bad)


def test_the_config_of_upstream() -> None:
    """The configuration object gives the metric; no models means all of them."""
    assert ContextRelevanceConfig().metric() == ratings.ContextRelevance()
    assert ContextRelevanceConfig(models=[]).metric().models is None
    found = ContextRelevanceConfig(temperature=0.0, models=["a", "b"]).metric()
    assert (found.temperature, found.models, found.names) == (0.0, "a+b", ("a", "b"))
    with pytest.raises(UsageError, match="must be a list"):
        ContextRelevanceConfig(models="a").metric()
    with pytest.raises(UsageError, match="without '\\+'"):
        ContextRelevanceConfig(models=["a+b"]).metric()


# -- the three ratings --------------------------------------------------------------------------------


def test_a_lost_context_leaves_the_denominator() -> None:
    """A context without any rating is not counted; null is passed over like a failure, but flagged as a context."""
    found = models(judge=rated(None, 1)).score(ratings.ContextRelevance())
    assert found.value == 0.5
    assert found.counts == {"contexts": 2, "scored": 1}
    assert found.flags == ("a context got no score and was left out",)


@each_case(
    "reply",
    [
        '{"score": "1.5"}',
        '{"score": 3000000000}',
        '{"score": 1e10}',
        '{"score": true}',
        '{"score": "high"}',
        "[1]",
        "Score: 2",
        "{",
    ],
)
def test_unreadable_ratings(reply: str) -> None:
    """What is no Integer of Java, and what does not begin with JSON, is a failure of the model."""
    with pytest.raises(AskFailed) as caught:
        models(judge=[reply]).outcome(ratings.AnswerAccuracy())
    assert caught.value.failure.kind is FailureKind.UNREADABLE


@each_case(
    ("number", "value"), [("1.7", 0.5), ("0.9", 0.0), ("-0.5", 0.0), ("2147483647", 1.0), ('"2"', 1.0), ("1.0", 0.5)]
)
def test_a_fraction_of_a_rating_is_cut_off(number: str, value: float) -> None:
    """As Jackson reads a number into an Integer: 1.7 is 1."""
    assert models(judge=[f'{{"score": {number}}}']).score(ratings.AnswerAccuracy()).value == value


@each_case(
    "metric",
    [
        ratings.ContextRelevance(),
        ratings.ResponseGroundedness(use_heuristic_shortcuts=False),
        ratings.AnswerAccuracy(),
        ratings.ContextPrecision(),
        response.Faithfulness(),
        response.Hallucination(),
        ratings.NoiseSensitivity(),
        ratings.AspectCritic(),
        ratings.SimpleCriteriaScore(),
    ],
)
def test_a_reply_of_null_fails_the_sample(metric: Metric) -> None:
    """The published code breaks at a success without a result, whatever the other models say."""
    with pytest.raises(AskFailed, match="fails the whole sample"):
        models(m1=["null"] * 9, m2=["{}"] * 9).outcome(two(metric))


def test_a_reply_of_null_has_no_classifications() -> None:
    """Where the published code looks for it, null is an empty answer: 0 for the recall of one of two models."""
    found = models(m1=["null"], m2=[{"classifications": [{"statement": "A.", "attributed": 1}]}])
    assert found.score(two(ratings.ContextRecall())).value == 0.5
    with pytest.raises(AskFailed, match="fails the whole sample"):
        models(judge=[{"classifications": [{"statement": "A.", "attributed": None}]}]).outcome(ratings.ContextRecall())


def test_empty_and_blank_input() -> None:
    """An empty question or no contexts are Undefined without a question; a blank question is judged."""
    metric = ratings.ContextRelevance()
    assert isinstance(models().outcome(metric, Sample("s", user_input="", retrieved_contexts=["c"])), Undefined)
    assert isinstance(models().outcome(metric, Sample("s", user_input="q", retrieved_contexts=[])), Undefined)
    assert models(judge=rated(2)).score(metric, Sample("s", user_input=" ", retrieved_contexts=["c"])).value == 1.0


def test_the_aggregator_holds_for_each_context() -> None:
    """Models are combined for each context, then contexts are averaged; without consensus there is no score."""
    best = ratings.ContextRelevance(aggregator=Aggregator.MAX)
    assert models(m1=rated(2, 0), m2=rated(0, 0)).score(two(best)).value == 0.5
    agreed = ratings.ContextRelevance(aggregator=Aggregator.CONSENSUS)
    assert isinstance(models(m1=rated(2), m2=rated(0)).outcome(two(agreed)), Undefined)


def test_temperature() -> None:
    """The temperature goes into the request."""
    asked = models(judge=rated(1))
    asked.score(ratings.AnswerAccuracy(temperature=0.3))
    assert [question.temperature for question in asked.asked if isinstance(question, Completion)] == [0.3]


def test_russian_samples_are_asked_in_russian() -> None:
    """The rubric follows the language of the sample, by its mark or its script."""
    marked = Sample("s", response="a", reference="b", language="ru")
    written = Sample("s", response="да", reference="нет")
    for sample in (marked, written):
        asked = models(judge=rated(1))
        asked.score(ratings.AnswerAccuracy(), sample)
        (question,) = asked.asked
        assert isinstance(question, Completion)
        assert question.rubric == "ru/published/spring-ai-ragas/answer_accuracy.v1"


@each_case("response", ["ANN BUILT IT.", " ann built it.\n", "built", "\n\nit rains", "  "])
def test_groundedness_shortcut(response: str) -> None:
    """A response that stands in the joined contexts, whatever its case, scores 1 unasked; a blank one stands in all."""
    found = models().score(ratings.ResponseGroundedness(), Sample("s", response=response, retrieved_contexts=_texts()))
    assert (found.value, found.counts) == (1.0, {"shortcuts": 1})


@pytest.mark.parametrize("response", ["", None])
def test_groundedness_of_nothing(response: str | None) -> None:
    """With shortcuts a missing or empty response scores 0 without a question, flagged; without them it has no score."""
    sample = Sample("s", response=response, retrieved_contexts=_texts())
    found = models().score(ratings.ResponseGroundedness(), sample)
    assert (found.value, len(found.flags)) == (0.0, 1)
    asking = ratings.ResponseGroundedness(use_heuristic_shortcuts=False)
    if response is None:
        with pytest.raises(MissingField):
            models().outcome(asking, sample)
    else:
        assert isinstance(models().outcome(asking, sample), Undefined)


def _texts() -> list[str]:
    return [context.text for context in SAMPLE.contexts]


def test_groundedness_joins_contexts() -> None:
    """Contexts are joined by a blank line and judged in one request a model."""
    asked = models(m1=rated(2), m2=rated(1))
    assert asked.score(two(ratings.ResponseGroundedness())).value == 0.75
    (first, _) = asked.asked
    assert isinstance(first, Completion)
    assert first.values[1] == "Ann built it.\n\nIt rains."


def test_confirmation_is_shown_the_mean() -> None:
    """The second request shows the rounded mean, a half upwards, and the reason of the first model that rated."""
    asked = models(m1=[ERROR, {"score": 0}], m2=[{"score": 1, "reasoning": "why"}, {"score": 2}])
    found = asked.score(two(ratings.AnswerAccuracy(use_dual_judge=True)))
    assert found.value == 0.5
    last = asked.asked[-1]
    assert isinstance(last, Completion)
    assert dict(zip(last.names, last.values, strict=True))["reasoning"] == "why"
    half = models(m1=rated(2, 2), m2=rated(1, 2))
    half.score(two(ratings.AnswerAccuracy(use_dual_judge=True)))
    last = half.asked[-1]
    assert isinstance(last, Completion)
    assert dict(zip(last.names, last.values, strict=True))["rating"] == "2"


# -- per model, then over the models -------------------------------------------------------------------


def test_precision_counts_a_lost_call_as_irrelevant() -> None:
    """A model that always fails scores 0 and still counts, flagged."""
    replies: dict[str, list[Any]] = {"m1": [{"relevant": True}, {"relevant": False}], "m2": [ERROR, ERROR]}
    found = models(**replies).score(two(ratings.ContextPrecision()))
    assert found.value == 0.5
    assert "a model's call failed and was scored as not relevant" in found.flags


@each_case(("reference", "against"), [("r", "r"), (" ", "a"), (None, "a")])
def test_precision_by_reference_or_response(reference: str | None, against: str) -> None:
    """Contexts are judged against the reference, or the response where it is missing or blank."""
    sample = Sample("s", user_input="q", retrieved_contexts=["c"], response="a", reference=reference)
    asked = models(judge=[{"relevant": None}])
    assert asked.score(ratings.ContextPrecision(), sample).value == 0.0
    (question,) = asked.asked
    assert isinstance(question, Completion)
    assert question.values[1] == against


@each_case(
    "metric",
    [
        ratings.ContextPrecision,
        ratings.ContextRecall,
        ratings.ContextEntityRecall,
        ratings.NoiseSensitivity,
        response.ResponseRelevancy,
        response.FactualCorrectness,
        response.SemanticSimilarity,
        response.AnswerCorrectness,
    ],
)
def test_missing_input_scores_zero(metric: Any) -> None:
    """A missing or blank field scores 0 without a question, flagged."""
    blank = Sample("s", user_input=" ", response=" ", reference=" ", retrieved_contexts=[])
    for sample in (Sample("s"), blank):
        found = models().score(metric(), sample)
        assert found.value == 0.0
        assert found.flags


def test_hallucination_asks_about_blank_texts() -> None:
    """Blank texts are judged like any others, as for faithfulness."""
    blank = Sample("s", user_input="q", response=" ", retrieved_contexts=[])
    said = {"claims": [{"claim": "c", "status": "hallucinated"}]}
    assert models(judge=[said]).score(response.Hallucination(), blank).value == 1.0


def test_entities_need_both_replies() -> None:
    """A model that fails on either text drops out; both texts are asked about at once."""
    found = models(m1=[{"entities": ["a"]}, ERROR], m2=[{"entities": ["a"]}, {"entities": ["a"]}])
    assert found.score(two(ratings.ContextEntityRecall())).value == 1.0


def test_faithfulness_of_own_statements() -> None:
    """Each model judges its own statements, and the number of its verdicts is not held to them, but flagged."""
    m1 = [{"statements": ["a", "b"]}, {"verdicts": [{"verdict": 1}]}]
    m2 = [{"statements": ["c"]}, {"verdicts": [{"verdict": 0}]}]
    found = models(m1=m1, m2=m2).score(two(response.Faithfulness()))
    assert found.value == 0.5
    assert found.flags == ("a model gave another number of verdicts than statements",)


def test_hallucination() -> None:
    """HALLUCINATED and CONTRADICTED count in any case, any other status is fine; lower is better."""
    claims = [{"claim": "a", "status": status} for status in ("hallucinated", "CONTRADICTED", "SUPPORTED", None)]
    found = models(judge=[{"claims": claims}]).score(response.Hallucination())
    assert found.value == 0.5
    assert found.counts == {"claims": 4, "unsupported": 2}
    assert not response.Hallucination.higher_is_better


def test_relevancy_of_questions() -> None:
    """The mean cosine counts; blank questions are not embedded, and one noncommittal question does not matter."""
    said = {"questions": [{"question": "A?", "noncommittal": 1}, {"question": " ", "noncommittal": 0}]}
    asked = models(judge=[said])
    asked.vectors = {"Who built it?": [1.0, 0.0], "A?": [0.6, 0.8]}
    assert asked.score(response.ResponseRelevancy()).value == pytest.approx(0.6)


def test_relevancy_of_evasions() -> None:
    """A model that calls all questions noncommittal scores 0 and embeds nothing; one without questions drops out."""
    evades = {"questions": [{"question": "A?", "noncommittal": 1}]}
    found = models(m1=[evades], m2=[{"questions": []}]).score(two(response.ResponseRelevancy()))
    assert found.value == 0.0
    assert found.flags == ("a model gave no question and was left out",)


def test_no_question_at_all() -> None:
    """When no model has a question the metric fails, as upstream throws."""
    with pytest.raises(AskFailed):
        models(judge=[{"questions": []}]).outcome(response.ResponseRelevancy())


def _noise(context: list[list[bool]]) -> list[Any]:
    """Replies of one model: a reference statement, two of the response of which the first is right, verdicts."""
    rows = [{"verdicts": [{"verdict": each} for each in row]} for row in context]
    right = {"verdicts": [{"verdict": True}, {"verdict": False}]}
    return [{"statements": ["r"]}, {"statements": ["x", "y"]}, right, *rows]


@each_case(
    ("mode", "rows", "expected"),
    [
        ("relevant", [[True], [True, True], [False], [False, False]], 0.5),
        ("RELEVANT", [[False], [True, True], [False], [False, True]], 0.0),
        ("irrelevant", [[False], [True, True], [False], [False, False]], 0.5),
        ("IRRELEVANT", [[True], [False, True], [False], [False, True]], 0.0),
    ],
)
def test_noise(mode: Any, rows: list[list[bool]], expected: float) -> None:
    """Wrong statements count that come from a relevant context, or from irrelevant ones alone.

    The rows are asked context by context, the reference's statements before the response's.
    """
    assert models(judge=_noise(rows)).score(ratings.NoiseSensitivity(mode=mode)).value == expected


@pytest.mark.parametrize("mode", ["relevant", "irrelevant"])
def test_noise_without_a_reference_statement(mode: Any) -> None:
    """A reference without statements scores 0 in both modes: no context is relevant or irrelevant to it."""
    wrong, none, found_there = [{"verdict": False}], list[Any](), [{"verdict": True}]
    verdicts = [{"verdicts": each} for each in (wrong, none, found_there)]
    said = [{"statements": []}, {"statements": ["s"]}, *verdicts]
    sample = Sample("s", user_input="q", response="a", reference="r", retrieved_contexts=["c"])
    found = models(judge=said).score(ratings.NoiseSensitivity(mode=mode), sample)
    assert (found.value, len(found.flags)) == (0.0, 1)


def test_missing_noise_verdicts() -> None:
    """A verdict that is missing counts as not supported, flagged."""
    replies = _noise([[True], [True], [False], [False, False]])
    found = models(judge=replies).score(ratings.NoiseSensitivity())
    assert found.value == 0.0
    assert "verdicts are missing and count as not supported" in found.flags


FACTS = [
    {"claims": ["a", "b"]},
    {"claims": ["c"]},
    {"verdicts": [{"claim": "a", "verdict": "supported"}, {"claim": "b", "verdict": "NEUTRAL"}]},
    {"verdicts": [{"claim": "c", "verdict": "SUPPORTED"}]},
]


@pytest.mark.parametrize(("mode", "expected"), [("F1", 2 / 3), ("precision", 0.5), ("RECALL", 1.0)])
def test_facts(mode: Any, expected: float) -> None:
    """Precision is of the response's claims, recall of the reference's; four requests whatever the mode."""
    found = models(judge=FACTS).score(response.FactualCorrectness(mode=mode))
    assert found.value == pytest.approx(expected)
    assert found.counts["response_claims"] == 2


def test_a_model_without_claims_drops_out() -> None:
    """A reply without the list of claims excludes its model from all further steps."""
    found = models(m1=FACTS, m2=[{"claims": None}]).score(two(response.FactualCorrectness()))
    assert found.value == pytest.approx(2 / 3)


VECTORS = {"Ann did.": [1.0, 0.0], "Ann built it.": [0.6, 0.8]}


def test_similarity() -> None:
    """The cosine, or 1 and 0 around a threshold; a vector without length is like nothing."""
    asked = Models({}, VECTORS)
    assert asked.score(response.SemanticSimilarity()).value == pytest.approx(0.6)
    assert Models({}, VECTORS).score(response.SemanticSimilarity(threshold=0.5)).value == 1.0
    assert Models({}, VECTORS).score(response.SemanticSimilarity(threshold=0.7)).value == 0.0
    assert Models({}, {**VECTORS, "Ann did.": [0.0, 0.0]}).score(response.SemanticSimilarity()).value == 0.0


def test_correctness() -> None:
    """Weights are normalised, and a part that fails counts as 0, flagged."""
    found = Models({"judge": [*FACTS]}, VECTORS).score(response.AnswerCorrectness())
    assert found.value == pytest.approx(0.75 * 2 / 3 + 0.25 * 0.6)
    even = response.AnswerCorrectness(factual_weight=2, semantic_weight=2)
    assert Models({"judge": [*FACTS]}, VECTORS).score(even).value == pytest.approx((2 / 3 + 0.6) / 2)
    lost = Models({"judge": [ERROR]}, VECTORS).score(response.AnswerCorrectness())
    assert lost.value == pytest.approx(0.15)
    assert "factual correctness could not be found out and was scored 0" in lost.flags
    with pytest.raises(UsageError, match=r"takes .*weight"):
        response.AnswerCorrectness(factual_weight=0, semantic_weight=0)


def test_critic() -> None:
    """Half of the replies is no majority; what fails is left out of the vote, null is false."""
    said = {"m1": [{"verdict": True}, {"verdict": False}], "m2": [ERROR, {"verdict": True}]}
    assert models(**said).score(two(ratings.AspectCritic(strictness=2))).value == 0.5
    assert models(judge=[{"verdict": None}]).score(ratings.AspectCritic()).value == 0.0
    with pytest.raises(UsageError, match="strictness"):
        ratings.AspectCritic(strictness=0)


def test_simple_criteria() -> None:
    """The median of a model's scores, cut to the scale and brought to [0, 1]; null is 0."""
    said = [{"score": 3}, {"score": 5.5}, {"score": None}]
    assert models(judge=said).score(ratings.SimpleCriteriaScore(strictness=3)).value == pytest.approx(0.6)
    scaled = ratings.SimpleCriteriaScore(min_score=1, max_score=5)
    assert models(judge=[{"score": 2}]).score(scaled).value == 0.25
    with pytest.raises(UsageError, match="min_score below max_score"):
        ratings.SimpleCriteriaScore(min_score=5, max_score=5)


# -- the laws -----------------------------------------------------------------------------------------


def _own(question: Question[Any]) -> Verdict | None:
    """Free replies that differ with the texts asked about, and leave 0 and 1 at times."""
    if not isinstance(question, Completion):
        return None
    name = question.rubric.rpartition("/")[2]
    odds = digest_text(question.values[-1])[0]
    if name.startswith("context_precision"):
        return CompletionVerdict(json.dumps({"relevant": odds % 2 == 0}))
    if name.startswith("context_recall"):
        return CompletionVerdict(json.dumps({"classifications": [{"attributed": 2}]}))
    if name.startswith("context_relevance"):
        return CompletionVerdict(json.dumps({"score": odds % 3}))
    return None


@pytest.mark.usefixtures("seeds")
@each_case("metric", METRICS)
def test_laws(metric: Any) -> None:
    """Each metric keeps the law but for what it says it breaks, for one model and for two."""
    for each in (metric(), two(metric())):
        assert set(broken_laws(each, answer=_own)) == set(metric.breaks)


def test_rubrics_in_both_languages() -> None:
    """Every text that is there in English is there in Russian, with the same fields."""
    *_, root = rubric.roots()
    folders = {lang: root.joinpath(lang, "published", "spring-ai-ragas") for lang in ("en", "ru")}
    names = {lang: sorted(item.name for item in folder.iterdir()) for lang, folder in folders.items()}
    assert names["en"] == names["ru"]
    assert len(names["en"]) == 18
    for name in names["en"]:
        needs = [rubric.load(f"{lang}/published/spring-ai-ragas/{name}").needs for lang in ("en", "ru")]
        assert needs[0] == needs[1]
