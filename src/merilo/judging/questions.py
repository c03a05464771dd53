"""The base of the questions that a metric may ask: one frozen type per kind of question, each in `kinds/`.

A question contains plain text that merilo has split and numbered, so a judge answers by index. Questions are
content-addressed: equal questions with equal role and draw have one answer in a run.

Every question has, in addition to its own fields:

- `role`: the judge to ask; `judge` unless a metric wants a second opinion;
- `draw`: 0 unless a repeated answer to the same question is wanted;
- `language`: the language of the rubric it is asked in (BCP 47 primary tag);
- `history`: the earlier turns of the conversation, as `role: text`, which explain the user input.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar

from merilo.judging import reply_fields
from merilo.judging.digests import FRAME, TEXTS, TUPLES, digest_bytes, digest_of, framed
from merilo.judging.reply_fields import FLAG, NUMBERS, TEXT, Fields, ListReplySchema, ReplySchema, schema_of
from merilo.judging.synthetic import Odds, readable
from merilo.judging.verdicts import (
    LATER,
    DecisionVerdict,
    ListVerdict,
    Verdict,
    evidence_fault,
    flag_of,
    later_fields,
    listed,
    per_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


# -- the forms for annotators: the same texts that the judge reads, and a closed list of labels --

NO, YES = "no", "yes"
YES_NO: Final = (NO, YES)
_TRUE: Final = frozenset({"yes", "y", "true", "1"})
_FALSE: Final = frozenset({"no", "n", "false", "0"})
_NAMES_NOTHING: Final = frozenset({"0", NO})


@dataclass(frozen=True, slots=True)
class LabelForm:
    """One question in the form that annotators answer."""

    kind: str
    asked: str
    """The question itself."""
    texts: tuple[tuple[str, str], ...]
    """The texts to read, each with its name, such as ("context", "...")."""
    labels: tuple[str, ...] = YES_NO
    """The possible answers; in ascending order if they are ordered."""
    meanings: tuple[str, ...] = ("", "")
    """The meaning of each label; blank if the label is clear by itself."""
    ordered: bool = True
    """True if the labels are in ascending order."""
    graded: bool = False
    """True if the labels are whole numbers, which some spreadsheets write as 2.0."""

    def label(self, given: str) -> str | None:
        """Return the label that a text means, ignoring case; None if it is not one of the labels."""
        text = given.strip().casefold()
        if {*self.labels} == {NO, YES}:
            return YES if text in _TRUE else NO if text in _FALSE else None
        if self.graded and text.endswith(".0"):
            text = text[:-2]
        return next((each for each in self.labels if each.casefold() == text), None)

    def explained(self) -> str:
        """Return the labels with their meanings, in one line."""
        pairs = zip(self.labels, self.meanings, strict=True)
        return "; ".join(f"{label}: {meaning}" if meaning else label for label, meaning in pairs)


def yes_or_no(positive: bool) -> str:  # noqa: FBT001  the decision to convert
    """Return the label of a decision."""
    return YES if positive else NO


def evidence_of_label(label: str, texts: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of all texts as the evidence of a label; none if the label is a no or grade 0."""
    return () if label in _NAMES_NOTHING else tuple(range(len(texts)))


def as_text(texts: str | Sequence[str], *, numbered: bool) -> str:
    """Return several texts as one: contexts numbered from 1, sentences one on each line."""
    if isinstance(texts, str):
        return texts
    return "\n\n".join(f"[{at}] {text}" for at, text in enumerate(texts, start=1)) if numbered else "\n".join(texts)


V = TypeVar("V", bound=Verdict)

Texts = tuple[str, ...]


class _Addressed:
    """Slot for the digest of a question. It is not a field, so it affects neither equality nor copies."""

    __slots__ = ("_content",)
    _content: bytes


