"""Exports of one run of an agent, made by the real packages, read as the agent's own result is.

What only a hosted server writes is made here of the same spans: spans of Phoenix and observations of Langfuse.
"""

import asyncio
import gc
import gzip
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from agent_objects import AGENTS, QUESTION, TOKENS

import merilo
from merilo.commands.evaluate.pipeline import PipelineCaller
from merilo.data.load import load
from merilo.data.sample import Sample

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore")]
OPENINFERENCE = "openinference.instrumentation"
INSTRUMENTORS = {
    "langgraph": (f"{OPENINFERENCE}.langchain:LangChainInstrumentor",),
    "llama_index.core": (f"{OPENINFERENCE}.llama_index:LlamaIndexInstrumentor",),
    "agents": (
        f"{OPENINFERENCE}.openai_agents:OpenAIAgentsInstrumentor",
        "opentelemetry.instrumentation.openai_agents:OpenAIAgentsInstrumentor",
    ),
    "smolagents": (f"{OPENINFERENCE}.smolagents:SmolagentsInstrumentor",),
    "haystack": (f"{OPENINFERENCE}.haystack:HaystackInstrumentor",),
    "pydantic_ai": ("pydantic_ai.models.instrumented:", f"{OPENINFERENCE}.pydantic_ai:OpenInferenceSpanProcessor"),
    "crewai": (f"{OPENINFERENCE}.crewai:CrewAIInstrumentor",),
}
"""How a framework writes spans: an instrumentor, or a processor that rewrites the spans of Pydantic AI."""
NO_TOKENS = {"crewai"}
"""Frameworks whose spans are those of agents and tools only."""
UNANSWERED = {("opentelemetry.instrumentation.openai_agents:OpenAIAgentsInstrumentor", "agent of chat")}
"""Instrumentors that write neither what a model replied nor its tokens, with the agents of which that is true."""
Read = tuple[str | None, str | None, list[Any], list[tuple[str | None, list[Any]]]]


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in a folder of its own, and collect what the packages leave open while their warnings are ignored."""
    monkeypatch.chdir(tmp_path)
    yield
    gc.collect()


class Recorder(BaseHTTPRequestHandler):
    """The server of a tracing system: it keeps what is sent, and answers with an empty object."""

    sent: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_packed = self.headers["Content-Encoding"] == "gzip"
        self.sent.append((self.path, gzip.decompress(body) if is_packed else body))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_PATCH = do_POST  # noqa: N815  of http.server

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def recording() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """Start a server; give its address and what it keeps."""
    sent: list[tuple[str, bytes]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Recorder,), {"sent": sent}))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", sent
    server.shutdown()
    server.server_close()


def provider_of(path: Path) -> tuple[Any, Any]:
    """Return a provider of tracers that writes OTLP JSON to a file, and the exporter that keeps its spans."""
    from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider, kept = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(str(path))))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    return provider, kept


def traced(instrumentor: str, agent: Any, path: Path) -> tuple[Any, Any]:
    """Ask an agent whose spans are written to a file; return its result and the spans."""
    module, _, name = instrumentor.partition(":")
    if name and not name.endswith("Processor"):
        provider, kept = provider_of(path)
        instrumented = getattr(import_module(module), name)()
        instrumented.instrument(tracer_provider=provider)
        result = asked(agent)
        instrumented.uninstrument()
        return result, kept.get_finished_spans()
    from opentelemetry.sdk.trace import TracerProvider
    from pydantic_ai.models.instrumented import InstrumentationSettings

    provider, kept = provider_of(path)
    if name:
        whole = TracerProvider()
        whole.add_span_processor(getattr(import_module(module), name)())
        for each in provider._active_span_processor._span_processors:
            whole.add_span_processor(each)
        provider = whole
    agent.instrument = InstrumentationSettings(tracer_provider=provider)
    return asked(agent), kept.get_finished_spans()


def asked(agent: Any) -> Any:
    """Return what an agent returns for the question."""

    async def ask() -> Any:
        return await PipelineCaller(agent, "question" if hasattr(agent, "kickoff") else None).ask(QUESTION)

    return asyncio.run(ask())


def of_result(result: Any) -> Read:
    """Return question, response, contexts and hops of a result; the tool is always asked for the tower."""
    (sample,) = load([{"user_input": QUESTION, "response": result} if not isinstance(result, dict) else result])
    assert isinstance(sample, Sample)
    contexts = [(each.text, each.id) for each in sample.contexts]
    return QUESTION, sample.response, contexts, [("tower", contexts)]


def of_export(path: Path, tokens: dict[str, int]) -> Read:
    """Return question, response, contexts and hops of an export, which states the tokens and how long it took."""
    (whole,) = load(path)
    assert isinstance(whole, Sample), whole
    assert {key: whole.metadata.get(key) for key in tokens} == tokens
    assert 0 < whole.metadata["latency_s"] < 60
    hops = [hop for hop in load(Path(f"{path}#hops")) if isinstance(hop, Sample)]
    read = [(hop.user_input, [(each.text, each.id) for each in hop.contexts]) for hop in hops]
    return whole.user_input, whole.response, [(each.text, each.id) for each in whole.contexts], read


@pytest.mark.parametrize(
    ("module", "instrumentor"), [(module, each) for module, known in INSTRUMENTORS.items() for each in known]
)
def test_spans_of_an_agent_are_its_result(module: str, instrumentor: str, tmp_path: Path) -> None:
    """Spans of OpenInference and of the GenAI conventions give what the result of the same run gives."""
    for name in (module, instrumentor.partition(":")[0], "opentelemetry.exporter.otlp.json.file"):
        pytest.importorskip(name, reason=f"{name} is not installed here")
    for place, (name, agent) in enumerate(AGENTS[module]().items()):
        if name.startswith("agent") and (instrumentor, name) not in UNANSWERED:
            path = tmp_path / f"{place}.otlp.jsonl"
            result, _ = traced(instrumentor, agent, path)
            assert of_export(path, {} if module in NO_TOKENS else TOKENS) == of_result(result), name


def phoenix(spans: Any) -> list[dict[str, Any]]:
    """Return spans as Phoenix exports them."""
    return [
        {
            "context": {"trace_id": _ids(span)[0], "span_id": _ids(span)[1]},
            "parent_id": _ids(span)[2],
            "name": span.name,
            "span_kind": span.attributes.get("openinference.span.kind"),
            "start_time": span.start_time,
            "end_time": span.end_time,
            "attributes": dict(span.attributes),
        }
        for span in spans
    ]


def observations(spans: Any) -> list[dict[str, Any]]:
    """Return spans as the interface of Langfuse returns them."""
    known = "langfuse.observation"
    return [
        {
            "id": _ids(span)[1],
            "traceId": _ids(span)[0],
            "parentObservationId": _ids(span)[2],
            "name": span.name,
            "type": span.attributes[f"{known}.type"].upper(),
            "startTime": span.start_time,
            "endTime": span.end_time,
            "input": span.attributes.get(f"{known}.input"),
            "output": span.attributes.get(f"{known}.output"),
            "usageDetails": json.loads(span.attributes.get(f"{known}.usage_details", "{}")),
        }
        for span in spans
    ]


def _ids(span: Any) -> tuple[str, str, str | None]:
    parent = f"{span.parent.span_id:016x}" if span.parent else None
    return f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}", parent


def written(path: Path, records: list[Any]) -> Path:
    """Write records as lines."""
    path.write_text("".join(json.dumps(each, default=str) + "\n" for each in records))
    return path


def through_langsmith(ask: Callable[..., Any], folder: Path) -> Iterator[Path]:
    """Yield the file of the runs that LangSmith's client sends."""
    from langchain_core.tracers import LangChainTracer
    from langsmith import Client

    runs: dict[str, dict[str, Any]] = defaultdict(dict)
    with recording() as (address, sent):
        client = Client(api_url=address, api_key="k", auto_batch_tracing=False)
        ask(config={"callbacks": [LangChainTracer(client=client)]})
        client.flush()
        for path, body in sent:
            run = json.loads(body)
            runs[run.get("id") or path.rpartition("/")[2]] |= run
    yield written(folder / "langsmith.jsonl", [*runs.values()])


