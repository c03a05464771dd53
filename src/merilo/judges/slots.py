"""Comparison of the slots of an English statement with a sentence: numbers with units, dates, names, negation.

`conflict` names the first slot in which a statement differs from a sentence. A difference can only lower a verdict.
Numbers are equal in any form: "4 hours" and "240 minutes", "two thirds of" excepted, "1,000" and "one thousand".
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.data.values import (
    FUNCTION_WORDS,
    Date,
    Number,
    Reader,
    Values,
    composed,
    dates_differ,
    equal,
    has_date,
    has_number,
    has_values,
    word_set,
)
from merilo.judges.words import coverage, shares, stems

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_TABLES: Final[dict[str, Any]] = tomllib.loads(files("merilo.judges").joinpath("slots.toml").read_text("utf-8"))
_NEGATIONS: Final = word_set(_TABLES["negations"])
_LIMITING: Final = word_set("only either both some most any if unless")
"""Words that change what a negation means: "only for this" says the same as "not for another"."""
_OPPOSITES: Final = [tuple(map(word_set, text.split("/"))) for text in _TABLES["opposites"].values()]
_UNWEIGHED: Final = _NEGATIONS.union(*(one | other for one, other in _OPPOSITES))
_MAX_CACHED: Final = 1_000
"""Characters. The slots of a longer text are read each time."""
_MIN_OTHER: Final = 0.6
"""Fraction of a statement's other words, by weight, from which a sentence is about the same."""
_MIN_NAMES: Final = 0.75
"""The same for a name: a sentence often has another one, or a pronoun."""
_RIVAL: Final = 0.8
"""Fraction of the best sentence's share from which another sentence may be meant as well."""
_ALL: Final = 0.9
"""Fraction of the words from which two sentences have the same words."""
_MAX_CLOSE: Final = 20
_JOINED: Final = re.compile(r"[;,]? (?:and|while|whereas|but) |;")


class Difference(NamedTuple):
    """A slot of a statement and the slot of the sentence that it differs from, as written; empty if there is none."""

    kind: str
    stated: str
    found: str


@dataclass(frozen=True, slots=True)
class Slots(Values):
    """The slots of a text."""

    names: tuple[str, ...]
    words: frozenset[str]
    """All words, in lower case."""
    rest: str
    """The text without its numbers, dates, negations and words of an axis."""
    denied: tuple[str, ...]
    """The stem of the first content word after each negation; empty if there is none."""


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
        return Slots(numbers, dates, names, frozenset(self.low), rest, tuple(self._denied()))

    def _names(self) -> Iterator[str]:
        for place, each in enumerate(self.found):
            word = each.group()
            if each["word"] is None or not word[0].isupper() or place in self.used or self.low[place] in FUNCTION_WORDS:
                continue
            before = self.text[max(0, each.start() - 3) : each.start()].rstrip()
            opens = not before or before[-1] in '.!?:;\n"“„«(|•*#>-–'
            follows = self.found[place + 1].group()[:1].isupper() if place + 1 < len(self.found) else False
            if not opens or follows or (len(word) > 1 and word.isupper()):
                yield word.removesuffix("'s").removesuffix("’s")

    def _denied(self) -> Iterator[str]:
        for at, word in enumerate(self.low):
            answers = at == 0 and word == "no" and self.gap(1).strip()[:1] in {",", ".", "!"}
            if (word in _NEGATIONS or word.endswith("n't")) and not answers:
                after = (each for each in self.low[at + 1 : at + 6] if each not in FUNCTION_WORDS and each[0].isalnum())
                yield "".join(stems(next(after, "")))


