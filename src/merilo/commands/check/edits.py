"""The judgements that edits start from, and the edits of texts: a negation, another number, another name, more text."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from merilo.commands.check.items import KIND, clusters_of, label_questions, label_sample
from merilo.data.labels import Task
from merilo.metrics.steps import is_blank

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from merilo.data.labels import Labelled

T = TypeVar("T")

EDITED_KINDS: Final = ("relevance", "support", "sufficiency")
"""The kinds of question whose texts are edited."""
_EDITED_TASKS: Final = frozenset({Task.CHUNK_RELEVANCE, Task.GROUNDEDNESS, Task.NLI, Task.SUFFICIENCY})


@dataclass(frozen=True, slots=True)
class Case:
    """One judgement before editing, with its human label."""

    id: str
    asks: str
    """The kind of question, one of `EDITED_KINDS`."""
    language: str
    user_input: str
    """The question; may be empty for support."""
    contexts: tuple[str, ...]
    """The contexts; exactly one for relevance."""
    statement: str
    """The statement for support; otherwise empty."""
    yes: bool
    """True if annotators labelled it relevant (grade 1 or 2), supported or sufficient."""
    cluster: Hashable
    """The cluster; cases that share a question or a text are in the same one."""


def labelled_cases(records: Sequence[Labelled]) -> list[Case]:
    """Return the cases of labelled records, in order; records of other tasks and with blank texts have none.

    A supported response of several sentences gives one case per sentence. An unsupported one gives none, as it is not
    known which sentence is unsupported.
    """
    kept = [record for record in records if record.task in _EDITED_TASKS]
    found: list[Case] = []
    for record, cluster in zip(kept, clusters_of(kept), strict=True):
        sample = label_sample(record)
        questions = label_questions(record.task, sample)
        yes = record.grade >= 1 if record.grade is not None else record.yes
        if any(map(is_blank, record.texts)) or (len(questions) > 1 and not yes):
            continue
        for place, question in enumerate(questions):
            found.append(
                Case(
                    id=f"{record.task}:{record.id}" + (f":{place + 1}" if len(questions) > 1 else ""),
                    asks=KIND[record.task].kind,
                    language=sample.resolved_language,
                    user_input=record.query,
                    contexts=record.texts,
                    statement=question.subject or "",
                    yes=yes,
                    cluster=(record.source, cluster),
                )
            )
    return found


@dataclass(frozen=True, slots=True)
class SeededSampler:
    """Reproducible random choices: each depends only on the seed and on the names given to it."""

    seed: int

    def number(self, *names: object) -> int:
        """Return a whole number from 0 to 2^64 - 1."""
        text = "\x1f".join(map(str, (self.seed, *names))).encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")

    def one(self, among: Sequence[T], *names: object) -> T:
        """Return one element of a sequence that is not empty."""
        return among[self.number(*names) % len(among)]

    def order(self, among: Iterable[T], *names: object) -> list[T]:
        """Return all elements in random order."""
        drawn = sorted((self.number(*names, place), place, each) for place, each in enumerate(among))
        return [each for *_, each in drawn]


# -- inserted texts -----------------------------------------------------------------------------------

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
    "en": ("is are was were can could will would should may might must", "not"),
    "ru": (
        "является являются был была было были может могут имеет имеют находится находятся стал стала получил родился",
        "не",
    ),
    "es": ("es son fue fueron era eran está están tiene tienen tenía había ha han puede pueden nació murió", "no"),
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
