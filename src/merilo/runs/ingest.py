"""Reads a data set into a run's store, and checks every record before the first question is asked."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from merilo.data.check import cut
from merilo.data.problem_report import grouped_messages, unread_columns
from merilo.data.sample import FIELDS, BadRecord, Columns, Fingerprint, matching_id, with_identified_language
from merilo.errors import DataError, Problem, UsageError
from merilo.judging.json_types import as_mapping
from merilo.runs.run_metrics import Unread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


@dataclass(frozen=True, slots=True)
class Intake:
    """Result of reading a data set."""

    samples: int
    """Number of samples to evaluate."""
    fingerprint: str
    """Fingerprint of these samples."""
    read: int
    """Number of samples in the data; more than `samples` for a shard. Everything below describes all of them."""
    shard: Mapping[str, object] | None = None
    """The manifest's entry for the shard; None if all samples are evaluated."""
    skipped: tuple[str, ...] = ()
    """One text for each skipped record: a sentence for each of its problems."""
    in_some: frozenset[str] = frozenset()
    """Fields that at least one sample has."""
    columns: Columns = field(default_factory=Columns)
    """The use of each column of the data."""
    unread: Mapping[str, Unread] = field(default_factory=dict[str, Unread])
    """Samples in languages that the judge of a metric does not support, by metric."""
    not_shown: Mapping[str, int] = field(default_factory=dict[str, int])
    """Metric that no sample shows (`ShownInRun`) → number of samples that lack what it measures."""
    note: str = ""
    """A sentence if no retrieved id matches a reference id of any sample; otherwise empty."""


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


@dataclass(slots=True)
class _Tally:
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    samples: int = 0
    problems: list[Problem] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    present: set[str] = field(default_factory=set[str])
    unread_by: UnreadBy | None = None
    shard: Shard | None = None
    """The samples that are evaluated; None for all."""
    own_samples: int = 0
    """Samples of the shard; 0 without one."""
    own_fingerprint: Fingerprint = field(default_factory=Fingerprint)
    unread: dict[str, Unread] = field(default_factory=dict[str, Unread])
    shows: dict[str, Callable[[Sample], bool | None]] = field(default_factory=dict)
    """The metrics that no sample so far shows."""
    not_shown: Counter[str] = field(default_factory=Counter[str])
    ids: _Ids = field(default_factory=lambda: _Ids(matched=True))

    @property
    def owns_next(self) -> bool:
        """True if the next sample is evaluated."""
        return self.shard is None or self.shard.holds(self.samples + 1)

    def add(self, sample: Sample, given: Sample) -> None:
        """Count a sample; `given`: it as in the data, where its language is the one that the user stated."""
        if self.shard is not None and self.owns_next:
            self.own_fingerprint.add(sample)
            self.own_samples += 1
        self.fingerprint.add(sample)
        self.samples += 1
        self.present |= sample.present
        self.ids.add(sample)
        for metric, (judge, language) in () if self.unread_by is None else self.unread_by(given).items():
            self.unread.setdefault(metric, Unread(judge)).add(sample.id, language)
        for text, shows in [*self.shows.items()]:
            found = shows(sample)
            if found:
                del self.shows[text], self.not_shown[text]
            elif found is not None:
                self.not_shown[text] += 1


