"""Draw passages of a corpus, ask the judge for a question about each, and keep those that only the passage answers."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import islice
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from merilo.commands.evaluate.preparation import for_one_judge, judges_of, usage_of
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.label.run import drawn
from merilo.commands.plan.run import Estimate, run_estimate
from merilo.data.corpus import SourceDocument, load_corpus
from merilo.data.sample import Dataset, Sample, with_identified_language
from merilo.data.sentences import split
from merilo.data.short_answers import stated
from merilo.errors import UsageError
from merilo.judges.routed import unavailable_reason
from merilo.judges.words import stems
from merilo.judging.ask import Plan, ask, both
from merilo.judging.kinds.contexts import Sufficiency, SufficiencyLabel, Support
from merilo.judging.kinds.responses import Completion, PassageQuestion, PassageQuestionVerdict
from merilo.metrics.base import Card, Evidence, EvidenceTarget, Failed, Kinds, MetricDefaults, Outcome, Score, Undefined
from merilo.runs.outcomes import outcome_from

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from merilo.commands.evaluate.options import Options
    from merilo.judges.base import Judge
    from merilo.runs.run import Run


OTHERS: Final = 5
"""Maximum texts without the passage that are checked, and that are the contexts of a twin."""


class DrawSettings(NamedTuple):
    """The settings of a draw; equal settings and equal verdicts give equal questions."""

    number: int = 100
    """Passages to draw."""
    sentences: int = 3
    """Maximum sentences of a passage."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class SampledQuestions:
    """The questions of one draw."""

    draw: Draw
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
        return sum(self.failures.values()), len(self.draw.drawn)

    @property
    def not_asked(self) -> int:
        """Number of drawn passages that a limit left out."""
        return len(self.draw.drawn) - len(self.kept) - sum(self.dropped.values()) - sum(self.failures.values())


@dataclass(frozen=True)
class Draw:
    """The drawn passages of one call."""

    judge: Judge
    settings: DrawSettings
    corpus: Corpus
    drawn: tuple[int, ...]
    """The indices of the drawn passages."""

    @classmethod
    def of(cls, path: Path, settings: DrawSettings, options: Options) -> Draw:
        """Draw the passages. Raises UsageError and DataError."""
        judge = judges_of(options)["judge"]
        if PassageQuestion not in judge.answers:
            raise UsageError(
                f"The judge {judge.name} cannot write questions. Name a language model: --judge openai:gpt-4.1-mini."
            )
        needed = sorted(QuestionOfPassage(closed_book=False).asks, key=lambda kind: kind.kind)
        if missing := [kind.kind for kind in needed if kind not in judge.answers]:
            raise UsageError(
                f"The judge {judge.name} cannot check the questions: it answers no {missing[0]!r} questions."
            )
        if (reason := unavailable_reason(judge, needed)) is not None:
            raise UsageError(f"{judge.name}: {reason}.")
        corpus = Corpus(load_corpus(path), settings.sentences)
        if not corpus.passages:
            raise UsageError(f"The documents of {path} have no sentence to ask about.")
        drawn = corpus.draw(settings.number, seed=settings.seed)
        return cls(judge, settings, corpus, tuple(drawn))

    @property
    def metric(self) -> QuestionOfPassage:
        """The questions to the judge, as far as it can answer them."""
        closed_book = {Completion, Support} <= self.judge.answers
        return QuestionOfPassage(closed_book=closed_book)

    @cached_property
    def samples(self) -> dict[int, Sample]:
        """Drawn passage → the sample about it."""
        found: dict[int, Sample] = {}
        for index in self.drawn:
            passage = self.corpus.passages[index]
            title, name = self.corpus.documents[passage.document].title, self.corpus.id_of(passage)
            found[index] = sample_of(name, passage.text, self.corpus.others(index, OTHERS), title=title)
        return found

    def evaluation(self, options: Options) -> tuple[Dataset, Options]:
        """Return the samples to ask about, and the options of their evaluation."""
        dataset = Dataset("passages", self.samples.values().__iter__)
        return dataset, replace(for_one_judge(options, self.judge), metrics=[self.metric])

    def result(self, run: Run) -> SampledQuestions:
        """Return what the run found."""
        outcomes: dict[str, Outcome] = {record["sample"]: outcome_from(record) for record in run.records()}
        kept: list[KeptQuestion] = []
        passages: list[Passage] = []
        dropped, failures = Counter[str](), Counter[str]()
        for each in self.drawn:
            outcome = outcomes.get(self.corpus.id_of(self.corpus.passages[each]))
            if isinstance(outcome, Score):
                kept.append(self._kept(each, outcome))
                passages.append(self.corpus.passages[each])
            elif isinstance(outcome, Failed):
                failures[outcome.error.message] += 1
            elif isinstance(outcome, Undefined):
                dropped[str(outcome.reason)] += 1
        return SampledQuestions(
            self,
            tuple(kept),
            tuple(self.corpus.without(passages)),
            dict(sorted(dropped.items())),
            dict(sorted(failures.items())),
            usage_of(run),
            run.usage.get("stopped"),
        )

    def _kept(self, place: int, outcome: Score) -> KeptQuestion:
        verdict = outcome.evidence[0].verdict
        if not isinstance(verdict, PassageQuestionVerdict):
            raise TypeError(f"the evidence of a question is a {type(verdict).__name__}")
        passage = self.corpus.passages[place]
        _, *others = [context.text for context in self.samples[place].contexts]
        return KeptQuestion(
            self.corpus.id_of(passage),
            verdict.question,
            verdict.answer,
            passage.text,
            tuple(others),
            self.corpus.documents[passage.document].id,
            passage.start,
            passage.end,
        )


