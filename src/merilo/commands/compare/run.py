"""Compares finished runs: pairs their samples, computes differences, and draws conclusions."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from merilo.commands.calibrate.correction import paired_labels
from merilo.commands.calibrate.levels import judge_sentences
from merilo.commands.compare.matching import (
    by_same_contexts,
    import_notes,
    in_common,
    metric_names,
    name_in,
    under_common_names,
    with_common_names,
)
from merilo.commands.compare.result import Moved, Row, RunComparison, Side, Verdict
from merilo.errors import UsageError
from merilo.results.basis import Basis, basis_of, judged_by_embedded, not_comparable, score_affecting_differences
from merilo.results.contents import equal_inputs, equal_questions
from merilo.results.sample_detail import cases_of
from merilo.results.scores import RunScores, read_scores
from merilo.runs.run import opened
from merilo.runs.run_metrics import weak_metrics
from merilo.stats.compare import Conclusion, Policy, moved
from merilo.stats.compare import compare as compare_columns
from merilo.stats.corrected_pairs import judge_error_difference
from merilo.stats.correction import DECIDING_LABELLED
from merilo.stats.means import FEWEST_DIFFERENT

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from os import PathLike

    from merilo.commands.compare.matching import MetricNames
    from merilo.runs.run import Run
    from merilo.stats.column import Column
    from merilo.stats.compare import Comparison
    from merilo.stats.corrected_pairs import ErrorDifference, PairLabels


SHOWN = 20
"""Number of samples that changed most."""
_NAMED = 5
"""Number of ids that are named as examples."""


@dataclass(frozen=True, slots=True)
class ComparisonRequest:
    """The options of a comparison."""

    metrics: Sequence[str] | None = None
    """Metrics to compare, by full text or unambiguous name; None: all."""
    primary: Sequence[str] | None = None
    """Metrics to draw conclusions for; None: all that are compared."""
    cluster: str | None = None
    """As in `read_scores`, for the first run."""
    undefined: Policy | str = Policy.DROP
    across_judges: bool = False
    """Compare even if judges, rubrics or versions of metrics differ."""
    across_data: bool = False
    """Compare even if more than one in ten of the common ids name other questions, which are left out."""
    samples: int = SHOWN
    """Maximum number of samples that changed most to include."""
    judge_only: bool = False
    """Leave human labels out: every number is the judge's own."""


def compare_runs(runs: Sequence[Run | str | PathLike[str]], wanted: ComparisonRequest | None = None) -> RunComparison:
    """Compare every other run with the first one, over the samples that all runs have with an equal question.

    Raises UsageError for a metric or an option that cannot be used, and for runs whose judges or questions differ, with
    the differences; DataError if no samples can be paired; RunError if a run cannot be read.
    """
    wanted = wanted or ComparisonRequest()
    policy = _checked(runs, wanted)
    measured = [opened(run) for run in runs]
    names = _names(measured)
    chosen = metric_names(measured, names, wanted.metrics)
    metrics = chosen.metrics
    differing = _differing(measured, names, chosen.alike(), across_judges=wanted.across_judges)
    scores: list[RunScores] = []
    for place, run in enumerate(measured):
        own, cluster = chosen.own(place), "" if place else wanted.cluster
        found_in = read_scores(run, metrics=[*own], cluster=cluster, like=scores[0].ids if scores else ())
        scores.append(under_common_names(found_in, own))
    paired = in_common(scores, names)
    questions = equal_questions(paired.scores, names, metrics, across_data=wanted.across_data)
    matching = [each.at(questions.positions) for each in paired.scores] if questions.other else paired.scores
    primary = None if wanted.primary is None else _primary(measured[0], chosen, wanted.primary)
    labels = _labels(matching, metrics, policy, judge_only=wanted.judge_only)
    plain = {
        (metric, other): _columns_of(metric, matching[0], run)
        for metric in matching[0].columns
        for other, run in enumerate(matching[1:], start=1)
    }
    pairs = {**plain, **labels.columns}
    found = _compared(pairs, matching[0].clusters, primary, wanted, labels.labels)
    contexts = by_same_contexts(matching, questions.contexts, policy)
    pair = _Pairs(matching, pairs, contexts.comparisons, labels, differing)
    rows = [
        pair.row(metric, other, each) for (metric, other), each in sorted(found.items(), key=lambda item: item[0][1])
    ]
    by = _moved_by(rows)
    shown, movers = _moved(matching, by, wanted.samples, chosen)
    return RunComparison(
        sides=tuple(
            [
                Side(name, each.run, len(each.ids), tuple(only[:_NAMED]), len(only), each.run.complete)
                for name, each, only in zip(names, scores, paired.only, strict=True)
            ]
        ),
        common=len(matching[0].ids),
        ids=tuple(matching[0].ids),
        rows=tuple(rows),
        primary=tuple(metrics) if primary is None else tuple(primary),
        moved_by=by if movers else None,
        moved=shown,
        movers=movers,
        left_out=chosen.left_out,
        differing=differing,
        contexts=contexts.numbers,
        other_questions=questions.other,
        notes=(
            *questions.notes,
            *labels.notes,
            *import_notes(measured, names, chosen),
        ),
        undefined=policy,
        cluster=(wanted.cluster or measured[0].manifest.cluster) if matching[0].clusters is not None else None,
    )


