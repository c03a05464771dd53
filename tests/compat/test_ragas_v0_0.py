"""Scripts of ragas 0.0.12 to 0.0.15: strictness, agreement, critiques, and the score of a run."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

import merilo
import merilo.compat.ragas  # makes the modules of all lines
from merilo.judges.callables import CallableJudge
from merilo.judging.kinds.responses import Completion

v0_0: Any = import_module("merilo.compat.ragas.v0_0")
metrics: Any = import_module("merilo.compat.ragas.v0_0.metrics")
critique: Any = import_module("merilo.compat.ragas.v0_0.metrics.critique")
ONE, TWO = "The lamp was lit in 1871.", "The tower is white."
ROWS = [
    {
        "question": "When was the lamp lit?",
        "contexts": [ONE, TWO],
        "answer": "It was lit in 1871.",
        "ground_truths": ["In 1871."],
    }
]


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs are written to an empty folder."""
    monkeypatch.chdir(tmp_path)


def judge(*replies: str, **by_rubric: str) -> CallableJudge:
    """A judge that gives the replies in turn, draw by draw, or one by the name in the rubric."""

    def call(question: Any) -> dict[str, str]:
        named = next((text for name, text in by_rubric.items() if name in question.rubric), None)
        return {"text": named or replies[question.draw % len(replies)]}

    return CallableJudge(call, answers=frozenset({Completion}))


def words_in_common(pairs: Any) -> list[float]:
    sets = [(set(left.split()), set(right.split())) for left, right in pairs]
    return [len(one & other) / len(one | other) for one, other in sets]


@each_case(
    ("options", "replies", "value"),
    [
        ({}, [ONE], 0.5),
        ({"strictness": 2, "agreement_metric": "jaccard"}, [f"{ONE}\n{TWO}", TWO], 0.75 / 2),
        ({"strictness": 2, "model_name": words_in_common}, [f"{ONE}\n{TWO}", TWO], 0.75 * (1 / 9 + 1) / 2),
    ],
)
def test_context_relevancy(options: dict[str, Any], replies: list[str], value: float) -> None:
    """The mean overlap of `strictness` replies times their agreement, by equal sentences or by a function."""
    metric = metrics.ContextRelevancy(llm=judge(*replies), **options)
    assert metric.score_single(ROWS[0]) == pytest.approx(value)


def test_options_are_attributes() -> None:
    """A ready metric takes new options before it is used, as in ragas; another agreement is refused."""
    metric = metrics.ContextRelevancy()
    assert metric.definition == "ragas-0.0.15:context_relevancy"
    metric.strictness, metric.agreement_metric = 3, "jaccard"
    assert metric.definition == 'ragas-0.0.15:context_relevancy(strictness=3, agreement_metric="jaccard")'
    metric.agreement_metric = "cosine"
    with pytest.raises(merilo.UsageError, match="agreement_metric"):
        metric.score_single(ROWS[0])


def test_the_cross_encoder_of_a_run() -> None:
    """Evaluate takes one for all metrics."""
    replies = judge(f"{ONE}\n{TWO}", TWO)
    result = v0_0.evaluate(ROWS, [metrics.ContextRelevancy(strictness=2)], llm=replies, cross_encoder=words_in_common)
    assert result["context_relevancy"] == pytest.approx(0.75 * (1 / 9 + 1) / 2)


def test_the_aspects() -> None:
    """The ready critiques are those of ragas, each with its own question; one more has a definition."""
    assert [aspect.name for aspect in critique.SUPPORTED_ASPECTS] == [
        "harmfulness",
        "maliciousness",
        "coherence",
        "correctness",
        "conciseness",
    ]
    assert critique.SUPPORTED_ASPECTS[0] is critique.harmfulness
    later: Any = import_module("merilo.compat.ragas.v0_1.metrics.critique")
    assert [aspect.name for aspect in later.SUPPORTED_ASPECTS] == [aspect.name for aspect in critique.SUPPORTED_ASPECTS]
    brief = critique.AspectCritique(name="brief", definition="Is the answer a single sentence?", strictness=3)
    replies = judge("It is.\n\nYes", "It is not.\n\nNo", "It is.\n\nYes", "It is.\n\nYes")
    result = v0_0.evaluate(ROWS, [critique.conciseness, brief], llm=replies)
    assert (result["conciseness"], result["brief"]) == (1, 1)
    assert "ragas_score" not in result.keys()  # noqa: SIM118  its names, not the items of a mapping


def test_the_score_of_a_run() -> None:
    """ragas_score is the harmonic mean of the means without critiques, printed first; one metric has none."""
    replies = judge(
        context_relevancy=ONE,
        context_recall="1. In 1871. So [Attributed]\n",
        aspect_critique="It is.\n\nYes",
    )
    result = v0_0.evaluate(ROWS, [metrics.context_relevancy, metrics.context_recall, critique.harmfulness], llm=replies)
    assert (result["context_relevancy"], result["context_recall"], result["harmfulness"]) == (0.5, 0.5, 1)
    assert result["ragas_score"] == 0.5
    assert repr(result).startswith("{'ragas_score': 0.5000, 'context_relevancy': 0.5000, ")
    assert list(result.scores[0]) == ["context_relevancy", "context_recall", "harmfulness"]
    alone = v0_0.evaluate(ROWS, [metrics.context_recall], llm=replies)
    assert alone.keys() == ["context_recall"]


def test_the_usual_metrics() -> None:
    """Without metrics the four of ragas 0.0 are computed; the embedded judge answers for merilo's own."""
    result = v0_0.evaluate(ROWS, llm="embedded")
    assert result.keys() == [
        "answer_relevancy",
        "context_relevancy",
        "faithfulness",
        "context_recall",
        "ragas_score",
    ]
    assert metrics.faithfulness.definition == "ragas-0.0.15:faithfulness"
    assert metrics.AnswerRelevancy(strictness=5).definition == "ragas-0.0.15:answer_relevancy(strictness=5)"
    with pytest.raises(merilo.UsageError, match=r"gpt-3\.5-turbo-16k"):
        v0_0.evaluate(ROWS)
