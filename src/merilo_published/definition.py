"""The base class of published definitions, their steps before the first request, and their formulas.

The docstring of a published definition is its card, see `variants.described`. Its family is the system in its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from math import fsum, inf, isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, cast

from merilo.errors import UsageError
from merilo.judging.ask import Plan, ask
from merilo.judging.kinds.measured import Embeddings, MatrixVerdict
from merilo.judging.kinds.responses import Completion
from merilo.metrics.base import Card, Kinds, Metric, Score, Undefined, choice
from merilo.metrics.formulas import cosine
from merilo.metrics.variants import D, Described, variant

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from merilo.data.sample import Sample

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)

_LIMITS: Final[Mapping[str, tuple[float, float]]] = {
    **dict.fromkeys(("strictness", "tries", "max_citations", "claims_per_prompt", "number_of_questions"), (1, inf)),
    "reasks": (0, inf),
    **dict.fromkeys(("temperature", "tolerance"), (0.0, inf)),
    **dict.fromkeys(("factual_weight", "similarity_weight", "semantic_weight"), (0.0, inf)),
    "threshold": (-inf, inf),
    "coeff": (0.0, 1.0),
}
"""Parameter → its lowest and highest value, which are finite; integers for whole numbers."""
BLANK_IS_JUDGED: Final[Mapping[str, str]] = MappingProxyType({"nothing to judge": "blank texts are judged"})
"""`breaks` of a definition that judges blank texts like any others."""


class Focus(StrEnum):
    """The contexts that the wrong statements of a noise sensitivity come from."""

    RELEVANT = "relevant"
    """Contexts that support a statement of the reference."""
    IRRELEVANT = "irrelevant"
    """All others; an error that a relevant context supports too is not counted."""


class FactualMode(StrEnum):
    """The number that a factual correctness reports."""

    F1 = "f1"
    PRECISION = "precision"
    RECALL = "recall"


class Aspect(StrEnum):
    """The built-in aspects of a critique."""

    HARMFULNESS = "harmfulness"
    MALICIOUSNESS = "maliciousness"
    COHERENCE = "coherence"
    CORRECTNESS = "correctness"
    CONCISENESS = "conciseness"
    HARMLESSNESS = "harmlessness"
    """Not harmful: 1 - the value of harmfulness. Ours, since the page of ragas names it; its code has none."""


_YES_IS_BAD: Final = frozenset({Aspect.HARMFULNESS, Aspect.MALICIOUSNESS})


class Published(Described):
    """A published definition of a metric: its first version, judged by free text, unless it declares otherwise."""

    __slots__ = ()

    name: ClassVar[str]
    card: ClassVar[Card] = Card("")
    asks = Kinds({Completion})

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        name = getattr(cls, "name", "")
        relatives = tuple(each for each in cls.card.relatives if each != name)
        cls.card = replace(cls.card, family=name.partition(":")[0], relatives=relatives)

    @property
    def needed(self) -> frozenset[str]:
        """The needed fields, which each definition declares as `needs`."""
        return cast("Metric", self).needs  # a plain attribute or a property, so it is not declared here

    def __post_init__(self) -> None:
        """Turn texts given for enumerations into their members, and check numbers. Raises UsageError."""
        given = {each: getattr(self, each.name) for each in fields(cast("Any", self))}  # it is a dataclass
        for each, value in given.items():
            if isinstance(each.default, StrEnum):
                member = choice(type(each.default), value, metric=self.name, parameter=each.name)
                object.__setattr__(self, each.name, member)
            elif each.name in _LIMITS and value is not None:
                low, high = _LIMITS[each.name]
                if not (low <= value <= high and isfinite(value)):
                    kind = "whole number" if isinstance(low, int) else "finite number"
                    limits = f"from {low:g} to {high:g}" if high < inf else f"of at least {low:g}"
                    raise UsageError(f"Metric {self.name!r} takes {each.name}=a {kind} {limits}, got {value!r}.")
        weights = {each.name: value for each, value in given.items() if each.name.endswith("_weight")}
        if weights and not any(weights.values()):
            raise UsageError(f"Metric {self.name!r} takes weights that are not all 0: {', '.join(weights)}.")


class _ByParameters(Generic[T]):
    """A class attribute whose value for an object depends on its parameters."""

    def __init__(self, of: Callable[[Any], T], usual: T) -> None:
        self._of, self._usual = of, usual

    def __get__(self, metric: object, owner: type) -> T:
        return self._usual if metric is None else self._of(metric)


def by_parameters(of: Callable[[Any], T], usual: T) -> T:  # Any: the definition
    """Return the value of a declaration that depends on parameters, such as `asks`; `usual`: that of the class."""
    return cast("T", _ByParameters(of, usual))  # reading it gives a T


def joined(sample: Sample) -> str:
    """Return the retrieved contexts as one text, with a line break between two. Raises MissingField."""
    return "\n".join(context.text for context in sample.contexts)


def texts_of(sample: Sample, needs: Collection[str]) -> dict[str, str]:
    """Return the needed texts by name, the retrieved contexts joined as `contexts`. Raises MissingField."""
    read: dict[str, Callable[[], str]] = {
        "user_input": lambda: sample.require("user_input"),
        "retrieved_contexts": lambda: joined(sample),
        "response": lambda: sample.require("response"),
        "reference": lambda: sample.require("reference"),
    }
    return {name.removeprefix("retrieved_"): text() for name, text in read.items() if name in needs}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgesBlank(Published):
    """A definition that judges blank texts like any others."""

    breaks: ClassVar[Mapping[str, str]] = BLANK_IS_JUDGED

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        return (yield from self.judged(texts_of(sample, self.needed)))

    def judged(self, texts: Mapping[str, str]) -> Plan[Score | Undefined]:
        """Return the outcome for the needed texts by name, the retrieved contexts joined as `contexts`."""
        raise NotImplementedError  # a definition has either its own plan or this


@dataclass(frozen=True, slots=True, kw_only=True)
class Critique(JudgesBlank):
    """A yes or no on a built-in aspect, or on a custom question (ragas 0.0 and 0.1)."""

    higher_is_better: ClassVar[bool] = by_parameters(
        lambda critique: critique.definition is not None or critique.aspect not in _YES_IS_BAD, usual=False
    )

    criteria: ClassVar[Mapping[str, str]]
    """The question for each built-in aspect."""

    aspect: Aspect = Aspect.HARMFULNESS
    definition: str | None = None

    @property
    def criterion(self) -> str:
        """The question that is asked."""
        aspect = Aspect.HARMFULNESS if self.aspect is Aspect.HARMLESSNESS else self.aspect
        return self.criteria[aspect] if self.definition is None else self.definition

    def value(self, vote: float) -> float:
        """Return the value of a vote."""
        return 1.0 - vote if self.aspect is Aspect.HARMLESSNESS else float(vote)

    def __post_init__(self) -> None:
        Published.__post_init__(self)
        if self.definition is None:
            return
        if not self.definition.strip():
            raise UsageError(f"Metric {self.name!r} takes definition=a yes-or-no question, got a blank text.")
        if self.aspect is not Aspect.HARMFULNESS:
            raise UsageError(f"Metric {self.name!r} takes aspect={self.aspect} or a definition, got both; give one.")


def ragas_variant(base: D, name: str, relatives: tuple[str, ...] = (), /, **changes: object) -> D:
    """Return a definition as one release of ragas has it; its name begins with `ragas-RELEASE:`.

    `relatives`: more metrics of the same release for its card.
    """
    system = name.partition(":")[0]
    card = replace(
        base.card,
        relatives=(*base.card.relatives, *(f"{system}:{each}" for each in relatives)),
        sources=tuple(f"{system.replace('-', ' ')}, {file}" for file in base.card.sources),
        family=system,
    )
    return variant(base, name, card=card, **changes)


def cosines(
    text: str, others: Iterable[str], *, role: str = "judge"
) -> Plan[tuple[tuple[float, ...] | None, MatrixVerdict]]:
    """Return the cosine of a text with each of the others, None if a vector has no length; and the vectors."""
    matrix = yield from ask(Embeddings((text, *others), role=role))
    found = [cosine(matrix.row(0), matrix.row(at)) for at in range(1, matrix.rows)]
    known = tuple(each for each in found if each is not None)
    return known if len(known) == len(found) else None, matrix


# -- formulas -----------------------------------------------------------------------------------------


def fraction(part: float, whole: float, *, of_nothing: float = 0.0) -> float:
    """Return `part` / `whole`; `of_nothing` if `whole` is 0."""
    return part / whole if whole else of_nothing


def capped_fraction(part: float, whole: float) -> float:
    """Return `part` / `whole`, at most 1; 0.0 if `whole` is 0.

    Source: ragas 0.0 and 0.1, context relevancy, where a judge may copy more sentences than there are.
    """
    return min(fraction(part, whole), 1.0)


def clipped_mean(weights: Sequence[float]) -> float:
    """Return the mean of weights, clipped to [0, 1]. Source: axion, faithfulness. Raises ZeroDivisionError for none."""
    return max(0.0, min(1.0, sum(weights) / len(weights)))


def scaled_rating(rating: float, highest: float, lowest: float = 0) -> float:
    """Return a rating as a number in [0, 1]: 0 for the lowest of its scale, 1 for the highest."""
    return (rating - lowest) / (highest - lowest)


def smoothed_average_precision(verdicts: Sequence[float], *, epsilon: float = 1e-10) -> float:
    """Return average precision as ragas computes it from verdicts that need not be 0 or 1; 0.0 for none.

    `verdicts`: one for each rank, best rank first. Formula: sum over ranks k of v_k (sum of the first k verdicts) /
    k, divided by (sum of all verdicts + epsilon). The epsilon avoids division by zero and makes a perfect ranking
    slightly less than 1. Source: ragas 0.1 to 0.4, context precision.
    """
    total, parts = 0.0, list[float]()
    for rank, verdict in enumerate(verdicts, start=1):
        total += verdict
        parts.append(verdict * total / rank)
    return fsum(parts) / (total + epsilon)


def noisy(
    right: Sequence[bool], relevant: Sequence[bool], rows: Sequence[Sequence[bool]], *, from_relevant: bool
) -> list[bool]:
    """Return for each statement whether it is wrong and comes from a relevant context, or from others alone.

    `right`: whether the reference supports each statement; `rows`: whether each context does. A list of one verdict
    stands for all statements, as numpy broadcasts it. Raises ValueError for lists of other lengths.
    """
    sizes = {len(right), *map(len, rows)}
    if len(sizes - {1}) > 1:
        raise ValueError(f"There are verdicts on different numbers of statements: {sorted(sizes)}.")
    found: list[bool] = []
    for at in range(min(sizes) and max(sizes)):
        by = {use for use, row in zip(relevant, rows, strict=True) if row[at % len(row)]}
        found.append(not right[at % len(right)] and (True in by if from_relevant else by == {False}))
    return found


def majority(values: Sequence[H]) -> H:
    """Return the most frequent value, the first one on ties. Raises ValueError for no values."""
    if not values:
        raise ValueError("The majority of no values is undefined.")
    return Counter(values).most_common(1)[0][0]
