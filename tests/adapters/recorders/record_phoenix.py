"""Record spans with the types of Phoenix's own client. Argument: a folder. Needs arize-phoenix-client."""

import json
import sys
from pathlib import Path

from phoenix.client.__generated__ import v1

DONE = "The tower was completed in 1889."
QUESTION = "When was the tower completed?"


def span(id: str, parent: str | None, kind: str, second: int, attributes: dict[str, object]) -> v1.Span:
    """Return a span as Phoenix's interface returns it."""
    made = v1.Span(
        name=kind.lower(),
        context=v1.SpanContext(trace_id="4bf92f3577b34da6a3ce929d0e0e4736", span_id=id),
        span_kind=kind,
        start_time=f"2026-11-20T10:00:0{second}.000000+00:00",
        end_time=f"2026-11-20T10:00:0{second + 1}.000000+00:00",
        status_code="OK",
        attributes=attributes,
        events=[],
    )
    if parent is not None:
        made["parent_id"] = parent
    return made


def main() -> None:
    """Write `phoenix.jsonl`, one span per line."""
    root = "00f067aa0ba902b7"
    spans = [
        span(root, None, "CHAIN", 0, {"input.value": QUESTION, "output.value": "In 1889."}),
        span(
            "00f067aa0ba902b8",
            root,
            "RETRIEVER",
            1,
            {
                "input.value": "tower",
                "retrieval.documents.0.document.content": DONE,
                "retrieval.documents.0.document.score": 0.9,
            },
        ),
        span("00f067aa0ba902b9", root, "LLM", 2, {"output.value": "In 1889."}),
    ]
    text = "".join(json.dumps(each) + "\n" for each in spans)
    Path(sys.argv[1], "phoenix.jsonl").write_text(text, encoding="utf-8")


main()
