"""Evaluation of a pipeline: asks it every question, then judges its answers as `evaluate` does.

An error of the pipeline becomes a sample with the error in its metadata, for which every metric fails.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.commands.evaluate.pipeline_calls import PipelineCaller
from merilo.commands.evaluate.pipeline_outputs import PipelineOutput, PipelineOutputs, output_key
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.evaluate.selection import definitions_of
from merilo.commands.evaluate.settings import checked, judges_of
from merilo.data import check
from merilo.data.load import load
from merilo.data.objects import Role, plain, role_of
from merilo.data.sample import PIPELINE_ERROR, BadRecord, Dataset, Sample
from merilo.engine.progress import ProgressDispatcher
from merilo.errors import DataError, Problem, UsageError
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import count
from merilo.runs.directory import RUNS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.commands.evaluate.pipeline_options import PipelineOptions
    from merilo.runs.run import Run

_OUTPUTS: Final = RUNS.parent / "pipeline-outputs.jsonl"
_FIELDS: Final = ("response", "retrieved_contexts", "retrieved_context_ids", "language", "metadata")
"""Fields that a pipeline's output may fill."""
_MAX_MESSAGE: Final = 500
_IF_DICT: Final = ' If the pipeline takes a dict, name the key of the question: calls=Calls(question_as="input").'


async def run_pipeline(pipeline: object, options: PipelineOptions) -> Run:
    """Ask the pipeline all questions, then evaluate its outputs. Raises what `run_evaluation` raises.

    Raises DataError if the pipeline fails on every question.
    """
    if options.calls.concurrency < 1:
        raise UsageError(f"calls.concurrency must be at least 1, got {options.calls.concurrency}.")
    _check(options)
    questions = _questions(options)
    items = list(questions)
    path = None if options.calls.version is None else Path(options.calls.outputs or _OUTPUTS)
    outputs = PipelineOutputs(path, errors=not options.storage.retry_failed)
    caller = PipelineCaller(pipeline, options.calls.question_as)
    await _ask_all([item for item in items if isinstance(item, Sample)], caller, outputs, options)
    found = [_answered(item, outputs, options) if isinstance(item, Sample) else item for item in items]
    takes_dicts = options.calls.question_as is None and hasattr(pipeline, "invoke")
    _check_some_answer(found, _IF_DICT if takes_dicts else "")
    answered = Dataset(questions.name, lambda: iter(found), questions.columns)
    return await run_evaluation(answered, replace(options, mapping=None, limit=None))


def _check(options: PipelineOptions) -> None:
    """Raise UsageError for a judge or metric that does not exist, before the pipeline is asked."""
    valid = checked(options)
    judges_of(valid)
    definitions_of(valid.metrics or ())


def _questions(options: PipelineOptions) -> Dataset:
    given: Any = options.questions  # Any: texts or data
    if not isinstance(given, str) and check.is_ordered(given) and not isinstance(given, Dataset):
        given = [{"user_input": each} if isinstance(each, str) else each for each in given]
    return load(given, mapping=options.mapping, language=options.language, limit=options.limit)


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
            outputs.add(key, await _output(caller, question))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(options.calls.concurrency, len(missing))):
            group.create_task(work())


def _key(sample: Sample, options: PipelineOptions) -> str:
    return output_key(options.calls.version, sample.require("user_input"))


async def _output(caller: PipelineCaller, question: str) -> PipelineOutput:
    """Return what the pipeline returns for a question as fields of a sample, or the message of its error."""
    try:
        return PipelineOutput(fields_of(await caller.ask(question)))
    except DataError as error:
        return PipelineOutput({}, _message(f"The pipeline's output cannot be read: {error}"))
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
    return PipelineOutput({}, _message(f"The pipeline raised {type(error).__name__}: {text}"))


def _message(text: str) -> str:
    return clean(text.replace("\0", "\\0"))[:_MAX_MESSAGE]


def fields_of(output: object) -> Mapping[str, Any]:
    """Return the fields of a sample in a pipeline's output. Raises DataError.

    An output is a text, a pair of a text and contexts, a list of contexts, a dict, or an object that `load` reads.
    """
    (sample,) = load([_as_record(output)])
    if isinstance(sample, BadRecord):
        raise DataError.of(*(replace(problem, source=None, line=None) for problem in sample.problems))
    return {name: value for name, value in sample.to_record().items() if name in _FIELDS}


def _as_record(output: object) -> Any:  # Any: a record, checked by `load`
    if isinstance(output, str) or role_of(output) is Role.TEXT:
        return {"response": plain(output)}
    if check.is_list(output):
        if len(output) == 2 and isinstance(output[0], str) and check.is_list(output[1]):
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


def _check_some_answer(items: list[Sample | BadRecord], advice: str) -> None:
    """Raise DataError if there are samples and the pipeline failed on all of them."""
    samples = [item for item in items if isinstance(item, Sample)]
    errors = [error for sample in samples if (error := sample.metadata.get(PIPELINE_ERROR)) is not None]
    if samples and len(errors) == len(samples):
        raise DataError(
            f"The pipeline failed on {count(len(samples), 'question')}. The first error: {errors[0]}{advice}"
        )
