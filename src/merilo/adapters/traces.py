"""The traces of a file of spans as samples.

::

    file ──> records ──> spans (`spans`) ──> a temporary database ──> the spans of one trace ──> sample, or its hops

A collector writes the spans of one trace in any order and on any line. So the spans, reduced to what a sample needs,
go through a temporary database, which keeps memory constant for a file of any size.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Final

from merilo.adapters.base import Item
from merilo.adapters.spans import RETRIEVAL, Span, SpanFile, spans_in
from merilo.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from merilo.data.lines import RawRecord

    _MakeItems = Callable[[Sequence[Span], int], Iterable[Item]]

MAX_SPANS: Final = 10_000
"""Maximum spans of one trace; a longer trace is reported and left out."""
_MAX_TOKENS: Final = 1e15
_NOT_READ: Final = "not read"
_NO_TEXTS: Final = "texts of the contexts"


def items_of_traces(
    records: Iterable[RawRecord], file: SpanFile, items: _MakeItems, tools: Collection[str] | None = None
) -> Iterator[Item]:
    """Yield the unreadable records as problems, then the items of each trace in the order in which the traces begin.

    `items`: `whole_item` or `hop_items`. `tools`: the names of the tools that retrieve; None: those whose results are
    passages.
    """
    with closing(sqlite3.connect("")) as store:  # a temporary file that only this connection sees
        store.execute("CREATE TABLE spans (trace TEXT, line INTEGER, body TEXT)")
        store.execute("CREATE INDEX of_trace ON spans (trace)")
        for record in records:
            if record.value is None:
                yield Item(record.place, problems=record.problems)
                continue
            for span in spans_in(record.value, file, tools):
                if not _is_stored(store, span, record.place):
                    problem = Problem("a span in UTF-8 that is not nested too deeply", "another one", "trace")
                    yield Item(record.place, problems=(problem,))
        rows = store.execute(
            "SELECT min(rowid) OVER own AS began, min(line) OVER own, body FROM spans "
            "WINDOW own AS (PARTITION BY trace) ORDER BY began, rowid"
        )
        for (_, line), group in groupby(rows, key=lambda row: (row[0], row[1])):
            spans, left_out = _spans(line, (row[2] for row in group))
            yield from items(spans, line) if left_out is None else (left_out,)


def _is_stored(store: sqlite3.Connection, span: Span, place: int) -> bool:
    try:
        body = {name: value for name, value in asdict(span).items() if value not in (None, "", 0, {})}
        store.execute("INSERT INTO spans VALUES (?, ?, ?)", (span.trace, place, json.dumps(body)))
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _spans(line: int, bodies: Iterator[str]) -> tuple[list[Span], Item | None]:
    """Return the spans of a trace in the order in which they started; or why it is left out."""
    spans = [Span(**json.loads(body)) for body in islice(bodies, MAX_SPANS)]
    if more := sum(1 for _ in bodies):
        kinds = {**_kinds(spans), _NOT_READ: more}
        return [], Item(line, reason=f"it has more than {MAX_SPANS:,} spans", id=spans[0].trace, kinds=kinds)
    return sorted(spans, key=lambda span: (span.start, span.end)), None


def whole_item(spans: Sequence[Span], line: int) -> tuple[Item]:
    """Return the sample of one trace's spans, which are in the order in which they started; or why there is none."""
    ids = {span.id for span in spans}
    roots = [span for span in spans if span.parent not in ids]
    question, question_from = _question(spans, roots)
    hops = _hops(spans)
    documents = _once(each for hop in hops for each in hop.documents) if hops else None
    response, answered = _response(spans, roots)
    parts = {"question": question, "contexts": documents, "response": response}
    missing = [name for name, part in parts.items() if part is None]
    retrieved = _retrieved(documents)
    if "retrieved_context_ids" in retrieved:
        missing.append(_NO_TEXTS)
    base = Item(line, id=spans[0].trace, kinds=_kinds(spans), missing=tuple(missing))
    if question is None:
        return (replace(base, reason="no span states the question"),)
    if documents is None and response is None:
        return (replace(base, reason="no span states contexts or a response"),)
    record: dict[str, Any] = {"id": spans[0].trace, "user_input": question, **retrieved}
    if response is not None:
        record["response"] = response
    others = {span.name: span.output for span in spans if span.kind == "tool" and not span.documents and span.output}
    metadata = _metadata(spans, answered or roots[0] if roots else spans[0], question_from)
    record["metadata"] = {**metadata, **_amounts(spans, roots), **({"tools": others} if others else {})}
    scores = {name: value for span in spans for name, value in span.scores.items()}
    return (replace(base, record=record, scores=scores),)


