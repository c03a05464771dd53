"""Questions and verdicts of the kind `answered`: whether the response answers one part of the user input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.questions import GUESSED_REASON, Question
from merilo.judging.verdict_checks import evidence_fault
from merilo.judging.verdicts import Verdict

if TYPE_CHECKING:
    from merilo.judging.questions import Texts


@dataclass(frozen=True, slots=True)
class AnsweredVerdict(Verdict):
    """Verdict on a response: does it answer one part of the user input?"""

    answered: bool
    evidence: tuple[int, ...] = ()
    """Indices of the sentences that answer it; empty exactly if it is not answered."""
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Answered(Question[AnsweredVerdict]):
    """Question: does this response, as numbered sentences, answer one part of the user input?"""

    kind: ClassVar[str] = "answered"
    verdict: ClassVar[type[Verdict]] = AnsweredVerdict
    shared: ClassVar[frozenset[str]] = frozenset({"sentences", "user_input"})

    part: str
    sentences: Texts
    user_input: str

    def fault(self, verdict: AnsweredVerdict) -> str | None:
        """See `Question.fault`."""
        if verdict.answered and not verdict.evidence:
            return "says answered but names no evidence sentence"
        if not verdict.answered and verdict.evidence:
            return "says not answered but names evidence sentences"
        return evidence_fault(verdict.evidence, len(self.sentences), "sentence")

    def guess(self) -> AnsweredVerdict:
        """Return answered by the first sentence; not answered if there is none."""
        return AnsweredVerdict(bool(self.sentences), tuple(range(len(self.sentences)))[:1], GUESSED_REASON)


QUESTION: Final = Answered
"""The question type of this module, for `merilo.judging.registry`."""
