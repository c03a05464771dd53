"""An answer as it is judged: without the parts that state nothing, which stay in the sample.

Reasoning, chat tokens, HTML, Markdown, citation marks, sources, labels, lead-ins, greetings and offers of help are
removed. `answer.toml` has their words and expressions. A part that a context has too ("Article [1]") is content and
stays, as does code. A step that would leave no word is not done. Reading takes time linear in the text.
"""

from __future__ import annotations

import json
import re
import tomllib
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from functools import cache, lru_cache
from html import unescape
from importlib.resources import files
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from merilo.data import check, content
from merilo.data.aliases import aliases
from merilo.data.citations import NO_CONTEXTS, Contexts, without_brackets
from merilo.data.sentences import pieces, sentences
from merilo.data.short_answers import SHORT_WORDS, is_denial, is_short, is_yes_or_no, words_of
from merilo.data.values import FUNCTION_WORDS, Date, Number, Values, has_value, has_values, values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from merilo.data.sample import Sample

_MAX_READ: Final = 100_000
"""Characters. Of a longer text only reasoning and later turns are removed."""
_ROUNDS: Final = 5
"""Readings of one text; a frame may be within another."""
_MAX_PARTS: Final = 8
"""Parts that are removed at each end of a text in one reading."""
_MAX_OPENING: Final = 3
_MAX_LINES: Final = 200
_MAX_CHARS: Final = 600
_MAX_WORDS: Final = 60
"""Characters and words of a sentence that are compared."""
_MAX_REST: Final = 12
"""Words that `...` stands for at most."""
_MAX_LABEL: Final = 60
_RUN: Final = 4
"""Words in a row that a context has too, from which a part is content."""
_MAX_LOOKUPS: Final = 400

_WORD: Final = re.compile(
    r"(?:[^\W_]|[\u064b-\u0652\u0900-\u0963])+(?:['’;-](?:[^\W_]|[\u064b-\u0652\u0900-\u0963])+)*"
)
_HAN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_PLAIN: Final = str.maketrans("‘’‚‛“”„‟‐‑％［］", "''''\"\"\"\"--%[]") | {
    **dict.fromkeys((0xA0, 0x202F, *range(0x2000, 0x200B)), " "),
    **dict.fromkeys((0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), 0x2060, *range(0x2066, 0x206A), 0xFEFF), ""),
    **dict(zip(range(0xFB00, 0xFB07), ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True)),
    **{0xFF00 + at: 0x20 + at for at in (*range(0x10, 0x1A), *range(0x21, 0x3B), *range(0x41, 0x5B))},
}


def one_form(text: str) -> str:
    """Return a text with plain quotes, spaces, digits and letters, without zero-width characters and ligatures."""
    return text if text.isascii() else text.translate(_PLAIN)


class Reading(StrEnum):
    """How much of an answer a metric reads. MARKED leaves only the citation marks of what CLEAN removes."""

    RAW = "raw"
    MARKED = "marked"
    CLEAN = "clean"


@lru_cache(maxsize=32)  # each metric of a sample asks for it
def judged(sample: Sample, reading: Reading = Reading.CLEAN) -> Sample:
    """Return the sample with response and reference as they are judged.

    The reference is read without the contexts, so that it is the same for every retriever.
    """
    if reading is Reading.RAW:
        return sample
    marks, response, reference = reading is Reading.MARKED, sample.response, sample.reference
    response = response and read_answer(response, Contexts.of(sample), marks=marks)
    reference = reference and read_answer(reference)
    is_same = (response, reference) == (sample.response, sample.reference)
    return sample if is_same else replace(sample, response=response, reference=reference)


def read_answer(text: str, contexts: Contexts = NO_CONTEXTS, *, marks: bool = False) -> str:
    """Return an answer as it is judged.

    >>> read_answer("**Answer:** According to the context, it opens at nine [1].")
    'It opens at nine.'
    """
    reader, given = _Reader(contexts), text
    steps = [_unwrapped, reader.markup, reader.end, reader.beginning, reader.lead_ins, reader.brackets(marks=marks)]
    for _ in range(_ROUNDS):
        before = text
        for step in steps if len(text) <= _MAX_READ else steps[:1]:
            new = step(text)
            text = new.strip() if new != text and _has_word(new) else text
        if text == before:
            break
    if text == given:
        return text
    # What was removed may have ended the last sentence.
    is_cut = text[-1:].isalnum() and text[-1] < "\u0250" and len(text.rpartition("\n")[2].split()) >= SHORT_WORDS
    return f"{text}." if is_cut else f"{text[:-1]}." if text[-1:] == "…" else text


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))


