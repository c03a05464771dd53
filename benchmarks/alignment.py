"""The baseline that the embedded judge must beat: a logistic regression over the alignment of words and token
vectors.

Eleven numbers compare a question or statement with a text: which of its words occur there, how similar each of its
tokens is to the nearest one of the text (the encoder's lower layers), the similarity of both as wholes, and lengths.
For each task a regression is fitted on four fifths of the records and predicts the rest. Records that share a
question or a text stay in one part.
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from merilo.commands.check.asking import JudgedAsLabelled, sample_of
from merilo.commands.check.items import clusters_of
from merilo.data.labels import Task
from merilo.data.sentences import sentences
from merilo.judges.encoder.encodings import Encodings
from merilo.judges.encoder.model import Encoder, Reader
from merilo.judging.kinds.relevance import Relevance
from merilo.judging.kinds.sufficiency import Sufficiency
from merilo.judging.kinds.support import Support

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from merilo.data.labels import Labelled
    from merilo.judges.encoder.weights import Weights
    from merilo.judging.questions import Question

    Asked = Question[Any]  # Any: whatever its verdict is
    Recall = Callable[[str, str], float]

FOLDS: Final = 5
_RIDGE: Final = 1.0
_STEPS: Final = 30
_WEAKEST: Final = 3
_KEPT_EVERY: Final = 2_000
"""Pairs after which the file is written, so that an interrupted call can resume."""
_NEGATION: Final = re.compile(r"\b(?:not|no|never|none|without|nor|не|нет|ни)\b|n['’]t\b", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_NAME: Final = re.compile(r"(?<!^)\b[A-ZÀ-ÞЁА-Я][\w’-]+")


class Alignment:
    """Eleven numbers that compare a short text with a long one."""

    def __init__(self, weights: Weights, recall: Recall) -> None:
        """Set up the comparison. `recall`: the fraction of the first text's words, by weight, that occur in the
        second.
        """
        self.weights = weights.fingerprint
        self._encodings = Encodings(Encoder(weights))
        self._reader = Reader(weights)
        self._rarity = weights.floats("rarity")
        self._recall = recall

    def row(self, asked: str, text: str) -> tuple[float, ...]:
        """Return the numbers of one pair; with several windows of the long text, each token uses the nearest one."""
        (short, *_), long = self._encodings.read(asked), self._encodings.read(sentences(text))
        near = np.max([self._reader.nearest(short, window) for window in long], axis=0)
        inner, rare = near[1:-1], self._rarity[short.ids][1:-1]
        if not len(inner):
            inner, rare = near, np.ones(len(near), dtype=np.float32)
        lowest = np.sort(inner[rare >= np.median(rare)])[:_WEAKEST]
        numbers, names = set(_NUMBER.findall(asked)), set(_NAME.findall(asked))
        return (
            max(float(short.pooled @ window.pooled) for window in long),
            float((inner * (rare + 1e-9)).sum() / (rare + 1e-9).sum()),
            float(lowest[0]),
            float(lowest.mean()),
            float(inner.mean()),
            self._recall(asked, text),
            sum(each not in text for each in numbers) / max(1, len(numbers)),
            sum(each not in text for each in names) / max(1, len(names)),
            float(bool(_NEGATION.search(asked)) != bool(_NEGATION.search(text))),
            math.log1p(len(asked)),
            math.log1p(len(text)),
        )


class Aligned:
    """Probabilities of labelled questions, each from a regression fitted without it and without its cluster."""

    def __init__(self, records: Sequence[Labelled], alignment: Alignment, *, kept: Path | None = None) -> None:
        """Fit the regressions. `kept`: a file with the numbers of pairs, read if it exists and written otherwise."""
        self._chances: dict[Asked, float] = {}
        rows = _Rows(alignment, kept)
        groups = [(record.source, cluster) for record, cluster in zip(records, clusters_of(records), strict=True)]
        for task in dict.fromkeys(record.task for record in records):
            own = [(record, group) for record, group in zip(records, groups, strict=True) if record.task is task]
            found = [(asked, label, group) for record, group in own for asked, label in _labelled(record)]
            values = np.array([rows.of(asked) for asked, _, _ in found])
            labels = np.array([label for _, label, _ in found])
            folds = np.array([_fold(group) for _, _, group in found])
            chances = held_out(values, labels, folds)
            self._chances |= {asked: float(each) for (asked, _, _), each in zip(found, chances, strict=True)}
        rows.keep()

    def chance(self, question: Asked) -> float:
        """Return the probability of yes; one half for a question without a fitted regression."""
        return self._chances.get(question, 0.5)


def held_out(values: NDArray[Any], labels: NDArray[Any], folds: NDArray[Any]) -> NDArray[Any]:
    """Return for each row the probability from the regression over the rows of all other folds."""
    found = np.full(len(labels), 0.5)
    for fold in np.unique(folds):
        inside = folds != fold
        if len(np.unique(labels[inside])) < 2:
            continue
        middle, spread = values[inside].mean(0), values[inside].std(0) + 1e-9
        scaled = np.c_[(values - middle) / spread, np.ones(len(values))]
        weights = _regression(scaled[inside], labels[inside])
        found[~inside] = 1 / (1 + np.exp(-(scaled[~inside] @ weights)))
    return found


def _regression(rows: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Return coefficients of a logistic regression by Newton's method; all except the last (the intercept) are
    regularised.
    """
    ridge = _RIDGE * np.diag([*[1.0] * (rows.shape[1] - 1), 0.0])
    weights = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        chances = 1 / (1 + np.exp(-(rows @ weights)))
        slope = rows.T @ (chances - labels) + ridge @ weights
        step = np.linalg.solve((rows.T * (chances * (1 - chances))) @ rows + ridge, slope)
        weights = weights - step
        if np.abs(step).max() < 1e-8:
            break
    return weights


