"""Metrics with one question about a text: a critique by yes or no, and a scale of labels from a user's file."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import islice
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from merilo.data.answer import Reading
from merilo.data.config_files import read_document
from merilo.errors import UsageError
from merilo.judging.ask import ask
from merilo.judging.digests import digest_json
from merilo.judging.json_types import as_list, as_mapping, as_object
from merilo.judging.kinds.responses import Choice
from merilo.metrics.base import Evidence, EvidenceTarget, Kinds, Score, Undefined
from merilo.metrics.steps import BLANK_RESPONSE, NOTHING_RETRIEVED, is_blank
from merilo.metrics.variants import ResponseMetric

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from merilo.data.context import Context
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

    def max_questions(self, sample: Sample) -> int:
        return 0 if sample.response is None or is_blank(sample.response) else 1

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


METRICS: Final = (
    Critique,
    RubricMetric,
)


# -- the file of a scale -------------------------------------------------------------------------------

KEYS: Final = ("name", "question", "texts", "labels", "version", "range", "higher_is_better")
_NEEDED: Final = KEYS[:4]
_LABEL_KEYS: Final = ("label", "points", "definition")
_MOST_SHOWN: Final = 60
_LARGEST: Final = 1e15
_UNWRITABLE: Final = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Label:
    """One answer of the scale."""

    text: str
    points: float
    definition: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """A question about texts with a closed list of answers, each with points. `of` validates the user's file.

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

    name: str
    question: str
    texts: tuple[str, ...]
    labels: tuple[Label, ...]
    version: int
    low: float
    high: float
    higher_is_better: bool

    @classmethod
    def of(cls, fields: Mapping[str, Any], *, source: str, texts: Collection[str]) -> Self:  # Any: checked here
        """Return the scale in the fields of a file; `texts` are the sample fields that may be shown.

        Raises UsageError that names the file, the key, the expected value and the actual one.
        """
        reader = _Reader(source)
        reader.keys(fields, KEYS, _NEEDED, "")
        labels, flag, version = (
            reader.labels(fields["labels"]),
            fields.get("higher_is_better", True),
            fields.get("version", 1),
        )
        low, high = reader.range(fields.get("range"), labels)
        is_version = isinstance(version, int) and not isinstance(version, bool) and 1 <= version <= _LARGEST
        reader.need(is_version, "version", "a whole number of at least 1", version)
        reader.need(isinstance(flag, bool), "higher_is_better", "true or false", flag)
        return cls(
            name=reader.text(fields["name"], "name"),
            question=reader.text(fields["question"], "question"),
            texts=reader.texts(fields["texts"], texts),
            labels=labels,
            version=version,
            low=low,
            high=high,
            higher_is_better=bool(flag),
        )

    @property
    def digest(self) -> str:
        """12 hexadecimal digits that identify everything that affects a value; notes and layout of the file do not."""
        return digest_json(
            {
                "name": self.name,
                "version": self.version,
                "question": self.question,
                "texts": list(self.texts),
                "labels": [[each.text, each.points, each.definition] for each in self.labels],
                "range": [self.low, self.high],
                "higher_is_better": self.higher_is_better,
            }
        ).hex()[:12]

    def points(self, label: str) -> float:
        """Return the points of a label of the scale."""
        return next(each.points for each in self.labels if each.text == label)

    def share(self, points: float) -> float:
        """Return the position of the points in the range, in [0, 1]; 1 is the best, also if fewer points are better."""
        share = (points - self.low) / (self.high - self.low)
        return share if self.higher_is_better else 1 - share


@dataclass(frozen=True, slots=True)
class _Reader:
    """Parses the parts of a scale, and reports invalid ones."""

    source: str

    def need(self, holds: object, key: str, expected: str, got: object) -> None:
        """Raise UsageError that names the key, unless a condition holds."""
        if not holds:
            place = f"{self.source}, key {key!r}" if key else self.source
            raise UsageError(f"{place}: expected {expected}, got {_got(got)}.")

    def keys(self, fields: Mapping[str, object], known: Collection[str], needed: Collection[str], where: str) -> None:
        for key in fields:
            self.need(key in known, f"{where}{key}", f"only the keys {', '.join(known)}", key)
        for key in needed:
            self.need(key in fields, f"{where}{key}", "a value", None)

    def text(self, value: Any, key: str, *, blank: bool = False) -> str:  # Any: checked here
        advice = " (put it in quotation marks)" if type(value).__name__ in {"bool", "int", "float"} else ""
        self.need(isinstance(value, str), key, f"a text{advice}", value)
        self.need(blank or value.strip(), key, "a text that is not blank", value)
        self.need(not _UNWRITABLE.search(value), key, "a text without NUL and half surrogate pairs", value)
        return str(value.strip())

    def number(self, value: Any, key: str) -> float:  # Any: checked here
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        self.need(is_number and abs(value) < inf, key, "a number", value)
        self.need(abs(value) <= _LARGEST, key, "a number between -10^15 and 10^15", value)
        return float(value)

    def texts(self, value: object, known: Collection[str]) -> tuple[str, ...]:
        names, expected = as_list(value) or [], f"a list of fields, each once, of {', '.join(known)}"
        self.need(names, "texts", expected, value)
        for name in names:
            self.need(name in known and names.count(name) == 1, "texts", expected, name)
        return tuple(map(str, names))

    def labels(self, value: object) -> tuple[Label, ...]:
        items = as_list(value) or []
        self.need(len(items) > 1, "labels", "a list of at least two labels", value)
        found: list[Label] = []
        for place, item in enumerate(items, start=1):
            key, fields = f"labels[{place}]", as_object(item)
            self.need(fields is not None, key, "an object with label, points and, optionally, definition", item)
            fields = fields or {}
            self.keys(fields, _LABEL_KEYS, _LABEL_KEYS[:2], f"{key}.")
            text = self.text(fields["label"], f"{key}.label")
            points = self.number(fields["points"], f"{key}.points")
            definition = self.text(fields.get("definition", ""), f"{key}.definition", blank=True)
            is_new = text.casefold() not in {each.text.casefold() for each in found}
            self.need(is_new, f"{key}.label", "a label that is in the list once", text)
            found.append(Label(text, points, definition))
        return tuple(found)

    def range(self, value: object, labels: tuple[Label, ...]) -> tuple[float, float]:
        lowest, highest = min(each.points for each in labels), max(each.points for each in labels)
        if value is None:
            self.need(lowest < highest, "labels", "labels with different points", lowest)
            return lowest, highest
        ends = as_list(value) or []
        self.need(len(ends) == 2, "range", "two numbers, [lowest, highest]", value)
        low, high = self.number(ends[0], "range"), self.number(ends[1], "range")
        self.need(low < high, "range", "two numbers, the lower one first", low)
        expected, out = f"points within the range {low:g} to {high:g}", lowest if lowest < low else highest
        self.need(low <= out <= high, "labels", expected, out)
        return low, high


def _got(value: object) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(_cut(value), ensure_ascii=False, default=str)
    text = _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _cut(value: object, levels: int = 3) -> object:
    """Return the value truncated in depth and width: a YAML file can contain itself, or more than fits into memory."""
    items, fields = as_list(value), as_object(value)
    if items is not None:
        return [_cut(item, levels - 1) for item in items[:_MOST_SHOWN]] if levels else "..."
    if fields is not None:
        first = islice(fields.items(), _MOST_SHOWN)
        return {name: _cut(item, levels - 1) for name, item in first} if levels else "..."
    if as_mapping(value) is not None:
        return "an object"
    return "a larger number" if isinstance(value, int) and abs(value) > _LARGEST else value