def _checked(runs: Sequence[object], wanted: ComparisonRequest) -> Policy:
    if len(runs) < 2:
        raise UsageError(f"A comparison needs at least two runs, got {len(runs)}.")
    try:
        return Policy(wanted.undefined)
    except ValueError:
        raise UsageError(f"undefined must be drop or worst, got {wanted.undefined!r}.") from None


def _names(runs: Sequence[Run]) -> list[str]:
    """Return the name of each run: the name of its directory, or its path if names are equal."""
    paths, short = [str(run.path) for run in runs], [run.path.name or str(run.path) for run in runs]
    same = len(set(paths)) < len(paths)  # a run compared with itself: paths do not distinguish them either
    named = [name if same or short.count(name) == 1 else path for name, path in zip(short, paths, strict=True)]
    return [
        name if named.count(name) == 1 else f"{name} ({named[: place + 1].count(name)})"
        for place, name in enumerate(named)
    ]


def _differing(
    runs: Sequence[Run], names: Sequence[str], metrics: Sequence[str], *, across_judges: bool
) -> tuple[str, ...]:
    """Return the differences in judge, rubrics and versions. Raises UsageError for them unless `across_judges`."""
    found = [
        f"{phrase} (there: {names[0]}, here: {name})"
        for name, run in zip(names[1:], runs[1:], strict=True)
        for phrase in score_affecting_differences(runs[0].manifest, run.manifest, metrics=metrics)
    ]
    if found and not across_judges:
        advice = ", choose other metrics (--metrics), or use --across-judges"
        raise not_comparable("These runs", found, advice=advice)
    return tuple(found)


def _primary(run: Run, chosen: MetricNames, named: Sequence[str]) -> list[str]:
    found = list(dict.fromkeys(name_in(run, chosen, name) for name in named))
    if unknown := [text for text in found if text not in chosen.texts]:
        listed = ", ".join(chosen.metrics)
        raise UsageError(f"--primary: {', '.join(unknown)} is not compared; compared metrics: {listed}.")
    if not found:
        raise UsageError("--primary names no metric. Name one, or leave the option out to use all.")
    return found


class _Labels(NamedTuple):
    """The human labels of every pair of runs that is compared."""

    labels: dict[tuple[str, int], PairLabels]
    notes: tuple[str, ...]
    uncorrected: Mapping[tuple[str, int], str] = MappingProxyType({})
    """Why the labels of its verdicts do not correct a metric."""
    columns: Mapping[tuple[str, int], tuple[Column, Column]] = MappingProxyType({})
    """The columns of the run and of the base of each labelled metric, with the samples that the judge did not judge."""


def _labels(scores: Sequence[RunScores], metrics: Sequence[str], policy: Policy, *, judge_only: bool) -> _Labels:
    if judge_only:
        return _Labels({}, ())
    found: dict[tuple[str, int], PairLabels] = {}
    left: dict[tuple[str, int], str] = {}
    columns: dict[tuple[str, int], tuple[Column, Column]] = {}
    notes: list[str] = []
    for other in range(1, len(scores)):
        own = paired_labels(scores[0], scores[other], metrics)
        notes += own.notes
        columns |= {(metric, other): _columns_of(metric, *own.scores) for metric in own.labels}
        found |= {(metric, other): labels.exchanged() for metric, labels in own.labels.items()}  # the run comes first
        left |= {(metric, other): each.reason.removeprefix("cannot tell: ") for metric, each in own.uncorrected.items()}
    if found and policy is Policy.WORST:
        return _Labels({}, ("Human labels correct scored samples only, so they are not used with --undefined worst.",))
    notes += judge_sentences(*(each.run for each in scores), levels=False)
    return _Labels(found, tuple(notes), left, columns)


