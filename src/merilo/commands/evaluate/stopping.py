"""The rule by which a run stops early: read from its options, and bound to its samples, clusters and baseline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from merilo.commands.evaluate.options import Until
from merilo.commands.gate.suite import LabelPolicy, Suite, read_suite
from merilo.errors import DataError, RunError, UsageError
from merilo.metrics.registry import asks_judge
from merilo.rendering.wording import count
from merilo.results.basis import judged_by_embedded, not_comparable, score_affecting_differences
from merilo.results.contents import MAX_OTHER, other_questions
from merilo.results.early_stopping import EarlyStop, cluster_ends, random_place
from merilo.results.scores import read_scores
from merilo.runs.clusters import clusters_by_sample
from merilo.runs.metric_names import resolve_metric
from merilo.runs.run import opened
from merilo.stats.column import Column, Missing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.commands.evaluate.options import Options
    from merilo.metrics.base import Metric
    from merilo.runs.manifest import Manifest
    from merilo.runs.run import Run
    from merilo.runs.store import Store


class Stopping(NamedTuple):
    """The rule for early stopping of one run, and the order of its samples."""

    rule: EarlyStop
    place: Callable[[str], bytes]
    """The sort key of a sample by its id."""


def with_stop(options: Options) -> Options:
    """Return the options with the suite of `until` read from its file, and its clusters.

    Raises UsageError for gates, a baseline or clusters that do not fit together, and DataError for an unreadable suite.
    """
    given = None if options.until is None else options.until.suite
    if given is None:
        raise UsageError("--baseline needs a suite with max_drop. Add --until SUITE, or use merilo gate.")
    if isinstance(given, Suite):
        return _with_suite(given, options)
    try:
        return _with_suite(read_suite(given), options)
    except UsageError as error:
        text = str(error)
        raise UsageError(text if text.startswith(f"{given}: ") else f"{given}: {text}") from None


def stopping_of(options: Options, manifest: Manifest, metrics: Mapping[str, Metric], store: Store) -> Stopping | None:
    """Return the rule for a run whose samples have been read; None if it does not stop early.

    `manifest`: that of the run, without the rule. Raises UsageError for gates that cannot be decided and a baseline
    that is not comparable, RunError for an incomplete baseline, and DataError for samples without a cluster or a pair.
    """
    suite = None if options.until is None else options.until.rule
    if suite is None:
        return None
    clusters: dict[str, str] | None = None
    if options.cluster is not None:
        clusters = clusters_by_sample(store.sample_records(incoming=True), options.cluster)

    def place(sample_id: str) -> bytes:
        own = random_place(suite.seed, sample_id)
        # A cluster's samples follow each other, so that whole clusters are taken.
        return own if clusters is None else random_place(suite.seed, clusters[sample_id]) + own

    for name in suite.maximums:
        if metrics[resolve_metric(name, metrics, where="this run (--until)")].higher_is_better:
            raise UsageError(f"Higher is better for {name}, so it has no maximum. Write it under [minimums].")
    if suite.means and judged_by_embedded(manifest) and not suite.trust_judge:
        judged = [name for name in suite.means if asks_judge(resolve_metric(name, metrics, where="this run (--until)"))]
        if judged:
            raise UsageError(
                f"The level of the embedded judge is not calibrated, so it cannot decide {judged[0]} early. Name "
                "another judge, or write trust_judge = true in the suite."
            )
    order = sorted(store.incoming_ids(), key=place)
    drops: dict[str, float] = {}
    baseline: dict[str, tuple[float | Missing, ...]] = {}
    if options.until is not None and options.until.baseline is not None:
        base = opened(options.until.baseline)
        drops = _drops(suite, base, metrics)
        baseline = _baseline_outcomes(base, order, manifest, {text: metrics[text] for text in drops}, store)
    rule = EarlyStop(
        minimums=dict(suite.means),
        drops=drops,
        level=suite.level,
        undefined=suite.undefined,
        seed=suite.seed,
        cluster=options.cluster,
        ends=cluster_ends(None if clusters is None else [clusters[each] for each in order]),
        baseline=baseline,
    )
    rule.deciding(metrics)  # raises for a gate that cannot be decided
    return Stopping(rule, place)


def _with_suite(suite: Suite, options: Options) -> Options:
    baseline = None if options.until is None else options.until.baseline
    drops = suite.max_drop is not None and suite.max_drop != {}
    if drops and baseline is None:
        raise UsageError("max_drop needs a run to compare with: add --baseline RUN.")
    if baseline is not None and not drops:
        raise UsageError("--baseline needs the largest allowed drop. Add max_drop = 0.05 to the suite.")
    if suite.cluster and options.cluster and suite.cluster != options.cluster:
        raise UsageError(f"Two cluster fields: {suite.cluster!r} in the suite and {options.cluster!r}. Give one.")
    if suite.labels is LabelPolicy.REQUIRED:
        raise UsageError('labels = "required" needs labels, which a run gets after it. Use merilo gate.')
    if suite.empty:
        raise UsageError("Early stopping needs a gate. Add a table [minimums] with m = 0.8.")
    return replace(options, until=Until(suite, baseline=baseline), cluster=options.cluster or suite.cluster or None)


def _drops(suite: Suite, base: Run, metrics: Mapping[str, Metric]) -> dict[str, float]:
    """Return the largest allowed drop by metric: of the named metrics, or of all that both runs have."""
    drop = suite.max_drop
    if drop is None or isinstance(drop, float | int):
        common = [text for text in metrics if text in base.manifest.metrics]
        if not common:
            listed = f"{', '.join(metrics)}; {', '.join(base.manifest.metrics)}"
            raise UsageError(f"This run and the baseline {base.path} have no metric in common ({listed}).")
        return dict.fromkeys(common, float(drop or 0.0))
    found: dict[str, float] = {}
    for name, value in drop.items():
        text = resolve_metric(name, metrics, where="this run (--until)")
        if text not in base.manifest.metrics:
            raise UsageError(f"The baseline {base.path} has no metric {text}. Evaluate it there too.")
        if found.setdefault(text, value) != value:
            raise UsageError(f"Two values for {text}: {found[text]:g} and {value:g}. Give one.")
    return found


def _baseline_outcomes(
    base: Run, order: Sequence[str], manifest: Manifest, metrics: Mapping[str, Metric], store: Store
) -> dict[str, tuple[float | Missing, ...]]:
    """Return the outcomes of the baseline in the order of the run, if the two are comparable."""
    if not base.complete:
        raise RunError(f"The baseline {base.path} was stopped before its last sample. Resume it first.")
    if base.manifest.until is not None:
        raise UsageError(
            f"The baseline {base.path} could stop early (--until), so not all its samples have scores. "
            "Evaluate all of them and use that run."
        )
    differences = score_affecting_differences(base.manifest, manifest, metrics=[*metrics])
    if differences:
        raise not_comparable(f"This run (here) and its baseline {base.path} (there)", differences)
    scores = read_scores(base, metrics=[*metrics], cluster="")
    for text, metric in metrics.items():
        column = scores.columns[text]
        if (column.span, column.higher_is_better) != (tuple(map(float, metric.range)), metric.higher_is_better):
            raise DataError(f"{text} has another scale in the baseline. Convert both to one scale.")
    places = {sample: place for place, sample in enumerate(scores.ids)}
    _check_pairs(base, order, places)
    if base.manifest.fingerprint != manifest.fingerprint:
        other = other_questions(base, store.sample_records(incoming=True), [*metrics])
        if other:
            raise UsageError(
                f"{len(other):,} of {count(len(order), 'sample')} ask another question in the baseline {base.path} "
                f"under the same id, such as {other[0]!r}, so the runs are not comparable. Give each question an id "
                "that stays the same."
            )
    return {text: _outcomes(scores.columns[text], [places[each] for each in order]) for text in metrics}


def _check_pairs(base: Run, order: Sequence[str], places: Mapping[str, int]) -> None:
    """Raise an error unless every sample is in the baseline, and at least nine in ten of the baseline are here."""
    missing = [each for each in order if each not in places]
    if missing:
        raise DataError(
            f"{len(missing):,} of {count(len(order), 'sample')} are not in the baseline {base.path}, such as "
            f"{missing[0]!r}. A run that may stop early needs a pair for each sample. Samples are paired by id: give "
            "each an id that stays the same."
        )
    here = set(order)
    left = [each for each in places if each not in here]
    if len(left) > MAX_OTHER * len(places):
        raise UsageError(
            f"{len(left):,} of the {len(places):,} samples of the baseline {base.path} are not in this run, such as "
            f"{left[0]!r}. More than one in ten are missing, so the runs are not comparable. Evaluate all samples."
        )


def _outcomes(column: Column, places: Sequence[int]) -> tuple[float | Missing, ...]:
    values, scored, failed = column.values.tolist(), column.scored.tolist(), column.failed.tolist()
    return tuple(values[at] if scored[at] else Missing.FAILED if failed[at] else Missing.UNDEFINED for at in places)
