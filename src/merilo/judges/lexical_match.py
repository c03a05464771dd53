"""Matches of a question's or statement's words in the units (sentences) of a context."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from merilo.bounded_cache import BoundedCache
from merilo.cancellation import check_cancelled
from merilo.judges.lexical_text import Words, asks, prefix, weight, words
from merilo.judges.lexical_units import units_of
from merilo.judges.lexical_words import ASKS, ASKS_UNSPACED, NEEDS_HOW, OPENS_QUESTION

RULES_VERSION: Final = 6
"""Part of the judge's fingerprint: raised with any change to the reading of texts that can move a number."""

MIN_PREFIX: Final = 4
_COPY_OVERLAP: Final = 0.85
_COPY_OVERLAP_UNSPACED: Final = 0.95
_MIN_COPIED_STEMS: Final = 4
_CACHED_BYTES: Final = 16_000_000
_BYTES_PER_STEM: Final = 500
"""Approximate bytes per stem in a `Query`: its weight and its entries in a `Words`."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question or statement with the weight of each distinct stem, in text order."""

    words: Words
    terms: tuple[str, ...]
    weights: tuple[float, ...]
    total: float
    kinds: frozenset[str]
    asks: bool
    interrogatives: frozenset[str]
    heaviest_first: tuple[int, ...]
    """Positions of the terms, by falling weight."""
    number_mask: int
    name_mask: int


@dataclass(frozen=True, slots=True)
class Matches:
    """The terms of a query in each unit, as bit masks over `query.terms`."""

    query: Query
    units: tuple[Words, ...]
    owners: tuple[int, ...]
    dropped: tuple[bool, ...]
    masks: tuple[int, ...]
    prefix_masks: tuple[int, ...]

    def share(self, mask: int) -> float:
        """Return the weight of the masked terms divided by the query's, in [0, 1]; 0 if the query has no weight."""
        return weigh(mask, self.query.weights) / self.query.total if self.query.total else 0.0


class Lexicon:
    """Term weights, with a bounded cache of weighted queries, which never changes a result."""

    def __init__(self, table: Mapping[str, float]) -> None:
        self.table = table
        self._queries = BoundedCache(self._query, size=_bytes_of, max_size=_CACHED_BYTES)

    def query(self, text: str) -> Query:
        """Return a text as a query."""
        return self._queries[text]

    def _query(self, text: str) -> Query:
        taken = words(text)
        weights = tuple(weight(stem, self.table) for stem in taken.distinct)
        return Query(
            words=taken,
            terms=taken.distinct,
            weights=weights,
            total=math.fsum(weights),
            kinds=_kinds(text, taken),
            asks=asks(text),
            interrogatives=taken.question_words & OPENS_QUESTION,
            heaviest_first=tuple(sorted(range(len(weights)), key=lambda place: (-weights[place], place))),
            number_mask=_mask_of(taken.distinct, frozenset(taken.numbers)),
            name_mask=_mask_of(taken.distinct, frozenset(taken.names)),
        )

    def unit_weight(self, unit: Words) -> float:
        """Return the total weight of the distinct stems of a unit."""
        return math.fsum(weight(stem, self.table) for stem in unit.distinct)


def match(query: Query, sentences: Sequence[str], *, drop_copies: bool) -> Matches:
    """Return the matches of a query in sentences. Long ones are split into units, each with its sentence's index.

    A unit that is a question matches nothing, because it states nothing. With `drop_copies`, a unit that only repeats
    the query matches nothing either: a question echoed in a context is not evidence.
    """
    bits = {term: 1 << place for place, term in enumerate(query.terms)}
    by_prefix: dict[str, int] = {}
    for term, bit in bits.items():
        # Shorter stems share a beginning with too many unrelated words.
        if len(term) >= MIN_PREFIX:
            by_prefix[prefix(term)] = by_prefix.get(prefix(term), 0) | bit
    asked, opening = query.words.members, frozenset(by_prefix)
    units: list[Words] = []
    owners: list[int] = []
    dropped: list[bool] = []
    masks: list[int] = []
    prefix_masks: list[int] = []
    for index, sentence in enumerate(sentences):
        check_cancelled()
        for text in units_of(sentence):
            unit = words(text)
            drop = _states_nothing(query, unit, drop_copies=drop_copies)
            mask = 0 if drop else sum(bits[stem] for stem in asked & unit.members)
            wide = mask
            if not drop:
                for start in opening & unit.prefixes:
                    wide |= by_prefix[start]
            units.append(unit)
            owners.append(index)
            dropped.append(drop)
            masks.append(mask)
            prefix_masks.append(wide)
    return Matches(query, tuple(units), tuple(owners), tuple(dropped), tuple(masks), tuple(prefix_masks))


