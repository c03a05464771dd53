"""Rules about what a text says: refusals, echoes of the question, and statements that are copied from a context.

And the slots of an English text: its values, names, negations, and words of an axis; parts of reasons.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unicodedata import category, normalize

from merilo.cancellation import check_cancelled
from merilo.data.answer import is_courtesy
from merilo.data.sentences import sentences
from merilo.data.short_answers import affirms, taken_apart
from merilo.data.values import FUNCTION_WORDS, Date, Reader, Values, word_set
from merilo.judges.words import stems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TABLES: Final[dict[str, Any]] = tomllib.loads(files("merilo.judges").joinpath("slots.toml").read_text("utf-8"))
NEGATIONS: Final = word_set(_TABLES["negations"])
_OPPOSITES: Final = [tuple(map(word_set, text.split("/"))) for text in _TABLES["opposites"].values()]
OPPOSITES: Final = frozenset[str]().union(*(one | other for one, other in _OPPOSITES))
"""Words of an axis, such as "first" and "last"."""
_UNWEIGHED: Final = NEGATIONS | OPPOSITES
_FALSE: Final = re.compile(
    r"\b(?:false|untrue|incorrect|wrong|myth|denie[ds]|without|hardly|rarely|no longer)\b", re.IGNORECASE
)
_MAX_CACHED: Final = 1_000
"""Characters. The slots of a longer text are read each time."""


@dataclass(frozen=True, slots=True)
class Slots(Values):
    """The slots of a text."""

    names: tuple[str, ...]
    words: frozenset[str]
    """All words, in lower case."""
    rest: str
    """The text without its numbers, dates, negations and words of an axis."""
    denials: int
    """The number of negations, and of words such as "false"."""
    text: str
    """The text as it was read: in NFC, with digits 0 to 9."""


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
        return Slots(numbers, dates, names, frozenset(self.low), rest, self._denials(), self.text)

    def _names(self) -> Iterator[str]:
        for place, each in enumerate(self.found):
            word = each.group()
            if each["code"]:
                yield word
            if each["word"] is None or not word[0].isupper() or place in self.used or self.low[place] in FUNCTION_WORDS:
                continue
            before = self.text[max(0, each.start() - 3) : each.start()].rstrip()
            opens = not before or before[-1] in '.!?:;\n"“„«(|•*#>-–'
            follows = self.found[place + 1].group()[:1].isupper() if place + 1 < len(self.found) else False
            if not opens or follows or (len(word) > 1 and word.isupper()):
                yield word.removesuffix("'s").removesuffix("’s")

    def _denials(self) -> int:
        """Return the number of negations, without a "no" that answers a question."""
        answers = self.word(0) == "no" and self.gap(1).strip()[:1] in {*",.!;"}
        found = sum(each in NEGATIONS or each.endswith("n't") for each in self.low[answers:])
        return found + len(_FALSE.findall(self.text))


def opposes(mine: Slots, own: Slots) -> bool:
    """Return True if a text has a word of an axis, the other one its opposite only, and both or none a negation."""
    return bool(mine.denials) is bool(own.denials) and any(
        mine.words & stated and not mine.words & found and own.words & found and not own.words & stated
        for axis in _OPPOSITES
        for stated, found in (axis, axis[::-1])
    )


# -- parts of reasons ---------------------------------------------------------------------------------

_MAX_QUOTED: Final = 160
"""Characters of a sentence in a reason; a longer one is shortened around the words of the statement."""
_MAX_SHARED: Final = 300
_PLAIN_WORD: Final = re.compile(r"\w+")


def quoted(sentence: str, at: int, about: str) -> str:
    """Return the number and the text of a sentence, shortened around the words of `about`."""
    return f"sentence {at + 1}: '{excerpt(sentence, about)}'."


def excerpt(sentence: str, statement: str) -> str:
    """Return a sentence on one line, shortened around the words that it shares with the statement."""
    text = " ".join(sentence.split())
    if len(text) <= _MAX_QUOTED:
        return text
    stated = frozenset(stems(statement))
    words = (each for each in _PLAIN_WORD.finditer(text) if len(each.group()) > 3)
    shared = [each.start() for each in words if not stated.isdisjoint(stems(each.group()))][:_MAX_SHARED]
    near = _MAX_QUOTED * 3 // 4
    start = max(shared, key=lambda at: sum(at <= other < at + near for other in shared), default=0)
    start = 0 if start < _MAX_QUOTED // 8 else text.rfind(" ", 0, start) + 1
    end = start + _MAX_QUOTED
    end = len(text) if end >= len(text) else max(text.rfind(" ", start, end), start + _MAX_QUOTED // 2)
    return f"{'... ' if start else ''}{text[start:end]}{' ...' if end < len(text) else ''}"


_REFUSING_SHARE: Final = 0.4
"""Fraction of a response's characters in clauses that refuse, from which it declines to answer."""
_CONCESSIONS: Final = ("while", "although", "though", "even if", "хотя", "пусть")
"""Openings of a clause that precedes an answer, even if the clause itself says what is not known."""
_CLAUSE_END: Final = re.compile(
    rf"[.,;:!?。！？，\n]+|\b(?:but|however|yet|но|однако)\b|(?=\b(?:{'|'.join(_CONCESSIONS)})\b)", re.IGNORECASE
)
_LEADS_IN: Final = re.compile(r"[:：][\s*_]*\Z")
_ENDS_QUESTION: Final = re.compile(r"(?:[?？؟\u037e]|[\u0370-\u03ff\u1f00-\u1fff][»\"”)]?;)[\s\"'»”)\]]*\Z")


