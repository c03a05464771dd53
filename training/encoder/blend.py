"""The next model of the embedded judge: what the words show and what the encoder reads, joined task by task.

Each task has a logistic curve over a few numbers: the log odds that the words alone give (`merilo.judges.lexical`), and
what the encoder and the reader see (`merilo.judges.encoder`). Curves are fitted by `fit.py`. It goes into the package
together with the weights of a trained reader. The encoder knows English; where a text is mostly of other letters the
words alone decide.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from encoder.sight import Eyes, Sight
from merilo.judges.encoder.encodings import Encodings
from merilo.judges.encoder.model import Encoder, Reader
from merilo.judges.lexical import (
    AddressesResult,
    Curve,
    LexicalModel,
    RelevanceResult,
    SufficiencyResult,
    SupportResult,
    UsefulnessResult,
    probability,
)
from merilo.judges.lexical_features import answer_features, support_features, usefulness_features
from merilo.judges.lexical_match import match
from merilo.judges.lexical_text import words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.judges.encoder.model import Encoded
    from merilo.judges.encoder.weights import Weights

FORMAT: Final = 1
SENTENCE: Final = ("lexical", "read", "read_behind", "covered", "covered_behind", "answers")
CONTEXT: Final = (
    "relevant",
    "answers",
    "cosine",
    "read_relevant",
    "read_answers",
    "read_sufficient",
    "best",
    "covered",
)
SUFFICIENT: Final = ("lexical", *CONTEXT)
SUPPORT: Final = ("lexical", "read", "contradicted", "cosine", "covered", "tokens")
ANSWER: Final = ("lexical", "read", "cosine", "covered", "read_relevant")
USEFUL: Final = ("lexical", "read", "cosine", "covered", "read_relevant", "read_answers")
TASKS: Final[Mapping[str, tuple[str, ...]]] = {
    "sentence": SENTENCE,
    "relevant": CONTEXT,
    "answers": CONTEXT,
    "sufficient": SUFFICIENT,
    "supported": SUPPORT,
    "addresses": ANSWER,
    "useful": USEFUL,
}
"""The fitted curves and the numbers each takes, in order."""
_LEAST_LATIN: Final = 0.9
_LOWEST: Final = -12.0
"""Log odds from the words where they have nothing to go by."""


@dataclass(frozen=True)
class BlendedModel:
    """Answers each task; equal texts give equal answers, whatever else is asked."""

    lexical: LexicalModel
    encodings: Encodings
    eyes: Eyes
    curves: Mapping[str, Curve]
    agreement: Mapping[str, Any]  # Any: nested tables of numbers, printed as they are
    fingerprint: str
    """SHA-256 of the weights and the curves, in hex."""

    @classmethod
    def of(cls, weights: Weights, curves: bytes, lexical: LexicalModel) -> Self:
        """The model of these files. Raises ValueError for curves of another format."""
        fields = json.loads(curves)
        if fields.get("format") != FORMAT:
            raise ValueError(f"The curves have format {fields.get('format')!r}, expected {FORMAT}: fit them again.")
        found = {name: Curve.of(each) for name, each in fields["curves"].items()}
        mark = sha256(f"{weights.fingerprint} {sha256(curves).hexdigest()}".encode()).hexdigest()
        return cls(lexical, *seeing(weights), found, fields["agreement"], mark)

    # what is asked

    def relevance(self, user_input: str, sentences: Sequence[str]) -> RelevanceResult:
        """How far a context helps to answer the user input, and by which sentences."""
        words_alone = self.lexical.relevance(user_input, sentences)
        if not _is_read(user_input, *sentences):
            return words_alone
        rows = self.sentence_rows(user_input, sentences)
        logits = [self.curves["sentence"].logit(row) for row in rows]
        row = self.context_row(user_input, sentences, rows)
        p_relevant = self.curves["relevant"].probability(row)
        p_answers = min(p_relevant, self.curves["answers"].probability(row))
        grade = 0
        if p_relevant >= self.curves["relevant"].thresholds["yes"]:
            grade = 2 if p_answers >= self.curves["answers"].thresholds["yes"] else 1
        evidence = self._evidence(logits) if grade else ()
        return RelevanceResult(grade, evidence, p_relevant, p_answers, words_alone.coverage)

    def usefulness(self, user_input: str, reference: str, sentences: Sequence[str]) -> UsefulnessResult:
        """Whether a context helps to arrive at the reference, and by which sentences."""
        words_alone = self.lexical.usefulness(user_input, reference, sentences)
        if not _is_read(reference, *sentences):
            return words_alone
        chance = self.curves["useful"].probability(self.useful_row(user_input, reference, sentences))
        useful = chance >= self.curves["useful"].thresholds["yes"]
        evidence = words_alone.evidence
        if useful and not evidence:
            covered = [each.covered for each in self._spans(self._short(reference), sentences)]
            evidence = (int(np.argmax(covered)),)
        return UsefulnessResult(useful, evidence if useful else (), chance, words_alone.coverage)

    def support(self, statement: str, contexts: Sequence[Sequence[str]]) -> SupportResult:
        """Whether contexts, each given as its sentences, support a statement."""
        words_alone = self.lexical.support(statement, contexts)
        if not words(statement).stems or not _is_read(statement, *(each for context in contexts for each in context)):
            return words_alone
        curve = self.curves["supported"]
        chances = [curve.probability(self.support_row(statement, each)) if each else 0.0 for each in contexts]
        threshold = curve.thresholds["yes"]
        evidence = tuple(place for place, chance in enumerate(chances) if chance >= threshold)
        return SupportResult(bool(evidence), evidence, max(chances, default=0.0), words_alone.coverage)

    def sufficiency(self, user_input: str, contexts: Sequence[Sequence[str]]) -> SufficiencyResult:
        """Whether contexts, each given as its sentences, together hold enough to answer the user input."""
        words_alone = self.lexical.sufficiency(user_input, contexts)
        held = [context for context in contexts if context]
        if not held or not _is_read(user_input, *(each for context in held for each in context)):
            return words_alone
        curve = self.curves["sufficient"]
        chance = curve.probability(self.sufficient_row(user_input, held))
        level = sum(chance >= curve.thresholds[name] for name in ("partly", "yes"))
        return SufficiencyResult(level, chance, words_alone.coverage)

    def addresses(self, user_input: str, statement: str) -> AddressesResult:
        """Whether a statement addresses what the user input asks; a refusal never does."""
        words_alone = self.lexical.addresses(user_input, statement)
        if not _is_read(user_input, statement) or not words(statement).stems:
            return words_alone
        refuses = self.lexical.noncommittal(user_input, statement)
        chance = self.curves["addresses"].probability(self.answer_row(user_input, statement))
        return AddressesResult(not refuses and chance >= self.curves["addresses"].thresholds["yes"], chance)

    def noncommittal(self, user_input: str, response: str) -> bool:
        """Whether a response declines to answer."""
        return self.lexical.noncommittal(user_input, response)

    def claims(self, sentence: str) -> bool:
        """Whether a sentence of a response states something."""
        return self.lexical.claims(sentence)

    # the numbers behind it

    def sentence_rows(self, user_input: str, sentences: Sequence[str]) -> list[tuple[float, ...]]:
        """The numbers of SENTENCE for each sentence of a context."""
        found = match(self.lexical.lexicon.query(user_input), sentences, drop_copies=True)
        by_words = [_LOWEST] * len(sentences)
        for owner, logit in zip(found.owners, self.lexical.context_row(found)[0], strict=True):
            by_words[owner] = max(by_words[owner], logit)
        short = self._short(user_input)
        seen = self._spans(short, sentences)
        read, covered = self.eyes.logits_of("sentence", seen), [each.covered for each in seen]
        answers = float(self.eyes.logits_of("grade", self._windows(short, sentences), 1).max())
        best, most = float(read.max()), max(covered)
        return [
            (by_words[at], float(read[at]), float(read[at]) - best, covered[at], covered[at] - most, answers)
            for at in range(len(sentences))
        ]

    def context_row(
        self, user_input: str, sentences: Sequence[str], rows: Sequence[tuple[float, ...]]
    ) -> tuple[float, ...]:
        """The numbers of CONTEXT; `rows`: those of its sentences."""
        found = match(self.lexical.lexicon.query(user_input), sentences, drop_copies=True)
        by_words = self.lexical.context_row(found)[1]
        short = self._short(user_input)
        seen = self._windows(short, sentences)
        return (
            self.lexical.curves["relevant"].logit(by_words),
            self.lexical.curves["answers"].logit(by_words),
            self._cosine(short, self._long(sentences)),
            float(self.eyes.logits_of("grade", seen, 0).max()),
            float(self.eyes.logits_of("grade", seen, 1).max()),
            float(self.eyes.logits_of("sufficient", seen).max()),
            max(row[1] for row in rows),
            max(each.covered for each in seen),
        )

    def sufficient_row(self, user_input: str, contexts: Sequence[Sequence[str]]) -> tuple[float, ...]:
        """The numbers of SUFFICIENT: of each the highest of any context, beside what the words of all say together."""
        together = [sentence for context in contexts for sentence in context]
        found = match(self.lexical.lexicon.query(user_input), together, drop_copies=True)
        rows = [self.context_row(user_input, each, self.sentence_rows(user_input, each)) for each in contexts]
        by_words = self.lexical.curves["sufficient"].logit(self.lexical.context_row(found)[1])
        return (by_words, *(max(column) for column in zip(*rows, strict=True)))

    def support_row(self, statement: str, sentences: Sequence[str]) -> tuple[float, ...]:
        """The numbers of SUPPORT for a statement and one context."""
        found = match(self.lexical.lexicon.query(statement), sentences, drop_copies=False)
        by_words = _LOWEST
        if any(found.masks):
            by_words = self.lexical.curves["supported"].logit(support_features(found, self.lexical.lexicon))
        short = self._short(statement)
        seen = self._windows(short, sentences)
        margins = _margins(self.eyes, seen)
        best = int(margins.argmax())
        return (
            by_words,
            float(margins[best]),
            float(self.eyes.logits_of("supported", seen, 1)[best] - self.eyes.logits_of("supported", seen, 2)[best]),
            self._cosine(short, self._long(sentences)),
            max(each.covered for each in seen),
            math.log1p(sum(len(each.ids) for each in short)),
        )

    def answer_row(self, user_input: str, statement: str) -> tuple[float, ...]:
        """The numbers of ANSWER for a statement given in answer to a question."""
        refuses = self.lexical.noncommittal(user_input, statement)
        lexicon = self.lexical.lexicon
        by_words = answer_features(lexicon.query(user_input), words(statement), lexicon, refuses=refuses)
        short, long = self._short(user_input), self._long((statement,))
        seen = [self.eyes.see(one, other) for one in short for other in long]
        return (
            self.lexical.curves["addresses"].logit(by_words),
            float(self.eyes.logits_of("addresses", seen).max()),
            self._cosine(short, long),
            max(each.covered for each in seen),
            float(self.eyes.logits_of("grade", seen, 0).max()),
        )

    def useful_row(self, user_input: str, reference: str, sentences: Sequence[str]) -> tuple[float, ...]:
        """The numbers of USEFUL for a context: the reference held against it, and the question."""
        lexicon = self.lexical.lexicon
        target = match(lexicon.query(reference), sentences, drop_copies=False)
        asked = match(lexicon.query(user_input), sentences, drop_copies=True)
        seen = self._windows(self._short(reference), sentences)
        question = self._windows(self._short(user_input), sentences)
        return (
            self.lexical.curves["useful"].logit(usefulness_features(target, asked)),
            float(_margins(self.eyes, seen).max()),
            self._cosine(self._short(reference), self._long(sentences)),
            max(each.covered for each in seen),
            float(self.eyes.logits_of("grade", question, 0).max()),
            float(self.eyes.logits_of("grade", question, 1).max()),
        )

    # reading

    def _short(self, text: str) -> tuple[Encoded, ...]:
        return self.encodings.read(text)

    def _long(self, sentences: Sequence[str]) -> tuple[Encoded, ...]:
        return self.encodings.read(tuple(sentences))

    def _windows(self, short: Sequence[Encoded], sentences: Sequence[str]) -> list[Sight]:
        return [self.eyes.see(one, other) for one in short for other in self._long(sentences)]

    def _spans(self, short: Sequence[Encoded], sentences: Sequence[str]) -> list[Sight]:
        """For each sentence what the short text's first window sees in it, read in the first window that holds it."""
        long = self._long(sentences)
        within = [next(each for each in long if at in each.window.sentences) for at in range(len(sentences))]
        return [self.eyes.see(short[0], window.part(at)) for at, window in enumerate(within)]

    def _cosine(self, short: Sequence[Encoded], long: Sequence[Encoded]) -> float:
        return max(float(one.pooled @ other.pooled) for one in short for other in long)

    def _evidence(self, logits: Sequence[float]) -> tuple[int, ...]:
        """The sentences that read like evidence, else the likeliest."""
        threshold = self.curves["sentence"].thresholds["yes"]
        chosen = tuple(place for place, logit in enumerate(logits) if probability(logit) >= threshold)
        return chosen or (max(range(len(logits)), key=lambda place: (logits[place], -place)),)


def seeing(weights: Weights) -> tuple[Encodings, Eyes]:
    """What reads texts and what holds them against each other, from one file of weights."""
    return Encodings(Encoder(weights)), Eyes(Reader(weights), weights.floats("rarity"))


def _margins(eyes: Eyes, seen: Sequence[Sight]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The log odds of supported against contradicted and not stated."""
    yes, no, unsaid = (eyes.logits_of("supported", seen, part) for part in range(3))
    return yes - np.logaddexp(no, unsaid)


def _is_read(*texts: str) -> bool:
    """Whether the encoder knows the script: nearly all letters are those of the Latin alphabet without marks."""
    letters = [letter for text in texts for letter in text if letter.isalpha()]
    return bool(letters) and sum(letter.isascii() for letter in letters) >= _LEAST_LATIN * len(letters)
