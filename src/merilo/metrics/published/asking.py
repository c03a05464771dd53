"""How published definitions ask: a filled text out, a free text back, one request after another; and likeness."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from merilo.judging.ask import AskFailed, ask, ask_each, attempt, draws
from merilo.judging.questions import Completion
from merilo.judging.verdicts import CompletionVerdict, Failure, FailureKind
from merilo.metrics.published.replies import without_halves

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from merilo.judging.ask import Plan
    from merilo.judging.questions import Similarities
    from merilo.judging.verdicts import MatrixVerdict


@dataclass(frozen=True, slots=True)
class Heard:
    """A reply as free text, with the question that it answers."""

    question: Completion
    verdict: CompletionVerdict

    @property
    def text(self) -> str:
        """The reply; an escape of JSON that is half of a character is U+FFFD, since no request or file can hold it."""
        return without_halves(self.verdict.text)

    def unreadable(self, what: str) -> AskFailed:
        """The error for a reply that cannot be read: raise it where the published system has no number either.

        `what`: a sentence, such as "The reply holds no JSON.".
        """
        return AskFailed(self.question, Failure(FailureKind.UNREADABLE, what))


_ROUNDING: Final = 1e-6
_NO_TEXT: Final = "(no text)"
"""In place of a blank reply in a re-ask: some servers refuse a turn without text."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike texts are, each number in [0, 1]."""

    verdict: MatrixVerdict
    rows: tuple[tuple[float, ...], ...]
    """One for each left text, in it one number for each right text."""


def ask_likeness(questions: Iterable[Similarities]) -> Plan[tuple[Likeness, ...]]:
    """Similarities as cross-encoders and classifiers give them, for each question in order.

    Raises AskFailed where there are none, or a number lies outside 0 to 1: a cosine or a logit makes no share.
    """
    asked = tuple(questions)
    matrices = yield from ask_each(asked)
    return tuple(_likeness(*each) for each in zip(asked, matrices, strict=True))


def _likeness(question: Similarities, matrix: MatrixVerdict) -> Likeness:
    rows = [matrix.row(index) for index in range(matrix.rows)]
    for number in (number for row in rows for number in row):
        if not -_ROUNDING <= number <= 1 + _ROUNDING:
            what = f"The model for similarities gave {number:g}, where a number from 0 to 1 was asked for."
            raise AskFailed(question, Failure(FailureKind.UNREADABLE, what))
    return Likeness(matrix, tuple(tuple(min(1.0, max(0.0, number)) for number in row) for row in rows))


@dataclass(slots=True)
class Asker:
    """Asks the rubrics of one published system about one sample; made anew in every plan.

    Rubrics lie in `rubrics/<language>/published/<system>/<rubric>.v1.md` and are filled with the named texts.
    Words that this plan has asked before are asked again as the next draw, since the published system asks
    again too. `likely` is a reply of the likely form, so that a dry run comes through. `schema` is the JSON text of
    a JSON Schema that the provider is asked to enforce.
    """

    system: str
    language: str = "en"
    temperature: float | None = None
    """Sent before the judge's own; None leaves it to the judge."""
    _asked: Counter[Completion] = field(default_factory=Counter[Completion])

    def question(
        self, rubric: str, values: Mapping[str, str], *, likely: str, role: str = "judge", schema: str = ""
    ) -> Completion:
        """The question, at the next draw that this plan has not asked yet."""
        question = Completion(
            f"{self.language}/published/{self.system}/{rubric}.v1",
            tuple(values),
            tuple(values.values()),
            self.temperature,
            likely=likely,
            role=role,
            language=self.language,
            schema=schema,
        )
        return self._at_next_draw(question)

    def _at_next_draw(self, question: Completion) -> Completion:
        draw = self._asked[question]
        self._asked[question] += 1
        return replace(question, draw=draw)

    def ask(
        self, rubric: str, values: Mapping[str, str], *, likely: str, role: str = "judge", schema: str = ""
    ) -> Plan[Heard]:
        """The reply to one request. Raises AskFailed when there is none."""
        question = self.question(rubric, values, likely=likely, role=role, schema=schema)
        return Heard(question, (yield from ask(question)))

    def reask(self, heard: Heard, correction: str) -> Plan[Heard]:
        """The reply to the same request with the last reply and what was wrong with it as two more turns.

        Raises AskFailed when there is none.
        """
        earlier = (*heard.question.earlier, heard.verdict.text.strip() or _NO_TEXT, correction)
        question = self._at_next_draw(replace(heard.question, draw=0, earlier=earlier))
        return Heard(question, (yield from ask(question)))

    def attempt(
        self, rubric: str, values: Mapping[str, str], *, likely: str, role: str = "judge"
    ) -> Plan[Heard | Failure]:
        """The reply to one request, or why there is none, for systems that score a lost reply."""
        question = self.question(rubric, values, likely=likely, role=role)
        answer = yield from attempt(question)
        return answer if isinstance(answer, Failure) else Heard(question, answer)

    def samples(self, rubric: str, values: Mapping[str, str], count: int, *, likely: str) -> Plan[tuple[Heard, ...]]:
        """Several replies to one request, in sampling order. Raises AskFailed for the first that is missing."""
        question = self.question(rubric, values, likely=likely)
        self._asked[replace(question, draw=0)] += count - 1
        answers = yield from draws(question, count)
        heard: list[Heard] = []
        for draw, answer in enumerate(answers, start=question.draw):
            asked = replace(question, draw=draw)
            if isinstance(answer, Failure):
                raise AskFailed(asked, answer)
            heard.append(Heard(asked, answer))
        return tuple(heard)
