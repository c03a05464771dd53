import json
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest
from broken_laws import broken_laws
from each_case import each_case
from scripted_replies import Script

import merilo
from merilo.data.sample import Sample
from merilo.errors import UsageError
from merilo.judging.ask import AskFailed
from merilo.judging.digests import digest_text
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Question
from merilo.judging.rubric import render
from merilo.judging.verdicts import Failure, FailureKind, Verdict
from merilo.metrics.base import Metric, Score, Undefined, drive
from merilo.metrics.registry import parse_metric
from merilo_published.ragas_v0_4.metrics import METRICS
from merilo_published.ragas_v0_4.response import first_json
from merilo_published.ragas_v0_4.texts import Distance, edit_distance, similarity

FULL = Sample(
    "full",
    user_input="q",
    response="a",
    reference="gt",
    retrieved_contexts=["c1", "c2"],
    reference_contexts=["c1", "r2"],
    retrieved_context_ids=["1", "2"],
    reference_context_ids=["1"],
)


def outcome(text: str, script: Script, sample: Sample = FULL) -> Score | Undefined:
    metric: Any = parse_metric(text)  # a text may also name what has no plan
    found: Score | Undefined = drive(metric.plan(sample), script)
    return found


def value(text: str, replies: Sequence[object], sample: Sample = FULL, **vectors: Sequence[float]) -> float:
    script = Script(list(replies), vectors)
    found = outcome(text, script, sample)
    assert isinstance(found, Score), found
    assert not script.replies, "replies were left over"
    return found.value


def reason(text: str, replies: Sequence[object], sample: Sample = FULL, **vectors: Sequence[float]) -> str:
    found = outcome(text, Script(list(replies), vectors), sample)
    assert isinstance(found, Undefined), found
    return found.reason


def without(**fields: Any) -> Sample:
    given: dict[str, Any] = {"user_input": "q", "response": "a", "reference": "gt", "retrieved_contexts": ["c1", "c2"]}
    return Sample("x", **(given | fields))


def verdict(number: object) -> dict[str, object]:
    return {"reason": "r", "verdict": number}


def verdicts(*numbers: object) -> dict[str, object]:
    return {"statements": [{"statement": f"s{n}", **verdict(number)} for n, number in enumerate(numbers)]}


def statements(*texts: str) -> dict[str, object]:
    return {"statements": list(texts)}


def claims(*texts: str) -> dict[str, object]:
    return {"claims": list(texts)}


def classes(true: int, false: int, missing: int) -> dict[str, object]:
    entry = {"statement": "s", "reason": "r"}
    return {"TP": [entry] * true, "FP": [entry] * false, "FN": [entry] * missing}


def attributed(*numbers: object) -> dict[str, object]:
    return {"classifications": [{"statement": "s", "reason": "r", "attributed": number} for number in numbers]}


def guessed(question: str, noncommittal: int = 0) -> dict[str, object]:
    return {"question": question, "noncommittal": noncommittal}


def repaired(reply: object) -> dict[str, object]:
    return {"text": json.dumps(reply)}


# -- the law ------------------------------------------------------------------------------------------


@cache  # the laws ask the same questions hundreds of times
def chance(*texts: str) -> float:
    """A number that depends on the letters alone, and so not on the order of contexts."""
    return digest_text("".join(sorted("".join(texts))))[0] / 256


def plausible(question: Question[Any]) -> Verdict | None:
    """Replies in the form asked for, by the texts alone, whatever their order."""
    if not isinstance(question, Completion):
        return None
    number = int(chance(question.rubric, *question.values, str(question.draw)) < 0.5)
    filled = dict(zip(question.names, question.values, strict=True))
    match question.rubric.split("/")[-1].split(".")[0]:
        case "verdicts":
            asked = json.loads(filled["statements"])
            flags = [int(chance(each, filled["text"]) < 0.5) for each in asked]
            return CompletionVerdict(json.dumps(verdicts(*flags)))
        case "context_precision" | "aspect":
            return CompletionVerdict(json.dumps(verdict(number)))
        case "context_recall":
            return CompletionVerdict(json.dumps(attributed(number, 1)))
        case _:
            return None


