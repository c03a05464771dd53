"""Questions and verdicts of the kind `relevance`: how well a context helps to answer the user input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from merilo.judging import reply_fields
from merilo.judging.labels import evidence_of_label
from merilo.judging.questions import GUESSED_REASON, Question, Texts
from merilo.judging.reply_fields import NUMBERS, TEXT, ReplySchema
from merilo.judging.synthetic import OTHER, SENTENCES, USER_INPUT
from merilo.judging.verdicts import DecisionVerdict, evidence_fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.judging.reply_fields import Fields
    from merilo.judging.synthetic import Odds


TOP_GRADE: Final = 2


_GRADES: Final = {
    **dict.fromkeys(("irrelevant", "not relevant"), 0),
    **dict.fromkeys(("partially relevant", "partly relevant", "somewhat relevant"), 1),
    **dict.fromkeys(("fully relevant", "highly relevant", "completely relevant"), 2),
}
"""Grades that models write as words."""


@dataclass(frozen=True, slots=True)
class RelevanceVerdict(DecisionVerdict):
    """Relevance grade of one context for a user input."""

    yes = "relevant"

    grade: int
    """0 nothing useful · 1 part of the answer · 2 the whole answer."""
    evidence: tuple[int, ...] = ()
    """Indices of the sentences that justify the grade; empty exactly if the grade is 0."""
    reason: str = ""
    probability: float | None = None

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        given = fields.get("grade")
        named = _GRADES.get(given.strip().lower().rstrip(".")) if isinstance(given, str) else None
        grade = reply_fields.whole_number(given if named is None else named, "grade")
        return cls(grade=grade, evidence=reply_fields.evidence(fields), reason=reply_fields.text(fields, "reason"))

    @property
    def positive(self) -> bool:
        """True if the grade is 1 or 2."""
        return self.grade >= 1

    @property
    def value(self) -> float:
        """See `DecisionVerdict.value`: half the grade."""
        return self.grade / TOP_GRADE

    @property
    def decision(self) -> object:
        return self.grade

    @property
    def context_evidence(self) -> tuple[int, ...]:
        return self.evidence

    def as_label(self) -> str:
        return str(self.grade)

    def in_words(self) -> str:
        return f"grade {self.grade} of 2"


@dataclass(frozen=True, slots=True)
class Relevance(Question[RelevanceVerdict]):
    """Question: how well does this context, as numbered sentences, help to answer the user input?"""

    kind = "relevance"
    verdict = RelevanceVerdict
    reply_tokens = 256
    reply = ReplySchema(
        {"reason": TEXT, "grade": {"type": "integer", "enum": [0, 1, 2]}, "evidence": NUMBERS},
        "grade",
        RelevanceVerdict.from_reply,
        pack_item="context",
    )
    tasks = ("chunk_relevance", "sentence_relevance")
    cited = "sentences"
    judges_context = True
    asked = "How far does this context help to answer the user input?"
    shown = (("user_input", "user_input"), ("context", "sentences"))
    form_labels = ("0", "1", "2")
    form_meanings = ("nothing useful", "part of the answer", "the whole answer")
    trials = ((USER_INPUT, SENTENCES), (USER_INPUT, (OTHER,)))
    shared = frozenset({"user_input"})

    user_input: str
    sentences: Texts

    def fault(self, verdict: RelevanceVerdict) -> str | None:
        if verdict.grade not in {0, 1, 2}:
            return f"has the grade {verdict.grade}; a grade is 0, 1 or 2"
        if verdict.grade and not verdict.evidence and not verdict.flag:
            return f"has the grade {verdict.grade} but names no evidence sentence"
        if not verdict.grade and verdict.evidence:
            return "has the grade 0 but names evidence sentences"
        return evidence_fault(verdict.evidence, len(self.sentences), "sentence")

    def guess(self) -> RelevanceVerdict:
        """Return a middle grade, based on the first sentence."""
        return RelevanceVerdict(grade=1, evidence=(0,), reason=GUESSED_REASON)

    def verdict_of_label(self, label: str, *, evidence: bool = False) -> RelevanceVerdict:
        return RelevanceVerdict(int(label), evidence_of_label(label, self.sentences) if evidence else ())

    def synthetic(self, odds: Odds) -> RelevanceVerdict:
        grade = int(3 * odds.of(*self.sentences))
        return RelevanceVerdict(grade, odds.some(self.sentences) if grade else ())

    def best(self) -> RelevanceVerdict:
        return RelevanceVerdict(2, tuple(range(len(self.sentences))))

    def worst(self) -> RelevanceVerdict:
        return RelevanceVerdict(0)

    def better(self, verdict: RelevanceVerdict) -> Iterator[RelevanceVerdict]:
        everything = tuple(range(len(self.sentences)))
        for grade in range(verdict.grade + 1, 3):
            yield RelevanceVerdict(grade, verdict.evidence or everything[:1])
        if verdict.grade and verdict.evidence != everything:
            yield RelevanceVerdict(verdict.grade, everything)
