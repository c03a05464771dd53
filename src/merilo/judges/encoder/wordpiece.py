"""Texts as token ids: the WordPiece tokenizer of uncased BERT models, in pure Python.

It returns the same ids as the `tokenizers` package with special tokens treated as plain text: a text is data, so none
can contain `[SEP]` and end itself (`training/encoder/check_wordpiece.py` compares the two). After Devlin et al.,
"BERT" (2019), and the reference's normalizer: drop control characters, separate ideographs, remove accents (NFD),
lower the case, separate punctuation, then take the longest known piece first.
"""

from __future__ import annotations

import tomllib
import unicodedata
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from importlib.resources import files
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


class Ranges:
    """A set of code points, given as ranges in ascending order: `Ranges("9-10 32")`."""

    def __init__(self, ranges: str) -> None:
        bounds = [each.partition("-") for each in ranges.split()]
        self._first = [int(low) for low, _, _ in bounds]
        self._last = [int(high or low) for low, _, high in bounds]

    def __contains__(self, code: int) -> bool:
        place = bisect_right(self._first, code) - 1
        return place >= 0 and code <= self._last[place]


_CLASSES: Final = tomllib.loads(files("merilo.judges.encoder").joinpath("characters.toml").read_text("utf-8"))
SPACES, IDEOGRAPHS, PUNCTUATION, REMOVED = (
    Ranges(_CLASSES[name]) for name in ("spaces", "ideographs", "punctuation", "removed")
)
MAX_WORD: Final = 100
"""Characters. A longer word is unknown as a whole."""
_CACHED_WORDS: Final = 100_000
_CACHED_LETTERS: Final = 20_000
_CACHED_CHARS: Final = 32
"""Characters. Longer words are not cached, because they rarely occur twice."""
_UNKNOWN: Final = "[UNK]"
_FIRST: Final = "[CLS]"
_LAST: Final = "[SEP]"


class WordPiece:
    """A tokenizer with its vocabulary; threads may share it."""

    def __init__(self, vocabulary: Iterable[str]) -> None:
        """Create a tokenizer. `vocabulary`: tokens in the order of their ids, `##` before those that continue a word.

        Raises ValueError if a token that BERT needs is missing.
        """
        ids = {token: at for at, token in enumerate(vocabulary)}
        missing = [token for token in (_UNKNOWN, _FIRST, _LAST) if token not in ids]
        if missing:
            raise ValueError(f"A vocabulary needs {_UNKNOWN}, {_FIRST} and {_LAST}; {missing[0]} is missing.")
        self.first, self.last, self.unknown = ids[_FIRST], ids[_LAST], ids[_UNKNOWN]
        self._letters = _Letters()
        self._pieces = _Pieces(ids)

    def words(self, text: str) -> list[str]:
        """Return the words of a text as they are looked up: normalised, with punctuation and ideographs separate."""
        return text.translate(self._letters).split()

    def pieces(self, word: str) -> tuple[int, ...]:
        """Return the ids of one of these words, at least one."""
        return self._pieces[word]

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text, without the special tokens at its beginning and end."""
        found: list[int] = []
        pieces = self._pieces
        for word in text.translate(self._letters).split():
            found += pieces[word]
        return found


class _Letters(dict[int, str]):
    """The replacement of each character; computed at first use, and cleared if there are too many."""

    def __missing__(self, code: int) -> str:
        # Text in many scripts could otherwise fill the memory.
        if len(self) >= _CACHED_LETTERS:
            self.clear()
        found = self[code] = _become(code)
        return found


def _become(code: int) -> str:
    if code in SPACES:
        return " "
    if code in REMOVED:
        return ""
    letters = [char for char in unicodedata.normalize("NFD", chr(code)) if ord(char) not in REMOVED]
    become = "".join(f" {char} " if ord(char) in PUNCTUATION else char.lower() for char in letters)
    return f" {become} " if code in IDEOGRAPHS else become


class _Pieces(dict[str, tuple[int, ...]]):
    """The pieces of each word; computed at first use, and cleared if there are too many."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        super().__init__()
        self._starts = {token: at for token, at in ids.items() if not token.startswith("##")}
        self._goes_on = {token[2:]: at for token, at in ids.items() if token.startswith("##")}
        self._longest = max(map(len, ids))
        self._unknown = (ids[_UNKNOWN],)

    def __missing__(self, word: str) -> tuple[int, ...]:
        found = self._cut(word) if len(word) <= MAX_WORD else self._unknown
        if len(word) <= _CACHED_CHARS:
            # Clearing everything is simple, and it happens rarely.
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[word] = found
        return found

    def _cut(self, word: str) -> tuple[int, ...]:
        found: list[int] = []
        start, known = 0, self._starts
        while start < len(word):
            end = min(len(word), start + self._longest)
            while end > start and word[start:end] not in known:
                end -= 1
            if end == start:
                return self._unknown
            found.append(known[word[start:end]])
            start, known = end, self._goes_on
        return tuple(found)


