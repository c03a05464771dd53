"""The decisions on the gates of a suite: by the judge, or corrected by the human labels attached to the runs."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

from merilo.commands.calibrate.correction import UsableLabels, paired_labels, usable_labels
from merilo.commands.gate.result import Gate, Kind
from merilo.commands.gate.suite import LabelPolicy
from merilo.errors import UsageError
from merilo.results.basis import Basis, basis_of, judged_by_embedded
from merilo.results.early_stopping import stop_of
from merilo.runs.scales import check_asked
from merilo.stats.compare import Policy
from merilo.stats.corrected_gates import corrected_drop, corrected_minimum
from merilo.stats.correction import DECIDING_LABELLED
from merilo.stats.gate import GateVerdict, gate_drop, gate_minimum

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from merilo.commands.gate.pairing import PairedRuns
    from merilo.commands.gate.suite import Suite
    from merilo.results.scores import RunScores
    from merilo.runs.run import Run
    from merilo.stats.column import Column
    from merilo.stats.corrected_pairs import PairLabels
    from merilo.stats.correction import Labels
    from merilo.stats.gate import Decision

_NOT_JOINTLY = "not shown for all gates together (Holm)"


class AskedGates:
    """The gates of a suite on a run, with the labels that correct them."""

    def __init__(
        self,
        scores: RunScores,
        pair: PairedRuns | None,
        minimums: Mapping[str, float],
        drops: Mapping[str, float],
        *,
        judge_only: bool,
    ) -> None:
        self._scores, self._pair = scores, pair
        self._minimums, self._drops = minimums, drops
        stop = stop_of(scores.run.manifest)
        self._early = 0 if stop is None else stop.largest
        use = not judge_only and stop is None
        self._labels: UsableLabels[Labels] = UsableLabels({}, ())
        self._paired: UsableLabels[PairLabels] = UsableLabels({}, ())
        if use and minimums:
            self._labels = usable_labels(scores, list(minimums))
        if use and pair is not None:
            self._paired = paired_labels(pair.base, pair.new, list(drops))
        self.notes = (*self._labels.notes, *self._paired.notes)

    def gates(self, suite: Suite) -> list[Gate]:
        """Return the decisions at the level of a suite."""
        found = [
            _minimum(self._scores, text, asked, suite, self._labels.labels.get(text), early=self._early)
            for text, asked in self._minimums.items()
        ]
        if self._pair is not None:
            found += [
                _drop(self._pair, text, asked, suite, self._paired.labels.get(text), early=self._early)
                for text, asked in self._drops.items()
            ]
        return [_withheld(gate, self._scores.run, suite) for gate in found]


def with_holm(gates: Callable[[Suite], list[Gate]], suite: Suite) -> list[Gate]:
    """Return the decisions, with failures that are shown for all gates together by Holm's method.

    `gates`: the decisions at the level of a suite. A failure that is not shown then cannot tell. Passing is not
    corrected: a build that misses one target passes all gates at most as often as it passes that one.
    """
    found = gates(suite)
    failed: set[int] = set()
    while True:
        left = len(found) - len(failed)
        strict = gates(replace(suite, level=1 - (1 - suite.level) / left)) if left else []
        more = {place for place, gate in enumerate(strict) if gate.verdict is GateVerdict.FAIL} - failed
        if not more:
            break
        failed |= more
    return [
        replace(gate, decision=_undecided(gate), withheld=_NOT_JOINTLY)
        if gate.verdict is GateVerdict.FAIL and place not in failed
        else gate
        for place, gate in enumerate(found)
    ]


def _undecided(gate: Gate) -> Decision:
    return replace(gate.decision, verdict=GateVerdict.CANNOT_TELL, deciding=(), would=None)


def _withheld(gate: Gate, run: Run, suite: Suite) -> Gate:
    """Return the gate without a verdict, if the judge alone may not decide it."""
    if gate.basis is not Basis.JUDGE or gate.same_outputs or gate.decision.value is None:
        return gate
    why = ""
    if suite.labels is LabelPolicy.REQUIRED:
        why = f"the suite requires human labels ({_few(gate)})"
    elif gate.kind is Kind.MINIMUM and judged_by_embedded(run.manifest) and not suite.trust_judge:
        why = "the level of this judge is not calibrated on this data"
    return replace(gate, decision=_undecided(gate), withheld=why) if why else gate


def _few(gate: Gate) -> str:
    what = "samples" if gate.kind is Kind.MINIMUM else "pairs"
    return f"labelled so far: {gate.labelled:,} of {DECIDING_LABELLED} {what}"


def _policy(suite: Suite, column: Column) -> Policy | None:
    """Return how Undefined outcomes count. Raises UsageError if the worst value is infinite."""
    if suite.undefined is Policy.WORST and not isfinite(column.worst):
        raise UsageError("A metric with an infinite range has no worst value. Use --undefined drop.")
    return suite.undefined


def _minimum(scores: RunScores, text: str, asked: float, suite: Suite, labels: Labels | None, *, early: int) -> Gate:
    column = scores.columns[text]
    check_asked(text, asked, column.span)
    policy, clusters, level = _policy(suite, column), scores.clusters, suite.level
    decision = gate_minimum(column, asked, clusters=clusters, undefined=policy, level=level, early=early)
    corrected = None
    if labels is not None:
        corrected = corrected_minimum(column, asked, labels, clusters=clusters, undefined=policy, level=level)
    scored = int(column.scored.sum())
    chosen = corrected or decision
    return Gate(
        metric=text,
        kind=Kind.MINIMUM,
        asked=asked,
        strict=False,
        higher_is_better=column.higher_is_better,
        decision=chosen,
        samples=scored,
        missing=len(column) - scored if suite.undefined is not Policy.DROP else int(column.failed.sum()),
        deciding=tuple(scores.ids[place] for place in chosen.deciding),
        sequential=bool(early),
        basis=basis_of(text, corrected=corrected is not None),
        labelled=0 if labels is None else labels.samples,
        by_judge=decision if corrected is not None else None,
    )


def _drop(pair: PairedRuns, text: str, asked: float, suite: Suite, labels: PairLabels | None, *, early: int) -> Gate:
    base, new = pair.base.columns[text], pair.new.columns[text]
    policy, strict, level = _policy(suite, new), suite.strict, suite.level
    same = text in pair.equal_inputs and _equal_outcomes(base, new)
    clusters = pair.new.clusters
    decision = gate_drop(base, new, asked, strict=strict, clusters=clusters, undefined=policy, level=level, early=early)
    corrected = None
    if labels is not None:
        corrected = corrected_drop(
            base, new, asked, labels, strict=strict, clusters=clusters, undefined=policy, level=level
        )
    by_judge, decision = decision, corrected or decision
    if same:
        decision = replace(decision, verdict=GateVerdict.PASS, deciding=(), would=None)
    one_sided = base.scored ^ new.scored
    if suite.undefined is Policy.DROP:
        one_sided &= base.failed | new.failed
    return Gate(
        metric=text,
        kind=Kind.DROP,
        asked=asked,
        strict=strict,
        higher_is_better=new.higher_is_better,
        decision=decision,
        samples=int((base.scored & new.scored).sum()),
        missing=int(one_sided.sum()),
        deciding=tuple(pair.new.ids[place] for place in decision.deciding),
        sequential=bool(early),
        same_outputs=same,
        basis=basis_of(text, corrected=corrected is not None),
        labelled=0 if labels is None else len(labels.places),
        by_judge=by_judge if corrected is not None else None,
    )


def _equal_outcomes(base: Column, new: Column) -> bool:
    """Return True if every sample has the same outcome in both runs, and at least one has a score."""
    states = (base.scored == new.scored).all() and (base.failed == new.failed).all()
    return bool(states and base.scored.any() and (base.values == new.values)[base.scored].all())
