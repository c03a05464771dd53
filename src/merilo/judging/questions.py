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

from merilo.judging.digests import FRAME, TEXTS, TUPLES, digest_bytes, digest_of, framed
from merilo.judging.labels import YES_NO, LabelForm, as_text
from merilo.judging.reply_fields import schema_of
from merilo.judging.verdicts import LATER, DecisionVerdict, ListVerdict, Verdict, flag_of, later_fields, per_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from merilo.judging.reply_fields import ListReplySchema, ReplySchema
    from merilo.judging.synthetic import Odds

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
