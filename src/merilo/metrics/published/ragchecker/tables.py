"""The computation of RAGChecker: eleven metrics as pure functions of four tables of labels.

Source: RAGChecker (amazon-science), git 6091f08.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from merilo.metrics.formulas import f_measure, fraction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Formula = Callable[["Tables"], float]


class Label(StrEnum):
    """The label of a claim and a text."""

    ENTAILMENT = "Entailment"
    NEUTRAL = "Neutral"
    CONTRADICTION = "Contradiction"


@dataclass(frozen=True, slots=True)
class Tables:
    """The claims that each text entails; a table without claims is empty."""

    answer2response: tuple[bool, ...] = ()
    """For each claim of the response: by the reference?"""
    response2answer: tuple[bool, ...] = ()
    """For each claim of the reference: by the response?"""
    retrieved2answer: tuple[tuple[bool, ...], ...] = ()
    """For each claim of the reference, for each passage: by the passage?"""
    retrieved2response: tuple[tuple[bool, ...], ...] = ()
    """For each claim of the response, for each passage: by the passage?"""

    def __post_init__(self) -> None:
        widths = {len(row) for table in (self.retrieved2answer, self.retrieved2response) for row in table}
        if len(widths) > 1:
            raise ValueError(
                f"Every claim is checked against the same passages, but there are {sorted(widths)} labels."
            )

    @property
    def useful(self) -> tuple[bool, ...]:
        """For each passage: does it entail some claim of the reference?"""
        return tuple(any(column) for column in zip(*self.retrieved2answer, strict=True))


def _share(flags: Sequence[bool]) -> float:
    """Return the fraction of true flags; 0 for none."""
    return fraction(sum(flags), len(flags))


def _precision(tables: Tables) -> float:
    return _share(tables.answer2response)


def _recall(tables: Tables) -> float:
    return _share(tables.response2answer)


def _f1(tables: Tables) -> float:
    return f_measure(_precision(tables), _recall(tables))


def _claim_recall(tables: Tables) -> float:
    return _share([any(row) for row in tables.retrieved2answer])


def _context_precision(tables: Tables) -> float:
    return _share(tables.useful)


def _context_utilization(tables: Tables) -> float:
    pairs = zip(tables.retrieved2answer, tables.response2answer, strict=True)
    return _share([used for row, used in pairs if any(row)])


def _noise(tables: Tables, *, from_useful: bool) -> float:
    if not tables.retrieved2answer:
        return 0.0
    useful = tables.useful
    noisy: list[bool] = []
    for right, row in zip(tables.answer2response, tables.retrieved2response, strict=True):
        by_useful = any(entailed and use for entailed, use in zip(row, useful, strict=True))
        noisy.append(not right and (by_useful if from_useful else any(row) and not by_useful))
    return _share(noisy)


def _noise_in_relevant(tables: Tables) -> float:
    return _noise(tables, from_useful=True)


def _noise_in_irrelevant(tables: Tables) -> float:
    return _noise(tables, from_useful=False)


def _baseless(tables: Tables, *, right: bool) -> float:
    rows = zip(tables.answer2response, tables.retrieved2response, strict=True)
    return _share([correct is right and bool(row) and not any(row) for correct, row in rows])  # no passage: none


def _hallucination(tables: Tables) -> float:
    return _baseless(tables, right=False)


def _self_knowledge(tables: Tables) -> float:
    return _baseless(tables, right=True)


def _faithfulness(tables: Tables) -> float:
    return _share([any(row) for row in tables.retrieved2response])


FORMULAS: Final[Mapping[str, Formula]] = {
    "precision": _precision,
    "recall": _recall,
    "f1": _f1,
    "claim_recall": _claim_recall,
    "context_precision": _context_precision,
    "context_utilization": _context_utilization,
    "noise_sensitivity_in_relevant": _noise_in_relevant,
    "noise_sensitivity_in_irrelevant": _noise_in_irrelevant,
    "hallucination": _hallucination,
    "self_knowledge": _self_knowledge,
    "faithfulness": _faithfulness,
}
"""Each metric as a function of the tables, in [0, 1]; 0 where a table that it reads has no claims or no passages."""
