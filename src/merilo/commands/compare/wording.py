"""The wording of a comparison, the same on every page; readers need no statistics to follow it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.commands.compare.result import DECIDED, Row, RunComparison, Verdict
from merilo.metrics.registry import known_metric
from merilo.rendering.weak import MARK, WEAK, WeakMarks, weak_legend
from merilo.rendering.wording import NONE, OWN_ERROR, about, count, covers_imported, number, percent
from merilo.results.basis import BY_JUDGE, Basis
from merilo.stats.correction import DECIDING_LABELLED
from merilo.stats.distributions import normal_quantile
from merilo.stats.intervals import LEVEL
from merilo.stats.means import FEWEST_DIFFERENT
from merilo.stats.power import POWER, LabelSpread, labels_needed, samples_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from merilo.stats.compare import Comparison


_TWO_DIGITS: Final = 0.005
NOT_PRIMARY = "not primary"
LEVEL_TEXT: Final = percent(LEVEL)
"""The confidence level of all intervals."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """The rows of one pair of runs that rest on the same thing: ids, human labels, or the judge alone."""

    heading: str
    """What they rest on and, if all have one verdict, the verdict."""
    rows: tuple[Row, ...]
    said: tuple[str, ...]
    """By row: the verdict or the direction, in a word or two; empty if the heading says it."""
    colour: bool
    """False for rows that name no winner."""


# -- the conclusion ------------------------------------------------------------------------------------


def conclusion(found: RunComparison, other: int = 1) -> str:
    """Return the conclusion on a run, in one or two sentences."""
    name, verdict = found.names[other], found.verdict_of(other)
    decided = found.deciding(other)
    if len({row.verdict for row in decided}) > 1:
        better, worse = (_listed([r for r in decided if r.verdict is each]) for each in (Verdict.BETTER, Verdict.WORSE))
        alone = f", {BY_JUDGE}" if decided[0].basis is Basis.JUDGE else ""
        return (
            f"Cannot tell which is better{alone}: {name} is better by {better} and worse by {worse}. To decide by one "
            "metric: --primary METRIC."
        )
    if decided:
        row = max(decided, key=lambda each: abs(each.comparison.standardised or 0.0))
        more = f"; also by {_listed([each for each in decided if each is not row])}" if len(decided) > 1 else ""
        by = {Basis.JUDGE: f", {BY_JUDGE}", Basis.NO_JUDGE: f" {_without_judge([row])}"}.get(row.basis, "")
        return (
            f"{name} is {verdict}{by}: {row.metric} {number(row.base_mean)} to {number(row.run_mean)}, "
            f"{difference(row)}{_corrected(row)}{more}."
        )
    rows = [row for row in found.rows_of(other) if row.verdict is not None]
    if verdict is Verdict.NO_CHANGE:
        return f"No change: {name} has the same inputs and the same scores as {found.names[0]}."
    if verdict is Verdict.NOT_SHOWN:
        shown = [row for row in rows if row.verdict is Verdict.NOT_SHOWN]
        row = next((each for each in shown if each.basis is Basis.LABELS), shown[0])
        alone = f", {BY_JUDGE}" if all(each.basis is Basis.JUDGE for each in shown) else ""
        return f"No difference shown{alone}: {row.metric} of {name} is {difference(row)}{_corrected(row)}."
    reason = next((row.reason for row in sorted(rows, key=lambda row: not row.unchecked) if row.reason), "")
    if not reason:
        return "Cannot tell: no metric is primary."
    free = [row for row in rows if row.basis is Basis.NO_JUDGE and row.verdict is Verdict.NOT_SHOWN]
    by = f" {_without_judge(free).capitalize()} no difference is shown." if free else ""
    return f"Cannot tell which is better: {reason}.{by}"


def next_steps(found: RunComparison, other: int = 1) -> list[str]:
    """Return what qualifies the conclusion, what labels say about the judge, and what would show a small difference; a
    sentence each.
    """
    rows = found.rows_of(other)
    decided = found.deciding(other)
    contexts = [f"{text[:1].upper()}{text[1:]}." for row in decided if (text := _number_of_contexts(row))]
    few = [row for row in rows if row.labelled and row.basis is Basis.JUDGE]
    fewer = [
        f"{row.metric} has {count(row.labelled, 'labelled question')}; {DECIDING_LABELLED} are needed to correct it."
        for row in few[:1]
    ]
    kinder = [text for row in rows if (text := kinder_text(found, row))]
    open_rows = [row for row in rows if row.verdict is Verdict.NOT_SHOWN]
    row = next((each for each in open_rows if each.basis is Basis.LABELS), open_rows[0] if open_rows else None)
    needed = "" if row is None or found.verdict_of(other) is not Verdict.NOT_SHOWN else to_show(row)
    return [*contexts[:1], *fewer, *kinder[:1], *([needed] if needed else [])]


def to_show(row: Row) -> str:
    """Return the number of questions or labels that show a small difference; empty if those so far do."""
    from merilo.commands.compare.wording import more_labels, more_questions  # rarely needed

    pairs, correction, detectable = row.comparison.counts.pairs, row.comparison.correction, row.comparison.detectable
    if detectable is None or not row.worth:
        return ""
    if row.basis is not Basis.LABELS or correction is None:
        needed = more_questions(row.worth, detectable, pairs)
    else:
        errors = correction.corrected.error, correction.judged.error
        needed = more_labels(row.worth, errors, correction.labelled, pairs)
    return f"To show a difference of {row.worth:g}: {needed[:1].lower()}{needed[1:]}." if needed else ""


def kinder_text(found: RunComparison, row: Row) -> str:
    """Return a sentence if the judge's error differs between a run and the base; otherwise empty."""
    favoured, errors = row.kinder_to, row.errors
    if favoured is None or errors is None or errors.difference is None or errors.interval.ends is None:
        return ""
    low, high = sorted(abs(each) for each in errors.interval.ends)
    digits = 2 if low >= _TWO_DIGITS else 3  # an interval that excludes 0 must not be shown with an end of 0.00
    return (
        f"The judge is kinder to {found.names[favoured]} by {abs(errors.difference):.{digits}f} in {row.metric} "
        f"({low:.{digits}f} to {high:.{digits}f}; {count(errors.labelled, 'labelled pair')})."
    )


