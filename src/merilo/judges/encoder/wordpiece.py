"""Texts as token ids: the WordPiece tokenizer of uncased BERT models, in pure Python.

It returns the same ids as the `tokenizers` package with special tokens treated as plain text: a text is data, so none
can contain `[SEP]` and end itself (`training/encoder/check_wordpiece.py` compares the two). After Devlin et al.,
"BERT" (2019), and the reference's normalizer: drop control characters, separate ideographs, remove accents (NFD),
lower the case, separate punctuation, then take the longest known piece first.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


# -- character classes of the reference tokenizer -----------------------------------------------------
# They are written out because Python's own tables grow with each release, and a text must be read the same by all of
# them. The reference knows the categories of Unicode 8: marks, format characters and punctuation added later are
# letters.


class Ranges:
    """A set of code points, given as ranges in ascending order: `Ranges("9-10 32")`."""

    def __init__(self, ranges: str) -> None:
        bounds = [each.partition("-") for each in ranges.split()]
        self._first = [int(low) for low, _, _ in bounds]
        self._last = [int(high or low) for low, _, high in bounds]

    def __contains__(self, code: int) -> bool:
        place = bisect_right(self._first, code) - 1
        return place >= 0 and code <= self._last[place]


SPACES: Final = Ranges("9-10 13 32 160 5760 8192-8202 8232-8233 8239 8287 12288")
"""White space."""

IDEOGRAPHS: Final = Ranges(
    """
    13312-19903 19968-40959 63744-64255 131072-173791 173824-178207 178464-183983 194560-195103
    """
)
"""Ideographs. Each is a separate word."""

PUNCTUATION: Final = Ranges(
    """
    33-47 58-64 91-96 123-126 161 167 171 182-183 187 191 894 903 1370-1375 1417-1418 1470 1472 1475 1478 1523-1524
    1545-1546 1548-1549 1563 1566-1567 1642-1645 1748 1792-1805 2039-2041 2096-2110 2142 2404-2405 2416 2800 3572
    3663 3674-3675 3844-3858 3860 3898-3901 3973 4048-4052 4057-4058 4170-4175 4347 4960-4968 5120 5741-5742
    5787-5788 5867-5869 5941-5942 6100-6102 6104-6106 6144-6154 6468-6469 6686-6687 6816-6822 6824-6829 7002-7008
    7164-7167 7227-7231 7294-7295 7360-7367 7379 8175 8208-8231 8240-8259 8261-8273 8275-8286 8317-8318 8333-8334
    8800 8814-8815 8968-8971 9001-9002 10088-10101 10181-10182 10214-10223 10627-10648 10712-10715 10748-10749
    11513-11516 11518-11519 11632 11776-11822 11824-11842 12289-12291 12296-12305 12308-12319 12336 12349 12448
    12539 42238-42239 42509-42511 42611 42622 42738-42743 43124-43127 43214-43215 43256-43258 43260 43310-43311
    43359 43457-43469 43486-43487 43612-43615 43742-43743 43760-43761 44011 64830-64831 65040-65049 65072-65106
    65108-65121 65123 65128 65130-65131 65281-65283 65285-65290 65292-65295 65306-65307 65311-65312 65339-65341
    65343 65371 65373 65375-65381 65792-65794 66463 66512 66927 67671 67871 67903 68176-68184 68223 68336-68342
    68409-68415 68505-68508 69703-69709 69819-69820 69822-69825 69952-69955 70004-70005 70085-70089 70093 70107
    70109-70111 70200-70205 70313 70854 71105-71127 71233-71235 71484-71486 74864-74868 92782-92783 92917
    92983-92987 92996 113823 121479-121483
    """
)
"""Punctuation. Each character is a separate word."""

REMOVED: Final = Ranges(
    """
    0-8 11-12 14-31 127-159 173 768-879 1155-1159 1425-1469 1471 1473-1474 1476-1477 1479 1536-1541 1552-1562 1564
    1611-1631 1648 1750-1757 1759-1764 1767-1768 1770-1773 1807 1809 1840-1866 1958-1968 2027-2035 2070-2073
    2075-2083 2085-2087 2089-2093 2137-2139 2275-2306 2362 2364 2369-2376 2381 2385-2391 2402-2403 2433 2492
    2497-2500 2509 2530-2531 2561-2562 2620 2625-2626 2631-2632 2635-2637 2641 2672-2673 2677 2689-2690 2748
    2753-2757 2759-2760 2765 2786-2787 2817 2876 2879 2881-2884 2893 2902 2914-2915 2946 3008 3021 3072 3134-3136
    3142-3144 3146-3149 3157-3158 3170-3171 3201 3260 3263 3270 3276-3277 3298-3299 3329 3393-3396 3405 3426-3427
    3530 3538-3540 3542 3633 3636-3642 3655-3662 3761 3764-3769 3771-3772 3784-3789 3864-3865 3893 3895 3897
    3953-3966 3968-3972 3974-3975 3981-3991 3993-4028 4038 4141-4144 4146-4151 4153-4154 4157-4158 4184-4185
    4190-4192 4209-4212 4226 4229-4230 4237 4253 4957-4959 5906-5908 5938-5940 5970-5971 6002-6003 6068-6069
    6071-6077 6086 6089-6099 6109 6155-6158 6313 6432-6434 6439-6440 6450 6457-6459 6679-6680 6683 6742 6744-6750
    6752 6754 6757-6764 6771-6780 6783 6832-6845 6912-6915 6964 6966-6970 6972 6978 7019-7027 7040-7041 7074-7077
    7080-7081 7083-7085 7142 7144-7145 7149 7151-7153 7212-7219 7222-7223 7376-7378 7380-7392 7394-7400 7405 7412
    7416-7417 7616-7669 7676-7679 8203-8207 8234-8238 8288-8292 8294-8303 8400-8412 8417 8421-8432 11503-11505 11647
    11744-11775 12330-12333 12441-12442 42607 42612-42621 42654-42655 42736-42737 43010 43014 43019 43045-43046
    43204 43232-43249 43302-43309 43335-43345 43392-43394 43443 43446-43449 43452 43493 43561-43566 43569-43570
    43573-43574 43587 43596 43644 43696 43698-43700 43703-43704 43710-43711 43713 43756-43757 43766 44005 44008
    44013 55296-63743 64286 65024-65039 65056-65071 65279 65529-65531 65533 66045 66272 66422-66426 68097-68099
    68101-68102 68108-68111 68152-68154 68159 68325-68326 69633 69688-69702 69759-69761 69811-69814 69817-69818
    69821 69888-69890 69927-69931 69933-69940 70003 70016-70017 70070-70078 70090-70092 70191-70193 70196
    70198-70199 70367 70371-70378 70400-70401 70460 70464 70502-70508 70512-70516 70835-70840 70842 70847-70848
    70850-70851 71090-71093 71100-71101 71103-71104 71132-71133 71219-71226 71229 71231-71232 71339 71341
    71344-71349 71351 71453-71455 71458-71461 71463-71467 92912-92916 92976-92982 94095-94098 113821-113822
    113824-113827 119143-119145 119155-119170 119173-119179 119210-119213 119362-119364 121344-121398 121403-121452
    121461 121476 121499-121503 121505-121519 125136-125142 917505 917536-917631 917760-917999 983040-1048573
    1048576-1114109
    """
)
"""Control, format and private-use characters, surrogates, and combining marks."""


# -- the tokenizer ------------------------------------------------------------------------------------

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
        self.size = len(ids)
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

    Each window begins in the middle of the previous one, or later if it would be too long otherwise. A sentence of
    more than `longest` pieces is separate, in parts that overlap by half.
    """
    pieces = [tuple(wordpiece.ids(sentence)) for sentence in sentences]
    pieces_before = [0, *accumulate(map(len, pieces))]
    found: list[Window] = []
    first = 0

    def close(end: int) -> None:
        if end > first:
            ends = tuple(each - pieces_before[first] for each in pieces_before[first + 1 : end + 1])
            flat = tuple(piece for each in pieces[first:end] for piece in each)
            found.append(Window(range(first, end), flat, ends))

    for at, each in enumerate(pieces):
        if len(each) > longest:
            close(at)
            found.extend(Window.of(part, at) for part in _parts(each, longest))
            first = at + 1
        elif at > first and pieces_before[at + 1] - pieces_before[first] > longest:
            close(at)
            # Half of the previous window is read again, so a sentence near an end also has its neighbours on both
            # sides.
            first += max(1, (at - first) // 2)
            while pieces_before[at + 1] - pieces_before[first] > longest:
                first += 1
    close(len(pieces))
    return tuple(found) or (Window(range(0), (), ()),)


def _parts(pieces: tuple[int, ...], longest: int) -> list[tuple[int, ...]]:
    step = max(1, longest // 2)
    last = len(pieces) - longest
    return [pieces[start : start + longest] for start in [*range(0, last, step), last]]
