"""Labelled records as rows of the judge's features, task by task: English ones, and other languages for `words`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from labels import records
from labels.rows import Rows, rows_of, swapped

from merilo.data.sentences import sentences
from merilo.data.short_answers import affirms, stated, taken_apart
from merilo.data.values import has_values, values
from merilo.judges.blended import RULES_VERSION
from merilo.judges.copied import strip_question_echoes
from merilo.judges.words import stems

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from labels.records import Example
    from numpy.typing import NDArray

    from merilo.judges.blended import PairFeatures


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

    def where(self, keep: NDArray[np.bool_]) -> Units:
        """The units for which `keep` holds."""
        return Units(self.rows.where(keep), self.record[keep])

    def together(self, chance: NDArray[np.float64]) -> tuple[Rows, NDArray[np.float64]]:
        """The first row of each record, and the mean of its chances."""
        _, first, place = np.unique(self.record, return_index=True, return_inverse=True)
        total = np.bincount(place, weights=chance)
        return self.rows.where(np.isin(np.arange(len(self.record)), first)), total / np.bincount(place)


def split(text: str, language: str) -> tuple[str, ...]:
    """Return the sentences that the judge gets at run time."""
    return sentences(text, language)


def all_units(folder: Path, seen: PairFeatures) -> Iterator[tuple[str, Units]]:
    """Yield the rows of each task, from the records in a folder."""
    relevance = records.relevance_examples(folder, split)
    yield "answers", _units((each, [seen.context(each.asked, each.texts)[:3]]) for each in _english(relevance))
    others = (each for each in relevance if each.language != "en" and each.texts)
    yield (
        "words",
        _units((each, [seen.words(each.asked, strip_question_echoes(each.asked, each.texts))]) for each in others),
    )
    enough = _english(records.sufficiency_examples(folder, split))
    yield "sufficient", _units((each, [_sufficient(seen, each)]) for each in enough)
    yield "sentence", _sentences(list(_english(records.sentence_examples(folder))), seen)
    yield "supported", _units(_supported(folder, seen))
    yield "answered", _units(_short(folder, seen))
    made = swapped(list(records.support_examples(folder, split)))
    useful = _english([*records.usefulness_examples(folder, split), *made])
    yield "useful", _units((each, [seen.support(each.other, each.texts)[1:]]) for each in useful)


def kept_units(file: Path, folder: Path, seen: PairFeatures, weights: str) -> dict[str, Units]:
    """Return the rows of each task from a file, which is written if it was not made of the same weights and rules."""
    made_of = f"{weights} {RULES_VERSION}"
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
    return (each for each in examples if each.language == "en" and any(map(stems, each.texts)))


def _units(rows: Iterable[tuple[Example, Sequence[tuple[float, ...]]]]) -> Units:
    """Return units from `rows`: each example with the rows of its parts."""
    values, owners, numbers = [], [], []
    for number, (example, parts) in enumerate(rows):
        values += [tuple(part) for part in parts]
        owners += [example] * len(parts)
        numbers += [number] * len(parts)
    return Units(rows_of(values, [each.label for each in owners], owners), np.array(numbers))


def _sufficient(seen: PairFeatures, each: Example) -> tuple[float, ...]:
    found = seen.context(each.asked, each.texts)
    return found.cosine, found.coverage, found.suffices


def _sentences(examples: Sequence[Example], seen: PairFeatures) -> Units:
    """Return units with each judged sentence as its own record."""
    values = [row for each in examples for row in seen.sentences(each.asked, each.texts)]
    labels = [float(label) for each in examples for label in each.labels]
    owners = [each for each in examples for _ in each.labels]
    return Units(rows_of(values, labels, owners), np.arange(len(values)))


def _supported(folder: Path, seen: PairFeatures) -> Iterator[tuple[Example, list[tuple[float, ...]]]]:
    """Yield responses as their statements, and statements; without short answers."""
    for example, parts in records.support_examples(folder, split):
        if example.language == "en" and any(map(stems, example.texts)) and short_of(example) is None:
            yield example, [seen.support(each, example.texts) for each in parts if stems(each)]
    for example in _english(records.statement_examples(folder, split)):
        yield example, [seen.support(example.other, example.texts)]


def _short(folder: Path, seen: PairFeatures) -> Iterator[tuple[Example, list[tuple[float, ...]]]]:
    """Yield short answers whose words and values a sentence of their context has; the best row of such a sentence."""
    for example, _ in records.support_examples(folder, split):
        short = short_of(example) if example.language == "en" and any(map(stems, example.texts)) else None
        if short is None or affirms(short[1]) is not None:
            continue
        rows = zip(seen.answered(short[0], [example.texts]), example.texts, strict=True)
        found = [row for row, text in rows if _has(text, short[1])]
        if found:
            yield example, [max(found)]


def _has(text: str, answer: str) -> bool:
    return {*stems(answer)} <= {*stems(text)} and has_values(values(answer), values(text))


def short_of(example: Example) -> tuple[str, str] | None:
    """Return what was asked and the short answer; None for a response that is judged by its statements."""
    return taken_apart(stated(example.other, example.asked, example.language) or "")
