"""What qualifies a difference of two runs, each fact worded once for all outputs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.commands.compare.result import Row, Side
from merilo.errors import UsageError
from merilo.metrics.registry import known_metric
from merilo.numbers import about, between, count, number, signed
from merilo.results.comparable import judged_by_embedded
from merilo.results.contents import equal_inputs
from merilo.results.estimate import (
    BY_JUDGE,
    DECIDED,
    HUMAN_LABELS,
    REMARKS,
    Basis,
    Caveat,
    Estimate,
    Level,
    Missing,
    Verdict,
    basis_of,
    covers_imported,
    verdict,
)
from merilo.results.means import WEAK
from merilo.results.records import first_of, picked
from merilo.runs.run_metrics import weak_metrics
from merilo.stats.compare import Comparison, Conclusion, Policy, compare
from merilo.stats.corrected_pairs import ErrorDifference, PairedCorrection, PairLabels, judge_error_difference
from merilo.stats.correction import DECIDING_LABELLED
from merilo.stats.distributions import normal_quantile
from merilo.stats.intervals import LEVEL
from merilo.stats.means import FEWEST_DIFFERENT
from merilo.stats.power import POWER, LabelSpread, labels_needed, samples_for

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

    from merilo.results.scores import RunScores
    from merilo.stats.column import Column

UNCHECKED: Final = "no one has checked the judge"
NEEDED: Final = f"{DECIDING_LABELLED} are needed to correct"
OF_VERDICT: Final = frozenset({"more-needed"})
"""Codes of leading caveats that depend on the verdict of their row."""
MANY_ABSENT: Final = 0.05
"""The share of a run's samples that another run lacks, above which a warning names it."""
_SHOWN: Final = 5
"""Number of ids that are named as examples."""
_TWO_DIGITS: Final = 0.005


