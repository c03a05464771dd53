"""The pairs of several runs, and the order of the runs by one metric: which may be the best, which are as good."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from merilo.commands.calibrate.correction import paired_labels
from merilo.commands.calibrate.levels import judge_sentences
from merilo.commands.compare.caveats import Pair, PairedLabels
from merilo.commands.compare.result import Ranking
from merilo.errors import UsageError
from merilo.results.estimate import Basis, basis_of
from merilo.stats.compare import Policy
from merilo.stats.gate import GateVerdict, drop_decision
from merilo.stats.simultaneous import simultaneous_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from merilo.commands.compare.result import Row
    from merilo.results.scores import RunScores
    from merilo.stats.simultaneous import Errors

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
