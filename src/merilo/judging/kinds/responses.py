"""Questions and verdicts about responses and other texts: statements, parts, labels, entities and what they say."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Self

from merilo.judging import reply_fields
from merilo.judging.json_extraction import JsonShape, ReplyParseError
from merilo.judging.questions import (
    GUESSED_REASON,
    LabelForm,
    Question,
    Texts,
    YesNoQuestion,
    YesNoVerdict,
    yes_no_schema,
)
from merilo.judging.reply_fields import TEXT, TEXT_OF_SENTENCE, Fields, ListReplySchema, ReplySchema, object_schema
from merilo.judging.synthetic import CONTEXT, OTHER, RESPONSE, SENTENCES, USER_INPUT, Odds
from merilo.judging.verdicts import LATER, ListVerdict, Verdict, index_fault

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class AddressesVerdict(YesNoVerdict):
    """Verdict on a statement of the response: does it address the user input?"""

    decided = "addresses"
    yes = "addresses the question"
    words = ("does not address the question", "addresses the question")

    addresses: bool
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Addresses(YesNoQuestion[AddressesVerdict]):
    """Question: does this statement of the response address what the user input asks?"""

    kind = "addresses"
    verdict = AddressesVerdict
    reply = yes_no_schema(AddressesVerdict, pack_item="statement")
    tasks = ("answer_relevance",)
    shared = frozenset({"user_input"})
    subject_field = "statement"
    asked = "Does this statement address what the user input asks?"
    shown = (("user_input", "user_input"), ("statement", "statement"))
    trials = ((RESPONSE, USER_INPUT), (OTHER, USER_INPUT))

    statement: str
    user_input: str

    def synthetic(self, odds: Odds) -> AddressesVerdict:
        return AddressesVerdict(odds.of(self.statement) < 0.6)


@dataclass(frozen=True, slots=True)
class AnsweredVerdict(YesNoVerdict):
    """Verdict on a response: does it answer one part of the user input?"""

    decided = "answered"
    yes = "answered"
    words = ("not answered", "answered")
    shown_evidence = "by sentence"

    answered: bool
    evidence: tuple[int, ...] = ()
    """Indices of the sentences that answer it; empty exactly if it is not answered."""
    reason: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Answered(YesNoQuestion[AnsweredVerdict]):
    """Question: does this response, as numbered sentences, answer one part of the user input?"""

    kind = "answered"
    verdict = AnsweredVerdict
    reply = yes_no_schema(AnsweredVerdict, pack_item="part")
    shared = frozenset({"sentences", "user_input"})
    subject_field = "part"
    cited = "sentences"
    asked = "Does the response answer this part of what was asked?"
    shown = (("user_input", "user_input"), ("part", "part"), ("response", "sentences"))
    trials = ((USER_INPUT, (RESPONSE,), USER_INPUT), ("Who built the Eiffel Tower?", (RESPONSE,), USER_INPUT))

    part: str
    sentences: Texts
    user_input: str

    def synthetic(self, odds: Odds) -> AnsweredVerdict:
        answered = odds.of(self.part, *self.sentences) < 0.6
        return AnsweredVerdict(answered, odds.some(self.sentences) if answered else ())


@dataclass(frozen=True, slots=True)
class NoncommittalVerdict(YesNoVerdict):
    """Verdict on a response: does it evade or decline to answer?"""

    decided = "noncommittal"
    yes = "declines"
    words = ("answers", "declines to answer")

    noncommittal: bool
    reason: str = ""
    probability: float | None = None

    as_label = Verdict.as_label  # there is no form for annotators


@dataclass(frozen=True, slots=True)
class Noncommittal(YesNoQuestion[NoncommittalVerdict]):
    """Question: does this response evade or decline to answer the user input?"""

    kind = "noncommittal"
    verdict = NoncommittalVerdict
    reply = yes_no_schema(NoncommittalVerdict)
    prepares = True
    good = False
    trials = ((USER_INPUT, RESPONSE), (USER_INPUT, "I do not know."))

    user_input: str
    response: str

    def synthetic(self, odds: Odds) -> NoncommittalVerdict:
        return NoncommittalVerdict(odds.of(self.response) < 0.1)


@dataclass(frozen=True, slots=True)
class PartsVerdict(ListVerdict):
    """The parts of a user input, each as a request that can be understood alone; empty if it asks for nothing."""

    listed = "parts"
    one = "part"

    parts: tuple[str, ...]
    probability: float | None = None

    @classmethod
    def from_reply(cls, items: list[object]) -> Self:
        return cls(tuple(reply_fields.item_text(item, "parts") for item in items))


@dataclass(frozen=True, slots=True)
class Parts(Question[PartsVerdict]):
    """Question: what does this user input ask for, part by part?"""

    kind = "parts"
    verdict = PartsVerdict
    reply_tokens = 512
    reply = ListReplySchema(JsonShape(("parts",)), TEXT, PartsVerdict.from_reply)
    prepares = True
    trials = ((USER_INPUT,), ("Good morning.",))

    user_input: str

    def fault(self, verdict: PartsVerdict) -> str | None:
        return None if all(part.strip() for part in verdict.parts) else "holds a blank part"

    def guess(self) -> PartsVerdict:
        """Return the whole input as one part; no part if it is blank."""
        return PartsVerdict((self.user_input,) if self.user_input.strip() else ())

    def synthetic(self, odds: Odds) -> PartsVerdict:
        size = int(4 * odds.of(self.user_input))
        return PartsVerdict(tuple(f"{self.user_input} ({part})" for part in range(size)))


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim that can be understood alone, and the index of the sentence that makes it."""

    text: str
    sentence: int


