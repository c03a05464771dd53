"""Evaluation of a pipeline: asks it every question, then judges its answers as `evaluate` does.

An error of the pipeline becomes a sample with the error in its metadata, for which every metric fails. Outputs can be
stored in a JSON Lines file, so that a repeated call asks only what is missing.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.adapters.tables import is_of
from merilo.cancellation import in_thread
from merilo.commands.evaluate.preparation import checked, definitions_of, judges_of
from merilo.commands.evaluate.run import run_evaluation
from merilo.data import check
from merilo.data.history import USER
from merilo.data.load import load
from merilo.data.measures import KNOWN, MEASURED
from merilo.data.messages import ASKED, Message, are_messages, messages_in, streamed
from merilo.data.objects import Role, plain, role_of
from merilo.data.sample import PIPELINE_ERROR, BadRecord, Dataset, Sample
from merilo.data.sanitize import clean
from merilo.engine.progress import ProgressDispatcher
from merilo.errors import DataError, Problem, RunError, UsageError
from merilo.numbers import count
from merilo.runs.directory import RUNS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Mapping

    from merilo.commands.evaluate.options import PipelineOptions
    from merilo.runs.run import Run

    Ask = Callable[[str], Awaitable[object]]


_OUTPUTS: Final = RUNS.parent / "pipeline-outputs.jsonl"
_FIELDS: Final = ("response", "retrieved_contexts", "retrieved_context_ids", "language", "metadata")
"""Fields that a pipeline's output may fill."""
_ONLY_TEXT: Final = (
    "The chain returned only a text. Return its documents too: "
    "RunnablePassthrough.assign(context=retriever).assign(answer=chain)."
)
_TIMED: Final = {key for key, each in KNOWN.items() if each.name == KNOWN[MEASURED].name}
_MAX_MESSAGE: Final = 500
_IF_DICT: Final = ' If the pipeline takes a dict, name the key of the question: calls=Calls(question_as="input").'


async def run_pipeline(pipeline: object, options: PipelineOptions) -> Run:
    """Ask the pipeline all questions, then evaluate its outputs. Raises what `run_evaluation` raises.

    Raises DataError if the pipeline fails on every question.
    """
    if options.calls.concurrency < 1:
        raise UsageError(f"calls.concurrency must be at least 1, got {options.calls.concurrency}.")
    valid = checked(options)  # a judge or metric that does not exist is refused before the pipeline is asked
    judges_of(valid)
    definitions_of(valid.metrics or ())
    given: Any = options.questions  # Any: texts or data
    if not isinstance(given, str) and check.is_ordered(given) and not isinstance(given, Dataset):
        given = [{"user_input": each} if isinstance(each, str) else each for each in given]
    questions = load(given, **options.of_records)
    items = list(questions)
    path = None if options.calls.version is None else Path(options.calls.outputs or _OUTPUTS)
    outputs = PipelineOutputs(path, errors=not options.storage.retry_failed)
    caller = PipelineCaller(pipeline, options.calls.question_as)
    await _ask_all([item for item in items if isinstance(item, Sample)], caller, outputs, options)
    found = [_answered(item, outputs, options) if isinstance(item, Sample) else item for item in items]
    samples = [item for item in found if isinstance(item, Sample)]
    errors = [error for sample in samples if (error := sample.metadata.get(PIPELINE_ERROR)) is not None]
    if samples and len(errors) == len(samples):
        advice = _IF_DICT if options.calls.question_as is None and hasattr(pipeline, "invoke") else ""
        failed = f"The pipeline failed on {count(len(samples), 'question')}."
        raise DataError(f"{failed} The first error: {errors[0]}{advice}")
    answers = [item for item in samples if item.response is not None]
    if _is_chain(pipeline) and answers and all(item.retrieved_contexts is None for item in answers):
        questions.columns.note = lambda: _ONLY_TEXT
    answered = Dataset(questions.name, lambda: iter(found), questions.columns)
    return await run_evaluation(answered, replace(options, mapping=None, limit=None))


async def _ask_all(
    samples: list[Sample], caller: PipelineCaller, outputs: PipelineOutputs, options: PipelineOptions
) -> None:
    """Ask each question whose output is unknown, equal ones once."""
    wanted = {
        _key(sample, options): sample.require("user_input") for sample in samples if sample.user_input is not None
    }
    missing = {key: question for key, question in wanted.items() if outputs.get(key) is None}
    progress = ProgressDispatcher(options.progress)
    if missing and len(missing) < len(wanted):
        progress.note(f"{count(len(wanted) - len(missing), 'output')} of the pipeline came from an earlier call.")
    waiting = iter(missing.items())

    async def work() -> None:
        for key, question in waiting:
            began = time.perf_counter()
            found = await output_of(caller.ask(question), options.reading.tools, options.mapping)
            outputs.add(key, _timed(found, time.perf_counter() - began))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(1 if caller.alone else options.calls.concurrency, len(missing))):
            group.create_task(work())