def _columns_of(metric: str, base: RunScores, run: RunScores) -> tuple[Column, Column]:
    """Return the columns of the run and of the base."""
    return run.columns[metric], base.columns[metric]


def _compared(
    pairs: Mapping[tuple[str, int], tuple[Column, Column]],
    clusters: Sequence[Hashable] | None,
    primary: Sequence[str] | None,
    wanted: ComparisonRequest,
    labels: Mapping[tuple[str, int], PairLabels],
) -> dict[tuple[str, int], Comparison]:
    chosen = None if primary is None else [key for key in pairs if key[0] in primary]
    try:
        return compare_columns(
            pairs,
            primary=chosen,
            clusters=clusters,
            undefined=Policy(wanted.undefined),
            labels=labels,
        )
    except ValueError as error:  # Undefined cannot count as the worst score if the range is infinite
        raise UsageError(str(error)) from None


UNCHECKED = "no one has checked the judge"
_READ = frozenset({Conclusion.FIRST_HIGHER, Conclusion.SECOND_HIGHER})


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The runs over their common samples, each paired with the first."""

    scores: Sequence[RunScores]
    columns: Mapping[tuple[str, int], tuple[Column, Column]]
    """By metric and run, the columns of the run and of the base."""
    same_contexts: Mapping[tuple[str, int], Comparison]
    labels: _Labels
    differing: Sequence[str]
    _equal: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])
    """By run, the metrics whose inputs equal those of the first run, once they were compared."""

    def row(self, metric: str, other: int, found: Comparison) -> Row:
        """Return the row of a metric and a run."""
        base, run = self.scores[0], self.scores[other]
        (own, column), manifests = self.columns[metric, other], (base.run.manifest, run.run.manifest)
        labels = self.labels.labels.get((metric, other))
        judged_all = own is run.columns[metric] and column is base.columns[metric]
        basis = basis_of(metric, corrected=found.by_judge is not None)
        unchecked = self._unchecked(metric, other, found) if basis is Basis.JUDGE else ""
        verdict, reason = self._verdict(metric, other, found, unchecked)
        return Row(
            metric,
            other,
            column.higher_is_better,
            found,
            verdict,
            reason,
            unchecked=bool(unchecked),
            one_sided=_one_sided(base.ids, column, own),
            weak=any(metric in weak_metrics(each) for each in manifests),
            basis=basis,
            same_contexts=self.same_contexts.get((metric, other)),
            span=column.span,
            errors=self._errors(labels, column.span) if labels is not None and judged_all else None,
        )

    def _unchecked(self, metric: str, other: int, found: Comparison) -> str:
        """Return why the judge alone may not name a winner; empty if it may."""
        if (metric, other) in self.labels.uncorrected:
            return self.labels.uncorrected[metric, other]
        manifests = self.scores[0].run.manifest, self.scores[other].run.manifest
        return _unchecked(found) if any(judged_by_embedded(each, metric) for each in manifests) else ""

    def _verdict(self, metric: str, other: int, found: Comparison, unchecked: str) -> tuple[Verdict | None, str]:
        """Return the verdict on a metric, and the reason if it cannot tell."""
        if found.reading is None:
            return None, ""
        run, base = self.columns[metric, other]
        if equal_outcomes(base, run) and metric in self._equal_inputs(other):
            return Verdict.NO_CHANGE, ""
        if self.differing:
            return Verdict.CANNOT_TELL, "the runs have different judges, rubrics or versions"
        if unchecked:
            return Verdict.CANNOT_TELL, unchecked
        if found.reading not in _READ:
            not_shown = found.reading is Conclusion.NOT_SHOWN
            return (Verdict.NOT_SHOWN, "") if not_shown else (Verdict.CANNOT_TELL, _no_conclusion(found))
        if metric in self._equal_inputs(other):
            return Verdict.CANNOT_TELL, "the inputs are equal in both runs, so the difference is the judge's own"
        higher = found.reading is Conclusion.FIRST_HIGHER
        return Verdict.BETTER if higher == base.higher_is_better else Verdict.WORSE, ""

    def _equal_inputs(self, other: int) -> frozenset[str]:
        """Return the metrics whose inputs are equal in a run and the first; the stores are read once."""
        if other not in self._equal:
            base, run = self.scores[0], self.scores[other]
            self._equal[other] = equal_inputs(base, run, [*base.columns])
        return self._equal[other]

    def _errors(self, labels: PairLabels, span: tuple[float, float]) -> ErrorDifference:
        """Return the judge's mean errors on a run and on the base."""
        names = self.scores[0].clusters
        clusters = None if names is None else [names[place] for place in labels.places.tolist()]
        return judge_error_difference(labels, span, clusters=clusters)


