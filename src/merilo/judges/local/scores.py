"""Scores of pairs of texts by one model: windows of whole sentences, logits, probabilities, and golden pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.bounded_cache import BoundedCache
from merilo.cancellation import check_cancelled
from merilo.judges.local.card import FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from merilo.judges.local.card import Calibration, Card, OptionQuestion, Output, Windows
    from merilo.judges.local.model import PairTokens, TokenIds


class Window(NamedTuple):
    """Consecutive sentences, or a part of one sentence that is too long."""

    first: int
    """Index of the first sentence."""
    last: int
    """Index of the last sentence."""
    text: str


@dataclass(frozen=True, slots=True)
class Budget:
    """The space for a window, next to the other text of the pair."""

    tokens: int
    length: Callable[[str], int]
    """Number of tokens of a text alone."""
    fits: Callable[[str], bool]
    """True if the pair with this window fits into the model."""


def windows(sentences: Sequence[str], form: Windows, budget: Budget) -> Iterator[Window]:
    """Yield the windows of some sentences, in order; blank sentences are skipped. All sentences are covered."""
    numbered = [(place, text) for place, text in enumerate(sentences) if text.strip()]
    sizes = {place: _Size(budget.length(text), len(text.split())) for place, text in numbered}
    start = 0
    while start < len(numbered):
        end = _end(numbered, start, sizes, form, budget)
        yield from _fitting(numbered[start:end], form, budget)
        if end >= len(numbered):
            return
        start = max(start + 1, end - form.overlap)


class _Size(NamedTuple):
    tokens: int
    words: int


def _end(
    numbered: Sequence[tuple[int, str]], start: int, sizes: dict[int, _Size], form: Windows, budget: Budget
) -> int:
    """Return the end of the window that starts here: as many sentences as fit, at least one."""
    joint = budget.length(form.joined_by) if form.joined_by.strip() or "\n" in form.joined_by else 0
    tokens, words, end = 0, 0, start
    while end < len(numbered):
        size = sizes[numbered[end][0]]
        tokens, words = tokens + size.tokens + (joint if end > start else 0), words + size.words
        if end > start and (tokens > budget.tokens or words > (form.words or words)):
            break
        end += 1
    return end


def _fitting(numbered: Sequence[tuple[int, str]], form: Windows, budget: Budget) -> Iterator[Window]:
    """Yield the sentences as one window; in halves if they do not fit, since joined texts may have more tokens."""
    text = form.joined_by.join(sentence for _, sentence in numbered)
    if len(numbered) > 1:
        if budget.fits(text):
            yield Window(numbered[0][0], numbered[-1][0], text)
            return
        middle = len(numbered) // 2
        yield from _fitting(numbered[:middle], form, budget)
        yield from _fitting(numbered[middle:], form, budget)
        return
    (place, sentence) = numbered[0]
    yield from (Window(place, place, part) for part in _parts(sentence, form, budget))


def _parts(text: str, form: Windows, budget: Budget) -> Iterator[str]:
    """Yield a sentence; in halves, between words if possible, while it is too long."""
    words = text.split()
    short = form.words is None or len(words) <= form.words
    if not text.strip():
        return
    if len(text) < 2 or (short and budget.fits(text)):
        yield text
    elif len(words) > 1:
        middle = len(words) // 2
        yield from _parts(" ".join(words[:middle]), form, budget)
        yield from _parts(" ".join(words[middle:]), form, budget)
    else:
        yield from _parts(text[: len(text) // 2], form, budget)
        yield from _parts(text[len(text) // 2 :], form, budget)


# -- probabilities of pairs ---------------------------------------------------------------------------


class InvalidLogits(Exception):
    """The model returned a number that is not finite."""


class PairScore(NamedTuple):
    """What the model says about one pair."""

    probability: float
    """Probability of yes, calibrated if the card has a curve."""
    highest: float
    """Probability of the highest grade; that of yes, unless the model has an option for each grade."""
    contradiction: float = 0.0
    """Probability of the contradiction label; 0 if the card has none."""


def pair_score(logits: Sequence[float], output: Output, calibration: Calibration | None) -> PairScore:
    """Return the score of one pair. Raises InvalidLogits for NaN and infinity."""
    if not all(map(math.isfinite, logits)):
        raise InvalidLogits
    yes = _logit(logits, output, output.yes)
    if calibration is not None:
        yes = calibration.scale * yes + calibration.shift
    against = None if output.contradiction is None else _logit(logits, output, output.contradiction)
    return PairScore(sigmoid(yes), sigmoid(yes), 0.0 if against is None else sigmoid(against))


def option_score(logits: Sequence[float], question: OptionQuestion) -> PairScore:
    """Return the score of one pair from the logits of all options. Raises InvalidLogits for NaN and infinity."""
    if not all(map(math.isfinite, logits)):
        raise InvalidLogits
    weights = [math.exp((logit - max(logits)) / question.temperature) for logit in logits]
    p = {option: weight / sum(weights) for option, weight in zip(question.options, weights, strict=True)}
    return PairScore(min(1.0, sum(p[option] for option in question.yes)), p[question.yes[-1]])


def _logit(logits: Sequence[float], output: Output, label: str) -> float:
    """Return log(p / (1 - p)) of a label."""
    place = output.labels.index(label)
    if output.head == "sigmoid":
        return logits[place]
    others = [logit for index, logit in enumerate(logits) if index != place]
    top = max(others)
    return logits[place] - top - math.log(sum(math.exp(logit - top) for logit in others))


def sigmoid(value: float) -> float:
    """Return 1 / (1 + exp(-value)), without overflow."""
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    power = math.exp(value)
    return power / (1 + power)


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
        logits = [self.scorer.logits(each) for each in self._inputs(texts)]
        card = self.scorer.card
        if self.kind in card.questions:
            return option_score([logit for (logit,) in logits], card.questions[self.kind])
        return pair_score(logits[0], card.output, card.calibration_of(self.kind))

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
        return max(len(self.scorer.tokens.encode(each).ids) for each in self._inputs(texts))

    def _inputs(self, texts: Mapping[str, str]) -> Sequence[Mapping[str, str]]:
        """Return the texts of the model's inputs by slot: one, or one for each option."""
        slots = {self.slots[name]: text for name, text in texts.items()}
        question = self.scorer.card.questions.get(self.kind)
        return [slots] if question is None else question.inputs(slots)


# -- golden pairs -------------------------------------------------------------------------------------


TOLERANCE: Final = 1e-3


class GoldenCheck(NamedTuple):
    """The result of comparing the golden pairs of a card with the model."""

    pairs: int
    difference: float
    """The largest difference between two logits; infinity if one is not a number."""

    @property
    def agree(self) -> bool:
        """True if all logits are within `TOLERANCE`."""
        return self.difference <= TOLERANCE

    @property
    def note(self) -> str:
        """The result as a sentence."""
        verb = "agree" if self.agree else "DIFFER"
        return f"Golden logits {verb} ({self.pairs} pairs, largest difference {self.difference:.1g})."


def golden_check(scorer: PairScorer) -> GoldenCheck:
    """Return the result for the golden pairs of the model's card, which has some."""
    differences = [
        abs(expected - logit)
        for golden in scorer.card.golden
        for expected, logit in zip(golden.logits, scorer.logits(golden.texts), strict=True)
    ]
    worst = math.inf if any(map(math.isnan, differences)) else max(differences)
    return GoldenCheck(len(scorer.card.golden), worst)
