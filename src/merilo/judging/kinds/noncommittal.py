"""Questions and verdicts of the kind `noncommittal`: whether the response evades or declines to answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Self

from merilo.judging import reply_fields
from merilo.judging.questions import GUESSED_REASON, Question
from merilo.judging.reply_fields import FLAG, TEXT
from merilo.judging.reply_schema import ReplySchema
from merilo.judging.verdicts import DecisionVerdict, Verdict

if TYPE_CHECKING:
    from merilo.judging.reply_fields import Fields


@dataclass(frozen=True, slots=True)
class NoncommittalVerdict(DecisionVerdict):
    """Verdict on a response: does it evade or decline to answer?"""

    yes: ClassVar[str] = "declines"
    noncommittal: bool
    reason: str = ""
    probability: float | None = None

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        """Return the verdict in a reply. Raises ReplyParseError."""
        return cls(reply_fields.flag(fields, "noncommittal"), reason=reply_fields.text(fields, "reason"))

    @property
    def positive(self) -> bool:
        """True if the response is noncommittal."""
        return self.noncommittal

    def in_words(self) -> str:
        """See `Verdict.in_words`."""
        return "declines to answer" if self.noncommittal else "answers"


@dataclass(frozen=True, slots=True)
class Noncommittal(Question[NoncommittalVerdict]):
    """Question: does this response evade or decline to answer the user input?"""

    kind: ClassVar[str] = "noncommittal"
    verdict: ClassVar[type[Verdict]] = NoncommittalVerdict
    reply = ReplySchema({"reason": TEXT, "noncommittal": FLAG}, "noncommittal", NoncommittalVerdict.from_reply)
    prepares: ClassVar[bool] = True

    user_input: str
    response: str

    def fault(self, verdict: NoncommittalVerdict) -> str | None:
        """See `Question.fault`; every verdict of this type is valid."""
        del verdict
        return None

    def guess(self) -> NoncommittalVerdict:
        """Return that it answers."""
        return NoncommittalVerdict(noncommittal=False, reason=GUESSED_REASON)


QUESTION: Final = Noncommittal
"""The question type of this module, for `merilo.judging.registry`."""