def is_question(text: str) -> bool:
    """Return True if a text ends like a question, in any script."""
    return _ENDS_QUESTION.search(text[-40:]) is not None


def noncommittal(response: str) -> bool:
    """Return True if a response declines to answer: it begins with a refusal and consists mostly of refusals.

    Courtesies and questions do not count. A caveat after an answer does not decline: "The fee is 21 euros. The
    documents do not say where to pay."
    """
    refusing, clauses = _refusals_in(response)
    if not refusing:
        return False
    rest = [each for each in sentences(response) if not (is_courtesy(each) or is_question(each))] or [response]
    refusing, clauses = _refusals_in("\n".join(rest))
    return bool(_refusals_in(rest[0])[0]) and sum(map(len, refusing)) >= _REFUSING_SHARE * sum(map(len, clauses))


def _refusals_in(text: str) -> tuple[list[str], list[str]]:
    """Return the clauses of a text that refuse, and all of them."""
    clauses = [clause.strip() for clause in _CLAUSE_END.split(text.replace("’", "'"))]
    return [*filter(_refuses, clauses)], clauses


def claims(sentence: str) -> bool:
    """Return True if a sentence makes a statement: not a question, courtesy, refusal or introduction of a list."""
    check_cancelled()
    if not stems(sentence) or is_question(sentence) or _LEADS_IN.search(sentence) or is_courtesy(sentence):
        return False
    return not noncommittal(sentence)


def _refuses(clause: str) -> bool:
    return not clause.lower().startswith(_CONCESSIONS) and _refusals().search(clause) is not None


@cache
def _refusals() -> re.Pattern[str]:
    table = tomllib.loads(files("merilo.judges").joinpath("refusals.toml").read_text("utf-8"))
    found = "|".join(f"(?:{each})" for each in table["refusals"])
    return re.compile(found, re.IGNORECASE)


MIN_WORDS: Final = 4
"""Minimum words of a question that can be echoed: a shorter one may occur in a context that answers it."""
MIN_SHARE: Final = 0.7
"""Fraction of the question's words that an echo repeats, without another word between them."""
_WORD: Final = re.compile(r"\w[\w\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\u0300-\u036f\ufe00-\ufe0f\ufeff]*")
_LOOKALIKES: Final = str.maketrans("аеорсухіјѕһԁԛԝкмтвнѵɡαορτυικχνε", "aeopcyxijshdqwkmtbhvgaoptuikxve")
_ASKING: Final = frozenset("how what when where which who whom whose why".split())
_CHOICES: Final = frozenset({"or", "between", "which", "whether"})
_MIN_ALONE: Final = 2
"""Words of a sentence that is an echo. One is too little: "Paris." may answer a question that names Paris."""
_MAX_QUESTION: Final = 2_000
_MAX_WORD: Final = 64
"""Characters that are compared; the caches hold no larger texts."""


class _Word(NamedTuple):
    text: str
    """The word in the form that is compared."""
    start: int
    end: int


class _Question(NamedTuple):
    words: frozenset[str]
    asking: str
    """The question word, which an answer leaves out; empty if there is none."""
    is_open: bool
    """True if no answer can consist of the question's words alone."""

    def echo(self, run: Sequence[_Word], *, alone: bool, asks: bool) -> Sequence[_Word]:
        """Return the end of a run of consecutive words of the question, in any order, that only repeats it.

        `alone`: there are no other words up to the next question mark; `asks`: a question mark follows.
        """
        if alone and self.is_open and len({word.text for word in run}) >= _MIN_ALONE:
            return run
        first = 0 if asks else next((at for at, word in enumerate(run) if word.text == self.asking), len(run))
        found = {word.text for word in run[first:]}
        return run[first:] if len(found) >= max(MIN_WORDS, MIN_SHARE * len(self.words)) else ()


