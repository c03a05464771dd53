"""Questions and verdicts of the kind `addresses`: whether a statement of the response addresses the user input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.judging.synthetic import OTHER, RESPONSE, USER_INPUT
from merilo.judging.yes_no import YesNoQuestion, YesNoVerdict, yes_no_schema

if TYPE_CHECKING:
    from merilo.judging.synthetic import Odds


@dataclass(frozen=True, slots=True)
class AddressesVerdict(YesNoVerdict):
    """Verdict on a statement of the response: does it address the user input?"""

    decided = "addresses"
    yes = "addresses the question"
    words = ("does not address the question", "addresses the question")

    addresses: bool
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Addresses(YesNoQuestion[AddressesVerdict]):
    """Question: does this statement of the response address what the user input asks?"""

    kind = "addresses"
    verdict = AddressesVerdict
    reply = yes_no_schema(AddressesVerdict, pack_item="statement")
    tasks = ("answer_relevance",)
    shared = frozenset({"user_input"})
    subject_field = "statement"
    asked = "Does this statement address what the user input asks?"
    shown = (("user_input", "user_input"), ("statement", "statement"))
    trials = ((RESPONSE, USER_INPUT), (OTHER, USER_INPUT))

    statement: str
    user_input: str

    def synthetic(self, odds: Odds) -> AddressesVerdict:
        return AddressesVerdict(odds.of(self.statement) < 0.6)
