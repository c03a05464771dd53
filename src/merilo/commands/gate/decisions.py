"""The decisions on the gates of a suite: on means, and on drops by the rows of a comparison with the baseline."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

from merilo.commands.compare.result import Verdict
from merilo.commands.gate.result import Gate, Kind, Number
from merilo.commands.gate.suite import LabelPolicy
from merilo.errors import UsageError
from merilo.results.basis import Basis, basis_of, judged_by_embedded
from merilo.runs.scales import check_asked
from merilo.stats.compare import Policy
from merilo.stats.gate import GateVerdict, drop_decision, gate_minimum

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from merilo.commands.calibrate.correction import UsableLabels
    from merilo.commands.compare.result import Row, RunComparison
    from merilo.commands.gate.suite import Suite
    from merilo.results.scores import RunScores
    from merilo.stats.correction import Labels
    from merilo.stats.gate import Decision

MAX_DECIDING = 20
"""Maximum number of failed samples that are named because they keep a gate open."""


def minimum_gates(
    scores: RunScores, asked: Mapping[str, float], suite: Suite, labels: UsableLabels[Labels], *, early: int
) -> list[Gate]:
    """Return the gates on means; `early`: as in `gate_minimum`."""
    own = labels.labels
    found = [_minimum(scores, text, least, suite, own.get(text), early=early) for text, least in asked.items()]
    return [_withheld(gate, suite, _unfit(scores, gate.metric, suite, labels)) for gate in found]


def _unfit(scores: RunScores, metric: str, suite: Suite, labels: UsableLabels[Labels]) -> str:
    """Return why the judge alone may not decide a minimum; empty if it may."""
    if suite.trust_judge:
        return ""
    if metric in labels.uncorrected:
        return labels.uncorrected[metric].reason.removeprefix("cannot tell: ")
    embedded = judged_by_embedded(scores.run.manifest, metric)
    return "the level of this judge is not calibrated on this data" if embedded else ""


def drop_gates(found: RunComparison, asked: Mapping[str, float], suite: Suite) -> list[Gate]:
    """Return the gates on drops, by the comparison of a run with its baseline."""
    gates = [_drop(found, row, asked[row.metric]) for row in found.rows_of(1)]
    return [_withheld(gate, suite, "") for gate in gates]


def _withheld(gate: Gate, suite: Suite, why: str) -> Gate:
    """Return the gate without a verdict if the judge alone may not decide it. `why`: a reason; empty if it may."""
    if gate.basis is not Basis.JUDGE or gate.same_outputs or gate.decision.value is None:
        return gate
    why = gate.withheld or why
    if suite.labels is LabelPolicy.REQUIRED:
        why = "the suite requires human labels"
    return replace(gate, decision=_undecided(gate.decision), withheld=why) if why else gate


def _undecided(decision: Decision) -> Decision:
    return replace(decision, verdict=GateVerdict.CANNOT_TELL, open=False)


def _policy(suite: Suite, column_worst: float) -> Policy | None:
    """Return how Undefined outcomes count. Raises UsageError if the worst value is infinite."""
    if suite.undefined is Policy.WORST and not isfinite(column_worst):
        raise UsageError("A metric with an infinite range has no worst value. Use --undefined drop.")
    return suite.undefined


def _minimum(scores: RunScores, text: str, asked: float, suite: Suite, labels: Labels | None, *, early: int) -> Gate:
    column = scores.columns[text]
    check_asked(text, asked, column.span)

    def decided(labels: Labels | None) -> Decision:
        return gate_minimum(
            column,
            asked,
            clusters=scores.clusters,
            undefined=_policy(suite, column.worst),
            level=suite.level,
            early=early,
            labels=labels,
        )

    decision, scored = decided(labels), int(column.scored.sum())
    return Gate(
        metric=text,
        kind=Kind.MINIMUM,
        asked=asked,
        higher_is_better=column.higher_is_better,
        decision=decision,
        samples=scored,
        missing=len(column) - scored if suite.undefined is not Policy.DROP else int(column.failed.sum()),
        deciding=_named(scores.ids, column.failed, decision),
        sequential=bool(early),
        basis=basis_of(text, corrected=decision.corrected),
        labelled=0 if labels is None else labels.samples,
        by_judge=_number(decided(None)) if decision.corrected else None,
    )


def _number(decision: Decision) -> Number | None:
    return None if decision.value is None else Number(decision.value, decision.lower, decision.upper)


def _drop(found: RunComparison, row: Row, asked: float) -> Gate:
    each, counts, sign = row.comparison, row.comparison.counts, 1.0 if row.higher_is_better else -1.0
    decision = drop_decision(each, asked, higher_is_better=row.higher_is_better)
    same = row.verdict is Verdict.NO_CHANGE
    if same:
        decision = replace(decision, verdict=GateVerdict.PASS, open=False)
    failed = counts.first_failed + counts.second_failed
    judged = None if each.correction is None or each.by_judge is None else each.correction.judged
    return Gate(
        metric=row.metric,
        kind=Kind.DROP,
        asked=asked,
        higher_is_better=row.higher_is_better,
        decision=decision,
        samples=counts.pairs,
        missing=counts.left_out,
        deciding=row.one_sided[:failed] if decision.open else (),
        sequential=found.sequential,
        same_outputs=same,
        basis=row.basis,
        labelled=row.labelled,
        by_judge=None
        if judged is None or judged.difference is None
        else _improvement(judged.difference, judged.interval.ends, sign),
        withheld=row.reason if row.unchecked or _refuted(decision, row) else "",
        means=None if row.base_mean is None or row.run_mean is None else (row.base_mean, row.run_mean),
    )


def _refuted(decision: Decision, row: Row) -> bool:
    """Return True if the numbers say worse, and the comparison gives a reason why that is not shown."""
    return decision.verdict is GateVerdict.FAIL and row.verdict is Verdict.CANNOT_TELL


def _improvement(difference: float, ends: tuple[float, float] | None, sign: float) -> Number:
    low, high = (None, None) if ends is None else sorted(sign * end for end in ends)
    return Number(sign * difference, low, high)


def _named(ids: Sequence[str], failed: NDArray[np.bool_], decision: Decision) -> tuple[str, ...]:
    """Return the first failed samples if samples without a score keep the gate open."""
    import numpy as np

    if not decision.open:
        return ()
    return tuple([ids[int(place)] for place in np.flatnonzero(failed)[:MAX_DECIDING]])
