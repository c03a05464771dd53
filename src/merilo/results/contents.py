"""Compares the samples of several runs by content: do equal ids name equal questions, and are the outputs equal?

A *question* is what a sample asks, and the truth it is judged against: `user_input` with the `history`, and of
`reference`, `reference_contexts`, `reference_context_ids` and the metadata's `qrels`, `span_labels` and `nuggets` what
the metrics use. *Outputs* are what the evaluated system returned: `retrieved_contexts`, `retrieved_context_ids`,
`response`.
"""

from __future__ import annotations

import json
from array import array
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from merilo.data.sample import NUGGETS, NuggetError, nuggets_in
from merilo.data.span_view import SPAN_LABELS
from merilo.errors import DataError, RunError, UsageError
from merilo.judging.json_types import as_mapping
from merilo.metrics.base import Metric, ReadsMetadata
from merilo.metrics.registry import known_metric
from merilo.runs.files import missing_text_error
from merilo.runs.run import Run, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from merilo.results.scores import RunScores

    Record = Mapping[str, Any]  # Any: a sample's JSON

D = TypeVar("D")
R = TypeVar("R")

_TRUTH: Final = ("reference", "reference_contexts", "reference_context_ids")
_ASKED: Final = ("user_input", "history")
_QUESTION: Final = (*_ASKED, *_TRUTH)
_OUTPUTS: Final = ("retrieved_contexts", "retrieved_context_ids", "response")
_FIELDS: Final = frozenset({*_QUESTION, *_OUTPUTS, "language"})
"""Fields of a sample; other names of a question are keys of the metadata."""
_QRELS: Final = "qrels"
MAX_OTHER: Final = 0.1
"""Maximum share of common ids that may name other questions, unless the caller allows more."""
_EXAMPLE_CHARS: Final = 60
_STABLE_IDS: Final = "Give each question an id that stays the same."
_SAME_TRUTH: Final[Mapping[str, str]] = {
    "reference_context_ids": "If their chunks differ, let the ids name documents, or compare metrics without ids.",
    NUGGETS: "Evaluate all runs with the same nuggets.",
    SPAN_LABELS: "Evaluate all runs with the same file of span labels. Span metrics ask nothing.",
}
"""Field that can differ between runs of one data set, other than the question → advice to the user."""
_DECODE: Final = json.JSONDecoder().raw_decode  # a third of the time of json.loads, for texts whose checksum holds


class _Labelled(NamedTuple):
    """Reference contexts that come from span labels, with these labels."""

    texts: object
    labels: object


@dataclass(frozen=True, slots=True)
class EqualQuestions:
    """The samples whose question is equal in all runs."""

    positions: Sequence[int]
    """Positions among the common samples, in their order."""
    other: int
    """Number of common samples that are left out because their questions differ."""
    notes: tuple[str, ...]
    """A sentence for each run whose questions differ from the first run's."""
    contexts: tuple[tuple[int | None, ...], ...] = ()
    """By run, the number of retrieved contexts of each sample at `positions`, None without the field; empty if all runs
    have the same samples.
    """


def equal_questions(
    scores: Sequence[RunScores], names: Sequence[str], metrics: Sequence[str], *, across_data: bool
) -> EqualQuestions:
    """Return the samples whose question is equal by content in all runs.

    `scores`: of the common samples, in one order. `across_data`: allow any number of other questions. Raises UsageError
    if more than one in ten samples differ and that is not allowed, DataError if all differ.
    """
    ids = scores[0].ids
    if len({each.run.manifest.fingerprint for each in scores}) == 1:  # equal samples in equal order
        return EqualQuestions(range(len(ids)), 0, ())
    import numpy as np

    fields = _question_fields(metrics)
    described = [_Described.of(each.run, ids, fields) for each in scores]
    first = described[0].questions
    unlike = [(each.questions != first).any(axis=1) for each in described]
    messages, advice = _differing(scores, names, fields, unlike)
    differ = np.logical_or.reduce(unlike)
    other = int(differ.sum())
    equal: Sequence[int] = np.flatnonzero(~differ).tolist() if other else range(len(ids))
    if not equal:
        raise DataError(f"{messages[0]}. No question is equal in all runs. {advice}")
    if other > MAX_OTHER * len(ids) and not across_data:
        raise UsageError(
            f"{'; '.join(messages)}. More than one in ten differ, so the runs are not comparable. {advice} "
            f"To compare only the {len(equal):,} equal questions, use --across-data."
        )
    return EqualQuestions(
        equal,
        other,
        tuple(f"{each}. They are not compared." for each in messages),
        tuple(each.counts_at(equal) for each in described),
    )


