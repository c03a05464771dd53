"""What the replacement of DeepEval refuses, and what it accepts beside DeepEval's own."""

import asyncio
import csv
import json
from pathlib import Path
from typing import Any

import pytest

from merilo.compat.deepeval import EvaluationDataset, Golden, LLMTestCase, assert_test, evaluate
from merilo.compat.deepeval.errors import MissingTestCaseParamsError
from merilo.compat.deepeval.evaluate import DisplayConfig, ErrorConfig
from merilo.compat.deepeval.metrics import (
    AnswerRelevancyMetric,
    ContextualPrecisionMetric,
    ContextualRecallMetric,
    ContextualRelevancyMetric,
    FaithfulnessMetric,
)
from merilo.compat.deepeval.models import DeepEvalBaseLLM, LocalModel, OllamaModel
from merilo.compat.deepeval.test_case import (
    LLMTestCaseParams,
    SingleTurnParams,
    ToolCall,
)
from merilo.errors import JudgeError

CASE = LLMTestCase(
    input="When was it lit?", actual_output="It was lit in 1871.", retrieval_context=["It was lit in 1871."]
)
METRICS = (
    AnswerRelevancyMetric,
    ContextualPrecisionMetric,
    ContextualRecallMetric,
    ContextualRelevancyMetric,
    FaithfulnessMetric,
)
SILENT = DisplayConfig(print_results=False)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs are written to an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MERILO_CACHE", str(tmp_path / "verdicts.sqlite"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MERILO_SESSION_RUNS"):
        monkeypatch.delenv(name, raising=False)


REPLIES = {
    "statements": {"statements": ["It is so."]},
    "claims": {"claims": ["It is so."]},
    "truths": {"truths": ["It is so."]},
    "verdicts": {"verdicts": [{"verdict": "yes", "statement": "It is so.", "reason": "It is."}]},
}


class Likely(DeepEvalBaseLLM):
    """Replies with the form that the prompt names; the last request of each metric is for the reason."""

    def generate(self, prompt: str) -> str:
        named = [name for name in REPLIES if f'"{name}"' in prompt]
        return json.dumps(REPLIES[named[0]] if named else {"reason": "It is."})


class Broken(DeepEvalBaseLLM):
    def generate(self, prompt: str) -> str:
        raise ValueError(f"no reply to {len(prompt) > 0}")


def test_missing_fields_stop_or_are_recorded() -> None:
    """By default a missing field is raised; with ignore_errors it is the result of that metric."""
    metrics = [FaithfulnessMetric(model="embedded"), ContextualRecallMetric(model="embedded")]
    with pytest.raises(MissingTestCaseParamsError, match="ContextualRecallMetric needs expected_output"):
        evaluate([CASE], metrics, display_config=SILENT)
    (result,) = evaluate(
        [CASE], metrics, display_config=SILENT, error_config=ErrorConfig(ignore_errors=True)
    ).test_results
    first, second = result.metrics_data
    assert first.score is not None
    assert (second.score, second.success, second.error) == (
        None,
        False,
        "ContextualRecallMetric needs expected_output of the test case.",
    )


def test_a_judge_that_fails() -> None:
    """An error of the user's own model is raised with its text, and recorded with ignore_errors."""
    with pytest.raises(JudgeError, match=r"Broken raised ValueError: no reply to True"):
        FaithfulnessMetric(model=Broken()).measure(CASE)
    result = evaluate(
        [CASE],
        [FaithfulnessMetric(model=Broken())],
        display_config=SILENT,
        error_config=ErrorConfig(ignore_errors=True),
    )
    (data,) = result.test_results[0].metrics_data
    assert data.score is None
    assert "no reply to True" in str(data.error)


def test_results_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Evaluate prints a line for each metric, the number of cases that pass, and on stderr its report."""
    result = evaluate([CASE], [FaithfulnessMetric(threshold=0.1, model="embedded")])
    printed = capsys.readouterr()
    assert printed.out.startswith("pass  test_case_0  Faithfulness: score: 0.")
    assert printed.out.endswith("1 of 1 test cases pass.\n")
    assert printed.err == f"Report: merilo report {result.runs[0].path}\n"
    evaluate([CASE], [FaithfulnessMetric(model="embedded")], display_config=SILENT)
    assert capsys.readouterr() == ("", "")


def test_assert_test_names_the_metric() -> None:
    """A metric below its threshold fails the test with its name and score; otherwise nothing happens."""
    assert_test(CASE, [FaithfulnessMetric(threshold=0.1, model="embedded")])
    with pytest.raises(AssertionError, match=r"Metrics: Faithfulness \(score: 0\.\d+, threshold: 1.1\) failed\."):
        assert_test(CASE, [FaithfulnessMetric(threshold=1.1, model="embedded")])


def test_strict_mode_with_the_embedded_judge() -> None:
    """A score below 1 counts as 0, though merilo's own metric has no strict mode."""
    metric = FaithfulnessMetric(model="embedded", strict_mode=True)
    assert metric.measure(CASE) == 0.0
    assert not metric.is_successful()


