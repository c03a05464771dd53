"""Edits of one fact in a statement (a negation, another number, another name), and the texts that edits insert."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from merilo.commands.check.cases import SeededSampler

LANGUAGES: Final = ("en", "ru", "es")
"""The languages of inserted texts."""


class InsertedTexts(NamedTuple):
    """The texts that edits insert, by language."""

    instructions: Mapping[str, Sequence[str]]
    """Instructions to a judge, equally many in each language; `{target}` is the verdict that they ask for."""
    targets: Mapping[str, Mapping[str, Sequence[str]]]
    """By kind of question: the names of the negative and the positive verdict."""
    neutral: Mapping[str, Sequence[str]]
    """Sentences that say nothing about anything that may be asked."""


@cache
def inserted_texts() -> InsertedTexts:
    """Return the texts that ship with merilo."""
    text = files("merilo.commands.check").joinpath("inserted_texts.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)  # Any: JSON
    return InsertedTexts(**found)


def neutral(language: str, length: int, start: int) -> str:
    """Return neutral text of about `length` characters, whole words, beginning with the sentence at `start`.

    It is English for other languages than `LANGUAGES`, and at most one word longer or shorter than `length`.
    """
    sentences = inserted_texts().neutral
    pool = sentences.get(language, sentences["en"])
    words: list[str] = []
    size, place = -1, start
    while size < length:
        for word in pool[place % len(pool)].split():
            if size >= length or (words and size + 1 + len(word) - length > length - size):
                size = length  # another word would make the difference larger
                break
            words.append(word)
            size += 1 + len(word)
        place += 1
    return " ".join(words).rstrip(".,;") + "."


_VERBS: Final[Mapping[str, tuple[str, str]]] = {
    "en": (
        "is are was were can could will would should may might must",
        "not",
    ),
    "ru": (
        "является являются был была было были может могут имеет имеют находится находятся стал стала получил родился",
        "не",
    ),
    "es": (
        "es son fue fueron era eran está están tiene tienen tenía había ha han puede pueden nació murió",
        "no",
    ),
}
"""By language: verbs that one adjacent word negates, and that word (after the verb in English, else before)."""
_DENIED: Final = re.compile(r"\b(?:not|never|no|не|нет|nunca)\b|n['’]t\b", re.IGNORECASE)
_NUMBER: Final = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?![\w])")
_NAME: Final = re.compile(r"(?<![.!?:\"“«(] )(?<!^)\b[A-ZÀ-ÞЁА-Я][\w’-]+(?: [A-ZÀ-ÞЁА-Я][\w’-]+)*")
_SHORTEST_NAME: Final = 4


def denied(statement: str, language: str) -> str | None:
    """Return the statement with its first known verb negated.

    None if it has no such verb, contains a negation or a question already, or is not English, Russian or Spanish.
    """
    if language not in _VERBS or "?" in statement or _DENIED.search(statement):
        return None
    verbs, no = _VERBS[language]
    found = re.search(rf"(?<!^)\b(?:{'|'.join(verbs.split())})\b", statement)
    if found is None:
        return None
    place = found.end() if language == "en" else found.start()
    negation = f" {no}" if language == "en" else f"{no} "
    return statement[:place] + negation + statement[place:]


def other_number(statement: str, contexts: Iterable[str], sampler: SeededSampler, *names: object) -> str | None:
    """Return the statement with one digit of a number changed, so that the contexts do not contain the new number.

    Only numbers that occur in the contexts are changed. None if there is none, or no such digit.
    """
    text = " ".join(contexts)
    known = set(_NUMBER.findall(text))
    places = [match for match in _NUMBER.finditer(statement) if match[0] in known]
    if not places:
        return None
    chosen = sampler.one(places, *names, "which")
    figures = [place for place, char in enumerate(chosen[0]) if char.isdigit()]
    for place, step in sampler.order([(place, step) for place in figures for step in range(1, 10)], *names, "figure"):
        figure = (int(chosen[0][place]) + step) % 10
        number = f"{chosen[0][:place]}{figure}{chosen[0][place + 1 :]}"
        if number not in text and not (len(number) > 1 and number[0] == "0"):
            return statement[: chosen.start()] + number + statement[chosen.end() :]
    return None


def other_name(
    statement: str, contexts: Iterable[str], pool: Sequence[str], sampler: SeededSampler, *names: object
) -> str | None:
    """Return the statement with one name replaced by a name from `pool` that the contexts do not contain.

    Names are capitalised words that do not begin a sentence. The replaced name occurs in the contexts, and the new one
    has as many words. None if there is no such name or no replacement.
    """
    text = " ".join(contexts)
    folded = f"{text} {statement}".casefold()
    places = [match for match in _NAME.finditer(statement) if len(match[0]) >= _SHORTEST_NAME and match[0] in text]
    if not places:
        return None
    chosen = sampler.one(places, *names, "which")
    size = len(chosen[0].split())
    fitting = [name for name in pool if len(name.split()) == size and name.casefold() not in folded]
    if not fitting:
        return None
    other = sampler.one(fitting, *names, "name")
    return statement[: chosen.start()] + other + statement[chosen.end() :]


def names_in(texts: Iterable[str]) -> list[str]:
    """Return the distinct names in texts, in order of first appearance."""
    found = (match[0] for text in texts for match in _NAME.finditer(text))
    return [*dict.fromkeys(name for name in found if len(name) >= _SHORTEST_NAME)]
