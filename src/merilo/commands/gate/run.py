"""Checks a finished run against a suite of gates, optionally with a baseline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from merilo.commands.gate.decisions import AskedGates, with_holm
from merilo.commands.gate.pairing import PairedRuns, paired_runs
from merilo.commands.gate.result import Gate, Gates, Kind
from merilo.errors import RunError, UsageError
from merilo.rendering.overview import command
from merilo.rendering.wording import count
from merilo.results.basis import Basis, judged_by_embedded
from merilo.results.early_stopping import check_own_clusters, stop_of
from merilo.results.scores import read_scores
from merilo.runs.run import metric_in, opened
from merilo.runs.scales import recorded_scale
from merilo.runs.weak import weak_metrics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from merilo.commands.gate.suite import Suite
    from merilo.runs.run import Run


def gate_run(
    run: Run | str | PathLike[str],
    suite: Suite,
    *,
    baseline: Run | str | PathLike[str] | None = None,
    across_data: bool = False,
    judge_only: bool = False,
) -> Gates:
    """Check a run against the gates of a suite.

    Human labels attached to the runs correct means and drops (from 20 labelled samples or pairs on), unless
    `judge_only`. Limits of a run that could stop early (`--until`) are those of confidence sequences, which
    are not corrected. `across_data`: as `equal_questions` takes it. Raises UsageError for a suite without gates or with
    a metric that the run does not have, and if runs are not comparable; DataError if the runs have no sample in common
    or samples lack a cluster; RunError if a run is incomplete or unreadable.
    """
    this = opened(run)
    _check_asked(suite, baseline)
    if not this.complete:
        raise RunError(
            f"{this.path} was stopped before its last sample, so it cannot be gated. To resume it, repeat its command "
            "with the same --out."
        )
    base = None if baseline is None else opened(baseline)
    if base is not None and not base.complete:
        raise RunError(f"The baseline {base.path} was stopped before its last sample. Resume it first.")
    drops = {} if base is None else _drop_names(this, base, suite)
    scores = read_scores(this, metrics=[*suite.means, *drops], cluster=suite.cluster)
    if (stop := stop_of(this.manifest)) is not None:
        check_own_clusters(scores, stop)
    minimums, largest = _by_text(this, suite.means), _by_text(this, drops)
    _check_maximums(this, suite)
    pair = None if base is None else paired_runs(base, scores, list(largest), across_data=across_data)
    asked = AskedGates(scores, pair, minimums, largest, judge_only=judge_only)
    gates = with_holm(asked.gates, suite) if suite.holm else asked.gates(suite)
    runs = [each for each in (this, base) if each is not None]
    weak = frozenset[str]().union(*(weak_metrics(each.manifest) for each in runs))
    notes = [*asked.notes]
    if pair is not None:
        notes += [*pair.notes, *_judge_noise(pair, gates), *_embedded_drops(pair, gates)]
    from merilo.commands.gate import recomputed  # not before: it needs `evaluate`, which needs this module

    notes += [note for each in (scores, *([] if pair is None else [pair.base])) for note in recomputed.recompute(each)]
    if stop is not None:
        notes.append("The run could stop early, so its limits come from confidence sequences, which are wider.")
    return Gates(
        run=this.path,
        baseline=None if base is None else base.path,
        gates=tuple(replace(gate, weak=gate.metric in weak) for gate in gates),
        level=suite.level,
        cluster=None if scores.clusters is None else suite.cluster or this.manifest.cluster,
        cannot_tell=suite.cannot_tell,
        notes=tuple(notes),
        other_questions=0 if pair is None else pair.other_questions,
        run_only=0 if pair is None else pair.new_only,
        baseline_only=0 if pair is None else pair.base_only,
        foreign=this.manifest.origin is not None,
        holm=suite.holm,
    )


def _check_asked(suite: Suite, baseline: object) -> None:
    if suite.empty and baseline is None:
        raise UsageError("No gate given. Use --min METRIC=X, --baseline RUN with --max-drop D, or --suite FILE.")
    drops = suite.max_drop is not None and suite.max_drop != {}
    if drops and baseline is None:
        raise UsageError("--max-drop needs a baseline: add --baseline RUN.")
    if baseline is not None and not drops:
        raise UsageError("--baseline needs the largest allowed drop: add --max-drop 0.02.")
    if suite.strict and not drops:
        raise UsageError("strict needs a baseline and a largest drop: add --baseline RUN --max-drop 0.02.")


def _check_maximums(run: Run, suite: Suite) -> None:
    """Raise UsageError for a maximum of a metric for which higher is better."""
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


def _judge_noise(pair: PairedRuns, gates: Sequence[Gate]) -> list[str]:
    """Return a sentence for each metric with equal inputs and unequal outcomes: the judge differs, not the build."""
    return [
        f"{gate.metric} has the same inputs in both runs on all {count(len(pair.new.ids), 'sample')}, but not the same "
        "scores: the difference comes from the judge, not from the build."
        for gate in gates
        if gate.kind is Kind.DROP and gate.samples and gate.metric in pair.equal_inputs and not gate.same_outputs
    ]


def _embedded_drops(pair: PairedRuns, gates: Sequence[Gate]) -> list[str]:
    """Return a warning if the embedded judge alone decides a drop between runs whose inputs differ."""
    if not judged_by_embedded(pair.new.run.manifest):
        return []
    found = [
        gate.metric
        for gate in gates
        if gate.kind is Kind.DROP and gate.basis is Basis.JUDGE and gate.metric not in pair.equal_inputs
    ]
    if not found:
        return []
    advice = command("label", str(pair.base.run.path), str(pair.new.run.path), "--metric", found[0])
    which = ", ".join(found)
    text = (
        f"The embedded judge alone decides {which}. If the retriever or the generator differs between the runs, its "
        f"error may differ too, and look like a change. To correct it with human labels: {advice}"
    )
    return [text]
