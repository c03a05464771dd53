"""Checks a finished run against a suite of gates, optionally with a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from merilo.commands.calibrate.correction import UsableLabels, usable_labels
from merilo.commands.compare.caveats import UNCHECKED
from merilo.commands.compare.options import ComparisonRequest
from merilo.commands.compare.run import compare_runs
from merilo.commands.gate.result import FirstRun, Gate, Gates, Kind
from merilo.commands.gate.suite import LabelPolicy, Suite
from merilo.commands.verify.recomputed import recompute
from merilo.errors import RunError, UsageError
from merilo.numbers import count
from merilo.results.comparable import judged_by_embedded
from merilo.results.contents import MAX_OTHER
from merilo.results.estimate import Basis, Caveat, Estimate, Level, Missing, Verdict, basis_of, covers_imported
from merilo.results.means import WEAK
from merilo.results.scores import RunScores, read_scores
from merilo.runs.run import Run, metric_in, opened
from merilo.runs.run_metrics import check_asked, recorded_scale, weak_metrics
from merilo.stats.compare import Policy
from merilo.stats.gate import Decision, GateVerdict, drop_decision, gate_minimum

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    import numpy as np
    from numpy.typing import NDArray

    from merilo.commands.compare.result import Row, RunComparison
    from merilo.stats.correction import Labels


def gate_run(
    run: Run | str | PathLike[str],
    suite: Suite,
    *,
    baseline: Run | str | PathLike[str] | None = None,
    across_data: bool = False,
    judge_only: bool = False,
) -> Gates:
    """Check a run against the gates of a suite.

    Drops are decided by the comparison of the run with the baseline (`compare_runs`). A baseline that does not exist is
    a state: drops are not checked, and `suite.first_run` says what that counts as. Human labels attached to the runs
    correct means and drops (from 20 labelled samples or pairs on), unless `judge_only`. `across_data`: as
    `equal_questions` takes it. Raises UsageError for a suite without gates or with a metric that the run does not have,
    and if runs are not comparable; DataError if the runs have no sample in common or samples lack a cluster; RunError
    if a run is incomplete or unreadable.
    """
    this = opened(run)
    _check_asked(suite, baseline)
    if not this.complete:
        raise RunError(
            f"{this.path} was stopped before its last sample, so it cannot be gated. To resume it, repeat its command "
            "with the same --out."
        )
    missing = _missing(baseline)
    base = None if baseline is None or missing is not None else opened(baseline)
    if base is not None and not base.complete:
        raise RunError(f"The baseline {base.path} was stopped before its last sample. Resume it first.")
    if base is None and isinstance(suite.max_drop, Mapping):
        _by_text(this, suite.max_drop)  # raises for a metric that the run does not have
    drops = {} if base is None else _by_text(this, _drop_names(this, base, suite))
    for text, most in drops.items():
        check_asked(text, most, recorded_scale(this.manifest, text).span, is_drop=True)
    minimums = _by_text(this, suite.means)
    scores = read_scores(this, metrics=[*minimums, *drops] or None, cluster=suite.cluster)
    _check_maximums(this, suite)
    labels: UsableLabels[Labels] = UsableLabels({}, ())
    if minimums and not judge_only:
        labels = usable_labels(scores, list(minimums))
    gates = minimum_gates(scores, minimums, suite, labels)
    notes = [*([f"Intervals {covers_imported()}."] if this.manifest.origin else []), *labels.notes]
    found = None
    if base is not None and drops:
        found = _compared(base, this, drops, suite, across_data=across_data, judge_only=judge_only)
        gates += drop_gates(found, drops, suite)
        notes += [each.full for each in found.caveats if each.level is Level.WARNS]
        notes += [f"{each.about}: {each.sentence}." for each in found.caveats if each.code == "absent"]
    for gate in gates:
        total = len(scores.ids) if gate.kind is Kind.MINIMUM or found is None else found.common
        if 2 * (own := gate.estimate.samples) < total:
            start = f"{gate.metric} has a score on {own:,} of {total:,} questions only"
            notes.append(f"{start}: merilo show lists the reasons.")
    checked = [scores, *([] if base is None else [read_scores(base, metrics=[*drops], cluster="")])]
    notes += [note for each in checked for note in recompute(each)]
    return Gates(
        run=this.path,
        baseline=missing if base is None else base.path,
        gates=tuple(gates),
        cluster=None if scores.clusters is None else suite.cluster or this.manifest.cluster,
        cannot_tell=suite.cannot_tell,
        notes=tuple(dict.fromkeys(notes)),
        first_run=(suite.first_run or FirstRun.CANNOT_TELL) if missing is not None else None,
    )


def _missing(baseline: Run | str | PathLike[str] | None) -> Path | None:
    """Return the path of a baseline that does not exist; None if it does or is an address, or if none is asked for."""
    if baseline is None or isinstance(baseline, Run):
        return None
    path = Path(baseline)
    if not str(baseline).strip():
        raise UsageError("The name of the baseline is empty. Name the directory of a run.")
    try:
        return None if "://" in str(baseline) or path.exists() or path.is_symlink() else path
    except OSError:  # such as a name that is too long
        return path


def _check_asked(suite: Suite, baseline: object) -> None:
    if suite.empty and baseline is None:
        raise UsageError("No gate given. Use --min METRIC=X, --baseline RUN with --max-drop D, or --suite FILE.")
    drops = suite.max_drop is not None and suite.max_drop != {}
    if drops and baseline is None:
        raise UsageError("--max-drop needs a baseline: add --baseline RUN.")
    if baseline is not None and not drops:
        raise UsageError("--baseline needs the largest allowed drop: add --max-drop 0.05.")


def _check_maximums(run: Run, suite: Suite) -> None:
    for name in suite.maximums:
        if recorded_scale(run.manifest, metric_in(run, name)).higher_is_better:
            raise UsageError(f"Higher is better for {name}, so it has no maximum. Use --min {name}=X.")


def _by_text(run: Run, named: Mapping[str, float]) -> dict[str, float]:
    """Return the requirements by full text of each metric; every name must be that of a metric of the run."""
    found: dict[str, float] = {}
    for name, value in named.items():
        text = metric_in(run, name)
        if found.setdefault(text, value) != value:
            raise UsageError(f"Two values for {text}: {found[text]:g} and {value:g}. Give one.")
    return found


def _drop_names(run: Run, base: Run, suite: Suite) -> dict[str, float]:
    """Return the largest allowed drop by metric: of the named metrics, or of all that both runs have."""
    drop = suite.max_drop
    if drop is not None and not isinstance(drop, float | int):
        return dict(drop)
    common = [text for text in run.manifest.metrics if text in base.manifest.metrics]
    if not common:
        listed = f"{', '.join(run.manifest.metrics)}; {', '.join(base.manifest.metrics)}"
        raise UsageError(f"{run.path} and the baseline {base.path} have no metric in common ({listed}).")
    return dict.fromkeys(common, float(drop or 0.0))


def _compared(
    base: Run, run: Run, drops: Mapping[str, float], suite: Suite, *, across_data: bool, judge_only: bool
) -> RunComparison:
    """Return the comparison of the run with its baseline. Raises UsageError if the run lacks many of its samples."""
    lacking = [text for text in drops if text not in base.manifest.metrics]
    if lacking:
        raise UsageError(f"The baseline {base.path} has no metric {', '.join(lacking)}. Evaluate it there too.")
    found = compare_runs(
        [base, run],
        ComparisonRequest(
            metrics=[*drops],
            cluster=run.manifest.cluster if suite.cluster is None else suite.cluster,
            undefined=Policy.WORST if suite.undefined is Policy.WORST else Policy.DROP,
            across_data=across_data,
            samples=0,
            judge_only=judge_only,
        ),
    )
    side = found.sides[0]
    if side.absences > MAX_OTHER * side.scored and not across_data:
        raise UsageError(
            f"{side.absences:,} of the {side.scored:,} samples of the baseline {base.path} are not in {run.path}, such "
            f"as {side.absent[0]!r}. More than one in ten are missing, so the runs are not comparable. Give each "
            "sample an id that stays the same, and run all samples. To compare only the "
            f"{count(found.common, 'sample')} that both runs have, use --across-data."
        )
    return found


# -- decisions ----------------------------------------------------------------------------------------

MAX_DECIDING = 20
"""Maximum number of failed samples that are named because they keep a gate open."""


def minimum_gates(
    scores: RunScores, asked: Mapping[str, float], suite: Suite, labels: UsableLabels[Labels]
) -> list[Gate]:
    """Return the gates on means."""
    own = labels.labels
    found = [
        _minimum(labels.scores[0] if text in own else scores, text, least, suite, own.get(text))
        for text, least in asked.items()
    ]
    return [_withheld(gate, suite, _unfit(scores, gate.metric, suite, labels)) for gate in found]


def _unfit(scores: RunScores, metric: str, suite: Suite, labels: UsableLabels[Labels]) -> str:
    """Return why the judge alone may not decide a minimum; empty if it may."""
    if suite.trust_judge:
        return ""
    if metric in labels.uncorrected:
        return labels.uncorrected[metric].reason.removeprefix("cannot tell: ")
    return UNCHECKED if judged_by_embedded(scores.run.manifest, metric) else ""


def drop_gates(found: RunComparison, asked: Mapping[str, float], suite: Suite) -> list[Gate]:
    """Return the gates on drops, by the comparison of a run with its baseline."""
    gates = [_drop(row, asked[row.metric]) for row in found.rows]
    return [_withheld(gate, suite, "") for gate in gates]


def _withheld(gate: Gate, suite: Suite, why: str) -> Gate:
    """Return the gate without a verdict if the judge alone may not decide it. `why`: a reason; empty if it may."""
    if gate.estimate.basis is not Basis.JUDGE or gate.same_outputs:
        return gate
    why = gate.withheld or why
    if suite.labels is LabelPolicy.REQUIRED:
        why = "the suite requires human labels"
    undecided = replace(gate.decision, verdict=GateVerdict.CANNOT_TELL, open=False)
    return replace(gate, decision=undecided, withheld=why) if why else gate


def _policy(suite: Suite, column_worst: float) -> Policy | None:
    """Return how Undefined outcomes count. Raises UsageError if the worst value is infinite."""
    if suite.undefined is Policy.WORST and not isfinite(column_worst):
        raise UsageError("A metric with an infinite range has no worst value. Use --undefined drop.")
    return suite.undefined


def _minimum(scores: RunScores, text: str, asked: float, suite: Suite, labels: Labels | None) -> Gate:
    column = scores.columns[text]
    check_asked(text, asked, column.span)

    def decided(labels: Labels | None) -> Decision:
        return gate_minimum(
            column,
            asked,
            clusters=scores.clusters,
            undefined=_policy(suite, column.worst),
            labels=labels,
        )

    decision, scored = decided(labels), int(column.scored.sum())
    caveats = [Caveat("weak", WEAK)] if text in weak_metrics(scores.run.manifest) else []
    if labels is not None:
        alone = decided(None) if decision.corrected else decision
        facts = {"labelled": labels.samples, "mean": alone.value, "interval": alone.ends}
        caveats.append(Caveat("labelled", facts=facts))
    failed = int(column.failed.sum())
    missing = Missing(0 if suite.undefined is Policy.DROP else len(column) - scored - failed, failed)
    basis = basis_of(text, corrected=decision.corrected)
    return Gate(
        metric=text,
        kind=Kind.MINIMUM,
        asked=asked,
        higher_is_better=column.higher_is_better,
        decision=decision,
        estimate=Estimate(decision.value, decision.ends, scored, missing, basis, tuple(caveats)),
        deciding=_named(scores.ids, column.failed, decision),
    )


def _drop(row: Row, asked: float) -> Gate:
    counts, one_sided = row.comparison.counts, row.estimate.caveat("one-sided")
    decision = drop_decision(row.comparison, asked, higher_is_better=row.higher_is_better)
    if row.verdict is Verdict.NO_CHANGE:
        decision = replace(decision, verdict=GateVerdict.PASS, open=False)
    ids: Sequence[str] = () if one_sided is None or not decision.open else one_sided.facts["ids"]
    return Gate(
        metric=row.metric,
        kind=Kind.DROP,
        asked=asked,
        higher_is_better=row.higher_is_better,
        decision=decision,
        estimate=row.estimate,
        deciding=tuple(ids[: counts.first_failed + counts.second_failed]),
        # The numbers may say worse although the comparison has a reason why that is not shown.
        withheld=row.reason if row.unchecked or decision.verdict is GateVerdict.FAIL else "",
        means=None if row.base_mean is None or row.run_mean is None else (row.base_mean, row.run_mean),
    )


def _named(ids: Sequence[str], failed: NDArray[np.bool_], decision: Decision) -> tuple[str, ...]:
    """Return the first failed samples if samples without a score keep the gate open."""
    import numpy as np

    if not decision.open:
        return ()
    return tuple([ids[int(place)] for place in np.flatnonzero(failed)[:MAX_DECIDING]])
