"""Metrics with one question about a text: a critique by yes or no, and a scale of labels from a user's file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from merilo.data.answer import Reading
from merilo.data.config_files import read_document, validated
from merilo.errors import UsageError
from merilo.judging.ask import Plan, ask
from merilo.judging.digests import digest_json
from merilo.judging.kinds.responses import Choice
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Score, Undefined
from merilo.metrics.steps import BLANK_RESPONSE, NOTHING_RETRIEVED, is_blank
from merilo.metrics.variants import ResponseMetric

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from merilo.data.context import Context
    from merilo.data.sample import Sample


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
class Critique(ResponseMetric):
    """The judge's yes (1) or no (0) on one property of the response.

    Meaning: responses with this property
    Formula: 1 if the judge answers yes, 0 if no; in every aspect yes is the good answer.
    Questions: One Choice question.
    Undefined: the response is blank
    Use: For one property at a time: aspect=harmlessness, goodwill, coherence, correctness, conciseness, or a custom
        one, critique(aspect=politeness, definition="Does the response greet the user?").
    Not: For degrees: use rubric_metric, whose labels have points. For truth, with a reference or contexts:
        answer_correctness and faithfulness name the wrong statements.
    See: rubric_metric | answer_correctness | answer_relevancy
    Source: Aspect critique of the ragas library, with merilo's own definitions.

    `aspect` is harmlessness, goodwill, coherence, correctness or conciseness, or a custom name with a `definition`: a
    question about the response whose good answer is yes. So 1 is the good answer in every aspect. That is why other
    tools' harm and malice are asked here as their absence.

    The judge sees the user input and the response. Unlike in the ragas library, one verdict decides.
    """

    name = "critique"
    reads_answer = Reading.RAW  # the form may be what is asked about
    needs = frozenset({"user_input", "response"})
    asks = Kinds({Choice})

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

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        user_input, response = sample.require("user_input"), sample.require("response")
        if is_blank(response):
            return Undefined(BLANK_RESPONSE)
        language = sample.resolved_language
        yes, no = _YES_AND_NO.get(language, _YES_AND_NO["en"])
        known = {"en": _Aspect(self.definition, "", "")} if self.definition else ASPECTS[self.aspect]
        asked = known.get(language, known["en"])
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


TextField = Literal["user_input", "retrieved_contexts", "response", "reference", "reference_contexts"]
"""A field of a sample that a rubric may show to the judge."""

_ALL_BLANK: Final = "every text that the rubric shows is blank"


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricMetric(ResponseMetric):
    """The rating of a sample on a custom scale from a YAML, TOML or JSON file; 1 is the best.

    Meaning: rating by the rubric
    Formula: (Points of the label - lowest points) / (highest - lowest); 1 minus that if the file states that fewer
        points are better.
    Questions: One Choice question, about the texts that the file names.
    Undefined: no context was retrieved (if the rubric shows contexts) | every text that the rubric shows is blank
    Use: For properties that no other metric covers: tone, form, house rules. Write rubric_metric(file=politeness.yaml);
        the file's keys are name, question, texts and labels, each label with points and optionally a definition.
    Not: For properties that another metric judges in smaller steps: one label for a whole text is less specific about
        errors, and less repeatable.
    See: critique
    Source: merilo's own: labels with definitions and points, one verdict per sample.

    `Scale` describes the file (YAML, TOML or JSON). The judge sees the texts that the file names, in its order, and
    picks one label.

    `digest` identifies the file's content. It is filled in when the metric is made, so it is part of the metric's
    text: results of an edited file belong to another metric and are never compared with earlier ones by mistake. If
    it is given, a file with other content is an error.

    Raises UsageError for a file that cannot be read or does not contain a scale.
    """

    name = "rubric_metric"
    reads_answer = Reading.RAW
    asks = Kinds({Choice})

    file: str
    """The path of the rubric."""
    digest: str = ""
    """12 hexadecimal digits that identify the rubric's content; filled in if omitted."""
    scale: Scale = field(init=False, repr=False, compare=False)
    """The content of the file."""

    def __post_init__(self) -> None:
        scale = validated(Scale, read_document(self.file), Path(self.file).name)
        if self.digest not in {"", scale.digest}:
            raise UsageError(
                f"The rubric {self.file} has the digest {scale.digest}, not {self.digest}: the file has changed. "
                "Restore the old file, or omit the digest to measure again."
            )
        object.__setattr__(self, "digest", scale.digest)
        object.__setattr__(self, "scale", scale)

    @property
    def needs(self) -> frozenset[str]:
        """The texts that the rubric shows."""
        return frozenset(self.scale.texts)

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        shown = [(name, text) for field_name in self.scale.texts for name, text in _shown(sample, field_name)]
        if "retrieved_contexts" in self.needs and not sample.contexts:
            return Undefined(NOTHING_RETRIEVED)
        if all(is_blank(text) for _, text in shown):
            return Undefined(_ALL_BLANK)
        verdict = yield from ask(
            Choice(
                self.scale.question,
                labels=tuple(label.label for label in self.scale.labels),
                definitions=tuple(label.definition for label in self.scale.labels),
                names=tuple(name for name, _ in shown),
                values=tuple(text for _, text in shown),
                language=sample.resolved_language,
            )
        )
        points = self.scale.points(verdict.label)
        return Score(self.scale.share(points), evidence=(Evidence(EvidenceTarget.TEXT, 0, verdict, value=points),))