async def run_questions(path: Path, settings: DrawSettings, options: Options) -> SampledQuestions:
    """Return the questions about passages of the corpus at `path`.

    Verdicts come from the cache if it has them, so the same call resumes an interrupted one. Raises UsageError,
    DataError and what an evaluation raises.
    """
    draw = Draw.of(path, settings, options)
    data, options = draw.evaluation(options)
    with tempfile.TemporaryDirectory() as directory:
        return draw.result(await run_evaluation(data, replace(options, out=Path(directory, "run"))))


async def estimate_questions(path: Path, settings: DrawSettings, options: Options) -> Estimate:
    """Estimate requests and cost of `run_questions`, without a request. Raises what it raises before one."""
    found = await run_estimate(*Draw.of(path, settings, options).evaluation(options), sample=None)
    return replace(found, metrics=tuple(replace(each, metric="questions of passages") for each in found.metrics))


# -- what is asked ------------------------------------------------------------------------------------

_CLOSED_BOOK: Final = "en/closed_book.v1"
_UNKNOWN: Final = "unknown"


class Dropped(StrEnum):
    """Reasons to drop a question."""

    NOTHING_TO_ASK = "the judge finds nothing to ask about in the passage"
    NOT_ANSWERED = "the passage does not answer the question"
    WRONG_ANSWER = "the passage does not support the answer"
    ANSWERED_ELSEWHERE = "other passages answer the question, at least partly"
    KNOWN = "the judge knows the answer without any text"


class KeptQuestion(NamedTuple):
    """A question that passed all checks."""

    id: str
    question: str
    answer: str
    passage: str
    others: tuple[str, ...]
    """Texts of the corpus that do not answer it; the contexts of its twin."""
    document: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class QuestionOfPassage(MetricDefaults):
    """A question about one passage, as the evidence of the value 1; undefined, with the reason, if it is dropped.

    The first context is the passage, the others are the texts that may answer the question without it. It
    exists only for its questions and is in no registry.
    """

    name: ClassVar[str] = "question_of_passage"
    version: ClassVar[int] = 1
    card: ClassVar[Card] = Card(summary="A question that one passage answers.")
    needs = frozenset({"retrieved_contexts"})

    closed_book: bool = True
    """Drop a question that the judge answers rightly without any text."""

    @property
    def asks(self) -> Kinds:
        """The types of the questions for these settings."""
        kinds = Kinds({Sufficiency, PassageQuestion, Support})
        return kinds | Kinds({Completion}) if self.closed_book else kinds

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        passage, language = sample.contexts[0].text, sample.resolved_language
        title = str(sample.metadata.get("title", ""))
        verdict = yield from ask(PassageQuestion(passage, title, language=language))
        if not verdict.question.strip():
            return Undefined(Dropped.NOTHING_TO_ASK)
        dropped = yield from _dropped(sample, verdict, closed_book=self.closed_book)
        if dropped is not None:
            return Undefined(dropped)
        return Score(1.0, (Evidence(EvidenceTarget.CONTEXT, 0, verdict),))


def _dropped(sample: Sample, verdict: PassageQuestionVerdict, *, closed_book: bool) -> Plan[Dropped | None]:
    """Return the reason to drop a question; None if it stays. No check is made after one that drops it."""
    (passage, *others), language = [each.text for each in sample.contexts], sample.resolved_language
    asked = verdict.question
    enough = ask(Sufficiency(asked, (passage,), language=language))
    found, right = yield from both(enough, _supports(passage, asked, verdict.answer, language))
    if found.label is not SufficiencyLabel.SUFFICIENT:
        return Dropped.NOT_ANSWERED
    if not right:
        return Dropped.WRONG_ANSWER
    if others:
        found = yield from ask(Sufficiency(asked, tuple(others), language=language))
        if found.label is not SufficiencyLabel.INSUFFICIENT:
            return Dropped.ANSWERED_ELSEWHERE
    if closed_book and (yield from _is_known(passage, asked, language)):
        return Dropped.KNOWN
    return None


def _is_known(passage: str, asked: str, language: str) -> Plan[bool]:
    """Return True if the judge answers the question without a text and the passage supports its answer."""
    reply = yield from ask(Completion(_CLOSED_BOOK, ("user_input",), (asked,), language=language, likely="UNKNOWN"))
    answer = reply.text.strip()
    if not answer or answer.strip('."').casefold().startswith(_UNKNOWN):
        return False
    return (yield from _supports(passage, asked, answer, language))


