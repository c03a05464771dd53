"""The notes of a comparison: what was not compared and why, what human labels correct, caveats on intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.commands.compare.result import MAX_CUT_PAIRS
from merilo.commands.compare.wording import difference_of_pairs, pair_title, signed
from merilo.rendering.wording import HUMAN_LABELS, REMARKS, Section, count, filled_sections, number
from merilo.results.basis import BY_JUDGE, Basis
from merilo.results.records import first_of
from merilo.stats.compare import Policy
from merilo.stats.correction import DECIDING_LABELLED

if TYPE_CHECKING:
    from merilo.commands.compare.result import Row, RunComparison

NEEDED: Final = f"{DECIDING_LABELLED} are needed to correct"
CONTEXTS = "Different numbers of contexts"
_READ_BOTH = (
    "fewer contexts tend to raise relevance and precision, and to lower recall and sufficiency; compare both kinds"
)


def absences(found: RunComparison) -> list[tuple[str, str]]:
    """Return, by run, the samples that are not compared because another run lacks them."""
    lacked = "that another run lacks"
    return [
        (side.name, f"{count(many, 'sample')} {lacked}: {first_of(side.absent, len(side.absent), many)}")
        for side in found.sides
        if (many := side.absences)
    ]


def comparison_notes(found: RunComparison) -> list[Section]:
    """Return the notes: caveats on intervals, and what was not compared and why."""
    several = len(found.sides) > 2

    def named(row: Row) -> str:
        return f"{row.metric}, {pair_title(found, row.other)}" if several else row.metric

    groups = (
        (CONTEXTS, [*_context_numbers(found), *((named(row), _same_contexts(row)) for row in found.rows)]),
        (HUMAN_LABELS, [(named(row), label_text(row)) for row in found.rows]),
        (REMARKS, [(named(row), row.comparison.interval.remark) for row in found.rows]),
        ("Scored in one run only", [(named(row), one_sided_text(found, row)) for row in found.rows if row.one_sided]),
        ("In one run only", absences(found)),
        ("Not compared", list(found.left_out.items())),
    )
    return filled_sections(groups)


def _context_numbers(found: RunComparison) -> list[tuple[str, str]]:
    means = [
        ("mean per sample", f"{each.first:.2f} in {found.names[0]}, {each.second:.2f} in {found.names[each.other]}")
        for each in found.contexts
    ]
    return [*means, ("how to read", _READ_BOTH)] if means else []


def _same_contexts(row: Row) -> str:
    """Return the means and the difference over the same number of contexts; empty if there is no such comparison."""
    each = row.same_contexts
    if each is None or each.difference is None:
        return ""
    alone = f", {BY_JUDGE}" if row.basis is Basis.LABELS else ""
    sampled = "a random sample of " if row.comparison.counts.pairs > MAX_CUT_PAIRS else ""
    return (
        f"{number(each.second)} and {number(each.first)}, difference {difference_of_pairs(each)}, with the "
        f"same number of contexts per sample ({sampled}{count(each.counts.pairs, 'pair')}{alone})"
    )


def label_text(row: Row) -> str:
    """Return the number of labelled pairs and the numbers by the judge alone; empty without labels."""
    correction = row.comparison.correction
    if correction is None:
        return ""
    labelled = count(correction.labelled, "labelled pair")
    if row.comparison.by_judge is None:
        human = "" if correction.human is None else f", whose mean difference is {signed(correction.human)}"
        return f"{labelled}{human}; {NEEDED}, so the numbers are {BY_JUDGE}"
    judged = correction.judged
    ends = judged.interval.ends
    between = "" if ends is None else f", {signed(ends[0])} to {signed(ends[1])}"
    second, first = row.comparison.by_judge  # the run and the base
    return (
        f"corrected by {labelled}; {BY_JUDGE}: {number(first)} and {number(second)}, difference "
        f"{signed(judged.difference)}{between}"
    )


def one_sided_text(found: RunComparison, row: Row) -> str:
    """Return the samples scored in one run only, their possible effect on the difference, and the first ids."""
    counts, ends = row.comparison.counts, (row.comparison.least, row.comparison.most)
    names = found.names[row.other], found.names[0]
    missing = [
        (counts.first_undefined, "undefined", names[0], names[1]),
        (counts.first_failed, "failed", names[0], names[1]),
        (counts.second_undefined, "undefined", names[1], names[0]),
        (counts.second_failed, "failed", names[1], names[0]),
    ]
    text = "; ".join(f"{amount:,} {what} in {run}, scored in {other}" for amount, what, run, other in missing if amount)
    if found.undefined is Policy.WORST:
        text += "; undefined counts as worst"
    if ends[0] is not None and ends[1] is not None:
        between = f"{signed(ends[0].difference)} to {signed(ends[1].difference)}"
        text += f"; if they had the lowest or the highest scores, the difference would be {between}"
    return f"{text}. Examples: {', '.join(row.one_sided)}"
