"""axion's documented names: its page's examples, results, modes, thresholds, judges and errors."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

import merilo
from merilo.compat import axion
from merilo.compat.axion import (
    ContextualPrecision,
    ContextualRanking,
    ContextualRecall,
    ContextualRelevancy,
    DatasetItem,
    EvaluationMode,
    Interpretation,
    MetricResult,
    MetricRunner,
)
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Question
from merilo.providers.questions import Given

YES = {
    "Paris is the capital and largest city of France.",
    "The Eiffel Tower was built in 1889.",
    "Photosynthesis converts light energy into chemical energy.",
    "Plants use chlorophyll to absorb sunlight.",
    "The process produces glucose and oxygen from CO2 and water.",
    "Diabetes symptoms include increased thirst and frequent urination.",
    "Blurred vision and fatigue are common in diabetic patients.",
}
"""The chunks of the page's examples that it calls relevant."""

FRANCE = DatasetItem(
    query="What is the capital of France?",
    retrieved_content=[
        "Paris is the capital and largest city of France.",
        "France is known for its wine and cuisine.",
        "The Eiffel Tower was built in 1889.",
    ],
)
PHOTOSYNTHESIS = DatasetItem(
    query="How does photosynthesis work?",
    retrieved_content=[
        "Photosynthesis converts light energy into chemical energy.",
        "Plants use chlorophyll to absorb sunlight.",
        "The process produces glucose and oxygen from CO2 and water.",
    ],
)
DIABETES = DatasetItem(
    query="What are the symptoms of diabetes?",
    retrieved_content=[
        "Diabetes symptoms include increased thirst and frequent urination.",
        "Exercise is important for overall health.",
        "Blurred vision and fatigue are common in diabetic patients.",
        "Healthy eating includes fruits and vegetables.",
    ],
)
QUANTUM = DatasetItem(
    query="What is quantum computing?",
    retrieved_content=[
        "Classical computers use binary bits.",
        "The internet was invented in the 1960s.",
        "Programming languages include Python and Java.",
    ],
)
FULL = DatasetItem(
    query="q?",
    retrieved_content=["c one.", "c two."],
    actual_output="It is so.",
    expected_output="It is so.",
)


def free_text(question: Question[Any]) -> Given:
    """The page's verdicts as free replies; statements are sentences, and all that is asked of them is true."""
    if not isinstance(question, Completion):
        return None
    values = dict(zip(question.names, question.values, strict=True))
    name = question.rubric.rpartition("/")[2]
    if name.startswith("relevancy"):
        texts: list[str] = json.loads(values["texts"])
        return reply({"verdicts": [{"verdict": "yes" if text in YES or len(text) < 20 else "no"} for text in texts]})
    return CompletionVerdict(question.likely)


def reply(value: object) -> CompletionVerdict:
    return CompletionVerdict(json.dumps(value))


JUDGE = merilo.ScriptedJudge.by(free_text, version="1", answers=frozenset({Completion}))


def graded(question: Question[Any]) -> Given:
    """The page's verdicts as grades; of all chunks together, by any of their sentences."""
    if not isinstance(question, Relevance):
        return None
    found = tuple(place for place, text in enumerate(question.sentences) if text in YES)
    return RelevanceVerdict(2 if found else 0, found)


GRADES = merilo.ScriptedJudge.by(graded, version="1", answers=frozenset({Relevance}))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERILO_CACHE", str(tmp_path / "verdicts.sqlite"))
    monkeypatch.chdir(tmp_path)


def run(items: list[Any], *metrics: Any, **arguments: Any) -> list[MetricResult]:
    runner = MetricRunner(metrics=list(metrics) or [ContextualRelevancy()], **{"judge": JUDGE} | arguments)
    return asyncio.run(runner.run(items))


def executed(metric: Any, item: DatasetItem | dict[str, Any]) -> MetricResult:
    result: MetricResult = asyncio.run(metric.execute(item))
    return result


# -- the page -----------------------------------------------------------------------------------------


@each_case("judge", [JUDGE, GRADES])
@each_case(
    ("item", "score", "first_line", "interpretation"),
    [
        (FRANCE, 2 / 3, "Score: 0.67 (2 of 3 chunks relevant)", Interpretation.MIXED),
        (PHOTOSYNTHESIS, 1.0, "Score: 1.00 (3 of 3 chunks relevant)", Interpretation.ALL),
        (DIABETES, 0.5, "Score: 0.50 (2 of 4 chunks relevant)", Interpretation.MIXED),
        (QUANTUM, 0.0, "Score: 0.00 (0 of 3 chunks relevant)", Interpretation.FEW),
    ],
)
def test_a_worked_example(
    judge: Any, item: DatasetItem, score: float, first_line: str, interpretation: Interpretation
) -> None:
    """The page's examples give its scores, with a judge of free text and with one that grades."""
    result = executed(ContextualRelevancy(judge=judge), item)
    assert result.score == score
    assert result.pretty().splitlines()[0] == first_line
    assert result.interpretation is interpretation
    assert result.passed is (score >= 0.5)


