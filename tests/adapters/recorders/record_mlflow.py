"""Record a trace with MLflow's own serialiser. Argument: a folder. Needs mlflow-skinny."""

import json
import sys
from pathlib import Path

from mlflow.entities import Feedback, Trace

DONE = "The tower was completed in 1889."
QUESTION = "When was the tower completed?"
FIRST = 1_795_600_000_000_000_000


def span(at: int, parent: str | None, kind: str, name: str, given: object, made: object) -> dict[str, object]:
    """Return a span as MLflow's tracking server stores it."""
    return {
        "trace_id": "M1DEdecgPWTZx5ZRFS6DAg==",
        "span_id": ["ip0zaxkUxaE=", "JJA5uNedhCc=", "ikPPiKaLW6Q="][at],
        "parent_span_id": parent,
        "name": name,
        "start_time_unix_nano": FIRST + at * 1_000_000,
        "end_time_unix_nano": FIRST + at * 1_000_000 + 500_000,
        "events": [],
        "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": {
            "mlflow.traceRequestId": json.dumps("tr-3350c475e7203d64d9c79651152e8302"),
            "mlflow.spanType": json.dumps(kind),
            "mlflow.spanInputs": json.dumps(given),
            "mlflow.spanOutputs": json.dumps(made),
        },
    }


def main() -> None:
    """Write `mlflow.json`: a trace that MLflow read and wrote again, with one assessment."""
    root = "ip0zaxkUxaE="
    found = [{"page_content": DONE, "metadata": {"doc_uri": "guide"}, "id": "d2"}]
    messages = {"messages": [{"role": "user", "content": QUESTION}]}
    reply = {"choices": [{"message": {"role": "assistant", "content": "In 1889."}}]}
    spans = [
        span(0, None, "CHAIN", "ask", {"question": QUESTION}, "In 1889."),
        span(1, root, "RETRIEVER", "retrieve", {"query": "tower"}, found),
        span(2, root, "CHAT_MODEL", "chat", messages, reply),
    ]
    info = {
        "trace_id": "tr-3350c475e7203d64d9c79651152e8302",
        "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "1"}},
        "request_time": "2026-11-25T09:46:40Z",
        "state": "OK",
    }
    trace = Trace.from_dict({"info": info, "data": {"spans": spans}})
    trace.info.assessments.append(Feedback(name="relevance", value=1.0))
    Path(sys.argv[1], "mlflow.json").write_text(trace.to_json(pretty=True) + "\n", encoding="utf-8")


main()
