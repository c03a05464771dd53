"""The public functions.

The module is long because the docstring of each function explains its arguments.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from merilo.commands.blocking import run_blocking
from merilo.commands.evaluate.options import Options, PipelineOptions
from merilo.commands.keywords import keyword_options, public

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Unpack

    from merilo.commands.calibrate.run import LabelledRun
    from merilo.commands.check.run import JudgeCheck
    from merilo.commands.compare.result import RunComparison
    from merilo.commands.evaluate.options import AsDict, Judges, Keywords, Limits, PipelineKeywords
    from merilo.commands.gate.result import Gates
    from merilo.commands.label.run import Tasks
    from merilo.data.load import Records
    from merilo.engine.amounts import Estimate
    from merilo.metrics.base import Definition
    from merilo.runs.run import Run


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

    return run_blocking(run_anywhere(data, keyword_options(Options, {"metrics": metrics, **keywords})))


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

    return await run_anywhere(data, keyword_options(Options, {"metrics": metrics, **keywords}))


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

    given = {"questions": questions, "metrics": metrics, **keywords}
    return run_blocking(run_pipeline(pipeline, keyword_options(PipelineOptions, given)))


@public(PipelineOptions)
async def aevaluate_pipeline(
    pipeline: object,
    questions: str | PathLike[str] | Iterable[str] | Records,
    metrics: str | Sequence[str | Definition] | None = None,
    **keywords: Unpack[PipelineKeywords],
) -> Run:
    """Do the same as `evaluate_pipeline` in code that runs in an event loop, which an async pipeline then shares."""
    from merilo.commands.evaluate.pipeline import run_pipeline

    given = {"questions": questions, "metrics": metrics, **keywords}
    return await run_pipeline(pipeline, keyword_options(PipelineOptions, given))


@public(Options)
def plan(
    data: str | PathLike[str] | Records,
    metrics: str | Sequence[str | Definition] | None = None,
    **keywords: Unpack[Keywords],
) -> Estimate:
    """Estimate what `evaluate` with the same arguments would ask and cost. Sends no request and needs no key.

    The plans of the metrics run with likely verdicts, so the amounts are typical ones; `at_most` bounds them. What the
    run in `out` or the verdict cache holds costs nothing. Tokens are characters / 4, or what that run measured. Of many
    samples, 2,000 are read, spread evenly.

    Raises what `evaluate` raises before its first request.
    """
    from merilo.commands.plan.run import run_estimate

    return run_blocking(run_estimate(data, keyword_options(Options, {"metrics": metrics, **keywords})))


@public()
def compare(
    *runs: Run | str | PathLike[str],
    metrics: Sequence[str] | None = None,
    primary: Sequence[str] | None = None,
    cluster: str | None = None,
    undefined: str = "drop",
    across_judges: bool = False,
    across_data: bool = False,
    judge_only: bool = False,
) -> RunComparison:
    """Compare each run with the first one, the base, over the samples that all runs share (equal id and question).

    The result prints as `merilo compare` does. `verdict` and `conclusion` say whether the second run is better; its
    `metrics` holds the rows of the first two runs by metric (`verdict`, `difference`: run minus base, `interval`),
    `to_frame()` returns a pandas data frame, and a notebook shows its table.

    Args:
        runs: two or more runs or their directories.
        metrics: the metrics to compare. None: all that every run has.
        primary: the metrics to draw conclusions for, corrected together by Holm's method. None: all.
        cluster: as in `evaluate`. None: the cluster field of the first run. "": none.
        undefined: "drop" or "worst": how to treat a sample that is undefined in one run only. Dropped samples are set
            to the ends of the range to see whether they could change a conclusion.
        across_judges: also compare runs whose judges, rubrics or metric versions differ.
        across_data: also compare if more than one in ten of the common ids belong to different questions. Samples with
            different questions are never compared.
        judge_only: leave out the human labels attached to the runs. By default, from 20 labelled pairs on, they
            correct the means, the difference, its interval and the conclusion.

    Raises:
        UsageError: a metric or argument cannot be used, or the runs' judges or questions differ. The message lists the
            differences.
        DataError: there is no pair of samples, or samples are in no cluster.
        RunError: a run cannot be read.
    """
    from merilo.commands.compare.run import ComparisonRequest, compare_runs

    wanted = ComparisonRequest(
        metrics=metrics,
        primary=primary,
        cluster=cluster,
        undefined=undefined,
        across_judges=across_judges,
        across_data=across_data,
        judge_only=judge_only,
    )
    return compare_runs(runs, wanted)


def run_compared(run: Run, base: Run | str | PathLike[str], **options: Any) -> RunComparison:  # Any: as `compare`
    """Return a run minus a base; see `compare`."""
    return compare(base, run, **options)


@public()
def report(
    run: Run | str | PathLike[str],
    *others: Run | str | PathLike[str],
    out: str | PathLike[str] = "report.html",
    by: str | None = None,
) -> Path:
    """Write a run, or the comparison of other runs with it, as one HTML file that needs no server, and return its path.

    Args:
        run: a finished run or its directory; with `others`, the base of the comparison.
        others: the runs to compare with it.
        out: the file.
        by: the field whose slices are shown first, as in `Run.by`. None: the first one that fits.

    Raises:
        UsageError: the runs cannot be compared, or `by` cannot be used.
        RunError: a run cannot be read, or the file cannot be written.
    """
    from merilo.commands.report.run_page import write_report

    path = Path(out)
    write_report([run, *others], path, by=by)
    return path


@public()
def gate(
    run: Run | str | PathLike[str],
    minimums: Mapping[str, float] | None = None,
    maximums: Mapping[str, float] | None = None,
    *,
    baseline: Run | str | PathLike[str] | None = None,
    max_drop: float | Mapping[str, float] | None = None,
    suite: str | PathLike[str] | None = None,
    cannot_tell: str | None = None,
    undefined: str | None = None,
    cluster: str | None = None,
    across_data: bool = False,
    judge_only: bool = False,
    first_run: str | None = None,
) -> Gates:
    """Check a run against minimum scores or a baseline. Assert the result's `passed`.

    A gate that fails or cannot tell raises nothing: `verdict` is the overall decision, `gates` holds each decision with
    its numbers, and `str` returns one sentence per gate.

    Args:
        run: a finished run or its directory.
        minimums: metric → smallest allowed mean. If lower is better, the largest allowed mean.
        maximums: metric → largest allowed mean, if lower is better.
        baseline: the run to compare with, sample by sample.
        max_drop: the largest allowed drop from the baseline, 0 or more, for all metrics or by metric.
        suite: a .toml, .yaml or .json file with these arguments, and `labels`. Arguments given here override the file.
        cannot_tell: "pass" or "fail": how to count a gate that cannot tell. None: neither.
        undefined: "drop" or "worst": how to count undefined outcomes. None: a gate must hold in both cases.
        cluster: as in `evaluate`. None: the cluster field of the run. "": none.
        across_data: compare the samples that match, even if more than one in ten of the baseline's samples are missing
            in the run, or more than one in ten of the common ids belong to different questions.
        judge_only: leave out the human labels attached to the runs. By default, from 20 labelled samples on (pairs for
            a drop), they correct the numbers and decide.
        first_run: "pass", "cannot tell" or "fail": what a baseline that does not exist counts as. None: "cannot tell",
            with the verdict "no baseline".

    Raises:
        UsageError: no gate is given, a metric or argument cannot be used, or the runs' judges or questions differ.
        DataError: the runs have no sample in common, or samples are in no cluster.
        RunError: a run cannot be read or is incomplete.
    """
    from merilo.commands.gate.run import gate_run
    from merilo.commands.gate.suite import suite_from

    asked = suite_from(
        suite,
        minimums=minimums,
        maximums=maximums,
        max_drop=max_drop,
        cannot_tell=cannot_tell,
        undefined=undefined,
        cluster=cluster,
        first_run=first_run,
    )
    return gate_run(run, asked, baseline=baseline, across_data=across_data, judge_only=judge_only)


@overload
def label(
    run: Run | str | PathLike[str],
    other: Run | str | PathLike[str] | None = None,
    *,
    metric: str | None = None,
    number: int | None = None,
    labels: None = None,
    html: str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
) -> Tasks: ...


@overload
def label(
    run: Run | str | PathLike[str],
    other: Run | str | PathLike[str] | None = None,
    *,
    metric: str | None = None,
    labels: str | PathLike[str] | Sequence[str | PathLike[str]],
) -> LabelledRun: ...


@public()
def label(
    run: Run | str | PathLike[str],
    other: Run | str | PathLike[str] | None = None,
    *,
    metric: str | None = None,
    number: int | None = None,
    labels: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    html: str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
) -> Tasks | LabelledRun:
    """Sample items of a run for annotators, with known probabilities; or attach their labels, which correct the run.

    With `other`, items are sampled from a pair of runs: samples that both runs scored, and the items of both in random
    order. Their labels correct a comparison of the two runs.

    An item is a context or a statement. All items of a sample are taken, so that labels also correct metrics that need
    whole samples; 3 of each if samples have more than 12 on average. If the metric's value does not follow from such
    labels, the item is the value itself. Neither the texts nor their order or ids reveal the judge's verdicts. A draw
    does not depend on the verdicts, and contains each smaller draw.

    With `labels`, they are stored with the runs. The result then compares the judge with them: for each metric,
    `metrics[text].correction` holds the judge's mean, the mean of the labels and the corrected mean. Its `estimate` is
    the one to report, None if there are too few labels. `metrics[text].agreement` holds the agreement.

    Args:
        run: a finished run or its directory.
        other: the second run of a pair, or its directory.
        metric: the metric whose judge is checked. None: that of the most verdicts; for a pair of runs with different
            contexts, context_relevance and context_sufficiency; with `labels`, all.
        number: number of samples to draw from those that people can judge. None: 30 to 40, for about 240 labels.
        labels: one or more files of items with labels filled in, sampled from this run or from another run over the
            same samples: .jsonl, .csv, .tsv or .json. Several annotators may label the same items.
        html: a file for the page on which annotators label the items in a browser.
        out: a new file for the items, .jsonl or .csv. None: they are only in the result.

    Raises:
        DataError: a file of labels cannot be read or has an invalid label, or none of its labels belongs to a sample of
            this run.
        UsageError: an argument cannot be used, no sample has a score, no label fits, or the file exists.
        RunError: the run cannot be read, or a file cannot be written.
    """
    from merilo.commands.label.run import label_run

    if labels is not None:
        from merilo.commands.calibrate.run import label_agreement

        metrics = None if metric is None else [metric]
        return label_agreement(run, labels, metrics=metrics, other=other, attach=True)
    tasks = label_run(run, out, metric=metric, samples=number, items=None, other=other)
    if html is not None:
        from merilo.commands.label.page import write_label_page

        write_label_page(html, [line.record() for line in tasks.lines])
    return tasks


@public()
def judge_check(
    judge: Judges = "embedded",
    *,
    labels: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    tasks: Sequence[str] | None = None,
    number: int | None = None,
    limits: Limits | AsDict | None = None,
) -> JudgeCheck:
    """Try a judge, compare it with human labels, and edit its input where the effect on the verdict is known.

    `print` shows the page of `merilo judge check`. `tables["groundedness"]` holds the figures of a task: `labels`,
    `agree`, and `kappa`, `balanced_accuracy` and `auroc` with their intervals.

    Args:
        judge: as in `evaluate`.
        labels: one or more files of labelled records. None: the sample that ships with merilo.
        tasks: "trial", "edits", tasks of the labels, such as "nli", or single edits, such as "order". None: all.
        number: maximum number of records per task and source, and of pairs per edit. The same ones are chosen each
            time. None: all records, 40 pairs.
        limits: as in `evaluate`.

    Raises what `evaluate` raises.
    """
    from merilo.commands.check.options import CheckOptions
    from merilo.commands.check.run import run_check

    files = [labels] if isinstance(labels, str | PathLike) else labels or ()
    given = {"judge": judge, "labels": files, "tasks": tasks or (), "number": number, "limits": limits}
    options = keyword_options(CheckOptions, given)
    return run_blocking(run_check(options))