def _unwrapped(text: str) -> str:
    """Return a text without reasoning and later turns; of one block of code or JSON, the answer in it."""
    if (turn := pattern("turn").search(text)) and _has_word(text[: turn.start()]):
        text = text[: turn.start()]
    kept: list[str] = []
    position, is_inside = 0, False
    for found in pattern("blocks").finditer(text):
        before = text[max(0, found.start() - 4) : found.start()].strip(" ")[-1:]
        if found["ends"] and (is_inside or not (found["aside"] or any(map(_has_word, kept)))):
            position, is_inside = found.end(), False
        elif found["starts"] and not is_inside and not (before.isalnum() or before in tuple("'`,(\"")):
            kept.append(text[position : found.start()])
            position, is_inside = found.end(), True
    rest = text[position:]
    if is_inside:  # it never ends: the last paragraph is the answer, unless an answer is before it
        rest = "" if any(map(_has_word, kept)) else rest.rstrip().rpartition("\n\n")[2]
    text = "".join([*kept, rest]).strip()
    before, fence, block = text.partition(text[:3] if text[:3] == "~~~" else "```")
    block, closing, after = block.rpartition(fence) if fence and "\n" in block else ("", "", "")
    block = block.partition("\n")[2].strip()
    if closing and fence not in block and not _has_word(after) and len(_words(before)) < SHORT_WORDS:
        is_alone = not before and not after.strip()
        text = _answer_in(block, is_named=not is_alone) or (block if is_alone else text)
    text, inner = _answer_in(text) or text, text[1:-1]
    is_quoted = text[:1] in _QUOTES and text[-1] in _QUOTES
    return inner.strip() if is_quoted and not any(map(inner.__contains__, _QUOTES)) else text


_decoder: Final = json.JSONDecoder(object_pairs_hook=check.without_repeated_keys, parse_float=str, parse_constant=str)
_FIRST_FIELD: Final = re.compile(r'\{\s*"([^"]{1,40})"\s*:\s*"((?:[^"\\]|\\.)*)', re.DOTALL)
_QUOTES: Final = tuple("\"'“”„«»‘’")


def _answer_in(text: str, *, is_named: bool = False) -> str:
    """Return the answer in a JSON object or list, or in one of Python; empty if the text is neither or has none.

    A cut object has the answer that it begins with.
    """
    if text[:1] not in {"{", "[", '"'}:
        return ""
    with suppress(ValueError, RecursionError):
        value, end = _decoder.raw_decode(text)
        return "" if _has_word(text[end:]) else _stated(value, is_named=is_named or end < len(text))
    if (held := content.held(text)) is not text:
        return _stated(held, is_named=is_named)
    if text[-1] != "}" and (found := _FIRST_FIELD.match(text)) is not None:
        with suppress(ValueError):
            return _stated({found[1]: json.loads(f'"{found[2]}"')}, is_named=True)
    return ""


def _stated(value: object, depth: int = 0, *, is_named: bool = False) -> str:
    """Return the one text of a value of JSON, or the one that a key names; of a list, the texts in a row.

    Empty for several texts of equally good names, and below `_MAX_DEPTH` levels.
    """
    if depth > _MAX_DEPTH:
        return ""
    if check.is_list(value):
        items = [_stated(each, depth + 1) for each in value]
        return " ".join(items) if all(items) else ""
    if not check.is_mapping(value):
        return value if isinstance(value, str) and _has_word(value) and not is_named else ""
    found = {str(key): _stated(each, depth + 1) for key, each in value.items()}
    found |= {str(key): str(each) for key, each in value.items() if type(each) in {int, float} and _rank(str(key)) < 2}
    texts = {key: text for key, text in found.items() if text}
    best = min(texts, key=_rank, default="")
    rivals = {text for key, text in texts.items() if _rank(key) == _rank(best)}
    is_answer = best and (_rank(best) < _UNNAMED or not is_named) and len(rivals) == 1
    return texts[best] if is_answer else ""


