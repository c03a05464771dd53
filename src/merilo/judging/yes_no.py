"""The base of the kinds of questions that are answered yes or no, with numbered evidence for a yes or without any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from merilo.judging import reply_fields
from merilo.judging.labels import YES, evidence_of_label, yes_or_no
from merilo.judging.questions import GUESSED_REASON, Question
from merilo.judging.reply_fields import FLAG, NUMBERS, TEXT, ReplySchema
from merilo.judging.synthetic import readable
from merilo.judging.verdicts import DecisionVerdict, evidence_fault, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.judging.reply_fields import Fields


@dataclass(frozen=True, slots=True)
class YesNoVerdict(DecisionVerdict):
    """Base of verdicts with a flag in the field `decided`, a `reason`, and in some kinds `evidence` for a yes."""

    decided: ClassVar[str]
    words: ClassVar[tuple[str, str]]
    """A no and a yes in words."""
    shown_evidence: ClassVar[str] = ""
    """The evidence in words, such as "by sentence"; empty if the words do not name it."""

    @classmethod
    def made(cls, decision: bool, evidence: tuple[int, ...] = (), reason: str = "") -> Self:  # noqa: FBT001  the decision is the verdict
        """Return the verdict with this decision; a kind without evidence has no use for it."""
        fields: dict[str, Any] = {cls.decided: decision, "reason": reason}
        if hasattr(cls, "evidence"):
            fields["evidence"] = evidence
        return cls(**fields)

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        """Return the verdict in a reply. Raises ReplyParseError."""
        decision, evidence = reply_fields.flag(fields, cls.decided), reply_fields.evidence(fields)
        return cls.made(decision, evidence, reply_fields.text(fields, "reason"))

    @property
    def positive(self) -> bool:
        """The decision."""
        return bool(getattr(self, self.decided))

    @property
    def cited(self) -> tuple[int, ...]:
        """The evidence; empty for a kind without."""
        evidence: tuple[int, ...] = getattr(self, "evidence", ())
        return evidence

    def as_label(self) -> str:
        """Return yes or no."""
        return yes_or_no(self.positive)

    def in_words(self) -> str:
        """Return the decision in words, with the evidence if `shown_evidence` says how."""
        where = f" {listed(self.cited, self.shown_evidence)}" if self.shown_evidence and self.cited else ""
        return self.words[self.positive] + where


V = TypeVar("V", bound=YesNoVerdict)


def yes_no_schema(verdict: type[YesNoVerdict], *, pack_item: str = "") -> ReplySchema:
    """Return the schema of a reply: a reason, the decision and, if the verdict has evidence, the numbers of texts."""
    evidence = {"evidence": NUMBERS} if hasattr(verdict, "evidence") else {}
    properties = {"reason": TEXT, verdict.decided: FLAG, **evidence}
    return ReplySchema(properties, verdict.decided, verdict.from_reply, pack_item=pack_item)


@dataclass(frozen=True, slots=True)
class YesNoQuestion(Question[V], Generic[V]):
    """Base of questions with a `YesNoVerdict`. A yes names some of the cited texts, if the kind has such."""

    reply_tokens: ClassVar[int] = 256
    cited_as: ClassVar[str] = "evidence sentence"
    """The name of one of the cited texts in messages to the judge."""
    good: ClassVar[bool] = True
    """The decision that is best for the evaluated system."""

    def fault(self, verdict: V) -> str | None:
        """See `Question.fault`: a yes needs evidence, and a no has none."""
        if not self.cited:
            return None
        if verdict.positive and not verdict.cited and not verdict.flag:
            return f"says {verdict.decided} but names no {self.cited_as}"
        if not verdict.positive and verdict.cited:
            return f"says not {verdict.decided} but names {self.cited_as}s"
        return evidence_fault(verdict.cited, self.places, self.cited_as.removeprefix("evidence "))

    def guess(self) -> V:
        """Return the good decision, by the first text; a no if there is no text to name."""
        first = tuple(range(self.places))[:1]
        return self._decided(self.good and bool(first or not self.cited), first, GUESSED_REASON)

    def verdict_of_label(self, label: str, *, evidence: bool = False) -> V:
        """Return the verdict that yes or no means. Raises ValueError for a kind without a form."""
        if not self.asked:
            return Question[V].verdict_of_label(self, label)
        return self._decided(label == YES, evidence_of_label(label, self.cited_texts) if evidence else ())

    def best(self) -> V:
        """Return the good decision, by all texts."""
        return self._decided(self.good, tuple(range(self.places)))

    def worst(self) -> V:
        """Return the other decision."""
        return self._decided(not self.good)

    def better(self, verdict: V) -> Iterator[V]:
        """Yield the good decision by the first text that is not blank, if the given one is the other."""
        evidence = readable(self.cited_texts)[:1]
        if verdict.positive is not self.good and (evidence or not self.cited):
            yield self._decided(self.good, evidence)

    def _decided(self, decision: bool, evidence: tuple[int, ...] = (), reason: str = "") -> V:  # noqa: FBT001  as `made`
        verdict: Any = self.verdict  # declared as the base of all verdicts
        made: V = verdict.made(decision, evidence, reason)
        return made
