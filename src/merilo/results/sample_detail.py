"""One sample of a run with everything that is stored about it: outcomes, verdicts, questions and raw replies."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from merilo.data.answer import judged
from merilo.data.sentences import judged_sentences
from merilo.data.short_answers import stated
from merilo.errors import RunError
from merilo.judging.kinds.contexts import Support, SupportVerdict
from merilo.judging.questions import Pack
from merilo.judging.rubric import rubric_with_text
from merilo.judging.verdicts import DecisionVerdict, Failure, Verdict, is_positive, probability_of
from merilo.metrics.base import EvidenceTarget, Score
from merilo.results.records import grouped
from merilo.runs.run import Run, SampleResult, open_store
from merilo.runs.run_metrics import weak_metrics

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from merilo.data.context import Context
    from merilo.data.sample import Sample
    from merilo.judging.ask import Answer
    from merilo.runs.records import StoredQuestion


GivenLabel: TypeAlias = tuple[str, str, str]
"""The label that an annotator gave to a question of the judge: the question's mark (`mark_of`), annotator, label."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One answer about a context or a statement, and the metrics whose value uses it."""

    kind: str
    answer: Answer
    metrics: tuple[str, ...]
    against: str = ""
    """The text that a statement was checked against; empty if unknown, or if all its remarks used the contexts."""


@dataclass(frozen=True, slots=True)
class HumanVerdict:
    """An annotator's verdict on a question of the judge, next to the judge's own verdict."""

    annotator: str
    """The name, or "a person"."""
    kind: str
    context: int | None
    """Index of the context that the question is about; None if it is about something else."""
    statement: str
    """The statement that the question is about; empty if it is about something else."""
    verdict: Verdict
    judge: Verdict

    @property
    def agrees(self) -> bool:
        """True if both are positive or both are not; a grade of at least 1 is positive."""
        return is_positive(self.verdict) == is_positive(self.judge)

    @property
    def certainty(self) -> float:
        """The judge's probability of its own verdict, in [0, 1]; 1 if it gives none."""
        probability = probability_of(self.judge)
        if probability is None:
            return 1.0
        return probability if is_positive(self.judge) else 1 - probability


@dataclass(frozen=True, slots=True)
class ContextView:
    """A retrieved context with the answers about it."""

    index: int
    context: Context
    sentences: tuple[str, ...]
    """The sentences that the judge saw."""
    evidence: frozenset[int]
    """Indices of the sentences that a verdict names as evidence."""
    said: tuple[Remark, ...]
    people: tuple[HumanVerdict, ...] = ()


@dataclass(frozen=True, slots=True)
class StatementView:
    """A statement with the answers about it."""

    text: str
    said: tuple[Remark, ...]
    people: tuple[HumanVerdict, ...] = ()