def test_the_signals_are_printed_as_on_the_page() -> None:
    """`print(result.signals)` shows the fields in the page's order, with two digits; the field is not rounded."""
    signals: Any = executed(ContextualRelevancy(judge=JUDGE), FRANCE).signals
    name, _, inside = str(signals).partition("(\n")
    assert name == "ContextualRelevancyResult"
    breakdown = [{"chunk_text": text, "is_relevant": text in YES} for text in FRANCE.retrieved_content or ()]
    assert [*json.loads(inside.removesuffix(")")).items()] == [
        ("relevancy_score", 0.67),
        ("total_chunks", 3),
        ("relevant_chunks", 2),
        ("chunk_breakdown", breakdown),
    ]
    assert signals.relevancy_score == 2 / 3
    assert repr(signals) == str(signals)


PAGE = """
from merilo.compat.axion import ContextualRelevancy, MetricRunner

metric = ContextualRelevancy()
runner = MetricRunner(metrics=[metric])
results = await runner.run(dataset)
for item_result in results:
    print(f"Score: {item_result.score}")
    print(f"Relevant: {item_result.signals.relevant_chunks}/{item_result.signals.total_chunks}")
    for i, chunk in enumerate(item_result.signals.chunk_breakdown):
        print(f"  {chunk.is_relevant} Chunk {i+1}: {chunk.chunk_text[:50]}...")
"""


def test_the_page_runs_without_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    """A script in the page's form runs with the embedded judge: no key, no network, no directory left behind."""
    body = "".join(f"    {line}\n" for line in PAGE.splitlines())
    space: dict[str, Any] = {"dataset": [PHOTOSYNTHESIS, DIABETES]}
    exec(f"async def main():\n{body}", space)  # noqa: S102  the text above
    asyncio.run(space["main"]())
    printed = capsys.readouterr().out
    assert printed.count("Score: ") == 2
    assert "Chunk 4: Healthy eating includes fruits and vegetables...." in printed


# -- modes --------------------------------------------------------------------------------------------


def test_holistic_is_recorded_without_effect() -> None:
    """HOLISTIC alone is written down and moves nothing, as in axion's code."""
    result = executed(ContextualRelevancy(mode=EvaluationMode.HOLISTIC, judge=JUDGE), FRANCE)
    assert (result.score, result.metadata["mode"]) == (2 / 3, "holistic")
    assert result.metadata["definition"] == "axion:contextual_relevancy(mode=holistic)"


# -- judges -------------------------------------------------------------------------------------------


def test_the_other_metrics_of_chunks_work_by_grades() -> None:
    """Ranking needs relevance only; average precision by grade is that of the page's verdicts."""
    (result,) = run([FRANCE], ContextualRanking(), judge=GRADES)
    assert result.score == pytest.approx(5 / 6)


def test_precision_and_recall_work_with_the_embedded_judge() -> None:
    """Usefulness is a question that the embedded judge answers; a reference in other words leaves recall undefined."""
    results = run([FULL], ContextualPrecision(), ContextualRecall(), judge=None)
    assert [result.metadata["definition"] for result in results] == [
        "context_precision(against=reference)",
        "context_recall",
    ]
    assert results[0].score is not None


NEEDS_FREE_TEXT = [
    "ContextualSufficiency",
    "ContextualUtilization",
    "Faithfulness",
    "AnswerRelevancy",
    "FactualAccuracy",
]


@each_case("name", NEEDS_FREE_TEXT)
def test_some_metrics_need_free_text(name: str) -> None:
    """With the embedded judge they are refused in one sentence that says what to give."""
    with pytest.raises(merilo.UsageError, match=rf"{name} needs a judge that writes free text, which embedded is not"):
        executed(getattr(axion, name)(), FULL)


@each_case("name", [*NEEDS_FREE_TEXT, "ContextualPrecision", "ContextualRecall"])
def test_every_metric_works_with_free_text(name: str) -> None:
    """With a judge of free text each metric has a score and words for it."""
    (result,) = run([FULL], getattr(axion, name)())
    assert result.score == 1.0
    assert result.pretty().startswith("Score: 1.00 (")
    assert result.metadata["judge"] == JUDGE.name