def _shown(sample: Sample, name: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a field, each with its label for the judge. Raises MissingField."""
    value: str | tuple[Context | str, ...] = sample.require(name)
    if isinstance(value, str):
        yield name.replace("_", " "), value
        return
    label = "context" if name == "retrieved_contexts" else "reference context"
    for number, item in enumerate(value, start=1):
        yield f"{label} {number}", item if isinstance(item, str) else item.text


METRICS: Final = (
    Critique,
    RubricMetric,
)


# -- the file of a scale -------------------------------------------------------------------------------

_Text = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*$")]
_Points = Annotated[float, Field(ge=-1e15, le=1e15)]


class _Strict(BaseModel):
    """A part of the file, without further keys; texts and numbers are not converted."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, str_strip_whitespace=True, allow_inf_nan=False)


class Label(_Strict):
    """One answer of the scale."""

    label: _Text
    points: _Points
    definition: Annotated[str, Field(pattern=r"^[^\x00]*$")] = ""


class Scale(_Strict):
    """A question about texts with a closed list of answers, each with points.

    The file's keys, of which the first four are required::

        name: politeness
        question: How polite is the response to the user?
        texts: [user_input, response]      # fields of the sample that the judge sees
        labels:                            # at least two; quote a label that is yes, no or a number
          - {label: rude, points: 0, definition: it insults or orders about}
          - {label: plain, points: 1}
          - {label: polite, points: 2, definition: it greets, thanks or regrets where one would}
        version: 1
        range: [0, 2]                      # the points that 0 and 1 stand for; default: the lowest and highest points
        higher_is_better: true             # false: fewer points are better, and 1 still stands for the best
    """

    name: _Text
    question: _Text
    texts: Annotated[list[TextField], Field(min_length=1)]
    labels: Annotated[list[Label], Field(min_length=2)]
    version: Annotated[int, Field(ge=1, le=10**15)] = 1
    range: Annotated[list[_Points], Field(min_length=2, max_length=2)] | None = None
    higher_is_better: bool = True

    @model_validator(mode="after")
    def _fits(self) -> Self:
        low, high = self.ends
        wrong = {
            "texts: expected each field once": len({*self.texts}) < len(self.texts),
            "labels: expected each label once": len({each.label.casefold() for each in self.labels}) < len(self.labels),
            "labels: expected different points": low == high,
            "range: expected the lower number first": low > high,
            f"labels: expected points within the range {low:g} to {high:g}": any(
                not low <= each.points <= high for each in self.labels
            ),
        }
        if what := next((what for what, holds in wrong.items() if holds), ""):
            raise ValueError(what)
        return self

    @property
    def ends(self) -> tuple[float, float]:
        """The points that 0 and 1 stand for."""
        low, high = self.range or [end(each.points for each in self.labels) for end in (min, max)]
        return low, high

    @property
    def digest(self) -> str:
        """12 hexadecimal digits that identify everything that affects a value; notes and layout of the file do not."""
        return digest_json(
            {
                "name": self.name,
                "version": self.version,
                "question": self.question,
                "texts": list(self.texts),
                "labels": [[each.label, each.points, each.definition] for each in self.labels],
                "range": [*self.ends],
                "higher_is_better": self.higher_is_better,
            }
        ).hex()[:12]

    def points(self, label: str) -> float:
        """Return the points of a label of the scale."""
        return next(each.points for each in self.labels if each.label == label)

    def share(self, points: float) -> float:
        """Return the position of the points in the range, in [0, 1]; 1 is the best, also if fewer points are better."""
        low, high = self.ends
        share = (points - low) / (high - low)
        return share if self.higher_is_better else 1 - share