@pytest.mark.usefixtures("seeds")
@each_case("metric", METRICS)
def test_a_metric_breaks_the_laws_that_it_says_it_breaks(metric: type[Metric]) -> None:
    """Each metric keeps the law but for what it names in `breaks`, and does break that."""
    made = metric()
    module: str = getattr(made, "module", "json")
    if find_spec(module.partition(".")[0]) is None:
        return  # the extra is not installed
    assert set(broken_laws(made, answer=plausible)) == set(made.breaks)


# -- replies and their repair -------------------------------------------------------------------------

PRECISION = "ragas-0.4.3:llm_context_precision_with_reference"
ONE = without(retrieved_contexts=["c1"])


def test_an_unreadable_reply_is_sent_to_repair_three_times_and_then_fails() -> None:
    """A judge that never writes JSON is asked 1 + 3 times; a further reply is not asked for."""
    script = Script(["bad"] * 9)
    with pytest.raises(AskFailed) as raised:
        outcome(PRECISION, script, ONE)
    assert raised.value.failure.kind is FailureKind.UNREADABLE
    assert script.rubrics == ["context_precision", *["repair"] * 3]


def test_a_repair_holds_the_reply_as_text() -> None:
    """The repair's own reply is {"text": ...}, and the text is read as the first reply would have been."""
    assert value(PRECISION, ["bad", repaired(verdict(1))], ONE) == pytest.approx(1)


def test_a_repair_of_a_repair_is_nested() -> None:
    """A repair that is not of its form is repaired in turn; its text is then a repair that holds the reply."""
    assert value(PRECISION, ["bad", "bad", repaired(repaired(verdict(1)))], ONE) == pytest.approx(1)


@pytest.mark.parametrize("replies", [["bad", {"text": "junk"}], ["bad", "bad", repaired(verdict(1))]])
def test_a_repaired_text_that_cannot_be_read_is_given_up(replies: list[object]) -> None:
    """Whatever is wrong inside a repaired text fails at once, without another repair."""
    script = Script([*replies, "unused"])
    with pytest.raises(AskFailed, match="cannot be read either"):
        outcome(PRECISION, script, ONE)
    assert script.replies == ["unused"]


def test_a_bare_reply_is_no_repair() -> None:
    """A repaired reply that is not wrapped as "text" is itself sent to repair."""
    script = Script(["bad", verdict(1), repaired(repaired(verdict(1)))])
    assert isinstance(outcome(PRECISION, script, ONE), Score)


@each_case(
    ("reply", "useful"),
    [
        ('{"reason": "r", "verdict": "1"}', True),
        ('{"reason": "r", "verdict": "1.0"}', True),
        ('{"reason": "r", "verdict": true}', True),
        ('{"reason": "r", "verdict": -1}', True),
        ('{"reason": "r", "verdict": 1', True),
        ('{"reason": "line\nbreak", "verdict": 1}', True),
        ('sure: {"reason": "r", "verdict": 1} or {"reason": "r", "verdict": 0}', True),
        ('{"a": 1} ```json\n{"reason": "r", "verdict": 1}\n```', True),
        ('{"reason": "r", "verdict": 0}', False),
    ],
)
def test_a_readable_reply_needs_no_repair(reply: str, useful: bool) -> None:
    """Numbers are read as pydantic does, and the first JSON of the text is taken, closed where it is cut off."""
    assert value(PRECISION, [reply], ONE) == pytest.approx(float(useful))


