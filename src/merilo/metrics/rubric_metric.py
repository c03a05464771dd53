"""A metric without code: one question and a scale of labels, from a user's file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from merilo.data.config_files import read_document
from merilo.errors import UsageError
from merilo.judging.ask import ask
from merilo.judging.kinds.choice import Choice
from merilo.judging.scale import Scale
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Score, Undefined
from merilo.metrics.steps import NOTHING_RETRIEVED, is_blank
from merilo.metrics.variants import ResponseMetric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.data.sample import Context, Sample
    from merilo.judging.ask import Plan

TEXTS: Final = ("user_input", "retrieved_contexts", "response", "reference", "reference_contexts")
"""The fields of a sample that a rubric may show to the judge."""

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

    `merilo.judging.scale` describes the file (YAML, TOML or JSON). The judge sees the texts that the file names, in its
    order, and picks one label.

    `digest` identifies the file's content. It is filled in when the metric is made, so it is part of the metric's
    text: results of an edited file belong to another metric and are never compared with earlier ones by mistake. If
    it is given, a file with other content is an error.

    Raises UsageError for a file that cannot be read or does not contain a scale.
    """

    name: ClassVar[str] = "rubric_metric"
    asks = Kinds({Choice})

    file: str
    """The path of the rubric."""
    digest: str = ""
    """12 hexadecimal digits that identify the rubric's content; filled in if omitted."""
    scale: Scale = field(init=False, repr=False, compare=False)
    """The content of the file."""

    def __post_init__(self) -> None:
        scale = Scale.of(read_document(self.file), source=Path(self.file).name, texts=TEXTS)
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

    def max_questions(self, sample: Sample) -> int:
        return 1 if self.needs <= sample.present else 0

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        shown = [(name, text) for field_name in self.scale.texts for name, text in _shown(sample, field_name)]
        if "retrieved_contexts" in self.needs and not sample.contexts:
            return Undefined(NOTHING_RETRIEVED)
        if all(is_blank(text) for _, text in shown):
            return Undefined(_ALL_BLANK)
        verdict = yield from ask(
            Choice(
                self.scale.question,
                labels=tuple(label.text for label in self.scale.labels),
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


METRICS: Final = (RubricMetric,)
