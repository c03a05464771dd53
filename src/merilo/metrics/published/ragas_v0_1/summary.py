"""The summary score of ragas 0.1: questions that the summary answers, and its length."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.errors import UsageError
from merilo.metrics.base import Evidence, EvidenceTarget, Score, Undefined
from merilo.metrics.published.definition import BLANK, Published, bound, is_blank, joined
from merilo.metrics.published.ragas_v0_1 import replies
from merilo.metrics.published.ragas_v0_1.asking import JsonAsker, json_template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.metrics.published.ragas_v0_1.asking import MaybeRead

Texts = tuple[str, ...]

_EPSILON: Final = 1e-10
_NO_ANSWER: Final = "the judge gave no answer"
_LOST: Final = "a reply could not be read and counts as naming no {}"
_BLANK_IS_ASKED: Final[Mapping[str, str]] = MappingProxyType({"nothing to judge": "ask_blank"})

_KEYPHRASES: Final = json_template(
    "summary.keyphrases",
    'An object {"keyphrases": [texts]}.',
    '{"keyphrases": ["a phrase"]}',
    replies.texts("keyphrases"),
)
_QUESTIONS: Final = json_template(
    "summary.questions",
    'An object {"questions": [texts]}.',
    '{"questions": ["Is it so?"]}',
    replies.texts("questions"),
)
_ANSWERS: Final = json_template(
    "summary.answers", 'An object {"answers": ["1" or "0", ...]}.', '{"answers": ["1"]}', replies.texts("answers")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizationScore(Published):
    """How many questions about the contexts a summary answers, and how short it is (ragas 0.1).

    Formula: Half the share of answers "1", and half 1 - min(length of summary, of text) / length of text.
    Questions: Three requests, one more for each reply that cannot be read.
    Undefined: the judge gave no answer | what is to be judged is blank (with ask_blank=false) | a reply cannot be
        read, nor can its repair (Failed, where ragas 0.1.9 stops the run and 0.1.22 has NaN)
    Use: To understand, or to compare with, numbers of ragas 0.1.
    Not: To measure something new: an empty summary has the full half for conciseness.
    Source: ragas/metrics/_summarization.py

    In full: coverage · (1 - coeff) + conciseness · coeff, with coverage = answers "1" / answers and conciseness = 1 -
    min(characters of the summary, of the text) / (characters of the text + 1e-10). The text is the joined contexts. In
    ragas the summary has its own column. Three requests: keyphrases of the text, questions about them, answers by the
    summary. Failed where they cannot be read.

    - `coeff`: weight of conciseness, in [0, 1]. `length_penalty`: false leaves conciseness out.
    - `keeps_weight`: without conciseness coverage keeps its weight, so that 1 - coeff is the most. False: the
      value is the coverage.
    - `any_count`: answers need not be as many as questions. False: another number is unreadable.
    - `unreadable_is_empty`: keyphrases or questions that cannot be read count as none. False: Failed.
    - `smoothed`: the 1e-10 above. False: exact.
    - `ask_blank`: blank texts are judged like any others. False: Undefined.
    """

    needs = frozenset({"retrieved_contexts", "response"})
    breaks: ClassVar[Mapping[str, str]] = _BLANK_IS_ASKED

    length_penalty: bool = True
    coeff: float = 0.5
    keeps_weight: bool = True
    any_count: bool = True
    unreadable_is_empty: bool = True
    smoothed: bool = True
    ask_blank: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.coeff <= 1:
            raise UsageError(f"Metric {self.name!r} takes coeff=a number from 0 to 1, got {self.coeff!r}.")

    def max_questions(self, sample: Sample) -> int:
        return bound(sample, self.needs, 6)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        text, summary = joined(sample), sample.require("response")
        if not self.ask_blank and is_blank(text, summary):
            return Undefined(BLANK)
        asker = JsonAsker()
        named = yield from asker.ask(_KEYPHRASES, {"text": text})
        phrases = self._texts(named)
        made = yield from asker.ask(_QUESTIONS, {"text": text, "keyphrases": _listed(phrases)})
        questions = self._texts(made)
        given = yield from asker.ask(_ANSWERS, {"questions": _listed(questions), "summary": summary})
        answers = given.or_raise()
        if not answers:
            return Undefined(_NO_ANSWER)
        uneven = f"The reply gives {len(answers)} answers to {len(questions)} questions."
        if len(answers) != len(questions) and not self.any_count:
            raise given.reply.unreadable(uneven)
        flags = [_LOST.format(what) for what, read in (("keyphrase", named), ("question", made)) if read.value is None]
        flags += [uneven] * (len(answers) != len(questions))
        yes = sum(answer == "1" for answer in answers)
        return Score(
            self._value(yes / len(answers), self._conciseness(text, summary)),
            evidence=tuple(Evidence(EvidenceTarget.TEXT, 0, read.reply.verdict) for read in (named, made, given)),
            counts={"keyphrases": len(phrases), "questions": len(questions), "answers": len(answers), "yes": yes},
            flags=tuple(flags),
        )

    def _texts(self, read: MaybeRead[Texts]) -> Texts:
        return (read.value or ()) if self.unreadable_is_empty else read.or_raise()

    def _value(self, coverage: float, conciseness: float) -> float:
        if self.length_penalty:
            return coverage * (1 - self.coeff) + conciseness * self.coeff
        return coverage * (1 - self.coeff) if self.keeps_weight else coverage

    def _conciseness(self, text: str, summary: str) -> float:
        length = len(text) + (_EPSILON if self.smoothed else 0.0)
        return 1 - min(len(summary), len(text)) / length if length else 1.0


def _listed(texts: Sequence[str]) -> str:
    return json.dumps(list(texts), ensure_ascii=False)
