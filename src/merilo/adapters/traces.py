"""The traces of a file of spans as samples.

::

    file ──> records ──> spans (`spans`) ──> a temporary database ──> the spans of one trace ──> sample

A collector writes the spans of one trace in any order and on any line. So the spans, reduced to what a sample needs,
go through a temporary database, which keeps memory constant for a file of any size.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import asdict, replace
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Final

from merilo.adapters.base import Item
from merilo.adapters.spans import RETRIEVAL, Span, spans_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from merilo.adapters.contents import SpanFile
    from merilo.data.lines import RawRecord

MAX_SPANS: Final = 10_000
"""Maximum spans of one trace; a longer trace is reported and left out, and its other spans are only counted."""
_NOT_READ: Final = "not read"


def items_of_traces(records: Iterable[RawRecord], file: SpanFile) -> Iterator[Item]:
    """Yield the unreadable records as problems, then each trace in the order in which the traces begin in the file."""
    with closing(sqlite3.connect("")) as store:  # a temporary file that only this connection sees
        store.execute("CREATE TABLE spans (trace TEXT, line INTEGER, body TEXT)")
        recent: Counter[str] = Counter()
        full: dict[str, int] = {}
        for record in records:
            if record.value is None:
                yield Item(record.place, problems=record.problems)
                continue
            for span in spans_in(record.value, file, full):
                body = {name: value for name, value in asdict(span).items() if value not in (None, "", 0, {})}
                store.execute("INSERT INTO spans VALUES (?, ?, ?)", (span.trace, record.place, json.dumps(body)))
                if len(recent) > MAX_SPANS:  # traces end: only recent ones get more spans
                    recent.clear()
                recent[span.trace] += 1
                if recent[span.trace] >= MAX_SPANS:
                    full.setdefault(span.trace, 0)
        rows = store.execute(
            "SELECT min(rowid) OVER own AS began, min(line) OVER own, body FROM spans "
            "WINDOW own AS (PARTITION BY trace) ORDER BY began, rowid"
        )
        for (_, line), group in groupby(rows, key=lambda row: (row[0], row[1])):
            yield _item(line, (row[2] for row in group), full)


def _item(line: int, bodies: Iterator[str], full: Mapping[str, int]) -> Item:
    spans = [Span(**json.loads(body)) for body in islice(bodies, MAX_SPANS)]
    if more := sum(1 for _ in bodies) + full.get(spans[0].trace, 0):
        kinds = {**_kinds(spans), _NOT_READ: more}
        return Item(line, reason=f"it has more than {MAX_SPANS:,} spans", id=spans[0].trace, kinds=kinds)
    spans.sort(key=lambda span: (span.start, span.end))
    return sample_item(spans, line)


def sample_item(spans: Sequence[Span], line: int) -> Item:
    """Return the sample of one trace's spans, which are in the order in which they started; or why there is none."""
    ids = {span.id for span in spans}
    roots = [span for span in spans if span.parent not in ids]
    question, question_from = _question(spans, roots)
    documents = _documents(spans)
    contexts = [each for each in documents or () if "text" in each]
    response, answered = _response(spans, roots)
    parts = {"question": question, "contexts": documents, "response": response}
    missing = [name for name, part in parts.items() if part is None]
    if documents and not contexts:
        missing.append("texts of the contexts")
    base = Item(line, id=spans[0].trace, kinds=_kinds(spans), missing=tuple(missing))
    reason = _why_not(question, documents, response)
    if reason:
        return replace(base, reason=reason)
    record: dict[str, Any] = {"id": spans[0].trace, "user_input": question}
    if documents is not None and (contexts or not documents):
        record["retrieved_contexts"] = contexts
    elif documents:
        record["retrieved_context_ids"] = [each["id"] for each in documents]
    if response is not None:
        record["response"] = response
    record["metadata"] = _metadata(spans, answered or roots[0] if roots else spans[0], question_from)
    scores = {name: value for span in spans for name, value in span.scores.items()}
    return replace(base, record=record, scores=scores)


