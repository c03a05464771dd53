"""Scores of pairs of texts by one model: ids, logits and probabilities, each pair computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from merilo.bounded_cache import BoundedCache
from merilo.cancellation import check_cancelled
from merilo.judges.local.card import FIELDS
from merilo.judges.local.heads import PairScore, pair_score
from merilo.judges.local.windows import Budget, Window, windows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.judges.local.card import Card
    from merilo.judges.local.tokens import PairTokens, TokenIds

_MAX_BYTES: Final = 50_000_000
"""Memory for the logits of pairs; equal pairs occur in questions of different kinds."""
_TOKEN_BYTES: Final = 24
_PAIR_BYTES: Final = 500


class TooLong(Exception):
    """A text leaves too little space for the other one; the message is a sentence."""


@dataclass(frozen=True)
class PairScorer:
    """A model and its card. Threads may share it."""

    card: Card
    tokens: PairTokens
    run: Callable[[TokenIds], tuple[float, ...]]
    """Returns the logits of a pair."""

    @cached_property
    def _known(self) -> BoundedCache[TokenIds, tuple[float, ...]]:
        return BoundedCache(self.run, size=_bytes_of, max_size=_MAX_BYTES)

    def logits(self, texts: Mapping[str, str]) -> tuple[float, ...]:
        """Return the logits of a pair, given by slot. Raises TooLong if the model cannot read it whole."""
        check_cancelled()
        pair = self.tokens.encode(texts)
        if len(pair.ids) > self.card.input.max_tokens:
            raise TooLong(f"A pair of texts has {len(pair.ids):,} tokens. {self.limit}")
        return self._known[pair]

    @property
    def limit(self) -> str:
        """The length of the model's input, as a sentence."""
        return f"local:{self.card.name} reads at most {self.card.input.max_tokens:,} per pair."

    def of(self, kind: str) -> KindScorer:
        """Return the scorer for questions of a kind that the card answers."""
        return KindScorer(self, kind, {name: slot for slot, name in self.card.answers.given[kind].use.items()})


def _bytes_of(pair: TokenIds, logits: tuple[float, ...]) -> int:
    return _PAIR_BYTES + _TOKEN_BYTES * (len(pair.ids) + len(pair.types) + len(logits))


@dataclass(frozen=True)
class KindScorer:
    """Scores pairs for one kind of question; texts are given by the field of the question."""

    scorer: PairScorer
    kind: str
    slots: Mapping[str, str]
    """The slot of each field."""

    @property
    def answer(self) -> Any:  # Any: the options differ by kind, and each function knows its own
        """The card's options for this kind."""
        return self.scorer.card.answers.given[self.kind]

    def score(self, **texts: str) -> PairScore:
        """Return the score of one pair. Raises TooLong, ForgedToken and InvalidLogits."""
        logits = self.scorer.logits(self._by_slot(texts))
        card = self.scorer.card
        return pair_score(logits, card.output, card.calibration_of(self.kind))

    def fits(self, **texts: str) -> bool:
        """Return True if the model can read this pair whole."""
        return self._tokens(texts) <= self.scorer.card.input.max_tokens

    def windows(self, sentences: Sequence[str], *, name: str = "context", **other: str) -> tuple[Window, ...]:
        """Return the windows of some sentences for the field `name`, next to the text of the other field.

        Raises TooLong if that text takes more than half of the input.
        """
        room = self.scorer.card.input.max_tokens - self._tokens(dict.fromkeys(FIELDS[self.kind], ""))
        ((label, text),) = other.items()
        taken = self.scorer.tokens.length(text)
        if 2 * taken > room:
            what = label.replace("_", " ")
            raise TooLong(f"The {what} has {taken:,} tokens, more than half of the input. {self.scorer.limit}")
        budget = Budget(room - taken, self.scorer.tokens.length, lambda text: self.fits(**{name: text}, **other))
        return tuple(windows(sentences, self.scorer.card.windows, budget))

    def _tokens(self, texts: Mapping[str, str]) -> int:
        return len(self.scorer.tokens.encode(self._by_slot(texts)).ids)

    def _by_slot(self, texts: Mapping[str, str]) -> dict[str, str]:
        return {self.slots[name]: text for name, text in texts.items()}
