"""Runs and comparisons that draw themselves, and the public functions on runs: compare, report, gate, label.

They are defined above all that draws them. The module is long because docstrings explain the arguments.
"""

from __future__ import annotations

from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast, overload

from merilo.commands.compare import result
from merilo.commands.compare.options import ComparisonRequest
from merilo.commands.keywords import public
from merilo.errors import MeriloError
from merilo.runs import run as saved
from merilo.runs.run import opened
from merilo.short_repr import short_repr, short_screen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pandas as pd

    from merilo.commands.calibrate.run import LabelledRun
    from merilo.commands.gate.result import Gates
    from merilo.commands.label.run import Tasks
    from merilo.rendering.markup import IntervalPlot
    from merilo.rendering.slices import Slices
    from merilo.results.faults import Faults
    from merilo.runs.manifest import Aggregate


@public(ComparisonRequest)
def compare(
    *runs: Run | str | PathLike[str] | Sequence[Run | str | PathLike[str]],
    **keywords: Any,  # Any: `ComparisonRequest`
) -> RunComparison:
    """Compare runs over the samples that all share (equal id and question): two, or several against the best.

    The result prints as `merilo compare` does. `verdict` and `conclusion` say whether the second run is better; its
    `metrics` holds the rows of the first two runs by metric (`verdict`, `difference`: run minus base, `interval`),
    `to_frame()` returns a pandas data frame, and a notebook shows its table. For three runs or more, `rankings[0]` has
    `best`, `may_be_best` and `as_good`, and `chosen` is the index of the run to take.

    Args:
        runs: two or more runs or their directories, or one list of them.
        {options}

    Raises:
        UsageError: a metric or argument cannot be used, or the runs' judges or questions differ. The message lists the
            differences.
        DataError: there is no pair of samples, or samples are in no cluster.
        RunError: a run cannot be read.
    """
    from merilo.commands.compare.run import compare_runs

    wanted = ComparisonRequest(**keywords)
    given = [each for one in runs for each in ([one] if isinstance(one, str | PathLike | saved.Run) else one)]
    own = given if len(given) < 2 else [each if isinstance(each, Run) else Run.of(opened(each)) for each in given]
    return RunComparison.of(compare_runs(own, wanted))


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


# -- results that draw themselves: here, above all that draws them ------------------------------------


class SampleResult(saved.SampleResult):
    """One sample with the outcomes of all metrics."""

    @property
    def fault(self) -> str | None:
        """The key of its fault, such as "invented" (see `Run.faults`); None if the run judges none."""
        from merilo.results.faults import sample_fault

        return sample_fault(self)

    def __repr__(self) -> str:
        """Return the fault, the question, the response and each outcome in at most 12 lines."""
        from merilo.rendering.explain import result_text

        return result_text(self)

    def _repr_html_(self) -> str:
        """Return the printed text for notebooks."""
        from merilo.rendering.markup import printed_html

        return printed_html(self)