class _Rows:
    """The numbers of questions, from a file if it has them."""

    def __init__(self, alignment: Alignment, kept: Path | None) -> None:
        self._alignment = alignment
        self._path = kept
        self._found: dict[str, tuple[float, ...]] = {}
        if kept is not None and kept.is_file():
            with np.load(kept) as file:
                if str(file["weights"]) == alignment.weights:
                    self._found = dict(zip(file["marks"].tolist(), map(tuple, file["rows"].tolist()), strict=True))

    def of(self, question: Asked) -> tuple[float, ...]:
        """Return the numbers of the most similar context."""
        asked, texts = _pair(question)
        mark = hashlib.blake2b("\x1f".join((asked, *texts)).encode(), digest_size=16).hexdigest()
        if mark not in self._found:
            self._found[mark] = max(self._alignment.row(asked, text) for text in texts)
            if len(self._found) % _KEPT_EVERY == 0:
                self.keep()
        return self._found[mark]

    def keep(self) -> None:
        """Write the file."""
        if self._path is not None:
            marks, rows = np.array([*self._found]), np.array([*self._found.values()])
            np.savez_compressed(self._path, weights=np.array(self._alignment.weights), marks=marks, rows=rows)


def _labelled(record: Labelled) -> Iterator[tuple[Asked, bool]]:
    """Yield the questions about a record that get a probability, with its label; labelled sentences are separate
    questions.
    """
    alone = record.task is Task.SENTENCE_RELEVANCE
    questions = JudgedAsLabelled(record.task, alone=alone).questions(sample_of(record))
    yes = record.yes if record.grade is None else record.grade >= 1
    labels = record.sentence_labels if alone else [yes] * len(questions)
    yield from zip(questions, labels, strict=False)  # a record with a blank text has no question


def _pair(question: Asked) -> tuple[str, tuple[str, ...]]:
    """Return the question or statement, and the texts to compare it with."""
    match question:
        case Relevance():
            return question.user_input, (" ".join(question.sentences),)
        case Support():
            return question.statement, question.contexts
        case Sufficiency():
            return question.user_input, question.contexts
        case _:
            return question.user_input, (question.statement,)


def _fold(group: object) -> int:
    return hashlib.blake2b(repr(group).encode(), digest_size=4).digest()[0] % FOLDS
