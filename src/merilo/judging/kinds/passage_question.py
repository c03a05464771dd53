"""Questions and verdicts of the kind `passage_question`: a question that a passage of a document answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from merilo.judging import reply_fields
from merilo.judging.questions import Question
from merilo.judging.reply_fields import TEXT, ReplySchema
from merilo.judging.synthetic import CONTEXT, OTHER, RESPONSE, USER_INPUT
from merilo.judging.verdicts import Verdict

if TYPE_CHECKING:
    from merilo.judging.reply_fields import Fields
    from merilo.judging.synthetic import Odds


@dataclass(frozen=True, slots=True)
class PassageQuestionVerdict(Verdict):
    """A question that the passage answers, and its answer; both empty if the passage states no fact to ask about."""

    question: str
    answer: str
    probability: float | None = None

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        return cls(
            reply_fields.item_text(fields.get("question"), "question"),
            reply_fields.item_text(fields.get("answer"), "answer"),
        )

    def in_words(self) -> str:
        return f'"{self.question}" ("{self.answer}")' if self.question else "no question"


@dataclass(frozen=True, slots=True)
class PassageQuestion(Question[PassageQuestionVerdict]):
    """Question: what would a user ask that this passage answers, and what is the answer?"""

    kind = "passage_question"
    verdict = PassageQuestionVerdict
    reply_tokens = 512
    reply = ReplySchema({"question": TEXT, "answer": TEXT}, "question", PassageQuestionVerdict.from_reply)
    prepares = True
    trials = ((CONTEXT, "Eiffel Tower"), (OTHER,))

    passage: str
    title: str = ""
    """The title of the document, which names what the passage is about; may be empty."""

    def fault(self, verdict: PassageQuestionVerdict) -> str | None:
        """See `Question.fault`: question and answer are both there, or both empty."""
        if bool(verdict.question.strip()) is bool(verdict.answer.strip()):
            return None
        return "gives a question without an answer, or an answer without a question"

    def guess(self) -> PassageQuestionVerdict:
        """Return a question and an answer of usual length."""
        return PassageQuestionVerdict(USER_INPUT, RESPONSE)

    def synthetic(self, odds: Odds) -> PassageQuestionVerdict:
        if odds.of(self.passage) < 0.2:
            return self.worst()
        return PassageQuestionVerdict(f"What is known of {self.passage[:40]}?", self.passage[:40] or "Nothing.")

    def worst(self) -> PassageQuestionVerdict:
        return PassageQuestionVerdict("", "")