@dataclass(frozen=True, slots=True)
class Question(_Addressed, Generic[V]):
    """Base of all question types; subclasses are frozen dataclasses of texts, tuples of texts and numbers."""

    kind: ClassVar[str] = "question"
    verdict: ClassVar[type[Verdict]] = Verdict
    shared: ClassVar[frozenset[str]] = frozenset()
    """Fields at the beginning of a prompt that other questions of the kind may have in common; those of a pack always
    do."""
    reply: ClassVar[ReplySchema | ListReplySchema | None] = None
    """The reply of a language model; None for kinds without one, such as vectors and free text."""
    rubric_version: ClassVar[int] = 1
    """Version of the rubrics that ask this kind of question, and whose reply `reply` is."""
    earlier_replies: ClassVar[Mapping[int, ReplySchema]] = {}
    """Version → reply to rubrics of an earlier version, in recorded conversations."""
    prepares: ClassVar[bool] = False
    """True if the verdict only prepares what is judged, such as the extraction of statements."""
    reply_tokens: ClassVar[int] = 2_048
    """Limit of a reply to one question of the kind, in tokens, for models that do not reason."""
    tasks: ClassVar[tuple[str, ...]] = ()
    """Tasks of labelled records that are judged by asking this kind of question (`merilo.data.labels.Task`)."""
    cited: ClassVar[str] = ""
    """The field with the sentences or contexts that a verdict may name; empty for kinds without."""
    subject_field: ClassVar[str] = ""
    """The field that identifies a question within its pack, such as its statement; empty for most kinds."""
    facts: ClassVar[tuple[str, ...]] = ()
    """Fields about the sample that no prompt shows and only judges with `reads_facts` read. They are in no content, as
    they do not compare."""
    judges_context: ClassVar[bool] = False
    """True if the question is about one context, whose sentences are cited."""
    asked: ClassVar[str] = ""
    """The question in the form for annotators; empty for kinds that no yes, no or grade answers."""
    shown: ClassVar[tuple[tuple[str, str], ...]] = ()
    """The texts of that form: the name of each, and its field."""
    form_labels: ClassVar[Texts] = YES_NO
    form_meanings: ClassVar[Texts] = ("", "")
    trials: ClassVar[tuple[tuple[Any, ...], tuple[Any, ...]]]
    """The fields of the two questions that try out a judge."""

    role: str = field(default="judge", kw_only=True)
    draw: int = field(default=0, kw_only=True)
    language: str = field(default="en", kw_only=True)
    history: Texts = field(default=(), kw_only=True, repr=False, metadata=LATER)

    @property
    def content(self) -> bytes:
        """The 16-byte digest of the question's kind, texts and language, without role, draw and unset later fields."""
        try:
            return self._content
        except AttributeError:
            digest = digest_bytes(_content(self))
            object.__setattr__(self, "_content", digest)
            return digest

    @property
    def fact_bytes(self) -> bytes:
        """The facts, framed, for the key of an answer that depends on them; empty if none is known."""
        found = [repr(getattr(self, name)).encode() for name in self.facts]
        return framed(*found) if any(getattr(self, name) for name in self.facts) else b""

    @property
    def all_texts(self) -> Texts:
        """The question's texts in the order of its fields: the query or statement, then the texts it is judged by."""
        found: list[str] = []
        own, values = _content_fields(type(self))
        for (name, *_), value in zip(own, values(self), strict=False):
            kind: object = value.__class__
            if kind is str:
                found.append(value)
            elif kind is tuple and name != "history":
                found += value
        return (*found, *self.history)

    @classmethod
    def of_texts(cls, texts: Texts, *, user_input: str = "", statement: str = "", language: str = "en") -> Self:
        """Return the question about these texts, for kinds that have `tasks`.

        The texts are contexts, or the sentences of one context if the kind is about a single context.
        """
        if not cls.tasks:
            raise TypeError(f"a question of kind {cls.kind!r} cannot be made of texts")
        given = {"user_input": user_input, "statement": statement, "contexts": texts, "sentences": texts}
        own: dict[str, Any] = {each.name: given[each.name] for each in fields(cls) if each.name in given}
        return cls(**own, language=language)

    @property
    def subject(self) -> str | None:
        """The text that identifies the question within its pack; None for most kinds."""
        return getattr(self, self.subject_field) if self.subject_field else None

    @property
    def cited_texts(self) -> Texts:
        """The sentences or contexts that a verdict may name; none for kinds without."""
        return getattr(self, self.cited) if self.cited else ()

    @property
    def context_sentences(self) -> Texts | None:
        """The sentences of the one context that the question is about; None for most kinds."""
        return self.cited_texts if self.judges_context else None

    def label_form(self) -> LabelForm | None:
        """Return the form for annotators; None for kinds that a label cannot answer (statements, free text, ...)."""
        if not self.asked:
            return None
        texts = tuple((name, as_text(getattr(self, own), numbered=own == "contexts")) for name, own in self.shown)
        labels, graded = self.form_labels, self.form_labels[0].isdecimal()
        return LabelForm(self.kind, self.asked, texts, labels, self.form_meanings, graded=graded)

    def verdict_of_label(self, label: str, *, evidence: bool = False) -> V:
        """Return the verdict that a label of the form means. It names no evidence; with `evidence`, it names all texts.

        Raises ValueError for a kind without a form.
        """
        del label, evidence
        raise ValueError(f"a {self.kind} question has no label form")

    def fault(self, verdict: V) -> str | None:
        """Return the problem with a verdict on this question, as the end of a sentence "your answer ..."; None if it is
        valid.

        Examples: an index out of range, or a verdict that contradicts itself. The sentence is sent to the judge in a
        re-ask. Here any verdict is valid.
        """
        del verdict
        return None

    @classmethod
    def reply_to(cls, version: int) -> ReplySchema | ListReplySchema | None:
        """Return the reply to the rubrics of this version."""
        return cls.reply if version == cls.rubric_version else cls.earlier_replies.get(version)

    @property
    def places(self) -> int:
        """The number of sentences or contexts that a reply may name; 0 for kinds without."""
        return len(getattr(self, self.cited)) if self.cited else 0  # asked often: no second property

    def reply_schema(self) -> Mapping[str, object]:
        """Return the JSON Schema of the reply to this question."""
        if self.reply is None:
            raise TypeError(f"a question of kind {self.kind!r} has no reply schema")
        return schema_of(self.reply, self.places)

    def weaker(self, verdict: V) -> V | None:
        """Return an invalid verdict without the evidence that is wrong, marked by its flag; None if it stays invalid.

        The decision of the verdict is kept.
        """
        if not isinstance(verdict, DecisionVerdict):
            return None
        given: Any = verdict  # evidence is a field of some kinds of verdicts, not of their base
        evidence: tuple[int, ...] = getattr(given, "evidence", ())
        kept = tuple(dict.fromkeys(each for each in evidence if verdict.positive and 0 <= each < self.places))
        try:
            weak: V = replace(given, evidence=kept, flag=flag_of(kept, needed=verdict.positive))
        except TypeError:  # a kind without evidence
            return None
        return weak if self.fault(weak) is None else None

    def normalize(self, verdict: V) -> V:
        """Return a verdict read from a reply with what only the question knows, such as the spelling of a label."""
        return verdict

    def guess(self) -> V:
        """Return a verdict of the likely structure, for dry runs. It never affects a key or a score."""
        raise TypeError(f"a question of kind {self.kind!r} has no guess")

    @classmethod
    def trial(cls) -> tuple[Self, Self]:
        """Return two questions to try out a judge; the second one is for judges that answer packs of the kind."""
        first, second = cls.trials
        return cls(*first), cls(*second)

    def synthetic(self, odds: Odds) -> V:
        """Return a seeded verdict for tests of metrics; it depends on the texts, not on the positions of contexts."""
        del odds
        return self.guess()

    def best(self) -> V:
        """Return the verdict that is best for the evaluated system, for the table of edge cases."""
        return self.guess()

    def worst(self) -> V:
        """Return the verdict that is worst for the evaluated system, or an empty list. Raises TypeError if none is."""
        made: Any = self.verdict
        if not issubclass(self.verdict, ListVerdict):
            raise TypeError(f"a question of kind {self.kind!r} has no worst verdict")
        empty: V = made(())
        return empty

    def better(self, verdict: V) -> Iterator[V]:
        """Yield better verdicts on this question than the given one; none for kinds without good and bad."""
        del verdict
        yield from ()

    def at(self, draw: int) -> Question[V]:
        """Return the same question for another draw."""
        return replace(self, draw=draw)


