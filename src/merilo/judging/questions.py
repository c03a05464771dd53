"""The questions that a metric may ask: one frozen type per kind of question.

A question contains plain text that merilo has split and numbered, so a judge answers by index. Questions are
content-addressed: equal questions with equal role and draw have one answer in a run.

Every question has, in addition to its own fields:

- `role`: the judge to ask; `judge` unless a metric wants a second opinion;
- `draw`: 0 unless a repeated answer to the same question is wanted;
- `language`: the language of the rubric it is asked in (BCP 47 primary tag).

The module is long so that all kinds of questions can be compared in one place.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar, cast

from merilo.judging.digests import FRAME, digest_bytes, digest_of, digest_text, digest_texts, framed
from merilo.judging.verdicts import (
    AddressesVerdict,
    AnsweredVerdict,
    ChoiceVerdict,
    CompletionVerdict,
    EntitiesVerdict,
    Entity,
    MatrixVerdict,
    MentionsVerdict,
    NoncommittalVerdict,
    PartsVerdict,
    RelevanceVerdict,
    Statement,
    StatementsVerdict,
    SufficiencyLabel,
    SufficiencyVerdict,
    SupportLabel,
    SupportVerdict,
    TextsVerdict,
    UsefulnessVerdict,
    Verdict,
)

if TYPE_CHECKING:
    from typing import Any

V = TypeVar("V", bound=Verdict)

Texts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question(Generic[V]):
    """Base of all question types; subclasses are frozen dataclasses of texts, tuples of texts and numbers."""

    kind: ClassVar[str] = "question"
    verdict: ClassVar[type[Verdict]] = Verdict
    shared: ClassVar[frozenset[str]] = frozenset()
    """Fields at the beginning of a prompt that other questions of the kind may have in common; those of a pack
    always     do."""

    role: str = field(default="judge", kw_only=True)
    draw: int = field(default=0, kw_only=True)
    language: str = field(default="en", kw_only=True)

    @property
    def content(self) -> bytes:
        """The 16-byte digest of the question's kind, texts and language, without role, draw and unset later fields."""
        return digest_bytes(_content(self))

    @property
    def all_texts(self) -> Texts:
        """The question's texts in the order of its fields: the query or statement, then the texts it is judged by."""
        found: list[str] = []
        for name, _ in _content_fields(type(self)):
            value = getattr(self, name)
            if isinstance(value, str):
                found.append(value)
            elif isinstance(value, tuple):
                found += cast("Texts", value)  # the only tuples that questions have
        return tuple(found)

    def fault(self, verdict: V) -> str | None:
        """Return the problem with a verdict on this question, as the end of a sentence "your answer ..."; None if it is
        valid.

        Examples: an index out of range, or a verdict that contradicts itself. The sentence is sent to the judge in a
        re-ask.
        """
        raise TypeError(f"a question of kind {self.kind!r} has no rule for {type(verdict).__name__}")

    def guess(self) -> V:
        """Return a verdict of the likely structure, for dry runs. It never affects a key or a score."""
        raise TypeError(f"a question of kind {self.kind!r} has no guess")

    def at(self, draw: int) -> Question[V]:
        """Return the same question for another draw."""
        return replace(self, draw=draw)


def _content(question: Question[Any]) -> bytes:
    """Return the hashed bytes: kind, language, then name and value of each field, every part preceded by its length."""
    pieces = [_opening(question.kind, question.language)]
    later = later_fields(type(question))
    for name, head in _content_fields(type(question)):
        value = getattr(question, name)
        if name in later and not value:
            continue
        if isinstance(value, str):
            pieces += (head, FRAME, digest_text(value))
        elif isinstance(value, tuple):
            pieces += (head, FRAME, digest_texts(cast("Texts", value)))  # the only tuples that questions have
        else:
            pieces += (head, framed(repr(value).encode()))
    return b"".join(pieces)


@lru_cache(maxsize=256)
def _opening(kind: str, language: str) -> bytes:
    return framed(kind.encode(), language.encode())


_LATER: Final = {"later": True}
"""Metadata of a field that was added to a released question type, with an empty value as its default.

Such a field is hashed and stored only if it is set, so that questions asked before have the same keys and records.
"""


def later_fields(question: type[Question[Any]]) -> frozenset[str]:
    """Return the names of the fields that digests and records omit while they are empty."""
    found = _LATER_FIELDS.get(question)
    if found is None:
        names = (each.name for each in fields(question) if each.metadata.get("later"))
        found = _LATER_FIELDS[question] = frozenset(names)
    return found