def _corrected(row: Row) -> str:
    return f", corrected by {row.labelled:,} labelled questions" if row.basis is Basis.LABELS else ""


def _listed(rows: Sequence[Row]) -> str:
    return ", ".join(row.metric for row in rows)


def _without_judge(rows: Sequence[Row]) -> str:
    """Return "by ids" if all metrics compare ids, otherwise "without a judge"."""
    known = [known_metric(row.metric) for row in rows]
    ids = all(each is not None and any(name.endswith("_ids") for name in each.needs) for each in known)
    return "by ids" if ids else "without a judge"


# -- the table -----------------------------------------------------------------------------------------


def groups(found: RunComparison, other: int = 1) -> list[RowGroup]:
    """Return the rows of a run by what they rest on: human labels, ids, the judge alone, not primary."""
    rows = found.rows_of(other)
    primary = [row for row in rows if row.verdict is not None]
    by = {basis: [row for row in primary if row.basis is basis] for basis in Basis}
    counts = sorted({row.labelled for row in by[Basis.LABELS]})
    labelled = " to ".join(f"{amount:,}" for amount in dict.fromkeys((*counts[:1], *counts[-1:])))
    judged = by[Basis.JUDGE]
    headed = [
        (f"Corrected by {labelled} labelled questions", by[Basis.LABELS]),
        (_without_judge(by[Basis.NO_JUDGE]).capitalize(), by[Basis.NO_JUDGE]),
        (BY_JUDGE.capitalize(), [row for row in judged if row.undecided]),
        (BY_JUDGE.capitalize(), [row for row in judged if not row.undecided]),
        ("Not primary: no conclusion", [row for row in rows if row.verdict is None]),
    ]
    return [_group(heading, own) for heading, own in headed if own]


def _group(heading: str, rows: Sequence[Row]) -> RowGroup:
    said = tuple(_said(row) for row in rows)
    verdicts = {(row.verdict, row.reason) for row in rows}
    verdict, reason = verdicts.pop()
    if rows[0].undecided:
        reasons = {row.reason for row in rows}
        why = f", because {reason}" if len(reasons) == 1 else ""
        return RowGroup(f"{heading}: {Verdict.CANNOT_TELL}{why}", tuple(rows), said, colour=False)
    if verdicts or verdict is None:
        return RowGroup(heading, tuple(rows), said, colour=verdict is not None)
    number_of = f" ({count(len(rows), 'metric')})" if len(rows) > 1 else ""
    why = f", because {reason}" if reason else ""
    return RowGroup(f"{heading}: {verdict}{why}{number_of}", tuple(rows), ("",) * len(rows), colour=True)


