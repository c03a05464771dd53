"""The measures of runs: numbers of samples that are not scores, such as latency and cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from math import inf, nan
from typing import TYPE_CHECKING, Any, Final

from merilo.data.measures import KNOWN, MeasureColumn, number_in
from merilo.results.contents import described_in_order
from merilo.results.scores import read_scores
from merilo.stats.means import mean_interval, paired_test
from merilo.stats.resampling import median_ratio

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from merilo.results.contents import Record
    from merilo.runs.run import Run

_SPAN: Final = (-inf, inf)
_COMPUTED: Final = ("context_words", "contexts")
"""Measures of what was retrieved."""
_TITLES: Final = {"latency_s": "latency", "cost_usd": "cost", "context_words": "words"}
_SAID: Final = {"s": ("takes {} less time than", "is fastest"), "USD": ("costs {} less than", "costs least")}
"""By unit: the words for a run with less than another one, and for the least; `{}` is the percentage."""


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """A measure of the samples of a run."""

    name: str
    column: MeasureColumn
    values: NDArray[np.float64]
    """One number per sample, NaN for none."""
    clusters: Sequence[Hashable] | None = None

    @property
    def title(self) -> str:
        """The name without its unit."""
        return _TITLES.get(self.name, self.name)

    @property
    def heading(self) -> str:
        """The title at the beginning of a sentence."""
        return f"{self.title[0].upper()}{self.title[1:]}"

    @property
    def is_time(self) -> bool:
        """True for a duration, which its median describes; the mean describes other measures."""
        return self.column.unit == "s"

    @property
    def typical(self) -> float:
        """The number that orders runs: the median of a time, otherwise the mean."""
        import numpy as np

        return float((np.nanmedian if self.is_time else np.nanmean)(self.values))

    def among(self, places: NDArray[np.bool_]) -> Measure:
        """Return the measure of some of the samples."""
        clusters = None if self.clusters is None else [*compress(self.clusters, places)]
        return replace(self, values=self.values[places], clusters=clusters)

    def record(self) -> dict[str, Any]:  # Any: JSON
        """Return the number of samples, mean with its interval by Student's t, median, 95th percentile and sum."""
        import numpy as np

        own = self.among(~np.isnan(self.values))
        found = mean_interval(own.values, _SPAN, clusters=own.clusters)
        median, p95 = np.quantile(own.values, [0.5, 0.95]).tolist()
        numbers = {"mean": found.value, "interval": found.interval.ends, "median": median, "p95": p95}
        return {"unit": self.column.unit, "samples": len(own.values), **numbers, "sum": float(own.values.sum())}

    def text(self, value: float) -> str:
        """Return a number with the unit, such as `1.31 s`."""
        return f"{shown(value)} {self.column.unit}".rstrip()

    @property
    def brief(self) -> str:
        """The first numbers: median and 95th percentile of a time, sum and mean of a cost, otherwise the mean."""
        each = self.record()
        shown = ("median", "p95") if self.is_time else ("sum", "mean") if self.column.unit == "USD" else ("mean",)
        fewer = f" (n = {each['samples']:,})" if each["samples"] < len(self.values) else ""
        return f"{self.title} {', '.join(f'{name} {self.text(each[name])}' for name in shown)}{fewer}"

    def __str__(self) -> str:
        each = self.record()
        ends = f" ({shown(each['interval'][0])} to {shown(each['interval'][1])})" if each["interval"] else ""
        total = f"sum {self.text(each['sum'])}, " if self.column.unit == "USD" else ""
        median, p95, mean = (self.text(each[name]) for name in ("median", "p95", "mean"))
        return f"{total}median {median}, p95 {p95}, mean {mean}{ends}, n = {each['samples']:,}"


