"""Questions and verdicts of the kind `parts`: the parts of a user input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from merilo.judging import reply_fields
from merilo.judging.json_extraction import JsonShape
from merilo.judging.questions import Question
from merilo.judging.reply_fields import TEXT, ListReplySchema
from merilo.judging.synthetic import FLOOD, USER_INPUT
from merilo.judging.verdicts import ListVerdict

if TYPE_CHECKING:
    from merilo.judging.synthetic import Odds


@dataclass(frozen=True, slots=True)
class PartsVerdict(ListVerdict):
    """The parts of a user input, each as a request that can be understood alone; empty if it asks for nothing."""

    listed = "parts"
    one = "part"

    parts: tuple[str, ...]
    probability: float | None = None

    @classmethod
    def from_reply(cls, items: list[object]) -> Self:
        return cls(tuple(reply_fields.item_text(item, "parts") for item in items))


@dataclass(frozen=True, slots=True)
class Parts(Question[PartsVerdict]):
    """Question: what does this user input ask for, part by part?"""

    kind = "parts"
    verdict = PartsVerdict
    reply_tokens = 512
    reply = ListReplySchema(JsonShape(("parts",)), TEXT, PartsVerdict.from_reply)
    prepares = True
    trials = ((USER_INPUT,), ("Good morning.",))

    user_input: str

    def fault(self, verdict: PartsVerdict) -> str | None:
        return None if all(part.strip() for part in verdict.parts) else "holds a blank part"

    def guess(self) -> PartsVerdict:
        """Return the whole input as one part; no part if it is blank."""
        return PartsVerdict((self.user_input,) if self.user_input.strip() else ())

    def synthetic(self, odds: Odds) -> PartsVerdict:
        size = FLOOD if odds.flood else int(4 * odds.of(self.user_input))
        return PartsVerdict(tuple(f"{self.user_input} ({part})" for part in range(size)))