_LATER_FIELDS: dict[type, frozenset[str]] = {}
_FIELDS: dict[type, tuple[tuple[str, bytes], ...]] = {}


def _content_fields(question: type[Question[Any]]) -> tuple[tuple[str, bytes], ...]:
    """Return the fields that are content, each with its framed name."""
    found = _FIELDS.get(question)
    if found is None:
        names = [f.name for f in fields(question) if f.compare and f.name not in {"role", "draw", "language"}]
        found = _FIELDS[question] = tuple((name, framed(name.encode())) for name in names)
    return found


def _fold(text: str) -> str:
    """Return the text without differences of case and white space."""
    return " ".join(text.split()).casefold()


def _outside(index: int, size: int, unit: str) -> str | None:
    if 0 <= index < size:
        return None
    return f"names {unit} {index + 1}, but there are {size}, numbered from 1"


def _evidence_fault(evidence: tuple[int, ...], size: int, unit: str) -> str | None:
    for index in evidence:
        if (fault := _outside(index, size, unit)) is not None:
            return fault
    if len(evidence) > 1 and len(set(evidence)) != len(evidence):
        return f"names the same {unit} twice"
    return None


@dataclass(frozen=True, slots=True)
class Relevance(Question[RelevanceVerdict]):
    """Question: how well does this context, as numbered sentences, help to answer the user input?"""

    kind: ClassVar[str] = "relevance"
    verdict: ClassVar[type[Verdict]] = RelevanceVerdict

    user_input: str
    sentences: Texts

    def fault(self, verdict: RelevanceVerdict) -> str | None:
        """See `Question.fault`."""
        if verdict.grade not in {0, 1, 2}:
            return f"has the grade {verdict.grade}; a grade is 0, 1 or 2"
        if verdict.grade and not verdict.evidence:
            return f"has the grade {verdict.grade} but names no evidence sentence"
        if not verdict.grade and verdict.evidence:
            return "has the grade 0 but names evidence sentences"
        return _evidence_fault(verdict.evidence, len(self.sentences), "sentence")

    def guess(self) -> RelevanceVerdict:
        """Return a middle grade, based on the first sentence."""
        return RelevanceVerdict(grade=1, evidence=(0,), reason=_GUESSED_REASON)


@dataclass(frozen=True, slots=True)
class Usefulness(Question[UsefulnessVerdict]):
    """Question: does this context, as numbered sentences, help to arrive at the reference answer?"""

    kind: ClassVar[str] = "usefulness"
    verdict: ClassVar[type[Verdict]] = UsefulnessVerdict

    user_input: str
    reference: str
    sentences: Texts

    def fault(self, verdict: UsefulnessVerdict) -> str | None:
        """See `Question.fault`."""
        if verdict.useful and not verdict.evidence:
            return "says useful but names no evidence sentence"
        if not verdict.useful and verdict.evidence:
            return "says not useful but names evidence sentences"
        return _evidence_fault(verdict.evidence, len(self.sentences), "sentence")

    def guess(self) -> UsefulnessVerdict:
        """Return useful, based on the first sentence."""
        return UsefulnessVerdict(useful=True, evidence=(0,), reason=_GUESSED_REASON)


@dataclass(frozen=True, slots=True)
class Statements(Question[StatementsVerdict]):
    """Question: which standalone statements does this text, as numbered sentences, make?"""

    kind: ClassVar[str] = "statements"
    verdict: ClassVar[type[Verdict]] = StatementsVerdict

    sentences: Texts
    user_input: str = ""
    """The question that the text answers, so that "In 1889." can become a full statement; empty if there is none."""

    def fault(self, verdict: StatementsVerdict) -> str | None:
        """See `Question.fault`."""
        size = len(self.sentences)
        for statement in verdict.statements:
            if (fault := _outside(statement.sentence, size, "sentence")) is not None:
                return fault
            if not statement.text.strip():
                return "holds a blank statement"
        return None

    def guess(self) -> StatementsVerdict:
        """Return one statement per sentence."""
        return StatementsVerdict(tuple(Statement(text, i) for i, text in enumerate(self.sentences)))


