"""Reading of numbers with their units, in digits and in words."""

from __future__ import annotations

import re
from typing import Final

from merilo.judges.slot_tokens import TokenReader
from merilo.judges.slot_types import Date, Number
from merilo.judges.slot_words import (
    AXES,
    BEFORE_ORDINAL,
    DEPENDS_ON_CASE,
    HEDGES,
    MULTIPLIERS,
    NUMERALS,
    ONES,
    ORDINALS,
    PHRASES,
    SQUARE,
    UNITS,
)

_GROUPS: Final = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_ORDINAL_END: Final = frozenset({"st", "nd", "rd", "th", "й", "го", "м", "е", "я", "ый", "ого"})
_CENTURY: Final = frozenset("century centuries jahrhundert jahrhunderts век века веке веков".split())
_SYMBOLS: Final = frozenset("$€£¥₽₹")
_PERCENT: Final = frozenset({("per", "cent"), ("pour", "cent"), ("por", "ciento")})
_MINUS: Final = frozenset("minus минус moins menos".split())
_DASHES: Final = frozenset("-–—−")
_ROMAN: Final = {
    word: value
    for value, word in enumerate(
        "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx xxi".split(), 1
    )
}
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MAX_UNIT: Final = 7
_MEANINGS: Final = dict(PHRASES)
_THAN: Final = (("than",), ("als",), ("чем",))


