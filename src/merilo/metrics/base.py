"""What a metric is, what it says of itself, and the three outcomes it can have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeGuard, TypeVar, runtime_checkable

from merilo.errors import UsageError
from merilo.judging.ask import Answer
from merilo.judging.questions import Question

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.judging.verdicts import Failure, Verdict

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

Kinds = frozenset[type[Question[Any]]]
"""A set of question types."""
Answerer = Callable[[Question[Any]], Answer]
"""Anything that answers one question at once, without I/O."""


class About(StrEnum):
    """What a piece of evidence is about."""

    CONTEXT = "context"
    STATEMENT = "statement"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One verdict behind a score, and what of the sample it is about."""

    about: About
    index: int
    """Index of the context or the statement; 0 for the whole text."""
    verdict: Verdict
    text: str = ""
    """The statement, which is not part of the sample; empty for contexts and texts."""
    value: float | None = None
    """The number that the metric read from the verdict, where it reads free text itself; None elsewhere."""


@dataclass(frozen=True, slots=True)
class Score:
    """A value in the metric's range, and why."""

    value: float
    evidence: tuple[Evidence, ...] = ()
    counts: Mapping[str, int | None] = field(default_factory=dict[str, "int | None"])
    """Named counts behind the value; None for a count this judge cannot give."""
    flags: tuple[str, ...] = ()
    """What went wrong and was scored all the same, as the published definition does: one short phrase each."""


@dataclass(frozen=True, slots=True)
class Undefined:
    """The metric has no value for this sample, and why; nothing went wrong."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The value could not be found out: a question got no verdict or the metric broke."""

    error: Failure


Outcome = Score | Undefined | Failed


class Family(StrEnum):
    """The families of the native metrics."""

    RETRIEVAL = "retrieval"
    """Did the retriever bring the right text? Needs no response."""
    RESPONSE = "response"
    """Did the answer stay with the text and with the question?"""


@dataclass(frozen=True, slots=True)
class Card:
    """What a metric says of itself to people; every text is one or a few plain sentences."""

    summary: str
    """One line: what the value means."""
    formula: str = ""
    questions: str = ""
    """How many questions of which kind one sample costs."""
    undefined: tuple[str, ...] = ()
    """When there is no value; beside a missing field, which goes without saying."""
    when: str = ""
    when_not: str = ""
    relatives: tuple[str, ...] = ()
    """Names of metrics to look at beside or instead of this one."""
    sources: tuple[str, ...] = ()
    """Where the definition comes from, and where we differ."""
    family: str = ""
    """A `Family` or a name of your own, under which it is listed."""


class Metric(Protocol):
    """A frozen dataclass whose fields are the metric's parameters.

    Inherit `Ordinary` to take the usual answers for all but `name`, `version`, `needs`, `asks`, `card`,
    `at_most` and `plan`. `merilo.metrics.contract.check_metric` holds a metric to what it declares.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    """Counts up with every change that can move a number."""
    card: ClassVar[Card]
    range: ClassVar[tuple[float, float]]
    """The lowest and the highest value, both possible."""
    higher_is_better: ClassVar[bool]
    ranked: ClassVar[bool]
    """True when the order of the contexts matters."""
    not_monotone_in: ClassVar[Kinds]
    """Question types of which a better verdict can make the value worse."""
    breaks: ClassVar[Mapping[str, str]]
    """Laws of `check_metric` that it breaks on purpose, each with the name of the quirk that breaks it."""

    @property
    def roles(self) -> frozenset[str]:
        """The roles that its questions carry: `roles = frozenset({...})`, or a property."""
        ...

    @property
    def needs(self) -> frozenset[str]:
        """Sample fields without which there is never a score: `needs = frozenset({...})`, or a property."""
        ...

    @property
    def asks(self) -> Kinds:
        """The types of all questions it may ask: `asks = Kinds({...})`, or a property."""
        ...

    def at_most(self, sample: Sample) -> int:
        """An upper bound of the number of questions that `plan` asks about this sample; never raises."""
        ...

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """Asks about one sample and returns its outcome. Raises MissingField and AskFailed, nothing else."""
        ...


class Composite(Protocol):
    """A number for a whole run, made of the means of metrics; a frozen dataclass whose fields are its parameters.

    It asks nothing and has no value for a single sample. Where any sample has no value of a part, the composite has
    none, as a mean over a NaN has none.
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
        """The value from one mean for each part; None where these means give none."""
        ...


@runtime_checkable
class CompositeOfRun(Protocol):
    """A composite that combines what a run computes."""

    def of_run(self, metrics: Sequence[str]) -> Composite:
        """Return the composite of these metrics, by their texts. Raises UsageError if it cannot combine them."""
        ...


Definition = Metric | Composite
"""What has a name in the registry: a metric of a sample, or a composite of a run."""


def is_composite(given: Definition) -> TypeGuard[Composite]:
    """True for a composite; a metric has a plan instead."""
    return not hasattr(given, "plan")


class Ordinary:
    """What holds for most metrics, to inherit from: a share, the higher the better, found by one judge."""

    __slots__ = ()

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    higher_is_better: ClassVar[bool] = True
    ranked: ClassVar[bool] = False
    not_monotone_in: ClassVar[Kinds] = frozenset()
    breaks: ClassVar[Mapping[str, str]] = MappingProxyType({})
    roles = frozenset({"judge"})


def choice(options: type[E], value: str, *, metric: str, parameter: str) -> E:
    """The member of a StrEnum that a parameter names, given as member or text. Raises UsageError."""
    try:
        return options(value)
    except ValueError:
        names = " or ".join(f"{parameter}={option.value}" for option in options)
        raise UsageError(f"Metric {metric!r} takes {names}, got {value!r}.") from None


def drive(plan: Plan[T], answer: Answerer) -> T:
    """The result of a plan whose questions a function answers, one after another, in ask order.

    The smallest of all drivers: no cache, no limits, nothing in parallel. Whatever the plan raises comes out.
    """
    try:
        step = next(plan)
        while True:
            step = plan.send(tuple([answer(question) for group in step for question in group]))
    except StopIteration as stop:
        result: T = stop.value
        return result