def _supports(passage: str, asked: str, answer: str, language: str) -> Plan[bool]:
    statement = stated(answer, asked, language) or answer
    verdict = yield from ask(Support(statement, (passage,), language=language))
    return verdict.supported


def sample_of(name: str, passage: str, others: tuple[str, ...], *, title: str = "") -> Sample:
    """Return the sample about one passage."""
    sample = Sample(
        name,
        retrieved_contexts=[passage, *others],
        metadata={"title": title} if title else None,
    )
    return with_identified_language(sample)


# -- passages ------------------------------------------------------------------------------------------

_RAREST: Final = 20
"""Number of words of a passage, the rarest ones, by which similar passages are found."""

_COMMON: Final = 2_000
"""Words in more passages than this find no similar passages, unless they are the rarest word of a passage. They
distinguish little, and would take most of the time in a large corpus."""


class Passage(NamedTuple):
    """Consecutive sentences of one document, as offsets in its text."""

    document: int
    """Index of the document."""
    start: int
    end: int
    text: str
    sentences: tuple[str, ...]
    """The sentences, each as `folded` returns it."""


def folded(sentence: str) -> str:
    """Return a sentence without differences of white space and case, for comparison."""
    return " ".join(sentence.split()).casefold()


def without_sentences(text: str, removed: Collection[str]) -> str:
    """Return the text without the sentences that are equal to a removed one, as `folded` returns them.

    A cut can make other sentences of the rest, so the rest is split again until none is left.
    """
    while found := [span for span in split(text) if folded(text[span.start : span.end]) in removed]:
        for span in reversed(found):
            text = text[: span.start] + text[span.end :].lstrip(" ")
    return text


@dataclass(frozen=True)
class Corpus:
    """Documents divided into passages of at most `size` sentences, which do not overlap."""

    documents: tuple[SourceDocument, ...]
    size: int

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        """All passages in the order of the documents."""
        found: list[Passage] = []
        for index, document in enumerate(self.documents):
            text, spans = document.text, split(document.text)
            for first in range(0, len(spans), self.size):
                own = spans[first : first + self.size]
                start, end = own[0].start, own[-1].end
                sentences = tuple(folded(text[each.start : each.end]) for each in own)
                found.append(Passage(index, start, end, text[start:end], sentences))
        return tuple(found)

    def id_of(self, passage: Passage) -> str:
        """Return `DOCUMENT:START-END`, which is unique."""
        return f"{self.documents[passage.document].id}:{passage.start}-{passage.end}"

    def draw(self, number: int, *, seed: int) -> list[int]:
        """Return the indices of `number` passages drawn uniformly without replacement, or of all, in corpus order."""
        indices = {self.id_of(each): index for index, each in enumerate(self.passages)}
        return sorted(indices[name] for name in drawn([*indices], number, key=f"sample-questions {seed}"))

    def others(self, index: int, number: int) -> tuple[str, ...]:
        """Return the texts, at most `number`, in which the answer may be found without the passage at `index`.

        These are the passages before and after it, then those of all documents that share its rarest words. Sentences
        equal to one of the passage are removed from them.
        """
        passage = self.passages[index]
        beside = [each for each in (index - 1, index + 1) if 0 <= each < len(self.passages)]
        near = [each for each in beside if self.passages[each].document == passage.document]
        places = [*near, *(each for each in self._similar(index) if each not in near)]
        found = (without_sentences(self.passages[place].text, passage.sentences).strip() for place in places)
        return tuple(islice(filter(None, found), number))

    def without(self, passages: Sequence[Passage]) -> list[SourceDocument]:
        """Return the documents without the sentences of these passages, wherever a sentence occurs."""
        removed = frozenset(sentence for passage in passages for sentence in passage.sentences)
        changed = {each.document for each in self.passages if not removed.isdisjoint(each.sentences)}
        return [
            each._replace(text=without_sentences(each.text, removed)) if index in changed else each
            for index, each in enumerate(self.documents)
        ]

    @cached_property
    def _postings(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for index, passage in enumerate(self.passages):
            for word in dict.fromkeys(stems(passage.text)):
                found[word].append(index)
        return found

    def _similar(self, index: int) -> list[int]:
        """Return the passages that share words with this one, by the summed rarity of the words; ties in order."""
        own = sorted(
            dict.fromkeys(stems(self.passages[index].text)), key=lambda each: (len(self._postings[each]), each)
        )
        scores: dict[int, float] = defaultdict(float)
        for at, word in enumerate(own[:_RAREST]):
            places = self._postings[word]
            if at and len(places) > _COMMON:
                break
            for place in places:
                scores[place] += log(1 + len(self.passages) / len(places))
        scores.pop(index, None)
        return sorted(scores, key=lambda place: (-scores[place], place))
