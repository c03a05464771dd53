"""Questions about one passage: from the judge or from templates, then the checks that only the passage answers them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from merilo.data.sample import Sample, with_identified_language
from merilo.data.short_answers import stated
from merilo.errors import UsageError
from merilo.judging.ask import ask, both
from merilo.judging.kinds.completion import Completion
from merilo.judging.kinds.passage_question import PassageQuestion, PassageQuestionVerdict
from merilo.judging.kinds.sufficiency import Sufficiency, SufficiencyLabel
from merilo.judging.kinds.support import Support
from merilo.judging.synthetic import chance
from merilo.metrics.base import Card, Evidence, EvidenceTarget, Kinds, MetricDefaults, Score, Undefined

if TYPE_CHECKING:
    from pathlib import Path

    from merilo.data.corpus import SourceDocument
    from merilo.judging.ask import Plan

TITLE: Final = "{title}"
"""The field of a template: the title of the document."""
_CLOSED_BOOK: Final = "en/closed_book.v1"
_UNKNOWN: Final = "unknown"
_MAX_QUESTIONS: Final = 6


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
    """Empty for a question from a template."""
    passage: str
    others: tuple[str, ...]
    """Texts of the corpus that do not answer it; the contexts of its twin."""
    document: str
    start: int
    end: int
    probability: float


@dataclass(frozen=True, slots=True)
class QuestionOfPassage(MetricDefaults):
    """A question about one passage, as the evidence of the value 1; undefined, with the reason, if it is dropped.

    The first context is the passage, the others are the texts that may answer the question without it. A sample with a
    user input has its question already, without an answer. It exists only for its questions and is in no registry.
    """

    name: ClassVar[str] = "question_of_passage"
    version: ClassVar[int] = 1
    card: ClassVar[Card] = Card(summary="A question that one passage answers.")
    needs = frozenset({"retrieved_contexts"})

    write: bool = True
    """Let the judge write the questions."""
    closed_book: bool = True
    """Drop a question that the judge answers rightly without any text."""

    @property
    def asks(self) -> Kinds:
        """The types of the questions for these settings."""
        kinds = Kinds({Sufficiency})
        if self.write:
            kinds |= Kinds({PassageQuestion, Support})
        if self.closed_book:
            kinds |= Kinds({Completion, Support})
        return kinds

    def max_questions(self, sample: Sample) -> int:
        """Return 6, the number of questions if nothing is dropped."""
        del sample
        return _MAX_QUESTIONS

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """See `Metric.plan`."""
        passage, language = sample.contexts[0].text, sample.resolved_language
        verdict = PassageQuestionVerdict(sample.user_input or "", "")
        if self.write:
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
    if verdict.answer:
        found, right = yield from both(enough, _supports(passage, asked, verdict.answer, language))
    else:
        found, right = (yield from enough), True
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


def sample_of(name: str, passage: str, others: tuple[str, ...], *, title: str = "", question: str = "") -> Sample:
    """Return the sample about one passage. `question`: one that is asked instead of a written one."""
    sample = Sample(
        name,
        user_input=question or None,
        retrieved_contexts=[passage, *others],
        metadata={"title": title} if title else None,
    )
    return with_identified_language(sample)


def load_templates(path: Path) -> tuple[str, ...]:
    """Return the templates in a file. Raises UsageError if it cannot be read, is empty or names another field."""
    try:
        lines = path.read_bytes().decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read the templates in {path} ({error}).") from error
    found = tuple(line.strip() for line in lines if line.strip())
    if not found:
        raise UsageError(f'{path} has no template. Write one question on each line, such as "What is {TITLE}?".')
    for line in found:
        if set("{}\0") & set(line.replace(TITLE, "")):
            raise UsageError(f"{path}: the only field of a template is {TITLE}, got {line!r}.")
    return found


def question_of(templates: tuple[str, ...], document: SourceDocument, passage: str, seed: int) -> str:
    """Return the question about a passage: one of the templates, filled in. Empty if it needs a title and has none."""
    template = templates[int(len(templates) * chance(seed, "template", passage))]
    return template.replace(TITLE, document.title) if document.title or TITLE not in template else ""
