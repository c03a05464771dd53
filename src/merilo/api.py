"""The public functions.

The module is long because the docstring of each function explains its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from merilo.commands.blocking import run_blocking
from merilo.commands.check.options import CheckOptions
from merilo.commands.compare.result import SHOWN
from merilo.commands.evaluate.options import Options
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.lineage.options import LineageOptions
from merilo.commands.option import with_options, with_options_only
from merilo.commands.plan.options import PlanOptions
from merilo.commands.probe.options import ProbeOptions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from merilo.commands.agree.run import JudgesAgreement
    from merilo.commands.calibrate.run import Calibrated
    from merilo.commands.check.run import Check
    from merilo.commands.compare.result import RunComparison
    from merilo.commands.gate.result import Gates
    from merilo.commands.label.run import Tasks
    from merilo.commands.lineage.result import LineageTables
    from merilo.commands.power.result import Power
    from merilo.commands.probe.run import Probing
    from merilo.commands.replay.run import Replay
    from merilo.data.load import Records
    from merilo.engine.amounts import Estimate
    from merilo.metrics.base import Definition
    from merilo.runs.run import Run


@with_options(Options)
def evaluate(data: str | PathLike[str] | Records, options: Options) -> Run:
    """Evaluate the samples in `data` and return the finished run.

    Works inside a running event loop too (a notebook), because the evaluation has its own thread and loop.

    Args:
        data: a path (.jsonl, .json, .csv or .tsv, .gz accepted), "-", or an iterable of dicts or `Sample`s.
        {options}

    Raises:
        DataError: the data cannot be read, or has invalid records that are not to be skipped.
        UsageError: a metric, judge or argument cannot be used as named.
        ProviderDown: no request can succeed; the same call resumes the run.
        RunError: the directory cannot be used.
        Interrupted: Ctrl-C was pressed; the same call resumes the run.
    """
    return run_blocking(run_evaluation(data, options))


@with_options(Options)
async def aevaluate(data: str | PathLike[str] | Records, options: Options) -> Run:
    """Evaluate like `evaluate`, in code that runs in an event loop: same arguments, result and errors.

    Cancelling it leaves a run that the same call resumes.
    """
    return await run_evaluation(data, options)


@with_options(PlanOptions)
def plan(data: str | PathLike[str] | Records, options: PlanOptions) -> Estimate:
    """Estimate what `evaluate` with the same arguments would ask and cost. Sends no request and needs no key.

    The plans of the metrics run with likely verdicts, so the amounts are typical ones; `at_most` bounds them. What the
    run in `out` or the verdict cache holds costs nothing. Tokens are characters / 4, or what that run measured.

    Takes the arguments of `evaluate` and:

    {own}

    Raises what `evaluate` raises before its first request.
    """
    from merilo.commands.plan.run import run_estimate

    return run_blocking(run_estimate(data, options, sample=options.sample, latency_s=options.latency_s))


def power(
    *pilots: Run | str | PathLike[str],
    difference: float | None = None,
    metrics: Sequence[str] | None = None,
    until_decided: str | PathLike[str] | None = None,
    samples: int | None = None,
    cluster: str | None = None,
    power: float = 0.8,
    level: float = 0.95,
) -> Power:
    """How many samples show a difference between two runs, and whether stopping early can pay, told from pilots.

    Args:
        pilots: one run, or two that are compared; or their directories. One alone does not tell how two runs differ
            sample by sample: it is assumed that both would score each sample independently.
        difference: of means, to be shown; in the unit of each metric.
        metrics: those to plan for; None: all of the pilot.
        until_decided: a suite's file, as in `evaluate`.
        samples: how many there are to stop early in; None: as many as the first pilot has.
        cluster: as in `evaluate`.
        power: the chance to show the difference, if it is there.
        level: of the comparison to come.

    Raises:
        UsageError: nothing is asked for, or what is asked for cannot be planned.
        DataError: two pilots have no sample in common.
        RunError: a pilot cannot be read.
    """
    from merilo.commands.gate.suite import until_from
    from merilo.commands.power.run import power_of

    until = None if until_decided is None else until_from(until_decided)
    return power_of(
        pilots, difference, metrics=metrics, until=until, most=samples, cluster=cluster, power=power, level=level
    )


def import_scores(
    source: str | PathLike[str],
    *,
    id: str | None = None,
    scores: Sequence[str] | Mapping[str, tuple[float, float] | None] = (),
    lower_is_better: Sequence[str] = (),
    mapping: Mapping[str, str] | None = None,
    cluster: str | None = None,
    in_order: bool = False,
    out: str | PathLike[str] | None = None,
) -> Run:
    """A run of scores that another tool computed, on which `compare`, `gate` and the rest work; nothing is asked.

    A sample without a score ("", null, NaN) is undefined: "not scored there". The metrics are called `foreign:` and
    the name of their column.

    Args:
        source: a table (.jsonl, .json, .csv, .tsv, each perhaps .gz), a result of ragas that was saved as one, or a
            test run of DeepEval (.json).
        id: the column that names the samples. None: `id`, or what the tool calls it, else their number. Runs are
            compared by these names.
        scores: the columns that hold scores, perhaps each with its range, such as {"rating": (1, 5)}. Without a
            range they must lie in 0 to 1. Empty: all that a result of ragas or DeepEval has.
        lower_is_better: those of which a lower score is the better one.
        mapping: column → field of the sample, as in `evaluate`.
        cluster: as in `evaluate`.
        in_order: take the rows of a result of ragas as they are, although the first row has no score. ragas 0.1.0 to
            0.1.9 moves failed scores to the front, so such a file is refused by default.
        out: the run's directory, a new one. None: one under `.merilo/runs`.

    Raises:
        DataError: the file cannot be read, a score is no number or lies outside its range (the message says where),
            or the scores may be in the wrong rows.
        UsageError: a column is not there, or a range has to be given.
        RunError: the directory cannot be used.
    """
    from merilo.commands.imports.run import Importing, run_import

    ranges = {**scores} if isinstance(scores, Mapping) else dict.fromkeys(scores)
    return run_blocking(
        run_import(
            source,
            Importing(
                id=id,
                scores=ranges,
                lower_is_better=lower_is_better,
                mapping=mapping,
                cluster=cluster,
                in_order=in_order,
                out=out,
            ),
        )
    )


def replay(
    source: str | PathLike[str],
    *,
    metrics: Sequence[str | Definition] | None = None,
    out: str | PathLike[str] | None = None,
    reread: bool = False,
) -> Replay:
    """The scores of a run or a tape, recomputed without a call from the answers that it holds.

    Each plan is driven again and sent what was recorded under its trail; the scores are bit-equal unless a metric
    has changed. Failures are replayed as failures.

    Args:
        source: the directory of a run, or a tape that `record` made.
        metrics: those to compute, as in `evaluate`; None: those of the run. One that the run did not have is
            answered by whatever the run was asked in the same words, of the same judge.
        out: a new directory for the recomputed run. None: it is there as long as the result's `run`.
        reread: take the answers that the reading rules of today find in the raw replies of language models.

    Raises:
        RunError: the run or tape cannot be read, or holds no answer to a question; the message names the question
            and the command to record it.
        UsageError: a metric cannot be made as named.
    """
    from merilo.commands.replay.run import replay_run

    return replay_run(source, metrics=metrics, out=out, reread=reread)


def compare(
    *runs: Run | str | PathLike[str],
    metrics: Sequence[str] | None = None,
    primary: Sequence[str] | None = None,
    by: str | None = None,
    cluster: str | None = None,
    undefined: str = "drop",
    level: float = 0.95,
    across_judges: bool = False,
    across_data: bool = False,
    samples: int = SHOWN,
) -> RunComparison:
    """Compare each run but the first with the first, over the samples that all have: same id and equal question.

    The result prints as `merilo compare` does; `metrics` of it holds the first two runs' comparisons by metric,
    `to_frame()` is a pandas data frame, and a notebook shows its table.

    Args:
        runs: two or more, or their directories.
        metrics: those to compare; None: all that every run has.
        primary: those of which is said what may be said, so that all of it holds together; None: all.
        by: the metric by which the samples that moved most are chosen; None: the one whose difference is surest.
        cluster: as in `evaluate`; None: the one that the first run was made with, "": none.
        undefined: "drop" or "worst": what an undefined outcome counts for where the other run has a score. Dropped
            ones are put at the ends of the range to see whether they could decide.
        level: of intervals and readings.
        across_judges: compare also if judges, rubrics or versions of metrics differ.
        across_data: compare also if more than one in ten of the common ids name other questions. Samples with other
            questions are never compared.
        samples: so many of the samples that moved most are looked up.

    Raises:
        UsageError: a metric or argument cannot be used, or the runs' judges or questions differ; it says in what.
        DataError: there is nothing to pair, or samples are in no cluster.
        RunError: a run cannot be read.
    """
    from merilo.commands.compare.run import Comparing, compare_runs

    wanted = Comparing(
        metrics=metrics,
        primary=primary,
        by=by,
        cluster=cluster,
        undefined=undefined,
        level=level,
        across_judges=across_judges,
        across_data=across_data,
        samples=samples,
    )
    return compare_runs(runs, wanted)


def gate(
    run: Run | str | PathLike[str],
    *,
    suite: str | PathLike[str] | None = None,
    minimums: Mapping[str, float] | None = None,
    baseline: Run | str | PathLike[str] | None = None,
    max_drop: float | Mapping[str, float] | None = None,
    strict: bool | None = None,
    cannot_tell: str | None = None,
    undefined: str | None = None,
    cluster: str | None = None,
    level: float | None = None,
    across_data: bool = False,
) -> Gates:
    """Check a run against minimum scores or a baseline; `passed` of the result is for an assertion.

    Nothing is raised for a gate that fails or cannot tell: `verdict` says which, `gates` holds the decisions with
    their numbers, and `str` gives a sentence for each.

    Args:
        run: a finished run, or its directory.
        suite: a .toml, .yaml or .json file with these arguments; what is given here goes before it.
        minimums: metric → its least mean; where lower is better, the most that it may be.
        baseline: the run to hold this one against, sample by sample.
        max_drop: how much worse than the baseline every metric, or each of these, may be; 0 or more.
        strict: fail for any drop that is sure to be one.
        cannot_tell: "pass" or "fail": what a gate that cannot tell counts as. None: neither.
        undefined: "drop" or "worst": what undefined outcomes count as. None: a gate must hold whatever they are.
        cluster: as in `evaluate`; None: the one that the run was made with, "": none.
        level: confidence of each one-sided limit, 0.95 by default.
        across_data: compare the samples that match even if more than one in ten of the baseline's samples are not in
            the run, or more than one in ten of the common ids name other questions.

    Raises:
        UsageError: nothing is asked for, a metric or argument cannot be used, or the runs' judges or questions differ.
        DataError: the runs have no sample in common, or samples are in no cluster.
        RunError: a run cannot be read, or was stopped before its end.
    """
    from merilo.commands.gate.run import gate_run
    from merilo.commands.gate.suite import suite_from

    asked = suite_from(
        suite,
        minimums=minimums,
        max_drop=max_drop,
        strict=strict,
        cannot_tell=cannot_tell,
        undefined=undefined,
        cluster=cluster,
        level=level,
    )
    return gate_run(run, asked, baseline=baseline, across_data=across_data)


def label(
    run: Run | str | PathLike[str],
    out: str | PathLike[str] | None = None,
    *,
    metric: str | None = None,
    samples: int = 40,
    items: int = 3,
    stratify: bool = False,
    seed: int = 0,
) -> Tasks:
    """What people should look at to see how far a run's judge can be trusted: tasks, drawn with known probabilities.

    A task is a context or a statement where the metric's value is a sum over these, else every item of a sample;
    where its value does not follow from such labels, it is the value itself. The tasks do not tell what the judge
    said, neither in words nor by their order or ids.

    Args:
        run: a finished run, or its directory.
        out: a new file for the tasks, .jsonl or .csv. None: they are in the result alone.
        metric: whose judge is to be held against people; None: the only one that has a judge.
        samples: so many are drawn, from those with a score.
        items: at most so many contexts or statements of each; all of them where whole samples are needed.
        stratify: draw from the samples at each end of the metric's range and from those between in proportion to their
            numbers, and at least one of each.
        seed: which are drawn; the same seed draws the same ones, whatever the judge said (unless stratified).

    Raises:
        UsageError: an argument cannot be used, no sample has a score, or the file exists.
        RunError: the run cannot be read, or the file not written.
    """
    from merilo.commands.label.run import label_run

    return label_run(run, out, metric=metric, samples=samples, items=items, stratify=stratify, seed=seed)


def calibrate(
    run: Run | str | PathLike[str],
    labels: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    metrics: Sequence[str] | None = None,
    cluster: str | None = None,
    level: float = 0.95,
    seed: int = 0,
    attach: bool = False,
) -> Calibrated:
    """A run beside labels of people: by metric the judge's mean, people's and the corrected one, and their agreement.

    `metrics[text].correction` of the result says which of the three to report and why; its `estimate` is that one,
    None where the labels are too few. `metrics[text].agreement` says how far judge and people agree.

    Args:
        run: a finished run, or its directory.
        labels: one or several files of tasks that `label` drew from this run, or from another over the same samples,
            with labels of people: .jsonl, .csv, .tsv or .json. Several people may label the same tasks.
        metrics: those to look at; None: all for which the labels can be used.
        cluster: as in `evaluate`; None: the one that the run was made with, "": none.
        level: confidence of the intervals.
        seed: which labelled samples share a fold, and of the resamples of agreement.
        attach: keep the labels with the run; its summary then reports the corrected means.

    Raises:
        DataError: a file cannot be read, or none of its labels is of this run's samples.
        UsageError: a metric or argument cannot be used, or no label fits a question of the run.
        RunError: the run cannot be read, or the labels not kept.
    """
    from merilo.commands.calibrate.run import calibrate_run

    return calibrate_run(run, labels, metrics=metrics, cluster=cluster, level=level, seed=seed, attach=attach)


@with_options_only(CheckOptions)
def judge_check(options: CheckOptions) -> Check:
    """Measure how well a judge agrees with human labels, by task and source.

    Takes the arguments of `evaluate` about the judge, requests, limits and results, and:

    {own}

    Raises what `evaluate` raises.
    """
    from merilo.commands.check.run import run_check

    return run_blocking(run_check(options))


@with_options_only(ProbeOptions)
def judge_probe(options: ProbeOptions) -> Probing:
    """Test a judge's robustness: apply edits whose effect on the verdict is known, and measure how often it is wrong.

    Edits are for instance shuffled contexts, changed facts and injected instructions.
    Takes the arguments of `evaluate` about the judge, requests, limits and results, and:

    {own}

    Raises what `evaluate` raises.
    """
    from merilo.commands.probe.run import run_probes

    return run_blocking(run_probes(options))


def judge_agree(
    runs: Sequence[Run | str | PathLike[str]],
    *,
    cluster: str | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> JudgesAgreement:
    """How far the judges of finished runs agree with each other, on the questions that they were all asked.

    `pairs` of the result holds each two judges: by kind of question their table of labels, accuracy, kappa (weighted
    for grades), Krippendorff's alpha and Gwet's AC1, each with its interval. Runs of one judge are taken together;
    where two judges both judged five systems or more (data sets), `rankings` has Kendall's tau of their means by
    metric. Neither judge is taken as true.

    Args:
        runs: two or more, or their directories. Of one and the same judge: how far it agrees with itself.
        cluster: as in `evaluate`; None: the one that the first run was made with, else the sample.
        level: confidence of the intervals.
        seed: of the resamples.

    Raises:
        UsageError: an argument cannot be used, or a run has no verdicts.
        DataError: no question was answered in two of the runs, or samples are in no cluster.
        RunError: a run cannot be read.
    """
    from merilo.commands.agree.run import judges_agreement

    return judges_agreement(runs, cluster=cluster, level=level, seed=seed)


@with_options(LineageOptions)
def lineage(data: str | PathLike[str] | Records, options: LineageOptions) -> LineageTables:
    """Evaluate the published definitions of one name on the same data, side by side.

    By default each published formula is computed over the verdicts of merilo's own metrics, so that only the formulas
    differ and no question is asked twice.

    Takes the arguments of `evaluate` except `metrics`, and:

    {own}

    Raises what `evaluate` raises, and UsageError if no definition is left.
    """
    from merilo.commands.lineage.run import run_lineage

    return run_blocking(run_lineage(data, options))
