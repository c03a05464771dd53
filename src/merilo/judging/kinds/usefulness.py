"""Questions and verdicts of the kind `usefulness`: whether a context helps to arrive at the reference answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Self

from merilo.judging import reply_fields
from merilo.judging.labels import YES, LabelForm, evidence_of_label, lines, yes_or_no
from merilo.judging.questions import GUESSED_REASON, Question, Texts
from merilo.judging.reply_fields import FLAG, NUMBERS, TEXT
from merilo.judging.reply_schema import ReplySchema
from merilo.judging.trial_texts import OTHER, RESPONSE, SENTENCES, USER_INPUT
from merilo.judging.verdict_checks import evidence_fault
from merilo.judging.verdicts import DecisionVerdict, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.judging.reply_fields import Fields
    from merilo.judging.synthetic import Odds


@dataclass(frozen=True, slots=True)
class UsefulnessVerdict(DecisionVerdict):
    """Usefulness of one context for arriving at a reference answer."""

    yes: ClassVar[str] = "useful"

    useful: bool
    evidence: tuple[int, ...] = ()
    """Indices of the useful sentences; empty exactly if the context is not useful."""
    reason: str = ""
    probability: float | None = None

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        """Return the verdict in a reply. Raises ReplyParseError."""
        return cls(
            reply_fields.flag(fields, "useful"),
            evidence=reply_fields.evidence(fields),
            reason=reply_fields.text(fields, "reason"),
        )

    @property
    def positive(self) -> bool:
        """True if the context is useful."""
        return self.useful

    @property
    def context_evidence(self) -> tuple[int, ...]:
        """See `Verdict.context_evidence`."""
        return self.evidence

    def as_label(self) -> str:
        """See `Verdict.as_label`."""
        return yes_or_no(self.positive)

    def in_words(self) -> str:
        """See `Verdict.in_words`."""
        return "useful" if self.useful else "not useful"


@dataclass(frozen=True, slots=True)
class Usefulness(Question[UsefulnessVerdict]):
    """Question: does this context, as numbered sentences, help to arrive at the reference answer?"""

    kind: ClassVar[str] = "usefulness"
    verdict: ClassVar[type[Verdict]] = UsefulnessVerdict
    reply_tokens: ClassVar[int] = 256
    reply = ReplySchema({"reason": TEXT, "useful": FLAG, "evidence": NUMBERS}, "useful", UsefulnessVerdict.from_reply)

    user_input: str
    reference: str
    sentences: Texts

    @property
    def places(self) -> int:
        """See `Question.places`."""
        return len(self.sentences)

    def fault(self, verdict: UsefulnessVerdict) -> str | None:
        """See `Question.fault`."""
        if verdict.useful and not verdict.evidence and not verdict.flag:
            return "says useful but names no evidence sentence"
        if not verdict.useful and verdict.evidence:
            return "says not useful but names evidence sentences"
        return evidence_fault(verdict.evidence, len(self.sentences), "sentence")

    def guess(self) -> UsefulnessVerdict:
        """Return useful, based on the first sentence."""
        return UsefulnessVerdict(useful=True, evidence=(0,), reason=GUESSED_REASON)

    @property
    def context_sentences(self) -> Texts:
        """See `Question.context_sentences`."""
        return self.sentences

    def label_form(self) -> LabelForm:
        """See `Question.label_form`."""
        texts = (("user_input", self.user_input), ("reference", self.reference))
        return LabelForm(
            self.kind,
            "Does this context help to arrive at the reference answer?",
            (*texts, ("context", lines(self.sentences))),
        )

    def verdict_of_label(self, label: str, *, evidence: bool = False) -> UsefulnessVerdict:
        """See `Question.verdict_of_label`."""
        return UsefulnessVerdict(label == YES, evidence_of_label(label, self.sentences) if evidence else ())

    @classmethod
    def trial(cls) -> tuple[Self, Self]:
        """See `Question.trial`."""
        return cls(USER_INPUT, RESPONSE, SENTENCES), cls(USER_INPUT, RESPONSE, (OTHER,))

    def synthetic(self, odds: Odds) -> UsefulnessVerdict:
        """See `Question.synthetic`."""
        useful = odds.of(*self.sentences) < 0.5
        return UsefulnessVerdict(useful, odds.some(self.sentences) if useful else ())

    def best(self) -> UsefulnessVerdict:
        """See `Question.best`."""
        return UsefulnessVerdict(useful=True, evidence=tuple(range(len(self.sentences))))

    def worst(self) -> UsefulnessVerdict:
        """See `Question.worst`."""
        return UsefulnessVerdict(useful=False)

    def better(self, verdict: UsefulnessVerdict) -> Iterator[UsefulnessVerdict]:
        """See `Question.better`."""
        if not verdict.useful:
            yield UsefulnessVerdict(useful=True, evidence=(0,))


QUESTION: Final = Usefulness
"""The question type of this module, for `merilo.judging.registry`."""
