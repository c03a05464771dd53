"""A server of decision models on 127.0.0.1 for tests: it answers both wires and makes mistakes on request.

    with DecisionServer(faults=["429:2"]) as server:
        provider = SystemOneProvider("mock-decider", base_url=server.url)
        ...
        assert len(server.requests) == 1

Wires: `POST /v1/decisions` is OpenAI's; every path that ends in `/systemone` or `/alpha/decisions` is System One, with
`id`, `provider` and `usage.cost` below `/api/`. `GET /v1/models` names the models.

Answers are deterministic: a probability is the share of the words of the question's own material (its structured
instructions, or the items of the state that it names in backquotes) that occur in the user input, pulled towards the
middle. `rules` is a list; the first that matches decides:

    {"match": "regular expression on the question's text", "p": 0.9}             yes or no
    {"match": "...", "probabilities": [0.1, 0.2, 0.7]}                           choice or score, in order
    {"match": "...", "refuse": True}                                             refusal (OpenAI's wire)

A fault `NAME` applies to every request, `NAME:3` to the first three, `NAME@0.2` to every fifth one on average (seeded).
"""

import hashlib
import json
import random
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

FAULTS = {
    "429": "429 with retry-after: 1",
    "429ms": "429 with retry-after-ms: 50",
    "429none": "429 without a header",
    "408": "408",
    "500": "500",
    "502": "502",
    "503": "503 with retry-after: 1",
    "529": "529 (overloaded)",
    "401": "wrong key",
    "403": "403: TypeSafe for a missing key, OpenAI for a missing permission",
    "402": "no credit",
    "404": "unknown model",
    "413": "body too large",
    "redirect": "307 to another host name",
    "max_tokens": "context exceeded; TypeSafe's body has no message",
    "questions": "too many questions, whatever their number",
    "hang": "never answers",
    "slow": "answers after 2 s",
    "reset": "closes the connection without an answer",
    "cut": "closes the connection in the middle of the body",
    "not_json": "200 with text",
    "html": "200 with an HTML page",
    "empty": "200 with an empty body",
    "nan": "a probability is NaN",
    "above_one": "a probability is 1.3",
    "text_number": "a probability is a text",
    "sum": "probabilities of a choice or score sum to 0.8",
    "unknown_option": "an option that was not offered",
    "missing_option": "an option is missing",
    "not_argmax": "`choice` is not the most probable option",
    "score_off": "`score` differs from its probabilities",
    "one_based": "score levels are numbered from 1",
    "missing": "the last answer is missing",
    "extra": "an answer that nobody asked for",
    "duplicate": "the first answer twice (OpenAI wire)",
    "order": "answers in reverse order (OpenAI wire)",
    "no_name": "answers without names (OpenAI wire)",
    "wrong_type": "the first answer has another type",
    "refuse": "the first question is refused",
    "refuse_all": "every question is refused",
    "no_usage": "usage is missing",
    "zero_usage": "usage reports 0 tokens",
    "float_usage": "tokens as 12.0",
    "alias": "the model reports a dated name",
    "moves": "the reported model changes with the fifth request",
    "noisy": "answers differ by up to 0.1 from request to request",
    "extra_fields": "unknown fields everywhere",
    "leak_key": "an error message repeats the key",
    "text_only": "parts in JSON are refused, as are objects as instructions",
}
LIMITS = {"openai": (400, 255, 10), "systemone": (10_000, 255, 10)}
MODELS = ("gpt-6-luna", "jev-latest", "jev-1.13.0", "mock-decider")
_WORD = re.compile(r"\w{3,}")


