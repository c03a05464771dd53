"""The metrics of ragas 0.0.12, 0.0.13 and 0.0.15 as they were published, quirks included.

The base classes, in the other modules of this package, document the formulas. Each row here gives a metric of one
version its name and its defaults. The versions differ in context relevancy alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import fsum, inf, isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from merilo.errors import UsageError
from merilo.metrics.base import Card
from merilo.metrics.formulas import mean
from merilo_published.definition import BLANK_IS_JUDGED, ragas_variant
from merilo_published.ragas_v0_0.answers import AnswerRelevancy, AspectCritique, Faithfulness
from merilo_published.ragas_v0_0.contexts import ContextRecall, ContextRelevancy, Segmentation

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from merilo.metrics.base import Composite, Metric


_PARTS: Final = ("answer_relevancy", "context_relevancy", "faithfulness", "context_recall")


def ragas_score(per_row_scores: Mapping[str, Sequence[float]], binary_columns: Collection[str]) -> float | None:
    """Return the harmonic mean of the metrics' means; None if there is none.

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
    """The harmonic mean of the means of the metrics that a run computes, as in one version of ragas.

    Formula: n / sum over metrics of 1/mean; 0 when a mean is 0. None when a metric has no mean, and in the one
    case where negative faithfulness makes the sum 0. In [0, 1] as long as no mean is negative; faithfulness may
    be, and then there is no limit. Source: ragas 0.0.12, 0.0.13, 0.0.15 (`Result`).

    `of` names the metrics, with their parameters and with `+` between them; empty: the four that ragas computes if
    none is named. A run writes down those of the same version that it computes, without critiques.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    range: ClassVar[tuple[float, float]] = (-inf, inf)
    higher_is_better: ClassVar[bool] = True
    card: ClassVar[Card] = Card(
        summary="The harmonic mean of the means of the metrics of the same version in the run (ragas 0.0).",
        formula="n / (1/m1 + ... + 1/mn), of the means of the n metrics; by default the four of ragas.",
        questions="Only those of its parts.",
        undefined=("a part has no mean", "the reciprocals of the means add up to 0"),
        when="To understand, or to compare with, the one number that ragas 0.0.12 to 0.0.15 gave for a run.",
        when_not="To find out what is wrong: look at the parts. One mean of 0 makes the whole 0.",
        sources=("ragas/evaluation.py",),
    )

    of: str = ""

    def __post_init__(self) -> None:
        names = self.of.split("+") if self.of else list(_PARTS)
        if len({*names}) < max(len(names), 2) or not all(map(_is_part, names)):
            raise UsageError(
                f"{self.name} takes of=A+B, at least two different ones of {', '.join(_PARTS)}; got {self.of!r}."
            )

    @property
    def parts(self) -> tuple[str, ...]:
        """The texts of the metrics whose means are combined, in order."""
        names = self.of.split("+") if self.of else _PARTS
        return tuple(self._prefix + name for name in names)

    def of_run(self, metrics: Sequence[str]) -> Self:
        """Return the score of the metrics of this version among these, if `of` names none and there are any.

        Raises UsageError if there is only one, since ragas has no such score then, or if all are critiques.
        """
        names = [text.removeprefix(self._prefix) for text in metrics if text.startswith(self._prefix)]
        if self.of or not names:
            return self
        names = [name for name in dict.fromkeys(names) if _is_part(name)]
        if len(names) < 2:
            others = ", ".join(self._prefix + name for name in _PARTS)
            raise UsageError(
                f"{self.name} is made of the metrics of its version in the run, at least two other than critiques. "
                f"Name two of {others}; or name none, for all of them."
            )
        return replace(self, of="" if {*names} == {*_PARTS} else "+".join(names))

    def combine(self, means: Sequence[float]) -> float | None:
        """Return the score from one mean for each part, in the order of `parts`; None if there is none.

        Raises ValueError for another number of means.
        """
        if len(means) != len(self.parts):
            raise ValueError(f"{self.name} combines the means of {len(self.parts)} metrics, got {len(means)}.")
        return _harmonic_mean(means)

    @property
    def _prefix(self) -> str:
        return f"{self.name.partition(':')[0]}:"


def _is_part(name: str) -> bool:
    """Return True for a metric other than a critique, with any parameters."""
    return name.partition("(")[0] in _PARTS


def _harmonic_mean(means: Sequence[float]) -> float | None:
    if len(means) < 2 or not all(isfinite(value) for value in means):
        return None
    if 0.0 in means:
        return 0.0
    reciprocals = fsum(1 / value for value in means)
    return len(means) / reciprocals if reciprocals else None


_row: Final = partial(ragas_variant, relatives=("ragas_score",))


def _release(release: str, note: str, **changes: Any) -> tuple[type[Metric], ...]:  # Any: parameters
    """Return the metrics of a release; `note` and `changes` are about its context relevance."""
    others = {
        "context_recall": ContextRecall,
        "faithfulness": Faithfulness,
        "answer_relevancy": AnswerRelevancy,
        "aspect_critique": AspectCritique,
    }
    relevancy = _row(ContextRelevancy, f"ragas-{release}:context_relevancy", note, **changes)
    return (relevancy, *(_row(base, f"ragas-{release}:{name}") for name, base in others.items()))


METRICS: Final[tuple[type[Metric], ...]] = (
    *_release(
        "0.0.12",
        ": two replies, and sentences end at full stops",
        breaks=BLANK_IS_JUDGED,
        strictness=2,
        segmentation=Segmentation.FULL_STOP,
    ),
    *_release("0.0.13", ": one reply, and contexts without a sentence are Undefined"),
    *_release(
        "0.0.15",
        ": one reply, and contexts without a sentence score 0",
        breaks=MappingProxyType({"nothing to judge": "no_sentence_is_zero"}),
        no_sentence_is_zero=True,
    ),
)

COMPOSITES: Final[tuple[type[Composite], ...]] = tuple(
    _row(RagasScore, f"ragas-{release}:ragas_score") for release in ("0.0.12", "0.0.13", "0.0.15")
)
"""Scores that combine the means of metrics over a run, in the order in which they are shown."""
