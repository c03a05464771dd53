"""Prompts of the installed DeepEval: its templates, rendered by its own function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.engine.installed.prompts import ONE_TEXT
from merilo.engine.installed.values import imported, value_of
from merilo.judging.json_types import as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.engine.installed.prompts import PackageFunction, Prompt

_WORDS: Final = "deepeval.metrics.base_metric:Verdict"
_RENDER: Final = "deepeval.templates.resolver:resolve_template"


def prompt_text(prompt: Prompt, values: Mapping[str, Any]) -> str:
    """Return a template of the package, filled with the values of merilo's request."""
    given = {**values, ONE_TEXT: False}
    fields = {name: _with_words(value_of(given, value)) for name, value in prompt.fields.items()}
    for function in prompt.functions:
        fields |= _made(function, given)
    class_name = prompt.source.partition(":")[2]
    text: str = imported(_RENDER)("metrics", class_name, prompt.attribute, multimodal=False, strict=True, **fields)
    return text


def load(prompt: Prompt) -> None:
    """Import the objects that make a prompt. Raises whatever the package raises at import."""
    for source in (_RENDER, prompt.source, *(function.source for function in prompt.functions)):
        imported(source)


def _with_words(value: Any) -> Any:
    """Return a list of verdicts with members of DeepEval's enumeration as words, because its prompt shows them so."""
    listed = [as_object(each) for each in as_list(value) or ()]
    verdicts = [each for each in listed if each is not None]
    if not verdicts:
        return value
    words = imported(_WORDS)
    return [{**each, "verdict": words(each["verdict"])} for each in verdicts]


def _made(function: PackageFunction, values: Mapping[str, Any]) -> dict[str, Any]:
    found = imported(function.source)(*(value_of(values, value) for value in function.values))
    if not function.fields:
        return dict(found)
    return dict(zip(function.fields, found if len(function.fields) > 1 else (found,), strict=True))
