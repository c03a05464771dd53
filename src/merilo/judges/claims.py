"""Verdicts on English claims by their values and words, and only if these decide.

A claim is supported if one passage has all of its values and names and nearly all of its words, close together, with
the same negations and each value next to the same words. It is not supported if a value that matters is in no passage.
Anything else stays open. The encoder is asked only about what words leave open, and cannot support a claim alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.data.sentences import Piece, sentences
from merilo.data.short_answers import affirms, stated, taken_apart
from merilo.data.values import FUNCTION_WORDS, Date, Number, equal, has_value
from merilo.judges.copied import OPPOSITES, Position, Slots, opposes, slots
from merilo.judges.words import stems, weight

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


Value = Number | Date

_WORDS, _CLAUSE, _CLAUSES = 0.9, 0.7, 0.9
"""Fractions of a claim's words, by weight, that a supporting window has at least, that one clause of it has of a claim
of one clause, and of each clause of any other claim."""
_CLOSE_WORDS, _CLOSE_CLAUSE, _P_CLOSE = 0.8, 0.4, 0.85
"""Lower fractions, of the words and of each clause, if the encoder's probability of support is at least the last."""
_ASKED, _P_ANSWERS = 0.6, 0.4
"""Fraction of the question's words that a bare value needs next to it, and the encoder's least probability for it."""
P_STATED, P_CLOSE, P_ABSENT = 0.95, 0.9, 0.05
"""Probabilities of support of what words decide: about the rate at which they were right on labelled answers."""
_WHOLE: Final = 0.75
"""Fraction of a clause's words that a claim with "all" or a superlative repeats at least."""
_SAME_TOPIC: Final = 0.3
"""Fraction of a claim's words from which the negations of a sentence count."""
_MIN_WEIGHT: Final = 0.2
_RARE: Final = 0.5
"""Weight from which a word of a claim must be in its passage."""
_MAX_WINDOW: Final = 3
_MAX_READ: Final = 12
"""Windows, the best ones by words, that are compared by values, names and negations."""
_IN_CELL: Final = " · "
"""Between the name of a row and the column of a cell."""
_MIN_QUOTED: Final = 3
"""Words of a quoted clause, if others between it and the next are left out."""
_MIN_SAID: Final = 2
"""Content words and values of a claim that is judged without its question."""
_SMALL: Final = 10
"""Counts up to this one may be concluded from what a passage lists."""
_MAX_COMBINED: Final = 60
"""Values of a passage whose sums and differences are formed."""
_BEFORE, _AFTER = 16, 10
"""Characters before and after a value in which a word shows that it may be concluded."""

_DERIVED: Final = re.compile(
    r"\b(?:over|under|than|least|most|nearly|almost|about|around|approximately|roughly|some|up to|until|since|another|"
    r"average|total|century)\b|\d0['’]?s\b",
    re.IGNORECASE,
)
_NUMERAL: Final = re.compile(r"\d+(?:[.,]\d+)*")
_SCALED: Final = re.compile(r"\d\)?\s?(?:hundred|thousand|million|billion|trillion|k|m|mn|bn)\b", re.IGNORECASE)
_BETWEEN: Final = re.compile(r"\b(between [^,;.]{1,30}) and ", re.IGNORECASE)
_CLAUSE_END: Final = re.compile(
    r"(?<!\d):|:(?!\d)|[;()|\n—]|,(?!\d)|[.!?](?=\s)|\b(?:and|but|while|whereas|although)\b"
)
_UNRESTRICTED: Final = re.compile(
    r"\b(?:most|only|all|every|always|first|last|best|worst|any|\w{3,20}est)\b", re.IGNORECASE
)
_OPINION: Final = re.compile(r"\b(?:I|i|[Mm]y|[Ww]e)\b")
_RUN: Final = re.compile(r"[^\W_]+(?:[.,]\d+)*")
_LIGHT: Final = frozenset(stems(" ".join([*FUNCTION_WORDS, "there here however therefore each answer question"])))
_ARTICLES: Final = frozenset({"a", "an", "the"})


