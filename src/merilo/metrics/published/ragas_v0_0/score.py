"""The ragas score of ragas 0.0.12 to 0.0.15: one number for a run, the harmonic mean of its metrics' means."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, inf, isfinite
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.metrics.base import Card
from merilo.metrics.formulas import mean

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_PARTS: Final = ("answer_relevancy", "context_relevancy", "faithfulness", "context_recall")


def ragas_score(per_row_scores: Mapping[str, Sequence[float]], binary_columns: Collection[str]) -> float | None:
    """The harmonic mean of the metrics' means; None where there is none.

    `per_row_scores`: by metric, one score for each row of the data set, NaN where there is none.
    `binary_columns`: the names of the critiques among the metrics, which are left out.
    None with fewer than two other metrics, and when one of them lacks a score.
    """
    columns = [scores for name, scores in per_row_scores.items() if name not in binary_columns]
    if not all(columns):
        return None
    return _harmonic_mean([mean(scores) for scores in columns])


@dataclass(frozen=True, slots=True)
class RagasScore:
    """The harmonic mean of the means of the four default metrics of one version of ragas.

    Formula: n / sum over metrics of 1/mean; 0 when a mean is 0. None when a metric has no mean, and in the one
    case where negative faithfulness makes the sum 0. In [0, 1] as long as no mean is negative; faithfulness may
    be, and then there is no limit. Source: ragas 0.0.12, 0.0.13, 0.0.15 (`Result`).
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    range: ClassVar[tuple[float, float]] = (-inf, inf)
    higher_is_better: ClassVar[bool] = True
    card: ClassVar[Card] = Card(
        summary="The harmonic mean of the means of the four default metrics (ragas 0.0).",
        formula="4 / (1/answer_relevancy + 1/context_relevancy + 1/faithfulness + 1/context_recall), of the means.",
        questions="None of its own; those of its four parts.",
        undefined=("a part has no mean", "the reciprocals of the means add up to 0"),
        when="To reproduce or to understand the one number that ragas 0.0.12 to 0.0.15 gave for a run.",
        when_not="To find out what is wrong: look at the parts. One mean of 0 makes the whole 0.",
        sources=("ragas/evaluation.py",),
    )

    @property
    def parts(self) -> tuple[str, ...]:
        """The texts of the metrics whose means are combined, in order."""
        system = self.name.partition(":")[0]
        return tuple(f"{system}:{part}" for part in _PARTS)

    def combine(self, means: Sequence[float]) -> float | None:
        """The score from one mean for each part, in the order of `parts`; None where there is none.

        Raises ValueError for another number of means.
        """
        if len(means) != len(_PARTS):
            raise ValueError(f"{self.name} combines the means of {len(_PARTS)} metrics, got {len(means)}.")
        return _harmonic_mean(means)


def _harmonic_mean(means: Sequence[float]) -> float | None:
    if len(means) < 2 or not all(isfinite(value) for value in means):
        return None
    if 0.0 in means:
        return 0.0
    reciprocals = fsum(1 / value for value in means)
    return len(means) / reciprocals if reciprocals else None