@each_case(
    "reply",
    [
        '{"verdict": 1}',
        '{"reason": null, "verdict": 1}',
        '{"reason": "r", "verdict": 1.5}',
        '{"reason": "r", "verdict": "yes"}',
        '[1] {"reason": "r", "verdict": 1}',
        '{"reason": "a } b", "verdict": 1}',
        "{'reason': 'r', 'verdict': 1}",
        '{"reason": "r", "verdict": 1e400}',
        '{"reason": "r", "verdict": ' + "9" * 5_000 + "}",
        "",
    ],
)
def test_another_reply_is_sent_to_repair(reply: str) -> None:
    """Fields are required, other numbers refused, and brackets are counted inside texts too."""
    script = Script([reply, repaired(verdict(0))])
    found = outcome(PRECISION, script, ONE)
    assert isinstance(found, Score)
    assert found.value == 0.0
    assert script.rubrics == ["context_precision", "repair"]


def test_nesting_without_end_is_no_json() -> None:
    """A reply of thousands of opening brackets is unreadable, not an error of the metric."""
    with pytest.raises(ValueError, match="no JSON"):
        first_json("[" * 100_000 + "x")


def test_a_lost_request_is_not_repaired() -> None:
    """A request that fails fails the metric at once."""
    script = Script([Failure(FailureKind.TEMPORARY, "boom"), "unused"])
    with pytest.raises(AskFailed, match="boom"):
        outcome(PRECISION, script, ONE)
    assert len(script.asked) == 1


def test_collections_ask_again_instead_of_repairing() -> None:
    """The collections ask again in the same conversation, twice by default, and never for a repair."""
    script = Script(["bad", "worse", "worst", "unused"])
    with pytest.raises(AskFailed):
        outcome("ragas-0.4.3:collections.context_recall", script)
    assert script.replies == ["unused"]
    assert set(script.rubrics) == {"context_recall"}
    assert [len(each.earlier) for each in script.requests] == [0, 2, 4]


def test_collections_keep_a_sample_after_an_unreadable_reply() -> None:
    """One readable reply of three is enough for a score; reasks=0 asks once, reasks=none reads free text."""
    recall = "ragas-0.4.3:collections.context_recall"
    assert value(recall, ["bad", attributed(1, 0)]) == 0.5
    with pytest.raises(AskFailed):
        outcome(f"{recall}(reasks=0)", Script(["bad", attributed(1, 0)]))
    lax = {"classifications": [{"statement": "s", "reason": "r", "attributed": "1"}]}
    assert value(f"{recall}(reasks=none)", [lax]) == 1.0


def test_every_reask_is_a_question() -> None:
    """Each of two questions is asked three times when its reply is read at the last re-ask only."""
    script = Script(["bad", "bad", statements("s"), "bad", "bad", verdicts(1)])
    assert isinstance(outcome("ragas-0.4.3:collections.faithfulness", script), Score)
    assert len(script.asked) == 6


# -- retrieval ----------------------------------------------------------------------------------------


def test_contexts_are_judged_one_after_another() -> None:
    """The second context is not asked about when the first cannot be read."""
    script = Script(["bad"] * 4 + [verdict(1)])
    with pytest.raises(AskFailed):
        outcome(PRECISION, script)
    assert script.replies == [verdict(1)]


@each_case("field", ["user_input", "reference", "retrieved_contexts"])
@each_case("name", ["context_precision_with_reference", "context_recall"])
def test_collections_refuse_empty_inputs_and_judge_blank_ones(name: str, field: str) -> None:
    """An empty text or list is undefined; a space is an input like any other."""
    text = f"ragas-0.4.3:collections.{name}"
    contexts = field == "retrieved_contexts"
    assert reason(text, [], without(**{field: [] if contexts else ""})) == "an input is empty"
    blank = without(**{field: [" ", " "] if contexts else " "})
    replies = [attributed(1)] if name == "context_recall" else [verdict(1)] * 2
    assert value(text, replies, blank) == pytest.approx(1)


# -- response -----------------------------------------------------------------------------------------

FAITHFULNESS = "ragas-0.4.3:faithfulness"


