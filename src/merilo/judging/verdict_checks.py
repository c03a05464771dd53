"""Checks of the indices in a verdict. Each returns the problem as the end of a sentence "your answer ...", or None."""

from __future__ import annotations

from typing import Final

NO_EVIDENCE: Final = "names no evidence"
WRONG_EVIDENCE: Final = "names wrong evidence"
"""Flags of a verdict whose decision stands; wrong numbers are removed."""


def flag_of(kept: tuple[int, ...], *, needed: bool) -> str:
    """Return the flag of a verdict of which only this evidence is kept; `needed`: such a verdict must name some."""
    return NO_EVIDENCE if needed and not kept else WRONG_EVIDENCE


def index_fault(index: int, size: int, unit: str) -> str | None:
    """Return the problem with an index into `size` things of this name, such as "sentence"."""
    if 0 <= index < size:
        return None
    return f"names {unit} {index + 1}, but there are {size}, numbered from 1"


def evidence_fault(evidence: tuple[int, ...], size: int, unit: str) -> str | None:
    """Return the problem with indices that must be distinct and in range."""
    for index in evidence:
        if (fault := index_fault(index, size, unit)) is not None:
            return fault
    if len(evidence) > 1 and len(set(evidence)) != len(evidence):
        return f"names the same {unit} twice"
    return None