class NumberReader(TokenReader):
    """Reader of numbers: 1,000, twenty-four, 2 million, 5 km."""

    def read_number(self, place: int) -> int:
        """Read a number in digits or words with its multiplier and unit; return the index after it, 0 if none."""
        values, behind = self._digits(place)
        ordinal = False
        word = self.word(place)
        if not values:
            values, behind = self._numeral(place)
        elif self.word(behind) in _ORDINAL_END and self.gap(behind) in {"", "-"}:
            ordinal, behind = True, behind + 1
        if not values and word in ORDINALS and (not word.isascii() or self.word(place - 1) in BEFORE_ORDINAL):
            values, behind, ordinal = (float(ORDINALS[word]),), place + 1, True
        if not values and word in _ROMAN and self.word(place + 1) in _CENTURY:
            values, behind, ordinal = (float(_ROMAN[word]),), place + 1, True
        if not values:
            return 0
        if (ordinal or self.word(behind - 1) in ORDINALS) and self.word(behind) in _CENTURY:
            century = int(values[0])
            text = self.take(place, behind + 1)
            self.dates.append(Date(100 * (century - 1), None, None, None, text, place, years=100))
            return behind + 1
        behind, factor = self._multiplied(behind)
        factor = -factor if self._is_negative(place) else factor
        values = tuple(each * factor for each in values)
        self._quantity(place, behind, values, ordinal=ordinal)
        return behind

    def _is_negative(self, place: int) -> bool:
        """Return True for a number after a minus sign, which is not the dash of a range: "-40", "minus 40"."""
        if self.word(place - 1) in _MINUS:
            return True
        opens = place == 1 or self.gap(place - 1)[-1:] in {" ", "\n", "\t", "(", ":", "|"}
        return self.word(place - 1) in _DASHES and self.gap(place) == "" and opens

    def _multiplied(self, place: int) -> tuple[int, float]:
        """Return the index after "million" and the like, and the factor: "2 million", "$201-Million"."""
        factor = 1.0
        while self.gap(place).strip() in {"", "."}:
            at = place + (self.word(place) in _DASHES)
            if self.word(at) not in MULTIPLIERS:
                break
            factor *= MULTIPLIERS[self.word(at)]
            place = at + 1
        return place, factor

    def _digits(self, place: int) -> tuple[tuple[float, ...], int]:
        word = self.found[place].group("number")
        if word is None:
            return (), place
        bare = re.sub("[ \u00a0\u202f'’]", "", word)
        readings = set[float]()
        if _GROUPS.fullmatch(bare):
            readings.add(float(bare.replace(",", "").replace(".", "")))
            # "1,250" is a decimal in German and Russian only, and "1.250" is seldom one there.
            if ("," in bare) is not self.has_decimal_comma:
                return tuple(readings), place + 1
        for point, group in ((".", ","), (",", ".")):
            plain = bare.replace(group, "") if bare.count(point) == 1 or group in bare else bare
            if bare.count(point) <= 1 and (group not in bare or bare.rfind(group) < bare.rfind(point)):
                readings.add(float(plain.replace(point, ".")))
        if not readings:
            return (), place
        return tuple(sorted(readings)), place + 1

    def _numeral(self, place: int) -> tuple[tuple[float, ...], int]:
        """Read "twenty-four", "zweihundert", "два миллиона" and "one hundred and five"."""
        word = self.word(place)
        if word in ONES and self.word(place + 1) != "hundred":
            return (1.0,), place + 1
        total, at, seen = 0.0, place, False
        last = 1e9
        while at < len(self.low):
            value = 1.0 if self.low[at] in ONES else NUMERALS.get(self.low[at])
            if value is None or value >= last or (seen and last < 20):
                break
            total, last, seen = total + value, value, True
            at += 1
            joins = self.word(at) in {"-", "and", "und"} and last >= 20
            if joins and (self.word(at + 1) in NUMERALS or self.word(at + 1) in ONES):
                at += 1
            elif self.word(at) == "hundred" and total < 10:
                total, last, at = total * 100, 100.0, at + 1
                at += self.word(at) == "and" and self.word(at + 1) in NUMERALS
        return ((total,), at) if seen else ((), place)

    def _quantity(self, place: int, behind: int, values: tuple[float, ...], *, ordinal: bool) -> None:
        dimension, scale, end = ("ordinal", 1.0, behind) if ordinal else self._unit(behind)
        if not dimension and self.word(place - 1) in _SYMBOLS:
            dimension, scale = UNITS[self.word(place - 1)]
        first = place - (self.word(place - 1) in _SYMBOLS)
        if not dimension and self.word(behind) in _DASHES | {"to", "bis", "до"}:  # the unit follows the range
            other, after = self._digits(behind + 1) if behind + 1 < len(self.found) else ((), 0)
            if other:
                dimension, scale, _ = self._unit(after)
        text = self.take(first, max(end, behind))
        before = self.word(first - 1)
        bound = self._bound(first)
        self.numbers.append(
            Number(
                tuple(each * scale for each in values), dimension, values, text, first, behind,
                hedged=before in HEDGES, bound=bound, weak=self.word(place) in ONES,
            )
        )  # fmt: skip

    def _bound(self, place: int) -> int:
        """Return +1 if a number follows "at least" or "more than", -1 if it follows "at most" or "less than"."""
        before = tuple(self.low[max(0, place - 3) : place])
        for size in range(len(before), 0, -1):
            meaning = _MEANINGS.get(before[-size:], before[-1] if size == 1 else "")
            for axis, pole in AXES.get(meaning, ()):
                if axis in {"bound", "size"}:
                    return pole
        return dict(AXES.get(before[-2], ())).get("size", 0) if before[-1:] in _THAN and len(before) > 1 else 0

    def _unit(self, place: int) -> tuple[str, float, int]:
        """Return dimension, size and end index of the unit at a token; an empty dimension if there is none."""
        if self.gap(place).strip() not in {"", "-"}:
            return "", 1.0, place
        at = place
        if self.word(at) in _DASHES and self.gap(at) == "" and self.gap(at + 1) == "":
            at += 1
        power = 0
        while self.word(at).rstrip(".") in SQUARE:
            power, at = 3 if self.word(at).startswith(("cub", "kub", "куб")) else 2, at + 1
        word = self.word(at)
        if not word.isascii() and word not in UNITS:
            word = _unit_before(word)
        if (word, self.word(at + 1)) in _PERCENT:
            return "percent", 1.0, at + 2
        if word == "°" and self.word(at + 1) in {"c", "f", "с"}:
            return "fahrenheit" if self.word(at + 1) == "f" else "degree", 1.0, at + 2
        if word not in UNITS or word in DEPENDS_ON_CASE or (len(word) == 1 and not self._is_unit_letter(at)):
            return "", 1.0, place
        dimension, scale = UNITS[word]
        if dimension == "degree" and self.word(at + 1) in {"celsius", "fahrenheit"}:
            return UNITS[self.word(at + 1)][0], 1.0, at + 2
        if dimension == "percent" and self.word(at + 1) in {"points", "point", "punkte"}:
            return "points", 1.0, at + 2
        return (f"{dimension}{power}", scale**power, at + 1) if power else (dimension, scale, at + 1)

    def _is_unit_letter(self, place: int) -> bool:
        found = self.found[place].group()
        return not found.isupper() or found in {"W", "V"}


def _unit_before(word: str) -> str:
    """Return the unit that begins a word of a script without spaces ("公里长", "미터입니다"); the word if none does."""
    if not _UNSPACED.match(word):
        return word
    return next((word[:size] for size in range(_MAX_UNIT, 0, -1) if word[:size] in UNITS), word)
