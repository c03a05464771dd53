"""The scores of several definitions of one metric on the same data: as JSON, as a table, and for one sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.commands.blocking import run_blocking
from merilo.metrics.base import Score
from merilo.rendering.aggregate import missing_text
from merilo.rendering.overview import command, judge_name
from merilo.rendering.page import Page, Span, Tone
from merilo.rendering.weak import MARK, weak_legend
from merilo.rendering.wording import NONE, OWN_ERROR, count, counts_text, number, span, without_score
from merilo.results.records import grouped, picked
from merilo_published.lineage.same_verdicts import FORMS
from merilo_published.lineage.tables import compute_definitions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.engine.progress import Progress
    from merilo.judges.base import JudgeLike
    from merilo.metrics.base import Outcome
    from merilo.runs.manifest import Aggregate
    from merilo.runs.run import Run
    from merilo_published.lineage.tables import CommonSamples, DefinitionRow, DefinitionTables

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
    page.heading(_title(tables.family.value))
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
    page.heading(_title(tables.family.value))
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

    def named(metric: str) -> str:
        return next((each for each in FORMS if f"={each})" in metric or f'="{each}")' in metric), metric)

    return grouped((reason, named(metric)) for metric, reason in left_out.items())


def _judges(run: Run) -> str:
    """Return the names of the judges; the embedder and the cross-encoder only if a definition asked them."""
    others = [f"{role} {judge.get('name', NONE)}" for role, judge in run.manifest.judges.items() if role != "judge"]
    return ", ".join([f"judge {judge_name(run)}", *others])


def _title(family: str) -> str:
    return family.replace("_", " ").capitalize()


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
    tones = [Tone.STRONG, *[Tone.PLAIN] * len(rows)]
    headings = _ALIKE if common.same else _UNLIKE
    gaps: Sequence[int] = (2, 1, 1, 1, 1) if common.same else (1, 2, 2, 1, 1, 1)
    if page.width < _WIDE:
        headings, gaps = [each for each in headings if each != "asked"], [1] * (len(headings) - 3)
    page.table([headings, *(_cells(row, headings, samples) for row in rows)], tones, gaps=gaps)


def _cells(row: DefinitionRow, headings: Sequence[str], samples: int) -> list[str]:
    found = {
        "definition": _name(row),
        "mean": number(row.aggregate.mean),
        "scored": f"{row.aggregate.scored:,}/{samples:,}",
        "common": number(row.common_mean),
        "95 % interval": span(row.common_interval),
        "flags": f"{row.aggregate.flagged:,}",
        "asked": f"{row.asked:,}",
        "tau-b": NONE if row.tau_b is None else f"{row.tau_b:.2f}",
    }
    return [found[heading] for heading in headings]


def _name(row: DefinitionRow) -> str:
    return f"{row.definition}{MARK}" if row.weak else row.definition


def _notes(page: Page, rows: Sequence[DefinitionRow]) -> None:
    """Add the notes on the rows; rows with equal notes are listed together."""
    page.blank()
    notes = grouped(((*_formula(each), *_exceptions(each.aggregate)), each.definition) for each in rows)
    for lines, names in notes.items():
        if not lines:
            continue
        page.text(", ".join(names), indent=2)
        for line in lines:
            page.text(line, indent=4, tone=Tone.QUIET)


def _formula(row: DefinitionRow) -> list[str]:
    left_out = [f"left out: {row.left_out}"] if row.left_out else []
    return [row.formula, *left_out] if row.formula else []


def _exceptions(aggregate: Aggregate) -> list[str]:
    """Return why samples have no score, and the flags of samples that were scored anyway."""
    flags = "; ".join(f"{flag} ({amount:,})" for flag, amount in aggregate.flags.items())
    return [
        *([f"unscored: {missing_text(aggregate)}"] if aggregate.undefined or aggregate.failed else []),
        *([f"scored anyway: {flags}"] if flags else []),
    ]


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
