"""The language of the screen: messages in English, looked up in a table of translations when a line is printed.

A table (`messages/<language>.json`) has two parts. `messages` are whole lines or sentences. `phrases` are words and
parts of messages: headings, labels, units, reasons. They apply only where merilo's own words are known to be, so that a
text of the user that happens to equal one is never translated.

A key is the English text with placeholders:

- `{n}`, `{n2}`: a whole number. `{n:sample}`: a number of things, `1 sample` or `2 samples`; its translation lists the
  three forms of Russian, `{n:образец,образца,образцов}`.
- `{x}`, `{x2}`: any number. `{t}`: a text that is translated too. `{list}`: several of them, separated by `; ` or `, `.
- any other name: a text that stays as it is, such as a path or the name of a metric.

What the table does not have stays English. Numbers, stored files and JSON are never translated.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    _Phrase = Callable[[str], str]

PLACEHOLDER: Final = re.compile(r"\{([^\W\d]++)(\d*+)(?::([^{}]++))?\}")
"""A placeholder of a message: kind, number, and the forms of the counted thing."""
_NUMBER: Final = r"[\d,]+"
_AMOUNT: Final = r"-?[\d.,]+ ?%?"
_SENTENCE_END: Final = re.compile(r"(?<=[.]) (?=[A-Z0-9])")
_MAX_CHARS: Final = 2_000
"""Longer texts are not merilo's own."""
_MAX_DEPTH: Final = 3
"""Levels of parts within parts of a message. A limit, since a text of a judge may look like many nested messages."""
_TEENS: Final = range(11, 15)
_FEW: Final = range(2, 5)


class Translation:
    """Translates lines of the screen; without a table of the language, returns them unchanged."""

    def __init__(self, messages: Mapping[str, str], phrases: Mapping[str, str]) -> None:
        self._messages = [*_compiled(messages)]
        self._phrases = [*_compiled(phrases), *self._messages]

    def line(self, text: str) -> str:
        """Return a line or paragraph, translated as a whole or sentence by sentence."""
        if not self._messages or not text or len(text) > _MAX_CHARS:
            return text
        found = _first(self._messages, text, partial(self._nested, depth=1))
        if found is not None:
            return found
        sentences = _SENTENCE_END.split(text)
        return " ".join(map(self.line, sentences)) if len(sentences) > 1 else text

    def phrase(self, text: str) -> str:
        """Return a word or part of a message, translated."""
        return self._nested(text, depth=0)

    def _nested(self, text: str, depth: int) -> str:
        """Translate a part of a message; deeper than messages nest, the text is not merilo's and stays."""
        if not self._phrases or depth > _MAX_DEPTH or len(text) > _MAX_CHARS:
            return text
        found = _first(self._phrases, text, partial(self._nested, depth=depth + 1))
        return text if found is None else found

    def lines(self, text: str) -> str:
        """Return a text with each of its lines translated."""
        return "\n".join(map(self.line, text.split("\n")))


class _Message:
    """One entry of a table: a pattern for the English text, and the template of its translation."""

    def __init__(self, english: str, translated: str) -> None:
        self._translated = translated
        self._places = [found.group(1) + found.group(2) for found in PLACEHOLDER.finditer(english)]
        parts, at = list[str](), 0
        for found in PLACEHOLDER.finditer(english):
            parts += [re.escape(english[at : found.start()]), _pattern(found)]
            at = found.end()
        parts.append(re.escape(english[at:]))
        self._pattern = re.compile("".join(parts), re.DOTALL)
        self.weight = len(PLACEHOLDER.sub("", english))

    def of(self, text: str, phrase: _Phrase) -> str | None:
        """Return the translation of a text; None if it is another message."""
        found = self._pattern.fullmatch(text)
        if found is None:
            return None
        values = dict(zip(self._places, found.groups(), strict=True))
        return PLACEHOLDER.sub(lambda place: _filled(place, values, phrase), self._translated)


@lru_cache(maxsize=8)
def translation(language: str | None) -> Translation:
    """Return the translation into a language such as `ru` or `ru-RU`; None and unknown languages give English."""
    tag = re.split("[-_]", language or "en")[0].lower()
    file = files("merilo").joinpath("rendering", "messages", f"{tag}.json")
    if tag == "en" or not tag.isalpha() or not file.is_file():
        return Translation({}, {})
    table: dict[str, dict[str, str]] = json.loads(file.read_text(encoding="utf-8"))
    return Translation(table["messages"], table["phrases"])


def _compiled(table: Mapping[str, str]) -> list[_Message]:
    """Return the entries of a table, those with the longest fixed text first."""
    return sorted((_Message(*each) for each in table.items()), key=lambda each: -each.weight)


def _first(messages: Iterable[_Message], text: str, phrase: _Phrase) -> str | None:
    """Return the first translation that differs from the text; None if there is none."""
    found = (each.of(text, phrase) for each in messages)
    return next((each for each in found if each is not None and each != text), None)


def _pattern(place: re.Match[str]) -> str:
    """Return the pattern of a placeholder's value."""
    kind, _, thing = place.groups()
    if kind == "n" and thing:
        one, _, many = thing.partition("/")
        return f"({_NUMBER} (?:{re.escape(one)}|{re.escape(many or one + 's')}))"
    return {"n": f"({_NUMBER})", "x": f"({_AMOUNT})"}.get(kind, "(.+?)")


def _filled(place: re.Match[str], values: Mapping[str, str], phrase: _Phrase) -> str:
    kind, number, forms = place.groups()
    value = values[kind + number]
    match kind:
        case "n":
            amount = value.split(" ")[0]
            shown = amount.replace(",", " ")
            return shown if forms is None else f"{shown} {plural(int(amount.replace(',', '')), *forms.split(','))}"
        case "t":
            return phrase(value)
        case "list":
            return _each(value, phrase)
        case _:
            return value


def _each(text: str, phrase: _Phrase) -> str:
    """Translate the parts of a list."""
    if "; " in text:
        return "; ".join(_each(part, phrase) for part in text.split("; "))
    found = phrase(text)
    return ", ".join(map(phrase, text.split(", "))) if found == text else found


def plural(amount: int, one: str, few: str, many: str) -> str:
    """Return the form of a Russian noun after a number: 1 образец, 2 образца, 5 образцов, 21 образец."""
    if amount % 100 in _TEENS:
        return many
    if amount % 10 == 1:
        return one
    return few if amount % 10 in _FEW else many
