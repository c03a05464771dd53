"""Questions and verdicts of the kind `statements`: the standalone statements of a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from merilo.judging import reply_fields
from merilo.judging.json_extraction import JsonShape
from merilo.judging.questions import Question, Texts
from merilo.judging.reply_fields import TEXT_OF_SENTENCE, ListReplySchema
from merilo.judging.synthetic import FLOOD, OTHER, RESPONSE, USER_INPUT
from merilo.judging.verdicts import ListVerdict, index_fault

if TYPE_CHECKING:
    from merilo.judging.synthetic import Odds


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim that can be understood alone, and the index of the sentence that makes it."""

    text: str
    sentence: int


@dataclass(frozen=True, slots=True)
class StatementsVerdict(ListVerdict):
    """The standalone statements that a text makes; empty if it claims nothing."""

    listed = "statements"
    one = "statement"

    statements: tuple[Statement, ...]
    probability: float | None = None

    @classmethod
    def from_reply(cls, items: list[object]) -> Self:
        return cls(tuple(Statement(*reply_fields.text_of_sentence(item)) for item in items))


@dataclass(frozen=True, slots=True)
class Statements(Question[StatementsVerdict]):
    """Question: which standalone statements does this text, as numbered sentences, make?"""

    kind = "statements"
    verdict = StatementsVerdict
    reply = ListReplySchema(
        JsonShape(("statements", "sentence", "text"), item="text"), TEXT_OF_SENTENCE, StatementsVerdict.from_reply
    )
    prepares = True
    cited = "sentences"
    trials = (((RESPONSE,), USER_INPUT), ((OTHER,), USER_INPUT))

    sentences: Texts
    user_input: str = ""
    """The question that the text answers, so that "In 1889." can become a full statement; empty if there is none."""

    def fault(self, verdict: StatementsVerdict) -> str | None:
        size = len(self.sentences)
        for statement in verdict.statements:
            if (fault := index_fault(statement.sentence, size, "sentence")) is not None:
                return fault
            if not statement.text.strip():
                return "holds a blank statement"
        return None

    def guess(self) -> StatementsVerdict:
        """Return one statement per sentence."""
        return StatementsVerdict(tuple(Statement(text, i) for i, text in enumerate(self.sentences)))

    def synthetic(self, odds: Odds) -> StatementsVerdict:
        found: list[Statement] = []
        for place, sentence in enumerate(self.sentences):
            count = FLOOD if odds.flood else int(3.5 * odds.of(sentence))
            found.extend(Statement(f"{sentence} ({part})", place) for part in range(count))
        if len(found) % 4 == 3:
            found.append(found[0])
        return StatementsVerdict(tuple(found))
