"""Questions and verdicts of the kind `usefulness`: whether a context helps to arrive at the reference answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.judging.questions import Texts
from merilo.judging.synthetic import OTHER, RESPONSE, SENTENCES, USER_INPUT
from merilo.judging.yes_no import YesNoQuestion, YesNoVerdict, yes_no_schema

if TYPE_CHECKING:
    from merilo.judging.synthetic import Odds


@dataclass(frozen=True, slots=True)
class UsefulnessVerdict(YesNoVerdict):
    """Usefulness of one context for arriving at a reference answer."""

    decided = "useful"
    yes = "useful"
    words = ("not useful", "useful")

    useful: bool
    evidence: tuple[int, ...] = ()
    """Indices of the useful sentences; empty exactly if the context is not useful."""
    reason: str = ""
    probability: float | None = None

    @property
    def context_evidence(self) -> tuple[int, ...]:
        return self.evidence


@dataclass(frozen=True, slots=True)
class Usefulness(YesNoQuestion[UsefulnessVerdict]):
    """Question: does this context, as numbered sentences, help to arrive at the reference answer?"""

    kind = "usefulness"
    verdict = UsefulnessVerdict
    reply = yes_no_schema(UsefulnessVerdict)
    cited = "sentences"
    judges_context = True
    asked = "Does this context help to arrive at the reference answer?"
    shown = (("user_input", "user_input"), ("reference", "reference"), ("context", "sentences"))
    trials = ((USER_INPUT, RESPONSE, SENTENCES), (USER_INPUT, RESPONSE, (OTHER,)))

    user_input: str
    reference: str
    sentences: Texts

    def synthetic(self, odds: Odds) -> UsefulnessVerdict:
        useful = odds.of(*self.sentences) < 0.5
        return UsefulnessVerdict(useful, odds.some(self.sentences) if useful else ())