def _why_not(question: str | None, documents: object, response: str | None) -> str:
    if question is None:
        return "no span states the question"
    if documents is None and response is None:
        return "no span states contexts or a response"
    return ""


def _kinds(spans: Sequence[Span]) -> dict[str, int]:
    return dict(sorted(Counter(span.kind for span in spans).items()))


def _question(spans: Sequence[Span], roots: Sequence[Span]) -> tuple[str | None, str]:
    """Return the question and the kind of span that states it.

    The input of the root comes first, then that of the outermost agent or chain. A retriever's query may be rewritten
    and an LLM's last message may contain the contexts, so both are read only if nothing else states the question.
    """
    for span in (*roots, *(each for each in spans if each.kind in ("agent", "chain"))):
        if span.kind not in RETRIEVAL and span.kind != "llm" and (text := span.input or span.asked):
            return text, span.kind
    for span in spans:
        if span.kind in RETRIEVAL and span.query:
            return span.query, span.kind
    for span in spans:
        if span.kind == "llm" and (text := span.asked or span.input):
            return text, span.kind
    return None, ""


def _response(spans: Sequence[Span], roots: Sequence[Span]) -> tuple[str | None, Span | None]:
    """Return the response and the span to which an evaluation of it belongs.

    The output of the root comes first, then that of the LLM that ended last outside of a retrieval, where an LLM
    rewrites queries or orders documents.
    """
    inside = _inside_retrieval(spans)
    generating = [span for span in spans if span.kind == "llm" and span.id not in inside]
    last = max(generating, key=lambda span: (span.end, span.start), default=None)
    for root in roots:
        if root.kind not in RETRIEVAL and (text := root.output or root.replied):
            return (root.replied or text) if root.kind == "llm" else text, last or root
    if last is not None and (text := last.replied or last.output):
        return text, last
    outer = [span for span in spans if span.kind in ("agent", "chain") and span.output]
    return (outer[-1].output, outer[-1]) if outer else (None, last)


def _inside_retrieval(spans: Sequence[Span]) -> set[str]:
    """Return the ids of the spans below a retriever or reranker."""
    below: dict[str | None, list[Span]] = {}
    for span in spans:
        below.setdefault(span.parent, []).append(span)
    found: set[str] = set()
    waiting = [span for span in spans if span.kind in RETRIEVAL]
    while waiting:
        for child in below.get(waiting.pop().id, ()):
            if child.id not in found:
                found.add(child.id)
                waiting.append(child)
    return found


def _documents(spans: Sequence[Span]) -> list[dict[str, Any]] | None:  # Any: JSON
    """Return the documents of all retrievals of a trace in their order, each once; None if no span states any.

    A reranker's documents replace those that it was given. A retriever's documents replace those of the retrievers and
    rerankers within it.
    """
    inside = _inside_retrieval([span for span in spans if span.documents is not None])
    found: dict[str, dict[str, Any]] | None = None
    for span in spans:
        if span.documents is None or span.kind not in RETRIEVAL or span.id in inside:
            continue
        found = {} if found is None else found
        if span.kind == "reranker":
            for key in [_key(each) for each in span.reranked] if span.reranked else [*found]:
                found.pop(key, None)
        for each in span.documents:
            found.setdefault(_key(each), each)
    return None if found is None else [*found.values()]


def _key(document: dict[str, Any]) -> str:  # Any: JSON
    return str(document.get("text") or f"\0{document.get('id')}")


def _metadata(spans: Sequence[Span], answered: Span, question_from: str) -> dict[str, Any]:  # Any: JSON
    """Return what links a sample to its trace: results are written back to this span."""
    session = next((span.session for span in spans if span.session), None)
    found = {
        "trace_id": answered.trace,
        "span_id": answered.id,
        "span_end_unix_nano": str(answered.end) if answered.end else None,
        "response_id": answered.response_id,
        "session": session,
        "question_from": question_from if question_from in ("llm", *RETRIEVAL) else None,
    }
    return {name: value for name, value in found.items() if value is not None}