@dataclass(slots=True)
class Hop:
    """One retrieval of a trace: the span that returned its documents, and the query."""

    span: Span
    query: str | None
    documents: list[dict[str, Any]]  # Any: JSON


def hop_items(spans: Sequence[Span], line: int) -> Iterator[Item]:
    """Yield a sample for each retrieval of one trace, with its own query and documents; or why it is none.

    The spans are in the order in which they started.
    """
    hops, trace = _hops(spans), spans[0].trace
    base = Item(line, id=trace, kinds=_kinds(spans))
    if not hops:
        yield replace(base, reason="no span states what a retrieval returned")
    for number, hop in enumerate(hops, start=1):
        item = replace(base, id=f"{trace}#hop{number}", kinds=base.kinds if number == 1 else {})
        if not hop.query:
            yield replace(item, reason="the retrieval does not state its query")
            continue
        retrieved = _retrieved(hop.documents)
        metadata = {**_metadata(spans, hop.span, ""), "hop": number, "of": len(hops)}
        record = {"id": item.id, "user_input": hop.query, **retrieved, "metadata": metadata}
        yield replace(item, record=record, missing=(_NO_TEXTS,) if "retrieved_context_ids" in retrieved else ())


def _hops(spans: Sequence[Span]) -> list[Hop]:
    """Return the retrievals of a trace that are not within another one.

    A reranker and the retrievals whose documents it was given are one hop. If it does not state what it was given, that
    is the retrieval before it, with others of the same query.
    """
    hops: list[Hop] = []
    for span in _outer_retrievals(spans):
        query = span.query
        if span.kind == "reranker":
            given = {_key(each) for each in span.reranked or ()}
            taken = [hop for hop in hops if given.issuperset(map(_key, hop.documents))]
            taken = taken or [hop for hop in hops if hop.query == hops[-1].query]
            query = query or next((hop.query for hop in taken), None)
            hops = [hop for hop in hops if hop not in taken]
        hops.append(Hop(span, query, span.documents or []))
    return hops


