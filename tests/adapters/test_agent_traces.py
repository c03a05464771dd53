"""Exports of one run of an agent, made by the real packages, read as the agent's own result is."""

import json
from pathlib import Path
from typing import Any

import pytest
from agent_objects import AGENTS, QUESTION

from merilo.data.load import load
from merilo.data.sample import Sample

pytestmark = pytest.mark.extras


def otlp(spans: Any) -> list[dict[str, Any]]:
    """Return spans as a collector writes them."""
    found = [
        {
            **_ids(span),
            "name": span.name,
            "startTimeUnixNano": str(span.start_time),
            "endTimeUnixNano": str(span.end_time),
            "attributes": [{"key": key, "value": {"stringValue": str(each)}} for key, each in span.attributes.items()],
        }
        for span in spans
    ]
    return [{"resourceSpans": [{"scopeSpans": [{"spans": found}]}]}]


def _ids(span: Any) -> dict[str, str]:
    parent = f"{span.parent.span_id:016x}" if span.parent else ""
    return {
        "traceId": f"{span.context.trace_id:032x}",
        "spanId": f"{span.context.span_id:016x}",
        "parentSpanId": parent,
    }


def phoenix(spans: Any) -> list[dict[str, Any]]:
    """Return spans as Phoenix exports them."""
    return [
        {
            "context": {"trace_id": _ids(span)["traceId"], "span_id": _ids(span)["spanId"]},
            "parent_id": _ids(span)["parentSpanId"] or None,
            "span_kind": span.attributes.get("openinference.span.kind"),
            "start_time": span.start_time,
            "end_time": span.end_time,
            "attributes": dict(span.attributes),
        }
        for span in spans
    ]


def langfuse(spans: Any) -> list[dict[str, Any]]:
    """Return spans as the interface of Langfuse returns them."""
    return [
        {
            "id": _ids(span)["spanId"],
            "traceId": _ids(span)["traceId"],
            "parentObservationId": _ids(span)["parentSpanId"] or None,
            "type": span.attributes["langfuse.observation.type"].upper(),
            "startTime": span.start_time,
            "endTime": span.end_time,
            "input": span.attributes.get("langfuse.observation.input"),
            "output": span.attributes.get("langfuse.observation.output"),
        }
        for span in spans
    ]


def langsmith(run: Any) -> dict[str, Any]:
    """Return a run with those within it, as LangSmith stores them."""
    from langsmith._internal._serde import dumps_json

    return {
        "id": str(run.id),
        "trace_id": str(run.trace_id),
        "parent_run_id": str(run.parent_run_id) if run.parent_run_id else None,
        "run_type": run.run_type,
        "dotted_order": run.dotted_order,
        "start_time": run.start_time.isoformat(),
        "end_time": run.end_time.isoformat(),
        "inputs": json.loads(dumps_json(run.inputs)),
        "outputs": json.loads(dumps_json(run.outputs)),
        "child_runs": [langsmith(each) for each in run.child_runs],
    }


def read(path: Path, records: list[dict[str, Any]]) -> list[Any]:
    """Return question, response and contexts of a file, and the query and contexts of each hop."""
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    (whole,) = load(path)
    assert isinstance(whole, Sample)
    hops = [hop for hop in load(Path(f"{path}#hops")) if isinstance(hop, Sample)]
    return [whole.user_input, whole.response, whole.contexts, [(hop.user_input, hop.contexts) for hop in hops]]


def spans_of() -> tuple[Any, Any]:
    """Return a provider of tracers, and what it exports to."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


@pytest.mark.filterwarnings("ignore")
def test_all_exports_of_a_run_are_its_result(tmp_path: Path) -> None:
    """OpenInference, Phoenix, LangSmith and Langfuse give what the state of a LangGraph agent gives."""
    for name in ("langgraph", "openinference.instrumentation.langchain", "langfuse"):
        pytest.importorskip(name, reason=f"{name} is not installed here")
    from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
    from langfuse import Langfuse
    from langfuse.langchain import CallbackHandler
    from openinference.instrumentation.langchain import LangChainInstrumentor

    made = AGENTS["langgraph"]()
    (result,) = load([made["state"]])
    assert isinstance(result, Sample)
    wanted = [QUESTION, result.response, result.contexts, [("tower", result.contexts)]]

    collector = RunCollectorCallbackHandler()
    provider, exporter = spans_of()
    LangChainInstrumentor().instrument(tracer_provider=provider)
    asked = {"messages": [("user", QUESTION)]}
    made["agent"].invoke(asked, config={"callbacks": [collector]})
    LangChainInstrumentor().uninstrument()
    spans = exporter.get_finished_spans()
    assert read(tmp_path / "openinference.jsonl", otlp(spans)) == wanted
    assert read(tmp_path / "phoenix.jsonl", phoenix(spans)) == wanted
    (root,) = (run for run in collector.traced_runs if run.parent_run_id is None)
    assert read(tmp_path / "langsmith.jsonl", [langsmith(root)]) == wanted

    provider, exporter = spans_of()
    Langfuse(public_key="pk", secret_key="sk", host="http://127.0.0.1:9", tracer_provider=provider)  # noqa: S106
    AGENTS["langgraph"]()["agent"].invoke(asked, config={"callbacks": [CallbackHandler()]})
    spans = exporter.get_finished_spans()
    assert read(tmp_path / "langfuse.otlp.jsonl", otlp(spans)) == wanted
    assert read(tmp_path / "langfuse.jsonl", langfuse(spans)) == wanted


@pytest.mark.filterwarnings("ignore")
def test_genai_traces_are_the_result(tmp_path: Path) -> None:
    """The newest GenAI conventions, as Pydantic AI writes them, give what its result gives."""
    pytest.importorskip("pydantic_ai", reason="pydantic_ai is not installed here")
    pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed here")
    from pydantic_ai.models.instrumented import InstrumentationSettings

    made = AGENTS["pydantic_ai"]()
    (result,) = load([made["result"]])
    assert isinstance(result, Sample)
    provider, exporter = spans_of()
    made["agent"].instrument = InstrumentationSettings(tracer_provider=provider)
    made["agent"].run_sync(QUESTION)
    found = read(tmp_path / "genai.jsonl", otlp(exporter.get_finished_spans()))
    assert found == [QUESTION, result.response, result.contexts, [("tower", result.contexts)]]
