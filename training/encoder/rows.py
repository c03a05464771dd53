"""Labelled records as rows of numbers that words and encoder give, task by task; English ones.

Other languages are left to the words alone, as the judge leaves them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from lexical import records
from lexical.rows import Rows, is_short, rows_of, short_of, swapped

from merilo.data.sentences import sentences
from merilo.judges.lexical_match import RULES_VERSION
from merilo.judges.lexical_text import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from lexical.records import Example
    from numpy.typing import NDArray

    from merilo.judges.blended_features import BlendedRows

ANSWERS_LEFT_OUT: Final = ("qa-feedback-full", "mtrag-completeness")
"""Sources labelled for completeness, which a single statement cannot show."""


@dataclass(frozen=True, slots=True)
class Units:
    """Rows that are judged separately, with the labelled record of each."""

    rows: Rows
    record: NDArray[np.int64]
    """The same number for the statements of one response, whose label is about all of them."""

    @property
    def single(self) -> NDArray[np.bool_]:
        """Which rows are all that there is of their record: a curve can be fitted on these."""
        counts = np.bincount(self.record)
        return counts[self.record] == 1

    def together(self, chance: NDArray[np.float64]) -> tuple[Rows, NDArray[np.float64]]:
        """The first row of each record, and the mean of its chances."""
        _, first, place = np.unique(self.record, return_index=True, return_inverse=True)
        total = np.bincount(place, weights=chance)
        keep = np.zeros(len(self.record), dtype=bool)
        keep[first] = True
        return self.rows.where(keep), total / np.bincount(place)


def split(text: str, language: str) -> tuple[str, ...]:
    """Return the sentences that the judge gets at run time."""
    return sentences(text, language)


def all_units(folder: Path, seen: BlendedRows) -> Iterator[tuple[str, Units]]:
    """Yield the rows of each task, from the records in a folder."""
    yield "sentence", _sentences(list(_english(records.sentence_examples(folder))), seen)
    relevance = list(_english(records.relevance_examples(folder, split)))
    yield "answers", _units((each, [seen.context(each.asked, each.texts)]) for each in relevance)
    enough = _english(records.sufficiency_examples(folder, split))
    yield "sufficient", _units((each, [seen.sufficient(each.asked, [each.texts])]) for each in enough)
    yield "supported", _units(_supported(folder, seen))
    for name in ("answered", "yes_or_no"):
        yield name, _units(_short(folder, seen, name))
    answers = [each for each in records.answer_examples(folder) if each.source not in ANSWERS_LEFT_OUT]
    yield "addresses", _units((each, [seen.answer(each.asked, each.other)]) for each in answers)
    yield "useful", _units(_useful(folder, seen))


def made_of(seen: BlendedRows) -> str:
    """Return what the rows depend on besides the records: the models and the rules by which texts are read."""
    return f"{seen.weights.fingerprint} {seen.lexical.fingerprint} {RULES_VERSION}"


def kept_units(file: Path, folder: Path, seen: BlendedRows, *, made_of: str) -> dict[str, Units]:
    """Return the rows of each task from a file, which is written if it was not made of the same model and records.

    `made_of`: a digest of the model and the records.
    """
    if file.is_file():
        with np.load(file, allow_pickle=False) as held:
            if str(held["made_of"]) == made_of:
                names = dict.fromkeys(key.partition(".")[0] for key in held if "." in key)
                return {name: _from_arrays(held, name) for name in names}
    found = dict(all_units(folder, seen))
    arrays = {f"{name}.{part}": array for name, units in found.items() for part, array in _arrays(units).items()}
    np.savez_compressed(file, made_of=np.array(made_of), **arrays)
    return found


def _arrays(units: Units) -> dict[str, NDArray[Any]]:
    return {**{part: getattr(units.rows, part) for part in Rows.__slots__}, "record": units.record}


def _from_arrays(held: Mapping[str, NDArray[Any]], name: str) -> Units:
    return Units(Rows(*(held[f"{name}.{part}"] for part in Rows.__slots__)), held[f"{name}.record"])


def _english(examples: Iterable[Example]) -> Iterator[Example]:
    return (each for each in examples if each.language == "en" and each.texts)


def _units(rows: Iterable[tuple[Example, Sequence[tuple[float, ...]]]]) -> Units:
    """Return units from `rows`: each example with the rows of its parts."""
    values, owners, numbers = [], [], []
    for number, (example, parts) in enumerate(rows):
        values += parts
        owners += [example] * len(parts)
        numbers += [number] * len(parts)
    return Units(rows_of(values, [each.label for each in owners], owners), np.array(numbers))


def _sentences(examples: Sequence[Example], seen: BlendedRows) -> Units:
    """Return units with each judged sentence as its own record."""
    values = [row for each in examples for row in seen.sentences(each.asked, each.texts)]
    labels = [float(label) for each in examples for label in each.labels]
    owners = [each for each in examples for _ in each.labels]
    return Units(rows_of(values, labels, owners), np.arange(len(values)))


def _supported(folder: Path, seen: BlendedRows) -> Iterator[tuple[Example, list[tuple[float, ...]]]]:
    """Yield responses as their statements, and statements; without short answers."""
    for example, parts in records.support_examples(folder, split):
        if example.language == "en" and example.texts and not is_short(example):
            yield example, [seen.support(each, example.texts) for each in parts if words(each).stems]
    for example in _english(records.statement_examples(folder, split)):
        yield example, [seen.support(example.other, example.texts)]


def _short(folder: Path, seen: BlendedRows, task: str) -> Iterator[tuple[Example, list[tuple[float, ...]]]]:
    """Yield short answers for which their context has evidence."""
    for example, _ in records.support_examples(folder, split):
        short = short_of(example) if example.language == "en" and example.texts else None
        row = seen.short(short, [example.texts])[0] if short and short.task == task else None
        if row is not None:
            yield example, [row]


def _useful(folder: Path, seen: BlendedRows) -> Iterator[tuple[Example, list[tuple[float, ...]]]]:
    """Yield right answers with their own and with other passages, and supported responses as references."""
    made = swapped(list(records.support_examples(folder, split)))
    for each in _english([*records.usefulness_examples(folder, split), *made]):
        yield each, [seen.useful(each.asked, each.other, each.texts)]
