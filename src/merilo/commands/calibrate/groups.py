"""Where the judge errs: its rates by language, length, system or any field of the samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Final

from merilo.commands.calibrate.agreement import FieldRates, ItemAgreement, LabelledItem, says_yes
from merilo.commands.calibrate.correction import match
from merilo.errors import UsageError
from merilo.rendering.overview import command
from merilo.runs.clusters import clusters
from merilo.runs.run import open_store
from merilo.stats.group_rates import rates_by_group

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from merilo.commands.calibrate.human_labels import HumanLabel
    from merilo.results.scores import RunScores
    from merilo.runs.run import Run
    from merilo.stats.resampling import Resampling

LANGUAGE: Final = "language"
LENGTH: Final = "length"
SYSTEM: Final = "system"
_CONTEXTS: Final = frozenset({"context", "contexts", "texts"})

Grouped = tuple[LabelledItem, str]
"""A labelled item with the name of its system."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The fields that items are grouped by, with the values of the samples."""

    fields: tuple[str, ...]
    values: Mapping[str, Mapping[str, str | None]]
    """By field, the value of each sample; only for fields that must be read from the samples."""

    @classmethod
    def of(cls, run: Run, fields: Sequence[str], samples: Collection[str]) -> Groups:
        """Read the fields of these samples. Raises UsageError for a field that none of them has."""
        named = tuple(dict.fromkeys(fields))
        values = {field: _values(run, field, samples) for field in named if field not in {LANGUAGE, LENGTH, SYSTEM}}
        if LENGTH in named:
            values[LENGTH] = _read(run, "response", samples)
        return cls(named, values)

    def added(
        self,
        found: tuple[ItemAgreement, ...],
        items: Sequence[LabelledItem],
        systems: Sequence[Grouped],
        resampling: Resampling,
    ) -> tuple[ItemAgreement, ...]:
        """Return the agreement with the judge's rates by group. `systems`: the items of both runs of a pair."""
        return tuple(
            each if each.yes_or_no is None else replace(each, groups=self._of(each.kind, items, systems, resampling))
            for each in found
        )

    def _of(
        self, kind: str, items: Sequence[LabelledItem], systems: Sequence[Grouped], resampling: Resampling
    ) -> tuple[FieldRates, ...]:
        """Return the rates on the questions of one kind, for each field with an item."""
        mine = [item for item in items if item.item.form.kind == kind]
        both = [pair for pair in systems if pair[0].item.form.kind == kind]
        found = (self._rates(field, mine, both, resampling) for field in self.fields)
        return tuple(each for each in found if each.groups)

    def _rates(
        self, field: str, items: Sequence[LabelledItem], systems: Sequence[Grouped], resampling: Resampling
    ) -> FieldRates:
        own: Sequence[LabelledItem] = [item for item, _ in systems] if field == SYSTEM else items
        names = [name for _, name in systems] if field == SYSTEM else self._names(field, items)
        rates = rates_by_group(
            [says_yes(each, each.consensus) for each in own],
            [says_yes(each, each.item.judge) for each in own],
            names,
            clusters=[each.cluster for each in own],
            resampling=resampling,
        )
        return FieldRates(field, rates)

    def _names(self, field: str, items: Sequence[LabelledItem]) -> list[str | None]:
        if field == LANGUAGE:
            return [each.item.question.language for each in items]
        values = self.values[field]
        if field == LENGTH:
            return _halves([_length(each, values.get(each.sample)) for each in items])
        return [values.get(each.sample) for each in items]


def items_of_pair(
    first: RunScores, second: RunScores, labels: Sequence[HumanLabel], metrics: Collection[str]
) -> dict[str, list[Grouped]]:
    """Return the labelled items of both runs, by metric. Raises UsageError if no label is of this pair."""
    prints = {each.run.manifest.fingerprint for each in (first, second)}
    both = [each for each in labels if each.ticket.other and {each.ticket.fingerprint, each.ticket.other} == prints]
    paths = [str(each.run.path) for each in (first, second)]
    if not both:
        raise UsageError(
            f"None of the labels is of both runs, so the judge's errors cannot be compared. To draw such tasks: "
            f"{command('label', *paths, '-o', 'FILE')}"
        )
    folders = [each.run.path.name for each in (first, second)]
    names = paths if folders[0] == folders[1] else folders
    common = [text for text in metrics if text in second.columns]
    found: dict[str, list[Grouped]] = {}
    for name, scores in zip(names, (first, second), strict=True):
        for text, each in match(scores, both, common).items():
            found.setdefault(text, []).extend((item, name) for item in each.items)
    return found


def _values(run: Run, field: str, samples: Collection[str]) -> dict[str, str | None]:
    """Return the field of each of these samples. Raises UsageError if there are samples and none has it."""
    found = _read(run, field, samples)
    if not samples or any(each is not None for each in found.values()):
        return found
    store = open_store(run)
    try:
        known = [sample for name in samples if (sample := store.sample(name)) is not None]
    finally:
        store.close()
    keys = sorted({key for sample in known for key in sample.metadata})
    listed = ", ".join([LANGUAGE, LENGTH, *keys])
    raise UsageError(f"--by: no labelled sample has the field {field!r}. Possible: {listed}.")


def _read(run: Run, field: str, samples: Collection[str]) -> dict[str, str | None]:
    store = open_store(run)
    try:
        return {each.sample: each.cluster for each in clusters(store, field) if each.sample in samples}
    finally:
        store.close()


def _length(each: LabelledItem, response: str | None) -> int | None:
    """Return the number of characters of the contexts that the judge read; of the response if it read none."""
    contexts = [len(text) for name, text in each.item.form.texts if name in _CONTEXTS]
    if contexts:
        return sum(contexts)
    return None if response is None else len(response)


def _halves(lengths: Sequence[int | None]) -> list[str | None]:
    """Return the half of each length, split at the median."""
    known = [each for each in lengths if each is not None]
    if not known:
        return [None] * len(lengths)
    middle = int(median(known))
    return [
        None if each is None else f"up to {middle:,} characters" if each <= middle else f"over {middle:,} characters"
        for each in lengths
    ]
