"""Tokens that one sample costs: characters / 4 of messages, schemas and replies, counted at the judge's server.

Samples are real text of fixed sizes: 5 contexts of 200 words, a response of 56, a reference of 38. The judge answers
like a model: four statements of a response, three of a reference, and a reason of one sentence with each verdict.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import report

import merilo

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SAMPLES = 20
CONTEXTS, CONTEXT_WORDS, RESPONSE_WORDS, REFERENCE_WORDS = 5, 200, 56, 38
FOUR = ("context_relevance", "context_precision", "context_recall", "faithfulness")
"""The usual four with their defaults; relevance and precision ask the same question about each context."""
BY_REFERENCE = "context_precision(against=reference)"
_SENTENCE_NUMBER = re.compile(r"^\[\d+\] ", re.MULTILINE)
_ITEM = {
    kind: re.compile(rf"^<<<{label} \d+ ", re.MULTILINE)
    for kind, label in [("support", "statement"), ("relevance", "context")]
}
_TEXT = re.compile(r"^<<<text \w+\n(.*?)\ntext \w+>>>$", re.MULTILINE | re.DOTALL)
_REASON = "The second sentence names the year and the place that are asked for, but not the person."


def rows() -> Iterator[dict[str, Any]]:
    """Yield samples of the sizes above, from the passages and questions of the example data."""
    text = files("merilo.examples").joinpath("retrieval/bm25.jsonl").read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.splitlines()]
    passages = list(dict.fromkeys(each["text"] for record in records for each in record["retrieved_contexts"]))
    for number, record in enumerate(islice(records, SAMPLES)):
        words = " ".join(passages[(7 * number + place) % len(passages)] for place in range(20)).split()
        cut = iter(words)
        contexts = [_sentence(cut, CONTEXT_WORDS) for _ in range(CONTEXTS)]
        yield {
            "id": str(number),
            "user_input": record["user_input"],
            "retrieved_contexts": contexts,
            "response": _sentence(cut, RESPONSE_WORDS),
            "reference": _sentence(cut, REFERENCE_WORDS),
        }


def _sentence(words: Iterator[str], count: int) -> str:
    return " ".join(islice(words, count)).rstrip(".,;") + "."


class _Judge(BaseHTTPRequestHandler):
    """A server that answers chat completions in the form of the schema, and counts characters."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind = body["response_format"]["json_schema"]["name"]
        reply = json.dumps(reply_to(kind, body["messages"][-1]["content"]))
        self.server.count(kind, [message["content"] for message in body["messages"]], _read_by_a_model(body), reply)
        message = {"role": "assistant", "content": reply}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        data = json.dumps({"model": "m", "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: only the figures go to standard output."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Judge)
        self.sent = self.received = self.requests = 0
        self.asked = self.repeated = 0
        """Characters of user messages, and of their beginnings that an earlier one had after the same rubric."""
        self.rubrics = 0
        """Characters of rubrics that an earlier request had too."""
        self.by_kind = Counter[str]()
        """Characters sent and received."""
        self._asked: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def count(self, kind: str, messages: Sequence[str], sent: str, received: str) -> None:
        """Add one request and its reply."""
        with self._lock:
            *opening, asked = messages
            earlier = self._asked.setdefault("".join(opening), [])
            self.repeated += max((_common(asked, each) for each in earlier), default=0)
            self.asked += len(asked)
            self.rubrics += sum(map(len, opening)) if earlier else 0
            earlier.append(asked)
            self.sent += len(sent)
            self.received += len(received)
            self.requests += 1
            self.by_kind[kind] += len(sent) + len(received)


def _read_by_a_model(body: dict[str, Any]) -> str:
    """Return messages and schema; the names of the request's fields cost no tokens."""
    schema = body["response_format"]["json_schema"]["schema"]
    return "".join([*(message["content"] for message in body["messages"]), json.dumps(schema, separators=(",", ":"))])


def reply_to(kind: str, asked: str, reason: str = _REASON) -> dict[str, Any]:
    """Return the reply to a prompt. `kind`: the name of its schema."""
    one = _verdict(kind.removesuffix("_together"), asked, reason)
    if not kind.endswith("_together"):
        return one
    count = len(_ITEM[kind.removesuffix("_together")].findall(asked))
    return {"verdicts": [{"number": number, **one} for number in range(1, count + 1)]}


def _verdict(kind: str, asked: str, reason: str) -> dict[str, Any]:
    if kind == "statements":
        (text,) = _TEXT.findall(asked)
        words = _SENTENCE_NUMBER.sub("", text).split()
        wanted = 4 if len(words) >= RESPONSE_WORDS else 3
        made = [" ".join(words[12 * n : 12 * n + 12]) + "." for n in range(wanted)]
        return {"statements": [{"sentence": 1, "text": each} for each in made]}
    one: dict[str, dict[str, Any]] = {
        "relevance": {"reason": reason, "grade": 1, "evidence": [2]},
        "usefulness": {"reason": reason, "useful": True, "evidence": [1, 2]},
        "support": {"reason": reason, "label": "supported", "sentences": [1, 3]},
        "noncommittal": {"reason": reason, "noncommittal": False},
    }
    return one[kind]


def _common(one: str, other: str) -> int:
    """Return the number of leading characters that two texts share."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))


@contextmanager
def _judge() -> Iterator[_Server]:
    server = _Server()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def tokens(metrics: Sequence[str], judged: str = "context") -> float:
    """Return tokens per sample in a run of these metrics."""
    server = _run(metrics, judged)
    return (server.sent + server.received) / 4 / SAMPLES


def repeated(metrics: Sequence[str], judged: str) -> float:
    """Return the fraction of user messages that providers can take from their prompt caches."""
    server = _run(metrics, judged)
    return server.repeated / server.asked


def _run(metrics: Sequence[str], judged: str) -> _Server:
    """Evaluate the samples, and return the server that counted the requests."""
    with _judge() as server, tempfile.TemporaryDirectory() as folder:
        run = merilo.evaluate(
            rows(),
            metrics=metrics,
            judge={"spec": "openai:m", "base_url": f"http://127.0.0.1:{server.server_port}/v1", "judged": judged},
            out=Path(folder, "run"),
            storage={"cache": False},
        )
        if any(each.scored != SAMPLES for each in run.metrics.values()) or run.usage["requests"] != server.requests:
            raise SystemExit("not every sample is scored by one reply to each request")
    return server


def main() -> None:
    """Print tokens per sample for each metric alone, and for the four together by packing and by kind of prompt."""
    for metric in (*FOUR, BY_REFERENCE):
        report(f"tokens a sample, {metric} alone", tokens([metric]))
    for judged, most in (("each", None), ("context", 10_100), ("together", 8_800)):
        server = _run(FOUR, judged)
        report(f"tokens a sample, all four, {judged}, sent", server.sent / 4 / SAMPLES)
        report(f"tokens a sample, all four, {judged}, received", server.received / 4 / SAMPLES)
        whole = server.sent + server.received
        report(f"tokens a sample, all four, {judged}", whole / 4 / SAMPLES, at_most=most)
        new = (whole - server.rubrics - server.repeated) / 4 / SAMPLES
        report(f"tokens a sample, all four, {judged}, not in an earlier prompt", new)
        for kind, characters in sorted(server.by_kind.items()):
            report(f"tokens a sample, all four, {judged}, {kind}", characters / 4 / SAMPLES)
    unshared = [BY_REFERENCE if metric == "context_precision" else metric for metric in FOUR]
    report(f"tokens a sample, all four with {BY_REFERENCE}", tokens(unshared))
    name = "prompts that begin like an earlier one, statements each, fraction of characters"
    report(name, repeated(("faithfulness", "context_recall"), "each"), at_least=0.7)


if __name__ == "__main__":
    main()
