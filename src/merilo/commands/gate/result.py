"""The decisions on a run: what there is to show of them, whoever shows it, in words that need no statistics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from merilo.rendering.wording import count, percent
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
    """If it cannot tell: ids of the fewest failed samples, at most 20, that would decide it if they had a score."""
    sequential: bool = False
    """Whether the limits are those of a confidence sequence, since the run could stop early."""
    same_outputs: bool = False
    """True if the inputs of the metric and its outcomes are equal in both runs on every sample; a drop then passes."""

    @property
    def verdict(self) -> Verdict:
        """Pass, fail or cannot tell."""
        return self.decision.verdict

    @property
    def reading(self) -> str:
        """What was found, in a sentence for people who have not read statistics."""
        return _reading(self)

    @property
    def loss(self) -> bool:
        """Whether the metric is worse than in the baseline with the gate's confidence, whatever drop is allowed."""
        return self.kind is Kind.DROP and self.decision.upper is not None and self.decision.upper < 0


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
    """What must be known to read the decisions, a sentence each."""
    other_questions: int = 0
    """How many ids name another question in the baseline; these samples are left out."""
    run_only: int = 0
    """How many samples the baseline does not have; they are not compared."""
    baseline_only: int = 0
    """How many samples of the baseline the run does not have; they are not compared."""
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

    @property
    def counts(self) -> dict[str, int]:
        """How many gates failed, were met and could not be decided."""
        found = [gate.verdict for gate in self.gates]
        named = {"failed": Verdict.FAIL, "met": Verdict.PASS, "undecided": Verdict.CANNOT_TELL}
        return {name: found.count(verdict) for name, verdict in named.items()}

    @property
    def losses(self) -> tuple[Gate, ...]:
        """The gates that do not fail although their metric is worse than in the baseline (see `Gate.loss`)."""
        return tuple(gate for gate in self.gates if gate.loss and gate.verdict is not Verdict.FAIL)

    @property
    def headline(self) -> str:
        """The verdict with the counts behind it, such as `pass: 1 met, 8 could not be decided`."""
        words = {"failed": "failed", "met": "met", "undecided": "could not be decided"}
        parts = [f"{amount:,} {words[name]}" for name, amount in self.counts.items() if amount]
        return f"{self.verdict}: {', '.join(parts)}"

    @property
    def warning(self) -> str:
        """The losses in one sentence; empty if there are none."""
        names = [f"{gate.metric} (by at least {_step(gate.decision.upper)})" for gate in self.losses]
        return f"Worse than the baseline, within what is allowed or undecided: {', '.join(names)}." if names else ""

    def __str__(self) -> str:
        """The headline and all decisions, a line for each, the ones that did not pass first."""
        rest = [gate for gate in self.gates if gate.verdict is Verdict.PASS]
        lines = [f"{gate.verdict}: {gate.reading}" for gate in (*self.obstacles, *rest)]
        return "\n".join(filter(None, (self.headline, self.warning, *lines)))

    def __repr__(self) -> str:
        """What a failed assertion shows: as short as possible, with the first obstacle."""
        if self.passed or not self.obstacles:
            return f"<{self.headline}>"
        first, more = self.obstacles[0], len(self.obstacles) - 1
        text = f"{first.verdict}: {first.reading}"
        text = text if len(text) <= _REPR else f"{text[: _REPR - 3]}..."
        return f"<{text}{f' And {more} more' if more else ''}>"


def _reading(gate: Gate) -> str:
    decision = gate.decision
    if decision.value is None:
        return f"{gate.metric} cannot be told: {_unscored(gate)}."
    if gate.same_outputs:
        return _same_reading(gate)
    if decision.lower is None or decision.upper is None:
        return f"{gate.metric}: {decision.reason}"
    if gate.kind is Kind.MINIMUM:
        return _minimum_reading(gate, decision.value, decision.lower, decision.upper)
    return _drop_reading(gate, decision.value, decision.lower, decision.upper)


def _same_reading(gate: Gate) -> str:
    excluded = gate.decision.excluded_drop
    rest = f" On other questions a drop of up to {excluded:.3f} is possible." if excluded else ""
    return (
        f"{gate.metric}: same outputs. The inputs and the scores of all {_samples(gate)} are equal in both runs, so "
        f"nothing changed on these questions.{rest}"
    )


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
    confidence = percent(gate.decision.level)
    loss = f" With {confidence} confidence it is worse, by at least {_step(upper)}." if gate.loss else ""
    head = f"{gate.metric} is {_change(value)} than the baseline over {_samples(gate)} of both"
    if gate.verdict is Verdict.PASS:
        return f"{head}, and with {confidence} confidence {_change(lower)} at worst; {asked}.{loss}"
    if gate.verdict is Verdict.FAIL:
        return f"{head}, and with {confidence} confidence {_change(upper)} at best; {asked}."
    excluded = gate.decision.excluded_drop
    rest = "" if excluded is None else f" A drop of more than {excluded:.3f} can be excluded."
    return f"{head}, but may be anything from {_change(lower)} to {_change(upper)}; {asked}.{rest}{loss}"


def _unscored(gate: Gate) -> str:
    where = "the run" if gate.kind is Kind.MINIMUM else "both runs"
    return f"no sample has a score in {where}"


def _change(difference: float) -> str:
    told = f"{abs(difference):.3f}"
    return "no better" if float(told) == 0 else f"{told} {'worse' if difference < 0 else 'better'}"


def _step(change: float | None) -> str:
    """The size of a change, never shown as none."""
    size = abs(change or 0.0)
    return f"{size:.3f}" if size >= 0.0005 else "less than 0.001"


def _samples(gate: Gate) -> str:
    told = count(gate.samples, "sample")
    return f"{told} ({gate.missing:,} more without a score reckoned both ways)" if gate.missing else told
