"""Answer completeness: the fraction of the question's parts that the response answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.judging.ask import ask, ask_each
from merilo.judging.kinds.answered import Answered, AnsweredVerdict
from merilo.judging.kinds.parts import Parts
from merilo.metrics.base import Kinds, Score, Undefined
from merilo.metrics.steps import (
    BLANK_USER_INPUT,
    credit_score,
    distinct,
    is_blank,
    states_nothing,
)
from merilo.metrics.variants import ResponseMetric

if TYPE_CHECKING:
    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.metrics.steps import DistinctStatement

_NO_PART = "the user input asks for nothing"
_BLANK_RESPONSE = "The response is blank."
_CHARACTERS_PER_PART = 4


@dataclass(frozen=True, slots=True)
class AnswerCompleteness(ResponseMetric):
    """Share of what the user input asks for that the response answers.

    Meaning: parts of the question that are answered
    Formula: Parts of the user input that the response answers / distinct parts of the user input. Each verdict counts
        as its probability if the judge's probabilities are averaged.
    Questions: One Parts question, and one Answered question for each distinct part.
    Undefined: the user input is blank | the user input asks for nothing
    Use: To find answers that leave out a part of what was asked; needs neither contexts nor a reference.
    Not: To see whether the answer is right, or whether the system should have answered: declining a question that the
        contexts do not cover counts as 0. Also use answer_correctness or context_sufficiency.
    See: answer_relevancy | answer_correctness | context_sufficiency
    Source: merilo's own; the answer relevance of Es et al. 2023 (arXiv 2309.15217) penalises incompleteness too.

    A response that declines, or is blank, answers nothing: 0, unlike in answer_relevancy, where it is Undefined.
    Otherwise a system could raise its completeness by declining difficult questions.
    """

    name: ClassVar[str] = "answer_completeness"
    needs = frozenset({"user_input", "response"})
    asks = Kinds({Answered, Parts})

    def max_questions(self, sample: Sample) -> int:
        if sample.user_input is None or sample.response is None or is_blank(sample.user_input):
            return 0
        return 1 + (0 if states_nothing(sample, "response") else _most(sample.user_input))

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input = sample.require("user_input")
        sample.require("response")
        if is_blank(user_input):
            return Undefined(BLANK_USER_INPUT)
        question = Parts(user_input, language=sample.resolved_language, history=sample.read_history)
        verdict = yield from ask(question)
        parts = distinct(question, verdict.parts, most=_most(user_input))
        if not parts:
            return Undefined(_NO_PART)
        verdicts = yield from _answered(sample, user_input, parts)
        answered = sum(verdict.answered for verdict in verdicts)
        return credit_score(parts, verdicts, {"parts": len(parts), "answered": answered})


def _answered(
    sample: Sample, user_input: str, parts: tuple[DistinctStatement, ...]
) -> Plan[tuple[AnsweredVerdict, ...]]:
    if states_nothing(sample, "response"):
        return tuple(AnsweredVerdict(answered=False, reason=_BLANK_RESPONSE) for _ in parts)
    sentences, language, history = sample.sentences("response"), sample.resolved_language, sample.read_history
    return (
        yield from ask_each(
            Answered(part.text, sentences, user_input, language=language, history=history) for part in parts
        )
    )


def _most(user_input: str) -> int:
    return 1 + len(user_input) // _CHARACTERS_PER_PART


METRICS: Final = (AnswerCompleteness,)
