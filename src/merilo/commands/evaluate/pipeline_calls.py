"""Calls of the user's pipeline: a function, or an object of LangChain, LlamaIndex, Haystack or DSPy.

Types are recognised by the names of their package and class, or by their methods, and never imported.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from merilo.adapters.tables import is_of
from merilo.cancellation import in_thread
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Ask = Callable[[str], Awaitable[object]]

_is_haystack: Final = is_of("haystack", "PipelineBase", "Pipeline", "AsyncPipeline")
_is_dspy: Final = is_of("dspy", "Module")
_METHODS: Final = (("ainvoke", "invoke"), ("aquery", "query"), ("aretrieve", "retrieve"))
"""Methods of LangChain's runnables and of LlamaIndex's query engines and retrievers: async, otherwise blocking."""
_OUTPUTS: Final = frozenset({"documents", "replies", "answers"})


class PipelineCaller:
    """Asks a pipeline one question after another; a blocking call runs in its own thread.

    `question_as`: the name under which the pipeline takes the question. Raises UsageError for an object that cannot be
    called.
    """

    def __init__(self, pipeline: object, question_as: str | None) -> None:
        self.ask: Ask = (
            self._haystack(pipeline, question_as) if _is_haystack(pipeline) else self._of(pipeline, question_as)
        )

    def _of(self, pipeline: Any, question_as: str | None) -> Ask:  # Any: the user's object
        if _is_dspy(pipeline):
            name = question_as or "question"
            call = self._async(pipeline.acall if hasattr(pipeline, "aforward") else pipeline)
            return lambda question: call(**{name: question})
        for names in _METHODS:
            method = next((getattr(pipeline, name) for name in names if callable(getattr(pipeline, name, None))), None)
            if method is not None:
                return _asking(self._async(method), question_as, as_dict=True)
        if not callable(pipeline):
            raise UsageError(
                "The pipeline must be a function of the question, or an object with invoke, query, retrieve or run; "
                f"got an object of type {type(pipeline).__name__}."
            )
        return _asking(self._async(pipeline), question_as, as_dict=False)

    def _haystack(self, pipeline: Any, question_as: str | None) -> Ask:  # Any: a haystack.Pipeline
        places = _question_inputs(pipeline, question_as)
        shown = _shown_components(pipeline)
        call = self._async(getattr(pipeline, "run_async", pipeline.run))

        def ask(question: str) -> Awaitable[object]:
            data: dict[str, dict[str, str]] = {}
            for component, name in places:
                data.setdefault(component, {})[name] = question
            return call(data, include_outputs_from=shown)

        return ask

    def _async(self, function: Callable[..., object]) -> Callable[..., Awaitable[object]]:
        """Return the function as an async one; a blocking one runs in a thread."""
        inner = getattr(function, "__call__", None)  # noqa: B004  an object with an async __call__
        is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(inner)

        async def call(*args: object, **kwargs: object) -> object:
            if is_async:
                found = function(*args, **kwargs)
            else:
                found = await in_thread(partial(function, *args, **kwargs))
            return await found if inspect.isawaitable(found) else found

        return call


def _asking(call: Callable[..., Awaitable[object]], name: str | None, *, as_dict: bool) -> Ask:
    if name is None:
        return call
    return (lambda question: call({name: question})) if as_dict else (lambda question: call(**{name: question}))


def _question_inputs(pipeline: Any, question_as: str | None) -> list[tuple[str, str]]:
    """Return the inputs of the components that take the question: those named, or every mandatory input.

    Raises UsageError if there is none, or if a mandatory input takes no text.
    """
    inputs: Mapping[str, Mapping[str, Mapping[str, object]]] = pipeline.inputs()
    if question_as is not None:
        wanted = [tuple(part.strip().partition(".")[::2]) for part in question_as.split(",")]
        found = [(component, name) for component, name in wanted if name in inputs.get(component, {})]
        if len(found) == len(wanted):
            return found
    else:
        found = [(part, name) for part, own in inputs.items() for name, each in own.items() if each.get("is_mandatory")]
        if found and all(_takes_text(inputs[part][name].get("type")) for part, name in found):
            return found
    listed = ", ".join(f"{component}.{name}" for component, own in inputs.items() for name in own)
    raise UsageError(
        'Name the inputs of the pipeline that take the question, separated by commas: question_as="COMPONENT.INPUT". '
        f"The pipeline has {listed or 'no input'}."
    )


def _takes_text(kind: object) -> bool:
    return kind is str or kind is Any


def _shown_components(pipeline: Any) -> set[str]:
    """Return the components whose output belongs to the sample; a retriever before a ranker does not."""
    outputs: Mapping[str, Mapping[str, object]] = pipeline.outputs(include_components_with_connected_outputs=True)
    found = {name for name, own in outputs.items() if not _OUTPUTS.isdisjoint(own)}
    giving = {name for name in found if "documents" in outputs[name]}
    earlier = {first for first, second in set(pipeline.graph.edges()) if first in giving and second in giving}
    return found - earlier