def test_goldens(tmp_path: Path) -> None:
    """Goldens come from files and are evaluated after the loop that answers them."""
    path = tmp_path / "goldens.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["query", "context"], ["When was it lit?", "one|two"]])
    dataset = EvaluationDataset([Golden(input="q?")])
    dataset.add_goldens_from_csv_file(path, input_col_name="query", context_col_delimiter="|")
    assert [(golden.input, golden.context) for golden in dataset.goldens] == [
        ("q?", None),
        ("When was it lit?", ["one", "two"]),
    ]
    for golden in dataset.evals_iterator([FaithfulnessMetric(model="embedded")], display_config=SILENT):
        text = "It was lit in 1871."
        dataset.add_test_case(LLMTestCase(input=golden.input, actual_output=text, retrieval_context=[text]))
    assert len(dataset) == 2


def test_model_classes_are_judges() -> None:
    """DeepEval's classes of hosted models become our judges at the given address."""
    url = "http://127.0.0.1:9/v1"
    assert FaithfulnessMetric(model=LocalModel("m", base_url=url)).evaluation_model == "openai:m"
    assert FaithfulnessMetric(model=OllamaModel("m")).evaluation_model == "ollama:m"
    assert FaithfulnessMetric(model=Broken()).definition == 'deepeval-4.3.1:faithfulness(reply="loose")'


async def test_measure_inside_a_running_loop() -> None:
    """Measure and a_measure give the same where a loop runs."""
    metric = FaithfulnessMetric(model="embedded")
    assert metric.measure(CASE) == await metric.a_measure(CASE)


def test_a_test_case_has_the_fields_of_deepeval() -> None:
    """Names are in snake or camel case, fields that no metric reads are kept, and unknown names are ignored."""
    case = LLMTestCase(
        input="When?",
        actualOutput="In 1871.",
        tools_called=[ToolCall(name="search", input_parameters={"q": "lit"})],
        expected_tools=[ToolCall(name="search")],
        additional_metadata={"source": "wiki"},
        outputTokenCount=3,
        mcp_servers=None,
        of_a_later_release=1,
    )
    assert (case.actual_output, case.metadata, case.output_token_count) == ("In 1871.", {"source": "wiki"}, 3)
    assert (case.multimodal, case.flaky, case.tags, case.expected_labels) == (False, False, None, None)
    assert not hasattr(case, "of_a_later_release")
    assert LLMTestCaseParams is SingleTurnParams
    assert SingleTurnParams.RETRIEVAL_CONTEXT.value == "retrieval_context"
    golden = Golden(input="When?", tools_called=[], custom_column_key_values={"a": "b"}, source_file="a.txt")
    assert (golden.tools_called, golden.source_file) == ([], "a.txt")
    assert golden != LLMTestCase(input="When?")


@pytest.mark.parametrize("make", METRICS, ids=lambda make: make.__name__)
def test_each_metric_measures_a_case_with_tools(make: Any) -> None:
    """The ways to measure agree on a case with every field: measure, a_measure and evaluate; a score and a reason."""
    case = LLMTestCase(
        input="What if these boots are too small?",
        expected_output="You can return them within 30 days.",
        actual_output="You can return them within 30 days.",
        retrieval_context=["Customers may return boots within 30 days."],
        context=["Customers may return boots within 30 days."],
        tools_called=[ToolCall(name="look_up"), ToolCall(name="ask")],
        expected_tools=[ToolCall(name="look_up")],
    )
    metric = make(model=Likely(), async_mode=False)
    first = metric.measure(case)
    assert metric.reason == "It is."
    second = asyncio.run(make(model=Likely()).a_measure(case))
    (result,) = evaluate([case], [make(model=Likely())], display_config=SILENT).test_results
    assert first == second == result.metrics_data[0].score == 1
    assert case.multimodal is False