def _timed(output: PipelineOutput, seconds: float) -> PipelineOutput:
    """Return the output with the seconds of its call, unless it failed or states its time."""
    own = output.fields.get("metadata", {})
    if output.error or own.keys() & _TIMED:
        return output
    return replace(output, fields={**output.fields, "metadata": {**own, MEASURED: round(seconds, 4)}})


def _key(sample: Sample, options: PipelineOptions) -> str:
    known_by = json.dumps([options.calls.version, sample.require("user_input")])
    return hashlib.blake2b(known_by.encode(), digest_size=16).hexdigest()


async def output_of(
    call: Awaitable[object], tools: Collection[str] | None = None, mapping: Mapping[str, str] | None = None
) -> PipelineOutput:
    """Return the result of a call of the pipeline as fields of a sample, or the message of its error."""
    try:
        return PipelineOutput(fields_of(await call, tools, mapping))
    except DataError as error:
        return _failed(f"The pipeline's output cannot be read: {error}")
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _raised(error)  # by the pipeline: this evaluation is not cancelled
    except Exception as error:  # noqa: BLE001  the user's code may raise anything; the other questions continue
        return _raised(error)


def _raised(error: BaseException) -> PipelineOutput:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  as above
        text = "its message cannot be read"
    return _failed(f"The pipeline raised {type(error).__name__}: {text}")


def _failed(message: str) -> PipelineOutput:
    return PipelineOutput({}, clean(message.replace("\0", "\\0"))[:_MAX_MESSAGE])


def fields_of(
    output: object, tools: Collection[str] | None = None, mapping: Mapping[str, str] | None = None
) -> Mapping[str, Any]:
    """Return the fields of a sample in a pipeline's output. Raises DataError.

    An output is a text, a pair of a text and contexts, a list of contexts, a dict, or an object that `load` reads.
    """
    *_, sample = load([_as_record(output)], tools=tools, mapping=mapping)  # the last answer of a conversation
    if isinstance(sample, BadRecord):
        raise DataError.of(*(replace(problem, source=None, line=None) for problem in sample.problems))
    return {name: value for name, value in sample.to_record().items() if name in _FIELDS}


def _as_record(output: object) -> Any:  # Any: a record, checked by `load`
    if isinstance(output, str) or role_of(output) is Role.TEXT:
        return {"response": plain(output)}
    if isinstance(output, Iterator):
        output = [*cast("Iterator[object]", output)]
    if check.is_list(output):
        if messages := [*output] if are_messages(output) else streamed(output):
            asked = [] if any(each.role == USER for each in messages_in(messages) or ()) else [Message(ASKED)]
            return {"messages": [*asked, *messages]}
        is_pair = len(output) == 2 and isinstance(output[0], str)
        if is_pair and (isinstance(output, tuple) or check.is_list(output[1])):
            return {"response": output[0], "retrieved_contexts": plain(output[1])}
        return {"retrieved_contexts": plain(output)}
    if output is None or isinstance(output, (int, float, bytes)):
        raise DataError.of(Problem("a text, contexts or a record", check.shown(output)))
    return output


def _answered(sample: Sample, outputs: PipelineOutputs, options: PipelineOptions) -> Sample | BadRecord:
    """Return the sample with the output for its question, or with the pipeline's error and no answer."""
    if sample.user_input is None:
        return BadRecord((Problem("a question", "none", "user_input"),))
    output = outputs.get(_key(sample, options))
    record: dict[str, Any] = {**sample.to_record()}
    own = cast("dict[str, Any]", record.pop("metadata", {}))
    for name in ("response", "retrieved_contexts", "retrieved_context_ids"):
        record.pop(name, None)
    fields = {} if output is None else {**output.fields}
    own = {**own, **fields.pop("metadata", {})}
    if output is not None and output.error is not None:
        own[PIPELINE_ERROR] = output.error
    return Sample.from_record(
        {**fields, **record, **{n: v for n, v in fields.items() if n != "language"}, "metadata": own}
    )


# -- stored outputs ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PipelineOutput:
    """The fields of a sample that a pipeline returned, or the message of its error."""

    fields: Mapping[str, Any]  # Any: JSON
    error: str | None = None


class PipelineOutputs:
    """The known outputs. `path`: the file that holds them; None: they are kept in memory only.

    `errors`: also return outputs that are errors. Raises RunError if the file cannot be read or written.
    """

    def __init__(self, path: Path | None, *, errors: bool) -> None:
        self._path = path
        self._known: dict[str, PipelineOutput] = {}
        self._torn = False
        if path is None or not path.exists():
            return
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise RunError(f"Cannot read the outputs of the pipeline in {path} ({error}).") from error
        self._torn = bool(text) and not text.endswith("\n")
        for line in text.split("\n"):
            with suppress(
                ValueError, KeyError, TypeError, AttributeError, RecursionError
            ):  # a line that is torn, or of something else
                record = json.loads(line)
                key, failed = record["key"], record.get("error")
                if failed is None or errors:
                    self._known[key] = PipelineOutput(record.get("fields", {}), failed)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> PipelineOutput | None:
        """Return the output with this key; None if it is unknown."""
        return self._known.get(key)

    def add(self, key: str, output: PipelineOutput) -> None:
        """Store an output. It is in the file when this returns."""
        self._known[key] = output
        if self._path is None:
            return
        record = {"key": key, "fields": output.fields} if output.error is None else {"key": key, "error": output.error}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(("\n" if self._torn else "") + json.dumps(record, ensure_ascii=False) + "\n")
        except OSError as error:
            raise RunError(f"Cannot write the outputs of the pipeline to {self._path} ({error}).") from error
        self._torn = False


