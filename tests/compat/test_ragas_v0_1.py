"""Context relevancy and context recall as articles on ragas 0.1 describe them."""

import json
import logging
import math
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

from merilo.judges.callables import CallableJudge
from merilo.judging.kinds.responses import Completion
from merilo.judging.rubric import render

V0_1: Any = import_module("merilo.compat.ragas.v0_1")
METRICS: Any = import_module("merilo.compat.ragas.v0_1.metrics")
CONTEXTS = ["Paris is the capital of France. It lies on the Seine.", "It has a tower. The tower is of iron."]


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs and the cache are in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MERILO_CACHE", str(tmp_path / "verdicts.sqlite"))


def asked_of(reply: object, contexts: Any, metric: object) -> tuple[float, list[Any]]:
    """Return the score of one row and the questions of the judge, which always replies this."""
    asked: list[Any] = []

    def judge(question: Any) -> dict[str, str]:
        asked.append(question)
        return {"text": reply if isinstance(reply, str) else json.dumps(reply)}

    row = {"question": "What is Paris?", "contexts": contexts, "ground_truth": "A capital with a tower."}
    result = V0_1.evaluate([row], [metric], llm=CallableJudge(judge, answers=frozenset({Completion})))
    return next(iter(result.scores[0].values())), asked


@each_case("metric", [METRICS.context_relevancy, METRICS.ContextRelevancy()])
@each_case(
    ("reply", "contexts", "score"),
    [
        ("Paris is the capital of France. The tower is of iron.", CONTEXTS, 0.5),
        ("insufficient INFORMATION.", CONTEXTS, 0.0),
        ("One.", ["   "], 0.0),
    ],
)
def test_context_relevancy(metric: object, reply: str, contexts: list[str], score: float) -> None:
    """Copied sentences by all sentences; the phrase with its period is 0, and so is a blank context."""
    assert asked_of(reply, contexts, metric)[0] == score


def test_the_judge_reads_the_contexts_joined_by_line_ends(caplog: pytest.LogCaptureFixture) -> None:
    """One request shows the question and all contexts; merilo does not say that the metric will go."""
    with caplog.at_level(logging.WARNING):
        _, (question,) = asked_of("It has a tower.", CONTEXTS, METRICS.context_relevancy)
    assert question.values == ("What is Paris?", "\n".join(CONTEXTS))
    assert not caplog.records


@each_case("metric", [METRICS.context_recall, METRICS.ContextRecall()])
@each_case(("verdicts", "score"), [([1, 1, 0, 0], 0.5), ([], math.nan), (None, math.nan)])
def test_context_recall(metric: object, verdicts: list[int] | None, score: float) -> None:
    """Attributed statements by all; no statement and no readable reply are no score, and the prompt has an example."""
    reply = "I cannot say."
    if verdicts is not None:
        reply = json.dumps(
            [{"statement": f"{n}.", "reason": "r", "attributed": each} for n, each in enumerate(verdicts)]
        )
    found, asked = asked_of(reply, CONTEXTS, metric)
    assert found == pytest.approx(score, nan_ok=True)
    system = render(asked[0]).system
    assert '"reason": "The context says so.", "attributed": 1}' in system
