"""Record spans that a Phoenix server received and its own client exported. Arguments: a folder, the server's address.

Needs arize-phoenix, a server (`phoenix serve`) and pandas.
"""

import json
import sys
import time
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from phoenix.client import Client

DONE = "The tower was completed in 1889."
QUESTION = "When was the tower completed?"
KIND = "openinference.span.kind"


def send(server: str) -> None:
    """Send one trace."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{server}/v1/traces")))
    tracer = provider.get_tracer("guide")
    document = "retrieval.documents.0.document"
    found = {f"{document}.content": DONE, f"{document}.id": "d2", f"{document}.score": 0.9}
    found[f"{document}.metadata"] = json.dumps({"page": 3})
    message = "llm.output_messages.0.message"
    reply = {f"{message}.role": "assistant", f"{message}.content": "In 1889."}
    root = {KIND: "CHAIN", "input.value": QUESTION, "output.value": "In 1889."}
    with tracer.start_as_current_span("ask", attributes=root):
        with tracer.start_as_current_span("retrieve", attributes={KIND: "RETRIEVER", "input.value": "tower", **found}):
            pass
        with tracer.start_as_current_span("chat", attributes={KIND: "LLM", **reply}):
            pass
    provider.shutdown()


def main() -> None:
    """Write `phoenix.jsonl`, one span per line, and `phoenix_frame.jsonl`, the rows of the data frame."""
    folder, server = Path(sys.argv[1]), sys.argv[2]
    send(server)
    time.sleep(3)
    client = Client(base_url=server)
    spans = client.spans.get_spans(project_identifier="default")
    (folder / "phoenix.jsonl").write_text("".join(json.dumps(each) + "\n" for each in spans), encoding="utf-8")
    frame = client.spans.get_spans_dataframe(project_identifier="default")
    frame.to_json(folder / "phoenix_frame.jsonl", orient="records", lines=True, date_format="iso")


main()