def test_faithfulness_by_a_classifier_rounds_each_similarity() -> None:
    """0.6 and 0.4 make one supported statement of two, by one request to the judge."""
    found = value("ragas-0.4.3:faithfulness_with_hhem", [statements("x", "y")], FULL, x=[0.6], y=[0.4])
    assert found == 0.5


RELEVANCY = "ragas-0.4.3:answer_relevancy"
VECTORS = {"q": [1.0, 0.0], "g1": [1.0, 0.0], "g2": [0.0, 1.0], "z": [0.0, 0.0], "": [0.0, 1.0]}


def test_relevancy_samples_one_request_at_another_temperature() -> None:
    """0.4.3 draws its questions together at 0.3; a repair is asked for at 0.01."""
    script = Script([guessed("g1"), "bad", guessed("g1"), repaired(guessed("g2"))], VECTORS)
    found = outcome(RELEVANCY, script)
    assert isinstance(found, Score)
    assert found.value == pytest.approx(2 / 3)
    assert [each.temperature for each in script.requests] == [0.3, 0.3, 0.3, 0.01]
    assert [question.draw for question in script.asked[:3]] == [0, 1, 2]


def test_questions_that_are_all_empty() -> None:
    """Undefined for the class, 0 with a flag for the collections."""
    replies = [guessed("")] * 3
    assert reason(RELEVANCY, replies) == "every generated question is empty"
    found = outcome("ragas-0.4.3:collections.answer_relevancy", Script(list(replies)))
    assert isinstance(found, Score)
    assert (found.value, found.flags) == (0.0, ("every generated question was empty and scored 0",))


def test_an_embedding_without_length_is_undefined() -> None:
    """The cosine with a zero vector is no number."""
    assert reason(RELEVANCY, [guessed("z")] * 3, FULL, **VECTORS) == "an embedding has no length"


def test_strictness_is_the_number_of_questions() -> None:
    """One question is asked for at 0.01; none is refused."""
    script = Script([guessed("g1")], VECTORS)
    outcome(f"{RELEVANCY}(strictness=1)", script)
    assert [each.temperature for each in script.requests] == [0.01]
    with pytest.raises(UsageError, match="takes strictness="):
        parse_metric(f"{RELEVANCY}(strictness=0)")


NOISE = "ragas-0.4.3:noise_sensitivity"


@each_case("field", ["user_input", "response", "reference", "retrieved_contexts"])
def test_noise_sensitivity_refuses_empty_inputs(field: str) -> None:
    """Upstream raises; nothing is asked."""
    assert reason(NOISE, [], without(**{field: [] if field == "retrieved_contexts" else ""})) == "an input is empty"


def test_noise_sensitivity_needs_equal_lists_across_contexts() -> None:
    """Lists of unequal length fail before the response is held against the reference."""
    lists = [verdicts(1), verdicts(1), verdicts(1), verdicts(1, 0)]
    script = Script([statements("g"), statements("a", "b"), *lists, "unused"])
    with pytest.raises(AskFailed, match="2 verdicts where another context has 1"):
        outcome(NOISE, script)
    assert script.replies == ["unused"]


def test_a_single_verdict_stands_for_all() -> None:
    """One verdict against the reference is stretched over two statements, as numpy does; three are not."""
    head = [statements("g"), statements("a", "b"), verdicts(1), verdicts(1, 1), verdicts(1), verdicts(1, 0)]
    assert value(NOISE, [*head, verdicts(0)]) == 1.0
    with pytest.raises(AskFailed, match="different numbers of statements"):
        outcome(NOISE, Script([*head, verdicts(0, 0, 0)]))


def test_noise_sensitivity_without_statements_is_undefined() -> None:
    """A reference or a response that states nothing leaves nothing to measure, though all is asked."""
    none = verdicts()
    some = verdicts(1)
    lists = [none, some, none, some, some]
    assert reason(NOISE, [statements(), statements("a"), *lists]) == "the reference makes no statement"
    lists = [some, none, some, none, none]
    assert reason(NOISE, [statements("g"), statements(), *lists]) == "the response makes no statement"