def _differing(
    scores: Sequence[RunScores], names: Sequence[str], fields: Sequence[str], unlike: Sequence[NDArray[np.bool_]]
) -> tuple[list[str], str]:
    """Return a message for each run whose questions differ from the first run's, and the advice for the first message.

    `unlike`: for each run, which of the common samples differ.
    """
    ids, advice = scores[0].ids, _STABLE_IDS
    messages: list[str] = []
    for place, name in enumerate(names[1:], start=1):
        different = unlike[place]
        if count := int(different.sum()):
            example = ids[int(different.argmax())]
            what, contents = _difference((scores[0].run, scores[place].run), example, fields)
            advice = _SAME_TRUTH.get(what, _STABLE_IDS) if not messages else advice
            another = f"other {what.replace('_', ' ')}" if what in _SAME_TRUTH else f"another {what}"
            messages.append(
                f"{count:,} of {len(ids):,} samples have {another} in {name} than in {names[0]} under the "
                f"same id, such as {example!r}: {contents}"
            )
    return messages, advice


@dataclass(frozen=True, slots=True, eq=False)
class _Described:
    """The samples of a run as numbers, in the order of their ids: 24 bytes for each sample."""

    questions: NDArray[np.uint64]
    """The digest of each question, as two numbers."""
    counts: array[int]
    """The number of retrieved contexts of each sample; -1 if it has no such field."""

    @classmethod
    def of(cls, run: Run, ids: Sequence[str], fields: Sequence[str]) -> _Described:
        import numpy as np

        digests, counts = bytearray(), array("q")

        def described(record: Record) -> tuple[bytes, int | None]:
            contexts = record.get("retrieved_contexts")
            return _digest(_values(record, fields)), None if contexts is None else len(contexts)

        for digest, count in described_in_order(run, ids, described):
            digests += digest
            counts.append(-1 if count is None else count)
        return cls(np.frombuffer(digests, np.uint64).reshape(-1, 2), counts)

    def counts_at(self, positions: Sequence[int]) -> tuple[int | None, ...]:
        """Return the number of contexts of the samples at these positions."""
        return tuple([None if (count := self.counts[at]) < 0 else count for at in positions])


def equal_inputs(first: RunScores, second: RunScores, metrics: Sequence[str]) -> frozenset[str]:
    """Return the metrics whose inputs are equal by content in both runs, on every one of the samples.

    The inputs of a metric are the whole question, the language, and the outputs that the metric needs; for a metric
    that is not known here, everything in the sample. A sample without any such output counts as different, because
    nothing can be compared. So do imported scores without texts.
    """
    if first.run.path.resolve() == second.run.path.resolve():
        return frozenset(metrics)
    by_run = [_inputs(each, metrics) for each in (first, second)]
    return frozenset(
        metric
        for place, metric in enumerate(metrics)
        if all(
            (found := inputs[place]) is not None and found == others[place]
            for inputs, others in zip(*by_run, strict=True)
        )
    )


def _inputs(scores: RunScores, metrics: Sequence[str]) -> list[tuple[bytes | None, ...]]:
    known = [known_metric(text) for text in metrics]
    needs = [(None, ()) if metric is None else (metric.needs, _truth_in_metadata(metric)) for metric in known]
    return list(
        described_in_order(
            scores.run, scores.ids, lambda record: tuple([_input_digest(record, *each) for each in needs])
        )
    )


def _input_digest(record: Record, needs: frozenset[str] | None, truth: Sequence[str]) -> bytes | None:
    outputs = [name for name in _OUTPUTS if needs is None or name in needs]
    values = _values(record, outputs)
    if all(value is None for value in values):
        return None
    if needs is None:
        return _digest(sorted((name, value) for name, value in record.items() if name != "id"))
    return _digest([*_values(record, (*_QUESTION, "language", *truth)), *values])


def _question_fields(metrics: Sequence[str]) -> tuple[str, ...]:
    known = [known_metric(text) for text in metrics]
    used = {name for metric in known for name in (_TRUTH if metric is None else metric.needs)}
    fields = [name for name in _QUESTION if name in _ASKED or name in used]
    return (*fields, *sorted({key for metric in known if metric is not None for key in _truth_in_metadata(metric)}))


def _truth_in_metadata(metric: Metric) -> tuple[str, ...]:
    return tuple(sorted(metric.truth_in_metadata)) if isinstance(metric, ReadsMetadata) else ()


def _values(record: Record, fields: Sequence[str]) -> list[object]:
    return [_value(record, name) for name in fields]


