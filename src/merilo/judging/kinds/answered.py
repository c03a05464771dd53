"""Questions and verdicts of the kind `answered`: whether the response answers one part of the user input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.judging.questions import Texts
from merilo.judging.synthetic import RESPONSE, USER_INPUT
from merilo.judging.yes_no import YesNoQuestion, YesNoVerdict, yes_no_schema

if TYPE_CHECKING:
    from merilo.judging.synthetic import Odds


@dataclass(frozen=True, slots=True)
class AnsweredVerdict(YesNoVerdict):
    """Verdict on a response: does it answer one part of the user input?"""

    decided = "answered"
    yes = "answered"
    words = ("not answered", "answered")
    shown_evidence = "by sentence"

    answered: bool
    evidence: tuple[int, ...] = ()
    """Indices of the sentences that answer it; empty exactly if it is not answered."""
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Answered(YesNoQuestion[AnsweredVerdict]):
    """Question: does this response, as numbered sentences, answer one part of the user input?"""

    kind = "answered"
    verdict = AnsweredVerdict
    reply = yes_no_schema(AnsweredVerdict, pack_item="part")
    shared = frozenset({"sentences", "user_input"})
    subject_field = "part"
    cited = "sentences"
    asked = "Does the response answer this part of what was asked?"
    shown = (("user_input", "user_input"), ("part", "part"), ("response", "sentences"))
    trials = ((USER_INPUT, (RESPONSE,), USER_INPUT), ("Who built the Eiffel Tower?", (RESPONSE,), USER_INPUT))

    part: str
    sentences: Texts
    user_input: str

    def synthetic(self, odds: Odds) -> AnsweredVerdict:
        answered = odds.of(self.part, *self.sentences) < 0.6
        return AnsweredVerdict(answered, odds.some(self.sentences) if answered else ())