@dataclass(frozen=True, slots=True)
class Support(Question[SupportVerdict]):
    """Question: do these numbered contexts support the statement, and which of them?"""

    kind: ClassVar[str] = "support"
    verdict: ClassVar[type[Verdict]] = SupportVerdict
    shared: ClassVar[frozenset[str]] = frozenset({"contexts"})

    statement: str
    contexts: Texts

    def fault(self, verdict: SupportVerdict) -> str | None:
        """See `Question.fault`."""
        named, label = bool(verdict.evidence), verdict.label
        if label in {SupportLabel.SUPPORTED, SupportLabel.CONTRADICTED} and not named:
            return f"says {label.value} but names no context"
        if label in {SupportLabel.NOT_STATED, SupportLabel.UNSUPPORTED} and named:
            return f"says {label.value} but names contexts"
        if label is SupportLabel.UNSUPPORTED and verdict.tells_contradicted:
            return "says unsupported, which is for judges that do not tell contradicted from not stated"
        if label is SupportLabel.CONTRADICTED and not verdict.tells_contradicted:
            return "says contradicted, though it is marked as not telling that"
        return _evidence_fault(verdict.evidence, len(self.contexts), "context")

    def guess(self) -> SupportVerdict:
        """Return supported, based on the first context."""
        return SupportVerdict(SupportLabel.SUPPORTED, evidence=(0,), reason=_GUESSED_REASON)


@dataclass(frozen=True, slots=True)
class Sufficiency(Question[SufficiencyVerdict]):
    """Question: do these contexts together contain enough to answer the user input?"""

    kind: ClassVar[str] = "sufficiency"
    verdict: ClassVar[type[Verdict]] = SufficiencyVerdict
    shared: ClassVar[frozenset[str]] = frozenset({"contexts"})

    user_input: str
    contexts: Texts

    def fault(self, verdict: SufficiencyVerdict) -> str | None:
        """See `Question.fault`: a sufficient verdict that names something missing contradicts itself."""
        if verdict.label is SufficiencyLabel.SUFFICIENT and verdict.missing.strip():
            return "says sufficient but names something missing"
        return None

    def guess(self) -> SufficiencyVerdict:
        """Return partly sufficient."""
        return SufficiencyVerdict(SufficiencyLabel.PARTLY, missing=_GUESSED_REASON, reason=_GUESSED_REASON)


@dataclass(frozen=True, slots=True)
class Addresses(Question[AddressesVerdict]):
    """Question: does this statement of the response address what the user input asks?"""

    kind: ClassVar[str] = "addresses"
    verdict: ClassVar[type[Verdict]] = AddressesVerdict
    shared: ClassVar[frozenset[str]] = frozenset({"user_input"})

    statement: str
    user_input: str

    def fault(self, verdict: AddressesVerdict) -> str | None:
        """See `Question.fault`; every verdict of this type is valid."""
        del verdict
        return None

    def guess(self) -> AddressesVerdict:
        """Return that it does."""
        return AddressesVerdict(addresses=True, reason=_GUESSED_REASON)


@dataclass(frozen=True, slots=True)
class Noncommittal(Question[NoncommittalVerdict]):
    """Question: does this response evade or decline to answer the user input?"""

    kind: ClassVar[str] = "noncommittal"
    verdict: ClassVar[type[Verdict]] = NoncommittalVerdict

    user_input: str
    response: str

    def fault(self, verdict: NoncommittalVerdict) -> str | None:
        """See `Question.fault`; every verdict of this type is valid."""
        del verdict
        return None

    def guess(self) -> NoncommittalVerdict:
        """Return that it answers."""
        return NoncommittalVerdict(noncommittal=False, reason=_GUESSED_REASON)


@dataclass(frozen=True, slots=True)
class Parts(Question[PartsVerdict]):
    """Question: what does this user input ask for, part by part?"""

    kind: ClassVar[str] = "parts"
    verdict: ClassVar[type[Verdict]] = PartsVerdict

    user_input: str

    def fault(self, verdict: PartsVerdict) -> str | None:
        """See `Question.fault`."""
        return None if all(part.strip() for part in verdict.parts) else "holds a blank part"

    def guess(self) -> PartsVerdict:
        """Return the whole input as one part; no part if it is blank."""
        return PartsVerdict((self.user_input,) if self.user_input.strip() else ())


