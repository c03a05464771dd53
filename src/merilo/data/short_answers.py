"""Answers too short to be a statement by themselves: "In 1889." says something only with what it answers."""

from __future__ import annotations

from typing import Final

SHORT_WORDS: Final = 8
"""An answer of fewer words is judged together with what it answers."""
_SHORT_SIGNS: Final = 16
"""The same, in languages that are written without blanks."""
_VERBS: Final = frozenset(
    "am are be been can can't cannot could did didn't do does doesn't don't had has hasn't have he's i'd i'll i'm i've "
    "is isn't it's may might must she's should that's there's they're was wasn't we're were weren't will won't would "
    "wouldn't you're".split()
)
"""An English answer with one of them is a sentence, however short."""
_YES: Final = frozenset("yes да ja oui sí si".split())
_NO: Final = frozenset("no нет nein non".split())
_WITHOUT_BLANKS: Final = frozenset({"ja", "th", "zh"})
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
    """Whether a text is one word that says yes or no, in one of several languages."""
    return says_yes(text) is not None


def says_yes(text: str) -> bool | None:
    """True for one word that says yes, False for one that says no; None for any other text."""
    word = text.strip(" .,;:!…").casefold()
    return word in _YES if word in _YES | _NO else None


def _is_short(answer: str, language: str) -> bool:
    if language in _WITHOUT_BLANKS:
        return len(answer) < _SHORT_SIGNS
    words = answer.casefold().replace("’", "'").split()
    if len(words) >= SHORT_WORDS:
        return False
    return language != "en" or is_yes_or_no(words[0]) or _VERBS.isdisjoint(words)