class PairedLabels(NamedTuple):
    """The human labels of a pair of runs."""

    labels: Mapping[str, PairLabels]
    notes: tuple[str, ...] = ()
    uncorrected: Mapping[str, str] = MappingProxyType({})
    """Why the labels of its verdicts do not correct a metric."""
    columns: Mapping[str, tuple[Column, Column]] = MappingProxyType({})
    """The columns of the run and of the base of each labelled metric, with the samples that the judge did not judge."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A base and a run over their common samples."""

    scores: tuple[RunScores, RunScores]
    names: tuple[str, str]
    columns: Mapping[str, tuple[Column, Column]]
    """By metric, the columns of the run and of the base."""
    labels: PairedLabels
    differing: Sequence[str]
    policy: Policy
    several: bool = False
    """True if the pair is one of several, so that its notes name the runs."""
    _equal: list[frozenset[str]] = field(default_factory=list["frozenset[str]"])
    """The metrics whose inputs are equal in both, once they were compared."""

    def compared(
        self,
        metrics: Collection[str],
        *,
        primary: Collection[str] | None = None,
        level: float = LEVEL,
        one_sided: bool = False,
    ) -> dict[str, Comparison]:
        """Return the run minus the base by these metrics. Raises UsageError as `compare` raises ValueError."""
        try:
            return compare(
                {metric: self.columns[metric] for metric in metrics},
                primary=primary,
                clusters=self.scores[0].clusters,
                undefined=self.policy,
                level=level,
                labels=self.labels.labels,
                member=self.member,
                one_sided=one_sided,
            )
        except ValueError as error:  # Undefined cannot count as the worst score if the range is infinite
            raise UsageError(str(error)) from None

    def row(self, metric: str, other: int, found: Comparison) -> Row:
        """Return the row of a metric of the run, which is at `other`."""
        return Row(metric, other, self.columns[metric][1].higher_is_better, found, self.estimate(metric, found))

    def member(self, metric: str, found: Comparison) -> Hashable | None:
        """Return the member of the family of tests that a metric belongs to; None if it cannot decide.

        Metrics that the same labels correct are one member.
        """
        if found.by_judge is None:
            return None if self.unchecked(metric, found) else metric
        known = known_metric(metric)
        return metric if known is None else frozenset(kind.kind for kind in known.asks)

    def unchecked(self, metric: str, found: Comparison) -> str:
        """Return why the judge alone may not name a winner; empty if it may, or does not decide."""
        if basis_of(metric, corrected=found.by_judge is not None) is not Basis.JUDGE:
            return ""
        if metric in self.labels.uncorrected:
            return self.labels.uncorrected[metric]
        if not any(judged_by_embedded(each.run.manifest, metric) for each in self.scores):
            return ""
        labelled = f"{found.labelled:,} of at least {DECIDING_LABELLED} questions are labelled"
        return labelled if found.labelled else UNCHECKED

    def equal_inputs(self, metric: str) -> bool:
        """Return True if a metric reads the same inputs in both runs; the stores are read once."""
        if not self._equal:
            self._equal.append(equal_inputs(*self.scores, [*self.scores[0].columns]))
        return metric in self._equal[0]

    def estimate(self, metric: str, found: Comparison) -> Estimate:
        """Return the difference with its caveats: those that can force the verdict, then those that depend on it."""
        basis = basis_of(metric, corrected=found.by_judge is not None)
        forcing = tuple(self._forcing(metric, found))
        counts = found.counts
        failed = counts.first_failed + counts.second_failed
        missing = Missing(counts.left_out - failed, failed)
        plain = Estimate(found.difference, found.interval.ends, counts.pairs, missing, basis, forcing)
        better = self.columns[metric][1].higher_is_better
        said = None if found.reading is None else verdict(plain, higher_is_better=better)
        label = f"{metric}, {' to '.join(self.names)}" if self.several else metric
        others = (*self._beside(metric, found, said), *self._notes(metric, found))
        return replace(plain, caveats=(*forcing, *(replace(each, about=label) for each in others)))

    def _forcing(self, metric: str, found: Comparison) -> Iterator[Caveat]:
        """Yield what forces the verdict, by rank."""
        run, base = self.columns[metric]
        if found.reading is not None and equal_outcomes(base, run) and self.equal_inputs(metric):
            yield Caveat("no-change", "", Level.DECIDES, Verdict.NO_CHANGE)
        if self.differing:
            yield _cannot_tell("judges-differ", "the runs have different judges, rubrics or versions")
        if why := self.unchecked(metric, found):
            yield _cannot_tell("judge-unchecked", why)
        if found.reading is Conclusion.CANNOT_TELL:
            yield _cannot_tell("no-conclusion", no_conclusion(found))
        elif found.reading not in {None, Conclusion.NOT_SHOWN} and self.equal_inputs(metric):
            yield _cannot_tell(
                "equal-inputs", "the inputs are equal in both runs, so the difference is the judge's own"
            )

    def _beside(self, metric: str, found: Comparison, said: Verdict | None) -> Iterator[Caveat]:
        """Yield what is shown with the verdict `said`."""
        if said in DECIDED and found.counts.left_out:
            one_sided = f"{count(found.counts.left_out, 'sample')} scored in one run only"
            yield Caveat("holds-at-worst", f"holds even if the {one_sided} had the least favourable scores")
        if found.labelled and found.by_judge is None:
            text = f"{metric} has {count(found.labelled, 'labelled question')}; {NEEDED} it"
            yield Caveat("few-labels", text, Level.LEADS)
        if (errors := self._errors(metric)) is not None:
            yield errors
        if said is Verdict.NOT_SHOWN and (needed := _more_needed(found, self.columns[metric][1].span)):
            yield Caveat("more-needed", needed, Level.LEADS)
        if any(metric in weak_metrics(each.run.manifest) for each in self.scores):
            yield Caveat("weak", f"{WEAK}, so the difference may be the judge's error")

    def _notes(self, metric: str, found: Comparison) -> Iterator[Caveat]:
        """Yield what is in the notes."""
        run, base = self.columns[metric]
        if found.correction is not None:
            yield _labelled(found, found.correction)
        if found.interval.remark:
            yield Caveat("interval", found.interval.remark, topic=REMARKS)
        if ids := _one_sided(self.scores[0].ids, base, run):
            text = f"{_missing(found, self.names, self.policy)}. Examples: {', '.join(ids)}"
            yield Caveat("one-sided", text, topic="Scored in one run only", facts={"ids": ids})

    def _errors(self, metric: str) -> Caveat | None:
        """Return the judge's mean errors; None without labels, and if the judge did not judge some samples."""
        (run, base), labels = self.columns[metric], self.labels.labels.get(metric)
        first, second = self.scores
        if labels is None or run is not second.columns[metric] or base is not first.columns[metric]:
            return None
        own = None if first.clusters is None else [first.clusters[place] for place in labels.places.tolist()]
        found = judge_error_difference(labels, base.span, clusters=own)
        return judge_errors(found, metric, self.names, higher_is_better=base.higher_is_better)


