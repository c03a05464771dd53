"""The forms for annotators: the same texts that the judge reads, and a closed list of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

NO, YES = "no", "yes"
YES_NO: Final = (NO, YES)
_TRUE: Final = frozenset({"yes", "y", "true", "1"})
_FALSE: Final = frozenset({"no", "n", "false", "0"})
_NAMES_NOTHING: Final = frozenset({"0", NO})


@dataclass(frozen=True, slots=True)
class LabelForm:
    """One question in the form that annotators answer."""

    kind: str
    asked: str
    """The question itself."""
    texts: tuple[tuple[str, str], ...]
    """The texts to read, each with its name, such as ("context", "...")."""
    labels: tuple[str, ...] = YES_NO
    """The possible answers; in ascending order if they are ordered."""
    meanings: tuple[str, ...] = ("", "")
    """The meaning of each label; blank if the label is clear by itself."""
    ordered: bool = True
    """True if the labels are in ascending order."""
    graded: bool = False
    """True if the labels are whole numbers, which some spreadsheets write as 2.0."""

    def label(self, given: str) -> str | None:
        """Return the label that a text means, ignoring case; None if it is not one of the labels."""
        text = given.strip().casefold()
        if {*self.labels} == {NO, YES}:
            return YES if text in _TRUE else NO if text in _FALSE else None
        if self.graded and text.endswith(".0"):
            text = text[:-2]
        return next((each for each in self.labels if each.casefold() == text), None)

    def explained(self) -> str:
        """Return the labels with their meanings, in one line."""
        pairs = zip(self.labels, self.meanings, strict=True)
        return "; ".join(f"{label}: {meaning}" if meaning else label for label, meaning in pairs)


def yes_or_no(positive: bool) -> str:  # noqa: FBT001  the decision to convert
    """Return the label of a decision."""
    return YES if positive else NO


def evidence_of_label(label: str, texts: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of all texts as the evidence of a label; none if the label is a no or grade 0."""
    return () if label in _NAMES_NOTHING else tuple(range(len(texts)))


def as_text(texts: str | Sequence[str], *, numbered: bool) -> str:
    """Return several texts as one: contexts numbered from 1, sentences one on each line."""
    if isinstance(texts, str):
        return texts
    return "\n\n".join(f"[{at}] {text}" for at, text in enumerate(texts, start=1)) if numbered else "\n".join(texts)
