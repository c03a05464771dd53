"""What a run is held against: the gates of one project, from a file or from arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING, TypeVar, cast

from merilo.commands.gate.result import CannotTell
from merilo.data.check import shown
from merilo.data.documents import read_document
from merilo.errors import UsageError
from merilo.results.early_stopping import Until
from merilo.stats.compare import Policy
from merilo.stats.intervals import LEVEL, SEED

if TYPE_CHECKING:
    from os import PathLike

E = TypeVar("E", bound=StrEnum)

MOST_SEED = 2**53
"""Seeds below this are the same number in TOML, YAML and JSON."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The gates of a run. Raises UsageError for a value that makes no sense."""

    minimums: Mapping[str, float] = field(default_factory=dict[str, float])
    """Metric, by whole text or name → its least mean; its greatest mean where lower is better."""
    max_drop: float | Mapping[str, float] | None = None
    """How much worse than the baseline a metric may be, in its own unit: one number for every metric that both runs
    have, or one by metric. A rise where lower is better.
    """
    strict: bool = False
    """Whether any drop that is shown fails, also one within `max_drop`."""
    level: float = LEVEL
    """The confidence of each one-sided limit."""
    cluster: str | None = None
    """The field, or the key of the metadata, whose equal values make samples one cluster; "": none."""
    undefined: Policy | None = None
    """drop: leave Undefined outcomes out; worst: count them as the worst value. None: either may be, and the gate
    passes or fails only if it does so both ways.
    """
    cannot_tell: CannotTell | None = None
    """What a gate that cannot tell counts as in the end; None: neither."""
    seed: int = SEED
    """Of the order in which `merilo run --until-decided` takes samples."""

    def __post_init__(self) -> None:
        for name, value in self.minimums.items():
            _number(f"minimums of {name}", value)
        drops = self.max_drop if isinstance(self.max_drop, float | int | None) else None
        for name, value in ({"max_drop": drops} if drops is not None else _named(self.max_drop)).items():
            if _number(name, value) < 0:
                raise UsageError(f"A largest drop is 0 or more, got {value:g} ({name}); write 0.02 for a drop of 0.02.")
        if not 0.5 < self.level < 1:
            raise UsageError(f"A one-sided level lies between 0.5 and 1, got {self.level}; write 0.95 for 95 %.")
        if not 0 <= self.seed < MOST_SEED:
            raise UsageError(f"A seed is a whole number from 0 to 2^53, got {self.seed}.")

    @property
    def empty(self) -> bool:
        """Whether nothing is asked for."""
        return not self.minimums and (self.max_drop is None or self.max_drop == {})

    def until(self) -> Until:
        """The minimums as what may end a run early. Raises UsageError for a suite that only a whole run answers."""
        if self.max_drop is not None and self.max_drop != {}:
            raise UsageError(
                "A run can stop early by minimums only, and this suite has max_drop too; put the minimums into a suite "
                "of their own, or run to the end and use merilo gate."
            )
        if self.cluster:
            raise UsageError(
                f"A run that may stop early takes single samples in random order, but this suite has "
                f"cluster = {self.cluster!r}, whose samples are not single ones; run to the end and use merilo gate."
            )
        if not self.minimums:
            raise UsageError(
                "A run is stopped by minimums, and this suite has none; give it some: [minimums], m = 0.8."
            )
        return Until(dict(self.minimums), self.level, self.undefined, self.seed)


def read_suite(path: str | PathLike[str]) -> Suite:
    """The suite in a TOML, YAML or JSON file. Raises UsageError that names the file and the key."""
    return suite_of(read_document(path), source=str(path))


def suite_of(record: Mapping[str, object], *, source: str) -> Suite:
    """The suite in an object of plain values. Raises UsageError for an unknown key, with the nearest known one."""
    known = [each.name for each in fields(Suite)]
    for key in record:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            advice = f"did you mean {near[0]}?" if near else f"it may have {', '.join(known)}."
            raise UsageError(f"{source}: a suite has no key {key!r}; {advice}")
    try:
        return Suite(
            minimums=_numbers(record.get("minimums", {}), "minimums"),
            max_drop=_drop(record.get("max_drop")),
            strict=_typed(record.get("strict", False), bool, "strict", "true or false"),
            level=_number("level", record.get("level", LEVEL)),
            cluster=_text(record.get("cluster")),
            undefined=one_of(Policy, record.get("undefined"), "undefined"),
            cannot_tell=one_of(CannotTell, record.get("cannot_tell"), "cannot_tell"),
            seed=_seed(record.get("seed", SEED)),
        )
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None


def suite_from(
    path: str | PathLike[str] | None,
    *,
    minimums: Mapping[str, float] | None = None,
    max_drop: float | Mapping[str, float] | None = None,
    strict: bool | None = None,
    cannot_tell: str | None = None,
    undefined: str | None = None,
    cluster: str | None = None,
    level: float | None = None,
) -> Suite:
    """The suite in a file, an empty one without; what is given besides goes before what it says. Raises UsageError."""
    suite = Suite() if path is None else read_suite(path)
    return replace(
        suite,
        minimums={**suite.minimums, **_numbers(minimums or {}, "minimums")},
        max_drop=suite.max_drop if max_drop is None else _drop(max_drop),
        strict=suite.strict if strict is None else strict,
        cannot_tell=suite.cannot_tell if cannot_tell is None else one_of(CannotTell, cannot_tell, "cannot_tell"),
        undefined=suite.undefined if undefined is None else one_of(Policy, undefined, "undefined"),
        cluster=suite.cluster if cluster is None else cluster,
        level=suite.level if level is None else level,
    )


def until_from(given: str | PathLike[str] | Until) -> Until:
    """What may end a run early: as given, or the minimums of a suite in a file. Raises UsageError."""
    if isinstance(given, Until):
        return given
    suite = read_suite(given)
    try:
        return suite.until()
    except UsageError as error:
        raise UsageError(f"{given}: {error}") from None


def one_of(options: type[E], value: object, name: str) -> E | None:
    """The member that a text names; None for None. Raises UsageError."""
    if value is None:
        return None
    try:
        return options(cast("str", value))
    except ValueError:
        choices = " or ".join(option.value for option in options)
        raise UsageError(f"{name} is {choices}, got {shown(value)}.") from None


def _named(drops: object) -> dict[str, float]:
    return {f"max_drop of {name}": value for name, value in cast("Mapping[str, float]", drops or {}).items()}


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
    if value is None:
        return None
    if isinstance(value, Mapping):
        return _numbers(cast("object", value), "max_drop")
    return _number("max_drop", value)


def _text(value: object) -> str | None:
    return None if value is None else _typed(value, str, "cluster", "the name of a field")


def _seed(value: object) -> int:
    if isinstance(value, bool):
        raise UsageError(f"seed must be a whole number, got {shown(value)}.")
    return _typed(value, int, "seed", "a whole number")


T = TypeVar("T")


def _typed(value: object, kind: type[T], name: str, wanted: str) -> T:
    if not isinstance(value, kind):
        raise UsageError(f"{name} must be {wanted}, got {shown(value)}.")
    return value
