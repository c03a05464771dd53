"""Numbers of every script in ASCII digits: full width, Devanagari, Arabic-Indic and others, and Chinese numerals."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_SIGNS: Final = str.maketrans("٫٬٪％．，：", ".,%%.,:")
_DIGITS: Final = {char: value for value, char in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_TENS: Final = {"十": 10, "百": 100, "千": 1000}
_GROUPS: Final = {"万": 10**4, "萬": 10**4, "만": 10**4, "亿": 10**8, "億": 10**8, "억": 10**8}
_NUMERAL: Final = "".join((*_DIGITS, *_TENS, "万萬亿億"))
_COUNTED: Final = "天日年月周人名次层層间間本杯台辆岁歲点點时時秒元円米吨度倍种種座所件箱位"
_CHINESE: Final = re.compile(rf"[{_NUMERAL}]{{2,}}|(?<![第{_NUMERAL}])[二两兩三四五六七八九十](?=[{_COUNTED}])")
"""A single numeral is a number only before a counted thing: 一 and 十 are parts of many other words."""
_GROUPED: Final = re.compile(r"(?<!\d)(\d{1,15}(?:\.\d{1,15})?)\s?([万萬만亿億억])")


def in_digits(text: str) -> str:
    """Return a text with its numbers in ASCII digits.

    >>> in_digits("五百箱, ٢٥٠, ４５, 3万")
    '500箱, 250, 45, 30000'
    """
    if text.isascii():
        return text
    plain = "".join(
        str(unicodedata.decimal(char)) if char.isdecimal() and not char.isascii() else char for char in text
    ).translate(_SIGNS)
    plain = _CHINESE.sub(lambda found: _value(found[0]), plain)
    return _GROUPED.sub(lambda found: f"{float(found[1]) * _GROUPS[found[2]]:.12g}", plain)


def _value(numeral: str) -> str:
    """Return the value of a Chinese numeral: 五百二十 is 520, 一九九八 is 1998."""
    if all(char in _DIGITS for char in numeral):
        return "".join(str(_DIGITS[char]) for char in numeral)
    total = part = digit = 0
    for char in numeral:
        if char in _DIGITS:
            digit = _DIGITS[char]
        elif char in _TENS:
            part, digit = part + (digit or 1) * _TENS[char], 0
        else:
            total, part, digit = total + ((part + digit) or 1) * _GROUPS[char], 0, 0
    return str(total + part + digit)