class Finding(NamedTuple):
    """What values and words show of a claim; `holds` is None if they leave it open."""

    reason: str
    probability: float | None = None
    place: Position | None = None
    """The context and the piece of it that is closest to the claim."""
    holds: bool | None = None


@dataclass(frozen=True, slots=True)
class _Content:
    """What a text says; `words`: stems of its content words, names included."""

    slots: Slots
    words: frozenset[str]
    written: frozenset[str]
    """All words in lower case, without possessive endings."""

    @property
    def values(self) -> tuple[Value, ...]:
        return self.slots.values


class _Window(NamedTuple):
    """Pieces in a row of one passage, with the fraction of the claim's words that they have."""

    share: float
    texts: tuple[str, ...]
    place: Position


@lru_cache(maxsize=4_096)
def _content(text: str) -> _Content:
    own = slots(text)
    found = [*stems(own.rest), *stems(" ".join(sorted(own.words & OPPOSITES)))]
    words = frozenset(each for each in found if weight(each) >= _MIN_WEIGHT and each not in _LIGHT)
    return _Content(own, words, frozenset(each.removesuffix("'s") for each in own.words))


@lru_cache(maxsize=4_096)
def _clauses(text: str) -> tuple[str, ...]:
    parts = _CLAUSE_END.split(_BETWEEN.sub(r"\1 to ", text))
    return tuple(each for each in parts if each.strip())


def _share(words: frozenset[str], held: frozenset[str]) -> float:
    """Return the fraction of words, by weight, that are among others; 1 without a word."""
    whole = sum(map(weight, words))
    return sum(weight(each) for each in words & held) / whole if whole else 1.0


Passage = list[tuple[str, Position]]
"""Texts in a row, each with its context and its place there."""


def _passages(contexts: Sequence[Sequence[Piece]]) -> list[Passage]:
    """Return the prose of each context, without the headers of its tables, and each row of the tables."""
    found: list[Passage] = []
    for number, own in enumerate(contexts):
        rows: dict[str, Passage] = {}
        for at, piece in enumerate(own):
            name = f"{piece.place} {piece.text.partition('; ')[0]}" if piece.is_cell else ""
            # a cell is one clause
            text = piece.text.replace("; ", _IN_CELL).replace(": ", " ") if piece.is_cell else piece.text
            rows.setdefault(name, []).append((text, Position(number, at)))
        found += rows.values()
    return found


def _windows(words: frozenset[str], passages: Iterable[Passage], most: int = _MAX_WINDOW) -> Iterator[_Window]:
    """Yield one to `most` texts in a row of each passage."""
    for passage in passages:
        held = [_content(text).words & words for text, _ in passage]
        for size in range(1, most + 1):
            for at in range(len(passage) - size + 1):
                own, texts = held[at : at + size], tuple(text for text, _ in passage[at : at + size])
                best = max(range(size), key=lambda place: (_share(words, own[place]), -place))
                yield _Window(_share(words, frozenset[str]().union(*own)), texts, passage[at + best][1])


def judge_claim(
    claim: str,
    contexts: Sequence[Sequence[Piece]],
    question: str = "",
    probability: Callable[[], float | None] = lambda: None,
) -> Finding:
    """Judge whether contexts, as `pieces` divides them, state a claim, or a short answer together with its question.

    `probability` returns the encoder's probability of support; None if it has none.
    """
    asked, text = taken_apart(claim) or ("", claim)
    passages, mine = _passages(contexts), _content(text)
    if not passages:
        return Finding("No context has text", P_ABSENT, holds=False)
    if affirms(text) is not None:
        other = affirms(passages[0][0][0])
        return Finding("a bare yes or no") if other is None else Finding("The other answer", P_ABSENT, holds=False)
    missing = _missing(text, asked or question, passages)
    if missing:
        closest = _closest(mine.words | _content(asked).words, passages)
        return Finding(f"No passage has '{missing}'", P_ABSENT, closest, holds=False)
    passages = _about(asked or question, text, passages)
    says_little = len(mine.words) + len(mine.values) < _MIN_SAID
    if asked or (says_little and question and mine.words | {*mine.values}):
        found = _judge_value(asked or question, mine, passages, probability)
        return found if not (found.holds and _UNRESTRICTED.search(text)) else Finding("it leaves no exception")
    if says_little or _OPINION.search(text):
        return Finding("it says too little")
    windows = sorted(_windows(mine.words, passages), key=lambda each: (-round(each.share, 6), len(each.texts)))
    place, why = (windows[0].place, "") if windows else (None, "no passage is close to it")
    for window in windows[:_MAX_READ]:
        judged = _in_window(text, asked or question, window, probability)
        if isinstance(judged, Finding):
            return judged
        why = why or judged
    return Finding(why, None, place)


