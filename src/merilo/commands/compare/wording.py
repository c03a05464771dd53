"""The wording of a comparison, the same on every page; readers need no statistics to follow it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.rendering.overview import judge_name
from merilo.rendering.weak import MARK, WEAK, WeakMarks, weak_legend
from merilo.rendering.wording import (
    NONE,
    OWN_ERROR,
    count,
    covers_imported,
    number,
    percent,
)
from merilo.results.basis import BY_JUDGE, Basis
from merilo.stats.compare import Conclusion
from merilo.stats.paired import FEWEST_DIFFERENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.commands.compare.result import Row, RunComparison
    from merilo.stats.compare import Comparison, Counts

NO_READING = "not primary"
_CANNOT_TELL = "cannot tell: "


def title(found: RunComparison) -> str:
    """Return the title: the runs, the number of common samples, and the judges."""
    first, *others = found.names
    judges = list(dict.fromkeys(judge_name(side.run) for side in found.sides))
    by = "" if judges == [NONE] else f", judged by {' and '.join(judges)}"
    if found.by_judge_alone:
        by = f", {BY_JUDGE}" if judges == [NONE] else f", {BY_JUDGE} ({' and '.join(judges)})"
    return f"{first} vs. {' and '.join(others)}: {count(found.common, 'sample')} in common{by}"


def pair_title(found: RunComparison, other: int) -> str:
    """Return the title of a table: its two runs."""
    return f"{found.names[0]} vs. {found.names[other]}"


def level_text(found: RunComparison) -> str:
    """Return the confidence level, such as `95 %`."""
    return percent(found.level)


def difference(row: Row) -> str:
    """Return the difference with its interval, such as `+0.064, +0.018 to +0.110`."""
    return _difference(row.comparison)


def _difference(comparison: Comparison) -> str:
    return f"{signed(comparison.difference)}, {interval(comparison)}"


def interval(comparison: Comparison) -> str:
    """Return the interval of the difference."""
    ends = comparison.interval.ends
    return "no interval" if ends is None else f"{signed(ends[0])} to {signed(ends[1])}"


def cells(found: RunComparison, row: Row) -> tuple[str, ...]:
    """Return the row of a table: metric, both means, difference, interval, number of pairs, conclusion."""
    each = row.comparison
    return (
        marked(row),
        number(each.first),
        number(each.second),
        signed(each.difference),
        interval(each),
        f"{each.counts.pairs:,}",
        reading(found, row),
    )


def difference_of_pairs(each: Comparison) -> str:
    """Return the difference with its interval, which equal pairs do not have."""
    equal = each.counts.ties == each.counts.pairs
    return f"{signed(each.difference)}, all pairs equal" if equal else _difference(each)


def signed(value: float | None) -> str:
    """Return a difference with its sign and three decimals."""
    return NONE if value is None else f"{value:+.3f}"


def chance(p: float | None) -> str:
    """Return a p-value, such as `0.007`; values below 0.001 as `<0.001`."""
    return NONE if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def reading(found: RunComparison, row: Row) -> str:
    """Return the conclusion on a metric, in a few words."""
    if row.ahead is not None and not found.differing:
        return f"{found.names[row.ahead]} is better"
    match row.comparison.reading:
        case (
            Conclusion.FIRST_HIGHER | Conclusion.SECOND_HIGHER as higher
        ):  # with different judges, higher is not better
            return f"{found.names[0 if higher is Conclusion.FIRST_HIGHER else row.other]} scores higher"
        case Conclusion.NOT_SHOWN:
            return "no difference shown"
        case None:
            return NO_READING
        case _:
            return "cannot tell"


def better(found: RunComparison, row: Row) -> str | None:
    """Return the better run by the conclusion; None if there is none, or if judges, rubrics or versions differ."""
    return None if row.ahead is None or found.differing else found.names[row.ahead]


def marked(row: Row) -> str:
    """Return the metric, with notes if it is corrected and if lower is better, and the marker if it is weak."""
    notes = ["corrected"] * (row.basis is Basis.LABELS) + ["lower is better"] * (not row.higher_is_better)
    shown = f"{row.metric} ({', '.join(notes)})" if notes else row.metric
    return f"{shown}{MARK}" if row.weak else shown


def why(found: RunComparison, row: Row) -> str:
    """Return the explanation of a conclusion, or why there is none and what to do; may be empty."""
    weak = f"{WEAK}, so the difference may be the judge's error" if row.weak else ""
    return "; ".join(filter(None, (_why(found, row), _number_of_contexts(row), weak)))


def _why(found: RunComparison, row: Row) -> str:
    each = row.comparison
    if each.reading is Conclusion.CANNOT_TELL:
        return _no_conclusion(row)
    if each.reading is Conclusion.NOT_SHOWN:
        return "; ".join(filter(None, (_corrected_away(found, row), _detectable(found, row))))
    if row.ahead is not None and each.counts.left_out:
        return f"holds even if the {one_sided(row)} had the least favourable scores"
    return ""


def _number_of_contexts(row: Row) -> str:
    """Return that the conclusion does not hold over the same number of contexts in both runs; empty if it does."""
    each, reading = row.same_contexts, row.comparison.reading
    if each is None or each.difference is None or reading not in {Conclusion.FIRST_HIGHER, Conclusion.SECOND_HIGHER}:
        return ""
    ends = each.interval.ends
    if ends is not None and (ends[0] > 0 if reading is Conclusion.FIRST_HIGHER else ends[1] < 0):
        return ""
    return f"not shown with the same number of contexts per sample, where the difference is {difference_of_pairs(each)}"


def _detectable(found: RunComparison, row: Row) -> str:
    """Return a text on the smallest detectable difference, which is that of a single test without correction."""
    if row.comparison.detectable is None:
        return ""
    text = f"80 % of such comparisons would show a true difference of {number(row.comparison.detectable)}"
    if more := _more_questions(row, row.comparison.detectable):
        text += f", and one of {row.worth:g} takes {more[0].lower()}{more[1:]}"
    if _read(found) == 1:
        return text
    return f"{text}, without the correction for {_many(found)}; with it, the difference must be larger"


def _more_questions(row: Row, detectable: float) -> str:
    """Return the number of questions or labels that show a small difference; empty if those so far do."""
    from merilo.commands.compare.needed import more_labels, more_questions  # rarely needed

    pairs, correction = row.comparison.counts.pairs, row.comparison.correction
    if row.basis is not Basis.LABELS or correction is None:
        return more_questions(row.worth, detectable, pairs)
    errors = correction.corrected.error, correction.judged.error
    return more_labels(row.worth, errors, correction.labelled, pairs, two_sided=True)


def _corrected_away(found: RunComparison, row: Row) -> str:
    """Return why no difference is shown although the interval excludes 0; empty otherwise."""
    each, ends = row.comparison, row.comparison.interval.ends
    alone = each.p is not None and each.p <= 1 - found.level + 1e-12
    if not alone or ends is None or ends[0] <= 0 <= ends[1]:
        return ""
    text = f"its interval excludes 0, but the difference is not significant after correction for {_many(found)}"
    if len(found.primary) == 1:
        return text
    return f"{text}. Before a comparison, choose the metrics you decide by with --primary"


def _read(found: RunComparison) -> int:
    """Return the number of comparisons with a conclusion."""
    return sum(row.comparison.reading is not None for row in found.rows)


def _many(found: RunComparison) -> str:
    return f"{_read(found):,} {'metrics' if len(found.sides) == 2 else 'comparisons'}"


@dataclass(frozen=True, slots=True)
class ConclusionText:
    """A conclusion on one or several metrics of two runs."""

    reading: str
    against: str
    """The two runs, if more than two are compared; empty otherwise."""
    metrics: tuple[str, ...]
    why: str


def readings(found: RunComparison) -> list[ConclusionText]:
    """Return the conclusions; metrics with the same one are grouped, metrics without one come last."""
    grouped: dict[tuple[int, str, str], list[str]] = {}
    for row in found.rows:
        if row.comparison.reading is not None:
            grouped.setdefault((row.other, reading(found, row), why(found, row)), []).append(marked(row))
    several = len(found.sides) > 2
    conclusions = [
        ConclusionText(words, pair_title(found, other) if several else "", tuple(metrics), reason)
        for (other, words, reason), metrics in grouped.items()
    ]
    without = [marked(row) for row in found.rows if row.comparison.reading is None and row.other == 1]
    return [*conclusions, *([ConclusionText(NO_READING, "", tuple(without), "")] if without else [])]


def beware(found: RunComparison) -> list[str]:
    """Return the warnings that come before the numbers, a sentence each."""
    stopped = [
        f"{side.name} was stopped before its last sample; only its samples so far are compared."
        for side in found.sides
        if not side.complete
    ]
    return [*stopped, *(f"Not comparable: {phrase}." for phrase in found.differing), *found.notes]


def one_sided(row: Row) -> str:
    """Return a text such as `3 samples scored in one run only`."""
    return f"{count(row.comparison.counts.left_out, 'sample')} scored in one run only"


def basis(found: RunComparison, shown: Callable[[str], str] = str) -> str:
    """Return the note below a table: how differences are computed, and which errors intervals cover.

    `shown`: how names of runs, fields and metrics are written.
    """
    other = shown(found.names[1]) if len(found.sides) == 2 else "the other run"
    units = "" if found.cluster is None else f" Samples with the same {shown(found.cluster)} form one cluster."
    text = (
        f"Differences are {shown(found.names[0])} minus {other}. Intervals ({level_text(found)}) {over(found)}.{units}"
    )
    return " ".join(filter(None, (text, weak_legend(map(shown, sorted(found.weak))))))


def over(found: RunComparison) -> str:
    """Return which errors the intervals cover."""
    bases = {row.basis for row in found.rows}
    if Basis.LABELS in bases:
        return "cover sampling of questions and the judge's error" + (" if corrected" if len(bases) > 1 else "")
    return OWN_ERROR if any(side.run.manifest.origin is None for side in found.sides) else covers_imported()


def family(found: RunComparison) -> str:
    """Return the heading of the conclusions, with the number of tests that the correction covers."""
    read = _read(found)
    if read == 1:
        return "Conclusions"
    which = "primary metrics" if found.chosen else "metrics"
    return f"Conclusions, corrected for {read:,} {which if len(found.sides) == 2 else 'comparisons'}"


_LEGEND = (
    "p: probability of a difference at least this large if there is none; corrected: p corrected for several tests "
    "(Holm). higher, equal, lower: number of samples on which the first run scores higher, equal or lower. diff/sd: "
    "the difference divided by the standard deviation of the differences per sample. P: probability that the first run "
    "scores higher on a sample (ties count half). finds: smallest true difference that 80 % of such comparisons show."
)
MEASURES = ("p", "corrected", "higher", "equal", "lower", "diff/sd", "P", "finds")
"""The columns that `legend` explains, in the order of `measures`."""


def legend(found: RunComparison) -> str:
    """Return the explanation of the columns; with several tests also the effect of the correction on `finds`."""
    if _read(found) == 1:
        return _LEGEND
    return f"{_LEGEND} It is that of a single test; with the correction for {_many(found)} it is larger."


def measures(row: Row) -> tuple[str, ...]:
    """Return the statistics of a comparison, one for each of `MEASURES`."""
    found = row.comparison
    return (
        chance(found.p),
        chance(found.adjusted),
        *(f"{amount:,}" for amount in (found.counts.wins, found.counts.ties, found.counts.losses)),
        NONE if found.standardised is None else f"{found.standardised:+.2f}",
        NONE if found.superiority is None else f"{found.superiority:.2f}",
        number(found.detectable),
    )


def moved_by(found: RunComparison) -> str:
    """Return the metric that ranks the samples that changed, with the marker if it is weak."""
    return WeakMarks(found.weak).name(found.moved_by or "")


def _no_conclusion(row: Row) -> str:
    """Return why there is no conclusion, and what would help."""
    found = row.comparison
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
        return f"the scores of all {count(counts.pairs, 'pair')} are equal"
    if found.p is None and found.clusters is None and different < FEWEST_DIFFERENT:
        return (
            f"only {different:,} of {count(counts.pairs, 'sample')} differ, and a test needs {FEWEST_DIFFERENT}; "
            "compare over more questions"
        )
    reason = found.reason.removeprefix(_CANNOT_TELL)
    if counts.left_out and found.p is not None:
        return f"{reason}: they could change the result. {_advice(counts)}"
    return f"{reason}; compare over more questions" if found.p is None else reason


def _advice(counts: Counts) -> str:
    """Return what to do about samples with a score in one run only, by whether they failed or are undefined."""
    failed = counts.first_failed + counts.second_failed
    if not failed:
        return "Inspect them, or use --undefined worst"
    if failed == counts.left_out:
        return "Inspect them, or retry failed ones"
    return "Inspect them, retry failed ones, or use --undefined worst"