def _said(row: Row) -> str:
    """Return the verdict, or the direction of a row that is not primary; empty if the judge alone may not decide."""
    if row.undecided or (row.verdict is None and row.unchecked):
        return ""
    if row.verdict is None:
        return direction(row)
    if row.verdict is Verdict.NOT_SHOWN:
        return "not shown"
    return f"{row.verdict}: {row.reason}" if row.verdict is Verdict.CANNOT_TELL else row.verdict.value


def with_pairs(found: RunComparison, row: Row, text: str) -> str:
    """Return a text with the number of pairs, if it is less than the number of common questions."""
    pairs = row.comparison.counts.pairs
    if pairs == found.common:
        return text
    fewer = f"{pairs:,} of {found.common:,} pairs"
    return f"{text} ({fewer})" if text else fewer


def direction(row: Row) -> str:
    """Return "higher" or "lower" if the interval of the difference excludes 0, otherwise an empty text."""
    ends = row.interval
    return "" if ends is None or ends[0] <= 0 <= ends[1] else "higher" if ends[0] > 0 else "lower"


def verdict_text(row: Row) -> str:
    """Return the verdict in a few words, "by the judge alone" included."""
    if row.verdict is None:
        return NOT_PRIMARY
    alone = f", {BY_JUDGE}" if row.basis is Basis.JUDGE and row.verdict in DECIDED else ""
    return f"{row.verdict}{alone}"


def why(found: RunComparison, row: Row) -> str:
    """Return the explanation of a verdict; may be empty."""
    each, weak = row.comparison, f"{WEAK}, so the difference may be the judge's error" if row.weak else ""
    parts = [row.reason]
    if row.verdict is Verdict.NOT_SHOWN:
        parts += [_corrected_away(found, row), to_show(row).rstrip(".").replace("To show", "to show", 1)]
    if row.verdict in DECIDED and each.counts.left_out:
        one_sided = f"{count(each.counts.left_out, 'sample')} scored in one run only"
        parts.append(f"holds even if the {one_sided} had the least favourable scores")
    return "; ".join(filter(None, (*parts, _number_of_contexts(row), weak)))


def _number_of_contexts(row: Row) -> str:
    """Return that the conclusion does not hold over the same number of contexts in both runs; empty if it does."""
    # Labels correct the difference, but not that over the same number of contexts.
    each = None if row.basis is Basis.LABELS else row.same_contexts
    if each is None or each.difference is None or row.verdict not in DECIDED or row.difference is None:
        return ""
    ends = each.interval.ends
    if ends is not None and (ends[0] > 0 if row.difference > 0 else ends[1] < 0):
        return ""
    return f"not shown with the same number of contexts per sample, where the difference is {difference_of_pairs(each)}"


def _corrected_away(found: RunComparison, row: Row) -> str:
    """Return why no difference is shown although the interval excludes 0; empty otherwise."""
    if not direction(row):
        return ""
    tested = sum(each.verdict is not None for each in found.rows)
    text = f"its interval excludes 0, but {tested:,} metrics were tested (Holm)"
    return text if len(found.primary) == 1 else f"{text}; choose those you decide by with --primary"


def title(found: RunComparison) -> str:
    """Return the first cell of the table: how many questions are compared."""
    return f"{count(found.common, 'question')} in {'both' if len(found.sides) == 2 else 'all'} runs"


def pair_title(found: RunComparison, other: int) -> str:
    """Return the two runs: the base and another."""
    return f"{found.names[0]} to {found.names[other]}"


def difference(row: Row) -> str:
    """Return the difference with its interval, such as `+0.064 (+0.018 to +0.110)`."""
    return f"{signed(row.difference)} ({interval(row.comparison)})"


def interval(comparison: Comparison) -> str:
    """Return the interval of the difference."""
    ends = comparison.interval.ends
    return "no interval" if ends is None else f"{signed(ends[0])} to {signed(ends[1])}"


def cells(row: Row) -> tuple[str, ...]:
    """Return the row of a table: metric, mean of the base and of the run, difference, interval."""
    return (marked(row), number(row.base_mean), number(row.run_mean), signed(row.difference), interval(row.comparison))