def _in_window(text: str, question: str, window: _Window, probability: Callable[[], float | None]) -> Finding | str:
    """Return the finding on a claim in one window; a phrase if another window may show more."""
    differing = _differing(text, window.texts) or _other_subject(question, text, window.texts)
    if differing:
        return differing
    if _is_quoted(text, window.texts):
        return Finding("Quoted from", P_STATED, window.place, holds=True)
    if not (_is_bound(text, window.texts, question) and _is_in_order(text, window.texts)):
        return "a value, a name or a word next to others"
    return _by_words(text, window, probability) if _is_whole(text, window.texts) else "it leaves out a restriction"


def _by_words(text: str, window: _Window, probability: Callable[[], float | None]) -> Finding:
    # "Dermatology" for "neurology" leaves most words of a claim in place, so one rare word decides.
    held = frozenset[str]().union(*(_content(each).words for each in window.texts))
    missing = _content(text).words - held
    if any(weight(each) >= _RARE for each in missing):
        return Finding("a word that its passage lacks", None, window.place)
    several = sum(bool(_content(each).words) for each in _clauses(text)) > 1
    together = _together(text, window.texts)
    if window.share >= _WORDS and together >= (_CLAUSES if several else _CLAUSE):
        return Finding("Stated in", P_STATED, window.place, holds=True)
    if window.share < _CLOSE_WORDS or together < _CLOSE_CLAUSE:
        return Finding("words that no passage has together", None, window.place)
    p_support = probability() or 0.0
    holds = True if p_support >= _P_CLOSE else None
    return Finding("Close to", P_CLOSE if holds else p_support, window.place, holds=holds)


def _closest(words: frozenset[str], passages: Iterable[Passage]) -> Position | None:
    best = max(_windows(words, passages, 1), key=lambda each: each.share, default=None)
    return best.place if best is not None and best.share else None


_CODE: Final = re.compile(r"\b[A-Z]{1,9}-?\d{1,9}[A-Za-z]{0,3}\b")


def judge_sufficiency(asked: str, reference: str, contexts: Sequence[Sequence[Piece]]) -> Finding:
    """Judge by values and words whether contexts hold the answer to a question; `reference`: empty if unknown.

    They do if they state each sentence of the reference. They do not if no passage has one of its values, or a code of
    the question, such as "E-1042".
    """
    passages = _passages(contexts)
    missing = _missing(reference, asked, passages) if reference else ""
    if missing:
        return Finding(f"No passage has '{missing}' of the reference", P_ABSENT, holds=False)
    # A short reference is a claim only together with its question.
    claims = [stated(each, asked, "en") or each for each in sentences(reference)]
    # A reference is true: it only has to be found, so close words are enough.
    if claims and all(judge_claim(each, contexts, asked, lambda: 1.0).holds for each in claims):
        return Finding("A passage states the reference", P_STATED, holds=True)
    texts = [text.lower() for passage in passages for text, _ in passage]
    code = next((each for each in _CODE.findall(asked) if not any(each.lower() in text for text in texts)), "")
    if code:
        return Finding(f"No passage has '{code}'", P_ABSENT, holds=False)
    return Finding("values and words do not decide it")


_SUBJECT: Final = re.compile(r"\b[A-Z][A-Za-z]{0,15}[ -]?\d{1,5}(?:[A-Za-z]{1,3}\b|-[A-Z\d]{1,4}\b|\b)")
"""A name with a number, such as "R310-X" and "Windows 11"."""