class Run(saved.Run):
    """A finished or interrupted run, read from its directory."""

    @property
    def shown(self) -> Run:
        """The run with its verdicts by the levels that its labels set, as pages show them; itself if they set none.

        Its means are those of the judge's own verdicts, and corrected as usual.
        """
        from merilo.commands.calibrate.slices import shown_run

        found = shown_run(self)
        return self if found is self else Run.of(found)

    @property
    def _reported(self) -> saved.ByMetric[Aggregate]:
        from merilo.commands.calibrate.correction import corrected_metrics

        return self.metrics if self.labels is None else saved.ByMetric(self.kept(corrected_metrics))

    def read_samples(self, wanted: Collection[str] | None = None) -> Iterator[SampleResult]:
        """Yield every sample with outcomes, in dataset order; `samples` is the public way to them.

        `wanted`: the ids of the samples to yield; the outcomes of others are not decoded. None: all.
        """
        for each in super().read_samples(wanted):
            yield SampleResult(each.sample, each.outcomes, each.records)

    @property
    def faults(self) -> Faults:
        """The number of samples with each fault, such as {"right": 19, "invented": 3}.

        `share("invented")` has an interval. `checked` is False while no human labels correct the shares.
        """
        from merilo.commands.calibrate.slices import faults_of

        return self.kept(faults_of)

    def by(self, field: str) -> Slices:
        """Return the samples by the value of a field, each slice with its faults and means.

        `field`: a key of the metadata, "language", "length" (of the response) or "contexts" (how many). Raises
        UsageError unless it has 2 to 30 values.
        """
        from merilo.commands.calibrate.slices import slices_of

        return slices_of(self, field)

    def worst(
        self,
        of: str | int | None = None,
        count: int = 5,
        *,
        metric: str | None = None,
        fault: str | None = None,
        where: Mapping[str, object] | None = None,
    ) -> list[saved.SampleResult]:
        """Return the `count` samples with the worst scores of a metric, the worst first.

        `of`: the metric or the count. `metric`: its name or full text; None: the metric whose mean is farthest from
        its best value. `fault`: only samples with this fault, such as "invented". `where`: only samples whose metadata
        have these values.

        Raises UsageError if the run has no such metric.
        """
        from merilo.runs.run_metrics import metric_to_inspect, worst_scores

        if isinstance(of, int):
            count = of
        else:
            metric = of or metric
        wanted = metric_to_inspect(self.manifest, self.metrics) if metric is None else saved.metric_in(self, metric)
        if wanted is None:
            return []
        chosen = None if fault is None and where is None else self._chosen(fault, where or {})
        records = self.shown.brief_records([wanted])
        if chosen is not None:
            records = (each for each in records if each["sample"] in chosen)
        found = worst_scores(self.manifest, records, wanted, count)
        samples = {each.sample.id: each for each in self.shown.read_samples([sample for sample, _ in found.samples])}
        return [samples[sample] for sample, _ in found.samples]

    def _chosen(self, fault: str | None, where: Mapping[str, object]) -> set[str]:
        with closing(saved.open_store(self)) as store:
            fitting = {
                each.id
                for each in store.samples()
                if all(each.metadata.get(name) == value for name, value in where.items())
            }
        if fault is None:
            return fitting
        _ = self.faults[fault]
        return {sample for sample, own in self.faults.samples.items() if own == fault and sample in fitting}

    def compare(self, base: Run | str | PathLike[str], **options: Any) -> RunComparison:  # Any: as `compare`
        """Return this run minus the base; see `merilo.compare`."""
        return compare(base, self, **options)

    def gate(self, minimums: Mapping[str, float] | None = None, **options: Any) -> Gates:  # Any: as `gate`
        """Check this run; see `merilo.gate`."""
        return gate(self, minimums, **options)

    def label(self, **options: Any) -> Tasks | LabelledRun:  # Any: as `label`
        """Sample items for annotators, or attach their labels; see `merilo.label`."""
        return cast("Tasks | LabelledRun", label(self, **options))  # the options choose the overload

    def report(self, out: str | PathLike[str] = "report.html", **options: Any) -> Path:  # Any: as `report`
        """Write this run as one HTML file and return its path; see `merilo.report`."""
        return report(self, out=out, **options)

    def __str__(self) -> str:
        from merilo.commands.show.summary import run_text

        return run_text(self)

    def __repr__(self) -> str:
        """Return the title and the means in at most 12 lines."""
        from merilo.commands.show.summary import run_repr

        try:
            return self.kept(run_repr)
        except MeriloError:
            return short_repr(self, path=self.path)

    def plot(self) -> IntervalPlot:
        """Return the means with their intervals as a figure (SVG), which a notebook shows and `save(path)` writes."""
        from merilo.rendering.markup import run_plot

        return run_plot(self)

    def to_frame(self, backend: str | None = None, *, rows: str = "samples") -> Any:  # Any: a frame of the backend
        """Return the run as a data frame of pandas, polars or pyarrow; None: the first of these that is installed.

        `rows`: "samples", one row per sample with the columns of `merilo export`: its fields, and per metric M the
        columns M, `M_status` and `M_reason`. "outcomes", one row per sample and metric: sample, metric, outcome, value,
        reason.

        Raises UsageError for another value, or if a library is not installed.
        """
        from merilo.rendering.frames import run_frame

        return run_frame(self.shown, backend=backend, rows=rows)

    def to_pandas(self) -> Any:  # Any: a pandas frame
        """Return the run as a data frame of pandas."""
        return self.to_frame("pandas")

    def _repr_html_(self) -> str:
        """Return the printed text for notebooks."""
        from merilo.rendering.markup import printed_html

        return printed_html(self)


class RunComparison(result.RunComparison):
    """A comparison of runs over their common samples; every other run is compared with the first, the base.

    Differences are the run minus the base, so a drop is negative. Conclusions hold for all `primary` metrics and runs
    together.
    """

    @classmethod
    def of(cls, found: result.RunComparison) -> Self:
        """Return a comparison as one of this class."""
        own = object.__new__(cls)
        own.__dict__.update(found.__dict__)
        return own

    @property
    def conclusion(self) -> str:
        """The conclusion on the second run, in one or two sentences."""
        from merilo.commands.compare.text import conclusion

        return conclusion(self)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per metric and other run, with the fields of the JSON. Raises UsageError without pandas."""
        from merilo.commands.compare.record import comparison_frame

        return comparison_frame(self)

    def to_pandas(self) -> pd.DataFrame:
        """Return what `to_frame` returns."""
        return self.to_frame()

    def report(self, out: str | PathLike[str] = "report.html") -> Path:
        """Write this comparison as one HTML file and return its path. Raises the errors of `merilo.report`."""
        from merilo.commands.report.run_page import write_comparison

        return write_comparison(self, out)

    def __str__(self) -> str:
        from merilo.commands.compare.text import comparison_page

        return str(comparison_page(self))

    def __repr__(self) -> str:
        """Return the first lines of the printed text, at most 12."""
        return short_screen(str(self))

    def _repr_html_(self) -> str:
        """Return the printed text for notebooks."""
        from merilo.rendering.markup import printed_html

        return printed_html(self)
