"""The published definitions of one name computed on the same data: rows of a table, its page, and JSON."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.blocking import run_blocking
from merilo.commands.evaluate.options import Options
from merilo.commands.evaluate.run import run_evaluation
from merilo.data.sanitize import command
from merilo.errors import UsageError
from merilo.metrics.base import Score
from merilo.metrics.text import metric_text
from merilo.numbers import NONE, count, number, span
from merilo.rendering.explain import without_score
from merilo.rendering.page import Page, Span, Tone
from merilo.results.estimate import OWN_ERROR
from merilo.results.means import MARK, counts_text, judge_name, missing_text, weak_legend
from merilo.results.records import grouped, picked
from merilo.results.summary import ends
from merilo.runs.clusters import clusters_by_sample
from merilo.runs.run import open_store
from merilo.runs.run_metrics import recorded_scale, weak_metrics
from merilo.stats.agreement import kendall_tau_b
from merilo.stats.means import mean_interval
from merilo_published.lineage import FORMS, Lineage, SameVerdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    from merilo.data.load import Records
    from merilo.engine.progress import Progress
    from merilo.judges.base import JudgeLike
    from merilo.metrics.base import Metric, Outcome
    from merilo.runs.manifest import Aggregate
    from merilo.runs.run import Run

NATIVE: Final[Mapping[Lineage, tuple[str, ...]]] = {
    Lineage.CONTEXT_RELEVANCE: (
        "context_relevance",
        "context_relevance(unit=context)",
        "context_relevance(unit=sentence)",
    ),
    Lineage.CONTEXT_PRECISION: ("context_precision(against=reference)", "context_precision", "context_ranking"),
    Lineage.CONTEXT_RECALL: ("context_recall",),
    Lineage.FAITHFULNESS: ("faithfulness",),
    Lineage.ANSWER_RELEVANCY: ("answer_relevancy",),
}
"""Our own metrics of each family; the first that the data allows is what the others are compared with."""

_Values = dict[str, float]
"""Sample → value, in dataset order."""


@dataclass(frozen=True, slots=True)
class DefinitionRow:
    """One definition of a family, over the samples of a run."""

    definition: str
    """The text of the metric, merilo's own or published."""
    metric: str
    """The text of the metric that was computed; for a published formula, `same_verdicts(of=...)`."""
    aggregate: Aggregate
    """Over all samples that this definition scored."""
    common_mean: float | None
    """Mean over the common samples of the family; None if the definition is not compared (see `CommonSamples`)."""
    common_interval: tuple[float, float] | None
    """Confidence interval of `common_mean`, at the level of the aggregate; None if there is none."""
    asked: int
    """Number of questions that its outcomes are based on; equal questions count once."""
    tau_b: float | None
    """Kendall's tau-b with the first row over the common samples; None when not defined."""
    compared: int
    """Number of samples in `common_mean` and `tau_b`."""
    formula: str
    left_out: str
    """The parts of the definition that are not computed; empty if it is computed completely."""
    weak: bool = False
    """True if the metric that was computed is weak with the judge."""


@dataclass(frozen=True, slots=True)
class CommonSamples:
    """The samples over which the definitions of a family are compared: those that all of them scored.

    A definition without any score is not compared. Definitions with the fewest scores are left out as well, until the
    common samples are at least half of the largest number that one definition scored. A definition may be undefined
    for most samples, and would otherwise leave too few common ones.
    """

    count: int
    most: int
    """The largest number of samples that one definition scored."""
    left_out: Mapping[str, int]
    """The definitions that are not compared → how many samples they scored."""
    with_all: int
    """Number of common samples if every definition with a score were compared."""
    same: bool
    """True if every definition is compared and scored the same samples."""


@dataclass(frozen=True, slots=True)
class DefinitionTables:
    """A run with the definitions of one family; `left_out`: metrics without a definition, and why."""

    run: Run
    family: Lineage
    rows: tuple[DefinitionRow, ...]
    """Native definitions first."""
    common: CommonSamples
    left_out: Mapping[str, str]


