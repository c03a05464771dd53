"""Compares finished runs: pairs their samples, computes differences, and draws conclusions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.commands.calibrate.correction import paired_labels
from merilo.commands.calibrate.people import judge_sentences
from merilo.commands.compare.caveats import Pair, PairedLabels, of_all
from merilo.commands.compare.matching import (
    context_numbers,
    import_notes,
    in_common,
    metric_names,
    name_in,
    under_common_names,
    with_common_names,
)
from merilo.commands.compare.options import ComparisonRequest
from merilo.commands.compare.result import Moved, Ranking, Row, RunComparison, Side
from merilo.errors import UsageError
from merilo.results.comparable import not_comparable, score_affecting_differences
from merilo.results.contents import equal_questions
from merilo.results.estimate import Basis, Caveat, basis_of
from merilo.results.sample_detail import cases_of
from merilo.results.scores import RunScores, read_scores
from merilo.runs.run import Run, opened
from merilo.stats.compare import Errors, Policy, moved, simultaneous_errors
from merilo.stats.gate import GateVerdict, drop_decision

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    from merilo.commands.compare.matching import MetricNames


_NAMED = 5
"""Number of ids that are named as examples."""


def compare_runs(runs: Sequence[Run | str | PathLike[str]], wanted: ComparisonRequest | None = None) -> RunComparison:
    """Compare a run with a base, or several runs with the best, over the samples that all have with an equal question.

    Raises UsageError for a metric or an option that cannot be used, and for runs whose judges or questions differ, with
    the differences; DataError if no samples can be paired; RunError if a run cannot be read.
    """
    wanted = wanted or ComparisonRequest()
    policy = _checked(runs, wanted)
    measured = [opened(run) for run in runs]
    names = _names(measured)
    asked = [wanted.metrics] if isinstance(wanted.metrics, str) else wanted.metrics
    deciding = [wanted.primary] if isinstance(wanted.primary, str) else wanted.primary
    chosen = metric_names(measured, names, asked)
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
    primary = None if deciding is None else _primary(measured[0], chosen, deciding)
    several = Runs(matching, names, differing, policy, wanted.judge_only)
    rankings: list[Ranking] = []
    contexts: tuple[Caveat, ...] = ()
    if len(runs) > 2 or wanted.within is not None:
        against = None if wanted.against is None else _place(wanted.against, measured, names)
        tried = (several.ranking(metric, wanted.within, against) for metric in metrics_of_choice(metrics, primary))
        rankings = [first_decided(tried)]
        rankings += [several.ranking(metric) for metric in metrics if metric != rankings[0].metric]
        rows = [row for each in rankings for row in each.rows]
        notes = [note for row in rankings[0].rows for note in several.pair(rankings[0].best, row.other).labels.notes]
    else:
        pair = several.pair(0, 1)
        contexts = context_numbers(names, questions.contexts)
        rows = [pair.row(metric, 1, found) for metric, found in pair.compared(metrics, primary=primary).items()]
        notes = [*pair.labels.notes]
    by = _moved_by(rankings[0].rows if rankings else rows)
    shown, movers = _moved(matching, by, wanted.samples, chosen, rankings[0].best if rankings else 0)
    sides = [
        Side(name, each.run, len(each.ids), tuple(only[:_NAMED]), len(only), each.run.complete)
        for name, each, only in zip(names, scores, paired.only, strict=True)
    ]
    noted = {
        "questions": questions.notes,
        "labels": [*dict.fromkeys(notes)],
        "imports": import_notes(measured, names, chosen),
    }
    found = RunComparison(
        sides=tuple(sides),
        common=len(matching[0].ids),
        ids=tuple(matching[0].ids),
        rows=tuple(rows),
        primary=tuple(metrics) if primary is None else tuple(primary),
        moved_by=by if movers else None,
        moved=shown,
        movers=movers,
        caveats=(*contexts, *of_all(sides, differing, noted, chosen.left_out)),
        undefined=policy,
        cluster=(wanted.cluster or measured[0].manifest.cluster) if matching[0].clusters is not None else None,
        clusters=matching[0].clusters,
        rankings=tuple(rankings),
        prefer=wanted.prefer or "",
    )
    if wanted.prefer:
        _ = found.preferred  # raises for a measure that the runs do not have
    return found


def _place(named: str, runs: Sequence[Run], names: Sequence[str]) -> int:
    for place, (run, name) in enumerate(zip(runs, names, strict=True)):
        if named in {name, str(run.path)} or Path(named).resolve() == run.path.resolve():
            return place
    raise UsageError(f"--against: {named} is not one of the runs: {', '.join(names)}.")


def _checked(runs: Sequence[object], wanted: ComparisonRequest) -> Policy:
    if len(runs) < 2:
        raise UsageError(f"A comparison needs at least two runs, got {len(runs)}.")
    if wanted.within is not None and not 0 < wanted.within < inf:
        raise UsageError(f"--within must be a number above 0, got {wanted.within}.")
    if wanted.against is not None and wanted.within is None:
        raise UsageError("--against needs --within, the margin.")
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


# -- the samples that changed most --------------------------------------------------------------------


def _moved_by(rows: Sequence[Row]) -> str:
    """Return the primary metric with the smallest p-value, otherwise the first."""
    read = [row for row in rows if row.comparison.reading is not None]
    tested = [row for row in read if row.comparison.p is not None]
    if tested:
        return min(tested, key=lambda row: row.comparison.p or 0.0).metric
    different = [row for row in read if row.comparison.counts.wins + row.comparison.counts.losses]
    return (different or read)[0].metric


def _moved(
    scores: Sequence[RunScores], metric: str, most: int, names: MetricNames, base: int
) -> tuple[tuple[Moved, ...], int]:
    """Return the samples that differ most from the base in any other run, and the number that differ at all."""
    import numpy as np

    columns = [each.columns[metric] for each in scores]
    first = columns[base]
    differ = np.zeros(len(first), np.bool_)
    steps: dict[int, float] = {}
    for column in (*columns[:base], *columns[base + 1 :]):
        both = first.scored & column.scored
        differ |= both & (abs(first.values - column.values) > 0)
        for place in moved(first, column, most):
            step = float(column.values[place] - first.values[place])
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


PREFERRED: Final = ("answer_correctness", "answering", "faithfulness", "context_relevance")
"""The metrics that choose a run, the first one that all runs have and whose judge may decide."""


def metrics_of_choice(metrics: Sequence[str], primary: Sequence[str] | None) -> list[str]:
    """Return the metrics that may order the runs, the first one that decides: the primary one; or those of `PREFERRED`,
    those without a judge, any.
    """
    if primary:
        return [*primary[:1]]
    names = {text.partition("(")[0].rpartition(":")[2]: text for text in reversed(metrics)}
    known = [text for text in metrics if basis_of(text, corrected=False) is Basis.NO_JUDGE]
    return [*(names[name] for name in PREFERRED if name in names), *known, metrics[0]]


def first_decided(rankings: Iterator[Ranking]) -> Ranking:
    """Return the first ranking whose judge may decide; the first one if there is none."""
    first = next(rankings)
    return first if first.may_be_best else next((each for each in rankings if each.may_be_best), first)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs over the same samples, any of which can be the base of a pair."""

    scores: Sequence[RunScores]
    names: Sequence[str]
    differing: Sequence[str]
    policy: Policy
    judge_only: bool
    _pairs: dict[tuple[int, int], Pair] = field(default_factory=dict[tuple[int, int], Pair])

    def pair(self, base: int, run: int) -> Pair:
        """Return the pair of a base and a run."""
        if (base, run) not in self._pairs:
            one, two = both = self.scores[base], self.scores[run]
            labels = self._labels(*both)
            columns = {metric: (two.columns[metric], one.columns[metric]) for metric in one.columns}
            columns |= labels.columns
            names, several = (self.names[base], self.names[run]), len(self.scores) > 2
            self._pairs[base, run] = Pair(both, names, columns, labels, self.differing, self.policy, several=several)
        return self._pairs[base, run]

    def _labels(self, base: RunScores, run: RunScores) -> PairedLabels:
        if self.judge_only:
            return PairedLabels({})
        own = paired_labels(base, run, [*base.columns])
        if own.labels and self.policy is Policy.WORST:
            note = "Human labels correct scored samples only, so they are not used with --undefined worst."
            return PairedLabels({}, (note,))
        return PairedLabels(
            {metric: labels.exchanged() for metric, labels in own.labels.items()},  # the run comes first
            (*own.notes, *judge_sentences(base.run, run.run, levels=False)),
            {metric: each.reason.removeprefix("cannot tell: ") for metric, each in own.uncorrected.items()},
            {metric: (own.scores[1].columns[metric], own.scores[0].columns[metric]) for metric in own.labels},
        )

    def ranking(self, metric: str, within: float | None = None, against: int | None = None) -> Ranking:
        """Return the order of the runs by a metric, with all intervals holding together.

        `within`: also find the runs whose one-sided bound against every other run, or against the run at `against`, is
        above -`within`. The best run has the best mean, corrected if labels correct its pairs.
        """
        places = range(len(self.scores))
        columns = [each.columns[metric] for each in self.scores]
        if self.policy is Policy.WORST:
            columns = [each.filled(each.worst, each.undefined) for each in columns]
        apart = [(a, b) for a in places for b in places[a + 1 :] if metric in self.pair(a, b).labels.labels]
        errors = simultaneous_errors(columns, self.scores[0].clusters, apart=apart)
        means = [float((each.values @ each.scored) / max(each.scored.sum(), 1)) for each in columns]
        best, tried = means.index(max(means) if columns[0].higher_is_better else min(means)), set[int]()
        while rows := self._rows(metric, best, errors):
            tried.add(best)
            if rows[0].improvement <= 0 or rows[0].other in tried:
                break
            best = rows[0].other
        corrected = [row for row in rows if row.comparison.by_judge is not None]
        if corrected:
            shown = {best: corrected[0].base_mean, **{row.other: None for row in rows}}
            shown |= {row.other: row.run_mean for row in corrected}
        else:
            shown = {at: means[at] if columns[at].scored.any() else None for at in (best, *(row.other for row in rows))}
        if within is None:
            return Ranking(metric, best, tuple(rows), shown)
        if not within < (width := columns[0].span[1] - columns[0].span[0]):
            raise UsageError(f"--within must be below {width:g}, the width of the range of {metric}, got {within:g}.")
        others = [best, *(row.other for row in rows)] if against is None else [against]
        good = [at for at in places if all(self._is_as_good(metric, at, each, errors, within) for each in others)]
        return Ranking(metric, best, tuple(rows), shown, within, against, tuple(good))

    def _rows(self, metric: str, base: int, errors: Errors) -> list[Row]:
        """Return the others minus the base, the best first."""
        pairs = {place: self.pair(base, place) for place in range(len(self.scores)) if place != base}
        found = {at: each.compared([metric], level=1 - errors.pair)[metric] for at, each in pairs.items()}
        # All intervals hold together by their level, so no p-value is corrected for several tests.
        rows = (pairs[at].row(metric, at, replace(each, adjusted=None)) for at, each in found.items())
        return sorted(rows, key=lambda row: -row.improvement)

    def _is_as_good(self, metric: str, place: int, other: int, errors: Errors, within: float) -> bool:
        """Return True if a run is shown to be at most `within` worse than another one, or is that one."""
        if place == other:
            return True
        pair = self.pair(other, place)
        better = pair.columns[metric][0].higher_is_better
        found = pair.compared([metric], level=1 - 2 * errors.against[other], one_sided=True)[metric]
        passes = drop_decision(found, within, higher_is_better=better).verdict is GateVerdict.PASS
        return passes and not self.differing and not pair.unchecked(metric, found)
