"""Examples as feature rows, with what is needed to weigh, fold and measure them."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lexical.measure import Judged
from lexical.records import YES, Example
from merilo.data.short_answers import stated
from merilo.judges.lexical import LexicalModel
from merilo.judges.lexical_features import (
    answer_features,
    sentence_features,
    support_features,
    usefulness_features,
)
from merilo.judges.lexical_match import Lexicon, match
from merilo.judges.lexical_short import ShortAnswer, short_answer
from merilo.judges.lexical_text import words

USEFUL_SWAPS = ("begin-wow", "clapnq", "qa-feedback")
"""Sources whose supported answers become references."""


@dataclass(frozen=True, slots=True)
class Rows:
    """One feature row for each labelled unit, in example order."""

    values: NDArray[np.float64]
    label: NDArray[np.float64]
    source: NDArray[np.str_]
    group: NDArray[np.str_]
    constructed: NDArray[np.bool_]

    def where(self, keep: NDArray[np.bool_]) -> "Rows":
        """The rows for which `keep` holds."""
        return Rows(*(getattr(self, name)[keep] for name in self.__slots__))

    def judged(self, chance: NDArray[np.float64], *, cut: float, threshold: float) -> Judged:
        """The rows with their label cut to yes or no and decided by a probability threshold."""
        return Judged(self.label >= cut, chance, chance >= threshold, self.source, self.group, self.constructed)


def sentence_rows(examples: Iterable[Example], lexicon: Lexicon) -> Rows:
    """SENTENCE_FEATURES of every judged sentence; of its best-covered unit where a long one was cut."""
    values, owners, labels = [], [], []
    for example in examples:
        found = match(lexicon.query(example.asked), example.texts, drop_copies=True)
        best: dict[int, tuple[float, ...]] = {}
        for owner, row in zip(found.owners, sentence_features(found, lexicon), strict=True):
            if owner not in best or row[0] > best[owner][0]:
                best[owner] = row
        for index, label in enumerate(example.labels):
            values.append(best[index])
            labels.append(float(label))
            owners.append(example)
    return rows_of(values, labels, owners)


def context_rows(examples: Iterable[Example], model: LexicalModel) -> Rows:
    """CONTEXT_FEATURES of every example; the model needs its sentence curve only."""
    examples = list(examples)
    values = [
        model.context_row(match(model.lexicon.query(each.asked), each.texts, drop_copies=True))[1] for each in examples
    ]
    return rows_of(values, [each.label for each in examples], examples)


def support_rows(examples: Iterable[tuple[Example, tuple[str, ...]]], lexicon: Lexicon) -> Rows:
    """SUPPORT_FEATURES of every response, mean over its sentences: the label is about all of them."""
    values, kept = [], []
    for example, statements in examples:
        each = [
            support_features(match(lexicon.query(statement), example.texts, drop_copies=False), lexicon)
            for statement in statements or (example.other,)
        ]
        values.append(tuple(np.mean(each, axis=0).tolist()))
        kept.append(example)
    return rows_of(values, [example.label for example in kept], kept)


def short_rows(examples: Iterable[tuple[Example, tuple[str, ...]]], model: LexicalModel, task: str) -> Rows:
    """The features of a task over short answers, of those that a context can show; needs the sentence curve only."""
    values, kept = [], []
    for example, _ in examples:
        short = short_of(example)
        seen = model.short_rows(short, [example.texts])[0] if short and short.task == task else None
        if seen is not None:
            values.append(seen.row)
            kept.append(example)
    return rows_of(values, [example.label for example in kept], kept)


def answer_rows(examples: Iterable[Example], lexicon: Lexicon, model: LexicalModel) -> Rows:
    """ANSWER_FEATURES of every question and statement."""
    examples = list(examples)
    values = [
        answer_features(lexicon.query(e.asked), words(e.other), lexicon, refuses=model.noncommittal(e.asked, e.other))
        for e in examples
    ]
    return rows_of(values, [e.label for e in examples], examples)


def usefulness_rows(examples: Iterable[Example], lexicon: Lexicon) -> Rows:
    """USEFULNESS_FEATURES of every reference, question and context."""
    examples = list(examples)
    values = [
        usefulness_features(
            match(lexicon.query(e.other), e.texts, drop_copies=False),
            match(lexicon.query(e.asked), e.texts, drop_copies=True),
        )
        for e in examples
    ]
    return rows_of(values, [e.label for e in examples], examples)


def short_of(example: Example) -> ShortAnswer | None:
    """What was asked and the short answer; None for a response that is judged by its statements."""
    return short_answer(stated(example.other, example.asked, example.language) or "")


def is_short(example: Example) -> bool:
    """Whether a response is a short answer, which is judged by where it stands."""
    return short_of(example) is not None


def swapped(examples: Collection[tuple[Example, tuple[str, ...]]]) -> list[Example]:
    """Supported responses of USEFUL_SWAPS as references: useful with their own context, not with the next one's."""
    made: list[Example] = []
    for source in USEFUL_SWAPS:
        own = [e for e, _ in examples if e.source == source and e.label >= YES]
        for this, following in zip(own, own[1:] + own[:1], strict=True):
            made.append(replace(this, label=1.0, constructed=True))
            if following.group != this.group and following.texts != this.texts:
                made.append(replace(this, texts=following.texts, label=0.0, constructed=True))
    return made


def rows_of(values: list[tuple[float, ...]], labels: list[float], examples: list[Example]) -> Rows:
    """The rows of examples, in their order."""
    return Rows(
        values=np.array(values, dtype=np.float64),
        label=np.array(labels),
        source=np.array([_source(example) for example in examples]),
        group=np.array([f"{example.source}/{example.group}" for example in examples]),
        constructed=np.array([example.constructed for example in examples]),
    )


def _source(example: Example) -> str:
    """The source, English apart from the rest where it has several languages."""
    return (
        f"{example.source}-{'en' if example.language == 'en' else 'other'}"
        if example.source == "xquad"
        else example.source
    )