async def compute_definitions(
    data: str | PathLike[str] | Records,
    family: str,
    judge: JudgeLike | Sequence[JudgeLike] = "embedded",
    **options: Any,  # Any: the other options of an evaluation
) -> DefinitionTables:
    """Evaluate the definitions of a family on one data set.

    Each definition's formula is computed over the verdicts of merilo's own metrics, so no question is asked twice.
    Definitions that the data or the judge does not support are left out, with the reason. `options`: further options
    of an evaluation.

    Raises UsageError for an unknown family or if no definition is left, and what `evaluate` raises.
    """
    try:
        found = Lineage(family)
    except ValueError:
        raise UsageError(f"There is no family {family!r} of definitions; there are {', '.join(Lineage)}.") from None
    plan: dict[str, str | Metric] = {text: text for text in NATIVE[found]}
    plan |= {definition: SameVerdicts(of=definition) for definition, form in FORMS.items() if form.lineage is found}
    wanted = Options(judge=judge, metrics=[*plan.values()], lenient=True, **options)
    return definition_tables(await run_evaluation(data, wanted), found, plan)


def definition_tables(run: Run, family: Lineage, plan: Mapping[str, str | Metric]) -> DefinitionTables:
    """Return one row per definition whose metric the run has; `plan`: definition → metric, native ones first."""
    values: dict[str, _Values] = {text: {} for text in run.metrics}
    keys: dict[str, set[str]] = {text: set() for text in run.metrics}
    for record in run.records():
        text = record["metric"]
        keys[text].update(record.get("trail", ()))
        if record["outcome"] == "score":
            values[text][record["sample"]] = record.get("value", 0.0)
    texts = {name: metric if isinstance(metric, str) else metric_text(metric) for name, metric in plan.items()}
    scores = {name: values[text] for name, text in texts.items() if text in run.metrics}
    compared = _compared(scores)
    shared = _shared(compared.values())
    common = {name: [own[each] for each in shared] for name, own in compared.items()}
    cluster_of = _clusters(run)
    clusters = [cluster_of[each] for each in shared] if cluster_of else None
    first = common.get(next(iter(scores)), [])
    rows: list[DefinitionRow] = []
    for name in scores:
        metric, own = texts[name], common.get(name, [])
        form = FORMS.get(name) if metric != name else None
        estimate = mean_interval(own, recorded_scale(run.manifest, metric).span, clusters=clusters if own else None)
        row = DefinitionRow(
            definition=name,
            metric=metric,
            aggregate=run.metrics[metric],
            common_mean=estimate.value,
            common_interval=ends(estimate.interval),
            asked=len(keys[metric]),
            tau_b=kendall_tau_b(first, own) if first and own else None,
            compared=len(own),
            formula=form.formula if form else "",
            left_out=form.left_out if form else "",
            weak=metric in weak_metrics(run.manifest),
        )
        rows.append(row)
    return DefinitionTables(run, family, tuple(rows), _common(scores, compared, len(shared)), run.manifest.left_out)


def _compared(scores: Mapping[str, _Values]) -> dict[str, _Values]:
    """Return the definitions to compare, by the rule of `CommonSamples`."""
    compared = {name: values for name, values in scores.items() if values}
    most = max(map(len, compared.values()), default=0)
    while 2 * len(_shared(compared.values())) < most:
        fewest = min(map(len, compared.values()))
        rest = {name: values for name, values in compared.items() if len(values) > fewest}
        if not rest:
            break
        compared = rest
    return compared


def _shared(scores: Iterable[_Values]) -> list[str]:
    """Return the samples that all of these definitions scored, in the order of the data."""
    first, *others = [*scores] or [{}]
    return [sample for sample in first if all(sample in each for each in others)]


def _common(scores: Mapping[str, _Values], compared: Mapping[str, _Values], count: int) -> CommonSamples:
    most = max(map(len, scores.values()))
    left_out = {name: len(values) for name, values in scores.items() if name not in compared}
    with_all = len(_shared(values for values in scores.values() if values))
    return CommonSamples(count, most, left_out, with_all, same=count == most and not left_out)


def _clusters(run: Run) -> dict[str, str]:
    """Return sample → cluster; empty if the run has no clusters."""
    if run.manifest.cluster is None:
        return {}
    with closing(open_store(run)) as store:
        return clusters_by_sample(store, run.manifest.cluster)


# -- as JSON, as a table, and for one sample -----------------------------------------------------------

