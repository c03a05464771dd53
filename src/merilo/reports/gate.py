"""The decisions on a run: what there is to show of them, whoever shows it, in words that need no statistics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from merilo.reports.words import count, percent
from merilo.stats.gate import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from merilo.stats.gate import Decision

_REPR = 150
"""pytest cuts what it shows of a value at 240 characters, in the middle."""


class CannotTell(StrEnum):
    """What a gate that cannot tell counts as."""

    PASS = "pass"  # noqa: S105, no password
    FAIL = "fail"


class Kind(StrEnum):
    """What a gate looks at."""

    MINIMUM = "minimum"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Gate:
    """One metric, what was asked of it, and what its scores say to that."""

    metric: str
    kind: Kind
    asked: float
    """The minimum (the maximum where lower is better), or the largest drop allowed, 0 or more."""
    strict: bool
    higher_is_better: bool
    decision: Decision
    samples: int
    """How many have a score; of a drop: in both runs."""
    missing: int
    """How many have none; of a drop: in one of the two runs."""
    deciding: tuple[str, ...] = ()
    """Where it cannot tell: ids of the fewest samples, at most 20, that would decide it if they came out otherwise."""
    sequential: bool = False
    """Whether the limits are those of a confidence sequence, since the run could stop early."""

    @property
    def verdict(self) -> Verdict:
        """Pass, fail or cannot tell."""
        return self.decision.verdict

    @property
    def reading(self) -> str:
        """What was found, in a sentence for people who have not read statistics."""
        return _reading(self)


@dataclass(frozen=True, slots=True, repr=False)
class Gates:
    """The decisions on a run; `passed` is what an assertion asks for."""

    run: Path
    baseline: Path | None
    gates: tuple[Gate, ...]
    level: float
    cluster: str | None
    """The field by which samples were clustered; None: each stood alone."""
    cannot_tell: CannotTell | None
    """What a gate that cannot tell counts as."""
    notes: tuple[str, ...] = ()
    """What must be said beside the decisions."""
    foreign: bool = False
    """Whether the scores come from elsewhere, and not from a judge of ours."""

    @property
    def verdict(self) -> Verdict:
        """Fail if any gate fails, else cannot tell if any cannot (unless that was given a meaning), else pass."""
        found = {gate.verdict for gate in self.gates}
        if Verdict.FAIL in found:
            return Verdict.FAIL
        if Verdict.CANNOT_TELL in found:
            return Verdict.CANNOT_TELL if self.cannot_tell is None else Verdict(self.cannot_tell.value)
        return Verdict.PASS

    @property
    def passed(self) -> bool:
        """Whether every gate passes, or cannot tell where that counts as passing."""
        return self.verdict is Verdict.PASS

    @property
    def obstacles(self) -> tuple[Gate, ...]:
        """The gates that did not pass, failed ones first."""
        ordered = (Verdict.FAIL, Verdict.CANNOT_TELL)
        return tuple(gate for verdict in ordered for gate in self.gates if gate.verdict is verdict)

    def __str__(self) -> str:
        """All decisions, a line for each, the ones that did not pass first."""
        rest = [gate for gate in self.gates if gate.verdict is Verdict.PASS]
        return "\n".join(f"{gate.verdict}: {gate.reading}" for gate in (*self.obstacles, *rest))

    def __repr__(self) -> str:
        """What a failed assertion shows: as short as may be, with the first obstacle."""
        if not self.obstacles:
            return f"<{len(self.gates)} gates, passed>"
        first, more = self.obstacles[0], len(self.obstacles) - 1
        text = f"{first.verdict}: {first.reading}"
        text = text if len(text) <= _REPR else f"{text[: _REPR - 3]}..."
        return f"<{text}{f' And {more} more' if more else ''}>"


def _reading(gate: Gate) -> str:
    decision = gate.decision
    if decision.value is None:
        return f"{gate.metric} cannot be told: {_unscored(gate)}."
    if decision.lower is None or decision.upper is None:
        return f"{gate.metric}: {decision.reason}"
    if gate.kind is Kind.MINIMUM:
        return _minimum_reading(gate, decision.value, decision.lower, decision.upper)
    return _drop_reading(gate, decision.value, decision.lower, decision.upper)


def _minimum_reading(gate: Gate, value: float, lower: float, upper: float) -> str:
    asked = f"at {'least' if gate.higher_is_better else 'most'} {gate.asked:g} was asked for"
    head = f"{gate.metric} is {value:.3f} over {_samples(gate)}"
    if gate.verdict is Verdict.CANNOT_TELL:
        return f"{head}, but may be anything from {lower:.3f} to {upper:.3f}; {asked}."
    known_least = (gate.verdict is Verdict.PASS) is gate.higher_is_better
    limit = f"at least {lower:.3f}" if known_least else f"at most {upper:.3f}"
    return f"{head}, and with {percent(gate.decision.level)} confidence {limit}; {asked}."


def _drop_reading(gate: Gate, value: float, lower: float, upper: float) -> str:
    asked = f"a drop of {gate.asked:g} was allowed"
    if gate.strict:
        asked += ", and none that is sure to be one"
    head = f"{gate.metric} is {_change(value)} than the baseline over {_samples(gate)} of both"
    if gate.verdict is Verdict.PASS:
        return f"{head}, and with {percent(gate.decision.level)} confidence {_change(lower)} at worst; {asked}."
    if gate.verdict is Verdict.FAIL:
        return f"{head}, and with {percent(gate.decision.level)} confidence {_change(upper)} at best; {asked}."
    excluded = gate.decision.excluded_drop
    rest = "" if excluded is None else f" A drop of more than {excluded:.3f} can be excluded."
    return f"{head}, but may be anything from {_change(lower)} to {_change(upper)}; {asked}.{rest}"


def _unscored(gate: Gate) -> str:
    where = "the run" if gate.kind is Kind.MINIMUM else "both runs"
    return f"no sample has a score in {where}"


def _change(difference: float) -> str:
    told = f"{abs(difference):.3f}"
    return "no better" if float(told) == 0 else f"{told} {'worse' if difference < 0 else 'better'}"


def _samples(gate: Gate) -> str:
    told = count(gate.samples, "sample")
    return f"{told} ({gate.missing:,} more without a score reckoned both ways)" if gate.missing else told
