"""Records of JSON Lines and JSON files, with a problem instead of each that cannot be read."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from io import BufferedReader
from typing import Final, NamedTuple, cast

from merilo.data import check
from merilo.data.lines import Lines, RawRecord, encoding_fault
from merilo.data.shapes import NEEDED, WRAPPERS, records_in
from merilo.errors import DataError, Problem

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_WHOLE: Final = "a complete file"
_HEAD: Final = 10_000
"""Characters in which the name of the list of records is expected."""
_CHARACTERS_OF_A_VALUE: Final = 3
"""Characters of a JSON file for each of its values, at least, if there are many."""


def json_lines(lines: Lines) -> Iterator[RawRecord]:
    """Yield the records of JSON Lines; blank lines are skipped."""
    decode = Decoder().line
    for line in lines:
        if isinstance(line, Problem):
            yield RawRecord(lines.number, None, (line,))
        elif not line.isspace():
            yield decode(line, lines.number)


def json_array(stream: BufferedReader, name: str) -> Iterator[RawRecord]:
    """Yield the records of a JSON file: the items of its array, read one at a time, or those in its object.

    Raises DataError if the file is not UTF-8 or has no records.
    """
    text = JsonText(stream, name)
    first = text.peek()
    if first == "[":
        yield from _elements(text)
    elif first == "{":
        yield from _of_object(text)
    elif first:
        raise DataError.of(Problem(NEEDED, check.shown(first), source=name))


def json_objects(stream: BufferedReader, name: str) -> Iterator[RawRecord]:
    """Yield the records of a JSON file that another system wrote: the items of an array, or each object of the file.

    Some systems write one object per line into a `.json` file. Raises DataError if the file is not UTF-8.
    """
    text = JsonText(stream, name)
    yield from _elements(text) if text.peek() == "[" else _objects(text, 0)


def _objects(text: "JsonText", place: int) -> Iterator[RawRecord]:
    """Yield each object of the rest of a file; `place`: of the object before."""
    while text.peek():
        place += 1
        found = text.value()
        if isinstance(found, Problem):
            yield RawRecord(place, None, (found,))
            text.skip_line()
        else:
            yield text.decoder.record(found.value, place)


def _of_object(text: "JsonText") -> Iterator[RawRecord]:
    """Yield the records in an object: those of the array under a known key, otherwise those that its values form."""
    found = text.value()
    if isinstance(found, Problem):
        raise DataError.of(replace(found, source=text.name))
    if text.decoder.repeated:
        got = f"the key {text.decoder.repeated[0]!r} again"
        raise DataError.of(Problem("each key once", got, source=text.name))
    values = cast("dict[str, object]", found.value)  # keys of JSON are texts
    if text.peek():  # one object per line
        yield text.decoder.record(values, 1)
        yield from _objects(text, 1)
        return
    listed = next((values[name] for name in WRAPPERS if check.is_list(values.get(name))), None)
    try:
        records = listed if check.is_list(listed) and "columns" not in values else map(dict, records_in(values))
        for place, record in enumerate(records, start=1):
            yield text.decoder.record(record, place)
    except DataError as error:
        raise DataError.of(*(replace(each, source=text.name) for each in error.problems)) from error


def _elements(text: "JsonText") -> Iterator[RawRecord]:
    """Yield the records of an array, after which nothing follows."""
    text.take("[")
    place = 0
    while place or text.peek() != "]":
        place += 1
        found = text.value()
        if isinstance(found, Problem):
            yield RawRecord(place, None, (found,))
            return
        yield text.decoder.record(found.value, place)
        if text.peek() == "]":
            break
        if not text.take(","):
            got = check.shown(char) if (char := text.peek()) else "the end of the file"
            yield RawRecord(place + 1, None, (Problem("',' or ']' after a record", got),))
            return
    text.take("]")
    if text.peek():
        yield RawRecord(place + 1, None, (Problem("the end of the JSON value after the array", "more text"),))


class JsonText:
    """The text of a JSON file, of which only the value being read is held as objects. Raises DataError."""

    def __init__(self, stream: BufferedReader, name: str) -> None:
        self.name = name
        self.decoder = Decoder()
        try:
            self._text = stream.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError.of(replace(encoding_fault(error), source=name)) from error
        head = self._text[:_HEAD].lstrip()
        is_list = not head.startswith("{") or any(f'"{each}"' in head for each in WRAPPERS)
        if check.has_too_many_values(self._text, len(self._text) // _CHARACTERS_OF_A_VALUE if is_list else 0):
            got = "brackets and commas" if is_list else f"more than {check.MAX_VALUES:,} values in an object"
            advice = "write large data as JSON Lines (.jsonl)"
            raise DataError.of(Problem("records with texts", got, source=name, advice=advice))
        self._at = 0

    def peek(self) -> str:
        """Return the next character other than white space, without taking it; empty at the end of the file."""
        self._at = _skip_space(self._text, self._at)
        return self._text[self._at : self._at + 1]

    def take(self, char: str) -> bool:
        """Return True, and take it, if this is the next character."""
        found = self.peek() == char
        self._at += found
        return found

    def skip_line(self) -> None:
        """Go to the end of the line."""
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def value(self) -> "_Value | Problem":
        """Take the next value; return the problem if there is none."""
        self.peek()
        found = self.decoder.read(self._text, self._at)
        if not isinstance(found, Problem):
            self._at = found.end
        elif self.decoder.is_cut:
            last = self._text.rstrip().count("\n") + 1
            return Problem(_WHOLE, f"one that ends inside this record (line {last})")
        return found


def _skip_space(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return found.end() if found else start


class _Value(NamedTuple):
    value: object
    end: int


class Decoder:
    """A JSON decoder that notices errors which the standard decoder ignores, such as duplicate keys.

    `repeated`: keys that the last value has twice. `is_cut`: True if its error is due to the end of the text.
    """

    def __init__(self) -> None:
        self._json = json.JSONDecoder(object_pairs_hook=self._object)
        self.repeated: list[str] = []
        self.is_cut = False

    def read(self, text: str, start: int) -> _Value | Problem:
        """Return the value that begins at `start` and its end, or the problem."""
        self.repeated.clear()
        self.is_cut = False
        try:
            return _Value(*self._json.raw_decode(text, start))
        except json.JSONDecodeError as error:
            what = error.msg[0].lower() + error.msg[1:].removesuffix(" at")
            what = "' instead of \": write it with json.dumps" if text[error.pos : error.pos + 1] == "'" else what
            got = f"invalid JSON ({what} at character {error.pos + 1})"
            self.is_cut = "Unterminated string" in error.msg or error.pos >= len(text.rstrip())
        except RecursionError:
            got = "one that is nested too deeply"
        except ValueError:  # a whole number of more than 4,300 digits
            got = "one with a number of thousands of digits"
        return Problem("a JSON object", got)

    def record(self, value: object, place: int) -> RawRecord:
        """Return the value that was read last, as a record."""
        if not isinstance(value, dict):
            return RawRecord(place, None, (Problem("an object", check.shown(value)),))
        columns = cast("dict[str, object]", value)  # keys of JSON are texts
        if len(columns) > check.MAX_COLUMNS:
            return RawRecord(place, None, (Problem(f"at most {check.MAX_COLUMNS:,} columns", f"{len(columns):,}"),))
        problems = tuple(Problem("each key once", f"the key {key!r} again") for key in self.repeated)
        return RawRecord(place, columns, problems)

    def line(self, content: bytes, place: int) -> RawRecord:
        """Return the record in a whole line, or in a whole small file."""
        try:
            text = content.rstrip().decode()
        except UnicodeDecodeError as error:
            return RawRecord(place, None, (encoding_fault(error),))
        if check.has_too_many_values(text):
            return RawRecord(place, None, (Problem(f"a record of at most {check.MAX_VALUES:,} values", "more"),))
        found = self.read(text, _skip_space(text, 0))
        if isinstance(found, Problem):
            is_cut = self.is_cut and not content.endswith(b"\n")
            return RawRecord(place, None, (Problem(_WHOLE, "one that ends inside this line") if is_cut else found,))
        end = _skip_space(text, found.end)
        if end < len(text):
            more = Problem("one JSON object per line", f"more text at character {end + 1}")
            return RawRecord(place, None, (more,))
        return self.record(found.value, place)

    def _object(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) != len(pairs):
            self.repeated += [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
        return found
