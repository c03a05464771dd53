"""axion's factual accuracy: how much of what a response states the reference says too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import BaseModel

from merilo.metrics.base import EvidenceTarget, Score, Undefined
from merilo.metrics.formulas import fraction
from merilo.metrics.published.asking import Asker, ReadReply
from merilo.metrics.published.axion.steps import (
    NO_CLAIM,
    SYSTEM,
    Notes,
    StatementsReply,
    blank,
    listed,
    model_template,
    sent_texts,
)
from merilo.metrics.published.definition import Published

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan

_NO_STATED: Final = "the response makes no statement"


class FactReply(BaseModel):
    """The agreement of one statement with the reference, as 1 or 0."""

    is_supported: int


class FactReplies(BaseModel):
    """A verdict for each statement."""

    verdicts: list[FactReply]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactualAccuracy(Published):
    """Share of the response's statements that the reference supports.

    Formula: Statements with the verdict 1 / verdicts.
    Questions: One Completion for the statements and one for the verdicts.
    Undefined: the user input is blank | the response is blank | the reference is blank | the response makes no
        statement (empty_scored=false)
    Use: To compare with numbers of axion.
    Not: To see what the response leaves out: it counts against nothing here.
    See: axion:faithfulness | axion:answer_relevancy
    Source: axion, revision 7ab96dc of 15 August 2026: the metric's module and the analysis engine.

    Failed where either of the two requests fails, and where a verdict is neither 0 nor 1 (the published code adds up
    any whole number).

    Quirks: a response without statements scores 1, statements without any verdict 0 (`empty_scored`); a short list
    of verdicts shrinks the denominator, and a long one swells it (`short_list_accepted`); empty
    statements are not sent (`empty_texts_sent`). Its threshold is 0.8.
    """

    name: ClassVar[str] = "axion:factual_accuracy"
    version: ClassVar[int] = 2
    needs = frozenset({"user_input", "response", "reference"})

    empty_scored: bool = True
    """No statements score 1, no verdicts 0, with a flag, as published; False: Undefined and Failed."""
    short_list_accepted: bool = True
    """The denominator is the verdicts that came, as published; False: Failed where they are too few or too many."""
    empty_texts_sent: bool = False
    """Empty statements are sent too; False as published: axion's serialiser leaves them out."""

    def max_questions(self, sample: Sample) -> int:
        return 2 if sample.response and sample.reference else 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        if reason := blank(sample, "user_input", "response", "reference"):
            return Undefined(reason)
        asker, user_input, response = Asker(SYSTEM), sample.require("user_input"), sample.require("response")
        values = {"user_input": user_input, "response": response}
        extracted = yield from asker.read(model_template("facts", StatementsReply, {"statements": [response]}), values)
        statements = extracted.value.statements
        if not statements:
            if not self.empty_scored:
                return Undefined(_NO_STATED)
            return Score(1.0, counts={"statements": 0}, flags=(NO_CLAIM,))
        sent = sent_texts(statements, empty=self.empty_texts_sent)
        values = {"user_input": user_input, "statements": listed(sent), "reference": sample.require("reference")}
        likely = {"verdicts": [{"statement": text, "is_supported": 1, "reason": ""} for text in sent]}
        found = yield from asker.read(model_template("facts_checked", FactReplies, likely), values)
        return self._score(statements, found)

    def _score(self, statements: Sequence[str], found: ReadReply[FactReplies]) -> Score:
        verdicts = [each.is_supported for each in found.value.verdicts]
        if odd := [number for number in verdicts if number not in {0, 1}]:
            raise found.reply.unreadable(f"The reply gives the verdict {odd[0]}, which is neither 0 nor 1.")
        notes = Notes(short_list_accepted=self.short_list_accepted)
        sent = sent_texts(statements, empty=self.empty_texts_sent)
        notes.length(found.reply, len(verdicts), len(sent), len(statements))
        if len(verdicts) > len(statements) and not self.short_list_accepted:
            raise found.reply.unreadable(f"The reply gives {len(verdicts)} verdicts on {len(statements)} statements.")
        if not verdicts and not self.empty_scored:
            raise found.reply.unreadable("The reply gives no verdict.")
        evidence = tuple(
            found.evidence(EvidenceTarget.STATEMENT, index, float(number), text)
            for index, (number, text) in enumerate(zip(verdicts, statements, strict=False))
        )
        counts = {"statements": len(statements), "judged": len(verdicts), "supported": sum(verdicts)}
        return Score(fraction(sum(verdicts), len(verdicts)), evidence, counts, notes.flags)
