"""The result of the gates on a run, and its wording."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from merilo.numbers import between, count, number, percent, signed
from merilo.results.estimate import BY_JUDGE, Basis, Estimate
from merilo.results.means import WEAK, weak_legend
from merilo.short_repr import short_repr
from merilo.stats.correction import DECIDING_LABELLED
from merilo.stats.gate import Decision, GateVerdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_REPR = 150
"""Maximum length of a reading in a repr: pytest truncates values at 240 characters, in the middle."""
NO_BASELINE = "no baseline"


class CannotTell(StrEnum):
    """The final verdict for a gate that cannot tell."""

    PASS = "pass"  # noqa: S105, no password
    FAIL = "fail"


class FirstRun(StrEnum):
    """The final verdict if the baseline does not exist, and every other gate passes."""

    PASS = "pass"  # noqa: S105, no password
    CANNOT_TELL = "cannot tell"
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
    higher_is_better: bool
    decision: Decision
    estimate: Estimate
    """The mean; for a drop, the difference of the comparison, whatever is better."""
    deciding: tuple[str, ...] = ()
    """If it cannot tell because of samples without a score: ids of some of the failed ones."""
    withheld: str = ""
    """The reason why numbers that would decide do not; otherwise empty."""
    means: tuple[float, float] | None = None
    """For a drop, the means of the baseline and of the run over the pairs."""

    @property
    def verdict(self) -> GateVerdict:
        """Pass, fail or cannot tell."""
        return self.decision.verdict

    @property
    def same_outputs(self) -> bool:
        """True if inputs and outcomes of the metric are equal in both runs on every sample; the gate then passes."""
        return self.estimate.caveat("no-change") is not None

    @property
    def by_judge(self) -> Mapping[str, Any]:  # Any: JSON
        """The number of labelled samples (pairs for a drop), and the judge's own number; empty without labels."""
        found = self.estimate.caveat("labelled")
        return {} if found is None else found.facts

    @property
    def facts(self) -> str:
        """The number, its interval, the number of samples and the requirement, in one line."""
        return f"{_reading(self).rstrip('.')}."

    @property
    def numbers(self) -> str:
        """The number and its interval, in few words."""
        if self.estimate.interval is None or self.same_outputs:
            return self.facts
        return f"{self.metric}{_worse(self)}{_change(self)} ({_interval(self)})."

    @property
    def reading(self) -> str:
        """The result in one line: the facts, and why they do not decide."""
        more = [
            f"Cannot tell: {self.withheld}." if self.withheld else "",
            f"{WEAK.capitalize()}." if self.estimate.caveat("weak") else "",
        ]
        return " ".join([self.facts, *filter(None, more)])

    def __repr__(self) -> str:
        return short_repr(self, verdict=self.verdict.value, reading=self.reading)


@dataclass(frozen=True, slots=True, repr=False)
class Gates:
    """The decisions on a run; `passed` is the property for an assertion."""

    run: Path
    baseline: Path | None
    gates: tuple[Gate, ...]
    cluster: str | None
    """The field that clusters the samples; None: no clusters."""
    cannot_tell: CannotTell | None
    """The final verdict for a gate that cannot tell; None: "cannot tell"."""
    notes: tuple[str, ...] = ()
    """Notes on the interpretation of the decisions, a sentence each."""
    first_run: FirstRun | None = None
    """What a baseline that does not exist counts as; None if it exists, or if none is asked for."""

    @property
    def verdict(self) -> GateVerdict:
        """Fail if any gate fails; else no baseline, or what `first_run` says, if the baseline does not exist; else
        cannot tell, or `cannot_tell`, if any gate cannot tell; else pass.
        """
        found = {gate.verdict for gate in self.gates}
        if GateVerdict.FAIL in found or self.first_run is FirstRun.FAIL:
            return GateVerdict.FAIL
        if self.first_run is FirstRun.CANNOT_TELL:
            return GateVerdict.NO_BASELINE
        if GateVerdict.CANNOT_TELL in found:
            return GateVerdict.CANNOT_TELL if self.cannot_tell is None else GateVerdict(self.cannot_tell.value)
        return GateVerdict.PASS

    @property
    def passed(self) -> bool:
        """True if every gate passes, or cannot tell and that counts as passing."""
        return self.verdict is GateVerdict.PASS

    def __bool__(self) -> bool:
        return self.passed

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
        text = weak_legend(gate.metric for gate in self.gates if gate.estimate.caveat("weak")).removeprefix("* ")
        return f"{text[:1].upper()}{text[1:]}"

    @property
    def headline(self) -> str:
        """The verdict with the numbers of gates, such as `fail: 1 failed, 1 passed, 8 cannot tell`."""
        words = {"failed": "failed", "met": "passed", "undecided": "cannot tell"}
        parts = [f"{amount:,} {words[name]}" for name, amount in self.counts.items() if amount]
        text = ": ".join(filter(None, (self.verdict.value, ", ".join(parts))))
        alone = len(self.by_judge_alone)
        if not alone:
            return text
        return f"{text}, {BY_JUDGE}" if alone == len(self.gates) else f"{text} ({alone:,} {BY_JUDGE})"

    @property
    def no_baseline(self) -> str:
        """What was checked without the baseline; empty if it exists, or if none is asked for."""
        if self.first_run is None:
            return ""
        checked = "Nothing was checked."
        if self.gates:
            met = self.counts["met"] == len(self.gates)
            checked = f"{count(len(self.gates), 'minimum')} {'was' if len(self.gates) == 1 else 'were'} checked" + (
                f" and {'passes' if len(self.gates) == 1 else 'pass'}." if met else "."
            )
        return f"{self.baseline} does not exist. {checked}"

    @property
    def by_judge_alone(self) -> tuple[Gate, ...]:
        """The gates whose numbers are those of a judge, not corrected by human labels."""
        return tuple(gate for gate in self.gates if gate.estimate.basis is Basis.JUDGE)

    def __str__(self) -> str:
        """Return the headline and all decisions, a line for each, those that did not pass first."""
        missing = f"{NO_BASELINE}: {self.no_baseline}" if self.no_baseline else ""
        lines = [f"{gate.verdict}: {gate.reading}" for gate in self.ordered]
        return "\n".join(filter(None, (self.headline, missing, *lines)))

    def _repr_html_(self) -> str:
        """Return the printed text for notebooks."""
        from merilo.rendering.markup import printed_html

        return printed_html(self)

    def __repr__(self) -> str:
        """Return a short text with the first gate that did not pass, for the message of a failed assertion."""
        if self.passed or not self.obstacles:
            return f"<{self.headline}>"
        first, more = self.obstacles[0], len(self.obstacles) - 1
        text = f"{first.verdict}: {first.reading}"
        text = text if len(text) <= _REPR else f"{text[: _REPR - 3]}..."
        return f"<{text}{f'; and {more} more' if more else ''}>"


