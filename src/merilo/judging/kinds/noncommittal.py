"""Questions and verdicts of the kind `noncommittal`: whether the response evades or declines to answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Self

from merilo.judging import reply_fields
from merilo.judging.questions import GUESSED_REASON, Question
from merilo.judging.reply_fields import FLAG, TEXT
from merilo.judging.reply_schema import ReplySchema
from merilo.judging.trial_texts import RESPONSE, USER_INPUT
from merilo.judging.verdicts import DecisionVerdict, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.judging.reply_fields import Fields
    from merilo.judging.synthetic import Odds


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
    reply_tokens: ClassVar[int] = 256
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

    @classmethod
    def trial(cls) -> tuple[Self, Self]:
        """See `Question.trial`."""
        return cls(USER_INPUT, RESPONSE), cls(USER_INPUT, "I do not know.")

    def synthetic(self, odds: Odds) -> NoncommittalVerdict:
        """See `Question.synthetic`."""
        return NoncommittalVerdict(odds.of(self.response) < 0.1)

    def worst(self) -> NoncommittalVerdict:
        """See `Question.worst`."""
        return NoncommittalVerdict(noncommittal=True)

    def better(self, verdict: NoncommittalVerdict) -> Iterator[NoncommittalVerdict]:
        """See `Question.better`."""
        if verdict.noncommittal:
            yield NoncommittalVerdict(noncommittal=False)


QUESTION: Final = Noncommittal
"""The question type of this module, for `merilo.judging.registry`."""
