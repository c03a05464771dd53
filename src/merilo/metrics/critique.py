"""The critique of a response in one respect, by yes or no."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from merilo.errors import UsageError
from merilo.judging.ask import ask
from merilo.judging.kinds.choice import Choice
from merilo.metrics.base import Card, Evidence, EvidenceTarget, Family, Kinds, MetricDefaults, Score, Undefined
from merilo.metrics.steps import BLANK_RESPONSE, is_blank

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan


class _Aspect(NamedTuple):
    """The question about a response, and the meaning of yes and no."""

    question: str
    yes: str
    no: str


ASPECTS: Final[Mapping[str, Mapping[str, _Aspect]]] = {
    aspect: {language: _Aspect(**texts) for language, texts in languages.items()}
    for aspect, languages in json.loads(files("merilo.metrics").joinpath("critique.json").read_text("utf-8")).items()
}
"""The aspects that need no definition, by language; in each, yes is the good answer."""

_YES_AND_NO: Final = {"en": ("yes", "no"), "ru": ("да", "нет")}
_TURNED: Final = {"harmfulness": "harmlessness", "maliciousness": "goodwill"}
"""Names under which other tools ask for the bad answer, and merilo's names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Critique(MetricDefaults):
    """The judge's yes (1) or no (0) on one property of the response; 1 is the good answer.

    `aspect` is harmlessness, goodwill, coherence, correctness or conciseness, or a custom name with a `definition`: a
    question about the response whose good answer is yes. So 1 is the good answer in every aspect. That is why other
    tools' harm and malice are asked here as their absence.

    The judge sees the user input and the response. Undefined when the response is blank.

    Source: the aspect critique of the ragas library. Differences: one verdict instead of a majority of several, and
    merilo's own definitions.
    """

    name: ClassVar[str] = "critique"
    version: ClassVar[int] = 1
    needs = frozenset({"user_input", "response"})
    asks = Kinds({Choice})
    card: ClassVar[Card] = Card(
        summary="The judge's yes (1) or no (0) on one property of the response.",
        meaning="responses with this property",
        formula="1 if the judge answers yes, 0 if no; in every aspect yes is the good answer.",
        questions="One Choice question.",
        undefined=(BLANK_RESPONSE,),
        when=f"For one property at a time: aspect={', '.join(ASPECTS)}, or a custom one, "
        'critique(aspect=politeness, definition="Does the response greet the user?").',
        when_not="For degrees: use rubric_metric, whose labels have points. For truth, with a reference or contexts: "
        "answer_correctness and faithfulness name the wrong statements.",
        relatives=("rubric_metric", "answer_correctness", "answer_relevancy"),
        sources=("Aspect critique of the ragas library, with merilo's own definitions.",),
        family=Family.RESPONSE,
    )

    aspect: str
    """One of `ASPECTS`, or a custom name."""
    definition: str = ""
    """The question for a custom aspect; its good answer is yes."""

    def __post_init__(self) -> None:
        if self.aspect in _TURNED:
            raise UsageError(
                f"Metric {self.name!r} scores the good answer as 1: use aspect={_TURNED[self.aspect]} "
                f"instead of {self.aspect}."
            )
        if self.aspect not in ASPECTS and is_blank(self.definition):
            raise UsageError(
                f"Metric {self.name!r} takes aspect={' or '.join(ASPECTS)}, or a custom name with "
                f'definition="a question whose good answer is yes"; got {self.aspect!r} alone.'
            )
        if self.aspect in ASPECTS and self.definition:
            raise UsageError(
                f"Metric {self.name!r} already defines aspect={self.aspect}; choose another name for your definition."
            )

    def max_questions(self, sample: Sample) -> int:
        return 0 if sample.response is None or is_blank(sample.response) else 1

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, response = sample.require("user_input"), sample.require("response")
        if is_blank(response):
            return Undefined(BLANK_RESPONSE)
        language = sample.resolved_language
        yes, no = _YES_AND_NO.get(language, _YES_AND_NO["en"])
        asked = self._asked(language)
        verdict = yield from ask(
            Choice(
                asked.question,
                labels=(yes, no),
                definitions=(asked.yes, asked.no),
                names=("user input", "response"),
                values=(user_input, response),
                language=language,
            )
        )
        good = verdict.label == yes
        return Score(float(good), evidence=(Evidence(EvidenceTarget.TEXT, 0, verdict),))

    def _asked(self, language: str) -> _Aspect:
        if self.definition:
            return _Aspect(self.definition, "", "")
        known = ASPECTS[self.aspect]
        return known.get(language, known["en"])


METRICS: Final = (Critique,)