def through_langfuse(ask: Callable[..., Any], folder: Path) -> Iterator[Path]:
    """Yield the files of the spans that Langfuse's client sends, and of the observations that it makes of them."""
    from google.protobuf.json_format import MessageToDict
    from langfuse import Langfuse
    from langfuse.langchain import CallbackHandler
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    provider, kept = provider_of(folder / "langfuse.own.otlp.jsonl")
    with recording() as (address, sent):
        client = Langfuse(public_key="pk", secret_key="sk", host=address, tracer_provider=provider)  # noqa: S106
        ask(config={"callbacks": [CallbackHandler()]})
        client.flush()
        received = [MessageToDict(ExportTraceServiceRequest.FromString(body)) for _, body in sent]
        client.shutdown()
    yield written(folder / "langfuse.otlp.jsonl", received)
    yield written(folder / "langfuse.jsonl", observations(kept.get_finished_spans()))


def through_mlflow(ask: Callable[..., Any], folder: Path) -> Iterator[Path]:
    """Yield the file of the trace that MLflow stores."""
    import mlflow

    mlflow.set_tracking_uri(f"file:{folder / 'mlruns'}")
    mlflow.set_experiment("agents")
    mlflow.langchain.autolog()
    ask()
    mlflow.langchain.autolog(disable=True)
    mlflow.flush_trace_async_logging()
    (trace,) = mlflow.search_traces(return_type="list")
    path = folder / "mlflow.json"
    path.write_text(trace.to_json())
    yield path


def test_all_exports_of_a_run_are_its_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each system's export of an agent of LangGraph gives what its state gives, and the same score."""
    for name in ("langgraph", f"{OPENINFERENCE}.langchain", "langfuse", "mlflow"):
        pytest.importorskip(name, reason=f"{name} is not installed here")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    made = AGENTS["langgraph"]()
    ask = partial(made["agent"].invoke, {"messages": [("user", QUESTION)]})
    paths = [tmp_path / "openinference.otlp.jsonl"]
    result, spans = traced(INSTRUMENTORS["langgraph"][0], made["agent"], paths[0])
    paths += [written(tmp_path / "phoenix.jsonl", phoenix(spans))]
    for through in (through_langsmith, through_langfuse, through_mlflow):
        paths += through(ask, tmp_path)
    assert {path.name: of_export(path, TOKENS) for path in paths} == {path.name: of_result(result) for path in paths}
    scores = [merilo.evaluate(data, metrics=["faithfulness"])["faithfulness"].mean for data in ([result], *paths)]
    assert scores == [scores[0]] * len(scores)
    assert scores[0] is not None
