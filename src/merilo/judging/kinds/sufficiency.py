"""Questions and verdicts of the kind `sufficiency`: whether all contexts together contain enough for an answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.questions import GUESSED_REASON, Question
from merilo.judging.verdicts import Verdict

if TYPE_CHECKING:
    from merilo.judging.questions import Texts


class SufficiencyLabel(StrEnum):
    """Extent to which the contexts together contain the answer to the user input."""

    SUFFICIENT = "sufficient"
    PARTLY = "partly"
    INSUFFICIENT = "insufficient"


@dataclass(frozen=True, slots=True)
class SufficiencyVerdict(Verdict):
    """Sufficiency of all contexts together for an answer."""

    label: SufficiencyLabel
    missing: str = ""
    """Missing information, in words; empty if sufficient or if the judge does not name it."""
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Sufficiency(Question[SufficiencyVerdict]):
    """Question: do these contexts together contain enough to answer the user input?"""

    kind: ClassVar[str] = "sufficiency"
    verdict: ClassVar[type[Verdict]] = SufficiencyVerdict
    shared: ClassVar[frozenset[str]] = frozenset({"contexts"})

    user_input: str
    contexts: Texts

    def fault(self, verdict: SufficiencyVerdict) -> str | None:
        """See `Question.fault`: a sufficient verdict that names something missing contradicts itself."""
        if verdict.label is SufficiencyLabel.SUFFICIENT and verdict.missing.strip():
            return "says sufficient but names something missing"
        return None

    def guess(self) -> SufficiencyVerdict:
        """Return partly sufficient."""
        return SufficiencyVerdict(SufficiencyLabel.PARTLY, missing=GUESSED_REASON, reason=GUESSED_REASON)


QUESTION: Final = Sufficiency
"""The question type of this module, for `merilo.judging.registry`."""
