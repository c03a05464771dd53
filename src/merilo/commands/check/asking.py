"""The items of a check as samples, and the one metric that asks about them.

An item is a trial question of a kind, a labelled record, or a pair of an original and an edited judgement. The
questions about the last two are those that merilo's metrics ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, cast

from merilo.data.identification import with_identified_language
from merilo.data.labels import Task
from merilo.data.prose import unnumbered
from merilo.data.sample import Sample
from merilo.data.sentences import sentences
from merilo.data.short_answers import stated, taken_apart
from merilo.judging.ask import ask_each
from merilo.judging.registry import KINDS
from merilo.judging.verdicts import is_positive
from merilo.metrics.base import Card, Evidence, EvidenceTarget, Kinds, MetricDefaults, Score, Undefined
from merilo.metrics.steps import is_blank

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.data.labels import Labelled
    from merilo.judging.ask import Plan
    from merilo.judging.questions import Question

    Asked = tuple[Question[Any], ...]

TRIAL: Final = "trial"


@dataclass(frozen=True, slots=True)
class CheckedVerdicts(MetricDefaults):
    """The verdicts on one item of a check, as evidence; the value is the fraction of them that are positive.

    It exists only for its verdicts: it does not measure a RAG system and is in no registry.
    """

    name: ClassVar[str] = "judge_check"
    version: ClassVar[int] = 1
    card: ClassVar[Card] = Card(summary="Verdicts of a judge on the items of a check.")
    needs = frozenset[str]()

    kinds: str = "+".join(KINDS)
    """The kinds of question among the items, joined by `+`."""

    @property
    def asks(self) -> Kinds:
        """The kinds of question."""
        return Kinds(KINDS[each] for each in self.kinds.split("+"))

    def max_questions(self, sample: Sample) -> int:
        """Return the number of questions that `plan` asks."""
        return len(questions_of(sample))

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        questions = questions_of(sample)
        if not questions:
            return Undefined("a text to be judged is blank")
        verdicts = yield from ask_each(questions)
        if TRIAL in sample.metadata:
            return Score(1.0, evidence=(Evidence(EvidenceTarget.TEXT, 0, verdicts[0]),))
        about = _ABOUT.get(str(sample.metadata.get("task")), EvidenceTarget.STATEMENT)
        evidence = tuple(
            Evidence(about, index, verdict, question.subject or "")
            for index, (question, verdict) in enumerate(zip(questions, verdicts, strict=True))
        )
        return Score(sum(map(is_positive, verdicts)) / len(verdicts), evidence=evidence)


def questions_of(sample: Sample) -> Asked:
    """Return the questions about an item; empty if a text is blank, or for a sample of another origin."""
    kind, task, versions = (sample.metadata.get(name) for name in (TRIAL, "task", "versions"))
    if kind is not None:
        first, second = KINDS[str(kind)].trial()
        return (first, second) if sample.metadata.get("pair") else (first,)
    if versions is not None:
        return _edited_questions(sample, cast("list[dict[str, Any]]", versions))  # what `edit_sample` wrote
    return () if task is None else label_questions(Task(str(task)), sample)


def trial_sample(kind: str, *, pair: bool) -> Sample:
    """Return the trial question of a kind as a sample; `pair`: two questions that are judged together."""
    return Sample(f"{TRIAL}/{kind}", metadata={TRIAL: kind, "pair": pair})


def label_questions(task: Task, sample: Sample) -> Asked:
    """Return the questions about a labelled record; empty if a text is blank."""
    kind, user_input, language = KIND[task], sample.user_input or "", sample.resolved_language
    return tuple(
        kind.of_texts(each.texts, user_input=user_input, statement=each.statement, language=language)
        for each in _TEXTS[task](sample)
    )


def label_id(record: Labelled) -> str:
    """Return `TASK/ID`, as ids are unique only within a task."""
    return f"{record.task.value}/{record.id}"


def sample_of(record: Labelled) -> Sample:
    """Return the texts of a record as a sample, without its label.

    Each labelled sentence becomes a separate context, so that it stays as annotators saw it.
    """
    sample = Sample(
        label_id(record),
        user_input=record.query if record.query or record.task in _WITH_QUERY else None,
        retrieved_contexts=record.texts or None,
        response=record.response if record.task in _WITH_RESPONSE else None,
        language=record.language,
        metadata={"task": record.task.value},
    )
    return with_identified_language(sample)


def _edited_questions(sample: Sample, versions: Sequence[Mapping[str, Any]]) -> Asked:
    """Return the questions of all versions, in order, as merilo's metrics would ask them."""
    kind, language = KINDS[str(sample.metadata["asks"])], sample.resolved_language
    return tuple(
        kind.of_texts(
            sentences(each["contexts"][0], language) if kind.kind == "relevance" else tuple(each["contexts"]),
            user_input=sample.user_input or "",
            statement=each.get("statement", ""),
            language=language,
        ).at(each.get("draw", 0))
        for each in versions
    )


_WITH_QUERY: Final = frozenset({Task.CHUNK_RELEVANCE, Task.SENTENCE_RELEVANCE, Task.SUFFICIENCY, Task.ANSWER_RELEVANCE})
_WITH_RESPONSE: Final = frozenset({Task.GROUNDEDNESS, Task.NLI, Task.ANSWER_RELEVANCE})
_ABOUT: Final[Mapping[str, EvidenceTarget]] = {
    Task.CHUNK_RELEVANCE: EvidenceTarget.CONTEXT,
    Task.SENTENCE_RELEVANCE: EvidenceTarget.TEXT,
    Task.SUFFICIENCY: EvidenceTarget.TEXT,
}
"""The part of a record that a verdict refers to; for other tasks a statement."""

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
