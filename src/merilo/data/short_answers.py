"""Answers too short to be a statement by themselves: "In 1889." says something only with what it answers."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import normalize

SHORT_WORDS: Final = 8
"""An answer of fewer words is judged together with what it answers."""
_SHORT_SIGNS: Final = {"ja": 24, "th": 40, "zh": 16}
"""The same in signs, of languages that are written without blanks: about as much is said in them."""
_VERBS: Final = frozenset(
    "am are be been can can't cannot could did didn't do does doesn't don't had has hasn't have he's i'd i'll i'm i've "
    "is isn't it's may might must she's should that's there's they're was wasn't we're were weren't will won't would "
    "wouldn't you're".split()
)
"""An English answer with one of them is a sentence, however short."""
_NAMES_TOO: Final = frozenset({"may", "will"})
"""Verbs that are a month or a name where they are written large."""
_YES: Final = frozenset("yes yep yeah correct true да верно ja oui sí si 是 是的 对 はい نعم".split())
_NO: Final = frozenset("no nope false incorrect нет неверно nein non 不 不是 否 いいえ لا".split())
_ECHO: Final = _VERBS | frozenset("aren't couldn't haven't he i it not shouldn't she that they we you".split())
"""Words that only repeat a yes or a no: "Yes, it does.\""""
_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_BETWEEN: Final = "\n\n"


def stated(answer: str, user_input: str | None, language: str) -> str | None:
    """A short answer behind what it answers, as one statement with a blank line between.

    None where the answer is blank or long enough to be read alone, or where it answers nothing.
    """
    answer, asked = " ".join(answer.split()), (user_input or "").strip()
    return f"{asked}{_BETWEEN}{answer}" if answer and asked and _is_short(answer, language) else None


def taken_apart(statement: str) -> tuple[str, str] | None:
    """What was asked, and the answer, of what `stated` made; None for any other statement.

    No sentence holds the blank line between the two.

    >>> taken_apart(stated("In 1889.", "When was it built?", "en"))
    ('When was it built?', 'In 1889.')
    """
    asked, between, answer = statement.rpartition(_BETWEEN)
    return (asked, answer) if between else None


def is_yes_or_no(text: str) -> bool:
    """Whether a text says yes or no, in one of several languages, and nothing else."""
    return affirms(text) is not None


def affirms(text: str) -> bool | None:
    """True for a text that says yes and nothing else ("Yes.", "Yes, it does."), False for no; None for any other."""
    first, *rest = _words(text) or [""]
    if first not in _YES | _NO or not _ECHO.issuperset(rest):
        return None
    says_yes = first in _YES
    return None if says_yes and any(map(_is_denial, rest)) else says_yes  # "Yes, it isn't." says neither


def _is_short(answer: str, language: str) -> bool:
    if language in _SHORT_SIGNS:
        return len(answer) < _SHORT_SIGNS[language]
    words = answer.split()
    if len(words) >= SHORT_WORDS:
        return False
    return language != "en" or is_yes_or_no(answer) or not any(map(_is_verb, words, ["", *words]))


def _is_verb(word: str, before: str) -> bool:
    (plain,) = _words(word)[:1] or [""]
    is_name = plain in _NAMES_TOO and word.strip("([\"'“‘")[:1].isupper()
    is_time = plain == "am" and (not before or before[-1:].isdigit())  # "9 am"; "Am Freitag", where it opens
    return plain in _VERBS and not is_name and not is_time


def _words(text: str) -> list[str]:
    return [word.replace("’", "'") for word in _WORD.findall(normalize("NFKC", text).casefold())]


def _is_denial(word: str) -> bool:
    return word in {"not", "cannot"} or word.endswith("n't")