def test_a_judge_of_free_text_computes_the_published_definition() -> None:
    """The result names the definition, in which all of axion's options hold."""
    (result,) = run([FRANCE], ContextualRelevancy(relevancy_mode="strict"))
    assert result.metadata["definition"] == "axion:contextual_relevancy(relevancy_mode=strict)"


def test_options_of_free_text_are_refused_with_grades() -> None:
    """An option that grades cannot honour is an error, not passed over."""
    with pytest.raises(merilo.UsageError, match="takes relevancy_mode=strict only with a judge that writes free"):
        executed(ContextualRelevancy(relevancy_mode="strict", judge=GRADES), FRANCE)


def test_a_metrics_judge_goes_before_the_runners() -> None:
    """Metrics with judges of their own are computed with those, and the order of the results stays."""
    results = run([FRANCE], ContextualRelevancy(judge=GRADES), ContextualRanking())
    assert [result.metadata["judge"] for result in results] == [GRADES.name, JUDGE.name]


# -- thresholds, failures, errors ---------------------------------------------------------------------


def test_thresholds() -> None:
    """0.5 usually, 0.8 for factual accuracy; the metric's own goes before that, the runner's before both."""
    assert axion.FactualAccuracy().threshold == 0.8
    assert not executed(ContextualRelevancy(threshold=0.7, judge=JUDGE), FRANCE).passed
    (result,) = run([FRANCE], ContextualRelevancy(threshold=0.7), thresholds={"ContextualRelevancy": 0.6})
    assert (result.passed, result.threshold) == (True, 0.6)


def test_the_interpretation_is_of_the_unrounded_score() -> None:
    """0.7 is most, and a hair below it is mixed, though it is shown as 0.70."""
    assert Interpretation.of(0.7) is Interpretation.MOST
    assert Interpretation.of(0.6999) is Interpretation.MIXED
    assert Interpretation.of(0.9999) is Interpretation.MOST
    assert Interpretation.of(0.4999) is Interpretation.FEW


def test_no_number_is_none() -> None:
    """Where axion has NaN, score and passed are None and the explanation says why."""
    item = DatasetItem(query="q?", retrieved_content=["c"], expected_output="x")
    silent = merilo.ScriptedJudge.by(lambda _: reply({"statements": []}), answers=frozenset({Completion}))
    (result,) = run([item], ContextualRecall(), judge=silent)
    assert (result.score, result.passed, result.explanation) == (None, None, "the reference makes no statement")
    assert result.pretty() == "Score: none (the reference makes no statement)"


@pytest.mark.parametrize("judge", [JUDGE, GRADES], ids=["free text", "grades"])
def test_nothing_retrieved_scores_0(judge: Any) -> None:
    """An empty list of chunks is 0, as published, and says so."""
    result = executed(ContextualRelevancy(judge=judge), DatasetItem(query="q?", retrieved_content=[]))
    assert (result.score, result.flags) == (0.0, ("nothing was retrieved and that was scored 0",))


@pytest.mark.parametrize(
    ("item", "what"),
    [
        (DatasetItem(query="q?", id="a1"), "Item 'a1' has no retrieved_content"),
        (DatasetItem(query=" "), "The item has no query and no retrieved_content"),
    ],
)
def test_a_missing_field_is_told_in_one_sentence(item: DatasetItem, what: str) -> None:
    """`execute` raises it; in a run it is the result of that item, and the other items have theirs."""
    message = f"{what}, and ContextualRelevancy needs query and retrieved_content."
    with pytest.raises(merilo.DataError) as raised:
        executed(ContextualRelevancy(judge=JUDGE), item)
    assert str(raised.value) == message
    results = run([item, FRANCE])
    assert [result.score for result in results] == [None, 2 / 3]
    assert results[0].explanation == message


@each_case(
    "lines",
    [
        "from merilo.compat.axion.metrics import ContextualRelevancy",
        "from merilo.compat.axion.dataset import DatasetItem",
        "from merilo.compat.axion.runners import MetricRunner",
        "import merilo.compat.axion\nmerilo.compat.axion.ContextualRelevancy, merilo.compat.axion.DatasetItem",
        "import merilo.compat.axion as axion\naxion.metrics.Faithfulness, axion.dataset.DatasetItem, axion.runners",
    ],
)
def test_the_import_lines_of_the_page(lines: str) -> None:
    """Each import of axion's page works with `merilo.compat.` before it, alone and in a fresh process."""
    subprocess.run([sys.executable, "-c", lines], check=True)