def _content(question: Question[Any]) -> bytes:
    """Return the hashed bytes: kind, language, then name and value of each field, every part preceded by its length."""
    pieces = [_opening(question.kind, question.language)]
    own, values = _content_fields(type(question))
    for (_, head, later), value in zip(own, values(question), strict=False):
        if later and not value:
            continue
        kind: object = value.__class__  # exact types: this runs for every question of a run
        if kind is str:
            pieces += (head, FRAME, TEXTS[value])
        elif kind is tuple:
            pieces += (head, FRAME, TUPLES[value])  # the only tuples that questions have are of texts
        else:
            pieces += (head, framed(repr(value).encode()))
    return b"".join(pieces)


@lru_cache(maxsize=256)
def _opening(kind: str, language: str) -> bytes:
    return framed(kind.encode(), language.encode())


@per_type
def _content_fields(question: type[Any]) -> tuple[list[tuple[str, bytes, bool]], attrgetter[tuple[Any, ...]]]:
    """Return the fields of the content, framed, True if omitted while empty, and what returns their values."""
    own = [each.name for each in fields(question) if each.compare and each.name not in {"role", "draw", "language"}]
    later = later_fields(question)
    return [(name, framed(name.encode()), name in later) for name in own], attrgetter(*own, "draw")


GUESSED_REASON: Final = "A reason of about one sentence, as judges write them."
"""The reason in a guessed verdict."""