_ALIKE: Final[Sequence[str]] = ("definition", "mean", "95 % interval", "scored", "flags", "asked", "tau-b")
"""The headings if every definition scored the same samples."""
_UNLIKE: Final[Sequence[str]] = ("definition", "mean", "scored", "common", "95 % interval", "flags", "asked", "tau-b")
"""The headings otherwise: the mean over the definition's own samples, then everything else over the common ones."""
_WIDE: Final = 70
"""On pages narrower than this, the column `asked` is left out."""


def definitions(
    data: str,
    family: str,
    judge: JudgeLike | Sequence[JudgeLike],
    progress: Progress | None,
    *,
    width: int | None,
) -> Page | dict[str, Any]:
    """Compare the definitions of a family on data: a page, of one sample if there is only one; None: as JSON.

    Raises what `compute_definitions` raises.
    """
    tables = run_blocking(compute_definitions(data, family, judge, progress=progress))
    if width is None:
        return definitions_record(tables)
    return (sample_page if tables.run.done == 1 else definitions_page)(tables, width)


def definitions_record(tables: DefinitionTables) -> dict[str, Any]:  # Any: JSON
    """Return the tables as a JSON-able object."""
    common = tables.common
    return {
        "run": str(tables.run.path),
        "judge": judge_name(tables.run),
        "samples": tables.run.manifest.samples,
        "family": tables.family.value,
        "definitions": [_definition_record(each) for each in tables.rows],
        "common": {
            "samples": common.count,
            "not_compared": dict(common.left_out),
            "samples_with_all": common.with_all,
        },
        "left_out": dict(tables.left_out),
    }


def definitions_page(tables: DefinitionTables, width: int) -> Page:
    """Return the page with the table, and notes: each row's formula, what it leaves out, and why scores are missing."""
    page = Page(width)
    manifest = tables.run.manifest
    page.text(f"{count(manifest.samples, 'sample')} of {manifest.data}, {_judges(tables.run)}", tone=Tone.STRONG)
    page.heading(tables.family.value.replace("_", " ").capitalize())
    page.text(_common_text(tables.common, manifest.samples), tone=Tone.QUIET)
    _table(page, tables.rows, tables.common, manifest.samples)
    if legend := weak_legend(each.definition for each in tables.rows if each.weak):
        page.text(legend, tone=Tone.QUIET)
    _notes(page, tables.rows)
    if tables.left_out:
        page.heading("Left out")
        for reason, names in _reasons(tables.left_out).items():
            page.text(f"{reason}:", indent=2)
            page.text(", ".join(names), indent=4, tone=Tone.QUIET)
    page.blank()
    page.text(
        f"Intervals {OWN_ERROR}. "
        "tau-b: Kendall's rank correlation with the first row of the table, over the common samples (1 = same order); "
        f"{NONE} if there are fewer than two samples, or if one of the rows is constant. "
        "asked: questions that the row is based on; equal questions were asked once. "
        "Published rows apply the published formula to merilo's verdicts; prompts, steps and replies are not "
        "reproduced. merilo metrics NAME explains each metric.",
        tone=Tone.QUIET,
    )
    page.line(f"  stored in {tables.run.path}")
    return page


def sample_page(tables: DefinitionTables, width: int) -> Page:
    """Return a page on how each definition computes its number for the only sample of the run."""
    page = Page(width)
    (sample,) = tables.run.samples
    page.text(f"sample {sample.sample.id} of {tables.run.manifest.data}, {_judges(tables.run)}", tone=Tone.STRONG)
    page.heading(tables.family.value.replace("_", " ").capitalize())
    for each in tables.rows:
        outcome = sample.outcomes[each.metric]
        value = number(outcome.value) if isinstance(outcome, Score) else NONE
        page.line(f"  {value:>7}  ", Span(_name(each), Tone.STRONG))
        page.text(_way(each, outcome), indent=11)
    if legend := weak_legend(each.definition for each in tables.rows if each.weak):
        page.blank()
        page.text(legend, tone=Tone.QUIET)
    page.heading("To show all replies")
    page.line("  " + command("show", str(tables.run.path), "--sample", str(sample.sample.id)))
    return page


def _reasons(left_out: Mapping[str, str]) -> dict[str, list[str]]:
    """Return reason → the definitions left out for it; a formula over merilo's verdicts is named as its definition."""
    called = {metric_text(SameVerdicts(of=each)): each for each in FORMS}
    return grouped((reason, called.get(metric, metric)) for metric, reason in left_out.items())


