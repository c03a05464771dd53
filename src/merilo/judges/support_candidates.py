"""A statement and the units of contexts that it may be about, with the words and slots that both have."""

from __future__ import annotations

import math
from difflib import SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.judges.lexical_text import prefix, weight, words
from merilo.judges.lexical_units import CELLS, units_of
from merilo.judges.slot_words import FUNCTION_WORDS
from merilo.judges.slots import equal_dates, equal_numbers, slots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judges.lexical_match import Lexicon
    from merilo.judges.slot_types import Date, Number, Slots

_MAX_TOKENS: Final = 150
"""Tokens of a statement or unit from which words are not aligned in order."""
_MAX_CONTINUED: Final = 0.4
"""Fraction of a statement's words from which an adjacent sentence makes its own statement."""
_COMPLETE: Final = 0.95
_IN_ORDER: Final = 0.8
_MAX_LENGTH: Final = 3
"""Tokens of a unit per token of a statement from which it says more than the words in common show."""
_MAX_BARS: Final = 3
_LIMITING: Final = frozenset("only either both or some most any nur oder einige только или некоторые".split())
"""Words that change what the others say, and that a complete sentence must contain."""
_CONDITIONS: Final = frozenset("if unless wenn falls если".split())
_YEARS: Final = range(1000, 2101)
_GERMAN: Final = frozenset("der die das und ist nicht ein eine im wird wurde mit von auf den dem".split())


class Position(NamedTuple):
    """A sentence of a context."""

    context: int
    sentence: int


class Statement:
    """A statement with the weights of its content words."""

    def __init__(self, text: str, lexicon: Lexicon) -> None:
        self.text = text
        self.slots = stated = slots(text)
        self.table = lexicon.table
        poles = {place for place, _, _ in stated.poles}
        self.content = [
            place
            for place, token in enumerate(stated.tokens)
            if token.low not in FUNCTION_WORDS
            and token.text[0].isalpha()
            and place not in stated.used
            and place not in stated.negations
            and place not in poles
        ]
        self.weights = {place: max(0.05, weight(stated.tokens[place].stem, lexicon.table)) for place in self.content}
        self.stems = frozenset(token.stem for token in stated.tokens)
        self.prefixes = frozenset(map(prefix, self.stems))
        self.is_german = not _GERMAN.isdisjoint(token.low for token in stated.tokens) and not {"the", "of", "is"} & {
            token.low for token in stated.tokens
        }

    def has(self, stem: str) -> bool:
        """Return True if it has a stem, or a longer stem with the same beginning."""
        return stem in self.stems or (len(stem) > 3 and prefix(stem) in self.prefixes)

    def is_unknown(self, stem: str) -> bool:
        """Return True if the table of word weights does not have a stem."""
        return stem.isalpha() and stem not in self.table