def difference_of_pairs(each: Comparison) -> str:
    """Return the difference with its interval, which equal pairs do not have."""
    equal = each.counts.ties == each.counts.pairs
    return f"{signed(each.difference)}{', all pairs equal' if equal else f' ({interval(each)})'}"


def signed(value: float | None) -> str:
    """Return a difference with its sign and three decimals."""
    return NONE if value is None else f"{value:+.3f}"


def chance(p: float | None) -> str:
    """Return a p-value, such as `0.007`; values below 0.001 as `<0.001`."""
    return NONE if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def marked(row: Row) -> str:
    """Return the metric, with a note if lower is better, and the marker if it is weak."""
    shown = row.metric if row.higher_is_better else f"{row.metric} (lower is better)"
    return f"{shown}{MARK}" if row.weak else shown


def beware(found: RunComparison) -> list[str]:
    """Return the warnings that come before the numbers, a sentence each."""
    stopped = [
        f"{side.name} was stopped before its last sample; only its samples so far are compared."
        for side in found.sides
        if not side.complete
    ]
    imported = [] if any(side.run.manifest.origin is None for side in found.sides) else [f"Intervals {over(found)}."]
    return [*stopped, *(f"Not comparable: {phrase}." for phrase in found.differing), *imported, *found.notes]


def basis(found: RunComparison, shown: Callable[[str], str] = str) -> str:
    """Return the note below a table: how differences are computed, and which errors intervals cover.

    `shown`: how names of runs, fields and metrics are written.
    """
    other = shown(found.names[1]) if len(found.sides) == 2 else "The other run"
    units = "" if found.cluster is None else f" Samples with the same {shown(found.cluster)} form one cluster."
    text = f"Differences are {other} minus {shown(found.names[0])}. Intervals ({LEVEL_TEXT}) {over(found)}.{units}"
    return " ".join(filter(None, (text, weak_legend(map(shown, sorted(found.weak))))))


def over(found: RunComparison) -> str:
    """Return which errors the intervals cover."""
    bases = {row.basis for row in found.rows}
    if Basis.LABELS in bases:
        return "cover sampling of questions and the judge's error" + (" if corrected" if len(bases) > 1 else "")
    return OWN_ERROR if any(side.run.manifest.origin is None for side in found.sides) else covers_imported()


# -- statistics (--full) -------------------------------------------------------------------------------

LEGEND: Final = (
    "p: probability of a difference at least this large if there is none; corrected: p corrected for several tests "
    "(Holm). higher, equal, lower: number of samples on which the run scores higher, equal or lower than the base. "
    "diff/sd: the difference divided by the standard deviation of the differences per sample. P: probability that the "
    "run scores higher on a sample (ties count half). finds: smallest true difference that 80 % of such comparisons "
    "show, before the correction."
)
MEASURES = ("p", "corrected", "higher", "equal", "lower", "diff/sd", "P", "finds")
"""The columns that `LEGEND` explains, in the order of `measures`."""


def measures(row: Row) -> tuple[str, ...]:
    """Return the statistics of a comparison, one for each of `MEASURES`."""
    found = row.comparison
    counts = (f"{amount:,}" for amount in (found.counts.wins, found.counts.ties, found.counts.losses))
    return (
        chance(found.p),
        chance(found.adjusted),
        *(counts if row.basis is not Basis.LABELS else (NONE, NONE, NONE)),  # the judge counted
        NONE if found.standardised is None else f"{found.standardised:+.2f}",
        NONE if found.superiority is None else f"{found.superiority:.2f}",
        number(found.detectable),
    )


def moved_by(found: RunComparison) -> str:
    """Return the metric that ranks the samples that changed, with the marker if it is weak."""
    return WeakMarks(found.weak).name(found.moved_by or "")


# -- how much would decide -----------------------------------------------------------------------------

ALL_LABELLED: Final = ", all labelled"
"""Ends the text if labels of all questions so far do not suffice."""


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
    if labelled >= questions or (needed := labels_needed(effect, spread, two_sided=True)) is None:
        error = corrected if labelled >= questions else spread.error(questions)
        detectable = error * (normal_quantile((1 + LEVEL) / 2) + normal_quantile(POWER))
        more = more_questions(effect, detectable, questions)
        return f"{more}{ALL_LABELLED}" if more else ""
    return "" if needed <= labelled else f"About {about(needed)} labelled questions"
