"""How the test server speaks each provider's wire: requests as it understands them, answers and refusals as documented.

The path decides which wire it is, see `wire_of`. The shapes of bodies, and where they are documented:

- OpenAI and Azure, `.../chat/completions`: https://platform.openai.com/docs/api-reference/chat
- Anthropic, `/v1/messages`: https://platform.claude.com/docs/en/api/messages
- Amazon Bedrock, `/model/MODEL/converse`: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse
- Google, `/v1beta/models/MODEL:generateContent`: https://ai.google.dev/api/generate-content
- Ollama, `/api/chat`, `/api/show`, `/api/tags`: https://docs.ollama.com/openapi.yaml
"""

import json
from collections.abc import Mapping
from typing import Any

Body = Mapping[str, Any]

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
_FORMAT = {"json_schema": "json_schema", "json_object": "json_mode"}
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
    "sentences": "support",
    "label": "choice",
    "answer": "passage_question",
}
"""The first of these among a schema's fields tells its kind."""


def wire_of(path: str) -> str:
    """The wire of a request to this path."""
    if path.endswith("/messages"):
        return "anthropic"
    if path.endswith(":generateContent"):
        return "google"
    if path.endswith("/converse"):
        return "bedrock"
    return "ollama" if path.endswith("/api/chat") else "openai"


def messages_of(body: Body) -> list[dict[str, str]]:
    """The messages of any wire, a system part first, each with its whole text."""
    if "contents" in body:
        parts = [*({"role": "system", **body[name]} for name in ("systemInstruction",) if name in body)]
        roles = {"model": "assistant"}
        return [
            {"role": roles.get(each["role"], each["role"]), "content": _text(each["parts"])}
            for each in (*parts, *body["contents"])
        ]
    system = body.get("system")
    first = [] if system is None else [{"role": "system", "content": system}]
    return [{"role": each["role"], "content": _text(each["content"])} for each in (*first, *body["messages"])]


def schema_name(body: Body) -> str | None:
    """The name of the JSON Schema that a request holds as a parameter; None without one."""
    if "output_config" in body:
        return _name_of(body["output_config"]["format"]["schema"])
    if isinstance(body.get("format"), dict):
        return _name_of(body["format"])
    if "outputConfig" in body:
        return str(body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["name"])
    if "responseJsonSchema" in body.get("generationConfig", {}):
        return _name_of(body["generationConfig"]["responseJsonSchema"])
    name: str | None = ((body.get("response_format") or {}).get("json_schema") or {}).get("name")
    return name


def structured(body: Body) -> str:
    """How a request asks for JSON by a parameter; empty without one."""
    if {"output_config", "outputConfig"} & body.keys() or isinstance(body.get("format"), dict):
        return "json_schema"
    config = body.get("generationConfig", {})
    if body.get("format") == "json" or "responseMimeType" in config:
        return "json_schema" if "responseJsonSchema" in config else "json_mode"
    return _FORMAT.get((body.get("response_format") or {}).get("type", ""), "")


def holds(body: Body, name: str) -> bool:
    """Whether a request holds what a server refuses under this name."""
    if name == "system":
        return any(message["role"] == "system" for message in messages_of(body))
    if name in {"json_schema", "json_object"}:
        return bool((body.get("response_format") or {}).get("type") == name)
    if name == "cache_control":
        return '"cache_control"' in json.dumps(body)
    return name in body or any(name in part for part in body.values() if isinstance(part, dict))


def refusal_of(name: str, wire: str) -> str:
    """The body of a 400 that refuses it."""
    if wire == "ollama":
        return json.dumps({"error": f'"test-model" does not support {"thinking" if name == "think" else name}'})
    if wire == "bedrock":
        # as https://github.com/BerriAI/litellm/issues/27846 and https://github.com/run-llama/llama_index/issues/23211
        extra = "The model returned the following errors: output_config.format: Extra inputs are not permitted"
        shown = "system messages" if name == "system" else f"the {name} field"
        said = extra if name == "outputConfig" else f"This model doesn't support {shown}."
        return json.dumps({"message": said})
    if wire == "google":
        said = _GOOGLE_SAYS.get(name, f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
        return json.dumps({"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}})
    if wire == "anthropic":
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


_GOOGLE_SAYS = {
    "responseMimeType": "JSON mode is not enabled for models/test-model",
    "thinkingConfig": "Budget 0 is invalid. This model only works in thinking mode.",
    "safetySettings": "Invalid value at 'safety_settings[0].threshold', \"OFF\"",
    "system": "Developer instruction is not enabled for models/test-model",
}
_GOOGLE_REASONS = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}


def google(text: str, body: Body, *, model: str, finish: str, refusal: str | None) -> dict[str, object]:
    """A reply of Google's, with a thought before the text."""
    parts = [{"text": "I think.", "thought": True}, {"text": text}]
    candidate: dict[str, object] = {
        "content": {"role": "model", "parts": parts},
        "finishReason": _GOOGLE_REASONS[finish],
        "index": 0,
    }
    if refusal:
        candidate = {"finishReason": "PROHIBITED_CONTENT", "finishMessage": refusal, "index": 0}
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": tokens(body),
            "candidatesTokenCount": len(text) // 4,
            "thoughtsTokenCount": 1,
            "totalTokenCount": tokens(body) + len(text) // 4 + 1,
        },
        "modelVersion": model,
        "responseId": "mAitaLmkHPPlz7IPvtfUqQ4",
    }


_BEDROCK_REASONS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "content_filtered"}


def bedrock(text: str, body: Body, *, finish: str, refusal: str | None) -> dict[str, object]:
    """A reply of Amazon Bedrock's, with reasoning before the text."""
    reasoning = {"reasoningContent": {"reasoningText": {"text": "I think."}}}
    made = len(text) // 4 + 1
    return {
        "output": {"message": {"role": "assistant", "content": [reasoning, {"text": refusal or text}]}},
        "stopReason": "guardrail_intervened" if refusal else _BEDROCK_REASONS[finish],
        "usage": {"inputTokens": tokens(body), "outputTokens": made, "totalTokens": tokens(body) + made},
        "metrics": {"latencyMs": 551},
    }


def ollama(text: str, body: Body, *, model: str, finish: str) -> dict[str, object]:
    """A reply of Ollama."""
    return {
        "model": model,
        "created_at": "2026-11-23T08:52:19.385406455Z",
        "message": {"role": "assistant", "content": text},
        "done": True,
        "done_reason": finish,
        "total_duration": 4_883_583_458,
        "load_duration": 1_334_875,
        "prompt_eval_count": tokens(body),
        "prompt_eval_duration": 342_546_000,
        "eval_count": len(text) // 4 + 1,
        "eval_duration": 4_535_599_000,
    }


OLLAMA_SHOW: dict[str, Any] = {
    "parameters": "temperature 0.7\nnum_ctx 2048",
    "details": {"format": "gguf", "family": "qwen3", "parameter_size": "8.2B", "quantization_level": "Q4_K_M"},
    "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960, "qwen3.block_count": 36},
    "capabilities": ["completion", "tools", "thinking"],
}
"""What `/api/show` answers for a model, without its licence and template."""


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
