"""Questions and verdicts of the kind `addresses`: whether a statement of the response addresses the user input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Self

from merilo.judging import reply_fields
from merilo.judging.labels import YES, LabelForm, yes_or_no
from merilo.judging.questions import GUESSED_REASON, Question
from merilo.judging.reply_fields import FLAG, TEXT
from merilo.judging.reply_schema import ReplySchema
from merilo.judging.trial_texts import OTHER, RESPONSE, USER_INPUT
from merilo.judging.verdicts import DecisionVerdict, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.judging.questions import Texts
    from merilo.judging.reply_fields import Fields
    from merilo.judging.synthetic import Odds


@dataclass(frozen=True, slots=True)
class AddressesVerdict(DecisionVerdict):
    """Verdict on a statement of the response: does it address the user input?"""

    yes: ClassVar[str] = "addresses the question"

    addresses: bool
    reason: str = ""
    probability: float | None = None

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        """Return the verdict in a reply. Raises ReplyParseError."""
        return cls(reply_fields.flag(fields, "addresses"), reason=reply_fields.text(fields, "reason"))

    @property
    def positive(self) -> bool:
        """True if the statement addresses the user input."""
        return self.addresses

    def as_label(self) -> str:
        """See `Verdict.as_label`."""
        return yes_or_no(self.positive)

    def in_words(self) -> str:
        """See `Verdict.in_words`."""
        return "addresses the question" if self.addresses else "does not address the question"


@dataclass(frozen=True, slots=True)
class Addresses(Question[AddressesVerdict]):
    """Question: does this statement of the response address what the user input asks?"""

    kind: ClassVar[str] = "addresses"
    verdict: ClassVar[type[Verdict]] = AddressesVerdict
    reply_tokens: ClassVar[int] = 256
    reply = ReplySchema(
        {"reason": TEXT, "addresses": FLAG}, "addresses", AddressesVerdict.from_reply, pack_item="statement"
    )
    tasks: ClassVar[tuple[str, ...]] = ("answer_relevance",)
    shared: ClassVar[frozenset[str]] = frozenset({"user_input"})

    statement: str
    user_input: str

    def fault(self, verdict: AddressesVerdict) -> str | None:
        """See `Question.fault`; every verdict of this type is valid."""
        del verdict
        return None

    def guess(self) -> AddressesVerdict:
        """Return that it does."""
        return AddressesVerdict(addresses=True, reason=GUESSED_REASON)

    @classmethod
    def of_texts(cls, texts: Texts, *, user_input: str = "", statement: str = "", language: str = "en") -> Self:
        """See `Question.of_texts`."""
        del texts
        return cls(statement, user_input, language=language)

    @property
    def subject(self) -> str:
        """See `Question.subject`."""
        return self.statement

    def label_form(self) -> LabelForm:
        """See `Question.label_form`."""
        texts = (("user_input", self.user_input), ("statement", self.statement))
        return LabelForm(self.kind, "Does this statement address what the user input asks?", texts)

    def verdict_of_label(self, label: str, *, evidence: bool = False) -> AddressesVerdict:
        """See `Question.verdict_of_label`."""
        del evidence
        return AddressesVerdict(label == YES)

    @classmethod
    def trial(cls) -> tuple[Self, Self]:
        """See `Question.trial`."""
        return cls(RESPONSE, USER_INPUT), cls(OTHER, USER_INPUT)

    def synthetic(self, odds: Odds) -> AddressesVerdict:
        """See `Question.synthetic`."""
        return AddressesVerdict(odds.of(self.statement) < 0.6)

    def best(self) -> AddressesVerdict:
        """See `Question.best`."""
        return AddressesVerdict(addresses=True)

    def better(self, verdict: AddressesVerdict) -> Iterator[AddressesVerdict]:
        """See `Question.better`."""
        if not verdict.addresses:
            yield AddressesVerdict(addresses=True)


QUESTION: Final = Addresses
"""The question type of this module, for `merilo.judging.registry`."""
