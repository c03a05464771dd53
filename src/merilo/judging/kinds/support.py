"""Questions and verdicts of the kind `support`: whether contexts support a statement."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Self

from merilo.judging import reply_fields
from merilo.judging.json_extraction import ReplyParseError
from merilo.judging.labels import YES, evidence_of_label, yes_or_no
from merilo.judging.questions import GUESSED_REASON, Question, Texts
from merilo.judging.reply_fields import NUMBERS, TEXT, ReplySchema
from merilo.judging.synthetic import CONTEXT, OTHER, RESPONSE, readable
from merilo.judging.verdicts import LATER, DecisionVerdict, evidence_fault, flag_of, index_fault, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.judging.reply_fields import Fields, SentencesOfContexts
    from merilo.judging.synthetic import Odds


class SupportLabel(StrEnum):
    """Relation of contexts to a statement."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_STATED = "not_stated"
    UNSUPPORTED = "unsupported"
    """Not supported, from a judge that does not distinguish contradicted from not stated."""


_LABELS: Final = ("supported", "contradicted", "not_stated")
"""The labels that a language model may answer."""


_REASON_AND_LABEL: Final = {"reason": TEXT, "label": {"type": "string", "enum": list(_LABELS)}}


_IN_WORDS: Final = {
    SupportLabel.SUPPORTED: "supported",
    SupportLabel.CONTRADICTED: "contradicted",
    SupportLabel.NOT_STATED: "not stated",
    SupportLabel.UNSUPPORTED: "not supported",
}


@dataclass(frozen=True, slots=True)
class SupportVerdict(DecisionVerdict):
    """Support of contexts for a statement, with the contexts concerned."""

    yes = "supported"

    label: SupportLabel
    evidence: tuple[int, ...] = ()
    """Indices of every context that supports (or contradicts) the statement."""
    reason: str = ""
    probability: float | None = None
    tells_contradicted: bool = True
    """False for a judge that never answers `contradicted`. Its verdicts do not show that nothing is contradicted."""
    sentences: tuple[tuple[int, int], ...] = field(default=(), metadata=LATER)
    """Context and sentence indices of the sentences that the statement was compared with: the evidence of a supported
    or contradicted statement. The embedded judge names the closest sentence of an unsupported one. Empty if the judge
    names contexts only."""

    @property
    def supported(self) -> bool:
        """True if the label is `supported`."""
        return self.label is SupportLabel.SUPPORTED

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        label = SupportLabel(reply_fields.label(fields, _LABELS))
        return cls(label, evidence=reply_fields.evidence(fields), reason=reply_fields.text(fields, "reason"))

    @classmethod
    def from_cited(cls, fields: Fields, contexts: SentencesOfContexts) -> Self:
        """Return the verdict in a reply that names sentences, numbered through all contexts. Raises ReplyParseError.

        The contexts of these sentences become its evidence.
        """
        label = SupportLabel(reply_fields.label(fields, _LABELS))
        numbers, decided = reply_fields.indices(fields, "sentences"), label is not SupportLabel.NOT_STATED
        places = [(context, place) for context, own in enumerate(contexts) for place in range(len(own))]
        cited = tuple(places[number] for number in numbers if decided and 0 <= number < len(places))
        evidence = tuple(dict.fromkeys(context for context, _ in cited))
        verdict = cls(label, evidence, reply_fields.text(fields, "reason"), sentences=cited)
        fault: str | None = None
        if not decided and numbers:
            fault = f"says {label.value} but names sentences"
        elif decided and not numbers:
            fault = f"says {label.value} but names no sentence"
        else:
            out = [number for number in numbers if not 0 <= number < len(places)] if len(cited) < len(numbers) else ()
            fault = index_fault(out[0], len(places), "sentence") if out else None
        if fault is not None:
            raise ReplyParseError(f"Your answer {fault}.", replace(verdict, flag=flag_of(evidence, needed=decided)))
        return verdict

    @property
    def positive(self) -> bool:
        """True if the label is `supported`."""
        return self.supported

    @property
    def decision(self) -> object:
        return self.label

    def as_label(self) -> str:
        return yes_or_no(self.positive)

    def in_words(self) -> str:
        where = f" by {listed(self.evidence, 'context')}" if self.evidence else ""
        return _IN_WORDS[self.label] + where