def test_the_aspect_sees_what_the_sample_has() -> None:
    """The submission holds the fields that are there, and the verdict is taken as it is; strictness does nothing."""
    script = Script([verdict(2), verdict(0)])
    found = outcome(
        'ragas-0.4.3:aspect_critic(definition="Is it kind?", strictness=3)', script, Sample("x", response="a")
    )
    assert isinstance(found, Score)
    assert found.value == 2.0
    assert len(script.asked) == 1
    assert script.requests[0].values == ("Is it kind?", '{"response": "a"}')


# -- correctness --------------------------------------------------------------------------------------

CORRECTNESS = "ragas-0.4.3:answer_correctness"
NEAR = {"a": [1.0, 1.0], "gt": [1.0, 0.0], " ": [1.0, 0.0], "": [0.0, 0.0]}
BOTH = [statements("a"), statements("b")]


@pytest.mark.parametrize(
    ("name", "f_with_one_empty", "f_with_no_class"),
    [("answer_correctness", 0.0, 0.0), ("collections.answer_correctness", 1.0, 1.0)],
)
def test_nothing_to_classify(name: str, f_with_one_empty: float, f_with_no_class: float) -> None:
    """The collections call an empty list right where the class goes on to ask, and empty classes too."""
    text = f"ragas-0.4.3:{name}"
    asked = [] if f_with_one_empty else [classes(0, 1, 0)]
    cosine = 0.5**0.5
    found = value(text, [statements("x"), statements(), *asked], FULL, **NEAR)
    assert found == pytest.approx(0.75 * f_with_one_empty + 0.25 * cosine)
    assert value(text, [*BOTH, classes(0, 0, 0)], FULL, **NEAR) == pytest.approx(0.75 * f_with_no_class + 0.25 * cosine)
    assert value(text, [statements(), statements()], FULL, **NEAR) == pytest.approx(0.75 + 0.25 * cosine)


def test_beta_and_weights() -> None:
    """Recall counts beta times as much; without a weight for similarity nothing is embedded."""
    assert value(f"{CORRECTNESS}(beta=2.0, similarity_weight=0.0)", [*BOTH, classes(2, 2, 1)]) == pytest.approx(0.625)
    found = value(f"{CORRECTNESS}(factual_weight=2, similarity_weight=2)", [*BOTH, classes(1, 1, 0)], FULL, **NEAR)
    assert found == pytest.approx((2 / 3 + 0.5**0.5) / 2)


@pytest.mark.parametrize("weights", [(0, 0), (-1, 2), (float("inf"), 1)])
def test_weights_that_make_no_mean_are_refused(weights: tuple[float, float]) -> None:
    """Weights are at least 0 and not both 0."""
    metric = type(parse_metric(CORRECTNESS))
    constructor: Any = metric
    with pytest.raises(UsageError, match=r"takes .*weight"):
        constructor(factual_weight=weights[0], similarity_weight=weights[1])


def test_an_empty_text_is_embedded_as_a_space_or_as_it_is() -> None:
    """The class embeds a space; the collections embed nothing, and score a vector without length 0."""
    empty = without(response="")
    assert value(CORRECTNESS, [*BOTH, classes(1, 0, 0)], empty, **NEAR) == pytest.approx(1)
    collections = "ragas-0.4.3:collections.answer_correctness"
    found = outcome(collections, Script([*BOTH, classes(1, 0, 0)], NEAR), empty)
    assert isinstance(found, Score)
    assert (found.value, found.flags) == (0.75, ("an embedding has no length and was scored 0",))


def test_similarity_with_a_threshold() -> None:
    """A threshold makes it 0 or 1, and one of 0 is none."""
    similarity_text = "ragas-0.4.3:semantic_similarity"
    assert value(f"{similarity_text}(threshold=0.7)", [], FULL, **NEAR) == 1.0
    assert value(f"{similarity_text}(threshold=0.8)", [], FULL, **NEAR) == 0.0
    assert value(f"{similarity_text}(threshold=0.0)", [], FULL, **NEAR) == pytest.approx(0.5**0.5)


