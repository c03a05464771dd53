"""Gold evidence as spans of source documents: the labels of a question by annotators and judges.

A label says that a stretch of a document is relevant to a sample's question (a grade above 0) or is not (0). A file
of labels is JSON Lines; docs/retrieval.md describes it. Human labels take precedence over those of a judge.
`load_judged` writes labels and documents into the samples that metrics read (`data/span_view.py`).
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.data import check
from merilo.data.context import Context
from merilo.data.corpus import Documents, load_documents
from merilo.data.lines import refusal
from merilo.data.load import Records, load
from merilo.data.remote import fetched_file, is_url
from merilo.data.sample import BadRecord, Dataset, Sample
from merilo.data.sentences import MAX_GRADE, DenseSpan, Span, dense
from merilo.data.source import Format, RecordFile
from merilo.data.span_view import LOCATED, SPAN_LABELS
from merilo.data.trec import RUN_FIELDS, load_trec
from merilo.errors import Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from merilo.data.check import JSON

PEOPLE: Final = "people"
_JUDGE: Final = "judge:"


class SpanLabel(NamedTuple):
    """The grade of one stretch of a document for the question of one sample."""

    sample: str
    span: DenseSpan
    grade: float
    by: str = PEOPLE
    """Name of an annotator, or `judge:NAME`."""

    @property
    def rank(self) -> tuple[bool, float, str]:
        """The sort key among labels of the same text, the one that applies first: people, highest grade, name."""
        return self.by.startswith(_JUDGE), -self.grade, self.by


def pooled(labels: Iterable[SpanLabel]) -> tuple[SpanLabel, ...]:
    """Return the labels as disjoint spans: for each character the label that applies.

    A human label replaces those of judges. Among human labels, and among judges, the highest grade applies. The result
    does not depend on the order of the labels, and is sorted by sample, document and position.
    """
    groups: defaultdict[tuple[str, str], list[SpanLabel]] = defaultdict(list)
    for each in labels:
        groups[each.sample, each.span.document].append(each)
    return tuple(label for key in sorted(groups) for label in _disjoint(groups[key]))


def _disjoint(labels: Sequence[SpanLabel]) -> list[SpanLabel]:
    """Return the labels of one document as disjoint spans; neighbours with equal grade and author are joined."""
    waiting = sorted((each for each in labels if each.span.start < each.span.end), key=lambda each: each.span)
    ends = sorted({place for each in waiting for place in each.span[1:]})
    active: list[tuple[tuple[bool, float, str], int, SpanLabel]] = []
    found: list[SpanLabel] = []
    at = 0
    for start, end in pairwise(ends):
        while at < len(waiting) and waiting[at].span.start <= start:
            heapq.heappush(active, (waiting[at].rank, -waiting[at].span.end, waiting[at]))
            at += 1
        while active and active[0][2].span.end <= start:  # the best label has ended; others are dropped when they lead
            heapq.heappop(active)
        if active:
            best, last = active[0][2], found[-1] if found else None
            if last is not None and last.span.end == start and (last.grade, last.by) == (best.grade, best.by):
                found[-1] = last._replace(span=last.span._replace(end=end))
            else:
                found.append(best._replace(span=DenseSpan(best.span.document, start, end)))
    return found


def by_sample(labels: Iterable[SpanLabel]) -> Mapping[str, Sequence[SpanLabel]]:
    """Return pooled labels by the id of their sample."""
    found: defaultdict[str, list[SpanLabel]] = defaultdict(list)
    for each in pooled(labels):
        found[each.sample].append(each)
    return found


# -- files ----------------------------------------------------------------------------------------------


def read_span_labels(path: str | PathLike[str], documents: Documents) -> tuple[SpanLabel, ...]:
    """Return the labels of a file, in order; a line whose grade is null is not judged yet and is skipped.

    Raises DataError with at most 20 problems: an unknown document, offsets outside it, a text that is not in the
    documents or not at its offsets, a span without text, a grade that is not a number.
    """
    found: list[SpanLabel] = []
    problems: list[Problem] = []
    file = RecordFile(Path(path), Format.JSONL)
    for raw in file.records():
        own = list(raw.problems)
        if raw.value is not None and not own and not check.is_missing(raw.value.get("grade", 0)):
            label = _label(raw.value, documents, own)
            found += [] if label is None or own else [label]
        problems += file.placed(raw, own)
    if problems:
        raise refusal(problems)
    return tuple(found)


def _label(record: Mapping[str, object], documents: Documents, problems: list[Problem]) -> SpanLabel | None:
    sample = check.identifier(record.get("sample"), "sample", problems)
    if sample is None and not problems:
        problems.append(Problem(check.ID, check.shown(None), "sample"))
    grade = check.number(record.get("grade"), "grade", problems)
    by = check.identifier(record.get("by"), "by", problems) or PEOPLE
    if not problems and (grade is None or grade > MAX_GRADE):
        expected = f"a number up to {MAX_GRADE:,}, 0 for not relevant"
        problems.append(Problem(expected, check.shown(record.get("grade")), "grade"))
    span = None if problems else _span(record, documents, problems)
    if span is None or sample is None or grade is None:
        return None
    return SpanLabel(sample, span, max(0.0, grade), by)


def _span(record: Mapping[str, object], documents: Documents, problems: list[Problem]) -> DenseSpan | None:
    document = check.identifier(record.get("document"), "document", problems)
    text = check.text(record.get("text"), "text", problems)
    if document is not None and document not in documents:
        problems.append(Problem("the id of a document", repr(document), "document"))
    if problems:
        return None
    if document is not None and not (check.is_missing(record.get("start")) and check.is_missing(record.get("end"))):
        return _at_offsets(record, document, text, documents, problems)
    if text is not None:
        found = documents.find(text, document)
        if found is None:
            where = "the documents" if document is None else f"the document {document!r}"
            problems.append(Problem(f"a text that is in {where}", check.shown(text), "text"))
        return found
    if document is None:
        problems.append(Problem("the id of a document, or a text", check.shown(record), "document"))
        return None
    return documents.whole(document)


def _at_offsets(
    record: Mapping[str, object], document: str, text: str | None, documents: Documents, problems: list[Problem]
) -> DenseSpan | None:
    start, end, length = record.get("start"), record.get("end"), len(documents[document].text)
    if type(start) is not int or type(end) is not int or not 0 <= start <= end <= length:
        got = f"{check.shown(start)} and {check.shown(end)}"
        problems.append(Problem(f"offsets from 0 to {length:,}, start before end", got, "start, end"))
        return None
    if text is not None and dense(text) != dense(documents[document].text[start:end]):
        advice = "use the documents that were labelled, or leave out start and end to find the text"
        problems.append(Problem("the text of the document at these offsets", check.shown(text), "text", advice=advice))
        return None
    span = DenseSpan(document, *documents[document].dense_of(Span(start, end)))
    if span.start == span.end:
        problems.append(Problem("a span with text", f"white space or nothing from {start} to {end}", "start, end"))
        return None
    return span


_RECORDS: Final = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
"""Endings of files that are not a TREC run."""


def load_judged(
    data: str | PathLike[str] | Records,
    qrels: str | PathLike[str] | None,
    documents: str | PathLike[str] | None,
    *,
    mapping: Mapping[str, str] | None = None,
    language: str | None = None,
) -> str | PathLike[str] | Records:
    """Return the data with its judgements: TREC qrels of a TREC run, or span labels in JSON Lines and the documents.

    With documents and no qrels, the reference contexts are the evidence. Raises DataError for an invalid file,
    UsageError if the documents of span labels are missing.
    """
    if is_url(data):
        data = fetched_file(str(data))
    path = str(data) if isinstance(data, str | PathLike) else ""
    is_spans = qrels is not None and str(qrels).removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    if documents is None:
        if is_spans:
            raise UsageError("Span labels need the documents that they are about: add --documents documents.jsonl.")
        if qrels is not None and (not path or path.removesuffix(".gz").endswith(_RECORDS)):
            raise UsageError(
                f"--qrels {qrels} is in TREC format, which can score a TREC run only ({RUN_FIELDS}), but "
                f"{path or 'the data'} is read as records. "
                "Use span labels (.jsonl) with --documents, or put the ids into reference_context_ids."
            )
        return data if qrels is None else load_trec(path, qrels)
    if qrels is not None and not is_spans:
        raise UsageError(
            f"--documents takes span labels (.jsonl) as --qrels, got {str(qrels)!r}. Leave out --documents."
        )
    corpus = load_documents(documents)
    labels = None if qrels is None else by_sample(read_span_labels(qrels, corpus))
    source = load(data, mapping=mapping, language=language)

    def read() -> Iterator[Sample | BadRecord]:
        for each in source:
            yield each if isinstance(each, BadRecord) else located(each, corpus, labels)

    return Dataset(source.name, read, source.columns)


def located(
    sample: Sample, documents: Documents, labels: Mapping[str, Sequence[SpanLabel]] | None
) -> Sample | BadRecord:
    """Return the sample with the places of its contexts and evidence; a bad record if its evidence is in no document.

    `labels`: pooled labels by sample; None: the sample's reference contexts are the evidence.
    """
    retrieved = sample.retrieved_contexts
    places = None if retrieved is None else tuple(_with_place(each, place_of(each, documents)) for each in retrieved)
    if labels is not None:
        own = labels.get(sample.id, ())
        rows: JSON = [[*each.span, each.grade] for each in own]
        return replace(
            sample,
            retrieved_contexts=places,
            reference_contexts=tuple(
                _with_place(Context(documents.text_of(each.span)), each.span) for each in own if each.grade > 0
            ),
            metadata={**sample.metadata, SPAN_LABELS: rows},
        )
    gold = [(each, place_of(each, documents)) for each in sample.reference_contexts or ()]
    lost = [at for at, (context, place) in enumerate(gold) if place is None and dense(context.text)]
    if lost:
        needed, source = "a text that is in the documents", f"sample {sample.id!r}"
        shown = ((at, check.shown(gold[at][0].text)) for at in lost)
        return BadRecord(tuple(Problem(needed, got, f"reference_contexts[{at}]", source=source) for at, got in shown))
    evidence = None if sample.reference_contexts is None else tuple(_with_place(*each) for each in gold)
    return replace(sample, retrieved_contexts=places, reference_contexts=evidence)


def place_of(context: Context, documents: Documents) -> DenseSpan | None:
    """Return the place of a context: by `document`, `start` and `end` in its metadata, otherwise by its text.

    `document` alone restricts the search to that document. Offsets are used only if the text there contains the
    context, or is contained in it (a chunker may add a title): they may count bytes, or mean something else.
    """
    document, start, end = (context.metadata.get(name) for name in ("document", "start", "end"))
    name = str(document) if isinstance(document, str | int) and str(document) in documents else None
    if name is not None and type(start) is int and type(end) is int and 0 <= start < end <= len(documents[name].text):
        there, own = dense(documents[name].text[start:end]), dense(context.text)
        if there and own and (there in own or own in there):
            return DenseSpan(name, *documents[name].dense_of(Span(start, end)))
    return documents.find(context.text, name)


def _with_place(context: Context, place: DenseSpan | None) -> Context:
    metadata: dict[str, JSON] = {key: value for key, value in context.metadata.items() if key != LOCATED}
    if place is not None:
        metadata[LOCATED] = [*place]
    return replace(context, metadata=metadata)
