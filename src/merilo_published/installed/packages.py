"""Texts of prompts of the installed ragas and DeepEval, each made by the package's own objects and functions."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from merilo.judging.json_types import as_list, as_object
from merilo_published.installed.prompts import ONE_TEXT
from merilo_published.replies import Listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo_published.installed.prompts import PackageFunction, Prompt

_LOCK: Final = Lock()
_MAX_TURNS: Final = 100
_WORDS: Final = "deepeval.metrics.base_metric:Verdict"
_RENDER: Final = "deepeval.templates.resolver:resolve_template"


class _Recorded(BaseException):
    """Ends a request that is only recorded. Packages do not catch it, unlike an Exception."""


def load(package: str, prompt: Prompt) -> None:
    """Import the objects that make a prompt. Raises whatever the package raises at import."""
    for source in (prompt.source, *(function.source for function in prompt.functions)):
        imported(source)
    if package == "deepeval":
        imported(_RENDER)
    if prompt.structured:
        _recorder()


def prompt_text(package: str, prompt: Prompt, values: Mapping[str, Any]) -> str:
    """Return the text of a prompt of a package, filled with the values of merilo's request."""
    return ragas_text(prompt, values) if package == "ragas" else deepeval_text(prompt, values)


def ragas_text(prompt: Prompt, values: Mapping[str, Any]) -> str:
    """Return the text of a prompt object of the package, filled with the values of merilo's request."""
    arguments = tuple((name, values[value]) for name, value in prompt.arguments.items())
    made = _ragas_object(prompt.source, arguments, prompt.attribute)
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
    model = _ragas_object(prompt.source, (), prompt.attribute).output_model
    with _LOCK:
        found: list[tuple[str, str]] = _recorder()(text, model, replies)
    return found


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
def _ragas_object(source: str, arguments: tuple[tuple[str, str], ...], attribute: str) -> Any:
    made = imported(source)(**dict(arguments))
    return getattr(made, attribute) if attribute else made


def forget() -> None:
    """Clear the caches of the package's objects."""
    _ragas_object.cache_clear()
    _recorder.cache_clear()


def deepeval_text(prompt: Prompt, values: Mapping[str, Any]) -> str:
    """Return a template of the package, filled with the values of merilo's request."""
    given = {**values, ONE_TEXT: False}
    fields = {name: _with_words(value_of(given, value)) for name, value in prompt.fields.items()}
    for function in prompt.functions:
        fields |= _results(function, given)
    class_name = prompt.source.partition(":")[2]
    text: str = imported(_RENDER)("metrics", class_name, prompt.attribute, multimodal=False, strict=True, **fields)
    return text


def _with_words(value: Any) -> Any:
    """Return a list of verdicts with members of DeepEval's enumeration as words, because its prompt shows them so."""
    listed = [as_object(each) for each in as_list(value) or ()]
    verdicts = [each for each in listed if each is not None]
    if not verdicts:
        return value
    words = imported(_WORDS)
    return [{**each, "verdict": words(each["verdict"])} for each in verdicts]


def _results(function: PackageFunction, values: Mapping[str, Any]) -> dict[str, Any]:
    found = imported(function.source)(*(value_of(values, value) for value in function.values))
    if not function.fields:
        return dict(found)
    return dict(zip(function.fields, found if len(function.fields) > 1 else (found,), strict=True))


def value_of(values: Mapping[str, Any], value: str) -> Any:  # Any: what a package takes
    """Return a value as `Prompt` describes it."""
    if value.startswith("="):
        return value[1:]
    if not value.startswith("["):
        return values[value]
    found = values[value[1:-1]]
    return list(found.items) if isinstance(found, Listed) else json.loads(found)


def imported(source: str) -> Any:  # Any: an object of a package that merilo does not depend on
    """Return the object that `module:name` names."""
    module, _, name = source.partition(":")
    return getattr(import_module(module), name)
