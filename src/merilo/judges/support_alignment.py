"""The sentences of contexts that a statement is closest to, and the slots in which it differs from them.

A statement differs only from a sentence that shares most of its other words. Each sentence that could be meant is
examined, so a fact in another sentence of a context does not count as a difference. Long statements and sentences are
aligned by their words only, so the work is proportional to the texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING, Final

from merilo.judges.slots import same_value
from merilo.judges.support_candidates import Candidate, Position, Statement
from merilo.judges.support_differences import differences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from merilo.judges.lexical_match import Lexicon, Matches
    from merilo.judges.slot_types import Difference

_CANDIDATES: Final = 6
_MIN_SHARE: Final = 0.12
"""Fraction of a statement, by weight, that a sentence contains at least to be examined."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """The sentence that a statement is closest to."""

    position: Position
    share: float
    """The fraction of the statement, by weight, that it contains."""
    differences: tuple[Difference, ...]
    """Empty if no sentence differs, or if another sentence that could be meant does not."""
    complete: bool
    """True if the sentence contains all words and slots of the statement."""
    rewritten: str | None = None
    """The statement with its numbers and dates as the sentence writes them; None if it writes them equally."""


def align(
    statement: str, contexts: Sequence[Sequence[str]], found: Sequence[Matches], lexicon: Lexicon
) -> list[Alignment]:
    """Return the closest sentence of each context with words of the statement, best first.

    `found`: the matches of the statement in each context.
    """
    reader = Statement(statement, lexicon)
    if not reader.slots.tokens:
        return []
    ranked = sorted(_ranked(found), key=lambda each: -each[0])
    candidates = [
        Candidate(reader, contexts, Position(context, sentence), unit, share)
        for share, context, sentence, unit in ranked[:_CANDIDATES]
        if share >= _MIN_SHARE
    ]
    differing = differences(candidates)
    complete = {each.position: each.complete for each in reversed(candidates) if not differing}
    likeliest = max(candidates, key=lambda each: (each.other, each.share), default=None)
    rewritten = None if differing or likeliest is None else _rewritten(statement, likeliest)
    best: dict[int, Alignment] = {}
    order = {each.position: -each.other for each in reversed(candidates)}
    for share, context, sentence, _ in sorted(ranked, key=lambda each: order.get(Position(each[1], each[2]), 0.0)):
        position = Position(context, sentence)
        if context not in best and share > 0:
            best[context] = Alignment(position, share, differing, complete.get(position, False), rewritten)
    return sorted(best.values(), key=lambda each: (not each.complete, -each.share))


def _ranked(found: Sequence[Matches]) -> Iterator[tuple[float, int, int, int]]:
    """Yield share, context, sentence and unit of the best units of each context."""
    for context, each in enumerate(found):
        memo: dict[int, float] = {}
        shares = [memo[mask] if mask in memo else memo.setdefault(mask, each.share(mask)) for mask in each.prefix_masks]
        for unit in nlargest(_CANDIDATES, range(len(shares)), key=shares.__getitem__):
            yield shares[unit], context, each.owners[unit], unit - each.owners.index(each.owners[unit])


def _rewritten(statement: str, candidate: Candidate) -> str | None:
    """Return a statement with each number or date that the unit has in another form in the form of the unit."""
    mine, own = candidate.statement.slots, candidate.slots
    edits: list[tuple[int, str, str]] = []
    for number in mine.numbers:
        if number.dimension and all(
            each.raw != number.raw for each in own.numbers if each.dimension == number.dimension
        ):
            edits += [
                (mine.tokens[number.place].start, number.text, each.text)
                for each in own.numbers
                if same_value(number, each)
            ][:1]
    for date in mine.dates:
        same = [each for each in own.dates if date[:4] == each[:4] and date.text.casefold() != each.text.casefold()]
        edits += [(mine.tokens[date.place].start, date.text, each.text) for each in same[:1]]
    text = statement
    for start, ours, theirs in sorted(edits, reverse=True):
        if text.startswith(ours, start):
            text = text[:start] + theirs + text[start + len(ours) :]
    return None if text == statement else text
