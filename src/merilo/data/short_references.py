"""Short answers ("75 dollars", "1907", "Lisbon") that a sentence states with all their values and words."""

from __future__ import annotations

from typing import Final

from merilo.data.answer import negations
from merilo.data.sentences import sentences
from merilo.data.short_answers import is_denial, is_short, is_yes_or_no, words_of
from merilo.data.values import FUNCTION_WORDS, Date, Number, Values, has_value, has_values, values

_LIMITS: Final = frozenset(
    "above after almost before below except false formerly instead least less more most nearly once or other over than "
    "under until unless up unlike wrong".split()
)
"""English words with which a sentence states something else than the values and names in it."""
_ARTICLES: Final = frozenset({"a", "an", "the"})
_MIN_STEM, _MAX_ENDING = 3, 3
"""Letters that two forms of a word share at least, and that one of them has more at most."""


def states(text: str, answer: str, asked: str, language: str, *, only: bool = False) -> bool:
    """Return True if one sentence of a text has all values and words of a short English answer to a question.

    False also if the sentence has a negation or a limit that the answer lacks ("over 75 dollars"), and if the text has
    another value of the same kind. `only`: False if the text says more than the answer and the question.

    >>> states("The ticket costs 75 dollars.", "75 dollars", "How much is the ticket?", "en")
    True
    """
    if language != "en" or not is_short(answer, language) or is_yes_or_no(answer):
        return False
    mine, given, said = values(answer), values(asked), values(text)
    words = {*words_of(_without(mine, answer))} - _ARTICLES
    known = {*words_of(asked), *words_of(answer)}
    if not (words or mine.values) or any(_rivals(each, mine, given) for each in said.values):
        return False
    if only and not all(_is_known(each, known) for each in words_of(_without(said, text))):
        return False
    return any(
        words <= {*words_of(each)}
        and has_values(mine, values(each))
        and _turning(words_of(each)) == _turning(words_of(answer))
        for each in sentences(text)
    )


def _without(found: Values, text: str) -> str:
    """Return a text without its values."""
    for each in found.values:
        text = text.replace(each.text, " ")
    return text


def _rivals(value: Number | Date, mine: Values, given: Values) -> bool:
    """Return True if a value is none of an answer or its question, and may be mistaken for one of the answer."""
    if not mine.values or has_value(value, mine) or has_value(value, given):
        return False
    kind, kinds = _kind(value), {*map(_kind, mine.values)}
    return kind in kinds or (isinstance(value, Number) and not kind and not value.counted)


def _kind(value: Number | Date) -> str:
    return "date" if isinstance(value, Date) else value.dimension


def _turning(words: list[str]) -> set[str]:
    """Return the words that turn a sentence into its opposite, or a value into a limit."""
    return {word for word in words if word in _LIMITS or word in negations() or is_denial(word)}


def _is_known(word: str, known: set[str]) -> bool:
    """Return True for a function word and for a form of a known word: "costs" of "cost"."""
    return word in FUNCTION_WORDS or word in known or any(_is_form(word, each) for each in known)


def _is_form(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= _MIN_STEM and long.startswith(short) and len(long) - len(short) <= _MAX_ENDING