def written_alike(statement: str, contexts: Iterable[Sequence[str]]) -> str:
    """Return a statement with its numbers and dates as the closest sentences of contexts write equal ones.

    >>> written_alike("The trail is 1.5 km long.", [["The trail is 1,500 m long."]])
    'The trail is 1,500 m long.'
    """
    mine, texts, written = slots(statement), [text for context in contexts for text in context], composed(statement)
    values = [each for each in mine.values if isinstance(each, Date) or not each.hedged]
    ranked = sorted(zip(shares(mine.rest, texts if values else ()), texts, strict=False), key=lambda each: -each[0])
    close = [slots(text) for share, text in ranked[:_MAX_CLOSE] if share >= _MIN_OTHER]
    for each in values:
        others = (other for own in close for other in own.values if _is_same(each, other))
        if (other := next(others, None)) is not None:
            text = re.escape(each.text)
            written = re.sub(rf"(?<![\d.,]){text}(?!\d)", other.text, written, count=1)
    return written


def _is_same(one: Number | Date, other: Number | Date) -> bool:
    if isinstance(one, Number) and isinstance(other, Number):
        return not other.hedged and equal(one, other)
    return type(one) is type(other) and one[:4] == other[:4]


def reordered(statement: str, contexts: Iterable[Sequence[str]]) -> bool:
    """Return True if sentences have the words of a statement, but none has its names and numbers in the same order.

    "Lund beat Visby" and "Visby beat Lund" have the same words, and so have two values that are exchanged.
    """
    mine, texts = slots(statement), [text for context in contexts for text in context]
    close = [slots(text) for share, text in zip(shares(mine.rest, texts), texts, strict=True) if share >= _ALL]
    same = [[*zip(_order(mine), _order(own), strict=True)] for own in close if coverage(own.rest, [statement]) >= _ALL]
    differ = any(one != other and sorted(one) == sorted(other) for pairs in same for one, other in pairs)
    return differ and not any(all(one == other for one, other in pairs) for pairs in same)


def _order(own: Slots) -> tuple[list[str], list[str]]:
    return [" ".join(stems(each)) for each in own.names], [f"{each.value} {each.dimension}" for each in own.numbers]


def conflict(statement: str, contexts: Sequence[Sequence[str]]) -> Difference | None:
    """Return the slot in which a statement differs from the sentences of contexts that it is closest to, or lacks.

    None if no slot conflicts: a sentence that could be meant has them all, or no sentence is about the same. If each
    part of a statement has a number and a name, each is compared alone.
    """
    parts = _JOINED.split(statement)
    if len(parts) > 1 and all(each.numbers and each.names for each in map(slots, parts)):
        return next(filter(None, (conflict(part, contexts) for part in parts)), None)
    mine = slots(statement)
    places = [(context, at) for context in contexts for at in range(len(context))]
    held = shares(mine.rest, (context[at] for context, at in places))
    best = max(held, default=0.0)
    differing: Difference | None = None
    if best >= _MIN_OTHER:
        for share, (context, at) in sorted(zip(held, places, strict=True), key=lambda each: -each[0]):
            if share < _RIVAL * best:
                break
            near = "\n".join((context[0][:300], *(context[max(0, at - 1) : at]), *context[at + 1 : at + 2]))
            own = slots(context[at])
            found = next(_differences(mine, own, slots(near), share), None)
            row = context[at].partition("; ")[0]  # other cells of it may have the other values
            cells = [each for each in context[max(0, at - _MAX_CLOSE) : at + _MAX_CLOSE] if each.startswith(row)]
            if found is None and has_values(mine, slots("\n".join(cells))):
                differing = None
                break
            differing = differing or found
    return differing or absent(statement, contexts)


def absent(statement: str, contexts: Iterable[Sequence[str]]) -> Difference | None:
    """Return the first number or date of a statement that is nowhere in the contexts; None if all are there.

    Small counts are left out, because they may be made of what the contexts list.
    """
    mine, texts = slots(statement), [text for context in contexts for text in context]
    for number in mine.numbers:
        counts = number.raw <= 10 and number.dimension in {"", "ordinal"}
        if not counts and not any(has_number(number, slots(text)) for text in texts):
            return Difference("number", number.text, "")
    missing = (each for each in mine.dates if not any(has_date(each, slots(text)) for text in texts))
    return next((Difference("date", each.text, "") for each in missing), None)


