"""Answers too short to be a statement: "In 1889." has a meaning only together with its question."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import normalize

SHORT_WORDS: Final = 8
"""An answer of fewer words is judged together with its question."""
_SHORT_SIGNS: Final = {"ja": 24, "th": 40, "zh": 16}
"""The same limit in characters, for languages without spaces between words."""
_VERBS: Final = frozenset(
    "am are be been can can't cannot could did didn't do does doesn't don't had has hasn't have he's i'd i'll i'm i've "
    "is isn't it's may might must she's should that's there's they're was wasn't we're were weren't will won't would "
    "wouldn't you're".split()
)
"""English verbs: an answer with one of them is a sentence, however short."""
_FULL_VERBS: Final = frozenset(
    "allows applies became becomes began begins belongs brought built came comes contains costs ends fell found gave "
    "goes got grew held holds includes keeps lasts lay lies led left lives lost made makes means measures needs opens "
    "paid pays reads requires rose runs sells sits spent stands starts takes took uses weighs went won works "
    "wrote".split()
)
"""English verbs that are a verb before a function word, a number or a name: "Shipping costs." is not a sentence."""
_AFTER_VERB: Final = frozenset(
    "a an the at by for from in into of on over to under until up with without about after all as its their no not "
    "only one two three four five six seven eight nine ten between".split()
)
_NAMES_TOO: Final = frozenset({"may", "will"})
"""Verbs that are a month or a name if capitalised."""
_YES: Final = frozenset("yes yep yeah correct true да верно ja oui sí si 是 是的 对 はい نعم".split())
_NO: Final = frozenset("no nope false incorrect нет неверно nein non 不 不是 否 いいえ لا".split())
_ECHO: Final = _VERBS | frozenset("aren't couldn't haven't he i it not shouldn't she that they we you".split())
r"""Words that only repeat a yes or a no: "Yes, it does.\"
"""
_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_BETWEEN: Final = "\n\n"


def stated(answer: str, user_input: str | None, language: str) -> str | None:
    """Return a short answer combined with its question, as one statement with a blank line between them.

    None if the answer is blank or long enough to be read alone, or if there is no question.
    """
    answer, asked = " ".join(answer.split()), (user_input or "").strip()
    return f"{asked}{_BETWEEN}{answer}" if answer and asked and is_short(answer, language) else None


def taken_apart(statement: str) -> tuple[str, str] | None:
    """Split a statement made by `stated` into question and answer; None for any other statement.

    No sentence contains the blank line between the two.

    >>> taken_apart(stated("In 1889.", "When was it built?", "en"))
    ('When was it built?', 'In 1889.')
    """
    asked, between, answer = statement.rpartition(_BETWEEN)
    return (asked, answer) if between else None


def is_yes_or_no(text: str) -> bool:
    """Return True if a text is only a yes or a no, in one of several languages."""
    return affirms(text) is not None


def affirms(text: str) -> bool | None:
    """Return True for a text that is only a yes ("Yes.", "Yes, it does."), False for a no, None for any other."""
    first, *rest = words_of(text) or [""]
    if first not in _YES | _NO or not _ECHO.issuperset(rest):
        return None
    says_yes = first in _YES
    return None if says_yes and any(map(is_denial, rest)) else says_yes  # "Yes, it isn't." is neither


def has_few_words(text: str, language: str) -> bool:
    """Return True if a text has fewer than `SHORT_WORDS` words, or few characters in a language without spaces."""
    most = _SHORT_SIGNS.get(language)
    return len(text) < most if most else len(text.split()) < SHORT_WORDS


def is_short(answer: str, language: str) -> bool:
    """Return True if an answer is too short to be a statement: a few words that are not a sentence."""
    if language in _SHORT_SIGNS or not has_few_words(answer, language):
        return has_few_words(answer, language)
    words = answer.split()
    if language != "en" or is_yes_or_no(answer):
        return True
    return not (any(map(_is_verb, words, ["", *words])) or any(map(_is_full_verb, words[1:], words[2:])))


def _is_verb(word: str, before: str) -> bool:
    (plain,) = words_of(word)[:1] or [""]
    is_name = plain in _NAMES_TOO and word.strip("([\"'“‘")[:1].isupper()
    is_time = plain == "am" and (not before or before[-1:].isdigit())  # "9 am"; "Am Freitag" at the beginning
    return plain in _VERBS and not is_name and not is_time


def _is_full_verb(word: str, after: str) -> bool:
    """Return True for a verb with its object: "opened in", "costs 12", "beat Visby"."""
    (plain,), (following,) = words_of(word)[:1] or [""], words_of(after)[:1] or [""]
    is_verb = plain in _FULL_VERBS or (plain.endswith("ed") and len(plain) > 4)
    return is_verb and word[:1].islower() and (following in _AFTER_VERB or not after[:1].islower())


def words_of(text: str) -> list[str]:
    """Return the words of a text in the form that is compared."""
    return [word.replace("’", "'") for word in _WORD.findall(normalize("NFKC", text).casefold())]


def is_denial(word: str) -> bool:
    """Return True for "not", "cannot" and a word that ends in "n't"."""
    return word in {"not", "cannot"} or word.endswith("n't")