def _judges(run: Run) -> str:
    """Return the names of the judges; the embedder and the cross-encoder only if a definition asked them."""
    others = [f"{role} {judge.get('name', NONE)}" for role, judge in run.manifest.judges.items() if role != "judge"]
    return ", ".join([f"judge {judge_name(run)}", *others])


def _common_text(common: CommonSamples, samples: int) -> str:
    """Return the samples over which the definitions are compared, and the definitions that are not compared."""
    if not common.most:
        return "No definition scored a sample."
    if common.same:
        return f"Every definition scored the same {common.count:,} of {samples:,} samples."
    others = "other " if common.left_out else ""
    over = f"{common.count:,} of {samples:,} samples that every {others}definition scored"
    text = f"common: mean, interval and tau-b over the {over}."
    if not common.count:
        text = "No sample was scored by every definition, so their means cannot be compared."
    if common.left_out:
        names = ", ".join(f"{name} ({scored:,})" for name, scored in common.left_out.items())
        text = f"{text} Not compared, because they scored too few samples: {names}."
    return text


def _table(page: Page, rows: Sequence[DefinitionRow], common: CommonSamples, samples: int) -> None:
    columns = {
        "definition": [_name(row) for row in rows],
        "mean": [number(row.aggregate.mean) for row in rows],
        "scored": [f"{row.aggregate.scored:,}/{samples:,}" for row in rows],
        "common": [number(row.common_mean) for row in rows],
        "95 % interval": [span(row.common_interval) for row in rows],
        "flags": [f"{row.aggregate.flagged:,}" for row in rows],
        "asked": [f"{row.asked:,}" for row in rows],
        "tau-b": [NONE if row.tau_b is None else f"{row.tau_b:.2f}" for row in rows],
    }
    headings = _ALIKE if common.same else _UNLIKE
    gaps: Sequence[int] = (2, 1, 1, 1, 1) if common.same else (1, 2, 2, 1, 1, 1)
    if page.width < _WIDE:
        headings, gaps = [each for each in headings if each != "asked"], [1] * (len(headings) - 3)
    cells = zip(*(columns[each] for each in headings), strict=True)
    page.table([headings, *map(list, cells)], [Tone.STRONG, *[Tone.PLAIN] * len(rows)], gaps=gaps)


def _name(row: DefinitionRow) -> str:
    return f"{row.definition}{MARK}" if row.weak else row.definition


def _notes(page: Page, rows: Sequence[DefinitionRow]) -> None:
    """Add the notes on the rows: formulas, missing scores and flags; rows with equal notes are listed together."""
    page.blank()
    for lines, names in grouped((_lines(each), each.definition) for each in rows).items():
        if lines:
            page.text(", ".join(names), indent=2)
        for line in lines:
            page.text(line, indent=4, tone=Tone.QUIET)


def _lines(row: DefinitionRow) -> tuple[str, ...]:
    aggregate = row.aggregate
    flags = "; ".join(f"{flag} ({amount:,})" for flag, amount in aggregate.flags.items())
    notes = {
        row.formula: bool(row.formula),
        f"left out: {row.left_out}": bool(row.left_out),
        f"unscored: {missing_text(aggregate)}": bool(aggregate.undefined or aggregate.failed),
        f"scored anyway: {flags}": bool(flags),
    }
    return tuple(text for text, holds in notes.items() if holds)


def _way(row: DefinitionRow, outcome: Outcome) -> str:
    """Return one line on how an outcome was computed."""
    if not isinstance(outcome, Score):
        return without_score(outcome)
    form = FORMS.get(row.definition)
    way = form.explain(outcome.counts) if form else counts_text(outcome.counts)
    flags = f" ({'; '.join(outcome.flags)})" if outcome.flags else ""
    return f"{way}{flags}" or "nothing was counted"


def _definition_record(row: DefinitionRow) -> dict[str, Any]:  # Any: JSON
    return {
        **picked(row, "definition metric weak"),
        **picked(row.aggregate, "mean interval scored undefined failed flagged flags"),
        **picked(row, "asked tau_b compared common_mean common_interval formula left_out"),
    }