def weigh(mask: int, weights: Sequence[float]) -> float:
    """Return the sum of the weights whose bit is set."""
    total = 0.0
    while mask:
        low = mask & -mask
        total += weights[low.bit_length() - 1]
        mask ^= low
    return total


def union(masks: Sequence[int]) -> int:
    """Return the bits that are set in any mask."""
    whole = 0
    for mask in masks:
        whole |= mask
    return whole


def best_window(found: Matches, longest: int) -> tuple[int, int]:
    """Return start and length of the window of at most `longest` units that covers most; the shortest, first one on
    ties.
    """
    masks = found.masks
    best, place, size = -1.0, 0, 1
    memo: dict[int, float] = {}
    for length in range(1, longest + 1):
        for start in range(len(masks) - length + 1):
            mask = masks[start]
            for other in range(1, length):
                mask |= masks[start + other]
            share = memo.get(mask)
            if share is None:
                share = memo[mask] = found.share(mask)
            # The tolerance keeps the shortest, first window on ties, whatever the rounding of the sums.
            if share > best + 1e-9:
                best, place, size = share, start, length
    return place, size


def window_share(found: Matches, longest: int) -> float:
    """Return the fraction of the query that the best window of at most `longest` units covers, in [0, 1]."""
    place, size = best_window(found, longest)
    return found.share(union(found.masks[place : place + size]))


def shared_pairs(query: Query, unit: Words) -> float:
    """Return the fraction of the query's adjacent pairs that occur in the unit."""
    pairs = query.words.pairs
    return len(pairs & unit.pairs) / len(pairs) if pairs else 0.0


def _states_nothing(query: Query, unit: Words, *, drop_copies: bool) -> bool:
    if drop_copies:
        return unit.is_question or _copies(query, unit)
    return unit.is_question and not query.words.is_question


def _copies(query: Query, unit: Words) -> bool:
    """Return True if the unit only repeats the query in the same order, or quotes it as a question."""
    if _quotes(query, unit):
        return True
    if not unit.stems or not unit.members <= query.words.members or (not query.asks and len(unit) < 3):
        return False
    if not query.words.pairs:
        return unit.members == query.words.members
    return shared_pairs(query, unit) >= _COPY_OVERLAP


def _quotes(query: Query, unit: Words) -> bool:
    """Return True if the unit repeats the query with its opening and question words, which an answer leaves out."""
    if not query.asks or len(query.words.stems) < _MIN_COPIED_STEMS:
        return False
    shared = shared_pairs(query, unit)
    # An echo in any script. Below this overlap, the opening and question words must be repeated too.
    if shared >= _COPY_OVERLAP_UNSPACED:
        return True
    opens = bool(query.interrogatives) and query.interrogatives <= unit.question_words
    return opens and shared >= _COPY_OVERLAP and query.words.stems[:2] in unit.pairs


def _bytes_of(text: str, query: Query) -> int:
    """Return about how many bytes a cached query takes."""
    return 1_000 + len(text) + _BYTES_PER_STEM * len(query.words.stems)


def _mask_of(terms: Sequence[str], wanted: frozenset[str]) -> int:
    return sum(1 << place for place, term in enumerate(terms) if term in wanted)


def _kinds(text: str, taken: Words) -> frozenset[str]:
    kinds = {kind for kind, known in ASKS.items() if not known.isdisjoint(taken.question_words)}
    if "count" in kinds and not NEEDS_HOW.isdisjoint(taken.question_words) and "how" not in taken.question_words:
        kinds.discard("count")
    if not text.isascii():
        low = text.lower()
        kinds |= {kind for kind, known in ASKS_UNSPACED.items() if any(word in low for word in known)}
    return frozenset(kinds)
