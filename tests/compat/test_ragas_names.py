"""What the replacement of ragas refuses, and what it accepts beside ragas' own."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import merilo
from merilo.compat import ragas
from merilo.compat.ragas import EvaluationDataset, MultiTurnSample, SingleTurnSample
from merilo.compat.ragas.metrics import METRICS, Faithfulness, faithfulness

TEXT = "It was lit in 1871."
SAMPLE = SingleTurnSample(
    user_input="When was it lit?", response="It was lit in 1871.", retrieved_contexts=["It was lit in 1871."]
)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs are written to an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MERILO_CACHE", str(tmp_path / "verdicts.sqlite"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_conversations_are_refused() -> None:
    """A MultiTurnSample, or a record with a list of turns, says to give each turn."""
    with pytest.raises(merilo.UsageError, match="Give each turn as a SingleTurnSample"):
        MultiTurnSample(user_input=[])
    with pytest.raises(merilo.UsageError, match="Give each turn as a SingleTurnSample"):
        EvaluationDataset.from_list([{"user_input": [{"content": "Hi", "type": "human"}]}])


def test_the_reasons_of_missing_scores_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A script that sees only NaN finds how many there are, why, and where the details are."""
    bare = SingleTurnSample(user_input="Who lit it?", retrieved_contexts=["It was lit in 1871."])
    result = ragas.evaluate([SAMPLE, bare], metrics=[faithfulness], llm="embedded")
    assert caplog.messages == [
        f"faithfulness: 1 of 2 scores are NaN: the sample has no response. Details: merilo show {result.runs[0].path}"
    ]


def test_the_report_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Evaluate names the report of its run on stderr; `show_progress=False` prints nothing, as in ragas."""
    result = ragas.evaluate([SAMPLE, SAMPLE], metrics=[faithfulness], llm="embedded")
    assert capsys.readouterr() == ("", f"Report: merilo report {result.runs[0].path}\n")
    ragas.evaluate([SAMPLE], metrics=[faithfulness], llm="embedded", show_progress=False)
    assert capsys.readouterr() == ("", "")


def test_the_embedded_judge_computes_merilos_own_metric() -> None:
    """A judge without free text answers for the metric of the same name; the result keeps ragas' name."""
    result = ragas.evaluate(
        [SAMPLE], metrics=[faithfulness, METRICS["LLMContextPrecisionWithoutReference"]], llm="embedded"
    )
    (run,) = result.runs
    assert list(run.metrics) == ["faithfulness", "context_precision"]
    assert list(result.scores[0]) == ["faithfulness", "llm_context_precision_without_reference"]
    assert 0 <= result["faithfulness"][0] <= 1


def test_a_metric_without_a_replacement_needs_an_llm() -> None:
    """The embedded judge is refused for a metric that merilo has only with free text."""
    with pytest.raises(merilo.UsageError, match="FactualCorrectness needs a judge that writes free text"):
        ragas.evaluate([SAMPLE], metrics=[METRICS["FactualCorrectness"]], llm="embedded")


def test_a_metric_keeps_its_own_judge(tmp_path: Path) -> None:
    """A metric with an llm of its own is computed in a run of its own; one directory cannot have both."""
    script = tmp_path / "judge.jsonl"
    script.write_text('{"kind": "completion", "verdict": {"text": "{\\"statements\\": []}"}}\n', encoding="utf-8")
    metrics = [Faithfulness(llm=f"scripted:{script}"), METRICS["LLMContextPrecisionWithoutReference"]]
    result = ragas.evaluate([SAMPLE], metrics=metrics, llm="embedded")
    assert [list(run.metrics) for run in result.runs] == [["ragas-0.4.3:faithfulness"], ["context_precision"]]
    assert repr(result).startswith("{'faithfulness': nan, ")
    with pytest.raises(merilo.UsageError, match="the same models for all metrics"):
        ragas.evaluate([SAMPLE], metrics=metrics, llm="embedded", out=tmp_path / "run")


def test_data_sets_of_any_form(tmp_path: Path) -> None:
    """Records, columns, frames and files give the same samples; NaN is missing and old names are read."""
    records = [{"question": "q?", "answer": "a", "contexts": ["c"], "ground_truth": float("nan"), "extra": 1}]
    made = EvaluationDataset.from_list(records)
    made.to_jsonl(tmp_path / "data.jsonl")
    others = [
        EvaluationDataset.from_pandas(pd.DataFrame(records)),
        EvaluationDataset.from_hf_dataset(records),
        EvaluationDataset.from_dict({name: [value] for name, value in records[0].items()}),
        EvaluationDataset.from_jsonl(tmp_path / "data.jsonl"),
        made[0:1],
    ]
    assert made.to_list() == [{"user_input": "q?", "response": "a", "retrieved_contexts": ["c"]}]
    assert [other.to_list() for other in others] == [made.to_list()] * len(others)
    assert made.to_pandas().columns.tolist() == ["user_input", "retrieved_contexts", "response"]


async def test_evaluate_inside_a_running_loop() -> None:
    """Evaluate and aevaluate both work where a loop runs, as in a notebook."""
    first = ragas.evaluate([SAMPLE], metrics=[faithfulness], llm="embedded")
    second = await ragas.aevaluate([SAMPLE], metrics=[faithfulness], llm="embedded")
    assert first.scores == second.scores


@pytest.mark.parametrize("line", ["v0_0", "v0_1"])
def test_contexts_may_be_one_text(line: str) -> None:
    """Ragas 0.0 and 0.1 join a list and accept a text."""
    package: Any = import_module(f"merilo.compat.ragas.{line}")
    rows = [{"question": "When was it lit?", "contexts": given, "ground_truth": "In 1871."} for given in (TEXT, [TEXT])]
    recall = import_module(f"merilo.compat.ragas.{line}.metrics").context_recall
    first, second = package.evaluate(rows, metrics=[recall], llm="embedded").scores
    assert first == second


def test_options_of_a_library_are_passed_on() -> None:
    """Kwargs of BleuScore and CHRFScore are those of sacrebleu, and a wrong form is refused."""
    metrics: Any = METRICS
    assert metrics["BleuScore"](kwargs={"lowercase": True}).definition == (
        'ragas-0.4.3:bleu_score(options="{\\"lowercase\\": true}")'
    )
    with pytest.raises(merilo.UsageError, match="takes options as a JSON object"):
        metrics["ChrfScore"](kwargs="lowercase").wanted(None)
