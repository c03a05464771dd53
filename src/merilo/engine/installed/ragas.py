"""Prompts of the installed ragas: their texts, and the conversation in which its client would send them."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from merilo.engine.installed.values import imported, value_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.engine.installed.prompts import Prompt

_LOCK: Final = Lock()
_MAX_TURNS: Final = 100


class _Recorded(BaseException):
    """Ends a request that is only recorded. Packages do not catch it, unlike an Exception."""


def prompt_text(prompt: Prompt, values: Mapping[str, Any]) -> str:
    """Return the text of a prompt object of the package, filled with the values of merilo's request."""
    arguments = tuple((name, values[value]) for name, value in prompt.arguments.items())
    made = _made(prompt.source, arguments, prompt.attribute)
    if isinstance(made, str):
        return made.format(**{name: value_of(values, value) for name, value in prompt.fields.items()})
    if "**" in prompt.fields:
        given = made.input_model(**value_of(values, prompt.fields["**"]))
    else:
        given = made.input_model(**{name: value_of(values, value) for name, value in prompt.fields.items()})
    if hasattr(made, "process_input"):
        given = made.process_input(given)
    text: str = made.to_string(given)
    return text


def conversation(prompt: Prompt, text: str, replies: Sequence[str]) -> list[tuple[str, str]]:
    """Return role and text of the messages that ragas sends through instructor after these unreadable replies.

    ragas's own client runs on a transport that gives the replies and sends nothing.
    """
    model = _made(prompt.source, (), prompt.attribute).output_model
    with _LOCK:
        found: list[tuple[str, str]] = _recorder()(text, model, replies)
    return found


def load(prompt: Prompt) -> None:
    """Import the objects that make a prompt. Raises whatever the package raises at import."""
    imported(prompt.source)
    if prompt.structured:
        _recorder()


@cache
def _recorder() -> Any:  # Any: objects of packages that merilo does not depend on
    httpx: Any = import_module("httpx")  # a dependency of the package
    client_class = imported("openai:OpenAI")
    adapter = imported("ragas.llms.adapters:get_adapter")("instructor")
    sent: list[list[dict[str, str]]] = []
    coming: list[str] = []

    def reply(request: Any) -> Any:
        sent.append(json.loads(request.content)["messages"])
        if len(sent) > len(coming):
            raise _Recorded
        message = {"role": "assistant", "content": coming[len(sent) - 1]}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        body = {"id": "recorded", "object": "chat.completion", "created": 0, "model": "gpt-4o", "choices": [choice]}
        return httpx.Response(200, json=body)

    http = httpx.Client(transport=httpx.MockTransport(reply), trust_env=False)
    client = client_class(api_key="none", base_url="http://127.0.0.1:9/v1", http_client=http, max_retries=0)
    llm = adapter.create_llm(client, "gpt-4o", "openai", max_retries=_MAX_TURNS)

    def messages(text: str, model: object, replies: Sequence[str]) -> list[tuple[str, str]]:
        sent.clear()
        coming[:] = replies
        try:
            llm.generate(text, model)
        except _Recorded:
            return [(each["role"], each["content"]) for each in sent[-1]]
        raise ValueError("The installed instructor accepts a reply that this definition cannot read.")

    return messages


@cache
def _made(source: str, arguments: tuple[tuple[str, str], ...], attribute: str) -> Any:
    made = imported(source)(**dict(arguments))
    return getattr(made, attribute) if attribute else made


def forget() -> None:
    """Clear the caches of the package's objects."""
    _made.cache_clear()
    _recorder.cache_clear()
