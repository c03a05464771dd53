"""Source documents and labels of spans, written into the samples that metrics read (`data/span_view.py`)."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Final

from merilo.data import check
from merilo.data.documents import load_documents
from merilo.data.load import load
from merilo.data.remote import fetched_file, is_url
from merilo.data.sample import BadRecord, Context, Dataset, Sample
from merilo.data.span_labels import by_sample, read_span_labels
from merilo.data.span_view import LOCATED, SPAN_LABELS
from merilo.data.spans import DenseSpan, Span, dense
from merilo.data.trec import load_trec
from merilo.errors import Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.data.check import JSON
    from merilo.data.documents import Documents
    from merilo.data.load import Records
    from merilo.data.span_labels import SpanLabel


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
                f"--qrels {qrels} is in TREC format, which can score a TREC run only, but {path or 'the data'} has "
                "records. "
                "Use span labels (.jsonl) with --documents, or put the ids into reference_context_ids."
            )
        return data if qrels is None else load_trec(path, qrels)
    if qrels is not None and not is_spans:
        raise UsageError(
            f"--documents takes span labels (.jsonl) as --qrels, got {str(qrels)!r}. Leave out --documents."
        )
    corpus = load_documents(documents)
    labels = None if qrels is None else by_sample(read_span_labels([qrels], corpus))
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
        return BadRecord(tuple(_not_found(sample.id, at, gold[at][0]) for at in lost))
    evidence = None if sample.reference_contexts is None else tuple(_with_place(*each) for each in gold)
    return replace(sample, retrieved_contexts=places, reference_contexts=evidence)


def _not_found(sample: str, at: int, context: Context) -> Problem:
    got = check.shown(context.text)
    return Problem("a text that is in the documents", got, f"reference_contexts[{at}]", source=f"sample {sample!r}")


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