_UNNAMED: Final = 3
_MAX_DEPTH: Final = 6


def _rank(key: str) -> int:
    """Return how well a key names an answer, from 0; `_UNNAMED` if it does not."""
    words = _words(key.replace("_", " "))
    is_alias = aliases().field_of(key) == "response"
    return 0 if _is(words, "finals") else 1 if is_alias else 2 if _is(words, "fields") else _UNNAMED


# -- words and phrases of answer.toml ------------------------------------------------------------------


@cache
def tables() -> dict[str, dict[str, str]]:
    """Return the tables of expressions and of words."""
    return tomllib.loads(files("merilo.data").joinpath("answer.toml").read_text("utf-8"))


def _either(*names: str) -> str:
    """Return the expression of all kinds of tables, each as a group of its name."""
    kinds = [(name, each) for table in names for name, each in tables()[table].items()]
    expression = "|".join(f"(?P<{name}>{each})" for name, each in kinds)
    for name, part in tables()["parts"].items():
        expression = expression.replace(name, part)
    return expression


@cache
def pattern(*names: str) -> re.Pattern[str]:
    """Return the pattern of tables, each kind of which is a group, or of a single expression."""
    singles = tables()["expressions"]
    expression = singles.get(names[0]) or f"(?={singles['begins']})(?:{_either(*names)})"
    return re.compile(expression, re.VERBOSE | re.DOTALL | re.IGNORECASE | re.MULTILINE)


@cache
def _lists(name: str) -> list[str]:
    return [table.get(name, "").casefold() for table in tables().values()]


@cache
def _listed(*names: str) -> frozenset[str]:
    return frozenset(word for name in names for text in _lists(name) for word in text.split())


@cache
def _han(*names: str) -> re.Pattern[str]:
    """Return the expression of the Chinese words of lists, which no space separates from others."""
    expression = "|".join(sorted(filter(_HAN.match, _listed(*names)), key=len, reverse=True))
    return re.compile(expression)


@cache
def _phrases(*names: str) -> re.Pattern[str]:
    """Return the expression of lists of phrases, over words that each have a space behind them."""
    listed = re.sub(r"\|\s+", "|", ",".join(text for name in names for text in _lists(name))).split(",")
    expression = "|".join("".join(map(_expression, each.split())) for each in listed)
    return re.compile(expression)


def _expression(word: str) -> str:
    plain = re.escape(word.removesuffix("?")).replace(r"\|", "|").replace(r"\*", "[^ ]*")
    return f"(?:[^ ]+ ){{0,{_MAX_REST}}}?" if word == "..." else f"(?:(?:{plain}) ){'?' if word.endswith('?') else ''}"


def _words(text: str) -> list[str]:
    return _WORD.findall(one_form(text[:_MAX_CHARS]).casefold())[:_MAX_WORDS]


def _is(words: Sequence[str], *names: str) -> bool:
    """Return True if words are a phrase of one of the lists."""
    return words != [] and _phrases(*names).fullmatch(" ".join([*words, ""])) is not None


@cache
def _frame_words() -> frozenset[str]:
    """Return the words of all lists."""
    lists = (text for table in tables().values() for text in table.values() if isinstance(text, str))
    return frozenset(word for text in lists for word in re.split(r"[\s|?,*.]+", text.casefold()))


def is_courtesy(sentence: str) -> bool:
    """Return True for a sentence that is a greeting, thanks or an offer of help from end to end."""
    return _is(_words(sentence), "openings", "courtesies")


def _is_known(word: str) -> bool:
    """Return True for a word that may be in a lead-in, and for the number of a source; a longer one is a value."""
    known, plain = _listed("sources", "leads", "around", "links"), word.rstrip("0123456789")
    plain = plain if plain in known or plain.isascii() else _han("sources", "leads", "around").sub("", plain)
    return plain in known if plain else len(word) < 4 or not word.isdecimal()