def equal_outcomes(base: Column, run: Column) -> bool:
    """Return True if every sample has the same outcome in both columns, and at least one has a score."""
    states = (base.scored == run.scored).all() and (base.failed == run.failed).all()
    return bool(states and base.scored.any() and (base.values == run.values)[base.scored].all())


def _unchecked(found: Comparison) -> str:
    labelled = 0 if found.correction is None else found.correction.labelled
    if not labelled:
        return UNCHECKED
    return f"{labelled:,} of at least {DECIDING_LABELLED} questions are labelled"


def _no_conclusion(found: Comparison) -> str:
    """Return why a comparison has no conclusion, and what would help."""
    counts, different = found.counts, found.counts.wins + found.counts.losses
    if not counts.pairs:
        what = [
            (counts.first_undefined + counts.second_undefined, "undefined in one"),
            (counts.first_failed + counts.second_failed, "failed in one"),
            (counts.neither, "scored in none"),
        ]
        listed = ", ".join(f"{amount:,} {words}" for amount, words in what if amount)
        return f"no sample has a score in both runs ({listed or 'there are none'}); see the reasons with merilo show"
    if found.p is None and not different:
        return f"the scores of all {counts.pairs:,} pairs are equal, their inputs are not"
    if found.p is None and found.clusters is None and different < FEWEST_DIFFERENT:
        return f"only {different:,} of {counts.pairs:,} samples differ, and a test needs {FEWEST_DIFFERENT}"
    reason = found.reason.removeprefix("cannot tell: ")
    if not counts.left_out or found.p is None:
        return reason
    failed = counts.first_failed + counts.second_failed
    some = "retry the failed ones" if failed == counts.left_out else "read or retry them"
    advice = some if failed else "read them"
    return f"{reason}, which could change the result; {advice}"


def _one_sided(ids: Sequence[str], first: Column, second: Column) -> tuple[str, ...]:
    """Return the first ids with a score in one column only; those that failed in the other come first."""
    import numpy as np

    places = np.flatnonzero(first.scored ^ second.scored)
    order = np.argsort(~(first.failed | second.failed)[places], kind="stable")[:_NAMED]
    return tuple(ids[int(place)] for place in places[order])


# -- the samples that changed most --------------------------------------------------------------------


def _moved_by(rows: Sequence[Row]) -> str:
    """Return the primary metric with the smallest p-value, otherwise the first."""
    read = [row for row in rows if row.comparison.reading is not None]
    tested = [row for row in read if row.comparison.p is not None]
    if tested:
        return min(tested, key=lambda row: row.comparison.p or 0.0).metric
    different = [row for row in read if row.comparison.counts.wins + row.comparison.counts.losses]
    return (different or read)[0].metric


def _moved(scores: Sequence[RunScores], metric: str, most: int, names: MetricNames) -> tuple[tuple[Moved, ...], int]:
    """Return the samples that differ most from the base in any other run, and the number that differ at all."""
    import numpy as np

    columns = [each.columns[metric] for each in scores]
    differ = np.zeros(len(columns[0]), np.bool_)
    steps: dict[int, float] = {}
    for column in columns[1:]:
        both = columns[0].scored & column.scored
        differ |= both & (abs(columns[0].values - column.values) > 0)
        for place in moved(columns[0], column, most):
            step = float(column.values[place] - columns[0].values[place])
            if abs(step) > abs(steps.get(place, 0.0)):
                steps[place] = step
    chosen = sorted(steps, key=lambda place: (-abs(steps[place]), place))[:most]
    cases = [
        {
            sample: with_common_names(case, names.own(at))
            for sample, case in cases_of(each.run, [each.ids[place] for place in chosen]).items()
        }
        for at, each in enumerate(scores)
    ]
    shown = tuple(
        Moved(
            sample=scores[0].ids[place],
            values=tuple(float(each.values[place]) if each.scored[place] else None for each in columns),
            step=steps[place],
            cases=tuple(found[scores[0].ids[place]] for found in cases),
        )
        for place in chosen
    )
    return shown, int(differ.sum())