def unstated(said: str, asked: str, sentence: str, near: str) -> Difference | None:
    """Return the first slot of a short answer that a sentence does not state; None if it states all.

    Slots of the question may be near the sentence, those that the answer adds must be in it.
    """
    mine, question, own, around = slots(said), slots(asked), slots(sentence), slots(near)
    for number in mine.numbers:
        if not has_number(number, own) and not (has_number(number, question) and has_number(number, around)):
            other = next((each.text for each in own.numbers if each.dimension == number.dimension), "")
            return Difference("number", number.text, other)
    for date in mine.dates:
        part = date._replace(year=0) if date.month and has_date(date._replace(month=0, day=0), around) else date
        if not has_date(part, own):
            return Difference("date", date.text, next((each.text for each in own.dates), ""))
    known = frozenset(stems(f"{asked} {sentence}"))
    missing = next((name for name in mine.names if known.isdisjoint(stems(name))), None)
    if missing is not None:
        return Difference("name", missing, "")
    whole = slots(f"{asked} {said}")
    return next(iter((*_opposed(whole, own), *_denials(mine, own))), None)


def _differences(mine: Slots, own: Slots, near: Slots, share: float) -> Iterator[Difference]:
    for number in mine.numbers:
        if has_number(number, own):
            continue
        free = [each for each in own.numbers if not any(equal(ours, each) for ours in mine.numbers)]
        plain = [each for each in free if each.dimension == number.dimension]
        is_measured = number.dimension not in {"", "ordinal"} or len(plain) == 1
        rivals = [each for each in plain if is_measured or stems(each.counted) == stems(number.counted)]
        if rivals:
            yield Difference("number", number.text, rivals[0].text)
    for date in mine.dates:
        other = next((each for each in own.dates if dates_differ(date, each)), None)
        if other is not None and not has_date(date, own):
            yield Difference("date", date.text, other.text)
    words = frozenset(stems(f"{own.rest}\n{near.rest}"))
    missing = [name for name in mine.names if words.isdisjoint(stems(name))]
    others = [name for name in own.names if frozenset(stems(mine.rest)).isdisjoint(stems(name))]
    lost = shares(mine.rest, (" ".join(missing),))[0]
    if missing and others and share >= _MIN_NAMES * (1 - lost) > 0:
        yield Difference("name", missing[0], others[0])
    yield from _opposed(mine, own)
    yield from _denials(mine, own)


def _opposed(mine: Slots, own: Slots) -> Iterator[Difference]:
    """Yield a word of an axis for which a sentence has the opposite only, unless one of the two is denied."""
    if bool(mine.denied) is bool(own.denied):
        for stated, found in _axes():
            if mine.words & stated and not mine.words & found and own.words & found and not own.words & stated:
                yield Difference("comparison", min(mine.words & stated), min(own.words & found))


def _denials(mine: Slots, own: Slots) -> Iterator[Difference]:
    """Yield a negation of a word that the other text has without one."""
    if not (mine.words | own.words).isdisjoint(_LIMITING):
        return
    ours = [each for each in mine.denied if each in stems(" ".join(own.words))]
    theirs = [each for each in own.denied if each in stems(" ".join(mine.words))]
    if bool(ours) is not bool(theirs) and bool(mine.denied) is not bool(own.denied):
        yield Difference("negation", *(("no negation", "a negation") if theirs else ("a negation", "no negation")))


def _axes() -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    for one, other in _OPPOSITES:
        yield from ((one, other), (other, one))


# -- parts of reasons ---------------------------------------------------------------------------------

_MAX_QUOTED: Final = 160
"""Characters of a sentence in a reason; a longer one is shortened around the words of the statement."""
_MAX_SHARED: Final = 300
_WORD: Final = re.compile(r"\w+")


def quoted(sentence: str, at: int, about: str) -> str:
    """Return the number and the text of a sentence, shortened around the words of `about`."""
    return f"sentence {at + 1}: '{excerpt(sentence, about)}'."


def differs(difference: Difference | None) -> str:
    """Return a sentence that names the difference, after a space; empty if there is none."""
    if difference is None:
        return ""
    found = f" Differs in: {difference.stated} / {difference.found}."
    return found if difference.found else f" Not in it: {difference.stated}."


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