@dataclass(frozen=True, slots=True)
class StatementsVerdict(ListVerdict):
    """The standalone statements that a text makes; empty if it claims nothing."""

    listed = "statements"
    one = "statement"

    statements: tuple[Statement, ...]
    probability: float | None = None

    @classmethod
    def from_reply(cls, items: list[object]) -> Self:
        return cls(tuple(Statement(*reply_fields.text_of_sentence(item)) for item in items))


@dataclass(frozen=True, slots=True)
class Statements(Question[StatementsVerdict]):
    """Question: which standalone statements does this text, as numbered sentences, make?"""

    kind = "statements"
    verdict = StatementsVerdict
    reply = ListReplySchema(
        JsonShape(("statements", "sentence", "text"), item="text"), TEXT_OF_SENTENCE, StatementsVerdict.from_reply
    )
    prepares = True
    cited = "sentences"
    trials = (((RESPONSE,), USER_INPUT), ((OTHER,), USER_INPUT))

    sentences: Texts
    user_input: str = ""
    """The question that the text answers, so that "In 1889." can become a full statement; empty if there is none."""

    def fault(self, verdict: StatementsVerdict) -> str | None:
        size = len(self.sentences)
        for statement in verdict.statements:
            if (fault := index_fault(statement.sentence, size, "sentence")) is not None:
                return fault
            if not statement.text.strip():
                return "holds a blank statement"
        return None

    def guess(self) -> StatementsVerdict:
        """Return one statement per sentence."""
        return StatementsVerdict(tuple(Statement(text, i) for i, text in enumerate(self.sentences)))

    def synthetic(self, odds: Odds) -> StatementsVerdict:
        found: list[Statement] = []
        for place, sentence in enumerate(self.sentences):
            found.extend(Statement(f"{sentence} ({part})", place) for part in range(int(3.5 * odds.of(sentence))))
        if len(found) % 4 == 3:
            found.append(found[0])
        return StatementsVerdict(tuple(found))


@dataclass(frozen=True, slots=True)
class ChoiceVerdict(Verdict):
    """One label of the question's own list."""

    label: str
    reason: str = ""
    probability: float | None = None

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        label = fields.get("label")
        if isinstance(label, bool) or not isinstance(label, (str, int)):
            raise ReplyParseError(f'"label" must be a text, not {reply_fields.preview(label)}.')
        return cls(reply_fields.clean(str(label)), reason=reply_fields.text(fields, "reason"))

    def as_label(self) -> str:
        return self.label

    def in_words(self) -> str:
        return self.label


