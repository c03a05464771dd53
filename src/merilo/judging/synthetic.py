"""Seeded numbers for synthetic verdicts: always the same for the same texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from merilo.judging.digests import digest_of, digest_text

if TYPE_CHECKING:
    from collections.abc import Iterable


def chance(seed: int, *texts: str) -> float:
    """Return a number in [0, 1) that depends on the seed and the texts alone."""
    digest = digest_of(str(seed).encode(), *(digest_text(text) for text in texts))
    return int.from_bytes(digest[:6], "little") / 2**48


@dataclass(frozen=True, slots=True)
class Odds:
    """The numbers from which a synthetic verdict on one question is made."""

    seed: int
    about: tuple[str, ...]
    """The question's kind, role and draw, so that verdicts of different kinds do not depend on each other."""

    def of(self, *texts: str) -> float:
        """Return a number in [0, 1) for these texts."""
        return chance(self.seed, *self.about, *texts)

    def some(self, sentences: Iterable[str]) -> tuple[int, ...]:
        """Return the indices of some sentences, at least one if there is one."""
        odds = [chance(self.seed, "evidence", sentence) for sentence in sentences]
        return tuple(place for place, odd in enumerate(odds) if odd < 0.5 or odd == min(odds))


def readable(contexts: Iterable[str]) -> tuple[int, ...]:
    """Return the indices of the contexts that are not blank."""
    return tuple(place for place, text in enumerate(contexts) if text.strip())


# -- the texts of the questions that try out a judge

USER_INPUT: Final = "When was the Eiffel Tower completed?"
RESPONSE: Final = "The Eiffel Tower was completed in 1889."
SENTENCES: Final = (
    "The Eiffel Tower is a lattice tower in Paris.",
    "It was completed in 1889 for a world fair.",
    "Several million people visit it every year.",
)
CONTEXT: Final = " ".join(SENTENCES)
OTHER: Final = "The Colosseum is in Rome."
"""A sentence that does not help to answer the user input."""