def test_similarity_without_length() -> None:
    """Undefined, but 0 with a flag where there is a threshold."""
    vectors = NEAR | {"a": [0.0, 0.0]}
    assert reason("ragas-0.4.3:semantic_similarity", [], FULL, **vectors) == "an embedding has no length"
    found = outcome("ragas-0.4.3:semantic_similarity(threshold=0.5)", Script([], vectors))
    assert found == Score(
        0.0, found.evidence if isinstance(found, Score) else (), flags=("an embedding has no length",)
    )


FACTUAL = "ragas-0.4.3:factual_correctness"


@pytest.mark.parametrize(("mode", "expected"), [("f1", 0.5), ("precision", 0.5), ("recall", 0.5)])
def test_factual_correctness_by_mode(mode: str, expected: float) -> None:
    """Precision asks about the response alone; the others about both texts."""
    replies: list[object] = [claims("a", "b"), verdicts(1, 0), claims("c", "d", "e"), verdicts(1, 1, 0)]
    asked = replies[:2] if mode == "precision" else replies
    assert value(f"{FACTUAL}(mode={mode})", asked) == expected


def test_factual_correctness_rounds_to_two_decimals() -> None:
    """TP 3, FP 0, FN 2 with beta 0.5 is 0.882..., which reads 0.88."""
    replies = [claims("a"), verdicts(2, 1, 1), claims("b"), verdicts(1, 0, 0)]
    assert value(f"{FACTUAL}(beta=0.5)", replies) == 0.88


def test_verdicts_on_no_claims() -> None:
    """The class asks for verdicts on no claims; the collections do not. Both score 0 without claims."""
    assert value(FACTUAL, [claims(), verdicts(), claims(), verdicts()]) == 0.0
    assert value("ragas-0.4.3:collections.factual_correctness", [claims(), claims()]) == 0.0


def test_the_grain_of_the_claims_is_in_the_request() -> None:
    """Atomicity and coverage change the words of the request."""
    coarse, fine = (Script([claims("a"), verdicts(1)]) for _ in range(2))
    outcome(f"{FACTUAL}(mode=precision)", coarse)
    outcome(f"{FACTUAL}(mode=precision, atomicity=high, coverage=high)", fine)
    assert render(coarse.requests[0]) != render(fine.requests[0])


@each_case(
    ("text", "message"),
    [
        (f"{FACTUAL}(mode=best)", "mode=f1"),
        (f"{FACTUAL}(beta=0)", "beta above 0"),
        (f"{NOISE}(mode=x)", "mode=relevant"),
        (f"{CORRECTNESS}(beta=-1)", "beta above 0"),
    ],
)
def test_invalid_options_are_refused(text: str, message: str) -> None:
    """An option that upstream refuses is refused at construction."""
    with pytest.raises(UsageError, match=message):
        parse_metric(text)


# -- without a judge ----------------------------------------------------------------------------------


def by_letters(name: str, retrieved: list[str], references: list[str]) -> Score | Undefined:
    sample = Sample("x", retrieved_contexts=retrieved, reference_contexts=references)
    return outcome(f"ragas-0.4.3:{name}", Script([]), sample)


PRECISION_BY_LETTERS, RECALL_BY_LETTERS = "non_llm_context_precision_with_reference", "non_llm_context_recall"


@each_case(
    ("name", "retrieved", "references", "expected"),
    [
        (PRECISION_BY_LETTERS, [], ["a"], 0.0),
        (PRECISION_BY_LETTERS, [], [], 0.0),
        (PRECISION_BY_LETTERS, ["a"], [], None),
        (RECALL_BY_LETTERS, [], ["a"], None),
        (RECALL_BY_LETTERS, ["a"], [], None),
        (RECALL_BY_LETTERS, [], [], None),
        (RECALL_BY_LETTERS, [""], [""], 1.0),
    ],
)
def test_contexts_by_letters_at_the_edges(
    name: str, retrieved: list[str], references: list[str], expected: float | None
) -> None:
    """Nothing retrieved is precision 0; without references, or recall of nothing retrieved, there is no value."""
    found = by_letters(name, retrieved, references)
    assert (found.value if isinstance(found, Score) else None) == expected


