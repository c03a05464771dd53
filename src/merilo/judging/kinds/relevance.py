"""Questions and verdicts of the kind `relevance`: how well a context helps to answer the user input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Self

from merilo.judging import reply_fields
from merilo.judging.questions import GUESSED_REASON, Question
from merilo.judging.reply_fields import NUMBERS, TEXT
from merilo.judging.reply_schema import ReplySchema
from merilo.judging.verdict_checks import evidence_fault
from merilo.judging.verdicts import Verdict

if TYPE_CHECKING:
    from merilo.judging.questions import Texts
    from merilo.judging.reply_fields import Fields


@dataclass(frozen=True, slots=True)
class RelevanceVerdict(Verdict):
    """Relevance grade of one context for a user input."""

    grade: int
    """0 nothing useful · 1 part of the answer · 2 the whole answer."""
    evidence: tuple[int, ...] = ()
    """Indices of the sentences that justify the grade; empty exactly if the grade is 0."""
    reason: str = ""
    probability: float | None = None

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        """Return the verdict in a reply. Raises ReplyParseError."""
        grade = reply_fields.whole_number(fields.get("grade"), "grade")
        return cls(grade=grade, evidence=reply_fields.evidence(fields), reason=reply_fields.text(fields, "reason"))


@dataclass(frozen=True, slots=True)
class Relevance(Question[RelevanceVerdict]):
    """Question: how well does this context, as numbered sentences, help to answer the user input?"""

    kind: ClassVar[str] = "relevance"
    verdict: ClassVar[type[Verdict]] = RelevanceVerdict
    reply = ReplySchema(
        {"reason": TEXT, "grade": {"type": "integer", "enum": [0, 1, 2]}, "evidence": NUMBERS},
        "grade",
        RelevanceVerdict.from_reply,
    )

    user_input: str
    sentences: Texts

    def fault(self, verdict: RelevanceVerdict) -> str | None:
        """See `Question.fault`."""
        if verdict.grade not in {0, 1, 2}:
            return f"has the grade {verdict.grade}; a grade is 0, 1 or 2"
        if verdict.grade and not verdict.evidence:
            return f"has the grade {verdict.grade} but names no evidence sentence"
        if not verdict.grade and verdict.evidence:
            return "has the grade 0 but names evidence sentences"
        return evidence_fault(verdict.evidence, len(self.sentences), "sentence")

    def guess(self) -> RelevanceVerdict:
        """Return a middle grade, based on the first sentence."""
        return RelevanceVerdict(grade=1, evidence=(0,), reason=GUESSED_REASON)


QUESTION: Final = Relevance
"""The question type of this module, for `merilo.judging.registry`."""