@dataclass(frozen=True, slots=True)
class Support(Question[SupportVerdict]):
    """Question: do these numbered contexts support the statement, and which of them?"""

    kind = "support"
    verdict = SupportVerdict
    reply_tokens = 256
    reply = ReplySchema(
        {**_REASON_AND_LABEL, "sentences": NUMBERS},
        "label",
        SupportVerdict.from_reply,
        pack_item="statement",
        read_cited=SupportVerdict.from_cited,
    )
    rubric_version = 2
    earlier_replies = {  # noqa: RUF012  a mapping by its type in the base
        1: ReplySchema(
            {**_REASON_AND_LABEL, "evidence": NUMBERS}, "label", SupportVerdict.from_reply, pack_item="statement"
        )
    }
    tasks = ("groundedness", "nli")
    cited = "contexts"
    subject_field = "statement"
    shared = frozenset({"contexts"})
    facts = ("user_input",)
    asked = "Do these texts support the statement?"
    shown = (("statement", "statement"), ("contexts", "contexts"))
    trials = ((RESPONSE, (CONTEXT, OTHER)), ("The tower is made of stone.", (CONTEXT, OTHER)))

    statement: str
    contexts: Texts
    user_input: str = field(default="", kw_only=True, repr=False, compare=False, metadata=LATER)
    """The question that the statement is part of an answer to; empty if there is none."""

    def weaker(self, verdict: SupportVerdict) -> None:
        """See `Question.weaker`; None, since `SupportVerdict.from_cited` keeps the sentences that are right."""
        del verdict

    def fault(self, verdict: SupportVerdict) -> str | None:
        named, label = bool(verdict.evidence), verdict.label
        if label in {SupportLabel.SUPPORTED, SupportLabel.CONTRADICTED} and not named and not verdict.flag:
            return f"says {label.value} but names no context"
        if label in {SupportLabel.NOT_STATED, SupportLabel.UNSUPPORTED} and named:
            return f"says {label.value} but names contexts"
        if label is SupportLabel.UNSUPPORTED and verdict.tells_contradicted:
            return "says unsupported, which is for judges that do not tell contradicted from not stated"
        if label is SupportLabel.CONTRADICTED and not verdict.tells_contradicted:
            return "says contradicted, though it is marked as not telling that"
        return evidence_fault(verdict.evidence, len(self.contexts), "context")

    def guess(self) -> SupportVerdict:
        """Return supported, based on the first sentence of the first context."""
        return SupportVerdict(SupportLabel.SUPPORTED, (0,), GUESSED_REASON, sentences=((0, 0),))

    def verdict_of_label(self, label: str, *, evidence: bool = False) -> SupportVerdict:
        named = evidence_of_label(label, self.contexts) if evidence else ()
        meant = SupportLabel.SUPPORTED if label == YES else SupportLabel.UNSUPPORTED
        return SupportVerdict(meant, named, tells_contradicted=False)

    def synthetic(self, odds: Odds) -> SupportVerdict:
        found = [odds.of(self.statement, text) if text.strip() else 1.0 for text in self.contexts]
        if supporting := tuple(place for place, odd in enumerate(found) if odd < 0.25):
            return SupportVerdict(SupportLabel.SUPPORTED, supporting)
        if odds.seed % 2:
            return SupportVerdict(SupportLabel.UNSUPPORTED, tells_contradicted=False)
        if against := tuple(place for place, odd in enumerate(found) if 0.25 <= odd < 0.4):
            return SupportVerdict(SupportLabel.CONTRADICTED, against)
        return SupportVerdict(SupportLabel.NOT_STATED)

    def best(self) -> SupportVerdict:
        return SupportVerdict(SupportLabel.SUPPORTED, tuple(range(len(self.contexts))))

    def better(self, verdict: SupportVerdict) -> Iterator[SupportVerdict]:
        contexts = readable(self.contexts)
        if verdict.label is SupportLabel.CONTRADICTED:
            yield SupportVerdict(SupportLabel.NOT_STATED)
        if verdict.label is not SupportLabel.SUPPORTED:
            yield SupportVerdict(SupportLabel.SUPPORTED, contexts[:1])
        if verdict.evidence != contexts or verdict.label is not SupportLabel.SUPPORTED:
            yield SupportVerdict(SupportLabel.SUPPORTED, contexts)
