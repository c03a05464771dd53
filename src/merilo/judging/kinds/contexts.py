"""Questions and verdicts about contexts: relevance, usefulness, mentions, sufficiency, and support of a statement."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Self

from merilo.judging import reply_fields
from merilo.judging.json_extraction import ReplyParseError
from merilo.judging.questions import (
    GUESSED_REASON,
    YES,
    Question,
    Texts,
    YesNoQuestion,
    YesNoVerdict,
    evidence_of_label,
    yes_no_schema,
    yes_or_no,
)
from merilo.judging.reply_fields import NUMBERS, TEXT, ReplySchema
from merilo.judging.synthetic import CONTEXT, OTHER, RESPONSE, SENTENCES, USER_INPUT, Odds, readable
from merilo.judging.verdicts import LATER, DecisionVerdict, evidence_fault, flag_of, index_fault, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.judging.reply_fields import Fields, SentencesOfContexts


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


@dataclass(frozen=True, slots=True)
class MentionsVerdict(YesNoVerdict):
    """Verdict on contexts: do they mention an entity, and which of them do?"""

    decided = "mentioned"
    yes = "mentioned"
    words = ("not mentioned", "mentioned")
    shown_evidence = "in context"

    mentioned: bool
    evidence: tuple[int, ...] = ()
    """Indices of every context that mentions it; empty exactly if none does."""
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Mentions(YesNoQuestion[MentionsVerdict]):
    """Question: do these numbered contexts mention the entity of this name, in whatever form, and which of them?"""

    kind = "mentions"
    verdict = MentionsVerdict
    reply = yes_no_schema(MentionsVerdict, pack_item="entity")
    shared = frozenset({"contexts"})
    subject_field = "name"
    cited = "contexts"
    cited_as = "context"
    asked = "Do these contexts mention the entity, in whatever form?"
    shown = (("entity", "name"), ("contexts", "contexts"))
    trials = (("the Eiffel Tower", (CONTEXT, OTHER)), ("Berlin", (CONTEXT, OTHER)))

    name: str
    contexts: Texts

    def synthetic(self, odds: Odds) -> MentionsVerdict:
        evidence = tuple(index for index in readable(self.contexts) if odds.of(self.name, self.contexts[index]) < 0.3)
        return MentionsVerdict(bool(evidence), evidence)


class SufficiencyLabel(StrEnum):
    """Extent to which the contexts together contain the answer to the user input."""

    SUFFICIENT = "sufficient"
    PARTLY = "partly"
    INSUFFICIENT = "insufficient"


_LABELS: Final = tuple(SufficiencyLabel)
_VALUES: Final = {
    SufficiencyLabel.SUFFICIENT: 1.0,
    SufficiencyLabel.PARTLY: 0.5,
    SufficiencyLabel.INSUFFICIENT: 0.0,
}


@dataclass(frozen=True, slots=True)
class SufficiencyVerdict(DecisionVerdict):
    """Sufficiency of all contexts together for an answer."""

    yes = "sufficient"

    label: SufficiencyLabel
    missing: str = ""
    """Missing information, in words; empty if sufficient or if the judge does not name it."""
    reason: str = ""
    probability: float | None = None

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        label = SufficiencyLabel(reply_fields.label(fields, _LABELS))
        return cls(label, missing=reply_fields.text(fields, "missing"), reason=reply_fields.text(fields, "reason"))

    @property
    def positive(self) -> bool:
        """True if the label is `sufficient`."""
        return self.label is SufficiencyLabel.SUFFICIENT

    @property
    def value(self) -> float:
        """See `DecisionVerdict.value`: 1, 0.5 or 0."""
        return _VALUES[self.label]

    @property
    def decision(self) -> object:
        return self.label

    def as_label(self) -> str:
        return self.label.value

    def in_words(self) -> str:
        missing = f" (missing: {self.missing})" if self.missing else ""
        return self.label.value + missing


@dataclass(frozen=True, slots=True)
class Sufficiency(Question[SufficiencyVerdict]):
    """Question: do these contexts together contain enough to answer the user input?"""

    kind = "sufficiency"
    verdict = SufficiencyVerdict
    reply_tokens = 384
    reply = ReplySchema(
        {"reason": TEXT, "label": {"type": "string", "enum": list(_LABELS)}, "missing": TEXT},
        "label",
        SufficiencyVerdict.from_reply,
    )
    tasks = ("sufficiency",)
    shared = frozenset({"contexts"})
    facts = ("reference", "gold")
    asked = "Do these contexts together hold enough to answer the user input?"
    shown = (("user_input", "user_input"), ("contexts", "contexts"))
    form_labels = tuple(label.value for label in reversed(SufficiencyLabel))
    form_meanings = ("no part of the answer can be given", "a part of it can", "all of it can")
    trials = ((USER_INPUT, (CONTEXT, OTHER)), (USER_INPUT, (OTHER,)))

    user_input: str
    contexts: Texts
    reference: str = field(default="", kw_only=True, repr=False, compare=False, metadata=LATER)
    """The right answer, for a judge that compares texts; empty if unknown."""
    gold: int = field(default=0, kw_only=True, repr=False, compare=False, metadata=LATER)
    """1 if all passages that are known to hold the answer are among the contexts, -1 if none is, otherwise 0."""

    def fault(self, verdict: SufficiencyVerdict) -> str | None:
        """See `Question.fault`: a sufficient verdict that names something missing contradicts itself."""
        if verdict.label is SufficiencyLabel.SUFFICIENT and verdict.missing.strip():
            return "says sufficient but names something missing"
        return None

    def guess(self) -> SufficiencyVerdict:
        """Return partly sufficient."""
        return SufficiencyVerdict(SufficiencyLabel.PARTLY, missing=GUESSED_REASON, reason=GUESSED_REASON)

    def verdict_of_label(self, label: str, *, evidence: bool = False) -> SufficiencyVerdict:
        del evidence
        return SufficiencyVerdict(SufficiencyLabel(label))

    def synthetic(self, odds: Odds) -> SufficiencyVerdict:
        return SufficiencyVerdict(_LABELS[int(3 * odds.of(*sorted(self.contexts)))])

    def best(self) -> SufficiencyVerdict:
        return SufficiencyVerdict(SufficiencyLabel.SUFFICIENT)

    def better(self, verdict: SufficiencyVerdict) -> Iterator[SufficiencyVerdict]:
        if verdict.label is SufficiencyLabel.INSUFFICIENT:
            yield SufficiencyVerdict(SufficiencyLabel.PARTLY)
        if verdict.label is not SufficiencyLabel.SUFFICIENT:
            yield SufficiencyVerdict(SufficiencyLabel.SUFFICIENT)


class SupportLabel(StrEnum):
    """Relation of contexts to a statement."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_STATED = "not_stated"
    UNSUPPORTED = "unsupported"
    """Not supported, from a judge that does not distinguish contradicted from not stated."""


_SUPPORT_LABELS: Final = ("supported", "contradicted", "not_stated")
"""The labels that a language model may answer."""


_REASON_AND_LABEL: Final = {"reason": TEXT, "label": {"type": "string", "enum": list(_SUPPORT_LABELS)}}


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
        label = SupportLabel(reply_fields.label(fields, _SUPPORT_LABELS))
        return cls(label, evidence=reply_fields.evidence(fields), reason=reply_fields.text(fields, "reason"))

    @classmethod
    def from_cited(cls, fields: Fields, contexts: SentencesOfContexts) -> Self:
        """Return the verdict in a reply that names sentences, numbered through all contexts. Raises ReplyParseError.

        The contexts of these sentences become its evidence.
        """
        label = SupportLabel(reply_fields.label(fields, _SUPPORT_LABELS))
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
