"""Synthetic samples and synthetic verdicts for the contract: seeded, always the same, no two texts equal.

Verdicts are a function of the texts alone, so they do not depend on the position of a context: whether a context
supports a statement depends on the two texts, not on its number.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from merilo.data.nuggets import NUGGETS
from merilo.data.sample import Sample
from merilo.judging.questions import Question
from merilo.judging.synthetic import Odds, chance
from merilo.judging.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


COUNT: Final = 24
_MAX_CONTEXTS: Final = 5
_WORDS: Final = "amber basin copper delta ember fjord glacier harbour island juniper kelp lagoon".split()


def samples() -> Iterator[Sample]:
    """Yield full samples of 1 to 5 contexts; some contexts are blank, some occur twice."""
    for number in range(COUNT):
        yield sample(number)


def sample(number: int) -> Sample:
    """Return the full sample with this number: every field and nuggets; only a context is ever blank."""
    contexts = [_text(number, f"context {place}", 4) for place in range(1 + number % _MAX_CONTEXTS)]
    if number % 7 == 3:
        contexts[-1] = " \n"
    if number % 7 == 5:
        contexts[-1] = contexts[0]
    return Sample(
        f"specimen-{number}",
        user_input=_text(number, "user input", 1),
        retrieved_contexts=contexts,
        response=_text(number, "response", 3),
        reference=_text(number, "reference", 3),
        reference_contexts=[_text(number, f"reference context {place}", 3) for place in range(2)],
        retrieved_context_ids=[f"c{number}-{place}" for place in range(len(contexts))],
        reference_context_ids=[f"c{number}-{place}" for place in range(0, 4, 2)],
        metadata={NUGGETS: [{"text": _text(number, f"nugget {at}", 1), "vital": at != 1} for at in range(3)]},
    )


def lacking(full: Sample, name: str) -> Sample:
    """Return the sample without one of its fields."""
    without: dict[str, Any] = {name: None}  # replace takes any field
    return replace(full, **without)


def empty() -> Sample:
    """Return the sample whose fields are all present and empty."""
    return Sample(
        "empty",
        user_input="",
        retrieved_contexts=[],
        response="",
        reference="",
        reference_contexts=[],
        retrieved_context_ids=[],
        reference_context_ids=[],
    )


def in_other_order(full: Sample) -> Sample:
    """Return the sample with its retrieved contexts, and their ids, in reverse order."""
    contexts, ids = full.retrieved_contexts, full.retrieved_context_ids
    return replace(
        full,
        retrieved_contexts=None if contexts is None else contexts[::-1],
        retrieved_context_ids=None if ids is None else ids[::-1],
    )


@dataclass(frozen=True)
class SyntheticAnswers:
    """Synthetic verdicts: a callable that always gives the same verdict on the same question."""

    seed: int = 0
    known: Mapping[Question[Any], Verdict] = field(default_factory=dict[Question[Any], Verdict])
    """Verdicts that take precedence over the synthetic ones."""
    own: Callable[[Question[Any]], Verdict | None] | None = None
    """Verdicts of the metric's author, which replace the synthetic ones; None if there is no replacement."""
    statements_reversed: bool = False
    """Return the statements, parts and entities of a text in reverse order."""
    statements_flood: bool = False
    """Return thousands of statements, parts or entities in every text, as a broken judge may."""

    def __call__(self, question: Question[Any]) -> Verdict:
        """Return the verdict on a question; its guess for kinds without a synthetic verdict."""
        found = self.known.get(question)
        if found is None and self.own is not None:
            found = self.own(question)
        if found is None:
            about = (question.kind, question.role, str(question.draw))
            found = question.synthetic(Odds(self.seed, about, flood=self.statements_flood))
        return found.reversed() if self.statements_reversed else found


def guess(question: Question[Any]) -> Verdict:
    """Return a likely answer, as in dry runs."""
    guessed: Verdict = question.guess()
    return guessed


def _text(number: int, what: str, max_sentences: int) -> str:
    count = 1 + int(max_sentences * chance(number, what))
    return "\n\n".join(_sentence(number, f"{what} {place}") for place in range(count))


def _sentence(number: int, what: str) -> str:
    words = [_WORDS[int(len(_WORDS) * chance(number, what, str(at)))] for at in range(5)]
    return f"The {what} of case {number} has {' '.join(words)}."
