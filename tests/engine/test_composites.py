"""Composites: one number for a run, made of the means of its metrics."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from judged_rivers import Evaluate, canonical, rows, verdict_for

import merilo
from merilo.metrics.base import Card

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


def test_a_sample_without_a_part_leaves_no_value(evaluated: Evaluate) -> None:
    """As NaN does: no mean and no interval, and a note that says how many samples lack which part."""
    run = evaluated(rows(10), metrics=[Product()])
    product = run.metrics["made:product"]
    assert (product.mean, product.interval, product.bounds) == (None, None, None)
    assert (product.scored, product.undefined, product.failed) == (8, 2, 0)
    assert product.note.endswith("not every sample is scored: 2 without faithfulness")
    assert sum(product.reasons.values()) == 2
    assert next(iter(product.reasons)).startswith("faithfulness undefined: ")


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