def _about(question: str, claim: str, passages: list[Passage]) -> list[Passage]:
    """Return the passages of contexts that name what a question is about; all if it has none, or a claim has one.

    An answer about one product is not supported by the manual of another.
    """
    wanted = [
        each.lower() for each in _SUBJECT.findall(question) or ([] if slots(claim).names else slots(question).names)
    ]
    if not wanted or _SUBJECT.search(claim):
        return passages
    texts: dict[int, str] = {}
    for passage in passages:
        for text, place in passage:
            texts[place.context] = f"{texts.get(place.context, '')} {text}".lower()
    about = {
        at for at, text in texts.items() if any(re.search(rf"{re.escape(each)}(?![\w-])", text) for each in wanted)
    }
    return [passage for passage in passages if passage[0][1].context in about]


def _other_subject(question: str, claim: str, texts: Sequence[str]) -> str:
    """Return a phrase if the clauses that are close to a claim name another subject than the question; else empty."""
    wanted = {each.lower() for each in _SUBJECT.findall(question)}
    if not wanted or _SUBJECT.search(claim):
        return ""
    mine = _content(claim)
    near = [
        each
        for each in _parts(texts)
        if _share(mine.words, each.words) >= _SAME_TOPIC or any(has_value(value, each.slots) for value in mine.values)
    ]
    named = {each.lower() for part in near for each in _SUBJECT.findall(part.slots.text)}
    return "another subject" if named and named.isdisjoint(wanted) else ""


# -- values ---------------------------------------------------------------------------------------------


def _missing(text: str, asked: str, passages: Sequence[Passage]) -> str:
    """Return the first value of a text that no passage has; empty if there is none.

    Left out are small counts, values of the question, and values that may be concluded from others.
    """
    mine = _content(text)
    texts = [each for passage in passages for each, _ in passage]
    for value in mine.values:
        if isinstance(value, Date):
            is_small = not (value.year or value.day)
        else:
            is_small = value.raw <= _SMALL and value.dimension in {"", "ordinal"}
        at = mine.slots.text.find(value.text)
        near = mine.slots.text[max(0, at - _BEFORE) : at + len(value.text) + _AFTER]
        if is_small or at < 0 or _DERIVED.search(near):
            continue
        held = has_value(value, slots(asked)) or any(has_value(value, slots(each)) for each in texts)
        # "433 million" is "433" in a table of millions
        scaled = () if held or not _SCALED.search(value.text) else _NUMERAL.findall(value.text)
        if not held and not any(each in _NUMERAL.findall(other) for each in scaled for other in texts):
            return "" if _is_derived(value, passages) else value.text
    return ""


def _is_derived(value: Value, passages: Sequence[Passage]) -> bool:
    """Return True for a sum or difference of two values of a passage, half or double of one, a time between dates."""
    if isinstance(value, Date):
        return False
    of_passages = [[each for text, _ in passage for each in slots(text).values] for passage in passages]
    if value.dimension in {"time", "months"} and any(sum(isinstance(e, Date) for e in own) > 1 for own in of_passages):
        return True
    numbers = [each for own in of_passages for each in own if isinstance(each, Number)]
    same: list[Value] = [each for each in numbers if each.dimension == value.dimension]
    for own in (*of_passages, same):
        known = [float(each.year) if isinstance(each, Date) else each.value for each in own[:_MAX_COMBINED]]
        derived = {2 * each for each in known} | {each / 2 for each in known}
        derived |= {result for one, other in combinations(known, 2) for result in (one + other, abs(one - other))}
        if not derived.isdisjoint({value.value, value.raw}):
            return True
    return False


def _judge_value(
    asked: str, mine: _Content, passages: Sequence[Passage], probability: Callable[[], float | None]
) -> Finding:
    """Judge a short answer: a passage has it close to the words of the question, and nothing else is as close."""
    asks = _content(asked)
    wanted = asks.words - mine.words
    best, here, elsewhere = _Window(0.0, (), Position(0, 0)), 0.0, 0.0
    for window in _windows(wanted, passages, 2):
        own = [_content(each) for each in window.texts]
        known = frozenset[str]().union(*(each.written for each in own))
        if _has(own, mine) and all(_is_named(each, known) for each in (*mine.slots.names, *asks.slots.names)):
            best = max(best, window, key=lambda each: each.share)
    for clause in (_content(each) for passage in passages for text, _ in passage for each in _clauses(text)):
        share = _share(wanted, clause.words)
        here, elsewhere = (max(here, share), elsewhere) if _has([clause], mine) else (here, max(elsewhere, share))
    place = best.place if best.texts else None
    if here < elsewhere or best.share < _ASKED:
        return Finding("another clause is as close to the question", None, place)
    p_answers = probability() or 0.0
    holds = True if p_answers >= _P_ANSWERS else None
    return Finding("In answer to the question, in", P_CLOSE if holds else p_answers, place, holds=holds)