def _reading(gate: Gate) -> str:
    if gate.estimate.value is None:
        where = "the run" if gate.kind is Kind.MINIMUM else "both runs"
        return f"{gate.metric}: no sample has a score in {where}"
    if gate.same_outputs:
        return _same_reading(gate)
    worse = _worse(gate)
    alone = f", {BY_JUDGE}" if gate.estimate.basis is Basis.JUDGE and worse == " " else ""
    if gate.estimate.interval is None:
        return f"{gate.metric}: {gate.decision.reason}"
    facts = "; ".join(filter(None, (_interval(gate), _samples(gate), _asked(gate))))
    return f"{gate.metric}{worse}{_change(gate)} ({facts}){alone}"


def _worse(gate: Gate) -> str:
    """Return "is worse:" for a failed drop; a judge alone is named with it."""
    if gate.kind is not Kind.DROP or gate.verdict is not GateVerdict.FAIL:
        return " "
    return f" is worse, {BY_JUDGE}: " if gate.estimate.basis is Basis.JUDGE else " is worse: "


def _change(gate: Gate) -> str:
    """Return the mean; for a drop, both means and the difference of the scores."""
    if gate.kind is Kind.MINIMUM:
        return number(gate.estimate.value)
    before, after = gate.means or (0.0, 0.0)
    return f"{before:.3f} to {after:.3f}, {signed(gate.estimate.value)}"


def _interval(gate: Gate) -> str:
    ends = gate.estimate.interval or (0.0, 0.0)
    shown = between(ends) if gate.kind is Kind.DROP else " to ".join(map(number, ends))
    return f"{percent(gate.decision.level)} {shown}"


def _samples(gate: Gate) -> str:
    labelled = f"{gate.by_judge['labelled']:,}" if gate.by_judge else ""
    if labelled:
        labelled += " labelled" if gate.estimate.basis is Basis.LABELS else f" of {DECIDING_LABELLED} needed labels"
    missing = f"{gate.estimate.missing.total:,} unscored" if gate.estimate.missing.total else ""
    return ", ".join(filter(None, (count(gate.estimate.samples, "question"), labelled, missing)))


def _asked(gate: Gate) -> str:
    if gate.kind is Kind.MINIMUM:
        return f"{'minimum' if gate.higher_is_better else 'maximum'} {gate.asked:g}"
    return f"allowed {-gate.asked if gate.higher_is_better else gate.asked:+g}" if gate.asked else "allowed 0"


def _same_reading(gate: Gate) -> str:
    lower = gate.decision.lower
    rest = f". On other questions a drop of up to {-lower:.3f} is possible" if lower is not None and lower < 0 else ""
    samples = count(gate.estimate.samples, "question")
    return f"{gate.metric}: no change. Inputs and scores are equal in both runs ({samples}){rest}"
