"""A small server on 127.0.0.1 for tests that speaks as each provider does: it judges, and misbehaves.

    with JudgeServer({"Paris is the capital of France.": "supported"}) as server:
        provider = OpenAIProvider("test-model", base_url=server.base_url)
        server.fail_next(status(500))                     # the next request, then no more
        server.fail(drop_verdicts(1), share=0.05, seed=7)  # one request in twenty, whatever the order
        server.refuse("temperature", "response_format")    # always
        ...
        assert server.count == 3

`base_url` is for OpenAI's wire, `root_url` for all others; tests/wires.py is how it speaks them.

How it answers. The reply's kind is read from the JSON Schema (sent as a parameter or in words). `answer` is either

- a table from text to answer: the first key found in what is asked about decides (the statement, part or
  entity where there is one, else the whole user message). An answer is a mapping of reply fields, or just
  the decision (`"supported"`, `2`, `True`, a list of statement texts);
- a function of an `Asked` that returns such an answer, or None for the default.

The default is a valid reply: grade 1 with sentence 1, useful, supported by context 1, sufficient,
addresses, committal, one statement a sentence, one part, a question, answered, the first word of each sentence as
entity, mentioned, yes; free text is "A free reply.". Numbers count from 1, as
in every reply.

Over 400 lines: the faults are one short function each, and belong beside the server that gives them.
"""

import asyncio
import json
import random
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Self

import wires
from aiohttp import web

Answer = object
"""A mapping of reply fields, or the bare decision."""

_SINGLE = "(?:statement|утверждение|part|часть|entity|сущность)"
_SINGLE_FENCE = re.compile(rf"<<<{_SINGLE}(?: \d+)? (\w+)\n(.*?)\n{_SINGLE}(?: \d+)? \1>>>", re.DOTALL)
_CONTEXT_FENCE = re.compile(r"<<<(context|контекст) \d+ (\w{12})\n(.*?)\n\1 \d+ \2>>>", re.DOTALL)
_SENTENCE = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
_SCHEMA_IN_WORDS = re.compile(r"JSON Schema \((\w+)\)")
_DECISIONS = {
    "relevance": "grade",
    "usefulness": "useful",
    "support": "label",
    "sufficiency": "label",
    "addresses": "addresses",
    "noncommittal": "noncommittal",
    "statements": "statements",
    "parts": "parts",
    "answered": "answered",
    "entities": "entities",
    "mentions": "mentioned",
    "choice": "label",
}
_DEFAULTS: dict[str, Answer] = {
    "relevance": 1,
    "usefulness": True,
    "support": "supported",
    "sufficiency": "sufficient",
    "addresses": True,
    "noncommittal": False,
    "parts": ["What is asked."],
    "passage_question": {"question": "What is asked?", "answer": "What is answered."},
    "answered": True,
    "mentions": True,
    "choice": "yes",
}
_OK = 200


@dataclass(frozen=True)
class Asked:
    """One request as the server understood it."""

    body: Mapping[str, Any]
    kind: str
    """`relevance`, `support`, ...; `completion` for free text, also where a schema is sent for it."""
    together: bool
    about: str
    """What is judged: one statement of a pack or question, else the first user message."""
    number: int = 1
    """The statement's number within its pack."""
    part: str = ""
    """The question as if it were asked alone, if the prompt asks about the relevance of several contexts."""

    @property
    def messages(self) -> list[dict[str, str]]:
        """All messages as sent, a system part first."""
        return wires.messages_of(self.body)

    @property
    def user(self) -> str:
        """The first user message, or the part of it with one context: the rendered question."""
        return self.part or next(message["content"] for message in self.messages if message["role"] == "user")

    @property
    def structured(self) -> str:
        """`json_schema`, `json_mode`, `prompted`, or `text` for free text."""
        if self.kind == "completion":
            return "text"
        return wires.structured(self.body) or "prompted"


Answerer = Callable[[Asked], Answer | None] | Mapping[str, Answer]


@dataclass(frozen=True)
class Fault:
    """One way to misbehave; make it with the functions below."""

    name: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    """Sent as it is instead of a completion."""
    seconds: float = 0.0
    """Waited before anything else."""
    rewrite: Callable[[str], str] | None = None
    """Applied to the text of each completion."""
    finish: str = "stop"
    refusal: str | None = None
    reset: bool = False
    cut: bool = False
    """The connection is closed in the middle of the body."""
    written: int = 0
    """Output tokens that the server bills besides the completion that it sends."""