def _is_source(words: Sequence[str]) -> bool:
    return any(each.rstrip("0123456789") in _listed("sources") or _han("sources").search(each) for each in words)


def _names_source(words: Sequence[str]) -> bool:
    """Return True if all words are known, and one names what an answer was made from."""
    return all(map(_is_known, words)) and _is_source(words)


def _leads(words: Sequence[str]) -> bool:
    """Return True for "based on the provided context"."""
    opens = bool(words) and (words[0] in _listed("leads") or _han("leads").match(words[0]) is not None)
    return opens and _names_source(words) and not _denies(words)


def negations() -> frozenset[str]:
    """Return words that deny something, in several languages."""
    return _listed("negations")


def _denies(words: Sequence[str]) -> bool:
    """Return True for "no source says that" and "only one document"."""
    return not negations().isdisjoint(words)


@lru_cache(maxsize=64)
def _folded(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f" {' '.join(_WORD.findall(one_form(each).casefold()))} " for each in texts)


class _Reader:
    """The steps that depend on the contexts."""

    def __init__(self, contexts: Contexts) -> None:
        self.contexts = contexts
        self.found: dict[str, bool] = {}

    def _has(self, text: str, texts: Sequence[str]) -> bool:
        """Return True if a context has a text; a few hundred are looked for."""
        if text not in self.found:
            self.found[text] = len(self.found) < _MAX_LOOKUPS and any(text in each for each in texts)
        return self.found[text]

    def _is_content(self, words: Sequence[str]) -> bool:
        """Return True if a context has these words, four of them in a row, or a number after the same word."""
        runs = [" ".join(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))]
        runs += [f"{one} {other}" for one, other in pairwise(words) if other.isdecimal()]
        return any(self._has(f" {run} ", _folded(self.contexts.texts)) for run in runs)

    def markup(self, text: str) -> str:
        """Return a text without HTML, chat tokens and Markdown; of a table, its cells with their headers."""
        text = one_form(text.replace("\r\n", "\n"))
        if pattern("sign").search(text) is not None:
            closed = frozenset(map(str.lower, pattern("closed").findall(text)))
            text = pattern(*MARKUP).sub(lambda found: self._plain(found, closed), text)
        if "\n" in text and "```" not in text:
            text = "\n\n".join(each.text for each in pieces((text,)))
        text = pattern("spaces").sub("", text) if "  " in text or "\t" in text else text
        return text.replace("\n\n\n", "\n\n")

    def _plain(self, found: re.Match[str], closed: frozenset[str]) -> str:
        """Return what is left of markup."""
        text, kind, whole, end = found.string, found.lastgroup or "", found[0], found.end()
        table = next(name for name in MARKUP if kind in tables()[name])
        inner = found[f"{kind}_"] if table in {"inner", "titles", "tags"} else ""
        is_open = table == "tags" and inner.lower() not in closed
        if table == "stays" or is_open or (len(whole.strip()) > 1 and self._has(whole, self.contexts.texts)):
            return whole
        is_line = (
            kind == "stars" and text[found.start() - 1 : found.start()] in {"", "\n"} and text[end : end + 1] == "\n"
        )
        words = _words(inner) if is_line or table == "titles" or kind == "link" else []
        if table == "titles" or is_line:
            is_title = len(words) <= 10 and inner[-1] not in ".!?" and not any(map(str.isdecimal, inner))
            is_label = _is(words, "lists", "labels", "finals", "reasons")
            return inner.rstrip(" :") + ":\n" if is_label else "" if is_title and text[end:].strip() else f"{inner}\n"
        left = {"breaks": "\n", "decoded": unescape(whole), "inner": "" if _names_source(words) else inner}
        return left.get(table, "")

    def end(self, text: str) -> str:
        """Return a text without closing sentences and sources."""
        for _ in range(_MAX_PARTS):
            text = text.rstrip()
            cut = self._list_start(text) if "\n" in text else None
            if cut is None:
                line = max(text.rfind("\n") + 1, len(text) - _MAX_CHARS)
                starts = [
                    line,
                    *(each.end() for each in pattern("end").finditer(text, line) if each.end() < len(text)),
                ]
                cut = next((at for at in starts[-_MAX_PARTS:] if self._is_source_line(text[at:], text[:at])), None)
                cut = starts[-1] if cut is None and self._is_closing(text[starts[-1] :]) else cut
            if not cut or not _has_word(text[:cut]):
                break
            text = text[:cut]
        return text

    def _list_start(self, text: str) -> int | None:
        """Return the position of the heading of a closing list of sources; None if there is none."""
        end = len(text)
        for _ in range(_MAX_LINES):
            start = text.rfind("\n", 0, end) + 1
            line, words = text[start:end], _words(text[start:end])
            if end < len(text) and len(line) < _MAX_LABEL and _is(words, "lists"):
                return start
            is_item = pattern("list_line").match(line) and not self._is_content(words)
            if not start or not (not words or self._is_title(line) or is_item):
                return None
            end = start - 1
        return None

    def _is_source_line(self, text: str, before: str) -> bool:
        """Return True for "Source: handbook.pdf, p. 3", "Confidence: .9", a footnote and an address."""
        if note := pattern("footnote").match(text):
            is_cited = note[1] in before if note[1] != "—" else not _listed("pages").isdisjoint(_words(text))
            return is_cited and any(map(str.isalpha, text)) and self._is_title(text[note.end() :])
        label, colon, rest = text[:_MAX_CHARS].replace("：", ":").partition(":")
        words = _words(label) if colon and len(label) < _MAX_LABEL else []
        if _is(words, "facts"):
            return not (self._is_content(_words(rest)) or (len(_words(rest)) >= _RUN and self._is_about(rest)))
        is_address = len(text.split(maxsplit=1)) == 1 and pattern("file").match(text.lstrip("<[(-*• ")) is not None
        is_heading = _is(words[:1], "lists") and all(_is_known(each) or each in _listed("pages") for each in words)
        return is_address or ((is_heading or _is(words, "lists")) and (not _has_word(rest) or self._is_title(rest)))

    def _is_title(self, text: str) -> bool:
        """Return True for the name of a source: an address, a number, or a title, not a sentence."""
        plain, words = text.strip(), _words(text)
        bare = plain.lstrip("\"'“«[(*-• ")
        has_words = not all(any(map(str.isdecimal, each)) for each in bare.split())  # unlike "kb-1, kb-22"
        is_lower = bare[:1].islower() and " " in bare and has_words
        is_sentence = (plain[-1:] in ".!?。" and len(words) > _RUN) or is_lower
        is_title = not is_sentence and len(words) <= 15 and not self._is_content(words)
        return is_title or pattern("file").search(plain) is not None or all(map(_is_known, words))

    def _is_closing(self, text: str) -> bool:
        """Return True for a courtesy, an offer of help, a note about the answer, and a question to the user."""
        words = _words(text)
        is_closing = text.rstrip("\"')*_ ")[-1:] in "?？" or _is(words, "openings", "courtesies", "closings")
        return ((is_closing and not self._is_about(text)) or _names_source(words)) and not self._is_content(words)

    def _is_about(self, text: str) -> bool:
        """Return True if a text has a number or a name, or a word that a context or the question has.

        Of a courtesy, only what follows a comma may have one: "Let me know if you have questions about the mill."
        """
        plain = one_form(text[:_MAX_CHARS])
        words = [each for each in _WORD.findall(plain) if each.casefold() not in _frame_words()]
        is_named = any(each[0].isupper() and not each.isupper() and f" {each}" in plain for each in words)
        part = plain.partition(",")[2] if _is(_words(plain), "openings", "courtesies") else plain
        known = (each.casefold() for each in words if len(each) > _RUN and each in part)
        has_number = any(map(str.isdecimal, plain))
        return has_number or is_named or any(self._has(f" {each} ", _folded(self.contexts.texts)) for each in known)

    def beginning(self, text: str) -> str:
        """Return a text without greetings, and without labels of its lines."""
        for _ in range(_MAX_PARTS):
            ends = islice(pattern("opening").finditer(text, 0, _MAX_CHARS), _MAX_OPENING)
            if (end := next((each.end() for each in ends if self._is_opening(each)), None)) is None:
                break
            text = _upper(text[end:].lstrip())
        labels = list(islice(pattern("label").finditer(text), _MAX_LINES))
        is_reason = _is(_words(text[:_MAX_LABEL].partition("\n")[0].partition(":")[0]), "reasons")
        if is_reason and len(labels) == 1 and not labels[0].start() and "\n\n" in text:
            return text.partition("\n\n")[2]
        for label in reversed(labels):
            words, rest = _words(label[1]), text[label.end() :]
            if is_reason and _is(words, "finals"):
                return _upper(rest)
            if _is(words, "labels") and _has_word(rest) and not pattern("apposition").match(rest):
                text = text[: label.start()] + _upper(rest)
        return text

    def _is_opening(self, end: re.Match[str]) -> bool:
        """Return True if the text up to a sign is a greeting or names the sources, and a statement begins after it."""
        words, rest = _words(end.string[: end.start()]), end.string[end.end() :][:_MAX_LABEL].lstrip()
        is_ended = end[0] in ".!。" or (end[0] == "\n" and end.string[: end.start()].rstrip()[-1:] != ":")
        is_greeting = _is(words, "openings", "courtesies") and not self._is_about(end.string[: end.start()])
        if not is_greeting and not (is_ended and _names_source(words)):
            return False
        begins = _words(rest)[:1]
        is_sure = _listed("doubtful").isdisjoint(words) or not _listed("starts").isdisjoint(begins)
        is_new = not rest[:1].islower() or (is_sure and end[0] in ",:，：")
        is_subject = pattern("apposition").match(end.string, end.end()) is not None
        return is_new and not is_subject and not self._is_content([*words, *begins])

    def lead_ins(self, text: str) -> str:
        """Return a text without lead-ins of its sentences, and without their ends such as "as the context states"."""
        ends = [0, *(found.end() for found in pattern("end").finditer(text)), len(text)]
        return "".join(self._without_lead_in(text[start:end]) for start, end in pairwise(ends))

    def _without_lead_in(self, sentence: str) -> str:
        words: list[str] = []
        comma = link = whole = 0
        for found in _WORD.finditer(sentence, 0, _MAX_CHARS):
            word, end, opens = (
                one_form(found[0]).casefold(),
                found.end(),
                words[:1] != [] and words[0] in _listed("starts"),
            )
            if word in _listed("starts") and words[-1:] != ["of"] and _leads(words):
                whole = whole or found.start()
            if not _is_known(word) or len(words) >= _MAX_WORDS:
                break
            words.append(word)
            named = [*words, *(["source"] if "[" in sentence[:end] else [])]  # "According to [1],"
            tail = sentence[end : end + 9].lstrip("])")
            sign = (tail.lstrip() if tail.lstrip()[:1] == ":" else tail)[:1] or " "  # " :" is French
            says = (
                sign in ":："
                and not _denies(words)
                and word.isalpha()
                and word not in _listed("sources")
                and _names_source(named)
            )
            is_clause = opens and len(words) <= _RUN and _names_source(words[-2:-1])  # "the text that"
            if not comma and (says or (sign in ",，、:：" and _leads(named))):
                comma = end
            elif word in _listed("links") and _names_source(named) and not is_clause and not _denies(words):
                link = end
        cut = max(comma, link) or whole
        if cut and not self._is_content(_words(sentence[:cut])) and _has_word(sentence[cut:]):
            return _upper(sentence[cut:].lstrip(" ]),:，、：\n"))
        bare = sentence.rstrip()
        comma = max(bare.rfind(", "), bare.rfind("，"), 0)
        if comma and _leads(words := _words(bare[comma:])) and not self._is_content(words):
            return bare[:comma] + bare[-1] * (bare[-1] in ".!?。") + sentence[len(bare) :]
        return sentence

    def brackets(self, *, marks: bool) -> Callable[[str], str]:
        """Return the step that removes brackets of sources, and citation marks unless `marks`."""

        def without(text: str) -> str:
            text = text if text.isascii() else pattern("raised").sub("", text)
            return without_brackets(text, self.contexts, self.is_source, marks=marks)

        return without

    def is_source(self, inside: str, found: re.Match[str]) -> bool:
        """Return True for "Source: handbook", "1: Guide", "a.pdf", "see page 3" and "according to the context"."""
        words, is_round, (label, _, rest) = _words(inside), found.lastgroup == "round", inside.partition(":")
        if _is(_words(label), "lists", "facts"):
            return (" " in rest.strip() or not is_round) and not self._is_content(_words(rest))
        is_after = found.string[max(0, found.start() - 2) : found.start()].rstrip()[-1:] in tuple(".!?。")
        is_reference = (is_after and len(words) <= _RUN) or pattern("reference").fullmatch(inside)
        if not is_round and ("†" in inside or is_reference or _names_source(words)):
            return True
        if pattern("file").search(inside) and not self._has(inside, self.contexts.texts):
            return True
        known = all(map(_is_known, words)) or (len(words) > 1 and words[1].isdecimal() and _is_source(words[:1]))
        is_numbered = known and _is_source(words) and any(map(str.isdecimal, inside))
        is_number = is_after and inside.isdecimal() and len(inside) < _RUN
        is_named = is_number or is_numbered or _leads(words) or pattern("page").search(inside) is not None
        return is_named and not self._is_content(words)


