"""Compares finished runs: pairs their samples, computes differences, and draws conclusions."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from merilo.commands.compare.caveats import of_all
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
from merilo.commands.compare.ranking import Runs, first_decided, metrics_of_choice
from merilo.commands.compare.result import Moved, RunComparison, Side
from merilo.errors import UsageError
from merilo.results.comparable import not_comparable, score_affecting_differences
from merilo.results.contents import equal_questions
from merilo.results.sample_detail import cases_of
from merilo.results.scores import RunScores, read_scores
from merilo.runs.run import opened
from merilo.stats.compare import Policy, moved

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from merilo.commands.compare.matching import MetricNames
    from merilo.commands.compare.result import Ranking, Row
    from merilo.results.estimate import Caveat
    from merilo.runs.run import Run


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
    chosen = metric_names(measured, names, _listed(wanted.metrics))
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
    asked = _listed(wanted.primary)
    primary = None if asked is None else _primary(measured[0], chosen, asked)
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


def _listed(given: str | Sequence[str] | None) -> Sequence[str] | None:
    return [given] if isinstance(given, str) else given


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