def status(code: int, message: str = "made to fail", /, **error: object) -> Fault:
    """An error answer, such as 500; `error` adds fields such as `code` and `param`."""
    body = json.dumps({"error": {"message": message, **error}})
    return Fault(f"status {code}", status=code, body=body)


def rate_limited(retry_after: str = "0", message: str = "slow down", /, **error: object) -> Fault:
    """429 with a Retry-After header: seconds or an HTTP date."""
    body = json.dumps({"error": {"message": message, **error}})
    return Fault("rate limited", status=429, headers={"Retry-After": retry_after}, body=body)


def reset(written: int = 0) -> Fault:
    """The connection is closed without an answer, after a reply of this many tokens was written."""
    return Fault("reset", reset=True, written=written)


def hang(seconds: float = 3600.0, *, written: int = 0) -> Fault:
    """No answer for a long time (the server still closes at once); a reply of this many tokens is billed."""
    return Fault("hang", seconds=seconds, written=written)


def cut_off(body: str, written: int) -> Fault:
    """Half of this body; the whole reply of this many tokens is billed."""
    return Fault("cut off", body=body, cut=True, written=written)


def unusable(body: str, written: int, *, code: int = 200) -> Fault:
    """This text as the whole HTTP body, for a reply of this many tokens that is billed."""
    return Fault("unusable", status=code, body=body, written=written)


def slow(seconds: float) -> Fault:
    """A right answer, later."""
    return Fault("slow", seconds=seconds)


def bare(text: str, code: int = 200, /, **headers: str) -> Fault:
    """This text as the whole HTTP body; `headers` are written with `_` for `-`."""
    return Fault(
        "bare", status=code, body=text, headers={name.replace("_", "-"): each for name, each in headers.items()}
    )


def malformed() -> Fault:
    """JSON that lost its opening quotes and its end."""
    return says(lambda text: text.replace('": ', ": ")[:-2], name="malformed")