def _has(texts: Sequence[_Content], mine: _Content) -> bool:
    """Return True if texts together have the words and values of a text."""
    held = frozenset[str]().union(*(each.words for each in texts))
    return mine.words <= held and all(any(has_value(value, each.slots) for each in texts) for value in mine.values)


def _is_named(name: str, known: frozenset[str]) -> bool:
    low = name.lower()
    return not known.isdisjoint({low, f"{low}s", low.removesuffix("s")})


# -- what must agree -------------------------------------------------------------------------------------


def _differing(claim: str, texts: Sequence[str]) -> str:
    """Return what texts lack of a claim, or say otherwise; empty if nothing."""
    mine, own = _content(claim), [_content(each) for each in texts]
    known = frozenset[str]().union(*(each.written for each in own))
    if not all(any(has_value(value, each.slots) for each in own) for value in mine.values):
        return "its values are in other sentences"
    if not all(_is_named(each, known) for each in mine.slots.names):
        return "another name"
    if _is_quoted(claim, texts):
        return ""
    near = [each for each in own if _share(mine.words, each.words) >= _SAME_TOPIC] or own
    parts = _parts(texts)
    for clause in _parts([claim]):
        nearest = max(parts, key=lambda each: _share(clause.words, each.words), default=clause)
        if clause.words and clause.slots.denials != nearest.slots.denials:
            return "a negation"
    return "an opposite" if any(opposes(mine.slots, each.slots) for each in near) else ""


@lru_cache(maxsize=4_096)
def _run(text: str) -> str:
    """Return the words of a text without articles, each between spaces."""
    return f" {' '.join(each for each in map(str.lower, _RUN.findall(text)) if each not in _ARTICLES)} "


def _is_quoted(claim: str, texts: Sequence[str]) -> bool:
    """Return True if each clause of a claim is a run of words of the texts which no negation introduces."""
    whole = _run(" ".join(texts))
    for clause in _clauses(claim):
        at = whole.find(_run(clause))
        if at < 0 or (_content(" ".join(whole[:at].split()[-5:])).slots.denials and not _content(clause).slots.denials):
            return False
    is_short = any(len(_run(each).split()) < _MIN_QUOTED for each in _clauses(claim))
    return (len(_clauses(claim)) < 3 and not is_short) or _run(claim) in whole


def _parts(texts: Iterable[str]) -> list[_Content]:
    return [_content(each) for text in texts for each in _clauses(text)]


def _is_bound(claim: str, texts: Sequence[str], question: str) -> bool:
    """Return True if each value and name is next to the claim's words, and not another one of its kind."""
    parts, is_row = _parts(texts), any(_IN_CELL in text for text in texts)
    # "It is stored on drives" fits every row that says so, unless the claim or its question names the row.
    row = {*stems(texts[0].partition(_IN_CELL)[0])} if is_row else set[str]()
    if row and row.isdisjoint(stems(f"{claim} {question}")):
        return False
    for own in map(_content, _clauses(claim)):
        if is_row and not any(all(has_value(each, part.slots) for each in own.values) for part in parts):
            return False
        if len(own.slots.numbers) > 1 and not any(_in_order(own.slots.numbers, part.slots.numbers) for part in parts):
            return False
        names = {each.lower() for each in own.slots.names}
        about = own.words - frozenset(stems(" ".join(own.slots.names)))
        holders = [(not names.isdisjoint(map(str.lower, each.slots.names)), each) for each in parts if each.slots.names]
        if names and not _is_nearer(about, holders):
            return False
        if len(names) > 1 and not _are_together(names, parts):
            return False
        for value in own.values:
            about = own.words - frozenset(stems(value.text))
            rivals = [each for each in parts if any(_may_be(value, other) for other in each.values)]
            if not _is_nearer(about, [(has_value(value, each.slots), each) for each in rivals]):
                return False
    return True