MARKUP: Final = ("stays", "inner", "gone", "decoded", "breaks", "titles", "tags")
"""The tables of markup, in the order in which they are tried."""


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


# -- short answers ("75 dollars", "1907", "Lisbon") that a sentence states with all their values and words ---


_LIMITS: Final = frozenset(
    "above after almost before below except false formerly instead least less more most nearly once or other over than "
    "under until unless up unlike wrong".split()
)
"""English words with which a sentence states something else than the values and names in it."""
_ARTICLES: Final = frozenset({"a", "an", "the"})
_MIN_STEM, _MAX_ENDING = 3, 3
"""Letters that two forms of a word share at least, and that one of them has more at most."""


def states(text: str, answer: str, asked: str, language: str, *, only: bool = False) -> bool:
    """Return True if one sentence of a text has all values and words of a short English answer to a question.

    False also if the sentence has a negation or a limit that the answer lacks ("over 75 dollars"), and if the text has
    another value of the same kind. `only`: False if the text says more than the answer and the question.

    >>> states("The ticket costs 75 dollars.", "75 dollars", "How much is the ticket?", "en")
    True
    """
    if language != "en" or not is_short(answer, language) or is_yes_or_no(answer):
        return False
    mine, given, said = values(answer), values(asked), values(text)
    words = {*words_of(_without(mine, answer))} - _ARTICLES
    known = {*words_of(asked), *words_of(answer)}
    if not (words or mine.values) or any(_rivals(each, mine, given) for each in said.values):
        return False
    if only and not all(_is_form_of(each, known) for each in words_of(_without(said, text))):
        return False
    return any(
        words <= {*words_of(each)}
        and has_values(mine, values(each))
        and _turning(words_of(each)) == _turning(words_of(answer))
        for each in sentences(text)
    )


def _without(found: Values, text: str) -> str:
    """Return a text without its values."""
    for each in found.values:
        text = text.replace(each.text, " ")
    return text


def _rivals(value: Number | Date, mine: Values, given: Values) -> bool:
    """Return True if a value is none of an answer or its question, and may be mistaken for one of the answer."""
    if not mine.values or has_value(value, mine) or has_value(value, given):
        return False
    kind, kinds = _kind(value), {*map(_kind, mine.values)}
    return kind in kinds or (isinstance(value, Number) and not kind and not value.counted)


def _kind(value: Number | Date) -> str:
    return "date" if isinstance(value, Date) else value.dimension


def _turning(words: list[str]) -> set[str]:
    """Return the words that turn a sentence into its opposite, or a value into a limit."""
    return {word for word in words if word in _LIMITS or word in negations() or is_denial(word)}


def _is_form_of(word: str, known: set[str]) -> bool:
    """Return True for a function word and for a form of a known word: "costs" of "cost"."""
    return word in FUNCTION_WORDS or word in known or any(_is_form(word, each) for each in known)


def _is_form(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= _MIN_STEM and long.startswith(short) and len(long) - len(short) <= _MAX_ENDING