def truncated() -> Fault:
    """Half of the reply, with finish_reason length."""
    return Fault("truncated", rewrite=lambda text: text[: len(text) // 2], finish="length")


def wrong_schema() -> Fault:
    """Valid JSON with other fields."""
    return says('{"score": 5, "explanation": "fine"}', name="wrong schema")


def drop_verdicts(count: int = 1) -> Fault:
    """A pack's reply without its last verdicts; other replies are left alone."""

    def without(text: str) -> str:
        loaded = _loaded(text)
        if "verdicts" not in loaded:
            return text
        return json.dumps({"verdicts": loaded["verdicts"][:-count]}, ensure_ascii=False)

    return says(without, name="drop verdicts")


def contradiction() -> Fault:
    """Verdicts that contradict themselves: evidence is taken from those that need it."""

    def spoilt(text: str) -> str:
        loaded = _loaded(text)
        for verdict in loaded.get("verdicts", [loaded]):
            name = "sentences" if "sentences" in verdict else "evidence"
            verdict[name] = [] if verdict.get(name) else [1]
        return json.dumps(loaded, ensure_ascii=False)

    return says(spoilt, name="contradiction")


def prose() -> Fault:
    """The right JSON in a fence, with talk around it."""
    return says(lambda text: f"Sure! Here is my verdict:\n```json\n{text}\n```\nHope this helps.", name="prose")


def thinking() -> Fault:
    """Reasoning that holds a draft with another verdict, then the right JSON."""
    draft = '<think>Perhaps {"grade": 2, "label": "contradicted", "evidence": [1]}? No.</think>\n'
    return says(lambda text: draft + text, name="thinking")


def refusal(reason: str = "I cannot help with that.") -> Fault:
    """The model's refusal in the field of that name."""
    return Fault("refusal", refusal=reason)


def filtered() -> Fault:
    """finish_reason content_filter."""
    return Fault("filtered", finish="content_filter")


def says(text: str | Callable[[str], str], *, name: str = "says") -> Fault:
    """This text, or what a function makes of the right text, as the completion."""
    return Fault(name, rewrite=text if callable(text) else lambda _: text)


@dataclass(frozen=True)
class _Chance:
    fault: Fault
    share: float
    seed: int
    first_attempt_only: bool

    def strikes(self, digest: str, attempt: int) -> bool:
        if self.first_attempt_only and attempt > 0:
            return False
        return random.Random(f"{self.seed} {self.fault.name} {digest} {attempt}").random() < self.share


class JudgeServer:
    """The server, in a thread with an event loop of its own; a context manager."""

    def __init__(
        self,
        answer: Answerer | None = None,
        *,
        model: str = "test-model",
        delay_s: float = 0.0,
        prefix: str = "",
    ) -> None:
        """`prefix`: the path below which it serves, as a gateway does."""
        self.asked: list[Asked] = []
        """Every request to a model, in the order of arrival; of a pack, the first statement."""
        self.headers: list[Mapping[str, str]] = []
        self.paths: list[str] = []
        """Path and query of each."""
        self.sent: list[bytes] = []
        """Each body as it came."""
        self.keys: frozenset[str] | None = None
        """The keys that are taken, as whole header values; None takes any request."""
        self.counting: Callable[[Mapping[str, Any]], tuple[int, int]] | None = None
        """Tokens in and out to tell for a body on OpenAI's wire, instead of characters / 4."""
        self.reporting: Callable[[Any], Any] | None = None
        """What a reply's usage becomes, made from the true one; a result of None leaves the usage out."""
        self.billed = Counter[str]()
        """Tokens of all requests that arrived (`input`) and of all replies that were written (`output`), read or not.

        An error costs nothing. They are counted as an honest reply reports them, whatever the replies report.
        """
        self.most_at_once = 0
        """The most requests that were being answered at the same time."""
        self.described: dict[str, Any] = dict(wires.OLLAMA_SHOW)
        """What Ollama's `/api/show` answers."""
        self.digest = "6488c96fa5faab64bb65cbd30d4289e20e6130ef535a93ef9a49f42eda893ea7"
        """The model's digest in Ollama's `/api/tags`."""
        self.rejects: Callable[[Mapping[str, Any]], Fault | None] | None = None
        """The fault for a body, always; None accepts it."""
        self.given = Counter[str]()
        """How often each fault was given, by its name."""
        self._answer = answer
        self._model = model
        self._delay_s = delay_s
        self._prefix = prefix
        self._queue: list[Fault] = []
        self._chances: list[_Chance] = []
        self._refused: tuple[str, ...] = ()
        self._attempts = Counter[str]()
        self._written: set[str] = set()
        self._now = 0
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._ready = threading.Event()
        self._port = 0

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:PORT/v1`."""
        return f"{self.root_url}/v1"

    @property
    def root_url(self) -> str:
        """`http://127.0.0.1:PORT`."""
        return f"http://127.0.0.1:{self._port}{self._prefix}"

    @property
    def count(self) -> int:
        """Requests to a model so far, failed ones included."""
        return len(self.asked)

    def fail_next(self, *faults: Fault) -> None:
        """The next requests fail like this, one each, in order of arrival."""
        self._queue.extend(faults)

    def fail(self, fault: Fault, *, share: float = 1.0, seed: int = 0, first_attempt_only: bool = False) -> None:
        """A share of requests fails like this, decided by the seed, the question and how often it was asked before.

        So it does not depend on the order of arrival. A question that is asked again (a retry, a re-ask, or with more
        room) is another attempt, which has its own luck; with `first_attempt_only` it is answered well.
        """
        self._chances.append(_Chance(fault, share, seed, first_attempt_only))

    def refuse(self, *parameters: str) -> None:
        """Requests with any of these fields get a 400 that names it.

        `json_schema` and `json_object` refuse one type of `response_format`, `system` a system message,
        `cache_control` a mark for the prompt cache, wherever it stands.
        """
        self._refused = parameters

    def behave(self) -> None:
        """No more faults, queued or by chance; refused parameters are accepted."""
        self._queue.clear()
        self._chances.clear()
        self._refused = ()

    def stop(self) -> None:
        """Close for good, as a server that dies; may be called from any thread, also twice."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join()

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        self._stop = asyncio.Event()
        app = web.Application(client_max_size=64 * 1024 * 1024)
        self.routes(app)  # before the general ones
        for path in ("/v1", "/openai/v1", "/openai/deployments/{deployment}"):
            app.router.add_post(f"{self._prefix}{path}/chat/completions", self._complete)
        app.router.add_post(f"{self._prefix}/v1/messages", self._complete)
        app.router.add_post(f"{self._prefix}/v1beta/models/{{model}}", self._complete)
        app.router.add_post(f"{self._prefix}/model/{{model}}/converse", self._complete)
        app.router.add_post(f"{self._prefix}/api/chat", self._complete)
        app.router.add_post(f"{self._prefix}/api/show", self._show)
        app.router.add_get(f"{self._prefix}/api/tags", self._tags)
        app.router.add_get("/v1/models", self._models)
        runner = web.AppRunner(app, shutdown_timeout=0.05, access_log=None)  # 0 would be for ever
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self._port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    def routes(self, _: web.Application) -> None:
        """Add routes; for servers that do more."""

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": self._model, "object": "model"}]})

    async def _show(self, request: web.Request) -> web.Response:
        name = json.loads(await request.read())["model"]
        if name == "missing":
            return web.json_response({"error": f"model '{name}' not found"}, status=404)
        return web.json_response(self.described)

    async def _tags(self, _: web.Request) -> web.Response:
        named = {"name": f"{self._model}:latest", "model": f"{self._model}:latest", "size": 5_225_388_164}
        return web.json_response({"models": [{**named, "digest": self.digest}]})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = json.loads(raw)
        asked = _understood(body)
        with self._lock:
            self.asked.append(asked[0])
            self.headers.append(request.headers)
            self.paths.append(str(request.rel_url))
            self.sent.append(raw)
            fault = self._locked_out(request) or self._fault(asked[0], wires.wire_of(request.path))
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        if fault is None or fault.status == _OK or fault.written:
            self.billed["input"] += wires.tokens(body)
            self.billed["output"] += 0 if fault is None else fault.written
        try:
            return await self._respond(request, asked, fault)
        finally:
            with self._lock:
                self._now -= 1

    async def _respond(self, request: web.Request, asked: list[Asked], fault: Fault | None) -> web.StreamResponse:
        await asyncio.sleep(self._delay_s + (fault.seconds if fault else 0.0))
        if fault is not None and fault.reset:
            _break_off(request)
            return web.Response()
        if fault is not None and fault.body is not None and fault.cut:
            return await _half(request, fault.body.encode())
        if fault is not None and fault.body is not None:
            return web.Response(
                status=fault.status, headers=fault.headers, text=fault.body, content_type="application/json"
            )
        text = self._text(asked)
        text = fault.rewrite(text) if fault is not None and fault.rewrite else text
        finish, refused = (fault.finish, fault.refusal) if fault is not None else ("stop", None)
        body = asked[0].body
        wire = wires.wire_of(request.path)
        if wire == "ollama":
            told = wires.ollama(text, body, model=self._model, finish=finish)
        elif wire == "bedrock":
            told = wires.bedrock(text, body, finish=finish, refusal=refused)
        elif wire == "google":
            told = wires.google(text, body, model=self._model, finish=finish, refusal=refused)
        elif wire == "anthropic":
            with self._lock:
                told = wires.message(
                    text, body, model=self._model, finish=finish, refusal=refused, written=self._written
                )
        else:
            choices = int(body.get("n", 1))
            told = wires.completion(text, body, model=self._model, finish=finish, refusal=refused, choices=choices)
            if self.counting is not None:
                read, written = self.counting(body)
                told["usage"] = {"prompt_tokens": read, "completion_tokens": written}
        self.billed["output"] += len(text) // 4 + 1
        if self.reporting is not None:
            told = {**told, "usage": self.reporting(told["usage"])}
            told = {name: value for name, value in told.items() if value is not None}
        return web.json_response(told)

    def _locked_out(self, request: web.Request) -> Fault | None:
        """A 401 for a request without one of the keys."""
        names = ("Authorization", "api-key", "x-api-key", "x-goog-api-key")
        if self.keys is None or self.keys.intersection(request.headers.get(name, "") for name in names):
            return None
        return status(401, "Incorrect API key provided.", code="invalid_api_key")

    def _fault(self, asked: Asked, wire: str) -> Fault | None:
        body = asked.body
        beginning = [message["content"] for message in asked.messages[:2]]
        told = json.dumps([beginning, body.get("seed"), body.get("n"), asked.structured])
        digest = sha256(told.encode()).hexdigest()
        attempt = self._attempts[digest]
        self._attempts[digest] += 1
        refused = next((name for name in self._refused if wires.holds(body, name)), None)
        fault = None if self.rejects is None else self.rejects(body)
        if refused is not None:
            fault = Fault("status 400", status=400, body=wires.refusal_of(refused, wire))
        if fault is None and self._queue:
            fault = self._queue.pop(0)
        if fault is None:
            fault = next((chance.fault for chance in self._chances if chance.strikes(digest, attempt)), None)
        if fault is not None:
            self.given[fault.name] += 1
        return fault

    def _text(self, asked: list[Asked]) -> str:
        replies = [self._reply(each) for each in asked]
        if asked[0].kind == "completion":
            return str(replies[0])
        if not asked[0].together:
            return json.dumps(replies[0], ensure_ascii=False)
        items = [{"number": each.number, **reply} for each, reply in zip(asked, replies, strict=True)]
        return json.dumps({"verdicts": items}, ensure_ascii=False)

    def _reply(self, asked: Asked) -> Any:
        answer = self._answer
        if isinstance(answer, Mapping):
            found: Answer | None = next((value for text, value in answer.items() if text in asked.about), None)
        else:
            found = answer(asked) if answer is not None else None
        return _fields(asked, found)


def _understood(body: Mapping[str, Any]) -> list[Asked]:
    """One entry for each statement of a pack, else one."""
    name = wires.schema_name(body)
    if name is None:
        in_words = _SCHEMA_IN_WORDS.search("\n".join(message["content"] for message in wires.messages_of(body)))
        name = in_words[1] if in_words else "completion"
    kind = "completion" if name == "reply" else name.removesuffix("_together")  # as a schema without a name is called
    together = name.endswith("_together")
    asked = Asked(body, kind, together=together, about="")
    if name == "relevance_together":
        return _of_contexts(asked)
    statements = [match[2] for match in _SINGLE_FENCE.finditer(asked.user)]
    if kind not in {"support", "addresses", "answered", "mentions"} or not statements:
        statements = [asked.user]
    return [Asked(body, kind, together, about, n) for n, about in enumerate(statements, start=1)]


def _of_contexts(whole: Asked) -> list[Asked]:
    """One entry for each context whose relevance is asked."""
    rest, found = _CONTEXT_FENCE.sub("", whole.user).strip(), list[Asked]()
    for number, match in enumerate(_CONTEXT_FENCE.finditer(whole.user), start=1):
        part = f"<<<context 0123456789ab\n{match[3]}\ncontext 0123456789ab>>>"
        found.append(replace(whole, about=match[3], number=number, part=f"{rest}\n\n{part}"))
    return found


def _fields(asked: Asked, answer: Answer | None) -> Any:
    if asked.kind == "completion":
        return "A free reply." if answer is None else answer
    if answer is None:
        answer = _DEFAULTS.get(asked.kind)
    if isinstance(answer, Mapping):
        return dict(answer)
    if asked.kind == "statements":
        texts = [text for _, text in _SENTENCE.findall(asked.user)] if answer is None else answer
        last = max((int(number) for number, _ in _SENTENCE.findall(asked.user)), default=1)
        return {"statements": [{"sentence": min(n, last), "text": text} for n, text in enumerate(texts, start=1)]}
    if asked.kind == "entities":
        first = [(int(number), text.split()[0]) for number, text in _SENTENCE.findall(asked.user) if text.strip()]
        return {"entities": [{"sentence": n, "text": text} for n, text in first] if answer is None else answer}
    fields: dict[str, object] = {"reason": "As the test wants it.", _DECISIONS[asked.kind]: answer}
    if asked.kind == "parts":
        return {"parts": answer}
    if asked.kind in {"relevance", "usefulness", "support", "answered", "mentions"}:
        name = "sentences" if asked.kind == "support" else "evidence"
        fields[name] = [1] if answer not in {0, "not_stated"} else []
    if asked.kind == "sufficiency":
        fields["missing"] = "" if answer == "sufficient" else "Something."
    return fields


async def _half(request: web.Request, body: bytes) -> web.StreamResponse:
    """Send half of a body and close the connection."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


def _break_off(request: web.Request) -> None:
    transport = request.transport
    if transport is not None:
        stream = transport.get_extra_info("socket")
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()


def _loaded(text: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(text)
    return loaded
