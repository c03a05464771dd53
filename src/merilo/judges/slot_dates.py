"""Reading of dates and times of day."""

from __future__ import annotations

from typing import Final

from merilo.judges.slot_tokens import TokenReader
from merilo.judges.slot_types import Date
from merilo.judges.slot_words import (
    AMBIGUOUS_MONTHS,
    BEFORE_YEAR,
    FUNCTION_WORDS,
    MONTHS,
    UNITS,
    WEEKDAYS,
)

_ORDINAL_END: Final = frozenset({"st", "nd", "rd", "th", "й", "го", "м", "е", "я", "ый", "ого"})
_PLURAL_YEAR: Final = frozenset("s er ern е х".split())
_YEAR_UNITS: Final = frozenset("год года году г гг".split())
_COUNTED: Final = frozenset("people men women children einwohner menschen".split())
_SYMBOLS: Final = frozenset("$€£¥₽₹")
_DASHES: Final = frozenset("-–—−")
_YEARS: Final = range(1000, 2101)


class DateReader(TokenReader):
    """Reader of dates: 12 March 2020, 2020-03-12, 12.03.2020, the 1990s, 14:30."""

    def read_date(self, place: int) -> int:
        """Read a date that begins at a token; return the index after it, 0 if there is none."""
        word = self.word(place)
        if word in WEEKDAYS and (word != "среду" or self.word(place - 1) == "в"):
            self.dates.append(Date(None, None, None, WEEKDAYS[word], self.take(place, place + 1), place))
            return place + 1
        number = self.integer(place)
        if number is None:
            return self._month(place) or self._dotted(place)
        return self._iso(place) or self._day(place, number) or self._year(place, number)

    def _month(self, place: int) -> int:
        month = MONTHS.get(self.word(place))
        if month is None or (not self.found[place].group()[0].isupper() and self.word(place).isascii()):
            return 0
        behind, day, year = place + 1, self.integer(place + 1), None
        if day is not None and 1 <= day <= 31:
            behind += 1
            if self.word(behind) in _ORDINAL_END and not self.gap(behind):
                behind += 1
        else:
            day = None
        ahead = behind + (self.word(behind) in {"of", "des", "jahres"})
        number = self.integer(ahead)
        if number in _YEARS and len(self.word(ahead)) == 4:
            year, behind = number, ahead + 1
        preposed = self.word(place - 1) in {"in", "im", "since", "until", "by", "from", "seit", "ab", "в", "с", "до"}
        if day is None and year is None and self.word(place) in AMBIGUOUS_MONTHS and not preposed:
            return 0
        self.dates.append(Date(year, month, day, None, self.take(place, behind), place))
        return behind

    def _iso(self, place: int) -> int:
        """Read 2020-03-12 and 12/03/2020."""
        parts = [self.integer(place)]
        at = place
        signs: list[str] = []
        while len(parts) < 3 and at + 1 < len(self.found):
            gap = self.gap(at + 1).strip()
            step = 1
            if not gap and self.word(at + 1) in _DASHES:
                gap, step = "-", 2
            if gap not in {"-", "/"} or self.integer(at + step) is None:
                return 0
            at += step
            signs.append(gap)
            parts.append(self.integer(at))
        if len(parts) != 3 or len(set(signs)) != 1:
            return 0
        first, second, third = (each or 0 for each in parts)
        if first in _YEARS and signs[0] == "-" and 1 <= second <= 12 and 1 <= third <= 31:
            self.dates.append(Date(first, second, third, None, self.take(place, at + 1), place))
        elif third in _YEARS and signs[0] == "/" and max(first, second) <= 31 and min(first, second) <= 12:
            day, month = (first, second) if second <= 12 else (second, first)
            text = self.take(place, at + 1)
            self.dates.append(Date(third, month, day, None, text, place, swapped=max(first, second) <= 12))
        else:
            return 0
        return at + 1

    def _dotted(self, place: int) -> int:
        """Read 12.03.2020, which is a single token."""
        parts = self.word(place).split(".")
        if len(parts) != 3 or not all(each.isdigit() for each in parts) or len(parts[2]) != 4:
            return 0
        day, month, year = map(int, parts)
        if not (1 <= day <= 31 and 1 <= month <= 12 and year in _YEARS):
            return 0
        self.dates.append(Date(year, month, day, None, self.take(place, place + 1), place))
        return place + 1

    def _day(self, place: int, number: int) -> int:
        """Read "12 March 2020", "12th of March" and "12. März"."""
        ahead = place + 1
        if self.word(ahead) in _ORDINAL_END and not self.gap(ahead):
            ahead += 1
        ahead += self.word(ahead) in {"of", "de"}
        month = MONTHS.get(self.word(ahead))
        if month is None or not 1 <= number <= 31 or len(self.gap(ahead).strip(" .")) > 0:
            return 0
        behind = ahead + 1
        behind += self.word(behind) == "de" and self.integer(behind + 1) in _YEARS
        year = self.integer(behind)
        if year in _YEARS and len(self.word(behind)) == 4:
            behind += 1
        else:
            year = None
        self.dates.append(Date(year, month, number, None, self.take(place, behind), place))
        return behind

    def _year(self, place: int, number: int) -> int:
        word, after = self.word(place), self.word(place + 1)
        after = "" if after[:1] in {"年", "년"} else after
        if len(word) != 4 or number not in _YEARS:
            return 0
        before = self.word(place - 1)
        near = not self.gap(place + 1).strip()
        if after in _PLURAL_YEAR and self.gap(place + 1) in {"", "-"} and number % 10 == 0:
            self.dates.append(Date(number, None, None, None, self.take(place, place + 2), place, years=10))
            return place + 2
        if before in _SYMBOLS or (near and (after in _SYMBOLS or (after in UNITS and after not in _YEAR_UNITS))):
            return 0
        counted = near and after.isalpha() and after not in FUNCTION_WORDS and after not in _YEAR_UNITS
        counted = counted and (not after.isascii() or after.endswith("s") or after in _COUNTED)
        if counted and before not in BEFORE_YEAR and before not in _DASHES:
            return 0
        self.dates.append(Date(number, None, None, None, self.take(place, place + 1), place))
        later = self.integer(place + 2)
        if after in _DASHES and later is not None and len(self.word(place + 2)) == 2 and later > number % 100:
            year = number - number % 100 + later  # 1979-86
            self.dates.append(Date(year, None, None, None, self.take(place + 2, place + 3), place + 2))
            return place + 3
        return place + 1

    def read_clock(self, place: int) -> int:
        """Read "14:30" and "2 pm" as minutes."""
        hour = self.integer(place)
        if hour is None or hour > 24:
            return 0
        behind, minute = place + 1, 0
        if self.gap(behind) == ":" and behind < len(self.found):
            minute = self.integer(behind) or 0
            behind += 1
        half = self.word(behind) + self.word(behind + 1)
        if self.word(behind) in {"am", "pm"} and self.gap(behind).strip() == "":
            half, behind = self.word(behind), behind + 1
        elif half in {"am", "pm"} and self.gap(behind + 1) == ".":
            behind += 2
        elif behind == place + 1:
            return 0
        else:
            half = ""
        hour = hour % 12 + (12 if half == "pm" else 0) if half else hour
        self.clocks.append((60 * hour + minute, place))
        self.take(place, behind)
        return behind
