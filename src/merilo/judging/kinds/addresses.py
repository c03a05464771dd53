"""Questions and verdicts of the kind `addresses`: whether a statement of the response addresses the user input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Self

from merilo.judging import reply_fields
from merilo.judging.questions import GUESSED_REASON, Question
from merilo.judging.reply_fields import FLAG, TEXT
from merilo.judging.reply_schema import ReplySchema
from merilo.judging.verdicts import Verdict

if TYPE_CHECKING:
    from merilo.judging.reply_fields import Fields


@dataclass(frozen=True, slots=True)
class AddressesVerdict(Verdict):
    """Verdict on a statement of the response: does it address the user input?"""

    addresses: bool
    reason: str = ""
    probability: float | None = None

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        """Return the verdict in a reply. Raises ReplyParseError."""
        return cls(reply_fields.flag(fields, "addresses"), reason=reply_fields.text(fields, "reason"))


@dataclass(frozen=True, slots=True)
class Addresses(Question[AddressesVerdict]):
    """Question: does this statement of the response address what the user input asks?"""

    kind: ClassVar[str] = "addresses"
    verdict: ClassVar[type[Verdict]] = AddressesVerdict
    reply = ReplySchema(
        {"reason": TEXT, "addresses": FLAG}, "addresses", AddressesVerdict.from_reply, pack_item="statement"
    )
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


QUESTION: Final = Addresses
"""The question type of this module, for `merilo.judging.registry`."""
