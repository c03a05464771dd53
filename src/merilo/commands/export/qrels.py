"""Pool labels of spans over runs: those of people, and the evidence sentences in a judge's stored verdicts.

Nothing is asked. What no one has judged yet is counted, and listed with `missing`.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.calibrate.human_labels import read_people
from merilo.data.corpus import load_documents
from merilo.data.sentences import split
from merilo.data.span_labels import (
    PEOPLE,
    SpanLabel,
    by_judge,
    by_sample,
    label_line,
    place_of,
    pooled,
    read_span_labels,
    trec_lines,
    uncovered,
)
from merilo.data.spans import DenseSpan, dense
from merilo.errors import UsageError
from merilo.judging.kinds.relevance import Relevance, RelevanceVerdict
from merilo.rendering.page import Page
from merilo.rendering.wording import count
from merilo.results.records import grouped, picked
from merilo.runs.publish import write_file, writing
from merilo.runs.run import opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from merilo.data.corpus import Documents
    from merilo.data.sample import Context, Sample
    from merilo.runs.run import Run

_SAMPLE_KEY: Final = "sample"
"""Metadata of a sentence to judge: the id of the sample whose question it is for."""


@dataclass(frozen=True, slots=True)
class PooledQrels:
    """What was written."""

    path: Path
    spans: int
    samples: int
    documents: int
    by: Mapping[str, int]
    """Author → number of spans."""
    missing: int
    """Number of sentences that the runs retrieved and no one has judged."""
    lost: int
    """Number of retrieved contexts whose text is in no document."""
    listed: bool
    """True if the file holds the missing sentences instead of the labels."""


@dataclass(slots=True)
class _Pool:
    """Everything that the runs contribute."""

    documents: Documents
    labels: list[SpanLabel]
    retrieved: dict[str, set[DenseSpan]] = field(default_factory=dict[str, "set[DenseSpan]"])
    questions: dict[str, str] = field(default_factory=dict[str, str])
    lost: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


def pool_qrels(
    runs: Sequence[str | PathLike[str]],
    documents: str | PathLike[str],
    out: str | PathLike[str],
    *,
    labels: Sequence[str | PathLike[str]] = (),
    missing: bool = False,
    characters: int | None = None,
) -> PooledQrels:
    """Write the labels of all runs and files to `out`, or with `missing` the retrieved sentences without a label.

    An `out` that ends in `.trec` gets TREC qrels: the highest grade of each document. `labels`: files of span labels.
    `characters`: only the first characters that a run retrieved for a sample need a label, white space excluded; None
    for all. The order of runs and files changes nothing. Raises DataError for invalid documents or labels, UsageError
    for a file that would replace what is read, RunError if a run cannot be read or a file cannot be written.
    """
    trec = Path(out).suffix == ".trec"
    _check_files(out, documents, labels, include=not (missing or trec))
    corpus = load_documents(documents)
    pool = _Pool(corpus, list(read_span_labels(labels, corpus)))
    for each in runs:
        _add_run(pool, opened(each), characters)
    found = pooled(pool.labels)
    lacking = list(_missing(pool, found))
    labelled = trec_lines(found) if trec else (label_line(each, corpus) for each in found)
    with writing(out):
        write_file(Path(out), "".join((_task_line(pool, *each) for each in lacking) if missing else labelled))
    return PooledQrels(
        path=Path(out),
        spans=len(found),
        samples=len({each.sample for each in found}),
        documents=len({each.span.document for each in found}),
        by=dict(sorted(Counter(each.by for each in found).items())),
        missing=len(lacking),
        lost=len(pool.lost),
        listed=missing,
    )


def _check_files(
    out: str | PathLike[str], documents: str | PathLike[str], labels: Sequence[str | PathLike[str]], *, include: bool
) -> None:
    """Raise UsageError if a file that is read would be overwritten, unless it holds labels that `out` includes."""
    replaced = Path(out).resolve()
    if replaced == Path(documents).resolve() or (not include and replaced in {Path(each).resolve() for each in labels}):
        raise UsageError("--out would overwrite a file that is read. Choose another file.")


def _add_run(pool: _Pool, run: Run, characters: int | None) -> None:
    people = _people(run)
    results = [(each.sample, each.records) for each in run.read_samples()]
    keys = dict.fromkeys(key for _, records in results for each in records.values() for key in each.get("trail", ()))
    verdicts: dict[tuple[str, tuple[str, ...]], list[tuple[RelevanceVerdict, str, bytes]]] = {}
    for asked in run.asked(list(keys)):
        question, verdict = asked.question, asked.answer
        if isinstance(question, Relevance) and isinstance(verdict, RelevanceVerdict):
            about = question.user_input, tuple(question.sentences)
            verdicts.setdefault(about, []).append((verdict, asked.judge, question.content))
    for sample, _ in results:
        name = _sample_of(sample)
        if sample.user_input is not None:
            pool.questions[name] = min(sample.user_input, pool.questions.get(name, sample.user_input))
        left = inf if characters is None else characters
        for context in sample.retrieved_contexts or ():
            place = place_of(context, pool.documents)
            if place is None:
                if text := dense(context.text):
                    pool.lost.add((name, text))
                left = max(0, left - len(text))
                continue
            read = int(min(place.end - place.start, left))
            left -= read
            pool.retrieved.setdefault(name, set()).add(place._replace(end=place.start + read))
            spans = _sentence_spans(context, place, pool.documents)
            for verdict, judge, content in verdicts.get((sample.user_input or "", context.sentences), ()):
                pool.labels += _of_verdict(name, spans, verdict, by_judge(judge))
                for label in people.get(content.hex(), ()):
                    pool.labels += _of_person(name, spans, verdict, int(label))


def _sample_of(sample: Sample) -> str:
    """Return the id of the sample whose question it asks: its own, unless it is a line of missing sentences."""
    named, *place = (sample.metadata.get(key) for key in (_SAMPLE_KEY, "document", "start", "end"))
    return named if isinstance(named, str) and sample.id == _task_id(named, *place) else sample.id


def _task_id(sample: str, document: object, start: object, end: object) -> str:
    return f"{sample}@{document}:{start}-{end}"


def _people(run: Run) -> dict[str, list[str]]:
    """Return the labels attached to the run by the digest of the question, for questions about relevance."""
    labels = () if run.labels is None else read_people([run.labels]).labels
    graded = (each for each in labels if each.ticket.mark and each.label in {"0", "1", "2"})
    return grouped((each.ticket.mark, each.label) for each in graded)


def _sentence_spans(context: Context, place: DenseSpan, documents: Documents) -> list[DenseSpan | None]:
    """Return the place of each sentence of a context; None for one that its document does not have."""
    lengths = [len(dense(each)) for each in context.sentences]
    if sum(lengths) != place.end - place.start:  # located by offsets, with text added around it
        return [documents.find(each, place.document) for each in context.sentences]
    spans: list[DenseSpan | None] = []
    at = place.start
    for length in lengths:
        spans.append(DenseSpan(place.document, at, at + length))
        at += length
    return spans


def _of_verdict(
    sample: str, spans: Sequence[DenseSpan | None], verdict: RelevanceVerdict, by: str
) -> Iterator[SpanLabel]:
    """Yield a label for each sentence: the grade if it is evidence, otherwise 0."""
    for at, span in enumerate(spans):
        if span is not None:
            yield SpanLabel(sample, span, float(verdict.grade) if at in verdict.evidence else 0.0, by)


def _of_person(
    sample: str, spans: Sequence[DenseSpan | None], verdict: RelevanceVerdict, grade: int
) -> Iterator[SpanLabel]:
    """Yield the grade that a person gave to the context, for the sentences that it is about.

    A person grades contexts as a whole. A grade of 0 is about every sentence, any other about the judge's evidence, or
    about every sentence if the judge found none.
    """
    chosen = verdict.evidence if grade else ()
    for at, span in enumerate(spans):
        if span is not None and (not chosen or at in chosen):
            yield SpanLabel(sample, span, float(grade), PEOPLE)


def _missing(pool: _Pool, labels: Sequence[SpanLabel]) -> Iterator[tuple[str, DenseSpan]]:
    """Yield the sentences of documents that a run retrieved, wholly or in part, where no one has judged them.

    Sentences are those of the document, so the same whatever the chunks.
    """
    known = by_sample(labels)

    @cache
    def sentences(document: str) -> list[DenseSpan]:
        whole = pool.documents[document]
        return [DenseSpan(document, *whole.dense_of(each)) for each in split(whole.text)]

    for sample, places in sorted(pool.retrieved.items()):
        found: set[DenseSpan] = set()
        for place in places:
            own = sentences(place.document)
            for each in islice(own, bisect_right(own, place.start, key=lambda each: each.end), None):
                if each.start >= place.end:
                    break
                read = DenseSpan(place.document, max(each.start, place.start), min(each.end, place.end))
                if read.start < read.end and each not in found and uncovered(read, known.get(sample, ())):
                    found.add(each)
        yield from ((sample, each) for each in sorted(found))


def _task_line(pool: _Pool, sample: str, span: DenseSpan) -> str:
    """Return a sentence to judge: a label without a grade, which is also a sample for a judge."""
    start, end = pool.documents[span.document].span_of(span.start, span.end)
    place = {"document": span.document, "start": start, "end": end}
    context = {"text": pool.documents.text_of(span), "metadata": place}
    record = {"id": _task_id(sample, *place.values()), _SAMPLE_KEY: sample}
    if sample in pool.questions:
        record["user_input"] = pool.questions[sample]
    return json.dumps({**record, **place, "grade": None, "retrieved_contexts": [context]}, ensure_ascii=False) + "\n"


def qrels_record(found: PooledQrels) -> dict[str, Any]:  # Any: JSON
    """Return the pooled labels as a JSON-able object."""
    return {
        "file": str(found.path),
        **picked(found, "spans samples documents by missing"),
        "contexts_in_no_document": found.lost,
    }


def qrels_page(found: PooledQrels, width: int) -> Page:
    """Return a page on the pooled labels: their number, their authors, and what has no label."""
    page = Page(width)
    judged = f"{count(found.spans, 'span')} of {count(found.samples, 'sample')} in {count(found.documents, 'document')}"
    sentences = count(found.missing, "retrieved sentence")
    if found.listed:
        page.line(f"{sentences} to judge, saved in {found.path}")
        page.text(f"Judged: {judged}.")
    else:
        page.line(f"{judged}, saved in {found.path}")
        for author, spans in found.by.items():
            page.text(f"by {author}: {spans:,}", indent=2)
        if found.missing:
            page.text(f"Not judged: {sentences}. List them with --missing.")
    if found.lost:
        page.text(f"In no document: {count(found.lost, 'retrieved context')}. Add the documents that they come from.")
    return page
