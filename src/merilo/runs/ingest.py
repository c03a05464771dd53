"""Reads a data set into a run's store, and checks every record before the first question is asked."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from merilo.data.check import cut
from merilo.data.measures import KNOWN, MeasureColumn, measure_columns, number_in
from merilo.data.problem_report import grouped_messages, unread_columns
from merilo.data.sample import FIELDS, BadRecord, Columns, Fingerprint, matching_id, with_identified_language
from merilo.errors import DataError, Problem, UsageError
from merilo.judging.json_types import as_mapping
from merilo.runs.run_metrics import Unread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.data.sample import Dataset, Sample
    from merilo.runs.shards import Shard
    from merilo.runs.store import Store

    UnreadBy = Callable[[Sample], Mapping[str, tuple[str, str]]]

MAX_PROBLEMS = 100_000
"""Maximum number of problems of all records. Each is held, so that the message can group them."""
_SHOWN = 20
_BATCH = 100
_MAX_IDS = 100_000
"""Maximum number of distinct ids that are compared with the ids of other samples."""
_ID_CHARS = 200
_WORD = re.compile(r"\d+|[^\W\d_]+")


@dataclass(slots=True)
class Intake:
    """Result of reading a data set."""

    of_shard: Shard | None = None
    """The samples that are evaluated; None for all."""
    declared: Mapping[str, MeasureColumn] = field(default_factory=dict[str, "MeasureColumn"])
    """The keys of the metadata that hold a measure if they hold a number."""
    samples: int = 0
    """Number of samples to evaluate."""
    read: int = 0
    """Number of samples in the data; more than `samples` for a shard. Everything below describes all of them."""
    skipped: list[str] = field(default_factory=list)
    """One text for each skipped record: a sentence for each of its problems."""
    in_some: frozenset[str] = frozenset()
    """Fields that at least one sample has."""
    unread: dict[str, Unread] = field(default_factory=dict[str, Unread])
    """Samples in languages that the judge of a metric does not support, by metric."""
    not_shown: Counter[str] = field(default_factory=Counter[str])
    """Metric that no sample shows (`ShownInRun`) → number of samples that lack what it measures."""
    columns: Columns = field(default_factory=Columns)
    """The use of each column of the data."""
    note: str = ""
    """A sentence if no retrieved id matches a reference id of any sample; otherwise empty."""
    measures: dict[str, MeasureColumn] = field(default_factory=dict[str, "MeasureColumn"])
    """Those that do in at least one sample."""
    _own: Fingerprint = field(default_factory=Fingerprint)
    _all: Fingerprint = field(default_factory=Fingerprint)
    _problems: list[Problem] = field(default_factory=list)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the samples to evaluate."""
        return self._own.hexdigest()

    @property
    def shard(self) -> Mapping[str, object] | None:
        """The manifest's entry for the shard; None if all samples are evaluated."""
        return None if self.of_shard is None else self.of_shard.record(self.read, self._all.hexdigest())

    def add(self, sample: Sample) -> bool:
        """Count a sample; return True if it is evaluated."""
        self.read += 1
        self.in_some |= sample.present
        for key in sorted(self.declared.keys() & sample.metadata.keys() - self.measures.keys()):
            if number_in(sample.metadata[key]) is not None:
                self.measures[key] = self.declared[key]
        own = self.of_shard is None or self.of_shard.holds(self.read)
        if own:
            self.samples += 1
            self._own.add(sample)
        if self.of_shard is not None:
            self._all.add(sample)
        return own

    def skip(self, problems: tuple[Problem, ...]) -> None:
        """Note the problems of a record. Raises DataError for too many of all records."""
        self.skipped.append(" ".join(problem.message for problem in problems))
        self._problems.extend(problems)
        if len(self._problems) > MAX_PROBLEMS:
            first = self._problems[0]
            raise DataError(f"More than {MAX_PROBLEMS:,} problems; the first: {first.message}", problems=(first,))

    def refusal(self, dataset: Dataset, *, skip_invalid: bool) -> DataError | None:
        """Return the error if no sample can be evaluated, or if records are invalid and not to be skipped."""
        bad = len(self.skipped)
        if self.read and (skip_invalid or not bad):
            return None
        messages = grouped_messages(self._problems, records=self.read + bad)
        more = len(messages) - _SHOWN
        missing = frozenset(FIELDS) - frozenset(dataset.columns.recognised.values())
        unread = unread_columns(dataset.columns, missing)
        named = unread and not any("Map columns with" in each for each in messages)
        count = "1 invalid record" if bad == 1 else f"{bad} invalid records"
        valid = "the valid one" if self.read == 1 else f"the {self.read} valid ones"
        advice = f" Evaluate {valid} with --skip-invalid." if self.read else ""
        head = f"{count}.{advice}" if bad and not skip_invalid else "no record can be evaluated."
        shown = [*messages[:_SHOWN], *([f"... and {more} more."] if more > 0 else []), *([unread] if named else [])]
        return DataError("\n".join([f"{dataset.name}: {head}", *shown]), problems=tuple(self._problems))