EIFFEL = "The Eiffel Tower is located in India.", "The Eiffel Tower is located in Paris."


@pytest.mark.extras
@pytest.mark.parametrize(
    ("text", "module", "texts", "expected"),
    [
        ("bleu_score", "sacrebleu", EIFFEL, 0.7071067811865478),
        ("bleu_score", "sacrebleu", ("a b c d e. F g h i j.", "a b c d e. F g h i k."), 1.0),
        ("bleu_score", "sacrebleu", ("", "a b"), 0.0),
        ("collections.bleu_score", "sacrebleu", EIFFEL, 0.7071067811865478),
        ("chrf_score", "sacrebleu", EIFFEL, 0.8048420145750512),
        ("chrf_score", "sacrebleu", (" ", "a"), 0.0),
        ('chrf_score(options="{\\"char_order\\": 1, \\"word_order\\": 0}")', "sacrebleu", ("xz", "zx"), 1.0),
        ("rouge_score", "rouge_score", EIFFEL, 6 / 7),
        ("rouge_score(rouge_type=rouge1, mode=recall)", "rouge_score", ("b a", "a b c d"), 0.5),
        ("rouge_score(mode=precision)", "rouge_score", ("b a", "a b c d"), 0.5),
        ("rouge_score", "rouge_score", ("runs", "running"), 1.0),
    ],
)
def test_words_in_common(text: str, module: str, texts: tuple[str, str], expected: float) -> None:
    """The numbers of ragas' documentation, and its quirk: only the first sentence of a response counts in BLEU."""
    pytest.importorskip(module)
    response, reference = texts
    sample = Sample("x", response=response, reference=reference)
    assert value(f"ragas-0.4.3:{text}", [], sample) == pytest.approx(expected)


@each_case(
    ("text", "module"), [("bleu_score", "sacrebleu"), ("rouge_score", "rouge_score"), ("chrf_score", "sacrebleu")]
)
def test_without_the_library(text: str, module: str) -> None:
    """A run is refused before it starts, with what to install."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (module, "rouge_score.rouge_scorer"):
            patch.setitem(sys.modules, name, None)
        message = rf"The metric ragas-0.4.3:{text} needs {module}, .* Run: pip install 'merilo\[overlap\]'"
        with pytest.raises(UsageError, match=message):
            merilo.evaluate([{"response": "a", "reference": "b"}], metrics=[f"ragas-0.4.3:{text}"])


@each_case(
    ("left", "right", "levenshtein", "hamming", "jaro", "jaro_winkler"),
    [
        ("kitten", "sitting", 4 / 7, 4 / 7, 0.746031746, 0.746031746),
        ("martha", "marhta", 4 / 6, 4 / 6, 0.944444444, 0.961111111),
        ("dixon", "dicksonx", 0.5, 0.25, 0.766666667, 0.813333333),
        ("a", "b", 0, 0, 0, 0),
        ("", "abc", 0, 0, 0, 0),
        ("", "", 1, 1, 1, 1),
    ],
)
def test_distances(left: str, right: str, levenshtein: float, hamming: float, jaro: float, jaro_winkler: float) -> None:
    """The four measures give what rapidfuzz gives, on the classic pairs and at the edges."""
    found = [similarity(each, left, right) for each in Distance]
    assert found == pytest.approx([levenshtein, hamming, jaro, jaro_winkler])


def test_the_edit_distance_of_long_texts_is_quick() -> None:
    """Two texts of 5,000 letters take steps by the letter, not by the pair of letters."""
    left, right = "abcde" * 1_000, "abxde" * 1_000
    assert edit_distance(left, right) == 1_000