class Refused(Exception):
    """A request that is answered with an error status."""

    def __init__(self, status: int, code: str, message: str, loc: list | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.loc = status, code, loc


def text_of(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def words(value: object) -> set[str]:
    return {word.lower() for word in _WORD.findall(text_of(value))}


def flatten(value: object, path: str = "") -> dict[str, object]:
    """Return every part of a state by its path: `contexts.c1`, `contexts.c1.s2`, `passages[0]`."""
    found = {path: value} if path else {}
    if isinstance(value, dict):
        for key, part in value.items():
            found |= flatten(part, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for place, part in enumerate(value):
            found |= flatten(part, f"{path}[{place}]")
    return found


class Model:
    """Answers questions about one state; the same for both wires."""

    def __init__(self, rules: list[dict]) -> None:
        self.rules = rules

    def rule(self, question: dict) -> dict:
        asked = text_of(question.get("instructions") or "") + " " + text_of(question.get("criteria") or "")
        return next((rule for rule in self.rules if re.search(rule["match"], asked)), {})

    def yes(self, state: object, question: dict) -> float:
        rule = self.rule(question)
        if "p" in rule:
            return float(rule["p"])
        instructions = question.get("instructions") or ""
        parts = flatten(state)
        names = set(re.findall(r"`([^`]+)`", text_of(instructions)))
        material: list[object] = [
            part for path, part in parts.items() if path.split(".")[-1] in names and path != "user_input"
        ]
        fields = instructions if isinstance(instructions, dict) else {}
        if isinstance(instructions, list):  # parts of the OpenAI wire
            parts_of = [part.get("data") for part in instructions if isinstance(part, dict)]
            fields = {key: value for part in parts_of if isinstance(part, dict) for key, value in part.items()}
        material += [part for key, part in fields.items() if key != "question"]
        about = words(parts.get("user_input", state if isinstance(state, str) else ""))
        share = len(about & words(material)) / max(1, len(about)) if material else 0.5
        return round(0.05 + 0.9 * share, 4)

    def spread(self, state: object, question: dict, count: int) -> list[float]:
        rule = self.rule(question)
        if "probabilities" in rule:
            given = [float(p) for p in rule["probabilities"][:count]]
            given += [0.0] * (count - len(given))
            return [p / (sum(given) or 1.0) for p in given]
        p = self.yes(state, question)
        seed = hashlib.sha256(text_of(question).encode()).digest()
        weights = [0.2 + seed[place % 32] / 255 for place in range(count)]
        top = 0 if question["type"] == "choice" else count - 1
        weights[top] += 4 * p
        weights[count - 1 - top] += 4 * (1 - p)
        return [round(weight / sum(weights), 6) for weight in weights]


class _Quiet(ThreadingHTTPServer):
    """A server that says nothing about clients that hang up."""

    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class DecisionServer:
    """The server; a context manager for tests. Listens on 127.0.0.1 only."""

    def __init__(
        self,
        port: int = 0,
        faults: list[str] | tuple[str, ...] = (),
        rules: list[dict] | None = None,
        key: str = "",
        seed: int = 0,
    ) -> None:
        self.faults = [self._parsed(fault) for fault in faults]
        self.model, self.key = Model(rules or []), key
        self.requests: list[dict] = []
        self.number = 0
        self._random, self._lock = random.Random(seed), threading.Lock()
        self._server = _Quiet(("127.0.0.1", port), self._handler())
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.closing = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def serve(self) -> None:
        self._server.serve_forever(poll_interval=0.05)

    @staticmethod
    def _parsed(fault: str) -> tuple[str, int | None, float | None]:
        name, _, rate = fault.partition("@")
        name, _, first = name.partition(":")
        if name not in FAULTS:
            raise ValueError(f"unknown fault {name!r}; faults: {', '.join(FAULTS)}")
        return name, int(first) if first else None, float(rate) if rate else None

    def active(self) -> set[str]:
        """Return the faults of the next request, and count it."""
        with self._lock:
            self.number += 1
            return {
                name
                for name, first, rate in self.faults
                if (first is None or self.number <= first) and (rate is None or self._random.random() < rate)
            }

    def _handler(self) -> type[BaseHTTPRequestHandler]:  # noqa: C901  one branch for each fault
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                if self.path == "/requests":
                    return self.send(200, server.requests)
                if self.path == "/v1/models":
                    models = [{"name": n, "id": n, "description": "mock", "release_date": "2026-09-15"} for n in MODELS]
                    return self.send(200, {"object": "list", "models": models, "data": models})
                return self.send(404, {"detail": {"error_type": "not_found", "message": "no such route"}})

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.path == "/reset":
                    server.requests.clear()
                    server.number = 0
                    return self.send(200, {})
                openai = self.path == "/v1/decisions"
                if not openai and not self.path.endswith(("/systemone", "/alpha/decisions")):
                    return self.send(404, {"detail": {"error_type": "not_found", "message": "no such route"}})
                faults = server.active()
                try:
                    self.check_faults(faults)
                    body = self.read(raw)
                    server.requests.append(body)
                    if "text_only" in faults:
                        refuse_json(raw, body, openai)
                    reply = answer_openai(server, body, faults) if openai else answer_system_one(server, body, faults)
                    if "/api/" in self.path:
                        reply |= {"id": f"dec-{server.number}", "provider": "mock"}
                        reply.get("usage", {})["cost"] = 0.0
                except ConnectionAbortedError:  # the faults `reset` and `hang`
                    return None
                except Refused as error:
                    return self.send(error.status, self.error_body(openai, error, faults), self.error_headers(faults))
                return self.reply(reply, faults)

            def read(self, raw: bytes) -> dict:
                if server.key and self.headers.get("authorization") is None:
                    raise Refused(403, "authentication_error", "Missing API key.")
                if server.key and self.headers.get("authorization") != f"Bearer {server.key}":
                    raise Refused(401, "authentication_error", "Invalid API key.")
                try:
                    body = json.loads(raw)
                except ValueError as error:
                    raise Refused(422, "json_invalid", "JSON decode error", ["body"]) from error
                if not isinstance(body, dict):
                    raise Refused(422, "dict_type", "Input should be an object", ["body"])
                return body

            def check_faults(self, faults: set[str]) -> None:
                if "hang" in faults:
                    server.closing.wait(3_600)
                if "slow" in faults:
                    time.sleep(2)
                if "reset" in faults or "hang" in faults:
                    self.close_connection = True
                    self.connection.close()
                    raise ConnectionAbortedError
                for status in (401, 402, 403, 404, 408, 413, 500, 502, 503, 529):
                    if str(status) in faults:
                        raise Refused(status, f"status_{status}", f"mock {status}")
                if faults & {"429", "429ms", "429none"}:
                    raise Refused(429, "rate_limit_exceeded", "Rate limit reached.")
                if "redirect" in faults:
                    raise Refused(307, "redirect", "elsewhere")
                if "max_tokens" in faults:
                    raise Refused(400, "max_tokens_exceeded", "")
                if "questions" in faults:
                    raise Refused(422, "too_long", "Too many questions.", ["body", "questions"])

            def error_headers(self, faults: set[str]) -> dict[str, str]:
                if "429ms" in faults:
                    return {"retry-after-ms": "50"}
                if "redirect" in faults:
                    return {"location": f"http://localhost:{server.port}{self.path}"}
                return {"retry-after": "1"} if faults & {"429", "503"} else {}

            def error_body(self, openai: bool, error: Refused, faults: set[str]) -> dict:
                message = str(error) + (f" ({self.headers.get('authorization')})" if "leak_key" in faults else "")
                if openai:
                    kind = "invalid_request_error" if error.status < 429 else "server_error"
                    code = "context_length_exceeded" if error.code == "max_tokens_exceeded" else error.code
                    param = ".".join(map(str, error.loc[1:])) if error.loc else None
                    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
                if error.loc:
                    echo = server.requests[-1:]  # FastAPI repeats the request
                    return {"detail": [{"loc": error.loc, "msg": message, "type": error.code, "input": echo}]}
                detail = {"error_type": error.code} | ({"message": message} if message else {})
                return {"detail": detail}

            def reply(self, reply: dict, faults: set[str]) -> None:
                if "not_json" in faults:
                    return self.send_bytes(200, b"I think the answer is yes.", "text/plain")
                if "html" in faults:
                    return self.send_bytes(200, b"<html><body>gateway</body></html>", "text/html")
                if "empty" in faults:
                    return self.send_bytes(200, b"", "application/json")
                data = json.dumps(reply, ensure_ascii=False).encode()
                if "cut" in faults:
                    self.send_response(200)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data[: len(data) // 2])
                    self.close_connection = True
                    return None
                return self.send_bytes(200, data, "application/json")

            def send(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
                self.send_bytes(status, json.dumps(body, ensure_ascii=False).encode(), "application/json", headers)

            def send_bytes(self, status: int, data: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
                self.send_response(status)
                all_headers = {"content-type": kind, "content-length": str(len(data))}
                all_headers["x-typesafe-request-id"] = f"req-{server.number}"
                for name, value in {**all_headers, **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

        return Handler


def refuse_json(raw: bytes, body: dict, openai: bool) -> None:
    """Raise Refused for a part in JSON, or for instructions that are an object."""
    if openai and b'"input_json"' in raw:
        raise Refused(400, "invalid_value", "Invalid value: 'input_json'.", ["body", "input[0].content[0]"])
    for name, question in () if openai else body["questions"].items():
        if isinstance(question["instructions"], dict):
            loc = ["body", "questions", name, "instructions"]
            raise Refused(422, "string_type", "Input should be a valid string", loc)


def asked(question: object, wire: str, loc: list) -> dict:
    """Return a question in one form for both wires. Raises Refused for an invalid one."""
    if not isinstance(question, dict) or question.get("type") not in {"predicate", "noul", "choice", "score"}:
        raise Refused(422 if wire == "systemone" else 400, "union_tag_invalid", "Unknown question type", [*loc, "type"])
    kind = question["type"]
    if (kind == "predicate") != (wire == "openai") and kind in {"predicate", "noul"}:
        raise Refused(422 if wire == "systemone" else 400, "union_tag_invalid", f"No type {kind} here", [*loc, "type"])
    _, most_options, most_levels = LIMITS[wire]
    bad = 400 if wire == "openai" else 422
    if wire == "openai" and not question.get("instructions"):
        raise Refused(bad, "missing_required_parameter", "instructions is required", [*loc, "instructions"])
    options: list = []
    if kind == "choice":
        given = question.get("choices") if wire == "openai" else question.get("criteria")
        if not isinstance(given, list if wire == "openai" else dict) or not given:
            raise Refused(bad, "missing", "A choice needs its options", [*loc, "criteria"])
        options = [each["value"] for each in given] if wire == "openai" else list(given)
        if not 2 <= len(options) <= most_options or len({(type(o), o) for o in options}) < len(options):
            raise Refused(bad, "too_long", f"2 to {most_options} different options", [*loc, "criteria"])
    if kind == "score":
        given = question.get("levels") if wire == "openai" else question.get("criteria")
        if not isinstance(given, list) or not 2 <= len(given) <= most_levels or None in given:
            raise Refused(bad, "too_long", f"A list of 2 to {most_levels} levels", [*loc, "criteria"])
        options = list(given)
    return {
        "type": kind,
        "instructions": question.get("instructions"),
        "criteria": options,
        "name": question.get("name"),
    }


def shift(p: float, faults: set[str], number: int, place: int) -> float:
    if "noisy" in faults:
        p += random.Random(number * 1_000 + place).uniform(-0.1, 0.1)
    return min(0.99, max(0.01, p))


def distribution(server: DecisionServer, state: object, question: dict, faults: set[str], place: int) -> list:
    found = server.model.spread(state, question, len(question["criteria"]))
    found[0] = shift(found[0], faults, server.number, place) if "noisy" in faults else found[0]
    total = sum(found)
    found = [p / total for p in found]
    if "sum" in faults:
        found = [0.8 * p for p in found]
    if "above_one" in faults:
        found[0] = 1.3
    if "nan" in faults:
        found[0] = float("nan")
    return [str(p) if "text_number" in faults else p for p in found]


def confidence(found: list) -> float:
    numbers = [float(p) for p in found if float(p) == float(p)]
    size = len(found)
    return max(0.0, min(1.0, (max(numbers, default=0.0) - 1 / size) / (1 - 1 / size)))


def one_answer(server: DecisionServer, state: object, question: dict, faults: set[str], place: int) -> dict:
    if question["type"] in {"predicate", "noul"}:
        p: object = shift(server.model.yes(state, question), faults, server.number, place)
        p = 1.3 if "above_one" in faults else float("nan") if "nan" in faults else p
        field = "probability" if question["type"] == "predicate" else "noul"
        return {"type": question["type"], field: str(p) if "text_number" in faults else p}
    found = distribution(server, state, question, faults, place)
    options = question["criteria"]
    order = sorted(range(len(found)), key=lambda n: -float(found[n]) if float(found[n]) == float(found[n]) else 0)
    best = order[-1] if "not_argmax" in faults else order[0]
    expected = sum(n * float(p) for n, p in enumerate(found))
    base = {"type": question["type"], "confidence": confidence(found)}
    if question["type"] == "choice":
        return base | {"choice": options[best], "options": list(zip(options, found, strict=True))}
    return base | {
        "score": expected + (0.5 if "score_off" in faults else 0.0),
        "options": list(zip(options, found, strict=True)),
    }


def spoiled(options: list, faults: set[str]) -> list:
    if not options:  # a yes/no question
        return []
    options = list(options)
    if "missing_option" in faults:
        options = options[:-1]
    if "unknown_option" in faults:
        options = [*options[:-1], ("something else", options[-1][1])]
    return options


def usage(body: dict, state: object, faults: set[str]) -> dict | None:
    if "no_usage" in faults:
        return None
    tokens = 0 if "zero_usage" in faults else len(text_of(state) + text_of(body["questions"])) // 4
    return {"input_tokens": float(tokens) if "float_usage" in faults else tokens, "output_tokens": 0}


def model_name(server: DecisionServer, body: dict, faults: set[str]) -> str:
    asked_for = str(body.get("model") or "mock-decider")
    if "moves" in faults and server.number > 4:
        return f"{asked_for}-moved"
    return f"{asked_for}-2026-09-22" if "alias" in faults else asked_for


def answer_openai(server: DecisionServer, body: dict, faults: set[str]) -> dict:  # noqa: C901  one branch for each fault
    """Return the reply of the OpenAI wire."""
    state, questions = body.get("input"), body.get("questions")
    if state is None or not isinstance(questions, list) or not 1 <= len(questions) <= LIMITS["openai"][0]:
        raise Refused(400, "invalid_value", "input and 1 to 400 questions are required", ["body", "questions"])
    state = openai_state(state)
    answers = []
    for place, raw in enumerate(questions):
        question = asked(raw, "openai", ["body", "questions", place])
        refused = (
            server.model.rule(question).get("refuse") or "refuse_all" in faults or ("refuse" in faults and not place)
        )
        answer = {"type": "refusal"} if refused else one_answer(server, state, question, faults, place)
        pairs = spoiled(answer.pop("options", []), faults)
        if answer["type"] == "choice":
            answer["probabilities"] = [{"value": value, "probability": p} for value, p in pairs]
        elif answer["type"] == "score":
            first = 1 if "one_based" in faults else 0
            answer["probabilities"] = [
                {"value": n + first, "label": level["label"] if isinstance(level, dict) else level, "probability": p}
                for n, (level, p) in enumerate(pairs)
            ]
        answers.append(answer | {"name": None if "no_name" in faults else question["name"]})
    if "wrong_type" in faults:
        answers[0] = {
            "type": "choice",
            "choice": "yes",
            "confidence": 1.0,
            "probabilities": [],
            "name": answers[0]["name"],
        }
    if "missing" in faults:
        answers.pop()
    if "duplicate" in faults:
        answers.append(answers[0])
    if "extra" in faults:
        answers.append({"type": "predicate", "probability": 0.5, "name": "nobody-asked"})
    if "order" in faults:
        answers.reverse()
    used = usage(body, state, faults)
    details = {
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    reply = {"model": model_name(server, body, faults), "answers": answers}
    if used is not None:
        reply["usage"] = used | details | {"total_tokens": used["input_tokens"]}
    return reply | ({"future": {"field": 1}} if "extra_fields" in faults else {})


def openai_state(state: object) -> object:
    """Return the content of an `input`: the text, or the first JSON object in it."""
    if isinstance(state, list):
        parts = [part for message in state if isinstance(message, dict) for part in content_parts(message)]
        state = "\n".join(parts)
    if isinstance(state, str) and state.lstrip().startswith("{"):
        try:
            return json.loads(state)
        except ValueError:
            return state
    return state


def content_parts(message: dict) -> list[str]:
    content = message.get("content") or message.get("output") or ""
    if isinstance(content, str):
        return [content]
    return [text_of(part.get("text") or part.get("data") or "") for part in content if isinstance(part, dict)]


def answer_system_one(server: DecisionServer, body: dict, faults: set[str]) -> dict:  # noqa: C901  one branch for each fault
    """Return the reply of the System One wire."""
    for name, kinds in (("state", (str, dict, list)), ("questions", dict), ("model", str)):
        if not isinstance(body.get(name), kinds):
            raise Refused(422, "missing", "Field required", ["body", name])
    questions = body["questions"]
    if not questions:
        raise Refused(422, "too_short", "At least one question is required", ["body", "questions"])
    answers: dict[str, dict] = {}
    for place, (name, raw) in enumerate(questions.items()):
        question = asked(raw, "systemone", ["body", "questions", name])
        answer = one_answer(server, body["state"], question, faults, place)
        pairs = spoiled(answer.pop("options", []), faults)
        if answer["type"] == "choice":
            answer["probabilities"] = dict(pairs)
        elif answer["type"] == "score":
            first = 1 if "one_based" in faults else 0
            answer["probabilities"] = {str(n + first): p for n, (_, p) in enumerate(pairs)}
            answer["legend"] = {str(n + first): level for n, (level, _) in enumerate(pairs)}
        answers[name] = answer
    if "wrong_type" in faults:
        answers[next(iter(answers))] = {"type": "box", "box": {}, "confidence": None}
    if faults & {"missing", "refuse"}:
        answers.pop(next(reversed(answers)))
    if "refuse_all" in faults:
        answers = {}
    if "extra" in faults:
        answers["nobody-asked"] = {"type": "noul", "noul": 0.5}
    reply = {"model": model_name(server, body, faults), "answers": answers}
    used = usage(body, body["state"], faults)
    if used is not None:
        reply["usage"] = used
    return reply | ({"x_future": 1} if "extra_fields" in faults else {})