@dataclass(slots=True)
class _Ids:
    """The ids of the samples read so far, unless a retrieved id matches a reference id of any sample."""

    matched: bool
    """True if a retrieved id matches a reference id of any sample, or if there are too many ids to compare."""
    retrieved: dict[str, None] = field(default_factory=dict[str, None])
    references: dict[str, None] = field(default_factory=dict[str, None])
    """Ids that are judged, as relevant or not."""

    def add(self, sample: Sample) -> None:
        """Compare the ids of a sample with all before it; only samples with both lists count."""
        if self.matched or not (sample.retrieved_context_ids and sample.reference_context_ids):
            return
        judged = [*sample.reference_context_ids, *map(str, as_mapping(sample.metadata.get("qrels")) or ())]
        retrieved, references = (dict.fromkeys(map(matching_id, ids)) for ids in (sample.retrieved_context_ids, judged))
        self.retrieved |= retrieved
        self.references |= references
        self.matched = (
            len(self.retrieved) + len(self.references) > _MAX_IDS
            or not retrieved.keys().isdisjoint(self.references.keys())
            or not references.keys().isdisjoint(self.retrieved.keys())
        )

    def note(self, source: str) -> str:
        """Return a sentence if no id matches. Raises DataError if ids that could match are written in two forms."""
        if self.matched or not self.retrieved:
            return ""
        for longer, shorter in ((self.retrieved, self.references), (self.references, self.retrieved)):
            ends = {_words(each): each for each in shorter}
            spelt = {each: _words(each) for each in longer}
            low, high = min(spelt.values()), max(spelt.values())
            # Only what begins all ids is their form: "Battle of Paris" is another title than "Paris".
            shared = len([*takewhile(lambda pair: pair[0] == pair[1], zip(low, high, strict=False))])
            for each, words in spelt.items():
                if found := [end for at in range(min(shared + 1, len(words))) if (end := ends.get(words[at:]))]:
                    forms = f"two forms, {cut(each)!r} and {cut(found[0])!r}; write them in one"
                    raise DataError(f"{source}: retrieved and reference ids have {forms}.")
        first, other = next(iter(self.retrieved)), next(iter(self.references))
        return f"No retrieved id matches a reference id of any sample: {cut(first)!r} against {cut(other)!r}."


def _words(text: str) -> tuple[str, ...]:
    """Return the words and numbers of an id, which differ if two ids do in more than case, punctuation and zeros."""
    return tuple(each.lstrip("0") for each in _WORD.findall(text[-_ID_CHARS:].casefold()))


async def take_in(
    dataset: Dataset,
    store: Store,
    *,
    skip_invalid: bool,
    unread_by: UnreadBy | None = None,
    shows: Mapping[str, Callable[[Sample], bool | None]] | None = None,
    shard: Shard | None = None,
    match_ids: bool = False,
    measures: Sequence[str] = (),
) -> Intake:
    """Read a data set into the store; `accept_samples` then makes its samples those of the run.

    `unread_by`: returns by metric the judge that does not support the language of a sample, and that language; None if
    this is not checked. `shows`: `ShownInRun.shows` of the metrics that have it. `shard`: the samples to evaluate. All
    are read, because metrics and messages depend on all of them, as do positions. `match_ids`: whether retrieved and
    reference ids are compared. `measures`: columns that the user declared as measures. Yields to the event loop after
    each batch, so that reading can be cancelled. Raises DataError with every problem found if records are invalid and
    not to be skipped, if no valid record is left, or if ids have two forms, and UsageError for an empty shard and for a
    measure that no sample has.
    """
    store.expect_samples()
    found, ids, unshown = Intake(shard, measure_columns(measures)), _Ids(matched=not match_ids), dict(shows or {})
    records = enumerate(dataset, start=1)
    while batch := list(islice(records, _BATCH)):
        known = store.positions([item.id for _, item in batch if not isinstance(item, BadRecord)])
        for number, item in batch:
            if isinstance(item, BadRecord):
                found.skip(item.problems)
            elif (earlier := known.get(item.id)) is not None:
                found.skip((taken(item.id, earlier, dataset, number),))
            else:
                sample = with_identified_language(item)
                store.add_new(sample, own=found.add(sample))
                known[sample.id] = found.read
                ids.add(sample)
                # the sample as in the data, where its language is the one that the user stated
                for metric, (judge, language) in () if unread_by is None else unread_by(item).items():
                    found.unread.setdefault(metric, Unread(judge)).add(sample.id, language)
                _count_shown(sample, unshown, found.not_shown)
        await asyncio.sleep(0)
    store.commit()
    if (error := found.refusal(dataset, skip_invalid=skip_invalid)) is not None:
        raise error
    if not found.samples:
        most = f"the data has {found.read:,} samples. Choose at most {found.read:,} shards."
        raise UsageError(f"Shard {shard} is empty: {most}")
    if unmeasured := found.declared.keys() - KNOWN.keys() - found.measures.keys():
        raise UsageError(f"--measure: no sample of {dataset.name} has a number in {min(unmeasured)!r}.")
    found.columns, found.note = dataset.columns, ids.note(dataset.name)
    return found


def _count_shown(sample: Sample, shows: dict[str, Callable[[Sample], bool | None]], not_shown: Counter[str]) -> None:
    """Remove the metrics that a sample shows from those that none has shown so far, and count what the others lack."""
    for text, shown in [*shows.items()]:
        if found := shown(sample):
            del shows[text], not_shown[text]
        elif found is not None:
            not_shown[text] += 1


def taken(sample_id: str, earlier: int, dataset: Dataset, number: int) -> Problem:
    """Return the problem of an id that an earlier sample has. One of the two may use its record number as id."""
    numbered = dataset.columns.numbered(sample_id)
    if numbered is None:
        got, advice = f"{sample_id!r}, the id of sample {earlier}", ""
    elif numbered == number:
        got = f"none, so its number {number} is its id, which sample {earlier} has already"
        advice = "give every record an id, or none"
    else:
        got = f"{sample_id!r}, which is the id of record {numbered}: it has none, so its number is its id"
        advice = "give every record an id, or none"
    return Problem("a unique id", got, "id", dataset.name, number, "record", advice)
