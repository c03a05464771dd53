"""The model of the embedded judge: evidence from the words and from the encoder, combined for each task.

Each task has a logistic curve over a few features (`merilo.judges.blended_features`). The encoder knows English only;
for texts in another language the words alone decide (`merilo.judges.lexical`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from importlib.resources import as_file, files
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from merilo.errors import DataError
from merilo.judges.blended_features import TASKS, BlendedRows
from merilo.judges.encoder.embedder import Embedder
from merilo.judges.encoder.weights import Weights
from merilo.judges.english_detection import is_english_with_query, split_english
from merilo.judges.lexical import (
    AddressesResult,
    Curve,
    LexicalModel,
    RelevanceResult,
    SufficiencyResult,
    UsefulnessResult,
    coverage,
    joint,
    placed,
    probability,
    short_result,
)
from merilo.judges.lexical_short import ShortAnswer, short_answer
from merilo.judges.lexical_text import words
from merilo.judges.model_files import model_file
from merilo.judges.support_result import SupportResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WEIGHTS_FILE: Final = "encoder.v1.safetensors"
CURVES_FILE: Final = "blend.v2.json"
FORMAT: Final = 1


class _Part(NamedTuple):
    """The sentences of a context that contain English text, or those that contain other text."""

    context: int
    places: tuple[int, ...]
    """Their positions among the context's sentences."""
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class BlendedModel:
    """The model that answers each task; equal texts always give equal answers. Use `BlendedModel.load()`."""

    lexical: LexicalModel
    curves: Mapping[str, Curve]
    agreement: Mapping[str, Any]  # Any: nested tables of numbers, printed as they are
    """Agreement with human labels, by task and kind of data; see `training/README.md` for the fields."""
    components: Mapping[str, Mapping[str, float | None]]
    """AUROC of each curve (`all`) and of each of its features alone, by task."""
    trained_on: Mapping[str, str]
    """The licence of each source that the model was fitted on."""
    fingerprint: str
    """The hexadecimal SHA-256 of the curves, which name the weights, and of the lexical model together."""
    weights: Weights
    _lock: Lock = field(default_factory=Lock, repr=False)
    _rows: list[BlendedRows] = field(default_factory=list, repr=False)

    @classmethod
    def load(cls) -> BlendedModel:
        """Return the packaged model, which is read and checked once; its graphs are built at first use.

        Raises DataError if one of its files is missing, damaged or does not match the others.
        """
        return _packaged()

    @classmethod
    def of(cls, curves: bytes, lexical: LexicalModel, weights: Weights) -> Self:
        """Build the model from these parts. Raises DataError if the curves have another format or fit other weights."""
        try:
            fields = _fields(curves, weights)
            found = {name: Curve.of(fields["curves"][name]) for name in TASKS}
            agreement, components, trained_on = fields["agreement"], fields.get("components", {}), fields["trained_on"]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            message = f"Cannot use the curves of the embedded judge ({error}); reinstall merilo, or fit them again."
            raise DataError(message) from error
        fingerprint = sha256(f"{sha256(curves).hexdigest()} {lexical.fingerprint}".encode()).hexdigest()
        return cls(lexical, found, agreement, components, trained_on, fingerprint, weights)

    @property
    def rows(self) -> BlendedRows:
        """The features of texts; the graphs are built at first use."""
        with self._lock:  # several threads may ask at once, but the graphs are built once
            if not self._rows:
                self._rows.append(BlendedRows(self.weights, self.lexical))
            return self._rows[0]

    @property
    def embedder(self) -> Embedder:
        """Vectors of texts, from the encoder that the judge uses."""
        return Embedder(self.rows.encodings)

    def relevance(self, user_input: str, sentences: Sequence[str]) -> RelevanceResult:
        """Grade how relevant a context is to the user input, with the sentences that are evidence."""
        read, others = _parts_of(user_input, [sentences])
        if not read:
            return self.lexical.relevance(user_input, sentences)
        found = placed(read[0].places, self._read_relevance(user_input, read[0].sentences))
        if not others:
            return found
        by_words = placed(others[0].places, self.lexical.relevance(user_input, others[0].sentences))
        # The two parts use different curves, so their probabilities are compared by the distance from their
        # thresholds.
        surer = max(found, by_words, key=lambda each: (each.grade, each.probability - each.yes_from))
        evidence = tuple(sorted({*found.evidence, *by_words.evidence}))
        return replace(surer, evidence=evidence, coverage=self.lexical.relevance(user_input, sentences).coverage)

    def usefulness(self, user_input: str, reference: str, sentences: Sequence[str]) -> UsefulnessResult:
        """Judge whether a context helps to arrive at the reference, with the sentences that are evidence."""
        read, others = _parts_of(user_input, [sentences])
        # The reference may be in another language than the question; the encoder needs all texts in English.
        if not read or not is_english_with_query(user_input, (reference, *read[0].sentences)):
            return self.lexical.usefulness(user_input, reference, sentences)
        found = placed(read[0].places, self._read_usefulness(user_input, reference, read[0].sentences))
        if not others:
            return found
        by_words = placed(others[0].places, self.lexical.usefulness(user_input, reference, others[0].sentences))
        surer = max(found, by_words, key=lambda each: (each.useful, each.probability - each.yes_from))
        covered = self.lexical.usefulness(user_input, reference, sentences).coverage
        return replace(surer, evidence=tuple(sorted({*found.evidence, *by_words.evidence})), coverage=covered)

    def support(self, statement: str, contexts: Sequence[Sequence[str]]) -> SupportResult:
        """Judge whether contexts, each given as its sentences, support a statement: one alone, or two together."""
        return self.lexical.with_evidence(self.support_by_curve, statement, contexts)

    def support_by_curve(self, statement: str, contexts: Sequence[Sequence[str]]) -> SupportResult:
        """Judge the same by the fitted curves alone, without the slots of the statement."""
        read, others = _parts_of(statement, contexts)
        if not read or not words(statement).stems:
            return self.lexical.support_by_words(statement, contexts)
        found = self._read_support(statement, [part.sentences for part in read])
        supporting = {read[at].context for at in found.evidence}
        surer, covered = found, found.coverage
        if others:
            by_words = self.lexical.support_by_words(statement, [part.sentences for part in others])
            supporting |= {others[at].context for at in by_words.evidence}
            surer = max(found, by_words, key=lambda each: each.probability - each.yes_from)
            covered = max(covered, by_words.coverage)
        return replace(surer, evidence=tuple(sorted(supporting)), coverage=covered)

    def _read_relevance(self, user_input: str, sentences: Sequence[str]) -> RelevanceResult:
        by_words, curve = self.lexical.relevance(user_input, sentences), self.curves["answers"]
        chance = curve.probability(self.rows.context(user_input, sentences))
        grade = curve.level(chance)
        evidence = self._evidence(user_input, sentences) if grade else ()
        return RelevanceResult(grade, evidence, by_words.closest, chance, by_words.coverage, curve.thresholds["partly"])

    def _read_usefulness(self, user_input: str, reference: str, sentences: Sequence[str]) -> UsefulnessResult:
        by_words, curve = self.lexical.usefulness(user_input, reference, sentences), self.curves["useful"]
        chance = curve.probability(self.rows.useful(user_input, reference, sentences))
        evidence: tuple[int, ...] = ()
        if chance >= curve.thresholds["yes"]:
            evidence = by_words.evidence or (_argmax(self.rows.covered(reference, sentences)),)
        yes_from = curve.thresholds["yes"]
        return UsefulnessResult(bool(evidence), evidence, by_words.closest, chance, by_words.coverage, yes_from)

    def _read_support(self, statement: str, contexts: Sequence[Sequence[str]]) -> SupportResult:
        short = short_answer(statement)
        if short is not None:
            return self._short(short, contexts)
        curve, held = self.curves["supported"], self.lexical.held(statement, contexts)
        rows = [self.rows.support(statement, *each) if each[0] else None for each in zip(contexts, held, strict=True)]
        chances = [0.0 if row is None else curve.probability(row) for row in rows]
        best, yes_from = max(chances, default=0.0), curve.thresholds["yes"]
        evidence = tuple(place for place, chance in enumerate(chances) if chance >= yes_from)
        # Two contexts are tried only if none supports the statement alone: most statements need one.
        together = None if evidence else joint(held, contexts)
        if together is not None:
            best = max(best, curve.probability(self.rows.support(statement, together[1])))
            evidence = together[0] if best >= yes_from else ()
        return SupportResult(bool(evidence), evidence, best, coverage(held), yes_from)

    def sufficiency(self, user_input: str, contexts: Sequence[Sequence[str]]) -> SufficiencyResult:
        """Judge whether contexts, each given as its sentences, together are enough to answer the user input."""
        words_alone = self.lexical.sufficiency(user_input, contexts)
        read, others = _parts_of(user_input, contexts)
        if not read:
            return words_alone
        curve = self.curves["sufficient"]
        chance = curve.probability(self.rows.sufficient(user_input, [part.sentences for part in read]))
        found = SufficiencyResult(curve.level(chance), chance, words_alone.coverage, curve.thresholds["yes"])
        found = found.for_time(user_input, (each for context in contexts for each in context))
        if not others:
            return found
        by_words = self.lexical.sufficiency(user_input, [part.sentences for part in others])
        surer = max(found, by_words, key=lambda each: (each.level, each.probability - each.yes_from))
        return replace(surer, coverage=words_alone.coverage)

    def addresses(self, user_input: str, statement: str) -> AddressesResult:
        """Judge whether a statement addresses the user input; a refusal never does."""
        if not is_english_with_query(user_input, (statement,)) or not words(statement).stems:
            return self.lexical.addresses(user_input, statement)
        curve = self.curves["addresses"]
        chance = curve.probability(self.rows.answer(user_input, statement))
        refuses = self.lexical.noncommittal(user_input, statement)
        return AddressesResult(not refuses and chance >= curve.thresholds["yes"], chance)

    def noncommittal(self, user_input: str, response: str) -> bool:
        """Return True if a response declines to answer."""
        return self.lexical.noncommittal(user_input, response)

    def claims(self, sentence: str) -> bool:
        """Return True if a sentence of a response makes a statement; see `LexicalModel.claims`."""
        return self.lexical.claims(sentence)

    def _short(self, short: ShortAnswer, contexts: Sequence[Sequence[str]]) -> SupportResult:
        found = self.lexical.short_rows(short, contexts)
        rows = self.rows.short(short, found, contexts)
        plain = {at for at, each in enumerate(found) if each is not None and each.is_plain}
        curve, covered = self.curves[short.task], coverage(self.lexical.held(f"{short.asked} {short.answer}", contexts))
        return short_result(
            short, curve, rows, covered, lambda at: self.relevance(short.asked, contexts[at]), plain=plain
        )

    def _evidence(self, user_input: str, sentences: Sequence[str]) -> tuple[int, ...]:
        """Return the sentences that reach the threshold for evidence, or the most likely one if none does."""
        curve = self.curves["sentence"]
        logits = [curve.logit(row) for row in self.rows.sentences(user_input, sentences)]
        chosen = tuple(at for at, logit in enumerate(logits) if probability(logit) >= curve.thresholds["yes"])
        return chosen or (_argmax(logits),)


