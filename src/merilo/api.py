"""The public functions that ask a judge; those on runs are in `merilo.shown`."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from merilo.commands.blocking import run_blocking
from merilo.commands.diagnose.settings import DiagnoseOptions
from merilo.commands.evaluate.options import Options, PipelineOptions
from merilo.commands.keywords import keyword_options, public

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Unpack

    from merilo.commands.check.page import JudgeCheck
    from merilo.commands.diagnose.page import Diagnosis
    from merilo.commands.evaluate.options import AsDict, Judges, Keywords, Limits, PipelineKeywords
    from merilo.commands.plan.run import Estimate
    from merilo.data.load import Records
    from merilo.metrics.base import Definition
    from merilo.shown import Run


@public(Options)
def evaluate(
    data: str | PathLike[str] | Records,
    metrics: str | Sequence[str | Definition] | None = None,
    **keywords: Unpack[Keywords],
) -> Run:
    """Evaluate the samples in `data` and return the finished run.

    Works inside a running event loop too (a notebook), because the evaluation has its own thread and loop.

    Args:
        data: a path, dicts or `Sample`s, a data frame, or results of a framework. Paths: .jsonl, .json, .csv or .tsv
            (.gz accepted), .parquet, a `save_to_disk` folder, or "-". Frames: pandas, polars, Arrow,
            `datasets.Dataset`. Frameworks: LangChain, LlamaIndex, Haystack, DSPy.
        {options}

    Raises:
        DataError: the data cannot be read, or has invalid records that are not to be skipped.
        UsageError: a metric, judge or argument cannot be used as named.
        ProviderDown: no request can succeed; the same call resumes the run.
        RunError: the directory cannot be used.
        LimitReached: a limit stopped a run with `runner`; the same call with a higher limit resumes it.
        Interrupted: Ctrl-C was pressed; the same call resumes the run.
    """
    from merilo.commands.evaluate.distributed import run_anywhere
    from merilo.shown import Run

    return Run.of(run_blocking(run_anywhere(data, keyword_options(Options, {"metrics": metrics, **keywords}))))


@public(Options)
async def aevaluate(
    data: str | PathLike[str] | Records,
    metrics: str | Sequence[str | Definition] | None = None,
    **keywords: Unpack[Keywords],
) -> Run:
    """Evaluate like `evaluate`, in code that runs in an event loop: same arguments, result and errors.

    Cancelling it leaves a run that the same call resumes.
    """
    from merilo.commands.evaluate.distributed import run_anywhere
    from merilo.shown import Run

    return Run.of(await run_anywhere(data, keyword_options(Options, {"metrics": metrics, **keywords})))


@public(PipelineOptions)
def evaluate_pipeline(
    pipeline: object,
    questions: str | PathLike[str] | Iterable[str] | Records,
    metrics: str | Sequence[str | Definition] | None = None,
    **keywords: Unpack[PipelineKeywords],
) -> Run:
    """Ask your pipeline each question, then evaluate its answers and return the finished run.

    An error of the pipeline fails the metrics of that sample, with its message, and the other questions continue.
    Takes the arguments of `evaluate` except `data`, and:

    Args:
        pipeline: a blocking or async function of the question, or a pipeline of LangChain, LlamaIndex, Haystack, DSPy.
            It returns a text, a pair of a text and contexts, a list of contexts, a dict with the fields of a sample, or
            the framework's own result.
        {own}

    Raises what `evaluate` raises, DataError also if the pipeline fails on every question.
    """
    from merilo.commands.evaluate.pipeline import run_pipeline
    from merilo.shown import Run

    given = {"questions": questions, "metrics": metrics, **keywords}
    return Run.of(run_blocking(run_pipeline(pipeline, keyword_options(PipelineOptions, given))))


@public(PipelineOptions)
async def aevaluate_pipeline(
    pipeline: object,
    questions: str | PathLike[str] | Iterable[str] | Records,
    metrics: str | Sequence[str | Definition] | None = None,
    **keywords: Unpack[PipelineKeywords],
) -> Run:
    """Do the same as `evaluate_pipeline` in code that runs in an event loop, which an async pipeline then shares."""
    from merilo.commands.evaluate.pipeline import run_pipeline
    from merilo.shown import Run

    given = {"questions": questions, "metrics": metrics, **keywords}
    return Run.of(await run_pipeline(pipeline, keyword_options(PipelineOptions, given)))


@public(Options)
def plan(
    data: str | PathLike[str] | Records,
    metrics: str | Sequence[str | Definition] | None = None,
    **keywords: Unpack[Keywords],
) -> Estimate:
    """Estimate what `evaluate` with the same arguments would ask and cost. Sends no request and needs no key.

    The plans of the metrics run with likely verdicts, so the amounts are typical ones. What the run in `out` or the
    verdict cache holds costs nothing. Tokens are characters / 4, or what that run measured. Of many samples, 2,000
    are read, spread evenly.

    Raises what `evaluate` raises before its first request.
    """
    from merilo.commands.plan.run import run_estimate

    return run_blocking(run_estimate(data, keyword_options(Options, {"metrics": metrics, **keywords})))


@public()
def judge_check(
    judge: Judges = "embedded",
    *,
    labels: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    tasks: Sequence[str] | None = None,
    number: int | None = None,
    limits: Limits | AsDict | None = None,
) -> JudgeCheck:
    """Try a judge and compare it with human labels.

    `print` shows the page of `merilo judge check`. `tables["groundedness"]` holds the figures of a task: `labels`,
    `agree`, and `kappa`, `balanced_accuracy` and `auroc` with their intervals.

    Args:
        judge: as in `evaluate`.
        labels: one or more files of labelled records. None: the sample that ships with merilo.
        tasks: "trial", or tasks of the labels, such as "nli". None: all.
        number: maximum number of records per task and source. The same ones are chosen each time. None: all records.
        limits: as in `evaluate`.

    Raises what `evaluate` raises.
    """
    from merilo.commands.check.options import CheckOptions
    from merilo.commands.check.run import run_check

    files = [labels] if isinstance(labels, str | PathLike) else labels or ()
    given = {"judge": judge, "labels": files, "tasks": tasks or (), "number": number, "limits": limits}
    options = keyword_options(CheckOptions, given)
    return run_blocking(run_check(options))


@public(DiagnoseOptions)
def diagnose(app: object, data: str | PathLike[str] | Records, **keywords: Any) -> Diagnosis:  # Any: `DiagnoseOptions`
    """Find which part of an application is at fault, by experiments with its contexts.

    `print` shows the result. `effects` has the difference in right answers by arm, in [-1, 1] with its interval;
    `causes` the examined failures by id; `samples` every answer; `report()` writes a page. An answer is right if its
    `answer_correctness` is at least 0.5. The same call with `out` resumes a stopped one. Takes the arguments of
    `evaluate` except `metrics`, and:

    Args:
        app: a function `answer(question, contexts=None)`, blocking or async, that returns what a pipeline of
            `evaluate_pipeline` returns; an object whose retriever merilo can replace; "FILE.py:NAME", or a URL. With a
            list it answers from these texts in this order. None: the functions `retrieve` and `generate`.
        data: as in `evaluate`: questions with a reference and `reference_contexts`, or ids with documents.
        {own}

    Raises what `evaluate` raises, UsageError also if the application ignores its contexts, LimitReached if a limit
    stops it.
    """
    from merilo.commands.diagnose.page import Diagnosis
    from merilo.commands.diagnose.run import run_diagnosis

    return Diagnosis(run_blocking(run_diagnosis(app, data, keyword_options(DiagnoseOptions, keywords))))
