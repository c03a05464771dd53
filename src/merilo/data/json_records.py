"""Records of JSON Lines and JSON files, with a problem instead of each that cannot be read."""

import json
import re
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from merilo.data import check
from merilo.data.lines import BOM, Lines, Peekable, RawRecord, encoding_fault
from merilo.errors import DataError, Problem

MAX_JSON_BYTES: Final = 256 * 2**20

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_WRAPPERS: Final = ("samples", "data", "rows")
_NEEDED: Final = "an array of objects, or an object that contains one as 'samples', 'data' or 'rows'"


def json_lines(lines: Lines) -> Iterator[RawRecord]:
    """Yield the records of JSON Lines; blank lines are skipped."""
    decode = _Decoder().line
    for line in lines:
        if isinstance(line, Problem):
            yield RawRecord(lines.number, None, (line,))
        elif not line.isspace():
            try:
                text = line.rstrip().decode()
            except UnicodeDecodeError as error:
                yield RawRecord(lines.number, None, (encoding_fault(error),))
            else:
                yield decode(text, lines.number)


def json_array(stream: Peekable, name: str) -> Iterator[RawRecord]:
    """Yield the records of a JSON file; the text is read whole, its records one at a time.

    Raises DataError if the file is too long, is not UTF-8 or has no array of records.
    """
    text = _whole_text(stream, name)
    start = _skip_space(text, 0)
    if start == len(text):
        return
    is_array = text.startswith("[", start)
    first = start + 1 if is_array else _array_start(text, start)
    if isinstance(first, Problem):
        raise DataError.of(replace(first, source=name))
    count, end = yield from _elements(text, first)
    if end is not None and is_array is not (end == len(text)):
        got = "more text" if is_array else "the end of the file"
        yield RawRecord(count + 1, None, (Problem("the end of the JSON value after the array", got),))


def json_objects(stream: Peekable, name: str) -> Iterator[RawRecord]:
    """Yield the records of a JSON file that another system wrote: the items of an array, or each object of the file.

    Some systems write one object per line into a `.json` file. Raises DataError if the file is too long or is not
    UTF-8.
    """
    text = _whole_text(stream, name)
    position = _skip_space(text, 0)
    if text.startswith("[", position):
        yield from _elements(text, position + 1)
        return
    decoder, place = _Decoder(), 0
    while position < len(text):
        place += 1
        found = decoder.read(text, position)
        if isinstance(found, Problem):
            yield RawRecord(place, None, (found,))
            end = text.find("\n", position)
            position = len(text) if end < 0 else _skip_space(text, end)
        else:
            yield decoder.record(found.value, place)
            position = _skip_space(text, found.end)


def _whole_text(stream: Peekable, name: str) -> str:
    """Return the text of a JSON file. Raises DataError if it is too long or is not UTF-8."""
    content = stream.read(MAX_JSON_BYTES + 1)
    if len(content) > MAX_JSON_BYTES:
        needed, advice = (
            f"a file of at most {MAX_JSON_BYTES:,} bytes",
            "write large data as JSON Lines (.jsonl)",
        )
        raise DataError.of(Problem(needed, "a longer one", source=name, advice=advice))
    try:
        return content.removeprefix(BOM).decode()
    except UnicodeDecodeError as error:
        raise DataError.of(replace(encoding_fault(error), source=name)) from error


def _array_start(text: str, start: int) -> int | Problem:
    """Return the position of the first record in an object that contains the array under one of its keys."""
    if not text.startswith("{", start):
        return Problem(_NEEDED, _sign(text, start))
    decoder = _Decoder()
    position = _skip_space(text, start + 1)
    kinds: set[type] = set()
    while not text.startswith("}", position):
        key = decoder.read(text, position)
        if isinstance(key, Problem):
            return key
        position = _skip_space(text, key.end)
        if not text.startswith(":", position):
            return Problem("':' after a key", _sign(text, position))
        position = _skip_space(text, position + 1)
        if key.value in _WRAPPERS and text.startswith("[", position):
            return position + 1
        value = decoder.read(text, position)
        if isinstance(value, Problem):
            return value
        kinds.add(type(value.value))
        position = _skip_space(text, value.end)
        if text.startswith(",", position):
            position = _skip_space(text, position + 1)
        elif not text.startswith("}", position):
            return Problem("',' or '}' after a value", _sign(text, position))
    is_lines = _skip_space(text, position + 1) < len(text)
    advice = "if the file has one object per line, name it .jsonl" if is_lines else ""
    if kinds == {dict}:  # each a column, by the numbers of the rows
        advice = "from pandas, write the array with to_json(orient='records')"
    return Problem(_NEEDED, "an object without", advice=advice)


def _elements(text: str, start: int) -> Generator[RawRecord, None, tuple[int, int | None]]:
    """Yield the records of an array after its "["; return their number and the position after its "]"."""
    decoder = _Decoder()
    position = _skip_space(text, start)
    if text.startswith("]", position):
        return 0, _skip_space(text, position + 1)
    place = 0
    while True:
        place += 1
        found = decoder.read(text, position)
        if isinstance(found, Problem):
            yield RawRecord(place, None, (found,))
            return place, None
        yield decoder.record(found.value, place)
        position = _skip_space(text, found.end)
        if text.startswith("]", position):
            return place, _skip_space(text, position + 1)
        if not text.startswith(",", position):
            yield RawRecord(place + 1, None, (Problem("',' or ']' after a record", _sign(text, position)),))
            return place + 1, None
        position = _skip_space(text, position + 1)


def _skip_space(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return found.end() if found else start


def _sign(text: str, position: int) -> str:
    return check.shown(text[position]) if position < len(text) else "the end of the file"


class _Value(NamedTuple):
    value: object
    end: int


class _Decoder:
    """A JSON decoder that notices errors which the standard decoder ignores, such as duplicate keys."""

    def __init__(self) -> None:
        self._json = json.JSONDecoder(object_pairs_hook=self._object)
        self._repeated: list[str] = []

    def read(self, text: str, start: int) -> _Value | Problem:
        """Return the value that begins at `start` and its end, or the problem."""
        self._repeated.clear()
        try:
            return _Value(*self._json.raw_decode(text, start))
        except json.JSONDecodeError as error:
            what = error.msg[0].lower() + error.msg[1:].removesuffix(" at")
            got = f"invalid JSON ({what} at character {error.pos + 1})"
        except RecursionError:
            got = "one that is nested too deeply"
        except ValueError:  # a whole number of more than 4,300 digits
            got = "one with a number of thousands of digits"
        return Problem("a JSON object", got)

    def record(self, value: object, place: int) -> RawRecord:
        """Return the value that was read last, as a record."""
        if not isinstance(value, dict):
            return RawRecord(place, None, (Problem("an object", check.shown(value)),))
        problems = tuple(Problem("each key once", f"the key {key!r} again") for key in self._repeated)
        return RawRecord(place, value, problems)

    def line(self, text: str, place: int) -> RawRecord:
        """Return the record in a whole line."""
        found = self.read(text, _skip_space(text, 0))
        if isinstance(found, Problem):
            return RawRecord(place, None, (found,))
        end = _skip_space(text, found.end)
        if end < len(text):
            more = Problem("one JSON object per line", f"more text at character {end + 1}")
            return RawRecord(place, None, (more,))
        return self.record(found.value, place)

    def _object(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) != len(pairs):
            self._repeated += [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
        return found
