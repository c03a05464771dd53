"""Parts of the embedded judge's reasons: a quoted sentence, and the slot that differs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from merilo.judges.words import stems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judges.slots import Difference

_MAX_QUOTED: Final = 160
"""Characters of a sentence in a reason; a longer one is shortened around the words of the statement."""
_MAX_SHARED: Final = 300
_WORD: Final = re.compile(r"\w+")


def quoted(sentences: Sequence[str], at: int, about: str) -> str:
    """Return the number and the text of a sentence, shortened around the words of `about`."""
    return f"sentence {at + 1}: '{excerpt(sentences[at], about)}'."


def differs(difference: Difference | None) -> str:
    """Return a sentence that names the difference, after a space; empty if there is none."""
    if difference is None:
        return ""
    found = f" Differs in: {difference.stated} / {difference.found}."
    return found if difference.found else f" Not in it: {difference.stated}."


def excerpt(sentence: str, statement: str) -> str:
    """Return a sentence on one line, shortened around the words that it shares with the statement."""
    text = " ".join(sentence.split())
    if len(text) <= _MAX_QUOTED:
        return text
    stated = frozenset(stems(statement))
    words = (each for each in _WORD.finditer(text) if len(each.group()) > 3)
    shared = [each.start() for each in words if not stated.isdisjoint(stems(each.group()))][:_MAX_SHARED]
    near = _MAX_QUOTED * 3 // 4
    start = max(shared, key=lambda at: sum(at <= other < at + near for other in shared), default=0)
    start = 0 if start < _MAX_QUOTED // 8 else text.rfind(" ", 0, start) + 1
    end = start + _MAX_QUOTED
    end = len(text) if end >= len(text) else max(text.rfind(" ", start, end), start + _MAX_QUOTED // 2)
    return f"{'... ' if start else ''}{text[start:end]}{' ...' if end < len(text) else ''}"
