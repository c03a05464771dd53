"""Detection of text that is not a sentence: words in a row without grammar, and texts that state no time."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from merilo.judges.lexical_words import DATE_WORDS
from merilo.judges.slot_words import (
    ARTICLES,
    FUNCTION_WORDS,
    MODALS,
    NOT_AFTER_ARTICLE,
    NOT_AFTER_PREPOSITION,
    PREPOSITIONS,
    TIME_WORDS,
)

_TOKEN: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[^\s\w]")
_ASKS_TIME: Final = re.compile(
    r"(?:(?:since|until|from|by) )?when (?:is|are|was|were|did|do|does|will|has|have|had|can|could) [^,;]*\Z"
    r"|(?:in |on )?(?:what|which) (?:year|date|day|month|century)\b[^,;]*\Z"
)
_MIN_WORDS: Final = 6
_MAX_CHARS: Final = 600
"""Longer sentences are not examined: a long text has grammar somewhere."""
_MAX_CAPITALS: Final = 0.4
"""Fraction of capitalised words from which a text without grammar is a title or a list of names."""
_MIN_ERRORS: Final = 2
_MIN_ERROR_RATE: Final = 0.2
"""Fraction of the examined words that are followed by a word that cannot follow them."""
_OPENING: Final = frozenset("\"'(“‘$£€*`[<#")


def is_word_bag(text: str) -> bool:
    """Return True if a text is words in a row, not a sentence: no common word and no punctuation, or a wrong order.

    Only texts in Latin letters are examined for a wrong order, by English articles and prepositions. Titles, table
    rows, list items and code are left alone.
    """
    if len(text) > _MAX_CHARS or "\n" in text:
        return False
    tokens = _TOKEN.findall(text.rstrip(" .!"))
    words = [each for each in tokens if each[0].isalnum()]
    if len(words) < _MIN_WORDS:
        return False
    low = [each.lower() if place == 0 or len(each) > 1 else each for place, each in enumerate(tokens)]  # "Easy A"
    if len(words) == len(tokens) and FUNCTION_WORDS.isdisjoint(low):
        return _is_stuffed(words) and (text.rstrip()[-1:] not in ".!" or _has_number_run(words))
    return text.isascii() and _is_shuffled(low)


def asks_time(question: str) -> bool:
    """Return True if an English question asks when something happens."""
    return _ASKS_TIME.match(question.strip().lower()) is not None


def states_time(text: str) -> bool:
    """Return True if an English text may say when something happens: a digit, or a word about time."""
    if any(map(str.isdigit, text)) or not text.isascii():
        return True
    words = {each.lower() for each in _TOKEN.findall(text)}
    return not (TIME_WORDS.isdisjoint(words) and DATE_WORDS.isdisjoint(words))


def _is_stuffed(words: list[str]) -> bool:
    """Return True if words without a common word among them are neither a title nor a language that has none."""
    letters = [each for each in words if each.isalpha()]
    capitals = sum(each[0].isupper() for each in letters[1:])
    plain = all(each.isascii() or "а" <= each[0].lower() <= "я" for each in letters[:1])
    return bool(letters) and plain and capitals <= _MAX_CAPITALS * len(letters)


def _has_number_run(words: list[str]) -> bool:
    return any(one.isdigit() and other.isdigit() for one, other in pairwise(words))


def _is_shuffled(low: list[str]) -> bool:
    errors = total = 0
    for word, after in zip(low, [*low[1:], ""], strict=True):
        impossible = _NOT_AFTER.get(word)
        if impossible is not None:
            total += 1
            errors += after in impossible or (word in ARTICLES and not after[:1].isalnum() and after not in _OPENING)
    return errors >= _MIN_ERRORS and errors >= _MIN_ERROR_RATE * total


_NOT_AFTER: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(ARTICLES, NOT_AFTER_ARTICLE),
    **dict.fromkeys(PREPOSITIONS, NOT_AFTER_PREPOSITION),
    **dict.fromkeys(("and", "or", "but"), frozenset({"", "of", "than"})),
    **dict.fromkeys(MODALS, ARTICLES | frozenset({"of", "and", "is", "are", "was", "were"})),
}
"""The words that cannot follow a word; empty for the end of the text."""
