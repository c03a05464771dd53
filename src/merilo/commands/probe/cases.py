"""What is changed by a probe: single judgements, from labelled records or from data that is evaluated."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from merilo.commands.check.asking import JudgedAsLabelled, sample_of
from merilo.commands.check.items import clusters_of
from merilo.data.labels import Task
from merilo.data.sentences import sentences
from merilo.judging.questions import Relevance, Sufficiency, Support
from merilo.metrics.steps import is_blank

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from merilo.data.labels import Labelled
    from merilo.data.sample import Sample
    from merilo.judging.questions import Question

T = TypeVar("T")


class Asks(StrEnum):
    """The kinds of judgement that probes change."""

    RELEVANCE = "relevance"
    SUPPORT = "support"
    SUFFICIENCY = "sufficiency"


_TASKS: Final[Mapping[Task, Asks]] = {
    Task.CHUNK_RELEVANCE: Asks.RELEVANCE,
    Task.GROUNDEDNESS: Asks.SUPPORT,
    Task.NLI: Asks.SUPPORT,
    Task.SUFFICIENCY: Asks.SUFFICIENCY,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One judgement as it would be asked for, and what people said of it."""

    id: str
    asks: Asks
    source: str
    language: str
    user_input: str
    """Empty for support where nothing was asked."""
    contexts: tuple[str, ...]
    """One for relevance."""
    statement: str
    """Of support; empty elsewhere."""
    yes: bool | None
    """Whether people said relevant (grade 1 or 2), supported or sufficient; None where nobody was asked."""
    cluster: Hashable
    """Cases that share a question or a text have the same."""


def question_of(
    asks: Asks, *, user_input: str, contexts: Sequence[str], statement: str, language: str
) -> Question[Any]:
    """The question that merilo's own metrics would ask."""
    match asks:
        case Asks.RELEVANCE:
            return Relevance(user_input, sentences(contexts[0], language), language=language)
        case Asks.SUPPORT:
            return Support(statement, tuple(contexts), language=language)
        case Asks.SUFFICIENCY:
            return Sufficiency(user_input, tuple(contexts), language=language)


def labelled_cases(records: Sequence[Labelled]) -> list[Case]:
    """The cases of labelled records, in their order; records of other tasks and with blank texts have none.

    A response of several sentences is a case for each where people found it supported, and none where they did not:
    which sentence was at fault is not known.
    """
    kept = [record for record in records if record.task in _TASKS]
    found: list[Case] = []
    for record, cluster in zip(kept, clusters_of(kept), strict=True):
        asks, sample = _TASKS[record.task], sample_of(record)
        questions = JudgedAsLabelled(record.task).questions(sample)
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
                    statement=question.statement if isinstance(question, Support) else "",
                    yes=yes,
                    cluster=(record.source, cluster),
                )
            )
    return found


def cases_of(samples: Iterable[Sample], source: str) -> list[Case]:
    """The cases in data that nobody has labelled: each context for its question, each sentence of a response."""
    return [case for sample in samples for case in _cases_of(sample, source)]


def _cases_of(sample: Sample, source: str) -> Iterator[Case]:
    contexts = tuple(each.text for each in sample.retrieved_contexts or () if not is_blank(each))
    asked, language = sample.user_input or "", sample.resolved_language
    cluster = (source, asked.strip() or sample.id)

    def case(name: str, asks: Asks, texts: tuple[str, ...], statement: str = "") -> Case:
        return Case(f"{source}:{sample.id}:{name}", asks, source, language, asked, texts, statement, None, cluster)

    if not contexts:
        return
    if not is_blank(asked):
        yield from (case(f"context {n + 1}", Asks.RELEVANCE, (text,)) for n, text in enumerate(contexts))
        yield case("contexts", Asks.SUFFICIENCY, contexts)
    stated = sample.sentences("response") if sample.response is not None else ()
    for n, text in enumerate(stated):
        if not is_blank(text):
            yield case(f"sentence {n + 1}", Asks.SUPPORT, contexts, text)


@dataclass(frozen=True, slots=True)
class Lot:
    """Draws that are always the same for the same seed and names, and know nothing of one another."""

    seed: int

    def number(self, *names: object) -> int:
        """A whole number from 0 to 2^64 - 1."""
        told = "\x1f".join(map(str, (self.seed, *names))).encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(told, digest_size=8).digest(), "little")

    def one(self, among: Sequence[T], *names: object) -> T:
        """One of at least one."""
        return among[self.number(*names) % len(among)]

    def order(self, among: Iterable[T], *names: object) -> list[T]:
        """All of them, in an order by lot."""
        drawn = sorted((self.number(*names, place), place, each) for place, each in enumerate(among))
        return [each for *_, each in drawn]
