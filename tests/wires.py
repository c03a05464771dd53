"""How the test server speaks each provider's wire: requests as it understands them, answers and refusals as documented.

A wire is told by the path: `/v1/messages` is Anthropic's, every `.../chat/completions` OpenAI's or Azure's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Body = Mapping[str, Any]

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
_TELLING = {
    "grade": "relevance",
    "useful": "usefulness",
    "missing": "sufficiency",
    "addresses": "addresses",
    "noncommittal": "noncommittal",
    "statements": "statements",
    "parts": "parts",
    "answered": "answered",
    "entities": "entities",
    "mentioned": "mentions",
    "evidence": "support",
    "label": "choice",
}
"""The first of these among a schema's fields tells its kind."""


def is_anthropic(path: str) -> bool:
    """Whether a request to this path is one for Anthropic's Messages API."""
    return path.endswith("/messages")


def messages_of(body: Body) -> list[dict[str, str]]:
    """The messages of either wire, a system part first, each with its whole text."""
    system = body.get("system")
    first = [] if system is None else [{"role": "system", "content": system}]
    return [{"role": each["role"], "content": _text(each["content"])} for each in (*first, *body["messages"])]


def schema_name(body: Body) -> str | None:
    """The name of the JSON Schema that a request holds as a parameter; None without one."""
    if "output_config" in body:
        return _name_of(body["output_config"]["format"]["schema"])
    name: str | None = ((body.get("response_format") or {}).get("json_schema") or {}).get("name")
    return name


def holds(body: Body, name: str) -> bool:
    """Whether a request holds what a server refuses under this name."""
    if name == "system":
        return any(message["role"] == "system" for message in messages_of(body))
    if name in {"json_schema", "json_object"}:
        return bool((body.get("response_format") or {}).get("type") == name)
    if name == "cache_control":
        return '"cache_control"' in json.dumps(body)
    return name in body


def refusal_of(name: str, *, anthropic: bool) -> str:
    """The body of a 400 that refuses it."""
    if anthropic:
        unknown = f"{'output_config.format' if name == 'output_config' else name}: Extra inputs are not permitted"
        said = f"`{name}` is deprecated for this model." if name == "temperature" else unknown
        return json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": said}})
    if name == "system":
        return json.dumps({"error": {"message": "System role not supported"}})
    if name in {"json_schema", "json_object"}:
        said = f"'response_format.type' {name} is not supported"
        return json.dumps({"error": {"message": said, "param": "response_format"}})
    said = f"Unsupported parameter: '{name}' is not supported with this model."
    return json.dumps({"error": {"message": said, "param": name}})


def completion(
    text: str, body: Body, *, model: str, finish: str, refusal: str | None, choices: int
) -> dict[str, object]:
    """A chat completion with so many equal choices."""
    message = {"role": "assistant", "content": text}
    if refusal:
        message = {"role": "assistant", "content": None, "refusal": refusal}  # type: ignore[dict-item]  # as documented
    return {
        "id": "completion",
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": n, "message": message, "finish_reason": finish} for n in range(choices)],
        "usage": {"prompt_tokens": tokens(body), "completion_tokens": choices * (len(text) // 4 + 1)},
    }


def message(
    text: str, body: Body, *, model: str, finish: str, refusal: str | None, written: set[str]
) -> dict[str, object]:
    """A message of Anthropic's API; `written` holds the system parts that its prompt cache keeps."""
    kept = [part for part in body.get("system") or [] if isinstance(part, dict) and "cache_control" in part]
    size, known = sum(len(part["text"]) // 4 for part in kept), all(part["text"] in written for part in kept)
    written.update(part["text"] for part in kept)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": refusal or text}],
        "stop_reason": "refusal" if refusal else _STOP_REASONS[finish],
        "stop_sequence": None,
        "usage": {
            "input_tokens": tokens(body) - size,
            "output_tokens": len(text) // 4 + 1,
            "cache_creation_input_tokens": 0 if known else size,
            "cache_read_input_tokens": size if known else 0,
        },
    }


def tokens(body: Body) -> int:
    """The input tokens of a request: characters / 4."""
    return sum(len(each["content"]) for each in messages_of(body)) // 4


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(str(block["text"]) for block in content)


def _name_of(schema: Body) -> str:
    fields = schema["properties"]
    together = "verdicts" in fields
    if together:
        fields = fields["verdicts"]["items"]["properties"]
    kind = next(kind for field, kind in _TELLING.items() if field in fields)
    return f"{kind}_together" if together else kind