@dataclass(frozen=True, slots=True)
class Answered(Question[AnsweredVerdict]):
    """Question: does this response, as numbered sentences, answer one part of the user input?"""

    kind: ClassVar[str] = "answered"
    verdict: ClassVar[type[Verdict]] = AnsweredVerdict
    shared: ClassVar[frozenset[str]] = frozenset({"sentences", "user_input"})

    part: str
    sentences: Texts
    user_input: str

    def fault(self, verdict: AnsweredVerdict) -> str | None:
        """See `Question.fault`."""
        if verdict.answered and not verdict.evidence:
            return "says answered but names no evidence sentence"
        if not verdict.answered and verdict.evidence:
            return "says not answered but names evidence sentences"
        return _evidence_fault(verdict.evidence, len(self.sentences), "sentence")

    def guess(self) -> AnsweredVerdict:
        """Return answered by the first sentence; not answered if there is none."""
        return AnsweredVerdict(bool(self.sentences), tuple(range(len(self.sentences)))[:1], _GUESSED_REASON)


@dataclass(frozen=True, slots=True)
class Entities(Question[EntitiesVerdict]):
    """Question: which entities (people, places, organisations, works, dates, amounts ...) do these numbered sentences
    name?
    """

    kind: ClassVar[str] = "entities"
    verdict: ClassVar[type[Verdict]] = EntitiesVerdict

    sentences: Texts

    def fault(self, verdict: EntitiesVerdict) -> str | None:
        """See `Question.fault`: an entity occurs in its sentence, except for case and white space."""
        size = len(self.sentences)
        for entity in verdict.entities:
            if (fault := _outside(entity.sentence, size, "sentence")) is not None:
                return fault
            if not entity.text.strip():
                return "holds a blank entity"
            if _fold(entity.text) not in _fold(self.sentences[entity.sentence]):
                return f"names {entity.text!r}, which does not stand in sentence {entity.sentence + 1}"
        return None

    def guess(self) -> EntitiesVerdict:
        """Return the first word of each sentence."""
        words = ((sentence.split(), index) for index, sentence in enumerate(self.sentences))
        return EntitiesVerdict(tuple(Entity(found[0], index) for found, index in words if found))


@dataclass(frozen=True, slots=True)
class Mentions(Question[MentionsVerdict]):
    """Question: do these numbered contexts mention the entity of this name, in whatever form, and which of them?"""

    kind: ClassVar[str] = "mentions"
    verdict: ClassVar[type[Verdict]] = MentionsVerdict
    shared: ClassVar[frozenset[str]] = frozenset({"contexts"})

    name: str
    contexts: Texts

    def fault(self, verdict: MentionsVerdict) -> str | None:
        """See `Question.fault`."""
        if verdict.mentioned and not verdict.evidence:
            return "says mentioned but names no context"
        if not verdict.mentioned and verdict.evidence:
            return "says not mentioned but names contexts"
        return _evidence_fault(verdict.evidence, len(self.contexts), "context")

    def guess(self) -> MentionsVerdict:
        """Return mentioned by the first context; not mentioned if there is none."""
        return MentionsVerdict(bool(self.contexts), tuple(range(len(self.contexts)))[:1], _GUESSED_REASON)


@dataclass(frozen=True, slots=True)
class Choice(Question[ChoiceVerdict]):
    """Question: which label of a closed list fits these texts, by a user-defined instruction?"""

    kind: ClassVar[str] = "choice"
    verdict: ClassVar[type[Verdict]] = ChoiceVerdict

    instruction: str
    labels: Texts
    definitions: Texts
    """Meaning of each label, in the order of the labels; blank if the label is clear without one."""
    names: Texts
    """Name of each text, such as "response"."""
    values: Texts
    """The texts to judge, in the order of their names."""

    def fault(self, verdict: ChoiceVerdict) -> str | None:
        """See `Question.fault`."""
        if verdict.label in self.labels:
            return None
        return f"has the label {verdict.label!r}; it must be one of {', '.join(map(repr, self.labels))}"

    def guess(self) -> ChoiceVerdict:
        """Return the first label."""
        return ChoiceVerdict(self.labels[0], reason=_GUESSED_REASON)