@dataclass(frozen=True)
class SampleDetail:
    """One sample of a run; `asked`: the questions of all its outcomes, each once, in the order asked."""

    result: SampleResult
    asked: tuple[StoredQuestion, ...]
    labels: tuple[GivenLabel, ...] = ()
    """The human labels of the sample."""

    @staticmethod
    def of(run: Run, sample_id: str, labels: Sequence[GivenLabel] = ()) -> SampleDetail:
        """Return the case of this sample. Raises RunError if the run has no outcome of it."""
        return cases_of(run, [sample_id], {sample_id: labels})[sample_id]

    @cached_property
    def contexts(self) -> tuple[ContextView, ...]:
        """The retrieved contexts in their order, including blank and unjudged ones."""
        return tuple(
            self._context(index, context) for index, context in enumerate(self.result.sample.retrieved_contexts or ())
        )

    @cached_property
    def statements(self) -> Mapping[tuple[str, ...], tuple[StatementView, ...]]:
        """Distinct statements, by the metrics that counted them, and those that the judge could not judge.

        Metrics with the same statements share one list.
        """
        by_texts: dict[tuple[str, ...], list[str]] = {}
        counted = grouped((metric, text) for metric, _, text, *_ in self._evidence.get(EvidenceTarget.STATEMENT, ()))
        scored = {metric for metric, outcome in self.result.outcomes.items() if isinstance(outcome, Score)}
        for metric in sorted(self.result.outcomes, key=lambda each: each not in scored):  # stable
            unjudged = [text for text, _ in self._without_verdict([metric])]
            if metric not in scored and any({*unjudged} <= {*texts} for texts in by_texts):
                continue  # a metric with a score has them too
            texts = counted.get(metric, [])
            by_texts.setdefault(tuple(dict.fromkeys((*texts, *unjudged))), []).append(metric)
        return {
            tuple(metrics): tuple(
                StatementView(
                    text,
                    self._about_statement(text, metrics),
                    tuple(each for each in self.people if each.statement == text),
                )
                for text in texts
            )
            for texts, metrics in by_texts.items()
            if texts
        }

    @cached_property
    def whole(self) -> tuple[Remark, ...]:
        """The answers about the sample as a whole, for example on the sufficiency of its contexts."""
        return self._merged(
            [(kind, verdict, metric) for metric, _, _, kind, verdict in self._evidence.get(EvidenceTarget.TEXT, ())]
        )

    @cached_property
    def people(self) -> tuple[HumanVerdict, ...]:
        """The annotators' verdicts, in the order in which the judge was asked."""
        found: dict[tuple[str, str], HumanVerdict] = {}  # of several draws or roles, the first
        for asked in self.asked:
            question, form, mark = asked.question, asked.question.label_form(), asked.question.content.hex()
            for _, annotator, given in (each for each in self.labels if each[0] == mark):
                label = None if form is None else form.label(given)
                if label is None or not isinstance(asked.answer, DecisionVerdict):
                    continue  # it cannot be compared
                context = self.context_of(asked)
                statement = question.subject or "" if context is None else ""
                verdict: Verdict = question.verdict_of_label(label)
                person = HumanVerdict(annotator or "a person", question.kind, context, statement, verdict, asked.answer)
                found.setdefault((mark, annotator), person)
        return tuple(found.values())

    @cached_property
    def people_on_whole(self) -> tuple[HumanVerdict, ...]:
        """Those of the annotators' verdicts that are about neither a context nor a statement."""
        return tuple(each for each in self.people if each.context is None and not each.statement)

    def context_of(self, asked: StoredQuestion) -> int | None:
        """Return the index of the context that a question is about; None if it is not about a single context."""
        sentences = asked.question.context_sentences
        return None if sentences is None else self._places.get(sentences)

    @cached_property
    def _places(self) -> dict[tuple[str, ...], int]:
        contexts = self.result.sample.retrieved_contexts or ()
        return {context.sentences: index for index, context in reversed([*enumerate(contexts)])}

    @cached_property
    def _asked_about(self) -> dict[int | None, list[StoredQuestion]]:
        return grouped((self.context_of(each), each) for each in self.asked)

    def _context(self, index: int, context: Context) -> ContextView:
        about = self._asked_about.get(index, [])
        found: list[tuple[str, Answer, str]] = [
            (kind, verdict, metric)
            for metric, at, _, kind, verdict in self._evidence.get(EvidenceTarget.CONTEXT, ())
            if at == index
        ]
        found += [(each.question.kind, each.answer, "") for each in about if isinstance(each.answer, Failure)]
        evidence = frozenset(
            at for _, answer, _ in found if isinstance(answer, Verdict) for at in answer.context_evidence
        ) | self._supporting(index, context)
        people = tuple(each for each in self.people if each.context == index)
        return ContextView(index, context, context.sentences, evidence, self._merged(found), people)

    def _supporting(self, index: int, context: Context) -> frozenset[int]:
        """Return the indices of the context's sentences that support a statement."""
        found = frozenset(
            sentence
            for *_, verdict in self._evidence.get(EvidenceTarget.STATEMENT, ())
            if isinstance(verdict, SupportVerdict) and verdict.supported
            for at, sentence in verdict.sentences
            if at == index and sentence < len(context.sentences)
        )
        # If the judge split this text by another language, its positions mean other sentences.
        own = found and judged_sentences(context.text, self.result.sample.resolved_language) == context.sentences
        return found if own else frozenset()

    def _about_statement(self, text: str, metrics: list[str]) -> tuple[Remark, ...]:
        remarks = self._merged(
            [
                (kind, verdict, metric)
                for metric, _, own, kind, verdict in self._evidence.get(EvidenceTarget.STATEMENT, ())
                if metric in metrics and own == text
            ]
            + [("support", answer, "") for own, answer in self._without_verdict(metrics) if own == text]
        )
        sample = self.result.sample
        found = [held_against(text, each.answer, self._evidence_of(each.metrics), sample) for each in remarks]
        if set(found) <= {"", "the contexts"}:
            return remarks
        return tuple(replace(each, against=against) for each, against in zip(remarks, found, strict=True))

    def _without_verdict(self, metrics: Sequence[str]) -> list[tuple[str, Failure]]:
        """Return the statements whose support the judge of these metrics did not judge, and its answers."""
        return [
            (each.question.statement, each.answer)
            for each in self._evidence_of(metrics)
            if isinstance(each.question, Support) and isinstance(each.answer, Failure)
        ]

    def _evidence_of(self, metrics: Sequence[str]) -> list[StoredQuestion]:
        """Return the questions of the outcomes of these metrics."""
        keys = {key for metric in metrics if self.asked for key in self.result.records[metric].get("trail", [])}
        return [each for each in self.asked if each.key.hex() in keys]

    @cached_property
    def _evidence(self) -> Mapping[EvidenceTarget, list[tuple[str, int, str, str, Verdict]]]:
        """The evidence of the scored metrics: metric, index, statement, kind of question and verdict."""
        return grouped(
            (piece.about, (metric, piece.index, piece.text, record["kind"], piece.verdict))
            for metric, outcome in self.result.outcomes.items()
            if isinstance(outcome, Score)
            for piece, record in zip(outcome.evidence, self.result.records[metric].get("evidence", []), strict=True)
        )

    @staticmethod
    def _merged(found: Sequence[tuple[str, Answer, str]]) -> tuple[Remark, ...]:
        metrics = grouped(((kind, answer), metric) for kind, answer, metric in found)
        return tuple(Remark(*about, tuple(filter(None, names))) for about, names in metrics.items())


