"""Questions and verdicts of the kind `mentions`: whether contexts mention an entity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Self

from merilo.judging import reply_fields
from merilo.judging.labels import YES, LabelForm, evidence_of_label, numbered_texts, yes_or_no
from merilo.judging.questions import GUESSED_REASON, Question, Texts
from merilo.judging.reply_fields import FLAG, NUMBERS, TEXT
from merilo.judging.reply_schema import ReplySchema
from merilo.judging.synthetic import readable
from merilo.judging.trial_texts import CONTEXT, OTHER
from merilo.judging.verdict_checks import evidence_fault
from merilo.judging.verdicts import DecisionVerdict, Verdict
from merilo.judging.wording import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.judging.reply_fields import Fields
    from merilo.judging.synthetic import Odds


@dataclass(frozen=True, slots=True)
class MentionsVerdict(DecisionVerdict):
    """Verdict on contexts: do they mention an entity, and which of them do?"""

    yes: ClassVar[str] = "mentioned"

    mentioned: bool
    evidence: tuple[int, ...] = ()
    """Indices of every context that mentions it; empty exactly if none does."""
    reason: str = ""
    probability: float | None = None

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        """Return the verdict in a reply. Raises ReplyParseError."""
        return cls(
            reply_fields.flag(fields, "mentioned"),
            evidence=reply_fields.evidence(fields),
            reason=reply_fields.text(fields, "reason"),
        )

    @property
    def positive(self) -> bool:
        """True if a context mentions the entity."""
        return self.mentioned

    def as_label(self) -> str:
        """See `Verdict.as_label`."""
        return yes_or_no(self.positive)

    def in_words(self) -> str:
        """See `Verdict.in_words`."""
        where = f" in {listed(self.evidence, 'context')}" if self.evidence else ""
        return f"mentioned{where}" if self.mentioned else "not mentioned"


@dataclass(frozen=True, slots=True)
class Mentions(Question[MentionsVerdict]):
    """Question: do these numbered contexts mention the entity of this name, in whatever form, and which of them?"""

    kind: ClassVar[str] = "mentions"
    verdict: ClassVar[type[Verdict]] = MentionsVerdict
    reply_tokens: ClassVar[int] = 256
    reply = ReplySchema(
        {"reason": TEXT, "mentioned": FLAG, "evidence": NUMBERS},
        "mentioned",
        MentionsVerdict.from_reply,
        pack_item="entity",
    )
    shared: ClassVar[frozenset[str]] = frozenset({"contexts"})

    name: str
    contexts: Texts

    @property
    def places(self) -> int:
        """See `Question.places`."""
        return len(self.contexts)

    def fault(self, verdict: MentionsVerdict) -> str | None:
        """See `Question.fault`."""
        if verdict.mentioned and not verdict.evidence and not verdict.flag:
            return "says mentioned but names no context"
        if not verdict.mentioned and verdict.evidence:
            return "says not mentioned but names contexts"
        return evidence_fault(verdict.evidence, len(self.contexts), "context")

    def guess(self) -> MentionsVerdict:
        """Return mentioned by the first context; not mentioned if there is none."""
        return MentionsVerdict(bool(self.contexts), tuple(range(len(self.contexts)))[:1], GUESSED_REASON)

    @property
    def subject(self) -> str:
        """See `Question.subject`."""
        return self.name

    def label_form(self) -> LabelForm:
        """See `Question.label_form`."""
        texts = (("entity", self.name), ("contexts", numbered_texts(self.contexts)))
        return LabelForm(self.kind, "Do these contexts mention the entity, in whatever form?", texts)

    def verdict_of_label(self, label: str, *, evidence: bool = False) -> MentionsVerdict:
        """See `Question.verdict_of_label`."""
        return MentionsVerdict(label == YES, evidence_of_label(label, self.contexts) if evidence else ())

    @classmethod
    def trial(cls) -> tuple[Self, Self]:
        """See `Question.trial`."""
        return cls("the Eiffel Tower", (CONTEXT, OTHER)), cls("Berlin", (CONTEXT, OTHER))

    def synthetic(self, odds: Odds) -> MentionsVerdict:
        """See `Question.synthetic`."""
        evidence = tuple(place for place in readable(self.contexts) if odds.of(self.name, self.contexts[place]) < 0.3)
        return MentionsVerdict(bool(evidence), evidence)

    def best(self) -> MentionsVerdict:
        """See `Question.best`."""
        return MentionsVerdict(mentioned=True, evidence=tuple(range(len(self.contexts))))

    def better(self, verdict: MentionsVerdict) -> Iterator[MentionsVerdict]:
        """See `Question.better`."""
        if not verdict.mentioned:
            yield MentionsVerdict(mentioned=True, evidence=readable(self.contexts)[:1])


QUESTION: Final = Mentions
"""The question type of this module, for `merilo.judging.registry`."""
