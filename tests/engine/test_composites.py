"""Composites: one number for a run, made of the means of its metrics."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from each_case import each_case
from judged_rivers import Evaluate, canonical, rows, verdict_for

import merilo
from merilo.commands.evaluate.selection import definitions_of
from merilo.commands.verify.replay import replay_run
from merilo.judging.kinds.completion import Completion
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.metrics.base import Card, is_composite
from merilo.metrics.registry import find_metric, metric_text, parse_metric, published_metrics

PARTS = ("context_relevance", "faithfulness")


@dataclass(frozen=True, slots=True)
class Product:
    """The product of two means."""

    name: ClassVar[str] = "made:product"
    version: ClassVar[int] = 3
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    higher_is_better: ClassVar[bool] = True
    card: ClassVar[Card] = Card("The product of two means.", family="made")

    power: int = 1

    @property
    def parts(self) -> tuple[str, ...]:
        return PARTS

    def combine(self, means: Sequence[float]) -> float | None:
        return (means[0] * means[1]) ** self.power


@dataclass(frozen=True, slots=True)
class Inverse(Product):
    """One divided by a mean."""

    name: ClassVar[str] = "made:inverse"

    @property
    def parts(self) -> tuple[str, ...]:
        return ("faithfulness",)

    def combine(self, means: Sequence[float]) -> float | None:
        return 1 / means[0]


@dataclass(frozen=True, slots=True)
class Nested(Product):
    """A composite of a composite."""

    name: ClassVar[str] = "made:nested"

    @property
    def parts(self) -> tuple[str, ...]:
        return ("ragas-0.0.12:ragas_score",)


def told(count: int) -> list[dict[str, Any]]:
    """Samples with a response that claims something, so that every part has a value."""
    return [row for row in rows(count * 2) if row["response"] != "I do not know."][:count]


def test_a_composite_is_made_of_the_means_of_its_parts(evaluated: Evaluate) -> None:
    """It brings its parts along, stands after them, and its mean combines theirs."""
    run = evaluated(told(12), metrics=[Product()])
    relevance, faithfulness, product = run.metrics.values()
    assert list(run.metrics) == [*PARTS, "made:product"]
    assert relevance.mean is not None
    assert faithfulness.mean is not None
    assert product.mean == pytest.approx(relevance.mean * faithfulness.mean)
    assert product.parts == PARTS
    assert (product.scored, product.undefined, product.failed) == (12, 0, 0)
    assert product.interval is not None
    assert product.interval[0] <= product.mean <= product.interval[1]
    assert run.manifest.metrics == {"context_relevance": 1, "faithfulness": 1}
    assert run.manifest.composites == {"made:product": 3}


def test_a_part_is_computed_once(evaluated: Evaluate) -> None:
    """Asked for beside a composite, in its own place, a part is the same metric; two composites share theirs."""
    run = evaluated(told(3), metrics=["faithfulness", Product(), Product(power=2)])
    assert list(run.metrics) == ["faithfulness", "context_relevance", "made:product", "made:product(power=2)"]
    assert len(list(run.records())) == 3 * 2


def test_a_composite_has_no_value_of_a_sample(evaluated: Evaluate) -> None:
    """Outcomes are those of the parts."""
    run = evaluated(told(2), metrics=[Product()])
    assert {record["metric"] for record in run.records()} == set(PARTS)


def test_a_sample_without_a_part_leaves_no_value(evaluated: Evaluate) -> None:
    """As NaN does: no mean and no interval, and a note that says how many samples lack which part."""
    run = evaluated(rows(10), metrics=[Product()])
    product = run.metrics["made:product"]
    assert (product.mean, product.interval, product.bounds) == (None, None, None)
    assert (product.scored, product.undefined, product.failed) == (8, 2, 0)
    assert product.note.endswith("not every sample is scored: 2 without faithfulness")
    assert sum(product.reasons.values()) == 2
    assert next(iter(product.reasons)).startswith("faithfulness undefined: ")


def test_a_failed_part_is_a_failed_composite(evaluated: Evaluate) -> None:
    """A sample of which a part failed counts as failed, with the reason, though another part is undefined."""

    def fails(question: Question[Any]) -> dict[str, Any] | Failure:
        failing = question.kind == "relevance" and "river 0" in question.user_input
        return Failure(FailureKind.REFUSED, "not now") if failing else verdict_for(question)

    run = evaluated(rows(2), metrics=[Product()], judge=merilo.ScriptedJudge.by(fails))
    product = run.metrics["made:product"]
    assert (product.scored, product.undefined, product.failed) == (1, 0, 1)
    assert product.reasons == {"context_relevance failed: not now": 1}


def test_a_division_by_zero_is_no_value(evaluated: Evaluate) -> None:
    """Where the means of the parts give no number there is no mean, and the note says why."""
    judge = merilo.ScriptedJudge.by(
        lambda question: {"label": "not_stated"} if question.kind == "support" else verdict_for(question)
    )
    inverse = evaluated(told(3), metrics=[Inverse()], judge=judge).metrics["made:inverse"]
    assert inverse.mean is None
    assert inverse.note == "no value, because the means of its parts give none"


def test_equal_runs_are_equal_bytes(evaluated: Evaluate, tmp_path: Path) -> None:
    """Run twice, resumed, and interrupted and resumed, the summary is the same to the byte, interval included."""
    first = evaluated(told(20), metrics=[Product()], cache=tmp_path / "c")
    before = canonical(first)
    second = evaluated(told(20), metrics=[Product()], out=tmp_path / "other")
    again = evaluated(told(20), metrics=[Product()], out=first.path, cache=tmp_path / "c")
    assert canonical(second) == before
    assert canonical(again) == before
    (first.path / "summary.json").unlink()
    (first.path / "outcomes.jsonl").unlink()
    assert canonical(evaluated(told(20), metrics=[Product()], out=first.path)) == before


def test_a_run_with_other_composites_is_another_run(evaluated: Evaluate, tmp_path: Path) -> None:
    """A directory is not resumed with another composite of the same parts."""
    evaluated(told(2), metrics=[Product()], out=tmp_path / "run")
    with pytest.raises(merilo.RunError, match="differs in composites"):
        evaluated(told(2), metrics=[*PARTS], out=tmp_path / "run")


def test_a_composite_whose_part_cannot_be_computed_is_refused(evaluated: Evaluate) -> None:
    """The reason is that of the part."""
    data = [{"user_input": "q?", "retrieved_contexts": ["c"]}]
    with pytest.raises(merilo.UsageError, match=r"made:product needs response\."):
        evaluated(data, metrics=[Product()])


def test_a_composite_of_composites_is_refused(evaluated: Evaluate) -> None:
    """Parts are metrics of a sample."""
    with pytest.raises(merilo.UsageError, match="which has no value for a sample"):
        evaluated(told(2), metrics=[Nested()])


def test_published_composites_are_known_by_name() -> None:
    """`ragas-0.0.12:ragas_score` is found and written as metrics are, and its parts are published metrics."""
    composite = parse_metric("ragas-0.0.12:ragas_score")
    assert type(composite) is find_metric("ragas-0.0.12:ragas_score")
    assert type(composite) in published_metrics()
    assert metric_text(composite) == "ragas-0.0.12:ragas_score"
    parts: tuple[str, ...] = composite.parts
    assert [metric_text(parse_metric(part)) for part in parts] == list(parts)


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


def test_a_ragas_score_of_two_metrics_is_computed_and_replayed(evaluated: Evaluate) -> None:
    """Only what was asked for is computed; the score is the harmonic mean of the two, also when it is replayed."""
    asked = ["ragas-0.0.12:faithfulness", "ragas-0.0.12:context_recall"]

    def reply(question: Question[Any]) -> dict[str, Any]:
        return {"text": getattr(question, "likely", "")}

    judge = merilo.ScriptedJudge.by(reply, answers=frozenset({Completion}))
    run = evaluated(told(3), metrics=[*asked, "ragas-0.0.12:ragas_score"], judge=judge)
    score = run.metrics["ragas-0.0.12:ragas_score(of=faithfulness+context_recall)"]
    assert list(run.manifest.metrics) == asked
    means = [run.metrics[text].mean for text in asked]
    assert all(means)
    assert score.mean == pytest.approx(2 / sum(1 / mean for mean in means if mean))
    assert replay_run(run.path).same
    assert replay_run(run.path, metrics=[asked[0], asked[1], "ragas-0.0.12:ragas_score"]).same
