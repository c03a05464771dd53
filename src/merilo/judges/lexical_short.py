"""Features of a short answer (not a full statement) in the contexts, together with the question that it answers.

Nearly any word of a context can be given as an answer. The right one is recognised by its position: in the sentence
that looks most like evidence for the question, near the question's words. That holds in every language. A yes or a no
has no position. Its features are how much of the question the context contains, and whether the context denies it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from merilo.data.short_answers import affirms, taken_apart
from merilo.judges.lexical_features import SUPPORT_FEATURES, asked_for, support_features
from merilo.judges.lexical_match import MIN_PREFIX, Lexicon, Matches, Query, match, weigh
from merilo.judges.lexical_text import Words, is_unspaced, prefix, weight, words
from merilo.judges.lexical_words import BEFORE_WH, WH_WORDS
from merilo.judges.slot_check import places_of, unstated
from merilo.judges.slots import slots

ANSWERED_FEATURES: Final = tuple(
    """
    behind_best odds odds_elsewhere held log_holders coverage prefix_coverage near nearness new_number new_name
    who when where count why expectation_unmet copied log_answer log_query first
""".split()
)
_POLARITY: Final = ("negated", "question_negated", "unlike", *SUPPORT_FEATURES)
YES_OR_NO_FEATURES: Final = ("says_yes", *_POLARITY, *(f"yes_{name}" for name in _POLARITY))
"""The same features twice: for any answer, and for a yes only."""

Row = tuple[float, ...]
Odds = Callable[[Matches], Sequence[float]]
"""A function that returns, for each unit, the log odds that it is evidence for the question."""

_WH: Final = frozenset(stem for word in WH_WORDS for stem in words(word).stems)
_BEFORE_WH: Final = frozenset(stem for word in BEFORE_WH for stem in words(word).stems)
_ALL: Final = 0.999
_NEAR_WORDS: Final = 3.0
_MIN_ASKED: Final = 0.2
"""Fraction of the question, by weight, that a sentence contains at least to be about it."""
_MIN_GIVEN: Final = 0.2
"""Fraction of what the sentence adds to the question, by weight, that the answer gives."""
_MIN_WEIGHT: Final = 0.02
_NOWHERE: Final = -12.0
"""Log odds of evidence if there is no sentence."""


class ShortAnswer(NamedTuple):
    """A question and the short answer to it."""

    asked: str
    answer: str
    says_yes: bool | None
    """None for an answer that is neither yes nor no."""

    @property
    def task(self) -> str:
        """The name of the curve that decides."""
        return "answered" if self.says_yes is None else "yes_or_no"


class Answered(NamedTuple):
    """The evidence in a context for a question and the short answer to it."""

    row: Row
    """Values of ANSWERED_FEATURES; for a yes or a no, of YES_OR_NO_FEATURES."""
    sentences: tuple[int, ...]
    """Indices of the sentences that contain most of the answer, ascending; none for a yes or a no."""
    is_plain: bool = False
    """True if the sentence most like the question states the answer and adds little else to the question."""


def short_answer(statement: str) -> ShortAnswer | None:
    """Return the question and the answer if a statement consists of the two; None otherwise."""
    apart = taken_apart(statement)
    return None if apart is None else ShortAnswer(*apart, affirms(apart[1]))


def may_be_affirmed(question: Query) -> bool:
    """Return False for a question that a yes or a no cannot answer: who, when, how much."""
    first, second = (*question.words.stems[:2], "", "")[:2]
    return first not in _WH and not (first in _BEFORE_WH and second in _WH)


def short_rows(
    short: ShortAnswer, contexts: Sequence[Sequence[str]], lexicon: Lexicon, odds_of: Odds
) -> list[Answered | None]:
    """Return the evidence in each context, given as its sentences, for a short answer; None if there is none."""
    question = lexicon.query(short.asked)
    if short.says_yes is not None:
        if not may_be_affirmed(question):
            return [None for _ in contexts]
        yes = float(short.says_yes)
        return [Answered(_yes_or_no(question, yes, each, lexicon, odds_of), ()) if each else None for each in contexts]
    seen = [_seen(short, context, lexicon, odds_of) for context in contexts]
    best = max((odds for each in seen for odds in each.odds), default=_NOWHERE)
    elsewhere = max((odds for each in seen for odds in each.odds_elsewhere), default=_NOWHERE)
    return [_answered(each, best, elsewhere) if each.holding else None for each in seen]


def _yes_or_no(question: Query, yes: float, context: Sequence[str], lexicon: Lexicon, odds_of: Odds) -> Row:
    found = match(question, context, drop_copies=False)
    odds = odds_of(match(question, context, drop_copies=True))
    likeliest = found.units[max(range(len(odds)), key=lambda unit: (odds[unit], -unit))]
    negated, asks_negated = likeliest.is_negated, question.words.is_negated
    own = (float(negated), float(asks_negated), float(negated != asks_negated), *support_features(found, lexicon))
    return (yes, *own, *(yes * value for value in own))


@dataclass(frozen=True, slots=True)
class _Seen:
    asked: Matches
    given: Matches
    odds: tuple[float, ...]
    holding: tuple[int, ...]
    """Indices of the units that state the answer, and among them those with most of its words, by weight."""
    share: float
    """The fraction of the answer, by weight, that they contain, in [0, 1]."""

    table: Mapping[str, float]
    """The weights of words."""

    @property
    def odds_elsewhere(self) -> list[float]:
        return [odds for place, odds in enumerate(self.odds) if place not in self.holding]


def _seen(short: ShortAnswer, context: Sequence[str], lexicon: Lexicon, odds_of: Odds) -> _Seen:
    asked = match(lexicon.query(short.asked), context, drop_copies=True)
    given = match(lexicon.query(short.answer), context, drop_copies=False)
    has_slots = any((*(own := slots(short.answer)).numbers, *own.dates, *own.clocks))
    stating = [
        place
        for place, each in enumerate(places_of(context))
        if (given.prefix_masks[place] or (has_slots and not given.dropped[place]))
        and unstated(short.answer, short.asked, each, lexicon.table) is None
    ]
    shares = {place: given.share(given.prefix_masks[place]) for place in stating}
    most = max(shares.values(), default=0.0)
    # Nearly the maximum instead of equality: equal sets of words may sum to slightly different weights.
    holding = tuple(place for place in stating if shares[place] >= _ALL * most)
    return _Seen(asked, given, tuple(max(_NOWHERE, odds) for odds in odds_of(asked)), holding, most, lexicon.table)


def _answered(seen: _Seen, best: float, elsewhere: float) -> Answered:
    asked, question, answer = seen.asked, seen.asked.query, seen.given.query
    place = max(seen.holding, key=lambda unit: (seen.odds[unit], -unit))
    number, name, cues = asked_for(question, answer.words)
    known = question.words.members
    row = (
        seen.odds[place] - best, seen.odds[place], elsewhere, seen.share, math.log1p(len(seen.holding)),
        asked.share(asked.masks[place]), asked.share(asked.prefix_masks[place]),
        *_nearness(question, answer, seen.given.units[place]), number, name, *cues,
        float(bool(question.kinds) and not any(cues)),
        sum(term in known for term in answer.terms) / (len(answer.terms) or 1),
        math.log1p(len(answer.words)), math.log1p(len(question.terms)), 1.0 / (1 + place),
    )  # fmt: skip
    return Answered(
        row, tuple(sorted({seen.given.owners[unit] for unit in seen.holding})), _is_plain(seen, place, best)
    )


def _is_plain(seen: _Seen, place: int, best: float) -> bool:
    asked, question, answer = seen.asked, seen.asked.query.words, seen.given.query
    if seen.odds[place] < best or _asked_share(asked, place) < _MIN_ASKED:
        return False
    if asked.share(asked.prefix_masks[place]) < _ALL * max(map(asked.share, asked.prefix_masks)):
        return False
    if all(_is_in(term, question) for term in answer.terms):
        return True  # it only repeats words of the question, and the sentence states them
    added = [term for term in seen.given.units[place].distinct if not _is_in(term, question)]
    weights = {term: _added_weight(term, seen.table) for term in added}
    given = math.fsum(own for term, own in weights.items() if _is_in(term, answer.words))
    return given >= _MIN_GIVEN * math.fsum(weights.values())


def _added_weight(term: str, table: Mapping[str, float]) -> float:
    """Return 1 for a number, half a weight for a pair of characters of an unspaced script, otherwise the weight."""
    own = max(_MIN_WEIGHT, weight(term, table))
    return 1.0 if term[0].isdigit() else own / 2 if is_unspaced(term) else own


def _asked_share(asked: Matches, place: int) -> float:
    """Return the fraction of a question, by weight and without its question words, that a unit contains."""
    mask, query = asked.prefix_masks[place], asked.query
    weights = [0.0 if term in _WH else own for term, own in zip(query.terms, query.weights, strict=True)]
    return weigh(mask, weights) / (math.fsum(weights) or 1.0)


def _is_in(term: str, found: Words) -> bool:
    return term in found.members or (len(term) >= MIN_PREFIX and prefix(term) in found.prefixes)


def _nearness(question: Query, answer: Query, unit: Words) -> tuple[float, float]:
    """Return how near the answer is to the question's words in a unit: over all of them, and over those present."""
    places: dict[str, list[int]] = {}
    for place, stem in enumerate(unit.stems):
        places.setdefault(stem, []).append(place)
    # Words that the answer repeats from the question would always be near the question's words.
    new = [term for term in answer.terms if term not in question.words.members]
    at = [place for term in new or answer.terms for place in places.get(term, ())]
    near = there = 0.0
    for term, own in zip(question.terms, question.weights, strict=True):
        if at and term in places:
            apart = min(abs(one - other) for one in at for other in places[term])
            near += own / (1.0 + apart / _NEAR_WORDS)
            there += own
    return near / (question.total or 1.0), near / there if there else 0.0