# -- windows of whole sentences -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a text, as the ids of its pieces, without special tokens."""

    sentences: range
    """The indices of its sentences; of one sentence if the window is a part of a longer one."""
    pieces: tuple[int, ...]
    ends: tuple[int, ...]
    """The end of each of its sentences, as an index into its pieces."""

    @classmethod
    def of(cls, pieces: Sequence[int], sentence: int = 0) -> Self:
        """Return a window of one sentence, or of a part of one."""
        return cls(range(sentence, sentence + 1), tuple(pieces), (len(pieces),))


def windows(sentences: Sequence[str], wordpiece: WordPiece, *, longest: int) -> tuple[Window, ...]:
    """Return windows of at most `longest` pieces, in order: one if everything fits, an empty one for no sentences.

    Each sentence is whole in exactly one window, and the windows are as few as possible, with nearly equal lengths. A
    sentence of more than `longest` pieces is separate, in equal parts that overlap by an eighth.
    """
    found: list[Window] = []
    run: list[tuple[int, ...]] = []
    for at, sentence in enumerate(sentences):
        pieces = tuple(wordpiece.ids(sentence))
        if len(pieces) <= longest:
            run.append(pieces)
            continue
        found += _balanced(run, longest, at)
        found += [Window.of(part, at) for part in _parts(pieces, longest)]
        run = []
    found += _balanced(run, longest, len(sentences))
    return tuple(found) or (Window(range(0), (), ()),)


def _balanced(sentences: Sequence[tuple[int, ...]], longest: int, end: int) -> Iterator[Window]:
    """Yield windows of sentences that end before the sentence `end` of a text."""
    fewest = len(_cut(sentences, longest))
    most = bisect_left(range(longest), -fewest, key=lambda most: -len(_cut(sentences, most)))
    start = end - len(sentences)
    for own in _cut(sentences, most):
        yield Window(range(start, start + len(own)), tuple(chain.from_iterable(own)), tuple(accumulate(map(len, own))))
        start += len(own)


def _cut(sentences: Iterable[tuple[int, ...]], most: int) -> list[list[tuple[int, ...]]]:
    """Return groups of consecutive sentences, each of at most `most` pieces or of one sentence."""
    found: list[list[tuple[int, ...]]] = []
    room = -1
    for each in sentences:
        room -= len(each)
        if room < 0:
            found.append([])
            room = max(0, most - len(each))  # an empty sentence joins any group
        found[-1].append(each)
    return found


def _parts(pieces: tuple[int, ...], longest: int) -> list[tuple[int, ...]]:
    overlap = longest // 8
    number = -(-(len(pieces) - overlap) // (longest - overlap))
    step = -(-(len(pieces) - overlap) // number)
    return [pieces[start : start + step + overlap] for start in range(0, len(pieces) - overlap, step)]
