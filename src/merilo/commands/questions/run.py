"""Draw passages of a corpus, ask the judge for a question about each, and keep those that only the passage answers."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.check.one_judge import for_one_judge, usage_of
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.evaluate.settings import judges_of
from merilo.commands.plan.run import run_estimate
from merilo.commands.questions.asking import KeptQuestion, QuestionOfPassage, load_templates, question_of, sample_of
from merilo.commands.questions.passages import Corpus
from merilo.data.corpus import load_corpus
from merilo.data.sample import Dataset, Sample
from merilo.errors import UsageError
from merilo.judges.routed import unavailable_reason
from merilo.judging.kinds.completion import Completion
from merilo.judging.kinds.passage_question import PassageQuestion, PassageQuestionVerdict
from merilo.judging.kinds.support import Support
from merilo.metrics.base import Failed, Score, Undefined
from merilo.runs.outcomes import outcome_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.commands.evaluate.options import Options
    from merilo.commands.questions.passages import DrawnPassage, Passage
    from merilo.data.corpus import SourceDocument
    from merilo.engine.amounts import Estimate
    from merilo.judges.base import Judge
    from merilo.metrics.base import Outcome
    from merilo.runs.run import Run


NUMBER: Final = 100
SENTENCES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawSettings:
    """The settings of a draw; equal settings and equal verdicts give equal questions."""

    number: int = NUMBER
    """Passages to draw."""
    sentences: int = SENTENCES
    """Maximum sentences of a passage."""
    seed: int = 0
    stratify: bool = False
    """Draw from each document."""
    templates: Path | None = None
    """A file of questions to ask instead of letting the judge write them."""

    def check(self) -> None:
        """Raise UsageError for numbers that cannot be used."""
        if self.number < 1 or self.sentences < 1:
            raise UsageError(f"--number and --sentences are at least 1, got {self.number} and {self.sentences}.")


OTHERS: Final = 5
"""Maximum texts without the passage that are checked, and that are the contexts of a twin."""
NO_TITLE: Final = "the template needs a title and the document has none"


@dataclass(frozen=True, slots=True)
class SampledQuestions:
    """The questions of one draw."""

    judge: Judge
    settings: DrawSettings
    corpus: Corpus
    drawn: int
    closed_book: bool
    """True if questions that the judge answers without any text were dropped."""
    kept: tuple[KeptQuestion, ...]
    reduced: tuple[SourceDocument, ...]
    """The documents without the passages of the kept questions."""
    dropped: Mapping[str, int]
    """Reason → number of drawn passages whose question was dropped."""
    failures: Mapping[str, int]
    """Message → number of drawn passages for which a question to the judge got no verdict."""
    usage: Mapping[str, Any]  # Any: numbers and nulls
    stopped: str | None = None
    """The limit that was reached before all passages were asked about, as a sentence."""

    @property
    def failed(self) -> tuple[int, int]:
        """Number of passages without a verdict, and number of drawn passages."""
        return sum(self.failures.values()), self.drawn

    @property
    def not_asked(self) -> int:
        """Number of drawn passages that a limit left out."""
        return self.drawn - len(self.kept) - sum(self.dropped.values()) - sum(self.failures.values())


@dataclass(frozen=True)
class _Work:
    """The drawn passages of one call."""

    judge: Judge
    settings: DrawSettings
    corpus: Corpus
    drawn: tuple[DrawnPassage, ...]
    templates: tuple[str, ...]

    @classmethod
    def of(cls, path: Path, settings: DrawSettings, options: Options) -> _Work:
        """Draw the passages. Raises UsageError and DataError."""
        settings.check()
        judge = judges_of(options)["judge"]
        templates = () if settings.templates is None else load_templates(settings.templates)
        _check_judge(judge, write=not templates)
        corpus = Corpus(load_corpus(path), settings.sentences)
        if not corpus.passages:
            raise UsageError(f"The documents of {path} have no sentence to ask about.")
        with_text = len({each.document for each in corpus.passages})
        if settings.stratify and settings.number < with_text:
            raise UsageError(
                f"--stratify draws from each of {with_text:,} documents; use --number {with_text} or more, got "
                f"{settings.number}."
            )
        drawn = corpus.draw(settings.number, seed=settings.seed, stratified=settings.stratify)
        return cls(judge, settings, corpus, tuple(drawn), templates)

    @property
    def metric(self) -> QuestionOfPassage:
        """The questions to the judge, as far as it can answer them."""
        closed_book = {Completion, Support} <= self.judge.answers
        return QuestionOfPassage(write=not self.templates, closed_book=closed_book)

    def options(self, options: Options) -> Options:
        """Return the options of an evaluation over the passages."""
        return replace(for_one_judge(options, self.judge), metrics=[self.metric])

    @cached_property
    def samples(self) -> dict[int, Sample]:
        """Drawn passage → the sample about it; without those for which there is no question."""
        return {each.place: found for each in self.drawn if (found := self._sample(each.place)) is not None}

    def _sample(self, index: int) -> Sample | None:
        passage = self.corpus.passages[index]
        document = self.corpus.documents[passage.document]
        question = question_of(self.templates, document, passage.text, self.settings.seed) if self.templates else ""
        if self.templates and not question:
            return None
        others = self.corpus.others(index, OTHERS)
        return sample_of(self.corpus.id_of(passage), passage.text, others, title=document.title, question=question)

    def dataset(self) -> Dataset:
        """Return the samples to ask about. Raises UsageError if there are none."""
        if not self.samples:
            raise UsageError("The templates need a title, and no drawn document has one. Add 'title' to the documents.")
        return Dataset("passages", self.samples.values().__iter__)

    def result(self, run: Run) -> SampledQuestions:
        """Return what the run found."""
        outcomes: dict[str, Outcome] = {record["sample"]: outcome_from(record) for record in run.records()}
        kept: list[KeptQuestion] = []
        passages: list[Passage] = []
        dropped, failures = Counter[str](), Counter[str]()
        for each in self.drawn:
            outcome = outcomes.get(self.corpus.id_of(self.corpus.passages[each.place]))
            if isinstance(outcome, Score):
                kept.append(self._kept(each, outcome))
                passages.append(self.corpus.passages[each.place])
            elif isinstance(outcome, Failed):
                failures[outcome.error.message] += 1
            elif isinstance(outcome, Undefined):
                dropped[str(outcome.reason)] += 1
            elif each.place not in self.samples:
                dropped[NO_TITLE] += 1
        return SampledQuestions(
            self.judge,
            self.settings,
            self.corpus,
            len(self.drawn),
            self.metric.closed_book,
            tuple(kept),
            tuple(self.corpus.without(passages)),
            dict(sorted(dropped.items())),
            dict(sorted(failures.items())),
            usage_of(run),
            run.usage.get("stopped"),
        )

    def _kept(self, drawn: DrawnPassage, outcome: Score) -> KeptQuestion:
        verdict = outcome.evidence[0].verdict
        if not isinstance(verdict, PassageQuestionVerdict):
            raise TypeError(f"the evidence of a question is a {type(verdict).__name__}")
        passage = self.corpus.passages[drawn.place]
        _, *others = [context.text for context in self.samples[drawn.place].contexts]
        return KeptQuestion(
            self.corpus.id_of(passage),
            verdict.question,
            verdict.answer,
            passage.text,
            tuple(others),
            self.corpus.documents[passage.document].id,
            passage.start,
            passage.end,
            drawn.probability,
        )


async def run_questions(path: Path, settings: DrawSettings, options: Options) -> SampledQuestions:
    """Return the questions about passages of the corpus at `path`.

    Verdicts come from the cache if it has them, so the same call resumes an interrupted one. Raises UsageError,
    DataError and what an evaluation raises.
    """
    work = _Work.of(path, settings, options)
    with tempfile.TemporaryDirectory() as directory:
        run = await run_evaluation(work.dataset(), replace(work.options(options), out=Path(directory, "run")))
        return work.result(run)


async def estimate_questions(path: Path, settings: DrawSettings, options: Options) -> Estimate:
    """Estimate requests and cost of `run_questions`, without a request. Raises what it raises before one."""
    work = _Work.of(path, settings, options)
    found = await run_estimate(work.dataset(), work.options(options), sample=None)
    return replace(found, metrics=tuple(replace(each, metric="questions of passages") for each in found.metrics))


def _check_judge(judge: Judge, *, write: bool) -> None:
    if write and PassageQuestion not in judge.answers:
        raise UsageError(
            f"The judge {judge.name} cannot write questions. Name a language model, such as --judge "
            "openai:gpt-4.1-mini, or give your own questions with --templates FILE."
        )
    needed = QuestionOfPassage(write=write, closed_book=False).asks
    missing = sorted(kind.kind for kind in needed - judge.answers)
    if missing:
        raise UsageError(f"The judge {judge.name} cannot check the questions: it answers no {missing[0]!r} questions.")
    reason = unavailable_reason(judge, sorted(needed, key=lambda kind: kind.kind))
    if reason is not None:
        raise UsageError(f"{judge.name}: {reason}.")
