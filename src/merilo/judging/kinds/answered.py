"""Questions and verdicts of the kind `answered`: whether the response answers one part of the user input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Self

from merilo.judging import reply_fields
from merilo.judging.labels import YES, LabelForm, evidence_of_label, lines, yes_or_no
from merilo.judging.questions import GUESSED_REASON, Question, Texts
from merilo.judging.reply_fields import FLAG, NUMBERS, TEXT
from merilo.judging.reply_schema import ReplySchema
from merilo.judging.trial_texts import RESPONSE, USER_INPUT
from merilo.judging.verdict_checks import evidence_fault
from merilo.judging.verdicts import DecisionVerdict, Verdict
from merilo.judging.wording import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.judging.reply_fields import Fields
    from merilo.judging.synthetic import Odds


@dataclass(frozen=True, slots=True)
class AnsweredVerdict(DecisionVerdict):
    """Verdict on a response: does it answer one part of the user input?"""

    yes: ClassVar[str] = "answered"

    answered: bool
    evidence: tuple[int, ...] = ()
    """Indices of the sentences that answer it; empty exactly if it is not answered."""
    reason: str = ""
    probability: float | None = None

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        """Return the verdict in a reply. Raises ReplyParseError."""
        return cls(
            reply_fields.flag(fields, "answered"),
            evidence=reply_fields.evidence(fields),
            reason=reply_fields.text(fields, "reason"),
        )

    @property
    def positive(self) -> bool:
        """True if the part is answered."""
        return self.answered

    def as_label(self) -> str:
        """See `Verdict.as_label`."""
        return yes_or_no(self.positive)

    def in_words(self) -> str:
        """See `Verdict.in_words`."""
        by = f" by {listed(self.evidence, 'sentence')}" if self.evidence else ""
        return f"answered{by}" if self.answered else "not answered"


@dataclass(frozen=True, slots=True)
class Answered(Question[AnsweredVerdict]):
    """Question: does this response, as numbered sentences, answer one part of the user input?"""

    kind: ClassVar[str] = "answered"
    verdict: ClassVar[type[Verdict]] = AnsweredVerdict
    reply_tokens: ClassVar[int] = 256
    reply = ReplySchema(
        {"reason": TEXT, "answered": FLAG, "evidence": NUMBERS},
        "answered",
        AnsweredVerdict.from_reply,
        pack_item="part",
    )
    shared: ClassVar[frozenset[str]] = frozenset({"sentences", "user_input"})

    part: str
    sentences: Texts
    user_input: str

    @property
    def places(self) -> int:
        """See `Question.places`."""
        return len(self.sentences)

    def fault(self, verdict: AnsweredVerdict) -> str | None:
        """See `Question.fault`."""
        if verdict.answered and not verdict.evidence and not verdict.flag:
            return "says answered but names no evidence sentence"
        if not verdict.answered and verdict.evidence:
            return "says not answered but names evidence sentences"
        return evidence_fault(verdict.evidence, len(self.sentences), "sentence")

    def guess(self) -> AnsweredVerdict:
        """Return answered by the first sentence; not answered if there is none."""
        return AnsweredVerdict(bool(self.sentences), tuple(range(len(self.sentences)))[:1], GUESSED_REASON)

    @property
    def subject(self) -> str:
        """See `Question.subject`."""
        return self.part

    def label_form(self) -> LabelForm:
        """See `Question.label_form`."""
        texts = (("user_input", self.user_input), ("part", self.part))
        return LabelForm(
            self.kind,
            "Does the response answer this part of what was asked?",
            (*texts, ("response", lines(self.sentences))),
        )

    def verdict_of_label(self, label: str, *, evidence: bool = False) -> AnsweredVerdict:
        """See `Question.verdict_of_label`."""
        return AnsweredVerdict(label == YES, evidence_of_label(label, self.sentences) if evidence else ())

    @classmethod
    def trial(cls) -> tuple[Self, Self]:
        """See `Question.trial`."""
        return cls(USER_INPUT, (RESPONSE,), USER_INPUT), cls("Who built the Eiffel Tower?", (RESPONSE,), USER_INPUT)

    def synthetic(self, odds: Odds) -> AnsweredVerdict:
        """See `Question.synthetic`."""
        answered = odds.of(self.part, *self.sentences) < 0.6
        return AnsweredVerdict(answered, odds.some(self.sentences) if answered else ())

    def best(self) -> AnsweredVerdict:
        """See `Question.best`."""
        return AnsweredVerdict(answered=True, evidence=tuple(range(len(self.sentences))))

    def worst(self) -> AnsweredVerdict:
        """See `Question.worst`."""
        return AnsweredVerdict(answered=False)

    def better(self, verdict: AnsweredVerdict) -> Iterator[AnsweredVerdict]:
        """See `Question.better`."""
        if self.sentences and not verdict.answered:
            yield AnsweredVerdict(answered=True, evidence=(0,))


QUESTION: Final = Answered
"""The question type of this module, for `merilo.judging.registry`."""