_REPLY: Final = ReplySchema({"reason": TEXT, "label": TEXT}, "label", ChoiceVerdict.from_reply)
_BRIEF: Final = ("Is the response brief?", ("yes", "no"), ("", ""), ("response",))


@dataclass(frozen=True, slots=True)
class Choice(Question[ChoiceVerdict]):
    """Question: which label of a closed list fits these texts, by a user-defined instruction?"""

    kind = "choice"
    verdict = ChoiceVerdict
    reply_tokens = 256
    reply = _REPLY
    trials = ((*_BRIEF, (RESPONSE,)), (*_BRIEF, (CONTEXT,)))

    instruction: str
    labels: Texts
    definitions: Texts
    """Meaning of each label, in the order of the labels; blank if the label is clear without one."""
    names: Texts
    """Name of each text, such as "response"."""
    values: Texts
    """The texts to judge, in the order of their names."""

    def reply_schema(self) -> Mapping[str, object]:
        """See `Question.reply_schema`: the labels are a closed list."""
        return object_schema({**_REPLY.properties, "label": {"type": "string", "enum": list(self.labels)}})

    def normalize(self, verdict: ChoiceVerdict) -> ChoiceVerdict:
        """Return the verdict with the one label that equals its own after folding of case, spaces and quotes."""
        matches = [label for label in self.labels if _plain(label) == _plain(verdict.label)]
        return replace(verdict, label=matches[0]) if verdict.label not in self.labels and len(matches) == 1 else verdict

    def fault(self, verdict: ChoiceVerdict) -> str | None:
        if verdict.label in self.labels:
            return None
        return f"has the label {verdict.label!r}; it must be one of {', '.join(map(repr, self.labels))}"

    def guess(self) -> ChoiceVerdict:
        """Return the first label."""
        return ChoiceVerdict(self.labels[0], reason=GUESSED_REASON)

    def label_form(self) -> LabelForm:
        pairs = zip(self.names, self.values, strict=True)
        shown = "\n\n".join(f"{name}:\n{text}" for name, text in pairs)
        texts = (("texts", shown),)
        return LabelForm(self.kind, self.instruction, texts, self.labels, self.definitions, ordered=False)

    def verdict_of_label(self, label: str, *, evidence: bool = False) -> ChoiceVerdict:
        del evidence
        return ChoiceVerdict(label)

    def synthetic(self, odds: Odds) -> ChoiceVerdict:
        chosen = odds.of(self.instruction, *sorted(self.values))
        return ChoiceVerdict(self.labels[int(len(self.labels) * chosen)])


def _plain(label: str) -> str:
    return re.sub(r"[\s_-]+", "_", label.strip(" \t\n\"'`.")).casefold()


@dataclass(frozen=True, slots=True)
class Entity:
    """Something that a text names, in the text's own words, and the index of its sentence."""

    text: str
    sentence: int


@dataclass(frozen=True, slots=True)
class EntitiesVerdict(ListVerdict):
    """The entities that a text names; empty if it names none."""

    listed = "entities"
    one = "entity"

    entities: tuple[Entity, ...]
    probability: float | None = None

    @classmethod
    def from_reply(cls, items: list[object]) -> Self:
        return cls(tuple(Entity(*reply_fields.text_of_sentence(item)) for item in items))


@dataclass(frozen=True, slots=True)
class Entities(Question[EntitiesVerdict]):
    """Question: which entities (people, places, organisations, works, dates, amounts ...) do these numbered sentences
    name?
    """

    kind = "entities"
    verdict = EntitiesVerdict
    reply = ListReplySchema(
        JsonShape(("entities", "sentence", "text"), item="text"), TEXT_OF_SENTENCE, EntitiesVerdict.from_reply
    )
    prepares = True
    cited = "sentences"
    trials = ((SENTENCES,), ((OTHER,),))

    sentences: Texts

    def fault(self, verdict: EntitiesVerdict) -> str | None:
        """See `Question.fault`: an entity occurs in its sentence, except for case and white space."""
        size = len(self.sentences)
        for entity in verdict.entities:
            if (fault := index_fault(entity.sentence, size, "sentence")) is not None:
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

    def synthetic(self, odds: Odds) -> EntitiesVerdict:
        words = ((word, place) for place, sentence in enumerate(self.sentences) for word in sentence.split())
        return EntitiesVerdict(tuple(Entity(*found) for found in words if odds.of(found[0]) < 0.3))


