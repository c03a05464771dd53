"""Questions and verdicts of the kind `noncommittal`: whether the response evades or declines to answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.judging.synthetic import RESPONSE, USER_INPUT
from merilo.judging.verdicts import Verdict
from merilo.judging.yes_no import YesNoQuestion, YesNoVerdict, yes_no_schema

if TYPE_CHECKING:
    from merilo.judging.synthetic import Odds


@dataclass(frozen=True, slots=True)
class NoncommittalVerdict(YesNoVerdict):
    """Verdict on a response: does it evade or decline to answer?"""

    decided = "noncommittal"
    yes = "declines"
    words = ("answers", "declines to answer")

    noncommittal: bool
    reason: str = ""
    probability: float | None = None

    as_label = Verdict.as_label  # there is no form for annotators


@dataclass(frozen=True, slots=True)
class Noncommittal(YesNoQuestion[NoncommittalVerdict]):
    """Question: does this response evade or decline to answer the user input?"""

    kind = "noncommittal"
    verdict = NoncommittalVerdict
    reply = yes_no_schema(NoncommittalVerdict)
    prepares = True
    good = False
    trials = ((USER_INPUT, RESPONSE), (USER_INPUT, "I do not know."))

    user_input: str
    response: str

    def synthetic(self, odds: Odds) -> NoncommittalVerdict:
        return NoncommittalVerdict(odds.of(self.response) < 0.1)
