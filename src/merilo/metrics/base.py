"""The protocol of a metric, its card, and the three outcomes of a metric."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol, TypeGuard, TypeVar, runtime_checkable

from merilo.data.answer import Reading, judged
from merilo.errors import UsageError
from merilo.judging.ask import Answer, Plan
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

Kinds = frozenset[type[Question[Any]]]
"""A set of question types."""
Answerer = Callable[[Question[Any]], Answer]
"""A function that answers one question at once, without I/O."""


class EvidenceTarget(StrEnum):
    """Parts of a sample that evidence can refer to."""

    CONTEXT = "context"
    STATEMENT = "statement"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One verdict that a score is based on, and the part of the sample that it refers to."""

    about: EvidenceTarget
    index: int
    """Index of the context or the statement; 0 for the whole text."""
    verdict: Verdict
    text: str = ""
    """The statement, which is not part of the sample; empty for contexts and texts."""
    value: float | None = None
    """The number that the metric read from the verdict, if it parses free text itself; otherwise None."""


@dataclass(frozen=True, slots=True)
class Score:
    """A value in the metric's range, with its evidence."""

    value: float
    evidence: tuple[Evidence, ...] = ()
    counts: Mapping[str, int | None] = field(default_factory=dict[str, "int | None"])
    """Named counts that the value is computed from; None for a count that this judge cannot give."""
    flags: tuple[str, ...] = ()
    """Problems that were scored anyway, as the published definition does: one short phrase each."""
    averaged: bool = False
    """True if the value averages probabilities of the judge (`DecisionVerdict.averaged`) instead of counting."""
    draws: tuple[float, ...] = ()
    """The values of the draws whose mean is the value; empty if each question was asked once. Evidence, counts and
    flags are those of the first draw."""


@dataclass(frozen=True, slots=True)
class Undefined:
    """The metric has no value for this sample, for a stated reason; this is not an error."""

    reason: str
    evidence: tuple[Evidence, ...] = ()
    """The verdicts that were given, if others are missing."""
    probability: float | None = None
    """If the judge leaves questions open: the lowest probability of yes that it gives one of them; None if unknown."""
    counts: Mapping[str, int | None] = field(default_factory=dict[str, "int | None"])
    """As in a score, by the verdicts that were given."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The value could not be computed: a question got no verdict or the metric raised an exception."""

    error: Failure


Outcome = Score | Undefined | Failed


def outcome_of(failure: Failure) -> Undefined | Failed:
    """Return the outcome of a plan that a question without a verdict ended."""
    return not_judged([failure]) if failure.kind is FailureKind.NOT_JUDGED else Failed(failure)


def not_judged(
    failures: Sequence[Failure],
    reason: str = "",
    evidence: tuple[Evidence, ...] = (),
    counts: Mapping[str, int | None] | None = None,
) -> Undefined:
    """Return the outcome if a judge leaves questions open. `reason`: by default that of the first failure."""
    known = [each.probability for each in failures if each.probability is not None]
    return Undefined(reason or failures[0].message, evidence, min(known, default=None), counts or {})


class Family(StrEnum):
    """The families of the native metrics."""

    RETRIEVAL = "retrieval"
    """Metrics of the retriever: did it return the right text? They need no response."""
    RESPONSE = "response"
    """Metrics of the response: is it supported by the text, and does it address the question?"""


@dataclass(frozen=True, slots=True)
class Card:
    """The description of a metric for its users; every text is one or a few plain sentences."""

    summary: str
    """One line: the meaning of the value."""
    formula: str = ""
    questions: str = ""
    """The number and kind of questions that one sample costs."""
    undefined: tuple[str, ...] = ()
    """Reasons for having no value, except a missing field, which always is one."""
    when: str = ""
    when_not: str = ""
    relatives: tuple[str, ...] = ()
    """Names of metrics to use with this one or instead of it."""
    sources: tuple[str, ...] = ()
    """Sources of the definition, and differences from them."""
    family: str = ""
    """A `Family`, or a custom name, under which the metric is listed."""
    meaning: str = ""
    """A few words on the mean, for the table of a run: `the contexts hold the answer`."""