@dataclass(frozen=True, slots=True)
class Pack:
    """Questions of one kind with equal shared fields, judged together in one conversation (2 to 10)."""

    questions: tuple[Question[Any], ...]

    @property
    def kind(self) -> str:
        """The kind of all its questions."""
        return self.questions[0].kind

    @property
    def content(self) -> bytes:
        """The digest of its questions in order."""
        return digest_of(b"pack", *(question.content for question in self.questions))


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


# -- questions that are answered yes or no, with numbered evidence for a yes or without any --

Y = TypeVar("Y", bound=YesNoVerdict)


def yes_no_schema(verdict: type[YesNoVerdict], *, pack_item: str = "") -> ReplySchema:
    """Return the schema of a reply: a reason, the decision and, if the verdict has evidence, the numbers of texts."""
    evidence = {"evidence": NUMBERS} if hasattr(verdict, "evidence") else {}
    properties = {"reason": TEXT, verdict.decided: FLAG, **evidence}
    return ReplySchema(properties, verdict.decided, verdict.from_reply, pack_item=pack_item)


@dataclass(frozen=True, slots=True)
class YesNoQuestion(Question[Y], Generic[Y]):
    """Base of questions with a `YesNoVerdict`. A yes names some of the cited texts, if the kind has such."""

    reply_tokens: ClassVar[int] = 256
    cited_as: ClassVar[str] = "evidence sentence"
    """The name of one of the cited texts in messages to the judge."""
    good: ClassVar[bool] = True
    """The decision that is best for the evaluated system."""

    def fault(self, verdict: Y) -> str | None:
        """See `Question.fault`: a yes needs evidence, and a no has none."""
        if not self.cited:
            return None
        if verdict.positive and not verdict.cited and not verdict.flag:
            return f"says {verdict.decided} but names no {self.cited_as}"
        if not verdict.positive and verdict.cited:
            return f"says not {verdict.decided} but names {self.cited_as}s"
        return evidence_fault(verdict.cited, self.places, self.cited_as.removeprefix("evidence "))

    def guess(self) -> Y:
        """Return the good decision, by the first text; a no if there is no text to name."""
        first = tuple(range(self.places))[:1]
        return self._decided(self.good and bool(first or not self.cited), first, GUESSED_REASON)

    def verdict_of_label(self, label: str, *, evidence: bool = False) -> Y:
        """Return the verdict that yes or no means. Raises ValueError for a kind without a form."""
        if not self.asked:
            return Question[Y].verdict_of_label(self, label)
        return self._decided(label == YES, evidence_of_label(label, self.cited_texts) if evidence else ())

    def best(self) -> Y:
        """Return the good decision, by all texts."""
        return self._decided(self.good, tuple(range(self.places)))

    def worst(self) -> Y:
        """Return the other decision."""
        return self._decided(not self.good)

    def better(self, verdict: Y) -> Iterator[Y]:
        """Yield the good decision by the first text that is not blank, if the given one is the other."""
        evidence = readable(self.cited_texts)[:1]
        if verdict.positive is not self.good and (evidence or not self.cited):
            yield self._decided(self.good, evidence)

    def _decided(self, decision: bool, evidence: tuple[int, ...] = (), reason: str = "") -> Y:  # noqa: FBT001  as `made`
        verdict: Any = self.verdict  # declared as the base of all verdicts
        made: Y = verdict.made(decision, evidence, reason)
        return made