async def take_in(
    dataset: Dataset,
    store: Store,
    *,
    skip_invalid: bool,
    unread_by: UnreadBy | None = None,
    shows: Mapping[str, Callable[[Sample], bool | None]] | None = None,
    shard: Shard | None = None,
    match_ids: bool = False,
) -> Intake:
    """Read a data set into the store; `accept_samples` then makes its samples those of the run.

    `unread_by`: returns by metric the judge that does not support the language of a sample, and that language; None if
    this is not checked. `shows`: `ShownInRun.shows` of the metrics that have it. `shard`: the samples to evaluate. All
    are read, because metrics and messages depend on all of them, as do positions. `match_ids`: whether retrieved and
    reference ids are compared. Yields to the event loop after each batch, so that reading can be cancelled. Raises
    DataError with every problem found if records are invalid and not to be skipped, if no valid record is left, or if
    ids have two forms, and UsageError for an empty shard.
    """
    store.expect_samples()
    tally = _Tally(unread_by=unread_by, shows=dict(shows or {}), shard=shard, ids=_Ids(matched=not match_ids))
    records = enumerate(dataset, start=1)
    while batch := list(islice(records, _BATCH)):
        _take(batch, dataset, store, tally)
        await asyncio.sleep(0)
    store.commit()
    if tally.skipped and not skip_invalid:
        raise DataError(_refusal(dataset, tally), problems=tuple(tally.problems))
    if not tally.samples:
        shown = [f"{dataset.name}: no record can be evaluated.", *_messages(tally, dataset)]
        raise DataError("\n".join(shown), problems=tuple(tally.problems))
    read, fingerprint = tally.samples, tally.fingerprint.hexdigest()
    if shard is not None and not tally.own_samples:
        raise UsageError(f"Shard {shard} is empty: the data has {read:,} samples. Choose at most {read:,} shards.")
    return Intake(
        samples=read if shard is None else tally.own_samples,
        fingerprint=fingerprint if shard is None else tally.own_fingerprint.hexdigest(),
        read=read,
        shard=None if shard is None else shard.record(read, fingerprint),
        skipped=tuple(tally.skipped),
        in_some=frozenset(tally.present),
        columns=dataset.columns,
        unread=tally.unread,
        not_shown=tally.not_shown,
        note=tally.ids.note(dataset.name),
    )


def _take(batch: list[tuple[int, Sample | BadRecord]], dataset: Dataset, store: Store, tally: _Tally) -> None:
    """Store the valid records of a batch, and note the problems of the others, in their order."""
    known = store.positions([item.id for _, item in batch if not isinstance(item, BadRecord)])
    for number, item in batch:
        if isinstance(item, BadRecord):
            _note(tally, item.problems)
        elif (earlier := known.get(item.id)) is not None:
            _note(tally, (_taken(item.id, earlier, dataset, number),))
        else:
            own = tally.owns_next
            sample = with_identified_language(item)
            tally.add(sample, item)
            known[sample.id] = tally.samples
            store.add_new(sample, own=own)


def _taken(sample_id: str, earlier: int, dataset: Dataset, number: int) -> Problem:
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


def _note(tally: _Tally, problems: tuple[Problem, ...]) -> None:
    tally.skipped.append(" ".join(problem.message for problem in problems))
    tally.problems.extend(problems)
    if len(tally.problems) > MAX_PROBLEMS:
        first = tally.problems[0]
        raise DataError(f"More than {MAX_PROBLEMS:,} problems; the first: {first.message}", problems=(first,))


def _refusal(dataset: Dataset, tally: _Tally) -> str:
    bad = len(tally.skipped)
    count = "1 invalid record" if bad == 1 else f"{bad} invalid records"
    valid = "the valid one" if tally.samples == 1 else f"the {tally.samples} valid ones"
    advice = f" Evaluate {valid} with --skip-invalid." if tally.samples else ""
    return "\n".join([f"{dataset.name}: {count}.{advice}", *_messages(tally, dataset)])


def _messages(tally: _Tally, dataset: Dataset) -> list[str]:
    """Return the problems as messages, equal ones grouped, the number of those not shown, and the unread columns."""
    messages = grouped_messages(tally.problems, records=tally.samples + len(tally.skipped))
    more = len(messages) - _SHOWN
    missing = frozenset(FIELDS) - frozenset(dataset.columns.recognised.values())
    unread = unread_columns(dataset.columns, missing)
    named = unread and not any("Map columns with" in each for each in messages)
    return [*messages[:_SHOWN], *([f"... and {more} more."] if more > 0 else []), *([unread] if named else [])]