def strip_question_echoes(asked: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """Return the sentences without the stretches that repeat most of the question; some may be empty.

    An echo begins with the question word or ends in a question mark: "Viruses are the most abundant" is not an echo of
    "Which are the most abundant?". A sentence made only of the question's words is an echo too, unless it can be an
    answer ("Is it old?", "It is old."). Takes time in proportion to the words of both.
    """
    question = _question(asked[:_MAX_QUESTION])
    if len(question.words) < MIN_WORDS:
        return tuple(sentences)
    return tuple(_stripped(question, each) for each in sentences)


def _stripped(question: _Question, sentence: str) -> str:
    """Return a sentence without its echoes."""
    check_cancelled()
    *asking, stating = sentence.split("?")
    parts = [_part(question, each, asks=True) for each in asking]
    return "?".join([*parts, _part(question, stating, asks=False)])


def _part(question: _Question, text: str, *, asks: bool) -> str:
    words, left, done = _words(text), list[str](), 0
    for known, group in groupby(words, lambda word: word.text in question.words):
        run = list(group)
        if known and (echo := question.echo(run, alone=run == words, asks=asks and run[-1] is words[-1])):
            left.append(text[done : echo[0].start])
            done = echo[-1].end
    return "".join([*left, text[done:]])


def _words(text: str) -> list[_Word]:
    found = (_Word(_look(each.group()[:_MAX_WORD]), *each.span()) for each in _WORD.finditer(text))
    return [word for word in found if word.text]


@lru_cache(maxsize=4_096)
def _look(word: str) -> str:
    """Return a word in the form that is compared."""
    if word.isascii():
        return word.strip("_").casefold()
    # NFKD separates accents into marks (category M); Cf are invisible format characters such as zero-width spaces.
    plain = "".join(char for char in normalize("NFKD", word) if category(char)[0] != "M" and category(char) != "Cf")
    return plain.strip("_").casefold().translate(_LOOKALIKES)


@lru_cache(maxsize=256)
def _question(text: str) -> _Question:
    words = [word.text for word in _words(text)] or [""]
    asking = next((word for word in words if word in _ASKING), "")
    opens = text.rstrip().endswith("?") or words[0] in _ASKING
    is_open = asking != "" and opens and _CHOICES.isdisjoint(words)
    return _Question(frozenset(words), asking, is_open)


P_COPIED: Final = 0.99
"""The probability that a copied sentence is supported. It is not fitted: nothing but the question can matter."""
_SIGNS: Final = str.maketrans("‐‑‒–—−", "------", "\"'“”„‟‘’‚‛«»‹›`*_")
"""Dashes become hyphens; quotation marks are removed."""
_MARKS: Final = re.compile(r"[\s>#|]*(?:(?:[-*+•–]|\d{1,3}[.)]|[a-z]\))\s+)?")
_END: Final = " .!;:,…。|"


class Position(NamedTuple):
    """A sentence of a context."""

    context: int
    sentence: int


def copied_from(statement: str, contexts: Sequence[Sequence[str]]) -> tuple[Position, ...]:
    """Return the sentences or list items of contexts, given as their sentences, that equal a statement.

    Case, quotation marks, white space, list markers and final punctuation do not count. A statement of several
    sentences is copied if one context contains them all. The positions are of all contexts that contain it. A question
    states nothing, and a sentence that echoes the question of a short answer does not support it.
    """
    known = [_normals(own) for own in contexts]
    # A block of code may contain a blank line, as a question with its answer does.
    is_block = any(_normal(statement) in each for each in known)
    asked, said = (None if is_block else taken_apart(statement)) or ("", statement)
    if not stems(said) or is_question(said) or (asked and affirms(said) is not None):
        return ()
    whole, parts = _normal(said), [*filter(None, map(_normal, sentences(said)))]
    found: list[Position] = []
    for context, (own, places) in enumerate(zip(contexts, known, strict=True)):
        wanted = dict.fromkeys([whole] if whole in places or len(parts) < 2 else parts)
        at = [places[each] for each in wanted if each in places]
        is_echo = asked and not any(map(stems, strip_question_echoes(asked, [own[each] for each in at])))
        if len(at) == len(wanted) and not is_echo:
            found += [Position(context, each) for each in dict.fromkeys(at)]
    return tuple(found)


def _normals(own: Sequence[str]) -> dict[str, int]:
    """Return the position of each sentence, and of each of its lines, by its normal form."""
    found: dict[str, int] = {}
    for place, sentence in enumerate(own):
        if not is_question(sentence):
            for text in (sentence, *(sentence.split("\n") if "\n" in sentence else ())):
                found.setdefault(_normal(text), place)
    return found


def _normal(text: str) -> str:
    """Return a sentence in the form in which copies are compared: with its values in one form."""
    own = slots(text if text.isascii() else normalize("NFKC", text))
    plain = own.text
    for value in own.values:
        form = " ".join(map(str, value[:4] if isinstance(value, Date) else value[:2]))
        written = re.escape(value.text)
        plain = re.sub(rf"(?<![\d.,]){written}(?!\d)", form, plain, count=1)
    plain = _MARKS.sub("", plain, count=1).translate(_SIGNS).casefold()
    return " ".join(plain.split()).strip(_END)
