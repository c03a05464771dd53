"""Follow-up questions: the words of earlier turns that a short question leaves out, for the embedded judge.

A follow-up has a pronoun, at most two content words, or begins like "And ..." or "What about ...". To it are added the
content words of the user's turn before and the names in the answer to that. Both readings are judged, and the verdict
with the lower probability counts: a context must fit the question as it is written, and the topic of the conversation.
`design/embedded-judge.md` has the measurement.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from merilo.data.history import ASSISTANT, USER
from merilo.judges.english_detection import is_english
from merilo.judges.slots import FUNCTION_WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_POINTING: Final = frozenset(
    "it its they them their theirs he him his she her hers this that these those one ones there then else same other "
    "both former latter".split()
)
_ASKING: Final = frozenset(
    "who what when where which how why whose whom does do did is are was were can could will would should has have had "
    "much many long often old tall high far large".split()
)
_OPENINGS: Final = (("and",), ("or",), ("but",), ("what", "about"), ("how", "about"))
_FEW: Final = 2
"""A question with at most this many content words is a follow-up."""
_MOST_ADDED: Final = 30


def full_question(question: str, history: Sequence[str]) -> str | None:
    """Return an English follow-up question with the words that it leaves out; None if it can be read alone.

    `history`: the earlier turns as `role: text`.
    """
    asked, answered = _last(history, USER), _last(history, ASSISTANT)
    if not asked or not _is_follow_up(question) or not is_english(f"{asked} {answered} {question}"):
        return None
    known = {word.lower() for word in _WORD.findall(question)}
    found = [*_content(asked), *(word for word in _content(answered) if word[0].isupper())]
    added = [word for word in dict.fromkeys(found) if word.lower() not in known]
    return f"{question.rstrip(' ?')} {' '.join(added[:_MOST_ADDED])}?" if added else None


def _is_follow_up(question: str) -> bool:
    words = [word.lower() for word in _WORD.findall(question)]
    opens = any(tuple(words[: len(opening)]) == opening for opening in _OPENINGS)
    return opens or not _POINTING.isdisjoint(words) or len(_content(question)) <= _FEW


def _content(text: str) -> list[str]:
    empty = FUNCTION_WORDS | _ASKING | _POINTING
    return [word for word in _WORD.findall(text) if word.lower() not in empty]


def _last(history: Sequence[str], role: str) -> str:
    opening = f"{role}: "
    return next((turn.removeprefix(opening) for turn in reversed(history) if turn.startswith(opening)), "")