def _value(record: Record, field: str) -> object:
    """Return the content of a field without parts that no metric reads, such as a retriever's own scores."""
    if field not in _FIELDS:
        metadata: Record = record.get("metadata", {})
        return _nuggets(metadata) if field == NUGGETS else metadata.get(field)
    value = record.get(field)
    if field in {"retrieved_contexts", "reference_contexts"}:
        texts = None if value is None else [_context(item) for item in cast("list[Any]", value)]
        labels = record.get("metadata", {}).get(SPAN_LABELS) if field == "reference_contexts" else None
        return texts if labels is None else _Labelled(texts, labels)
    if field in {"retrieved_context_ids", "reference_context_ids"}:
        contexts = cast("list[Any] | None", record.get(field.removesuffix("_ids") + "s"))
        if value is None and contexts is not None:
            ids = [_context(item)[1] for item in contexts]
            value = None if None in ids else ids
        qrels = record.get("metadata", {}).get(_QRELS) if field == "reference_context_ids" else None
        grades = as_mapping(qrels)
        return value if qrels is None else [value, qrels if grades is None else sorted(grades.items(), key=str)]
    return value


def _nuggets(metadata: Record) -> object:
    """Return the nuggets in one form, however the data wrote them; as written if they are invalid."""
    try:
        return sorted([nugget.text, nugget.vital] for nugget in nuggets_in(metadata))
    except NuggetError:
        return metadata.get(NUGGETS)


def _context(item: str | Record) -> tuple[object, object, object]:
    return (item, None, None) if isinstance(item, str) else (item["text"], item.get("id"), item.get("language"))


def _digest(value: object) -> bytes:
    return blake2b(repr(value).encode(), digest_size=16).digest()  # of JSON values; three times as fast as their JSON


def described_in_order(run: Run, ids: Sequence[str], describe: Callable[[Record], D]) -> Iterator[D]:
    """Yield the description of each sample, in the order of `ids`. Raises RunError.

    Samples are held in memory only if the run has them in another order, which is rare.
    """
    with closing(open_store(run)) as store:
        ordered = has_order(store.sample_ids(), ids)
    if ordered:
        yield from (_safely(run, describe, each) for each in chosen(stored_samples(run), lambda each: each["id"], ids))
    else:
        found = _described(run, set(ids), describe)
        yield from (found[sample] for sample in ids)


def chosen(items: Iterable[R], id_of: Callable[[R], str], ids: Iterable[str]) -> Iterator[R]:
    """Yield the items with these ids, which come in this order among the others."""
    wanted = iter(ids)
    following = next(wanted, None)
    for each in items:
        if following is not None and id_of(each) == following:
            yield each
            following = next(wanted, None)


def has_order(stored: Iterator[str], ids: Sequence[str]) -> bool:
    """Return True if `stored` yields all of these ids in their order, with others between them or not."""
    return all(sample in stored for sample in ids)  # each search begins where the last one ended


def _described(run: Run, wanted: Collection[str], describe: Callable[[Record], D]) -> dict[str, D]:
    """Return the description of every wanted sample by its id. Raises RunError."""
    found = {record["id"]: _safely(run, describe, record) for record in stored_samples(run) if record["id"] in wanted}
    if lacking := [sample for sample in wanted if sample not in found]:
        raise missing_text_error(run.path, min(lacking))
    return found


def stored_samples(run: Run) -> Iterator[Record]:
    """Yield the stored samples of a run. Raises RunError."""
    with closing(open_store(run)) as store:
        for text in store.sample_records():
            yield _safely(run, _with_id, text)


def _with_id(text: str) -> Record:
    record: Record = _DECODE(text)[0]
    _ = record["id"]
    return record


def _safely(run: Run, read: Callable[[R], D], value: R) -> D:
    """Return the result of `read` for a value. Raises RunError if the value is damaged."""
    try:
        return read(value)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"A sample of {run.path} is damaged ({error}); start a new run.") from error


def _difference(runs: tuple[Run, Run], sample: str, fields: Sequence[str]) -> tuple[str, str]:
    """Return the name of the first field that differs, and its two contents in short."""
    first, second = (
        _described(run, {sample}, lambda record: [_value(record, name) for name in fields])[sample] for run in runs
    )
    place = next(at for at in range(len(fields)) if first[at] != second[at])
    spans = isinstance(first[place], _Labelled) or isinstance(second[place], _Labelled)
    what = SPAN_LABELS if spans else fields[place]
    return what, f"{_shown(first[place])} and {_shown(second[place])}"


def _shown(value: object) -> str:
    if isinstance(value, _Labelled):
        return f"{len(cast('list[Any]', value.labels)):,} labels"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "none" if value is None else repr(text[:_EXAMPLE_CHARS] + ("..." if len(text) > _EXAMPLE_CHARS else ""))