class Metric(Protocol):
    """A frozen dataclass whose fields are the metric's parameters.

    Inherit `MetricDefaults` for the usual values of everything except `name`, `version`, `needs`, `asks`, `card` and
    `plan`. `merilo.metrics.contract.check_metric` checks a metric against its declarations.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    """Raised with every change that can move a number."""
    card: ClassVar[Card]
    range: ClassVar[tuple[float, float]]
    """The lowest and the highest possible value."""
    higher_is_better: ClassVar[bool]
    ranked: ClassVar[bool]
    """True if the order of the contexts matters."""
    reads_answer: ClassVar[Reading]
    """How the plan gets response and reference: as they are, or without what states nothing."""
    not_monotone_in: ClassVar[Kinds]
    """Question types for which a better verdict can make the value worse."""
    breaks: ClassVar[Mapping[str, str]]
    """Laws of `check_metric` that the metric breaks on purpose, each with the reason: a parameter, or a few words."""

    @property
    def roles(self) -> frozenset[str]:
        """The roles of its questions: `roles = frozenset({...})`, or a property."""
        ...

    @property
    def needs(self) -> frozenset[str]:
        """Sample fields without which there is never a score: `needs = frozenset({...})`, or a property."""
        ...

    @property
    def asks(self) -> Kinds:
        """The types of all questions it may ask: `asks = Kinds({...})`, or a property."""
        ...

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """Ask about one sample and return its outcome. Raises only MissingField and AskFailed."""
        ...


@runtime_checkable
class ReadsMetadata(Protocol):
    """A metric whose truth is in the metadata, such as nuggets: runs are compared over samples where it is equal."""

    truth_in_metadata: ClassVar[frozenset[str]]
    """Keys of the metadata."""


DECLARED: Final = (
    *("name", "version", "card", "range", "higher_is_better", "ranked", "reads_answer", "not_monotone_in", "breaks"),
    *("roles", "needs", "asks", "plan"),
)
"""What every metric class has."""


class Composite(Protocol):
    """A number for a whole run, computed from the means of metrics; a frozen dataclass with its parameters as fields.

    It asks no questions and has no value for a single sample. If any sample has no value of a part, the composite has
    none, like a mean over a NaN.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    card: ClassVar[Card]
    range: ClassVar[tuple[float, float]]
    higher_is_better: ClassVar[bool]

    @property
    def parts(self) -> tuple[str, ...]:
        """The texts of the metrics whose means are combined, each once, in the order in which `combine` takes them."""
        ...

    def combine(self, means: Sequence[float]) -> float | None:
        """Return the value from one mean for each part; None if these means give none."""
        ...


@runtime_checkable
class ShownInRun(Protocol):
    """A metric that has no value in a run unless at least one sample shows that the data has what it measures.

    Without such a sample, 0 for every sample would look like a bad system.
    """

    def shows(self, sample: Sample) -> bool | None:
        """Return True if the sample has what is measured, False if it lacks it, None if it lacks the fields."""
        ...

    def not_shown(self, samples: int) -> str:
        """Return the reason why the metric is undefined. `samples`: how many lack it."""
        ...


@runtime_checkable
class NeedsLibrary(Protocol):
    """A metric that computes with a library of an extra."""

    def load_library(self) -> Any:  # Any: the library may be absent
        """Import and return the library. Raises UsageError if it is not installed."""
        ...


@runtime_checkable
class CompositeOfRun(Protocol):
    """A composite of the metrics that a run computes."""

    def of_run(self, metrics: Sequence[str]) -> Composite:
        """Return the composite of these metrics, by their texts. Raises UsageError if it cannot combine them."""
        ...


class ScoreWords(NamedTuple):
    """A score in words."""

    title: str
    lines: tuple[str, ...]
    user_input: str
    """The name of the field `user_input`."""


@runtime_checkable
class InWords(Protocol):
    """A metric that explains its scores in its own words, in the language of the data (BCP 47)."""

    def in_words(self, score: float, language: str) -> ScoreWords:
        """Return a score, or a mean of scores, in words."""
        ...

    def contexts_in_words(self, outcome: Score, sample: Sample) -> list[tuple[str, str]]:
        """Return the name of each retrieved context and its part in the score."""
        ...


Definition = Metric | Composite
"""A named entry of the registry: a metric of a sample, or a composite of a run."""


def is_composite(given: Definition) -> TypeGuard[Composite]:
    """Return True for a composite; a metric has a plan instead."""
    return not hasattr(given, "plan")


class MetricDefaults:
    """Default declarations to inherit from: a value from 0 to 1, higher is better, from one judge."""

    __slots__ = ()

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    higher_is_better: ClassVar[bool] = True
    ranked: ClassVar[bool] = False
    reads_answer: ClassVar[Reading] = Reading.RAW
    not_monotone_in: ClassVar[Kinds] = frozenset()
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({})
    roles = frozenset({"judge"})


def choice(options: type[E], value: str, *, metric: str, parameter: str) -> E:
    """Return the member of a StrEnum that a parameter names, given as member or text. Raises UsageError."""
    try:
        return options(value)
    except ValueError:
        names = " or ".join(f"{parameter}={option.value}" for option in options)
        raise UsageError(f"Metric {metric!r} takes {names}, got {value!r}.") from None


def plan_of(metric: Metric, sample: Sample) -> Plan[Score | Undefined]:
    """Return the metric's plan for a sample as the metric reads it. Raises TypeError if it is not a generator."""
    plan: object = metric.plan(judged(sample, metric.reads_answer))
    if not isinstance(plan, Generator):
        raise TypeError(
            f"plan must be a generator, but it returned {type(plan).__name__}; a plan that asks no question needs the "
            "line `yield from ()`"
        )
    return plan


def drive(plan: Plan[T], answer: Answerer) -> T:
    """Return the result of a plan whose questions a function answers, one at a time, in the order of asking.

    This is the simplest driver: no cache, no limits, no parallel requests. Exceptions of the plan are passed on.
    """
    try:
        step = next(plan)
        while True:
            step = plan.send(tuple([answer(question) for group in step for question in group]))
    except StopIteration as stop:
        result: T = stop.value
        return result
