"""OTLP JSON Lines with one `gen_ai.evaluation.result` event per score, linked to the spans that were evaluated."""

from __future__ import annotations

import json
import re
from typing import IO, TYPE_CHECKING, Any, Final

from merilo.adapters.conventions import conventions
from merilo.errors import UsageError
from merilo.version import version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.commands.export.formats import Written
    from merilo.data.sample import Sample
    from merilo.results.sample_table import SampleTable
    from merilo.runs.outcomes import OutcomeRecord

_TRACE_ID: Final = re.compile(r"[0-9a-f]{32}")
_SPAN_ID: Final = re.compile(r"[0-9a-f]{16}")


def write_evaluations(table: SampleTable, file: IO[bytes], written: Written) -> None:
    """Write one line per sample: a request of OTLP logs whose records carry trace id and span id.

    Raises UsageError if a sample does not come from a trace with OpenTelemetry's ids.
    """
    metrics = tuple(table.run.manifest.metrics)
    scope = {"name": "merilo", "version": version()}
    for result in table.run.read_samples():
        link = _link(result.sample)
        records = [_event(metric, result.records.get(metric), link) for metric in metrics]
        logs = {"scope": scope, "logRecords": [each for each in records if each is not None]}
        line: dict[str, Any] = {"resourceLogs": [{"resource": {}, "scopeLogs": [logs]}]}
        file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace"))
        file.write(b"\n")
        written.samples += 1
        written.events += len(logs["logRecords"])


def _link(sample: Sample) -> Mapping[str, str]:
    """Return the ids of the trace and span from which a sample was read."""
    metadata = sample.metadata
    found = {name: each for name in metadata if isinstance(each := metadata[name], str)}
    if not _TRACE_ID.fullmatch(found.get("trace_id", "")) or not _SPAN_ID.fullmatch(found.get("span_id", "")):
        raise UsageError(
            f"Sample {sample.id!r} has no OpenTelemetry trace id and span id in its metadata, so its scores cannot be "
            "linked to its spans. Evaluate the trace file itself (merilo run traces.jsonl), or export another "
            "format."
        )
    return found


def _event(metric: str, record: OutcomeRecord | None, link: Mapping[str, str]) -> dict[str, Any] | None:  # Any: JSON
    if record is None:
        return None
    names = conventions().evaluation
    attributes: dict[str, dict[str, object]] = {names["name"]: {"stringValue": metric}}
    if record["outcome"] == "score":
        attributes[names["value"]] = {"doubleValue": record.get("value")}
    else:
        attributes[names["label"]] = {"stringValue": record["outcome"]}
    if reason := record.get("reason") or record.get("error", {}).get("message"):
        attributes[names["explanation"]] = {"stringValue": reason}
    if record["outcome"] == "failed":
        attributes[names["error"]] = {"stringValue": record.get("error", {}).get("kind", "failed")}
    if response := link.get("response_id"):
        attributes[names["response_id"]] = {"stringValue": response}
    time = link.get("span_end_unix_nano", "0")  # not the time of the run: the same run gives the same bytes
    return {
        "timeUnixNano": time,
        "observedTimeUnixNano": time,
        "severityNumber": 9,
        "eventName": names["event"],
        "traceId": link["trace_id"],
        "spanId": link["span_id"],
        "attributes": [{"key": key, "value": value} for key, value in attributes.items()],
    }