@dataclass(frozen=True, slots=True)
class Completion(Question[CompletionVerdict]):
    """A free-text reply to a rubric filled with values, for published metrics that parse it themselves.

    `temperature` overrides the judge's own. Several samples are the draws 0..n-1 of one question. `earlier`: the turns
    after the rubric, alternating a reply and its problem, to re-ask. `schema`: a JSON Schema, as its JSON text, that
    the provider is asked to enforce; empty for free text.
    """

    kind: ClassVar[str] = "completion"
    verdict: ClassVar[type[Verdict]] = CompletionVerdict

    rubric: str
    names: Texts
    values: Texts
    temperature: float | None = None
    earlier: Texts = field(default=(), kw_only=True, metadata=_LATER)
    schema: str = field(default="", kw_only=True, metadata=_LATER)
    likely: str = field(default="", compare=False, kw_only=True)
    """A reply of the likely structure, for dry runs; not part of the content."""

    def __post_init__(self) -> None:
        if self.temperature is not None:  # 1 and 1.0 are equal, so they must give the same key
            object.__setattr__(self, "temperature", float(self.temperature))

    def fault(self, verdict: CompletionVerdict) -> str | None:
        """See `Question.fault`; any text is valid."""
        del verdict
        return None

    def guess(self) -> CompletionVerdict:
        """Return the likely reply, or some text."""
        return CompletionVerdict(self.likely or _GUESSED_REASON)


@dataclass(frozen=True, slots=True)
class Sentences(Question[TextsVerdict]):
    """The sentences of a text as an external splitter finds them, for published metrics that count these sentences.

    `splitter` names it, for example `pysbd`.
    """

    kind: ClassVar[str] = "sentences"
    verdict: ClassVar[type[Verdict]] = TextsVerdict

    text: str
    splitter: str

    def fault(self, verdict: TextsVerdict) -> str | None:
        """See `Question.fault`; any pieces are valid."""
        del verdict
        return None

    def guess(self) -> TextsVerdict:
        """Return the whole text as one sentence; none if it is blank."""
        return TextsVerdict((self.text,) if self.text.strip() else ())


@dataclass(frozen=True, slots=True)
class Embeddings(Question[MatrixVerdict]):
    """One vector per text; rows in the order of the texts."""

    kind: ClassVar[str] = "embeddings"
    verdict: ClassVar[type[Verdict]] = MatrixVerdict

    texts: Texts

    def fault(self, verdict: MatrixVerdict) -> str | None:
        """See `Question.fault`."""
        return _shape_fault(verdict, len(self.texts), None)

    def guess(self) -> MatrixVerdict:
        """Return unit vectors in one dimension."""
        return MatrixVerdict.of([[1.0] for _ in self.texts])


@dataclass(frozen=True, slots=True)
class Similarities(Question[MatrixVerdict]):
    """Similarity of each left text to each right text; one row per left text."""

    kind: ClassVar[str] = "similarities"
    verdict: ClassVar[type[Verdict]] = MatrixVerdict

    left: Texts
    right: Texts

    def fault(self, verdict: MatrixVerdict) -> str | None:
        """See `Question.fault`."""
        return _shape_fault(verdict, len(self.left), len(self.right))

    def guess(self) -> MatrixVerdict:
        """Return similarity 1 for all pairs."""
        return MatrixVerdict.of([[1.0] * len(self.right) for _ in self.left])


def _shape_fault(verdict: MatrixVerdict, rows: int, columns: int | None) -> str | None:
    if verdict.rows != rows or (columns is not None and verdict.columns != columns):
        return f"is a matrix of {verdict.rows} by {verdict.columns}, not {rows} by {columns or 'any'}"
    if len(verdict.data) != 4 * verdict.rows * verdict.columns:
        return "holds a matrix whose bytes do not match its shape"
    return None


_GUESSED_REASON = "A reason of about one sentence, as judges write them."

KINDS: dict[str, type[Question[Any]]] = {
    kind.kind: kind
    for kind in (
        Relevance,
        Usefulness,
        Statements,
        Support,
        Sufficiency,
        Addresses,
        Noncommittal,
        Parts,
        Answered,
        Entities,
        Mentions,
        Choice,
        Completion,
        Sentences,
        Embeddings,
        Similarities,
    )
}
"""Every question type by its kind."""
ALL_KINDS: Final = frozenset(KINDS.values())
"""Every question type."""

_KIND_OF: Final = {kind.verdict: name for name, kind in reversed(KINDS.items())}
ANSWERING: Final = frozenset(_KIND_OF)
"""The verdict types that answer some question."""


def kind_of(verdict: Verdict) -> str:
    """Return the kind of question that a verdict of this type answers; the first in KINDS if there are several."""
    return _KIND_OF[type(verdict)]


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
