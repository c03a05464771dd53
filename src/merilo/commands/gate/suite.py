"""A suite of gates, from a file or from arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from merilo.commands.gate.result import CannotTell, FirstRun
from merilo.data.check import shown
from merilo.data.config_files import read_document
from merilo.errors import UsageError
from merilo.stats.compare import Policy

if TYPE_CHECKING:
    from os import PathLike

E = TypeVar("E", bound=StrEnum)


class LabelPolicy(StrEnum):
    """Whether gates need human labels."""

    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Suite:
    """The gates of a run. Raises UsageError for an invalid value."""

    minimums: Mapping[str, float] = field(default_factory=dict[str, float])
    """Metric, by full text or name → its minimum mean; its maximum mean if lower is better."""
    max_drop: float | Mapping[str, float] | None = None
    """Largest allowed loss against the baseline, on the scale of the metric: one number for every metric that both
    runs have, or one per metric. A rise if lower is better.
    """
    cluster: str | None = None
    """Field or metadata key; samples with equal values form one cluster. "": no clusters."""
    undefined: Policy | None = None
    """drop: leave Undefined outcomes out; worst: count them as the worst value. None: the gate passes or fails only if
    it does so in the best and the worst case.
    """
    cannot_tell: CannotTell | None = None
    """The final verdict for a gate that cannot tell; None: "cannot tell"."""
    trust_judge: bool = False
    """True: the embedded judge alone may decide minimums. Its level is not calibrated, so by default it cannot."""
    labels: LabelPolicy | None = None
    """required: without 20 labelled samples (pairs for a drop) a gate cannot tell."""
    maximums: Mapping[str, float] = field(default_factory=dict[str, float])
    """Metric for which lower is better, by full text or name → its maximum mean."""
    first_run: FirstRun | None = None
    """What a baseline that does not exist counts as; None: cannot tell."""

    def __post_init__(self) -> None:
        for name, value in self.minimums.items():
            _number(f"minimums of {name}", value)
        for name, value in self.maximums.items():
            _number(f"maximums of {name}", value)
            if name in self.minimums:
                raise UsageError(f"{name} is in minimums and in maximums. Give one.")
        drops: Mapping[str, float] = {}
        if isinstance(self.max_drop, Mapping):
            drops = {f"max_drop of {name}": value for name, value in self.max_drop.items()}
        elif self.max_drop is not None:
            drops = {"max_drop": self.max_drop}
        for name, value in drops.items():
            if _number(name, value) < 0:
                raise UsageError(f"{name} must be 0 or more, got {value:g}; write 0.05 to allow a drop of 0.05.")

    @property
    def means(self) -> Mapping[str, float]:
        """Metric → the mean that it must reach: `minimums` and `maximums` together."""
        return {**self.minimums, **self.maximums}

    @property
    def empty(self) -> bool:
        """True if the suite has no gate."""
        return not self.means and (self.max_drop is None or self.max_drop == {})


def read_suite(path: str | PathLike[str]) -> Suite:
    """Return the suite in a TOML, YAML or JSON file. Raises UsageError with the file and the key."""
    return suite_of(read_document(path), source=str(path))


def suite_of(record: Mapping[str, object], *, source: str) -> Suite:
    """Return the suite in a mapping of plain values. Raises UsageError for an unknown key, with a similar known one."""
    known = [each.name for each in fields(Suite)]
    for key in record:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            advice = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(known)}."
            raise UsageError(f"{source}: unknown key {key!r}; {advice}")
    try:
        return Suite(**{name: _READERS[name](value) for name, value in record.items()})
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None


def suite_from(
    path: str | PathLike[str] | None,
    *,
    minimums: Mapping[str, float] | None = None,
    maximums: Mapping[str, float] | None = None,
    **others: object,
) -> Suite:
    """Return the suite in a file, or an empty one; arguments other than None override its fields. Raises UsageError."""
    suite = Suite() if path is None else read_suite(path)
    lowest, highest = _numbers(minimums or {}, "minimums"), _numbers(maximums or {}, "maximums")
    return replace(
        suite,
        minimums={**_without(suite.minimums, highest), **lowest},
        maximums={**_without(suite.maximums, lowest), **highest},
        **{name: _READERS[name](value) for name, value in others.items() if value is not None},
    )


def _without(limits: Mapping[str, float], others: Mapping[str, float]) -> dict[str, float]:
    return {metric: limit for metric, limit in limits.items() if metric not in others}


def one_of(options: type[E], value: object, name: str) -> E | None:
    """Return the member that a text names; None for None. Raises UsageError."""
    if value is None:
        return None
    try:
        return options(cast("str", value))
    except ValueError:
        choices = " or ".join(option.value for option in options)
        raise UsageError(f"{name} must be {choices}, got {shown(value)}.") from None


def _number(name: str, value: object) -> float:
    try:
        found = None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except OverflowError:
        found = None
    if found is None or not isfinite(found):
        raise UsageError(f"{name} must be a finite number, got {shown(value)}.")
    return found


def _numbers(value: object, name: str) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{name} must give a number for each metric, as in faithfulness = 0.8; got {shown(value)}.")
    found = cast("Mapping[object, object]", value)
    return {str(metric): _number(f"{name} of {metric}", each) for metric, each in found.items()}


def _drop(value: object) -> float | dict[str, float] | None:
    if value is None or not isinstance(value, Mapping):
        return None if value is None else _number("max_drop", value)
    return _numbers(cast("object", value), "max_drop")


T = TypeVar("T")


def _typed(value: object, kind: type[T], name: str, wanted: str) -> T:
    if not isinstance(value, kind):
        raise UsageError(f"{name} must be {wanted}, got {shown(value)}.")
    return value


_READERS: Final[Mapping[str, Callable[[object], Any]]] = {  # Any: values of several types
    "minimums": lambda value: _numbers(value, "minimums"),
    "maximums": lambda value: _numbers(value, "maximums"),
    "max_drop": _drop,
    "cluster": lambda value: None if value is None else _typed(value, str, "cluster", "the name of a field"),
    "undefined": lambda value: one_of(Policy, value, "undefined"),
    "cannot_tell": lambda value: one_of(CannotTell, value, "cannot_tell"),
    "trust_judge": lambda value: _typed(value, bool, "trust_judge", "true or false"),
    "labels": lambda value: one_of(LabelPolicy, value, "labels"),
    "first_run": lambda value: one_of(FirstRun, value, "first_run"),
}
"""Field of a suite → function that reads its value from a file or an argument."""