def of_all(
    sides: Sequence[Side], differing: Sequence[str], noted: Mapping[str, Sequence[str]], left: Mapping[str, str]
) -> Iterator[Caveat]:
    """Yield what qualifies all numbers: warnings in the order in which they are shown, and what is not compared.

    `noted`: warnings by code. `left`: by metric, why it is not compared.
    """
    for side in sides:
        if not side.complete:
            text = f"{side.name} was stopped before its last sample; only its samples so far are compared."
            yield Caveat("stopped", text, Level.WARNS, about=side.name)
    for phrase in differing:
        yield Caveat("judges-differ", f"Not comparable: {phrase}.", Level.WARNS)
    if all(side.run.manifest.origin is not None for side in sides):
        yield Caveat("imported", f"Intervals {covers_imported()}.", Level.WARNS)
    for code, texts in noted.items():
        yield from (Caveat(code, text, Level.WARNS) for text in texts)
    for side in sides:
        if side.absences:
            ids = first_of(side.absent, len(side.absent), side.absences)
            text = f"{count(side.absences, 'sample')} that another run lacks: {ids}"
            yield Caveat("absent", text, topic="In one run only", about=side.name)
    largest = max(sides, key=lambda side: side.absences)
    if largest.absences > MANY_ABSENT * largest.scored:
        text = f"Only {largest.scored - largest.absences:,} of {largest.scored:,} questions of {largest.name}"
        yield Caveat("many-absent", f"{text} are in every run; the others are left out.", Level.WARNS)
    for metric, why in left.items():
        yield Caveat("left-out", why, topic="Not compared", about=metric)


def _cannot_tell(code: str, why: str) -> Caveat:
    return Caveat(code, why, Level.DECIDES, Verdict.CANNOT_TELL)


# -- facts ---------------------------------------------------------------------------------------------


def equal_outcomes(base: Column, run: Column) -> bool:
    """Return True if every sample has the same outcome in both columns, and at least one has a score."""
    states = (base.scored == run.scored).all() and (base.failed == run.failed).all()
    return bool(states and base.scored.any() and (base.values == run.values)[base.scored].all())


def _one_sided(ids: Sequence[str], first: Column, second: Column) -> list[str]:
    """Return the first ids with a score in one column only; those that failed in the other come first."""
    import numpy as np

    places = np.flatnonzero(first.scored ^ second.scored)
    order = np.argsort(~(first.failed | second.failed)[places], kind="stable")[:_SHOWN]
    return [ids[int(place)] for place in places[order]]


# -- longer sentences ----------------------------------------------------------------------------------


def no_conclusion(found: Comparison) -> str:
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


def judge_errors(found: ErrorDifference, metric: str, names: tuple[str, str], *, higher_is_better: bool) -> Caveat:
    """Return the judge's mean errors, judge minus human, on the base and the run; it leads if they favour one."""
    favoured = None if not found.sign else names[(found.sign > 0) == higher_is_better]
    text, ends = "", found.interval.ends
    if favoured is not None and ends is not None and found.difference is not None:
        low, high = sorted(map(abs, ends))
        digits = 2 if low >= _TWO_DIGITS else 3  # an interval that excludes 0 must not be shown with an end of 0.00
        text = (
            f"the judge is kinder to {favoured} by {abs(found.difference):.{digits}f} in {metric} "
            f"({low:.{digits}f} to {high:.{digits}f}; {count(found.labelled, 'labelled pair')})"
        )
    facts = picked(found, "first=second second=first difference interval=interval.ends note=interval.note labelled")
    level = Level.LEADS if text else Level.INFORMS
    return Caveat("judge-errors", text, level, facts={**facts, "kinder_to": favoured})