def _fields(curves: bytes, weights: Weights) -> dict[str, Any]:  # Any: parsed JSON
    fields: dict[str, Any] = json.loads(curves)
    if fields["format"] != FORMAT:
        raise ValueError(f"its format is {fields['format']!r}, expected {FORMAT}")
    if fields["weights"] != weights.fingerprint:
        raise ValueError(f"it was fitted for weights {fields['weights'][:12]}, these are {weights.fingerprint[:12]}")
    return fields


def _parts_of(asked: str, contexts: Sequence[Sequence[str]]) -> tuple[list[_Part], list[_Part]]:
    """Return the parts of each context that the encoder reads, and the parts left to the words alone."""
    read, others = list[_Part](), list[_Part]()
    for number, sentences in enumerate(contexts):
        apart = split_english(asked, sentences)
        for parts, texts in ((read, apart.english), (others, apart.others)):
            if any(texts):
                places = tuple(at for at, text in enumerate(texts) if text)
                parts.append(_Part(number, places, tuple(texts[at] for at in places)))
    return read, others


def _argmax(values: Sequence[float]) -> int:
    """Return the index of the largest value (the first one on ties)."""
    return max(range(len(values)), key=lambda place: (values[place], -place))


@lru_cache(maxsize=1)
def _packaged() -> BlendedModel:
    folder = files("merilo.judges")
    try:
        with as_file(folder.joinpath(WEIGHTS_FILE)) as path:
            weights = Weights.read(path)
        return BlendedModel.of(model_file(CURVES_FILE), LexicalModel.load(), weights)
    except OSError as error:
        raise DataError(f"Cannot read a file of the embedded judge ({error}); reinstall merilo.") from error
