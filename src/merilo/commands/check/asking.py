"""The questions about a labelled record, the same that merilo's metrics ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.data.labels import Task
from merilo.data.prose import unnumbered
from merilo.data.sample import Sample
from merilo.data.sentences import sentences
from merilo.data.short_answers import stated, taken_apart
from merilo.judging.ask import ask_each
from merilo.judging.decisions import is_positive
from merilo.judging.kinds.addresses import Addresses
from merilo.judging.kinds.relevance import Relevance
from merilo.judging.kinds.sufficiency import Sufficiency
from merilo.judging.kinds.support import Support
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
            Evidence(about, index, verdict, getattr(question, "statement", ""))
            for index, (question, verdict) in enumerate(zip(questions, verdicts, strict=True))
        )
        return Score(sum(map(is_positive, verdicts)) / len(verdicts), evidence=evidence)

    def questions(self, sample: Sample) -> Asked:
        """Return the questions that `plan` asks; empty if a text is blank."""
        return _each_sentence(sample) if self.alone else _QUESTIONS[self.task](sample)


def sample_of(record: Labelled) -> Sample:
    """Return the texts of a record as a sample, without its label.

    Each labelled sentence becomes a separate context, so that it stays as annotators saw it.
    """
    return Sample(
        record.id,
        user_input=record.query if record.query or record.task in _WITH_QUERY else None,
        retrieved_contexts=record.texts or None,
        response=record.response if record.task in _WITH_RESPONSE else None,
        language=record.language,
    )


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

KIND: Final[Mapping[Task, type[Question[Any]]]] = {
    Task.CHUNK_RELEVANCE: Relevance,
    Task.SENTENCE_RELEVANCE: Relevance,
    Task.SUFFICIENCY: Sufficiency,
    Task.GROUNDEDNESS: Support,
    Task.NLI: Support,
    Task.ANSWER_RELEVANCE: Addresses,
}
"""Task → the kind of question that is asked for it."""


def _chunk(sample: Sample) -> Asked:
    """Return one question per context; a labelled record has one context."""
    user_input, language = sample.require("user_input"), sample.resolved_language
    if is_blank(user_input):
        return ()
    contexts = [context for context in sample.contexts if not is_blank(context)]
    return tuple(Relevance(user_input, context.sentences, language=language) for context in contexts)


def _evidence_sentences(sample: Sample) -> Asked:
    """Return one question about all sentences, split as annotators saw them."""
    user_input, texts = sample.require("user_input"), tuple(context.text for context in sample.contexts)
    if is_blank(user_input) or all(map(is_blank, texts)):
        return ()
    return (Relevance(user_input, texts, language=sample.resolved_language),)


def _each_sentence(sample: Sample) -> Asked:
    user_input = sample.require("user_input")
    if is_blank(user_input):
        return ()
    language = sample.resolved_language
    return tuple(Relevance(user_input, (context.text,), language=language) for context in sample.contexts)


def _sufficiency(sample: Sample) -> Asked:
    user_input, texts = sample.require("user_input"), tuple(context.text for context in sample.contexts)
    if is_blank(user_input) or all(map(is_blank, texts)):
        return ()
    return (Sufficiency(user_input, texts, language=sample.resolved_language),)


def _groundedness(sample: Sample) -> Asked:
    """Return one question per sentence of the response; a short answer and its question form one statement."""
    texts, language = tuple(context.text for context in sample.contexts), sample.resolved_language
    return tuple(Support(each, texts, language=language) for each in _statements(sample))


def _nli(sample: Sample) -> Asked:
    statement, texts = sample.require("response"), tuple(context.text for context in sample.contexts)
    if is_blank(statement):
        return ()
    if taken_apart(statement) is not None:  # it is one statement in paragraphs, not a question with its answer
        statement = "\n".join(line for line in statement.split("\n") if line.strip())
    return (Support(statement, texts, language=sample.resolved_language),)


def _answer(sample: Sample) -> Asked:
    user_input, language = sample.require("user_input"), sample.resolved_language
    parts = [each for each in sample.sentences("response") if not is_blank(each)]
    return tuple(Addresses(each, user_input, language=language) for each in parts)


def _statements(sample: Sample) -> tuple[str, ...]:
    response, language = sample.require("response"), sample.resolved_language
    whole = stated(response, sample.user_input, language)
    if whole is not None:
        return (whole,)
    return tuple(each for each in unnumbered(sentences(response, sample.language), language) if not is_blank(each))


_QUESTIONS: Final[Mapping[Task, Callable[[Sample], Asked]]] = {
    Task.CHUNK_RELEVANCE: _chunk,
    Task.SENTENCE_RELEVANCE: _evidence_sentences,
    Task.SUFFICIENCY: _sufficiency,
    Task.GROUNDEDNESS: _groundedness,
    Task.NLI: _nli,
    Task.ANSWER_RELEVANCE: _answer,
}