# -- calls ---------------------------------------------------------------------------------------------

_is_haystack: Final = is_of("haystack", "PipelineBase", "Pipeline", "AsyncPipeline")
_is_dspy: Final = is_of("dspy", "Module")
_is_chain: Final = is_of("langchain_core", "Runnable")
_METHODS: Final = (
    ("ainvoke", "invoke"),
    ("aquery", "query"),
    ("aretrieve", "retrieve"),
    ("kickoff_async", "kickoff"),
)
"""Methods of LangChain's runnables, LlamaIndex's query engines and retrievers, and crews: async, otherwise blocking."""
_SHOWN_OUTPUTS: Final = frozenset({"documents", "replies", "answers"})


def of_package(module: str, name: str) -> Any:  # Any: of a package that is loaded, as its object was made
    """Return an object of a module that is imported."""
    return getattr(sys.modules[module], name)


@dataclass(frozen=True)
class _Agent:
    """How the agents of a framework are asked. `alone`: an agent has one memory, so questions go one after another."""

    is_one: Callable[[object], bool]
    ask: Callable[[Any, str], object]  # Any: the user's object, here and below
    blocks: bool = False
    alone: bool = False


_AGENTS: Final = (
    _Agent(
        is_of("langgraph", "Pregel"),
        lambda agent, text: agent.ainvoke({"messages": [{"role": "user", "content": text}]}),
    ),
    _Agent(is_of("llama_index", "BaseWorkflowAgent", "AgentWorkflow"), lambda agent, text: agent.run(text)),
    _Agent(is_of("llama_index", "BaseChatEngine"), lambda agent, text: agent.achat(text, []), alone=True),
    _Agent(
        is_of("haystack", "Agent"),
        lambda agent, text: agent.run([of_package("haystack.dataclasses", "ChatMessage").from_user(text)]),
        blocks=True,
    ),
    _Agent(is_of("pydantic_ai", "AbstractAgent"), lambda agent, text: agent.run(text)),
    _Agent(is_of("agents", "Agent"), lambda agent, text: of_package("agents", "Runner").run(agent, text)),
    _Agent(
        is_of("smolagents", "MultiStepAgent"),
        lambda agent, text: agent.run(text, return_full_result=True),
        blocks=True,
        alone=True,
    ),
)


class PipelineCaller:
    """Asks a pipeline one question after another; a blocking call runs in its own thread.

    Types of LangChain, LlamaIndex, Haystack and DSPy are recognised by the names of their package and class, or by
    their methods, and never imported. `question_as`: the name under which the pipeline takes the question. Raises
    UsageError for an object that cannot be called.
    """

    def __init__(self, pipeline: object, question_as: str | None) -> None:
        self.alone = False
        """True if questions must go one after another."""
        self.ask: Ask = (
            self._haystack(pipeline, question_as) if _is_haystack(pipeline) else self._of(pipeline, question_as)
        )

    def _of(self, pipeline: Any, question_as: str | None) -> Ask:  # Any: the user's object
        kind = None if question_as else next((each for each in _AGENTS if each.is_one(pipeline)), None)
        if kind is not None:
            return self._agent(kind, pipeline)
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

    def _agent(self, kind: _Agent, agent: Any) -> Ask:  # Any: the user's object
        self.alone = kind.alone

        async def ask(question: str) -> object:
            found = kind.ask(agent, question) if not kind.blocks else await in_thread(kind.ask, agent, question)
            return await found if inspect.isawaitable(found) else found

        return ask

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
            found = await found if inspect.isawaitable(found) else found
            text = getattr(found, "get_response", None)  # LlamaIndex: a response that is still streamed
            return await text() if inspect.iscoroutinefunction(text) else found

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
        kinds = [inputs[part][name].get("type") for part, name in found]
        if found and all(kind is str or kind is Any for kind in kinds):
            return found
    listed = ", ".join(f"{component}.{name}" for component, own in inputs.items() for name in own)
    raise UsageError(
        'Name the inputs of the pipeline that take the question, separated by commas: question_as="COMPONENT.INPUT". '
        f"The pipeline has {listed or 'no input'}."
    )


def _shown_components(pipeline: Any) -> set[str]:
    """Return the components whose output belongs to the sample; a retriever before a ranker does not."""
    outputs: Mapping[str, Mapping[str, object]] = pipeline.outputs(include_components_with_connected_outputs=True)
    found = {name for name, own in outputs.items() if not _SHOWN_OUTPUTS.isdisjoint(own)}
    giving = {name for name in found if "documents" in outputs[name]}
    earlier = {first for first, second in set(pipeline.graph.edges()) if first in giving and second in giving}
    return found - earlier
