"""The result of the gates on a run, and its wording."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from merilo.renderers import render
from merilo.rendering.weak import WEAK, weak_legend
from merilo.rendering.wording import count, percent
from merilo.results.basis import BY_JUDGE, Basis
from merilo.short_repr import short_repr
from merilo.stats.correction import DECIDING_LABELLED
from merilo.stats.gate import GateVerdict

if TYPE_CHECKING:
    from pathlib import Path

    from merilo.stats.gate import Decision

_REPR = 150
"""Maximum length of a reading in a repr: pytest truncates values at 240 characters, in the middle."""


class CannotTell(StrEnum):
    """The final verdict for a gate that cannot tell."""

    PASS = "pass"  # noqa: S105, no password
    FAIL = "fail"


class Kind(StrEnum):
    """The quantity that a gate checks."""

    MINIMUM = "minimum"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Gate:
    """One metric, its requirement, and the decision on it."""

    metric: str
    kind: Kind
    asked: float
    """The minimum (the maximum if lower is better), or the largest allowed drop, 0 or more."""
    strict: bool
    higher_is_better: bool
    decision: Decision
    samples: int
    """Number of samples with a score; for a drop, with a score in both runs."""
    missing: int
    """Number of unscored samples that widen the limits; for a drop, unscored in one of the two runs."""
    deciding: tuple[str, ...] = ()
    """If it cannot tell: ids of the fewest failed samples, at most 20, whose scores could decide it."""
    sequential: bool = False
    """True if the run could stop early: limits are those of a confidence sequence."""
    same_outputs: bool = False
    """True if inputs and outcomes of the metric are equal in both runs on every sample; the gate then passes."""
    weak: bool = False
    """True if the metric is weak with the judge."""

    basis: Basis = Basis.JUDGE
    """What the decision rests on."""
    labelled: int = 0
    """Number of labelled samples (pairs for a drop); a correction needs 20."""
    by_judge: Decision | None = None
    """The decision by the judge alone, if `decision` is corrected by human labels; otherwise None."""
    withheld: str = ""
    """The reason why numbers that would decide do not; otherwise empty."""

    @property
    def verdict(self) -> GateVerdict:
        """Pass, fail or cannot tell."""
        return self.decision.verdict

    @property
    def reading(self) -> str:
        """The result in one line: number, limit, number of samples and requirement."""
        text = _reading(self)
        if more := _basis_text(self):
            text = f"{text}{'' if text.endswith('.') else '.'} {more}"
        return f"{text}{'' if text.endswith('.') else '.'} {WEAK.capitalize()}." if self.weak else text

    @property
    def loss(self) -> bool:
        """True if the metric is significantly worse than in the baseline, whatever drop is allowed."""
        return self.kind is Kind.DROP and self.decision.upper is not None and self.decision.upper < 0

    def __repr__(self) -> str:
        """Return the verdict and the result in one line, shortened."""
        return short_repr(self, verdict=self.verdict.value, reading=self.reading)


@dataclass(frozen=True, slots=True, repr=False)
class Gates:
    """The decisions on a run; `passed` is the property for an assertion."""

    run: Path
    baseline: Path | None
    gates: tuple[Gate, ...]
    level: float
    cluster: str | None
    """The field that clusters the samples; None: no clusters."""
    cannot_tell: CannotTell | None
    """The final verdict for a gate that cannot tell; None: "cannot tell"."""
    notes: tuple[str, ...] = ()
    """Notes on the interpretation of the decisions, a sentence each."""
    other_questions: int = 0
    """Number of ids that name another question in the baseline; these samples are left out."""
    run_only: int = 0
    """Number of samples that the baseline does not have; they are not compared."""
    baseline_only: int = 0
    """Number of samples of the baseline that the run does not have; they are not compared."""
    foreign: bool = False
    """True if the scores were imported, not computed by merilo."""
    holm: bool = False
    """True if failures are those that Holm's method shows for all gates together."""

    @property
    def verdict(self) -> GateVerdict:
        """Fail if any gate fails; else cannot tell, or `cannot_tell`, if any gate cannot tell; else pass."""
        found = {gate.verdict for gate in self.gates}
        if GateVerdict.FAIL in found:
            return GateVerdict.FAIL
        if GateVerdict.CANNOT_TELL in found:
            return GateVerdict.CANNOT_TELL if self.cannot_tell is None else GateVerdict(self.cannot_tell.value)
        return GateVerdict.PASS

    @property
    def passed(self) -> bool:
        """True if every gate passes, or cannot tell and that counts as passing."""
        return self.verdict is GateVerdict.PASS

    @property
    def obstacles(self) -> tuple[Gate, ...]:
        """The gates that did not pass, failed ones first."""
        ordered = (GateVerdict.FAIL, GateVerdict.CANNOT_TELL)
        return tuple(gate for verdict in ordered for gate in self.gates if gate.verdict is verdict)

    @property
    def ordered(self) -> tuple[Gate, ...]:
        """All gates, those that did not pass first."""
        return (*self.obstacles, *(gate for gate in self.gates if gate.verdict is GateVerdict.PASS))

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of gates that failed, were met and could not be decided."""
        found = [gate.verdict for gate in self.gates]
        named = {"failed": GateVerdict.FAIL, "met": GateVerdict.PASS, "undecided": GateVerdict.CANNOT_TELL}
        return {name: found.count(verdict) for name, verdict in named.items()}

    @property
    def weak_note(self) -> str:
        """The metrics that are weak with the judge, in one sentence; empty if there are none."""
        text = weak_legend(gate.metric for gate in self.gates if gate.weak).removeprefix("* ")
        return f"{text[:1].upper()}{text[1:]}"

    @property
    def losses(self) -> tuple[Gate, ...]:
        """The gates that do not fail although their metric is significantly worse (see `Gate.loss`)."""
        return tuple(gate for gate in self.gates if gate.loss and gate.verdict is not GateVerdict.FAIL)

    @property
    def headline(self) -> str:
        """The verdict with the numbers of gates, such as `pass: 1 met, 8 undecided`."""
        words = {"failed": "failed", "met": "met", "undecided": "undecided"}
        parts = [f"{amount:,} {words[name]}" for name, amount in self.counts.items() if amount]
        text = f"{self.verdict}: {', '.join(parts)}"
        alone = len(self.by_judge_alone)
        if not alone:
            return text
        return f"{text}, {BY_JUDGE}" if alone == len(self.gates) else f"{text} ({alone:,} {BY_JUDGE})"

    @property
    def by_judge_alone(self) -> tuple[Gate, ...]:
        """The gates whose numbers are those of a judge, not corrected by human labels."""
        return tuple(gate for gate in self.gates if gate.basis is Basis.JUDGE)

    @property
    def warning(self) -> str:
        """The losses in one sentence; empty if there are none."""
        names = [f"{gate.metric} (by at least {_step(gate.decision.upper)})" for gate in self.losses]
        return f"Significantly worse than the baseline, but not failed: {', '.join(names)}." if names else ""

    def __str__(self) -> str:
        """Return the headline and all decisions, a line for each, those that did not pass first."""
        lines = [f"{gate.verdict}: {gate.reading}" for gate in self.ordered]
        return "\n".join(filter(None, (self.headline, self.warning, *lines)))

    def _repr_html_(self) -> str:
        """Return a table of the decisions for notebooks."""
        return str(render(self, "html"))

    def __repr__(self) -> str:
        """Return a short text with the first gate that did not pass, for the message of a failed assertion."""
        if self.passed or not self.obstacles:
            return f"<{self.headline}>"
        first, more = self.obstacles[0], len(self.obstacles) - 1
        text = f"{first.verdict}: {first.reading}"
        text = text if len(text) <= _REPR else f"{text[: _REPR - 3]}..."
        return f"<{text}{f'; and {more} more' if more else ''}>"


def _reading(gate: Gate) -> str:
    decision = gate.decision
    if decision.value is None:
        return f"{gate.metric}: {_unscored(gate)}."
    if gate.same_outputs:
        return _same_reading(gate)
    if decision.lower is None or decision.upper is None:
        return f"{gate.metric}: {decision.reason}"
    if gate.kind is Kind.MINIMUM:
        return _minimum_reading(gate, decision.value, decision.lower, decision.upper)
    return _drop_reading(gate, decision.value, decision.lower, decision.upper)


def _basis_text(gate: Gate) -> str:
    """Return a sentence on why the gate cannot tell, on the labels, or that the judge alone decided; may be empty."""
    thing = "sample" if gate.kind is Kind.MINIMUM else "pair"
    if gate.withheld:
        return f"Cannot tell: {gate.withheld}."
    if gate.by_judge is not None and gate.by_judge.value is not None:
        sign = 1 if gate.higher_is_better or gate.kind is Kind.MINIMUM else -1
        value = gate.by_judge.value
        alone = f"{value:.3f}" if gate.kind is Kind.MINIMUM else _change(sign * value)
        return f"Corrected by {gate.labelled:,} labelled {thing}s; {BY_JUDGE} {alone}."
    if gate.labelled:
        return f"{count(gate.labelled, f'labelled {thing}')}; a correction needs {DECIDING_LABELLED}."
    return ""


def _same_reading(gate: Gate) -> str:
    excluded = gate.decision.excluded_drop
    rest = f" On other questions a drop of up to {excluded:.3f} is possible." if excluded else ""
    return f"{gate.metric}: same outputs. Inputs and scores are equal in both runs ({_samples(gate, 'sample')}).{rest}"


def _minimum_reading(gate: Gate, value: float, lower: float, upper: float) -> str:
    bound = f"{'minimum' if gate.higher_is_better else 'maximum'} {gate.asked:g}"
    limits = _limits(gate, f"{lower:.3f}", f"{upper:.3f}")
    return f"{gate.metric} {value:.3f} ({limits}, {_samples(gate, 'sample')}; {bound})"


def _drop_reading(gate: Gate, value: float, lower: float, upper: float) -> str:
    # a decision counts every improvement as positive: show the change of the score itself
    sign = 1 if gate.higher_is_better else -1
    low, high = (lower, upper) if gate.higher_is_better else (-upper, -lower)
    allowed = f"allowed {-sign * gate.asked:+g}" if gate.asked else "allowed 0"
    if gate.strict:
        allowed += ", no significant drop"
    limits = _limits(gate, _change(low), _change(high))
    text = f"{gate.metric} {_change(sign * value)} vs. baseline ({limits}, {_samples(gate, 'pair')}; {allowed})"
    more: list[str] = []
    excluded = gate.decision.excluded_drop
    if gate.verdict is GateVerdict.CANNOT_TELL and excluded is not None:
        more.append(f"A drop of more than {excluded:.3f} can be excluded.")
    if gate.loss and gate.verdict is not GateVerdict.FAIL:
        more.append(f"Significantly worse, by at least {_step(upper)}.")
    return " ".join([f"{text}.", *more]) if more else text


def _unscored(gate: Gate) -> str:
    where = "the run" if gate.kind is Kind.MINIMUM else "both runs"
    return f"no sample has a score in {where}"


def _limits(gate: Gate, low: str, high: str) -> str:
    """Return the confidence limit that the verdict is based on; both limits if the gate cannot tell."""
    level = percent(gate.decision.level)
    if gate.verdict is GateVerdict.CANNOT_TELL:
        return f"{level} limits {low} to {high}"
    # a pass needs the pessimistic limit, a failure the optimistic one; lower is better swaps the two
    if (gate.verdict is GateVerdict.PASS) is gate.higher_is_better:
        return f"{level} lower limit {low}"
    return f"{level} upper limit {high}"


def _change(difference: float) -> str:
    text = f"{difference:+.3f}"
    return "0.000" if float(text) == 0 else text


def _step(change: float | None) -> str:
    """Return the size of a change, never rounded to 0."""
    size = abs(change or 0.0)
    return f"{size:.3f}" if size >= 0.0005 else "less than 0.001"


def _samples(gate: Gate, thing: str) -> str:
    text = count(gate.samples, thing)
    return f"{text} and {gate.missing:,} unscored" if gate.missing else text