class Candidate:
    """A unit that a statement may be about."""

    def __init__(
        self, statement: Statement, contexts: Sequence[Sequence[str]], position: Position, unit: int, share: float
    ) -> None:
        self.statement, self.position, self.share = statement, position, share
        context = contexts[position.context]
        pieces = units_of(context[position.sentence])
        self.text = pieces[min(unit, len(pieces) - 1)]
        self.slots = slots(self.text)
        self.is_row = CELLS in self.text or len(pieces) > 1
        self.prefixes = frozenset(prefix(each) for each in self.slots.stems if len(each) > 3)
        self.sentences = context
        near = [context[at] for at in (position.sentence - 1, position.sentence + 1) if 0 <= at < len(context)]
        self._near = [] if self.is_row else [each for each in near if len(each) <= 600]
        self._topic = _title(context[0]) if position.sentence else pieces[0] if unit else ""

    def has(self, stem: str) -> bool:
        """Return True if it has a stem, or a longer stem with the same beginning."""
        return stem in self.slots.stems or (len(stem) > 3 and prefix(stem) in self.prefixes)

    @cached_property
    def topic(self) -> frozenset[str]:
        """Beginnings of the words of the first sentence, usually a title, and of the adjacent sentences."""
        texts = [self._topic[:300], *self._near]
        return frozenset(prefix(stem) for text in texts for stem in words(text).distinct)

    @cached_property
    def other(self) -> float:
        """The fraction of the statement's content words, by weight, that it contains; its topic counts half."""
        total = math.fsum(self.statement.weights.values())
        if not total:
            return self.share
        found, part = 0.0, 1.0 if self.is_row else 0.5
        for place, own in self.statement.weights.items():
            stem = self.statement.slots.tokens[place].stem
            found += own if self.has(stem) else part * own if prefix(stem) in self.topic else 0.0
        return found / total

    @cached_property
    def exact(self) -> float:
        """The same without words that only begin equally, except in languages with many endings."""
        total = math.fsum(self.statement.weights.values())
        tokens = self.statement.slots.tokens
        found = 0.0
        for place, own in self.statement.weights.items():
            stem = tokens[place].stem
            inflected = self.statement.is_german or not stem.isascii()
            if stem in self.slots.stems or (inflected and self.has(stem)) or prefix(stem) in self.topic:
                found += own
        return found / total if total else 0.0

    @property
    def is_flat(self) -> bool:
        """True for a table on one line, whose cells cannot be assigned to rows."""
        return self.text.count("|") > _MAX_BARS

    @cached_property
    def continued(self) -> list[Slots]:
        """Slots of the adjacent sentences that continue it: those that do not make the same statement themselves."""
        found = [slots(each) for each in self._near]
        places = self.statement.content
        tokens = self.statement.slots.tokens
        return [
            each
            for each in found
            if sum(tokens[place].stem in each.stems for place in places) < _MAX_CONTINUED * max(1, len(places))
        ]

    @cached_property
    def operations(self) -> Sequence[tuple[str, int, int, int, int]]:
        """The edits from the statement to the unit, as `SequenceMatcher.get_opcodes` returns them."""
        ours, theirs = self.statement.slots.tokens, self.slots.tokens
        if max(len(ours), len(theirs)) > _MAX_TOKENS:
            return []
        mine = {prefix(each.stem): each.stem for each in theirs}
        left = [each.stem if each.stem in self.slots.stems else mine.get(prefix(each.stem), each.stem) for each in ours]
        matcher = SequenceMatcher(None, left, [each.stem for each in theirs], autojunk=False)
        return matcher.get_opcodes()

    @cached_property
    def partner(self) -> dict[int, int]:
        """The token of the unit that each token of the statement is equal to, in order."""
        return {
            first + step: second + step
            for kind, first, end, second, _ in self.operations
            if kind == "equal"
            for step in range(end - first)
        }

    @cached_property
    def complete(self) -> bool:
        """True if it contains all content words and slots of the statement, in about its order."""
        mine, own = self.statement.slots, self.slots
        if not self.statement.content or self.exact < _COMPLETE or not self.operations or self.is_flat:
            return False
        if len(self.statement.content) + len(mine.numbers) + len(mine.dates) < 3:
            return False
        if not all(has_number(each, own) for each in mine.numbers):
            return False
        if not all(has_date(each, own) for each in mine.dates):
            return False
        if len(mine.negations) != len(own.negations):
            return False
        theirs = {(axis, pole) for _, axis, pole in own.poles}
        if not all((axis, pole) in theirs for _, axis, pole in mine.poles):
            return False
        lows = {each.low for each in own.tokens}
        if any((each.low in lows) != (each.low in _LIMITING) for each in mine.tokens if each.low in _LIMITING):
            return False
        if not _CONDITIONS.isdisjoint(lows) and _CONDITIONS.isdisjoint(each.low for each in mine.tokens):
            return False
        if self.is_row:
            return True
        return self.in_order >= _IN_ORDER and len(own.tokens) <= _MAX_LENGTH * len(mine.tokens)

    @cached_property
    def in_order(self) -> float:
        """The fraction of the statement's content words that it contains in the same order."""
        content = self.statement.content
        return sum(place in self.partner for place in content) / len(content) if content else 0.0


def _title(sentence: str) -> str:
    return sentence.lstrip().partition("\n")[0]


def has_number(number: Number, source: Slots) -> bool:
    """Return True if a text has a number of the statement, in any form."""
    if any(equal_numbers(number, each) for each in source.numbers):
        return True
    if number.dimension in {"", "ordinal"} and any(each in _YEARS for each in number.raw):
        return any(has_year(int(each), source) for each in number.raw if each in _YEARS)
    return number.weak


def has_date(date: Date, source: Slots) -> bool:
    """Return True if a text has a date of the statement, in any form."""
    if any(equal_dates(date, each) for each in source.dates):
        return True
    return date.month is None and has_year(date.year, source)


def has_year(year: int | None, source: Slots) -> bool:
    """Return True if a text has a year, as a date or as a number."""
    if year is None:
        return False
    return any(each.year == year for each in source.dates) or any(year in each.raw for each in source.numbers)
