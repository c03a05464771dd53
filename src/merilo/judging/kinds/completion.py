"""Questions and verdicts of the kind `completion`: a free-text reply to a rubric."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from merilo.judging.questions import GUESSED_REASON, Question, Texts
from merilo.judging.synthetic import RESPONSE, USER_INPUT
from merilo.judging.verdicts import LATER, Verdict


@dataclass(frozen=True, slots=True)
class CompletionVerdict(Verdict):
    """A reply as free text, for metrics that parse it themselves."""

    text: str
    probability: float | None = None

    def in_words(self) -> str:
        return f'"{self.text}"'


@dataclass(frozen=True, slots=True)
class Completion(Question[CompletionVerdict]):
    """A free-text reply to a rubric filled with values, for published metrics that parse it themselves.

    `temperature` overrides the judge's own. Several samples are the draws 0..n-1 of one question. `earlier`: the turns
    after the rubric, alternating a reply and its problem, to re-ask. `schema`: a JSON Schema, as its JSON text, that
    the provider is asked to enforce; empty for free text.
    """

    kind = "completion"
    verdict = CompletionVerdict

    rubric: str
    names: Texts
    values: Texts
    temperature: float | None = None
    earlier: Texts = field(default=(), kw_only=True, metadata=LATER)
    schema: str = field(default="", kw_only=True, metadata=LATER)
    likely: str = field(default="", compare=False, kw_only=True)
    """A reply of the likely structure, for dry runs; not part of the content."""

    def __post_init__(self) -> None:
        if self.temperature is not None:  # 1 and 1.0 are equal, so they must give the same key
            object.__setattr__(self, "temperature", float(self.temperature))

    def guess(self) -> CompletionVerdict:
        """Return the likely reply, or some text."""
        return CompletionVerdict(self.likely or GUESSED_REASON)

    @classmethod
    def trial(cls) -> tuple[Self, Self]:
        """See `Question.trial`; the second question is another draw of the first."""
        first = cls("en/noncommittal.v1", ("user_input", "response"), (USER_INPUT, RESPONSE))
        return first, replace(first, draw=1)