def _labelled(found: Comparison, correction: PairedCorrection) -> Caveat:
    """Return the number of labelled pairs and the numbers by the judge alone."""
    judged, (run, base) = correction.judged, found.by_judge or (found.first, found.second)
    text = count(correction.labelled, "labelled pair")
    if found.by_judge is None:
        text += "" if correction.human is None else f", whose mean difference is {signed(correction.human)}"
        text += f"; {NEEDED}, so the numbers are {BY_JUDGE}"
    else:
        tail = "" if judged.interval.ends is None else f", {between(judged.interval.ends)}"
        means = f"{number(base)} and {number(run)}, difference {signed(judged.difference)}{tail}"
        text = f"corrected by {text}; {BY_JUDGE}: {means}"
    names = "labelled human_difference=human tuning difference=judged.difference interval=judged.interval.ends"
    facts = {**picked(correction, f"{names} p=judged.p"), "first_mean": base, "second_mean": run}
    return Caveat("labelled", text, topic=HUMAN_LABELS, facts=facts)


def _missing(found: Comparison, names: tuple[str, str], policy: Policy) -> str:
    """Return the number of samples scored in one run only, and their possible effect on the difference."""
    counts, least, most, (base, run) = found.counts, found.least, found.most, names
    missing = [
        (counts.first_undefined, "undefined", run, base),
        (counts.first_failed, "failed", run, base),
        (counts.second_undefined, "undefined", base, run),
        (counts.second_failed, "failed", base, run),
    ]
    text = "; ".join(f"{many:,} {what} in {there}, scored in {here}" for many, what, there, here in missing if many)
    if policy is Policy.WORST:
        text += "; undefined counts as worst"
    if least is not None and most is not None:
        ends = between((least.difference, most.difference))
        text += f"; if they had the lowest or the highest scores, the difference would be {ends}"
    return text


# -- how much would decide -----------------------------------------------------------------------------

ALL_LABELLED: Final = ", all labelled"
"""Ends the text if labels of all questions so far do not suffice."""


def _more_needed(found: Comparison, span: tuple[float, float]) -> str:
    """Return the number of questions or labels that show a small difference, 5 % of the range; empty if unknown."""
    correction, effect = found.correction, 0.05 * (span[1] - span[0])
    if found.detectable is None or not isfinite(effect):
        return ""
    if found.by_judge is None or correction is None:
        needed = more_questions(effect, found.detectable, found.counts.pairs)
    else:
        errors = correction.corrected.error, correction.judged.error
        needed = more_labels(effect, errors, correction.labelled, found.counts.pairs)
    return f"to show a difference of {effect:g}: {needed[:1].lower()}{needed[1:]}" if needed else ""


def more_questions(effect: float, detectable: float, questions: int) -> str:
    """Return the number of questions that show an effect, such as `About 830 questions`.

    `detectable`: the effect that `questions` show. Empty if these suffice, and if too many are needed.
    """
    needed = samples_for(effect, detectable, questions)
    return "" if needed is None or needed <= questions else f"About {about(max(needed, FEWEST_DIFFERENT))} questions"


def more_labels(effect: float, errors: tuple[float | None, float | None], labelled: int, questions: int) -> str:
    """Return the number of labelled questions that show an effect, such as `About 60 labelled questions`.

    If all questions so far are too few: `About 830 questions, all labelled`. `errors`: the standard errors of the
    corrected number and of the judge's own. Empty if `labelled` suffice, and if too many are needed.
    """
    corrected, judged = errors
    if corrected is None or judged is None:
        return ""
    spread = LabelSpread.of(corrected, labelled, questions, judged**2 * questions)
    if labelled >= questions or (needed := labels_needed(effect, spread)) is None:
        error = corrected if labelled >= questions else spread.error(questions)
        detectable = error * (normal_quantile((1 + LEVEL) / 2) + normal_quantile(POWER))
        more = more_questions(effect, detectable, questions)
        return f"{more}{ALL_LABELLED}" if more else ""
    return "" if needed <= labelled else f"About {about(needed)} labelled questions"
