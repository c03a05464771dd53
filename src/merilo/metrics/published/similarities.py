"""Similarities of texts as cross-encoders and classifiers give them, for published definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.judging.ask import AskFailed, ask_each
from merilo.judging.verdicts import Failure, FailureKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from merilo.judging.ask import Plan
    from merilo.judging.kinds.similarities import Similarities
    from merilo.judging.matrix import MatrixVerdict

_ROUNDING: Final = 1e-6
_MAX_PAIRS: Final = 1_000_000
"""Maximum pairs of texts in one question. Two replies of thousands of lines have tens of millions."""


@dataclass(frozen=True, slots=True)
class SimilarityRows:
    """The similarities of texts, each in [0, 1]."""

    verdict: MatrixVerdict
    rows: tuple[tuple[float, ...], ...]
    """One for each left text; a row holds one number for each right text."""


def ask_similarities(questions: Iterable[Similarities]) -> Plan[tuple[SimilarityRows, ...]]:
    """Return the similarities for each question in order.

    Raises AskFailed if there are none, for more than a million pairs, or if a number is outside 0 to 1: a cosine or a
    logit is not a probability.
    """
    asked = tuple(questions)
    for each in asked:
        if len(each.left) * len(each.right) > _MAX_PAIRS:
            what = f"The replies list too many texts to compare: {len(each.left):,} and {len(each.right):,}."
            raise AskFailed(each, Failure(FailureKind.UNREADABLE, what))
    matrices = yield from ask_each(asked)
    return tuple(_checked(*each) for each in zip(asked, matrices, strict=True))


def _checked(question: Similarities, matrix: MatrixVerdict) -> SimilarityRows:
    rows = [matrix.row(index) for index in range(matrix.rows)]
    for number in (number for row in rows for number in row):
        if not -_ROUNDING <= number <= 1 + _ROUNDING:
            what = f"The model for similarities gave {number:g}, where a number from 0 to 1 was asked for."
            raise AskFailed(question, Failure(FailureKind.UNREADABLE, what))
    return SimilarityRows(matrix, tuple(tuple(min(1.0, max(0.0, number)) for number in row) for row in rows))