def shown(value: float) -> str:
    """Return a number with three digits, or as a whole one."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")


def measures_of(run: Run) -> dict[str, Measure]:
    """Return the measures that are stored with the samples of a run, by name. Raises RunError."""
    if not run.manifest.measures or not run.done:
        return {}
    scores = read_scores(run)
    return read_measures(run, scores.ids, scores.clusters)


def read_measures(
    run: Run, ids: Sequence[str], clusters: Sequence[Hashable] | None, *, computed: bool = False
) -> dict[str, Measure]:
    """Return the measures of these samples by name, known ones first. Raises RunError.

    `ids`: in the order of the numbers. `computed`: also of contexts and their words. One without a number is left out.
    """
    import numpy as np

    columns = run.manifest.measures
    kinds = {each.name: each for each in (*KNOWN.values(), *columns.values()) if each in columns.values()}
    kinds |= {name: MeasureColumn(name) for name in _COMPUTED if computed}
    if not kinds:
        return {}

    def numbers(record: Record) -> list[float]:
        found, metadata = dict.fromkeys(kinds, nan), record.get("metadata", {})
        for key, each in columns.items():
            if (value := number_in(metadata.get(key))) is not None:
                found[each.name] = value * each.factor
        if computed and (contexts := record.get("retrieved_contexts")) is not None:
            texts = [each if isinstance(each, str) else each["text"] for each in contexts]
            found |= {"contexts": len(texts), "context_words": sum(len(text.split()) for text in texts)}
        return [*found.values()]

    table = np.array([*described_in_order(run, ids, numbers)], np.float64).reshape(len(ids), len(kinds))
    found = {name: Measure(name, kinds[name], own, clusters) for name, own in zip(kinds, table.T, strict=True)}
    return {name: each for name, each in found.items() if not np.isnan(each.values).all()}


# -- runs compared -------------------------------------------------------------------------------------


def shared_measures(runs: Sequence[Mapping[str, Measure]]) -> list[str]:
    """Return the measures that all runs have in one unit and direction."""
    first, *others = runs
    return [
        name
        for name, own in first.items()
        if all(
            name in each
            and (each[name].column.unit, each[name].column.higher_is_better)
            == (own.column.unit, own.column.higher_is_better)
            for each in others
        )
    ]


def in_all(runs: Sequence[dict[str, Measure]]) -> tuple[dict[str, Measure], ...]:
    """Return the measures of runs over the same samples, each number of a shared one only if all runs have one."""
    import numpy as np

    for name in shared_measures(runs):
        missing = np.isnan(sum(each[name].values for each in runs))
        for each in runs:
            each[name] = replace(each[name], values=np.where(missing, nan, each[name].values))
    return tuple({name: own for name, own in each.items() if not np.isnan(own.values).all()} for each in runs)


def fewer_text(runs: Sequence[Mapping[str, Measure]]) -> str:
    """Return which shared measures do not cover all samples, such as `cost over 60 of 120 questions`; may be empty."""
    first = runs[0]
    sizes = {name: first[name].record()["samples"] for name in shared_measures(runs)}
    return ", ".join(
        f"{first[name].title} over {size:,} of {len(first[name].values):,} questions"
        for name, size in sizes.items()
        if size < len(first[name].values)
    )


def measure_differences(base: Mapping[str, Measure], run: Mapping[str, Measure]) -> list[dict[str, Any]]:  # Any: JSON
    """Return the run against the base by each common measure, over the samples with a number in both.

    `difference`: of the means, its interval by Student's t. `ratio`: of the medians of a time, by the bootstrap.
    `text`: the sentence. `equal`: True if no number differs.
    """
    found: list[dict[str, Any]] = []
    for name in (each for each in base if each in run):
        both = base[name].values + run[name].values
        one, two = (each.among(both == both) for each in (base[name], run[name]))  # noqa: PLR0124  not NaN
        if not len(one.values):
            continue
        test = paired_test(two.values - one.values, _SPAN, clusters=one.clusters)
        value, interval = (one.is_time and median_ratio(two.values, one.values, clusters=one.clusters)) or (None, None)
        ends, ratio_ends = test.interval.ends, interval and interval.ends
        text = (
            f"{one.heading}: {'median' if one.is_time else 'mean'} {one.text(one.typical)} to {two.text(two.typical)}"
        )
        text += "" if value is None else f", ratio {value:.2f}"
        text += " ({:.2f} to {:.2f})".format(*ratio_ends) if ratio_ends else ""
        text += f"; difference of means {test.difference:+.3g} {one.column.unit}".rstrip()
        text += (" ({:+.3g} to {:+.3g})".format(*ends) if ends else "") + f", n = {len(one.values):,}."
        record: dict[str, Any] = {"measure": name, "first": one.record(), "second": two.record()}
        record |= {
            "difference": test.difference,
            "interval": ends,
            "ratio": value,
            "ratio_interval": ratio_ends,
            "title": one.title,
            "text": text,
        }
        found.append({**record, "equal": bool((one.values == two.values).all())})
    return found


def measure_cells(
    runs: Sequence[Mapping[str, Measure]], preferred: str | None, most: int | None = None
) -> dict[str, list[str]]:
    """Return the columns for at most `most` measures of several runs, one cell per run; `preferred` is first."""
    found: dict[str, list[str]] = {}
    names = [
        each
        for each in dict.fromkeys(name for own in runs for name in own)
        if each == preferred or each not in _COMPUTED
    ]
    for name in sorted(names, key=lambda name: name != preferred)[:most]:
        own = [each.get(name) for each in runs]
        kind = next(filter(None, own))
        times = 1000 if kind.column.unit == "USD" else 1
        title = f"{kind.title}{'/1,000' * (times > 1)}"
        found[title] = ["-" if each is None else each.text(times * each.typical) for each in own]
        if kind.is_time:
            found["p95" if kind.title == "latency" else f"{kind.title} p95"] = [
                "-" if each is None else each.text(each.record()["p95"]) for each in own
            ]
    return found


def advantage(of: Measure, over: Measure) -> str:
    """Return by how much the first is better, such as `costs 43 % less than`."""
    change = f"{100 * abs(1 - of.typical / over.typical):.0f} %" if over.typical else "much"
    word = "more" if of.column.higher_is_better else "less" if of.column.unit else "fewer"
    return _SAID.get(of.column.unit, (f"has {{}} {word} {of.title} than",))[0].format(change)


def first_by(each: Measure, ties: Sequence[str] = ()) -> str:
    """Return the words for the best of several runs, such as `costs least`; `ties`: others with the same number."""
    if ties:
        return f"has the same {each.title} as {', '.join(ties)} and the best mean of them"
    word = "most" if each.column.higher_is_better else "least" if each.column.unit else "fewest"
    return _SAID.get(each.column.unit, ("", f"has the {word} {each.title}"))[1]
