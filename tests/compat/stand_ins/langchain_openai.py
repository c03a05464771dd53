"""Stands in for langchain_openai: chat models and embeddings as merilo calls them, by their methods."""

import json
import os
import urllib.request
from dataclasses import dataclass
from typing import Any

_ROLES = {"system": "system", "human": "user", "ai": "assistant"}


def _post(path: str, body: dict[str, Any]) -> Any:
    url = os.environ["OPENAI_BASE_URL"] + path
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request) as reply:  # noqa: S310
        return json.load(reply)


@dataclass
class AIMessage:
    content: str
    usage_metadata: dict[str, int]


class ChatOpenAI:
    def __init__(self, model: str = "gpt-3.5-turbo", temperature: float | None = None) -> None:
        self.model_name = model
        self.temperature = temperature

    def invoke(self, messages: list[tuple[str, str]]) -> AIMessage:
        turns = [{"role": _ROLES[role], "content": text} for role, text in messages]
        reply = _post("/chat/completions", {"model": self.model_name, "messages": turns})
        return AIMessage(reply["choices"][0]["message"]["content"], {"input_tokens": 1, "output_tokens": 1})


class OpenAIEmbeddings:
    def __init__(self, model: str = "text-embedding-ada-002", check_embedding_ctx_length: bool = True) -> None:  # noqa: ARG002
        self.model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        reply = _post("/embeddings", {"model": self.model, "input": texts})
        return [each["embedding"] for each in reply["data"]]
