"""The slots of an English text: its values, names, negations, and words of an axis; parts of reasons."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from merilo.data.values import FUNCTION_WORDS, Reader, Values, word_set
from merilo.judges.words import stems

if TYPE_CHECKING:
    from collections.abc import Iterator

_TABLES: Final[dict[str, Any]] = tomllib.loads(files("merilo.judges").joinpath("slots.toml").read_text("utf-8"))
NEGATIONS: Final = word_set(_TABLES["negations"])
_OPPOSITES: Final = [tuple(map(word_set, text.split("/"))) for text in _TABLES["opposites"].values()]
OPPOSITES: Final = frozenset[str]().union(*(one | other for one, other in _OPPOSITES))
"""Words of an axis, such as "first" and "last"."""
_UNWEIGHED: Final = NEGATIONS | OPPOSITES
_FALSE: Final = re.compile(
    r"\b(?:false|untrue|incorrect|wrong|myth|denie[ds]|without|hardly|rarely|no longer)\b", re.IGNORECASE
)
_MAX_CACHED: Final = 1_000
"""Characters. The slots of a longer text are read each time."""


@dataclass(frozen=True, slots=True)
class Slots(Values):
    """The slots of a text."""

    names: tuple[str, ...]
    words: frozenset[str]
    """All words, in lower case."""
    rest: str
    """The text without its numbers, dates, negations and words of an axis."""
    denials: int
    """The number of negations, and of words such as "false"."""
    text: str
    """The text as it was read: in NFC, with digits 0 to 9."""


def slots(text: str) -> Slots:
    """Return the slots of a text; those of short texts are cached."""
    return _cached(text) if len(text) <= _MAX_CACHED else _Reader(text).read()


@lru_cache(maxsize=1_024)
def _cached(text: str) -> Slots:
    return _Reader(text).read()


class _Reader(Reader):
    """A reader of names and negations, too."""

    def read(self) -> Slots:
        rest = " ".join(
            each.group() for at, each in enumerate(self.found) if at not in self.used and self.low[at] not in _UNWEIGHED
        )
        numbers, dates, names = tuple(self.numbers), tuple(self.dates), tuple(self._names())
        return Slots(numbers, dates, names, frozenset(self.low), rest, self._denials(), self.text)

    def _names(self) -> Iterator[str]:
        for place, each in enumerate(self.found):
            word = each.group()
            if each["code"]:
                yield word
            if each["word"] is None or not word[0].isupper() or place in self.used or self.low[place] in FUNCTION_WORDS:
                continue
            before = self.text[max(0, each.start() - 3) : each.start()].rstrip()
            opens = not before or before[-1] in '.!?:;\n"“„«(|•*#>-–'
            follows = self.found[place + 1].group()[:1].isupper() if place + 1 < len(self.found) else False
            if not opens or follows or (len(word) > 1 and word.isupper()):
                yield word.removesuffix("'s").removesuffix("’s")

    def _denials(self) -> int:
        """Return the number of negations, without a "no" that answers a question."""
        answers = self.word(0) == "no" and self.gap(1).strip()[:1] in {*",.!;"}
        found = sum(each in NEGATIONS or each.endswith("n't") for each in self.low[answers:])
        return found + len(_FALSE.findall(self.text))


def opposes(mine: Slots, own: Slots) -> bool:
    """Return True if a text has a word of an axis, the other one its opposite only, and both or none a negation."""
    return bool(mine.denials) is bool(own.denials) and any(
        mine.words & stated and not mine.words & found and own.words & found and not own.words & stated
        for axis in _OPPOSITES
        for stated, found in (axis, axis[::-1])
    )


# -- parts of reasons ---------------------------------------------------------------------------------

_MAX_QUOTED: Final = 160
"""Characters of a sentence in a reason; a longer one is shortened around the words of the statement."""
_MAX_SHARED: Final = 300
_WORD: Final = re.compile(r"\w+")


def quoted(sentence: str, at: int, about: str) -> str:
    """Return the number and the text of a sentence, shortened around the words of `about`."""
    return f"sentence {at + 1}: '{excerpt(sentence, about)}'."


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
