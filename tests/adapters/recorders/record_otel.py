"""Record OTLP JSON with OpenTelemetry's own file exporter: OpenInference and GenAI attributes. Argument: a folder.

Needs opentelemetry-sdk and opentelemetry-exporter-otlp-json-file.
"""

import json
import sys
from pathlib import Path

from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Span, Tracer

BUILT = "The tower was built by Eiffel's company."
DONE = "The tower was completed in 1889."
ROME = "Rome has seven hills."
STUDIED = "Gustave Eiffel studied at the Ecole Centrale in Paris, where he specialised in chemistry."
QUESTION = "When was the tower completed?"


class Counted(IdGenerator):
    """Ids that are the same each time."""

    def __init__(self) -> None:
        self.traces = self.spans = 0

    def generate_trace_id(self) -> int:
        self.traces += 1
        return 0x0AF7651916CD43DD8448EB211C800000 + self.traces

    def generate_span_id(self) -> int:
        self.spans += 1
        return 0xB7AD6B7169200000 + self.spans


class Clock:
    """Times that are the same each time: a millisecond for each span that starts."""

    now = 1_795_600_000_000_000_000


def documents(prefix: str, *found: tuple[str, str, float]) -> dict[str, object]:
    """Return the attributes of documents as OpenInference flattens them."""
    values: dict[str, object] = {}
    for at, (name, text, score) in enumerate(found):
        start = f"{prefix}.{at}.document"
        values |= {f"{start}.id": name, f"{start}.content": text, f"{start}.score": score}
    return values


class Recorder:
    """Spans with fixed times, nested by `with`."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer

    def span(self, name: str, attributes: dict[str, object]) -> "_Timed":
        """Return a context manager of one span."""
        return _Timed(self.tracer, name, attributes)


class _Timed:
    def __init__(self, tracer: Tracer, name: str, attributes: dict[str, object]) -> None:
        Clock.now += 1_000_000
        self.manager = tracer.start_as_current_span(
            name, attributes=attributes, start_time=Clock.now, end_on_exit=False
        )

    def __enter__(self) -> Span:
        self.current = self.manager.__enter__()
        return self.current

    def __exit__(self, *error: object) -> None:
        self.manager.__exit__(*error)
        Clock.now += 1_000_000
        self.current.end(Clock.now)


def openinference(spans: Recorder) -> None:
    """Record a chain with two retrievals and a reranker, a bare LLM call, and an embedding that is not a sample."""
    kind = "openinference.span.kind"
    with spans.span("ask", {kind: "CHAIN", "input.value": QUESTION, "session.id": "visit-1"}) as root:
        first = documents("retrieval.documents", ("d1", ROME, 0.4), ("d2", DONE, 0.3))
        with spans.span("retrieve", {kind: "RETRIEVER", "input.value": "tower", **first}):
            pass
        given = documents("reranker.input_documents", ("d1", ROME, 0.4), ("d2", DONE, 0.3))
        best = documents("reranker.output_documents", ("d2", DONE, 0.9))
        with spans.span("rerank", {kind: "RERANKER", "reranker.query": QUESTION, **given, **best}):
            pass
        again = documents("retrieval.documents", ("d2", DONE, 0.5), ("d3", BUILT, 0.2))
        with spans.span("retrieve again", {kind: "RETRIEVER", "input.value": "who", **again}):
            pass
        message = "llm.output_messages.0.message"
        with spans.span("chat", {kind: "LLM", f"{message}.role": "assistant", f"{message}.content": "In 1889."}):
            pass
        root.set_attribute("output.value", json.dumps({"answer": "In 1889."}))
        root.set_attribute("output.mime_type", "application/json")
    asked, replied = "llm.input_messages.0.message", "llm.output_messages.0.message"
    bare = {f"{asked}.role": "user", f"{asked}.content": "Who built it?"}
    with spans.span("chat", {kind: "LLM", **bare, f"{replied}.role": "assistant", f"{replied}.content": "Eiffel."}):
        pass
    with spans.span("index", {kind: "EMBEDDING", "embedding.model_name": "small"}):
        pass


def gen_ai(spans: Recorder) -> None:
    """Record an agent with attributes of the GenAI conventions, messages in events, and a retrieval of ids only."""
    operation = "gen_ai.operation.name"
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}])
    replied = json.dumps(
        [{"role": "assistant", "parts": [{"type": "text", "content": "In 1889."}], "finish_reason": "stop"}]
    )
    agent = {operation: "invoke_agent", "gen_ai.input.messages": asked, "gen_ai.conversation.id": "visit-2"}
    with spans.span("invoke_agent guide", agent):
        found = json.dumps([{"id": "d2", "score": 0.9, "content": DONE}, {"id": "d1", "score": 0.4, "content": ROME}])
        retrieval = {
            operation: "retrieval",
            "gen_ai.retrieval.query.text": "tower",
            "gen_ai.retrieval.documents": found,
        }
        rewrite = {operation: "chat", "gen_ai.output.messages": json.dumps("rewritten")}
        with spans.span("retrieval guide", retrieval), spans.span("chat small", rewrite):
            pass
        chat = {operation: "chat", "gen_ai.response.id": "chatcmpl-7", "gen_ai.output.messages": replied}
        with spans.span("chat large", chat):
            pass
    with spans.span("chat large", {operation: "chat"}) as current:
        current.add_event("gen_ai.user.message", {"content": "Who built it?"}, timestamp=Clock.now)
        current.add_event("gen_ai.choice", {"message": json.dumps({"content": "Eiffel."})}, timestamp=Clock.now)
    with spans.span("invoke_agent guide", {operation: "invoke_agent", "gen_ai.input.messages": asked}):
        ids = json.dumps([{"id": "d2", "score": 0.9}, {"id": "d1", "score": 0.4}])
        with spans.span("retrieval guide", {operation: "retrieval", "gen_ai.retrieval.documents": ids}):
            pass


def two_hops(spans: Recorder) -> None:
    """Record an agent that looks up a name and then asks about it, and an agent that retrieves once."""
    kind, found = "openinference.span.kind", "retrieval.documents"
    hops = (
        ("Which company built the tower?", ("d3", BUILT, 0.8), ("d1", ROME, 0.1)),
        ("Where did Gustave Eiffel study?", ("d4", STUDIED, 0.7), ("d3", BUILT, 0.5)),
    )
    asked = "At which school was the owner of the company that built the tower a student?"
    with spans.span("ask", {kind: "AGENT", "input.value": asked, "output.value": "At the Ecole Centrale."}):
        for query, *each in hops:
            with spans.span("retrieve", {kind: "RETRIEVER", "input.value": query, **documents(found, *each)}):
                pass
    with spans.span("ask", {kind: "AGENT", "input.value": QUESTION, "output.value": "In 1889."}):
        once = documents(found, ("d2", DONE, 0.9))
        with spans.span("retrieve", {kind: "RETRIEVER", "input.value": QUESTION, **once}):
            pass


def main() -> None:
    """Write `openinference.otlp.jsonl`, `gen_ai.otlp.jsonl` and `two_hops.otlp.jsonl`, one line per span."""
    folder = Path(sys.argv[1])
    for make in (openinference, gen_ai, two_hops):
        path = folder / f"{make.__name__}.otlp.jsonl"
        path.unlink(missing_ok=True)
        provider = TracerProvider(id_generator=Counted(), resource=Resource({"service.name": "guide"}))
        provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(path)))
        make(Recorder(provider.get_tracer("guide", "1.0")))
        provider.shutdown()


main()
