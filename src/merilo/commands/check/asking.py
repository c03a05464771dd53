"""The questions about a labelled record, the same that merilo's metrics ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from merilo.data.identification import with_identified_language
from merilo.data.labels import Task
from merilo.data.prose import unnumbered
from merilo.data.sample import Sample
from merilo.data.sentences import sentences
from merilo.data.short_answers import stated, taken_apart
from merilo.judging.ask import ask_each
from merilo.judging.decisions import is_positive
from merilo.judging.registry import KINDS
from merilo.metrics.base import Card, Evidence, EvidenceTarget, Kinds, MetricDefaults, Score, Undefined
from merilo.metrics.steps import is_blank

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.data.labels import Labelled
    from merilo.judging.ask import Plan
    from merilo.judging.questions import Question

    Asked = tuple[Question[Any], ...]

_BLANK: Final = "a text to be judged is blank"


@dataclass(frozen=True, slots=True)
class JudgedAsLabelled(MetricDefaults):
    """The verdicts on one labelled record, as evidence; the value is the fraction of them that are positive.

    It exists only for its verdicts: it does not measure a RAG system and is in no registry. Undefined if a text is
    blank.
    """

    name: ClassVar[str] = "judged_as_labelled"
    version: ClassVar[int] = 1
    card: ClassVar[Card] = Card(summary="Verdicts of a judge on a record with human labels.")

    task: Task
    alone: bool = False
    """Ask about each sentence alone, instead of all in one question; for `sentence_relevance`."""

    @property
    def needs(self) -> frozenset[str]:
        """The fields that `sample_of` fills for the task."""
        return _NEEDS[self.task]

    @property
    def asks(self) -> Kinds:
        """The one kind of question that fits the task."""
        return Kinds({KIND[self.task]})

    def max_questions(self, sample: Sample) -> int:
        """Return the number of questions that `plan` asks."""
        return len(self.questions(sample)) if self.needs <= sample.present else 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        questions = self.questions(sample)
        if not questions:
            return Undefined(_BLANK)
        verdicts = yield from ask_each(questions)
        about = EvidenceTarget.CONTEXT if self.alone else _ABOUT[self.task]
        evidence = tuple(
            Evidence(about, index, verdict, question.subject or "")
            for index, (question, verdict) in enumerate(zip(questions, verdicts, strict=True))
        )
        return Score(sum(map(is_positive, verdicts)) / len(verdicts), evidence=evidence)

    def questions(self, sample: Sample) -> Asked:
        """Return the questions that `plan` asks; empty if a text is blank."""
        texts = _each_sentence(sample) if self.alone else _TEXTS[self.task](sample)
        kind, user_input, language = KIND[self.task], sample.user_input or "", sample.resolved_language
        return tuple(
            kind.of_texts(each.texts, user_input=user_input, statement=each.statement, language=language)
            for each in texts
        )


def sample_of(record: Labelled) -> Sample:
    """Return the texts of a record as a sample, without its label.

    Each labelled sentence becomes a separate context, so that it stays as annotators saw it.
    """
    sample = Sample(
        record.id,
        user_input=record.query if record.query or record.task in _WITH_QUERY else None,
        retrieved_contexts=record.texts or None,
        response=record.response if record.task in _WITH_RESPONSE else None,
        language=record.language,
    )
    return with_identified_language(sample)


_WITH_QUERY: Final = frozenset({Task.CHUNK_RELEVANCE, Task.SENTENCE_RELEVANCE, Task.SUFFICIENCY, Task.ANSWER_RELEVANCE})
_WITH_RESPONSE: Final = frozenset({Task.GROUNDEDNESS, Task.NLI, Task.ANSWER_RELEVANCE})

_NEEDS: Final[Mapping[Task, frozenset[str]]] = {
    Task.CHUNK_RELEVANCE: frozenset({"user_input", "retrieved_contexts"}),
    Task.SENTENCE_RELEVANCE: frozenset({"user_input", "retrieved_contexts"}),
    Task.SUFFICIENCY: frozenset({"user_input", "retrieved_contexts"}),
    Task.GROUNDEDNESS: frozenset({"retrieved_contexts", "response"}),
    Task.NLI: frozenset({"retrieved_contexts", "response"}),
    Task.ANSWER_RELEVANCE: frozenset({"user_input", "response"}),
}

_ABOUT: Final[Mapping[Task, EvidenceTarget]] = {
    Task.CHUNK_RELEVANCE: EvidenceTarget.CONTEXT,
    Task.SENTENCE_RELEVANCE: EvidenceTarget.TEXT,
    Task.SUFFICIENCY: EvidenceTarget.TEXT,
    Task.GROUNDEDNESS: EvidenceTarget.STATEMENT,
    Task.NLI: EvidenceTarget.STATEMENT,
    Task.ANSWER_RELEVANCE: EvidenceTarget.STATEMENT,
}

KIND: Final[Mapping[Task, type[Question[Any]]]] = {Task(each): kind for kind in KINDS.values() for each in kind.tasks}
"""Task → the kind of question that is asked for it."""


class _Texts(NamedTuple):
    """The texts of one question."""

    texts: tuple[str, ...]
    statement: str = ""


def _chunk(sample: Sample) -> list[_Texts]:
    """Return one question per context; a labelled record has one context."""
    if is_blank(sample.require("user_input")):
        return []
    return [_Texts(context.sentences) for context in sample.contexts if not is_blank(context)]


def _contexts(sample: Sample) -> list[_Texts]:
    """Return one question about all contexts, or about all sentences as annotators saw them."""
    user_input, texts = sample.require("user_input"), _all(sample)
    return [] if is_blank(user_input) or all(map(is_blank, texts)) else [_Texts(texts)]


def _each_sentence(sample: Sample) -> list[_Texts]:
    user_input = sample.require("user_input")
    return [] if is_blank(user_input) else [_Texts((text,)) for text in _all(sample)]


def _groundedness(sample: Sample) -> list[_Texts]:
    """Return one question per sentence of the response; a short answer and its question form one statement."""
    texts = _all(sample)
    return [_Texts(texts, each) for each in _statements(sample)]


def _nli(sample: Sample) -> list[_Texts]:
    statement = sample.require("response")
    if is_blank(statement):
        return []
    if taken_apart(statement) is not None:  # it is one statement in paragraphs, not a question with its answer
        statement = "\n".join(line for line in statement.split("\n") if line.strip())
    return [_Texts(_all(sample), statement)]


def _answer(sample: Sample) -> list[_Texts]:
    sample.require("user_input")
    return [_Texts((), each) for each in sample.sentences("response") if not is_blank(each)]


def _all(sample: Sample) -> tuple[str, ...]:
    return tuple(context.text for context in sample.contexts)


def _statements(sample: Sample) -> tuple[str, ...]:
    response, language = sample.require("response"), sample.resolved_language
    whole = stated(response, sample.user_input, language)
    if whole is not None:
        return (whole,)
    return tuple(each for each in unnumbered(sentences(response, sample.language), language) if not is_blank(each))


_TEXTS: Final[Mapping[Task, Callable[[Sample], list[_Texts]]]] = {
    Task.CHUNK_RELEVANCE: _chunk,
    Task.SENTENCE_RELEVANCE: _contexts,
    Task.SUFFICIENCY: _contexts,
    Task.GROUNDEDNESS: _groundedness,
    Task.NLI: _nli,
    Task.ANSWER_RELEVANCE: _answer,
}