def _are_together(names: set[str], parts: Sequence[_Content]) -> bool:
    """Return True if one clause has all names, or none of the clauses that have one names something else, too."""
    named = [{each.lower() for each in part.slots.names} for part in parts]
    return any(names <= own for own in named) or not any(own & names and own - names for own in named)


_ORDERING: Final = re.compile(r"\b(before|after|then)\b(.*)", re.IGNORECASE | re.DOTALL)


def _is_in_order(claim: str, texts: Sequence[str]) -> bool:
    """Return False if what follows "before" or "then" follows no such word of the texts, or subjects are exchanged."""
    after = _follows(claim)
    if after and not any(after <= _follows(text) for text in texts):
        return False
    own = [_sequence(text) for text in (*texts, " ".join(texts))]
    if not all(any(_is_part(_sequence(each), known) for known in own) for each in _clauses(claim)):
        return False
    parts, clauses = _parts(texts), [(_first(each), _content(each).words) for each in _clauses(claim)]
    # Exchanged subjects: the rest of each clause is found next to the subject of the other one.
    near = {a: max(parts, key=lambda each: _share(words - {a}, each.words)).words for a, words in clauses if a}
    return not any(a not in near[a] and b in near[a] and b not in near[b] and a in near[b] for a in near for b in near)


def _sequence(text: str) -> list[str]:
    """Return the stems of the content words of a text, in order."""
    words = _content(text).words
    return [stem for stem in stems(text) if stem in words]


def _is_part(mine: Sequence[str], own: Sequence[str]) -> bool:
    """Return True if those words of a sequence that another one has, too, occur there in the same order."""
    rest = iter(own)
    return all(each in rest for each in mine if each in own)


def _follows(text: str) -> set[tuple[str, str]]:
    found, rest = set[tuple[str, str]](), _ORDERING.search(text)
    while rest:
        found.add((rest[1].lower(), _first(rest[2])))
        rest = _ORDERING.search(rest[2])
    return found


def _first(text: str) -> str:
    """Return the stem of the first content word of a text; empty if there is none."""
    return next(iter(_sequence(text)), "")


def _is_nearer(about: frozenset[str], holders: Sequence[tuple[bool, _Content]]) -> bool:
    """Return True if the clauses that have a value have as many of its words as those that have another."""
    mine = [_share(about, part.words) for has_it, part in holders if has_it]
    rivals = [_share(about, part.words) for has_it, part in holders if not has_it]
    return not about or max(rivals, default=0.0) <= max(mine, default=0.0)


def _may_be(one: Value, other: Value) -> bool:
    """Return True if one value may be mistaken for the other."""
    kinds = {"date" if isinstance(each, Date) else each.dimension for each in (one, other)}
    return len(kinds) == 1 or ("" in kinds and "date" not in kinds)


def _in_order(mine: Sequence[Number], own: Sequence[Number]) -> bool:
    rest = iter(own)
    return all(any(equal(each, other) for other in rest) for each in mine)


def _is_whole(claim: str, texts: Sequence[str]) -> bool:
    """Return True unless "all" or a superlative of a claim leaves out a restriction of the texts."""
    mine = _content(claim).words
    nearest = max((each.words for each in _parts(texts)), key=lambda each: _share(mine, each), default=frozenset[str]())
    return not _UNRESTRICTED.search(claim) or _share(nearest, mine) >= _WHOLE


def _together(claim: str, texts: Sequence[str]) -> float:
    """Return the lowest fraction of a clause of a claim that one clause of the texts has; of a lone clause, two may."""
    parts = [each.words for each in _parts(texts)]
    mine = [each.words for each in _parts([claim]) if each.words]
    parts += [one | other for one, other in pairwise(parts)] if len(mine) == 1 else []
    return min((max((_share(each, held) for held in parts), default=0.0) for each in mine), default=1.0)