def _fold(text: str) -> str:
    """Return the text without differences of case and white space."""
    return " ".join(text.split()).casefold()


@dataclass(frozen=True, slots=True)
class CompletionVerdict(Verdict):
    """A reply as free text, for metrics that parse it themselves."""

    text: str
    probability: float | None = None

    def in_words(self) -> str:
        return f'"{self.text}"'


@dataclass(frozen=True, slots=True)
class Completion(Question[CompletionVerdict]):
    """A free-text reply to a rubric filled with values, for published metrics that parse it themselves.

    `temperature` overrides the judge's own. Several samples are the draws 0..n-1 of one question. `earlier`: the turns
    after the rubric, alternating a reply and its problem, to re-ask. `schema`: a JSON Schema, as its JSON text, that
    the provider is asked to enforce; empty for free text.
    """

    kind = "completion"
    verdict = CompletionVerdict

    rubric: str
    names: Texts
    values: Texts
    temperature: float | None = None
    earlier: Texts = field(default=(), kw_only=True, metadata=LATER)
    schema: str = field(default="", kw_only=True, metadata=LATER)
    likely: str = field(default="", compare=False, kw_only=True)
    """A reply of the likely structure, for dry runs; not part of the content."""

    def __post_init__(self) -> None:
        if self.temperature is not None:  # 1 and 1.0 are equal, so they must give the same key
            object.__setattr__(self, "temperature", float(self.temperature))

    def guess(self) -> CompletionVerdict:
        """Return the likely reply, or some text."""
        return CompletionVerdict(self.likely or GUESSED_REASON)

    @classmethod
    def trial(cls) -> tuple[Self, Self]:
        """See `Question.trial`; the second question is another draw of the first."""
        first = cls("en/noncommittal.v1", ("user_input", "response"), (USER_INPUT, RESPONSE))
        return first, replace(first, draw=1)


@dataclass(frozen=True, slots=True)
class PassageQuestionVerdict(Verdict):
    """A question that the passage answers, and its answer; both empty if the passage states no fact to ask about."""

    question: str
    answer: str
    probability: float | None = None

    @classmethod
    def from_reply(cls, fields: Fields) -> Self:
        return cls(
            reply_fields.item_text(fields.get("question"), "question"),
            reply_fields.item_text(fields.get("answer"), "answer"),
        )

    def in_words(self) -> str:
        return f'"{self.question}" ("{self.answer}")' if self.question else "no question"


@dataclass(frozen=True, slots=True)
class PassageQuestion(Question[PassageQuestionVerdict]):
    """Question: what would a user ask that this passage answers, and what is the answer?"""

    kind = "passage_question"
    verdict = PassageQuestionVerdict
    reply_tokens = 512
    reply = ReplySchema({"question": TEXT, "answer": TEXT}, "question", PassageQuestionVerdict.from_reply)
    prepares = True
    trials = ((CONTEXT, "Eiffel Tower"), (OTHER,))

    passage: str
    title: str = ""
    """The title of the document, which names what the passage is about; may be empty."""

    def fault(self, verdict: PassageQuestionVerdict) -> str | None:
        """See `Question.fault`: question and answer are both there, or both empty."""
        if bool(verdict.question.strip()) is bool(verdict.answer.strip()):
            return None
        return "gives a question without an answer, or an answer without a question"

    def guess(self) -> PassageQuestionVerdict:
        """Return a question and an answer of usual length."""
        return PassageQuestionVerdict(USER_INPUT, RESPONSE)

    def synthetic(self, odds: Odds) -> PassageQuestionVerdict:
        if odds.of(self.passage) < 0.2:
            return self.worst()
        return PassageQuestionVerdict(f"What is known of {self.passage[:40]}?", self.passage[:40] or "Nothing.")

    def worst(self) -> PassageQuestionVerdict:
        return PassageQuestionVerdict("", "")