def rubric_name(asked: StoredQuestion) -> str:
    """Return the name of the rubric of a question; empty if it had none or it is not one of merilo's."""
    for question in (asked.question, Pack((asked.question,))):
        if (rubric := rubric_with_text(question, asked.rubric)) is not None:
            return rubric.name
    return ""


def case_record(run: Run, case: SampleDetail) -> dict[str, Any]:  # Any: JSON
    """Return everything about the sample as a JSON-able object."""
    weak = weak_metrics(run.manifest)
    return {
        "run": str(run.path),
        "sample": case.result.sample.to_record(),
        "sentences": [list(view.sentences) for view in case.contexts],
        "outcomes": {name: {**record, "weak": name in weak} for name, record in case.result.records.items()},
        "asked": [_asked_record(asked) for asked in case.asked],
    }


def _asked_record(asked: StoredQuestion) -> dict[str, Any]:  # Any: JSON
    question, answer = asked.question, asked.answer
    return {
        "key": asked.key.hex(),
        "kind": question.kind,
        "question": {
            field.name: value
            for field in fields(question)
            if (value := getattr(question, field.name)) or field.name != "history"
        },
        "verdict": None if isinstance(answer, Failure) else answer.to_fields(),
        "failure": answer.to_fields() if isinstance(answer, Failure) else None,
        "cached": asked.cached,
        "judge": asked.judge,
        "rubric": rubric_name(asked),
        "rubric_text": asked.rubric,
        "replies": list(asked.replies),
    }


def cases_of(
    run: Run, samples: Sequence[str], labels: Mapping[str, Sequence[GivenLabel]] | None = None
) -> dict[str, SampleDetail]:
    """Return these samples of the run by id, with their outcomes, questions and human labels.

    Raises RunError if the run has no outcome of one of them.
    """
    if not samples:
        return {}
    records = grouped((record["sample"], record) for record in run.records_of(frozenset(samples)))
    with closing(open_store(run)) as store:
        texts = {sample: store.sample(sample) for sample in records}
    found: dict[str, SampleDetail] = {}
    for sample in samples:
        text = texts.get(sample)
        if text is None:
            raise RunError(f"{run.path} has no outcome of a sample with the id {sample!r}.")
        keys = dict.fromkeys(key for record in records[sample] for key in record.get("trail", []))
        given = () if labels is None else tuple(labels.get(sample, ()))
        found[sample] = SampleDetail(SampleResult.of(text, records[sample]), tuple(run.asked(list(keys))), given)
    return found


def held_against(statement: str, answer: Answer, asked: Sequence[StoredQuestion], sample: Sample) -> str:
    """Return the text as a phrase, such as `the contexts and the response` if the answer was the same for both.

    Empty if unknown. `asked`: the questions of the metrics whose evidence the answer is.
    """
    questions = (each.question for each in asked if bare(each.answer) == bare(answer))
    found = [
        named_texts(question.contexts, sample)
        for question in questions
        if isinstance(question, Support) and question.statement == statement
    ]
    return " and ".join(dict.fromkeys(filter(None, found)))


def bare(answer: Answer) -> Answer:
    """Return an answer without its evidence; a metric's evidence omits indices that are not contexts."""
    return replace(answer, evidence=(), sentences=()) if isinstance(answer, SupportVerdict) else answer


def named_texts(texts: Collection[str], sample: Sample) -> str:
    """Return the name of these texts in the sample: `the contexts`, `context 2`, `the reference`; empty for others."""
    contexts = [each.text for each in sample.retrieved_contexts or ()]
    if len(texts) == 1 and len(contexts) > 1 and (only := next(iter(texts))) in contexts:
        return f"context {contexts.index(only) + 1}"
    if texts and set(texts) <= set(contexts):
        return "the contexts"
    for each in (judged(sample), sample):
        for text, name in ((each.reference, "the reference"), (each.response, "the response")):
            known = {text, text and stated(text, sample.user_input, sample.resolved_language)}
            if text is not None and texts and set(texts) <= known:
                return name
    return ""
