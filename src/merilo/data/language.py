"""Detection of a text's language from its script alone."""

from bisect import bisect_right
from collections import Counter
from typing import NamedTuple

_LOOKED_AT_CHARS = 2000
_NEEDED_SHARE = 1 / 3


class _Block(NamedTuple):
    """Code points `first` to `last` of a script; one character counts as `weight` letters."""

    first: int
    last: int
    script: str
    weight: int


_BLOCKS = (
    _Block(0x0041, 0x024F, "latin", 1),
    _Block(0x0370, 0x03FF, "el", 1),
    _Block(0x0400, 0x052F, "ru", 1),
    _Block(0x0590, 0x05FF, "he", 1),
    _Block(0x0600, 0x06FF, "ar", 1),
    _Block(0x0750, 0x077F, "ar", 1),
    _Block(0x0900, 0x097F, "hi", 1),
    _Block(0x0E00, 0x0E7F, "th", 1),
    _Block(0x1100, 0x11FF, "ko", 2),
    _Block(0x1E00, 0x1EFF, "latin", 1),
    _Block(0x1F00, 0x1FFF, "el", 1),
    _Block(0x3040, 0x30FF, "kana", 3),
    _Block(0x3400, 0x4DBF, "han", 3),
    _Block(0x4E00, 0x9FFF, "han", 3),
    _Block(0xAC00, 0xD7AF, "ko", 2),
    _Block(0xF900, 0xFAFF, "han", 3),
    _Block(0xFB1D, 0xFB4F, "he", 1),
    _Block(0xFB50, 0xFDFF, "ar", 1),
    _Block(0xFE70, 0xFEFF, "ar", 1),
    _Block(0xFF66, 0xFF9D, "kana", 3),
    _Block(0x20000, 0x323AF, "han", 3),
)
_FIRSTS = [block.first for block in _BLOCKS]


def detect_language(text: str) -> str:
    """Return the code of the language that the script of `text` suggests; "en" if no other script dominates.

    Reads the first 2,000 characters. A script other than Latin decides if it has a third of the letters, because
    texts in every script contain Latin names. Han with kana is Japanese. Languages that share a script are not
    distinguished: all Cyrillic is "ru", all Latin "en".
    """
    if text.isascii():
        return "en"
    weights: Counter[str] = Counter()
    for char, count in Counter(text[:_LOOKED_AT_CHARS]).items():
        if char.isalpha():
            code = ord(char)
            block = _BLOCKS[max(bisect_right(_FIRSTS, code) - 1, 0)]
            if code <= block.last:
                weights[block.script] += count * block.weight
    total = sum(weights.values())
    del weights["latin"]
    if weights["kana"]:
        weights["ja"] = weights.pop("kana") + weights.pop("han", 0)
    elif weights["han"]:
        weights["zh"] = weights.pop("han")
    script, weight = max(weights.items(), key=lambda item: item[1], default=("en", 0))
    return script if weight and weight >= total * _NEEDED_SHARE else "en"
