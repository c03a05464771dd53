"""Compares runs that retrieved different numbers of contexts over the same number, per sample the smaller one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from merilo.commands.compare.result import MAX_CUT_PAIRS, ContextNumbers
from merilo.metrics.base import Score
from merilo.results.judged_samples import scores_of_first
from merilo.stats.compare import compare
from merilo.stats.intervals import SEED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.metrics.base import Undefined
    from merilo.results.scores import RunScores
    from merilo.stats.column import Column
    from merilo.stats.compare import Comparison, Policy


@dataclass(frozen=True, slots=True)
class SameContexts:
    """The numbers of contexts of runs that differ in them, and the comparisons over the same number."""

    numbers: tuple[ContextNumbers, ...] = ()
    comparisons: Mapping[tuple[str, int], Comparison] = field(default_factory=dict[tuple[str, int], "Comparison"])
    """By metric and other run, the run minus the base; only metrics that judge each context alone and whose scores the
    evidence explains.
    """


def by_same_contexts(
    scores: Sequence[RunScores], counts: Sequence[Sequence[int | None]], policy: Policy, level: float
) -> SameContexts:
    """Compare every other run with the first one over the same number of contexts, if their numbers differ.

    `scores`: of the same samples in one order. `counts`: by run, the number of contexts of each of these samples; empty
    if all runs have the same samples.
    """
    numbers: list[ContextNumbers] = []
    chosen = _sampled(len(scores[0].ids)) if counts else ()
    some = [each.at(chosen) for each in scores] if chosen else scores
    lengths = [[each[at] for at in chosen] for each in counts] if chosen else counts
    pairs: dict[tuple[str, int], tuple[Column, Column]] = {}
    for other in range(1, len(counts)):
        both = [(a, b) for a, b in zip(counts[0], counts[other], strict=True) if a is not None and b is not None]
        if all(a == b for a, b in both):
            continue
        first, second = (sum(each) / len(both) for each in zip(*both, strict=True))
        numbers.append(ContextNumbers(other, first, second, len(both)))
        if not any(a != b and min(a, b) for a, b in both):  # without any context there is nothing to cut to
            continue
        cut = _cut(some[0], lengths[0], lengths[other]), _cut(some[other], lengths[other], lengths[0])
        pairs |= {(metric, other): (cut[1][metric], cut[0][metric]) for metric in cut[0] if metric in cut[1]}
    found = compare(pairs, primary=(), clusters=some[0].clusters, undefined=policy, level=level)
    return SameContexts(tuple(numbers), found)


def _sampled(samples: int) -> tuple[int, ...]:
    """Return the positions to compare, in order; empty to compare all."""
    if samples <= MAX_CUT_PAIRS:
        return ()
    import numpy as np

    return tuple(np.sort(np.random.default_rng(SEED).choice(samples, MAX_CUT_PAIRS, replace=False)).tolist())


def _cut(scores: RunScores, own: Sequence[int | None], other: Sequence[int | None]) -> dict[str, Column]:
    """Return the columns over at most as many contexts as the other run has."""
    lengths = {
        sample: b
        for sample, a, b in zip(scores.ids, own, other, strict=True)
        if a is not None and b is not None and b < a
    }
    places = {sample: place for place, sample in enumerate(scores.ids)}
    texts = tuple(text for text in scores.columns if text in scores.run.manifest.metrics)  # not imported ones
    found = scores_of_first(scores.run, texts, lengths)
    return {metric: _with(scores.columns[metric], outcomes, places) for metric, outcomes in found.items()}


def _with(column: Column, outcomes: Mapping[str, Score | Undefined], places: Mapping[str, int]) -> Column:
    values, scored = column.values.copy(), column.scored.copy()
    for sample, outcome in outcomes.items():
        values[places[sample]] = outcome.value if isinstance(outcome, Score) else 0.0
        scored[places[sample]] = isinstance(outcome, Score)
    return replace(column, values=values, scored=scored)
