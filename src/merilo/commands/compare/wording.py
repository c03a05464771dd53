"""A comparison in words that need no statistics, the same on every page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.rendering.overview import judge_name
from merilo.rendering.wording import NONE, OWN_ERROR, REMARKS, count, foreign_error, number, percent
from merilo.stats.compare import Policy, Reading
from merilo.stats.paired import FEWEST_DIFFERENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.compare.result import Row, RunComparison
    from merilo.stats.compare import Comparison

NO_READING = "not primary"
_CANNOT_TELL = "cannot tell: "


def title(found: RunComparison) -> str:
    """Which runs, over how many samples, by whom they were judged."""
    first, *others = found.names
    judges = list(dict.fromkeys(judge_name(side.run) for side in found.sides))
    by = "" if judges == [NONE] else f", judged by {' and '.join(judges)}"
    return f"{first} against {' and '.join(others)}: {count(found.common, 'sample')} in common{by}"


def pair_title(found: RunComparison, other: int) -> str:
    """The two runs of a table."""
    return f"{found.names[0]} against {found.names[other]}"


def level_text(found: RunComparison) -> str:
    """The confidence level, such as `95 %`."""
    return percent(found.level)


def difference(row: Row) -> str:
    """The difference with its interval, such as `+0.064, +0.018 to +0.110`."""
    return f"{signed(row.comparison.difference)}, {interval(row.comparison)}"


def interval(comparison: Comparison) -> str:
    """The ends of the interval of the difference."""
    ends = comparison.interval.ends
    return "not told" if ends is None else f"{signed(ends[0])} to {signed(ends[1])}"


def signed(value: float | None) -> str:
    """A difference with its sign and three decimals."""
    return NONE if value is None else f"{value:+.3f}"


def chance(p: float | None) -> str:
    """A p-value, such as `0.007`; small ones as `<0.001`."""
    return NONE if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def reading(found: RunComparison, row: Row) -> str:
    """What may be said of the metric, in a few words."""
    if row.ahead is not None and not found.differing:
        return f"{found.names[row.ahead]} is better"
    match row.comparison.reading:
        case Reading.FIRST_HIGHER | Reading.SECOND_HIGHER as higher:  # by unlike yardsticks nobody is better
            return f"{found.names[0 if higher is Reading.FIRST_HIGHER else row.other]} scores higher"
        case Reading.NOT_SHOWN:
            return "no difference is shown"
        case None:
            return NO_READING
        case _:
            return "cannot tell"


def better(found: RunComparison, row: Row) -> str | None:
    """The run that the reading says is better; None where it says nothing of the kind, or the yardsticks differ."""
    return None if row.ahead is None or found.differing else found.names[row.ahead]


def marked(row: Row) -> str:
    """The metric, with a mark where less is better."""
    return row.metric if row.higher_is_better else f"{row.metric} (less is better)"


def why(found: RunComparison, row: Row) -> str:
    """What goes with the reading: how sure it is, or why nothing can be told and what to do. May be empty."""
    each = row.comparison
    if each.reading is Reading.CANNOT_TELL:
        return _untold(row)
    if each.reading is Reading.NOT_SHOWN:
        return "; ".join(filter(None, (_corrected_away(found, row), _detectable(found, row))))
    if row.ahead is not None and each.counts.left_out:
        return f"also with the {one_sided(row)} put where they speak against it"
    return ""


def _detectable(found: RunComparison, row: Row) -> str:
    """The smallest difference that would have shown, which is that of the metric alone."""
    if row.comparison.detectable is None:
        return ""
    text = f"a true difference of {number(row.comparison.detectable)} would show in 80 % of such comparisons"
    if _read(found) == 1:
        return text
    return f"{text} of this metric alone; with the correction for {_many(found)} it has to be larger"


def _corrected_away(found: RunComparison, row: Row) -> str:
    """Why nothing is shown though the interval leaves out 0; else empty."""
    each, ends = row.comparison, row.comparison.interval.ends
    alone = each.p is not None and each.p <= 1 - found.level + 1e-12
    if not alone or ends is None or ends[0] <= 0 <= ends[1]:
        return ""
    text = f"its interval leaves out 0, but that is too little once {_many(found)} are looked at together"
    if len(found.primary) == 1:
        return text
    return f"{text}: name only the metrics you decide by, before you look, with --primary"


def _read(found: RunComparison) -> int:
    """How many comparisons have a reading."""
    return sum(row.comparison.reading is not None for row in found.rows)


def _many(found: RunComparison) -> str:
    return f"{_read(found):,} {'metrics' if len(found.sides) == 2 else 'comparisons'}"


@dataclass(frozen=True, slots=True)
class Said:
    """What may be said of some metrics of two runs."""

    reading: str
    against: str
    """Which runs, where there are more than two; else empty."""
    metrics: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Beside:
    """Things to know, each under a name."""

    heading: str
    entries: tuple[tuple[str, str], ...]


def readings(found: RunComparison) -> list[Said]:
    """What may be said, the same things of several metrics once; metrics without a reading last."""
    told: dict[tuple[int, str, str], list[str]] = {}
    for row in found.rows:
        if row.comparison.reading is not None:
            told.setdefault((row.other, reading(found, row), why(found, row)), []).append(marked(row))
    several = len(found.sides) > 2
    said = [
        Said(words, pair_title(found, other) if several else "", tuple(metrics), reason)
        for (other, words, reason), metrics in told.items()
    ]
    silent = [marked(row) for row in found.rows if row.comparison.reading is None and row.other == 1]
    return [*said, *([Said(NO_READING, "", tuple(silent), "")] if silent else [])]


def beware(found: RunComparison) -> list[str]:
    """What has to be known before the numbers are looked at, a sentence each."""
    stopped = [
        f"{side.name} was stopped before its last sample; only its samples so far are compared."
        for side in found.sides
        if not side.complete
    ]
    return [*stopped, *(f"Not the same yardstick: {phrase}." for phrase in found.differing), *found.notes]


def beside(found: RunComparison) -> list[Beside]:
    """What was not compared and why, and what is special about an interval."""
    several = len(found.sides) > 2

    def named(row: Row) -> str:
        return f"{row.metric}, {pair_title(found, row.other)}" if several else row.metric

    groups = (
        (REMARKS, [(named(row), row.comparison.interval.remark) for row in found.rows]),
        ("Scored in one run only", [(named(row), one_sided_text(found, row)) for row in found.rows if row.one_sided]),
        ("In one run only", absences(found)),
        ("Not compared", list(found.left_out.items())),
    )
    kept = [Beside(heading, tuple(entry for entry in entries if entry[1])) for heading, entries in groups]
    return [each for each in kept if each.entries]


def one_sided(row: Row) -> str:
    """Such as `3 samples scored in one run only`."""
    return f"{count(row.comparison.counts.left_out, 'sample')} scored in one run only"


def one_sided_text(found: RunComparison, row: Row) -> str:
    """Who is silent where the other has a score, how much it could move, and the first samples."""
    counts, ends = row.comparison.counts, (row.comparison.least, row.comparison.most)
    names = found.names[0], found.names[row.other]
    silent = [
        (counts.first_undefined, "undefined", names[0], names[1]),
        (counts.first_failed, "failed", names[0], names[1]),
        (counts.second_undefined, "undefined", names[1], names[0]),
        (counts.second_failed, "failed", names[1], names[0]),
    ]
    text = "; ".join(f"{amount:,} {what} in {run}, scored in {other}" for amount, what, run, other in silent if amount)
    if found.undefined is Policy.WORST:
        text += "; undefined counts as worst"
    if ends[0] is not None and ends[1] is not None:
        between = f"{signed(ends[0].difference)} to {signed(ends[1].difference)}"
        text += f"; with those left out at the ends of the range the difference is {between}"
    return f"{text}. Such as {', '.join(row.one_sided)}"


def absences(found: RunComparison) -> list[tuple[str, str]]:
    """By run, the samples that are not compared because another run lacks them."""
    return [
        (side.name, f"{count(side.absences, 'sample')} that another run lacks: {examples(side.absent, side.absences)}")
        for side in found.sides
        if side.absences
    ]


def examples(first: Sequence[str], amount: int) -> str:
    """The first of so many ids."""
    more = amount - len(first)
    return ", ".join(first) + (f" and {more:,} more" if more > 0 else "")


def basis(found: RunComparison) -> str:
    """What differences and intervals are, once under a table."""
    other = found.names[1] if len(found.sides) == 2 else "the other"
    units = "" if found.cluster is None else f" Samples with the same {found.cluster} count together."
    return f"Differences are {found.names[0]} less {other}. Intervals are at {level_text(found)}, {over(found)}.{units}"


def over(found: RunComparison) -> str:
    """What the intervals are over, and whose error is not in them."""
    return OWN_ERROR if any(side.run.manifest.origin is None for side in found.sides) else foreign_error()


def family(found: RunComparison) -> str:
    """Of what the readings hold, as a heading."""
    read = _read(found)
    if read == 1:
        return "What may be said"
    which = "primary metrics" if found.chosen else "metrics"
    return f"What may be said, of all {read:,} {which if len(found.sides) == 2 else 'comparisons'} together"


_LEGEND = (
    "p: how often chance alone would bring a difference this large if there were none; corrected: the same, for "
    "looking at so many metrics (Holm). higher, equal, lower: samples on which the first run's score is so. diff/sd: "
    "the difference in standard deviations of single differences. P: the chance that the first is higher on a sample, "
    "ties half. finds: the smallest true difference that would show in 80 % of such comparisons."
)
MEASURES = ("p", "corrected", "higher", "equal", "lower", "diff/sd", "P", "finds")
"""What `legend` explains, in the order of `measures`."""


def legend(found: RunComparison) -> str:
    """What the numbers behind the readings are; of several readings also what the correction does to `finds`."""
    if _read(found) == 1:
        return _LEGEND
    return f"{_LEGEND} It is that of one metric alone: with the correction for {_many(found)} it has to be larger."


def measures(row: Row) -> tuple[str, ...]:
    """The numbers behind a reading, one for each of `MEASURES`."""
    found = row.comparison
    return (
        chance(found.p),
        chance(found.adjusted),
        *(f"{amount:,}" for amount in (found.counts.wins, found.counts.ties, found.counts.losses)),
        NONE if found.standardised is None else f"{found.standardised:+.2f}",
        NONE if found.superiority is None else f"{found.superiority:.2f}",
        number(found.detectable),
    )


def moved_title(found: RunComparison) -> str:
    """How the samples below were chosen."""
    return (
        f"The {len(found.moved):,} of {count(found.movers, 'sample')} with another {found.moved_by} that lie farthest "
        "apart"
    )


def _untold(row: Row) -> str:
    """Why it cannot be told, and what would help."""
    found = row.comparison
    counts, unlike = found.counts, found.counts.wins + found.counts.losses
    if not counts.pairs:
        what = [
            (counts.first_undefined + counts.second_undefined, "undefined in one"),
            (counts.first_failed + counts.second_failed, "failed in one"),
            (counts.neither, "scored in none"),
        ]
        told = ", ".join(f"{amount:,} {words}" for amount, words in what if amount)
        return f"no sample has a score in both runs ({told or 'there are none'}); see why with merilo show"
    if found.p is None and not unlike:
        return f"the scores of all {count(counts.pairs, 'pair')} are equal, so there is nothing to tell apart"
    if found.p is None and found.clusters is None and unlike < FEWEST_DIFFERENT:
        return (
            f"only {unlike:,} of {count(counts.pairs, 'sample')} differ, and at least {FEWEST_DIFFERENT} must; compare "
            "over more questions"
        )
    reason = found.reason.removeprefix(_CANNOT_TELL)
    if counts.left_out and found.p is not None:
        return f"{reason}: they could decide. Look at them, ask failed ones again, or take --undefined worst"
    return f"{reason}; compare over more questions" if found.p is None else reason
