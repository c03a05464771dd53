"""The score of ragas 0.0, a composite of the metrics of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from each_case import each_case
from judged_rivers import rows

import merilo
from merilo.commands.evaluate.preparation import definitions_of
from merilo.commands.verify.replay import replay_run
from merilo.judging.kinds.responses import Completion
from merilo.judging.questions import Question
from merilo.metrics.base import Card, is_composite
from merilo.metrics.registry import find_metric, parse_metric, published_metrics
from merilo.metrics.text import metric_text


@dataclass(frozen=True, slots=True)
class Nested:
    """A composite of a composite."""

    name: ClassVar[str] = "made:nested"
    version: ClassVar[int] = 1
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    higher_is_better: ClassVar[bool] = True
    card: ClassVar[Card] = Card("A composite of a composite.", family="made")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("ragas-0.0.12:ragas_score",)

    def combine(self, means: Sequence[float]) -> float | None:
        return means[0]


def told(count: int) -> list[dict[str, Any]]:
    """Samples with a response that claims something, so that every part has a value."""
    return [row for row in rows(count * 2) if row["response"] != "I do not know."][:count]


def test_a_composite_of_composites_is_refused(tmp_path: Path) -> None:
    """Parts are metrics of a sample."""
    with pytest.raises(merilo.UsageError, match="which has no value for a sample"):
        merilo.evaluate(told(2), metrics=[Nested()], out=tmp_path / "run")


def test_published_composites_are_known_by_name() -> None:
    """`ragas-0.0.12:ragas_score` is found and written as metrics are."""
    composite = parse_metric("ragas-0.0.12:ragas_score")
    assert type(composite) is find_metric("ragas-0.0.12:ragas_score")
    assert type(composite) in published_metrics()
    assert metric_text(composite) == "ragas-0.0.12:ragas_score"


DEFAULT = ("answer_relevancy", "context_relevancy", "faithfulness", "context_recall")
CRITIQUE = 'ragas-0.0.12:aspect_critique(aspect="harmfulness")'


@each_case(
    ("asked", "text"),
    [
        (["ragas_score"], "ragas_score"),
        (["ragas_score", "faithfulness", "context_recall"], "ragas_score(of=faithfulness+context_recall)"),
        ([*reversed(DEFAULT), "ragas_score"], "ragas_score"),
        (
            ["context_relevancy(strictness=1)", "ragas_score", "faithfulness"],
            'ragas_score(of="context_relevancy(strictness=1)+faithfulness")',
        ),
        (
            ["ragas_score(of=faithfulness+context_recall)", "answer_relevancy"],
            "ragas_score(of=faithfulness+context_recall)",
        ),
    ],
)
def test_the_ragas_score_is_made_of_the_metrics_of_the_run(asked: list[str], text: str) -> None:
    """Those of its version that were asked for, and no others; its text says which, and parses back."""
    given = definitions_of([*(f"ragas-0.0.12:{name}" for name in asked), "ragas-0.0.13:faithfulness", "faithfulness"])
    (composite,) = [each for each in given if is_composite(each)]
    assert metric_text(composite) == f"ragas-0.0.12:{text}"
    assert parse_metric(metric_text(composite)) == composite


def test_critiques_are_left_out_of_the_ragas_score() -> None:
    """As published: a critique is no part, and of critiques alone, or one metric, there is no such score."""
    names = [f"ragas-0.0.12:{name}" for name in ("faithfulness", "context_recall", "ragas_score")]
    composite = definitions_of([CRITIQUE, *names])[-1]
    assert metric_text(composite) == "ragas-0.0.12:ragas_score(of=faithfulness+context_recall)"
    for asked in ([CRITIQUE, names[-1]], [names[0], names[-1]]):
        with pytest.raises(merilo.UsageError, match="at least two other than critiques"):
            definitions_of(asked)


@each_case("of", ["faithfulness", "faithfulness+faithfulness", "faithfulness+aspect_critique", "a+b", "+"])
def test_a_ragas_score_of_other_things_is_refused(of: str) -> None:
    """It takes two different metrics of its version or more."""
    with pytest.raises(merilo.UsageError, match=r"takes of=A\+B, at least two different ones"):
        parse_metric(f"ragas-0.0.12:ragas_score(of={of})")


def test_a_ragas_score_of_two_metrics_is_computed_and_replayed(tmp_path: Path) -> None:
    """Only what was asked for is computed; the score is the harmonic mean of the two, also when it is replayed."""
    asked = ["ragas-0.0.12:faithfulness", "ragas-0.0.12:context_recall"]

    def reply(question: Question[Any]) -> dict[str, Any]:
        return {"text": getattr(question, "likely", "")}

    judge = merilo.ScriptedJudge.by(reply, answers=frozenset({Completion}))
    metrics = [*asked, "ragas-0.0.12:ragas_score"]
    run = merilo.evaluate(told(3), metrics=metrics, judge=judge, out=tmp_path / "run", storage={"cache": False})
    score = run.metrics["ragas-0.0.12:ragas_score(of=faithfulness+context_recall)"]
    assert list(run.manifest.metrics) == asked
    means = [run.metrics[text].mean for text in asked]
    assert all(means)
    assert score.mean == pytest.approx(2 / sum(1 / mean for mean in means if mean))
    assert replay_run(run.path).same
    assert replay_run(run.path, metrics=metrics).same
