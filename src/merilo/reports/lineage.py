"""How definitions of one name score the same data: as one JSON object, as tables, and for one sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.metrics.base import Failed, Score, Undefined
from merilo.metrics.lineage.same_verdicts import FORMS
from merilo.reports.aggregate import missing_text
from merilo.reports.overview import command, counts_text, judge_name
from merilo.reports.page import Page, Span, Tone
from merilo.reports.words import NONE, OWN_ERROR, count, number, span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.metrics.base import Outcome
    from merilo.reports.definitions import DefinitionRow, LineageTables
    from merilo.runs.run import Aggregate, Run

_HEADINGS: Final = ("definition", "mean", "95 % interval", "unscored", "flags", "asked", "tau-b")


def lineage_record(tables: LineageTables) -> dict[str, Any]:  # Any: JSON
    """The tables as a JSON-able object."""
    return {
        "run": str(tables.run.path),
        "judge": judge_name(tables.run),
        "samples": tables.run.manifest.samples,
        "families": {
            family.value: [_definition_record(each) for each in rows] for family, rows in tables.families.items()
        },
        "left_out": dict(tables.left_out),
    }


def lineage_page(tables: LineageTables, width: int) -> Page:
    """One table for each family; below it what each row computes and leaves out, and why which samples lack a score."""
    page = Page(width)
    manifest = tables.run.manifest
    page.text(f"{count(manifest.samples, 'sample')} of {manifest.data}, {_judges(tables.run)}", tone=Tone.STRONG)
    for family, rows in tables.families.items():
        page.heading(_title(family.value))
        _table(page, rows)
        _notes(page, rows)
    if tables.left_out:
        page.heading("Left out")
        for reason, names in _reasons(tables.left_out).items():
            page.text(f"{reason}:", indent=2)
            page.text(", ".join(names), indent=4, tone=Tone.QUIET)
    page.blank()
    page.text(
        f"Each interval is {OWN_ERROR}. "
        f"tau-b: Kendall's rank correlation with the first row of the table, over the samples that both scored; {NONE} "
        "where there are not two, or one of the rows gives them all the same value. asked: questions behind the row; "
        "equal questions were asked once. merilo metrics NAME says how each is computed.",
        tone=Tone.QUIET,
    )
    page.line(f"  kept in {tables.run.path}")
    return page


def lineage_sample_record(tables: LineageTables, sample: str) -> dict[str, Any]:  # Any: JSON
    """How each definition arrives at its number for one sample. Raises RunError for an unknown id."""
    outcomes = tables.run.sample(sample).outcomes
    return {
        "run": str(tables.run.path),
        "sample": sample,
        "families": {
            family.value: [_outcome_record(each, outcomes[each.metric]) for each in rows]
            for family, rows in tables.families.items()
        },
    }


def lineage_sample_page(tables: LineageTables, sample: str, width: int) -> Page:
    """How each definition arrives at its number for one sample. Raises RunError for an unknown id."""
    page = Page(width)
    outcomes = tables.run.sample(sample).outcomes
    page.text(f"sample {sample} of {tables.run.manifest.data}, {_judges(tables.run)}", tone=Tone.STRONG)
    for family, rows in tables.families.items():
        page.heading(_title(family.value))
        for each in rows:
            outcome = outcomes[each.metric]
            value = number(outcome.value) if isinstance(outcome, Score) else NONE
            page.line(f"  {value:>7}  ", Span(each.definition, Tone.STRONG))
            page.text(_way(each, outcome), indent=11)
    page.heading("Every reply behind these numbers")
    page.line("  " + command("show", str(tables.run.path), "--sample", sample))
    return page


def _reasons(left_out: Mapping[str, str]) -> dict[str, list[str]]:
    """Reason → the definitions left out for it; a form is called as its definition."""
    found: dict[str, list[str]] = {}
    for metric, reason in left_out.items():
        named = next((each for each in FORMS if f"={each})" in metric or f'="{each}")' in metric), metric)
        found.setdefault(reason, []).append(named)
    return found


def _judges(run: Run) -> str:
    """Who answered; the embedder and the cross-encoder only where a definition asked them."""
    others = [f"{role} {judge.get('name', NONE)}" for role, judge in run.manifest.judges.items() if role != "judge"]
    return ", ".join([f"judge {judge_name(run)}", *others])


def _title(family: str) -> str:
    return family.replace("_", " ").capitalize()


def _table(page: Page, rows: Sequence[DefinitionRow]) -> None:
    tones = [Tone.STRONG, *[Tone.PLAIN] * len(rows)]
    page.table([_HEADINGS, *map(_cells, rows)], tones, gaps=(2, 1, 1, 1, 1))


def _cells(row: DefinitionRow) -> tuple[str, ...]:
    aggregate = row.aggregate
    tau = NONE if row.tau_b is None else f"{row.tau_b:.2f}"
    counted = (f"{amount:,}" for amount in (aggregate.undefined + aggregate.failed, aggregate.flagged, row.asked))
    return (row.definition, number(aggregate.mean), span(aggregate.interval), *counted, tau)


def _notes(page: Page, rows: Sequence[DefinitionRow]) -> None:
    """What there is to say of each row; what holds for several is said once."""
    told: dict[tuple[str, ...], list[str]] = {}
    for each in rows:
        told.setdefault((*_formula(each), *_unlike_others(each.aggregate)), []).append(each.definition)
    page.blank()
    for lines, names in told.items():
        if not lines:
            continue
        page.text(", ".join(names), indent=2)
        for line in lines:
            page.text(line, indent=4, tone=Tone.QUIET)


def _formula(row: DefinitionRow) -> list[str]:
    left_out = [f"left out: {row.left_out}"] if row.left_out else []
    return [row.formula, *left_out] if row.formula else []


def _unlike_others(aggregate: Aggregate) -> list[str]:
    """Why samples have no score, and which have one though something went wrong."""
    flags = "; ".join(f"{flag} ({amount:,})" for flag, amount in aggregate.flags.items())
    return [
        *([f"unscored: {missing_text(aggregate)}"] if aggregate.undefined or aggregate.failed else []),
        *([f"scored all the same: {flags}"] if flags else []),
    ]


def _way(row: DefinitionRow, outcome: Outcome) -> str:
    """How an outcome came about, in a line."""
    match outcome:
        case Undefined():
            return f"undefined: {outcome.reason}"
        case Failed():
            return f"failed: {outcome.error.message}"
        case Score():
            form = FORMS.get(row.definition) if row.metric != row.definition else None
            way = form.explain(outcome.counts) if form else counts_text(_counted(row, outcome.counts))
            flags = f" ({'; '.join(outcome.flags)})" if outcome.flags else ""
            return f"{way}{flags}" or "nothing was counted"


def _counted(row: DefinitionRow, counts: Mapping[str, int | None]) -> dict[str, int | None]:
    """The counts to tell: one that a published definition does not make is none, whoever judged."""
    return {name: amount for name, amount in counts.items() if amount is not None or ":" not in row.definition}


def _definition_record(row: DefinitionRow) -> dict[str, Any]:  # Any: JSON
    aggregate = row.aggregate
    return {
        "definition": row.definition,
        "metric": row.metric,
        "mean": aggregate.mean,
        "interval": aggregate.interval,
        "scored": aggregate.scored,
        "undefined": aggregate.undefined,
        "failed": aggregate.failed,
        "flagged": aggregate.flagged,
        "flags": dict(aggregate.flags),
        "asked": row.asked,
        "tau_b": row.tau_b,
        "compared": row.compared,
        "formula": row.formula,
        "left_out": row.left_out,
    }


def _outcome_record(row: DefinitionRow, outcome: Outcome) -> dict[str, Any]:  # Any: JSON
    record: dict[str, Any] = {"definition": row.definition, "metric": row.metric, "way": _way(row, outcome)}
    record["value"] = outcome.value if isinstance(outcome, Score) else None
    counts: Mapping[str, int | None] = outcome.counts if isinstance(outcome, Score) else {}
    return {**record, "counts": dict(counts)}
