"""The judgements that edits start from: labelled records of three kinds of question."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from merilo.commands.check.asking import label_questions, sample_of
from merilo.commands.check.items import clusters_of
from merilo.data.labels import Task
from merilo.metrics.steps import is_blank

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from merilo.data.labels import Labelled

T = TypeVar("T")


class JudgementKinds(StrEnum):
    """The kinds of question whose texts probes edit; the values are those of `Question.kind`."""

    RELEVANCE = "relevance"
    SUPPORT = "support"
    SUFFICIENCY = "sufficiency"


_TASKS: Final[Mapping[Task, JudgementKinds]] = {
    Task.CHUNK_RELEVANCE: JudgementKinds.RELEVANCE,
    Task.GROUNDEDNESS: JudgementKinds.SUPPORT,
    Task.NLI: JudgementKinds.SUPPORT,
    Task.SUFFICIENCY: JudgementKinds.SUFFICIENCY,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One judgement before editing, with its human label."""

    id: str
    asks: JudgementKinds
    source: str
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
    kept = [record for record in records if record.task in _TASKS]
    found: list[Case] = []
    for record, cluster in zip(kept, clusters_of(kept), strict=True):
        asks, sample = _TASKS[record.task], sample_of(record)
        questions = label_questions(record.task, sample)
        yes = record.grade >= 1 if record.grade is not None else record.yes
        if any(map(is_blank, record.texts)) or (len(questions) > 1 and not yes):
            continue
        for place, question in enumerate(questions):
            found.append(
                Case(
                    id=f"{record.task}:{record.id}" + (f":{place + 1}" if len(questions) > 1 else ""),
                    asks=asks,
                    source=record.source,
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
