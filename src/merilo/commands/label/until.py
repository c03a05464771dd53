"""Labels until they decide: a comparison or the gates of a suite are checked while labels are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.commands.calibrate.human_labels import attach_file
from merilo.commands.compare.result import DECIDED
from merilo.commands.compare.run import ComparisonRequest, compare_runs
from merilo.commands.gate.run import gate_run
from merilo.commands.gate.suite import read_suite
from merilo.errors import UsageError
from merilo.results.basis import Basis
from merilo.stats.correction import DECIDING_LABELLED
from merilo.stats.gate import GateVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.gate.suite import Suite

COMPARE: Final = "compare"
MOST: Final = 320
"""Samples that are drawn for labels until they decide."""
_STEP: Final = 5
"""Labelled samples between two checks; a check may come at any time, but the annotator waits for it."""


@dataclass(slots=True)
class UntilDecided:
    """The decision that labels are given for: a comparison of the two runs, or the gates of a suite."""

    runs: Sequence[str]
    metric: str
    file: str
    suite: Suite | None
    """None: the comparison."""
    result: str = ""
    """The decision in one sentence; empty before it is made."""
    _checked: int = 0
    """Labelled samples at the last check."""

    @classmethod
    def of(cls, what: str, runs: Sequence[str], metric: str, file: str) -> UntilDecided:
        """Return the decision that `compare` or the path of a suite names. Raises UsageError."""
        if what == COMPARE:
            if len(runs) == 1:
                raise UsageError("--until compare needs two runs: merilo label A B.")
            return cls(runs, metric, file, None)
        suite, (*baseline, run) = read_suite(what), runs
        gate_run(run, suite, baseline=baseline[0] if baseline else None)  # raises for gates that cannot be checked
        return cls(runs, metric, file, suite)

    def __call__(self, labelled: int) -> bool:
        """Return True once this number of labelled samples decides."""
        if self.result or labelled < max(DECIDING_LABELLED, self._checked + _STEP):
            return bool(self.result)
        self._checked = labelled
        attach_file(self.runs, self.file)
        self.result = self._compared() if self.suite is None else self._gated(self.suite)
        return bool(self.result)

    @property
    def ending(self) -> str:
        """The decision, or that there is none."""
        return self.result or "Not decided by the labels so far"

    def _compared(self) -> str:
        found = compare_runs(self.runs, ComparisonRequest(metrics=[self.metric], samples=0))
        row = found.rows[0]
        return found.conclusion if row.basis is Basis.LABELS and row.verdict in DECIDED else ""

    def _gated(self, suite: Suite) -> str:
        *baseline, run = self.runs
        found = gate_run(run, suite, baseline=baseline[0] if baseline else None)
        own = [gate for gate in found.gates if gate.metric == self.metric]
        if not own:
            raise UsageError(f"The suite has no gate on {self.metric}, so labels of it decide nothing.")
        if any(gate.verdict is GateVerdict.CANNOT_TELL or gate.basis is not Basis.LABELS for gate in own):
            return ""
        return "; ".join(f"{gate.verdict}: {gate.reading}" for gate in own)