def _once(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:  # Any: JSON
    """Return each document once, at its first place."""
    found: dict[str, dict[str, Any]] = {}
    for each in documents:
        found.setdefault(_key(each), each)
    return [*found.values()]


def _retrieved(documents: Sequence[dict[str, Any]] | None) -> dict[str, Any]:  # Any: JSON
    """Return the field of a sample for these documents: contexts, or ids if no document has a text."""
    if documents is None:
        return {}
    contexts = [each for each in documents if "text" in each]
    if documents and not contexts:
        return {"retrieved_context_ids": [each["id"] for each in documents]}
    return {"retrieved_contexts": contexts}


def _kinds(spans: Sequence[Span]) -> dict[str, int]:
    return dict(sorted(Counter(span.kind for span in spans).items()))


def _amounts(spans: Sequence[Span], roots: Sequence[Span]) -> dict[str, float]:
    """Return the seconds from the first start to the last end of the roots, and the tokens of all LLMs.

    If no LLM states tokens, those of the outermost spans that do.
    """
    timed = [span for span in roots if span.start and span.end] or [span for span in spans if span.start and span.end]
    nanoseconds = max((span.end for span in timed), default=0) - min((span.start for span in timed), default=0)
    stating = [span for span in spans if span.input_tokens or span.output_tokens]
    stating = [span for span in stating if span.kind == "llm"] or stating
    inside = _inside(spans, stating)
    counted = [span for span in stating if span.id not in inside]
    found = {
        "latency_s": nanoseconds / 1e9,
        "input_tokens": int(min(_MAX_TOKENS, sum(span.input_tokens for span in counted))),
        "output_tokens": int(min(_MAX_TOKENS, sum(span.output_tokens for span in counted))),
    }
    return {name: value for name, value in found.items() if value > 0}


def _question(spans: Sequence[Span], roots: Sequence[Span]) -> tuple[str | None, str]:
    """Return the question and the kind of span that states it.

    The input of the root comes first, then that of the outermost agent or chain outside of tools, then the last message
    of the user to an LLM that calls tools. A retriever's query may be rewritten, and the last message to another LLM
    may contain the contexts, so both are read only if nothing else states the question.
    """
    inside = _inside(spans, [span for span in spans if span.kind in (*RETRIEVAL, "tool")])
    for span in (*roots, *(each for each in spans if each.kind in ("agent", "chain") and each.id not in inside)):
        if span.kind not in RETRIEVAL and span.kind != "llm" and (text := span.input or span.asked):
            return text, span.kind
    for span in spans:
        if span.kind == "llm" and span.called is not None and span.id not in inside and span.asked:
            return span.asked, span.kind
    for span in spans:
        if span.kind in RETRIEVAL and span.query:
            return span.query, span.kind
    for span in spans:
        if span.kind == "llm" and (text := span.asked or span.input):
            return text, span.kind
    return None, ""


def _response(spans: Sequence[Span], roots: Sequence[Span]) -> tuple[str | None, Span | None]:
    """Return the response and the span to which an evaluation of it belongs.

    The output of the root comes first, then that of the LLM that ended last outside of tools and retrievals, where an
    LLM rewrites queries or orders documents.
    """
    inside = _inside(spans, [span for span in spans if span.kind in (*RETRIEVAL, "tool")])
    generating = [span for span in spans if span.kind == "llm" and span.id not in inside]
    last = max(generating, key=lambda span: (span.end, span.start), default=None)
    for root in roots:
        if root.kind not in RETRIEVAL and (text := root.output or root.replied):
            return (root.replied or text) if root.kind == "llm" else text, last or root
    if last is not None and (text := last.replied or last.output):
        return text, last
    outer = [span for span in spans if span.kind in ("agent", "chain") and span.output and span.id not in inside]
    return (outer[-1].output, outer[-1]) if outer else (None, last)


def _inside(spans: Sequence[Span], outer: Iterable[Span]) -> set[str]:
    """Return the ids of the spans below others."""
    below: dict[str | None, list[Span]] = {}
    for span in spans:
        below.setdefault(span.parent, []).append(span)
    found: set[str] = set()
    waiting = [*outer]
    while waiting:
        for child in below.get(waiting.pop().id, ()):
            if child.id not in found:
                found.add(child.id)
                waiting.append(child)
    return found


def _outer_retrievals(spans: Sequence[Span]) -> list[Span]:
    """Return the retrievers and rerankers that state documents and are not within another one that does.

    So are the tools that returned passages, unless a retriever within them states its documents, which have ids and
    scores. If there is none, what tools returned is taken from the messages of the span that ended last.
    """
    other = _inside(spans, [span for span in spans if span.is_other])
    stating = [span for span in spans if span.documents is not None and span.id not in other]
    parents = {span.id: span.parent for span in spans}
    above: set[str | None] = set()
    for span in stating:
        place = span.parent if span.kind in RETRIEVAL else None
        while place is not None and place not in above:
            above.add(place)
            place = parents.get(place)
    inside = _inside(spans, [span for span in stating if span.kind in RETRIEVAL])
    found = [each for each in stating if each.id not in inside and (each.kind in RETRIEVAL or each.id not in above)]
    with_calls = [] if found else [span for span in spans if span.called]
    last = max(with_calls, key=lambda span: (len(span.called or ()), span.end), default=None)
    return found if last is None else [replace(last, query=query, documents=each) for query, each in last.called or ()]


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
