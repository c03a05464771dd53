"""A comparison as JSON, as flat records for a data frame, and as the tables that a notebook shows.

In the JSON `first` is the base, and differences are second minus first; in `stats` the run is the first of a pair.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.compare.text import conclusion, verdict_text, why_of
from merilo.numbers import number
from merilo.rendering.explain import evidence_groups
from merilo.rendering.frames import frame
from merilo.results.estimate import Verdict
from merilo.results.means import CAVEAT
from merilo.results.measures import measure_cells, measure_differences
from merilo.results.records import picked
from merilo.stats.intervals import LEVEL

SCHEMA: Final = 3
"""Number of the format of the JSON: from 3 on, what qualifies a number is in `caveats`."""
_SIDE: Final = (
    "name run=run.path data=run.manifest.data samples=scored complete not_common=absences not_common_ids=absent"
)
_ROW: Final = (
    "metric basis=estimate.basis higher_is_better verdict first_mean=base_mean second_mean=run_mean "
    "difference=estimate.value interval=estimate.interval pairs=estimate.samples "
    "scored_in_one_only=estimate.missing.total"
)
_NUMBERS: Final = (
    "level=interval.level method=interval.method p p_corrected=adjusted higher=counts.wins equal=counts.ties "
    "lower=counts.losses standardised p_second_higher=superiority detectable clusters "
    "first_undefined=counts.first_undefined second_undefined=counts.second_undefined first_failed=counts.first_failed "
    "second_failed=counts.second_failed scored_in_none=counts.neither least_difference=least.difference "
    "least_interval=least.interval.ends most_difference=most.difference most_interval=most.interval.ends"
)

if TYPE_CHECKING:
    import pandas as pd

    from merilo.commands.compare.result import Moved, Row, RunComparison


def comparison_record(found: RunComparison) -> dict[str, Any]:  # Any: JSON
    """Return the comparison as a JSON-able object."""
    return {
        "schema": SCHEMA,
        **picked(found, "verdict"),
        "conclusion": conclusion(found),
        "runs": [picked(side, _SIDE) for side in found.sides],
        "level": LEVEL,
        **picked(found, "common undefined cluster primary"),
        "caveats": [picked(each, CAVEAT) for each in found.caveats],
        "comparisons": [_row(found, row) for row in found.rows],
        **({"ranking": _ranking(found)} if found.rankings else {"measures": measure_differences(*found.measures)}),
        "faults": [each.counts for each in found.faults],
        **picked(found, "moved_by movers"),
        "moved": [_moved(found, each) for each in found.moved],
    }


def flat_row(found: RunComparison, row: Row) -> dict[str, object]:
    """Return one comparison as a flat record, without nested values; the interval's ends are `low` and `high`."""
    low, high = row.interval or (None, None)
    flat = {name: value for name, value in _row(found, row).items() if not name.endswith(("interval", "caveats"))}
    return {**flat, "low": low, "high": high}


def _row(found: RunComparison, row: Row) -> dict[str, Any]:  # Any: JSON
    return {
        "first": found.names[next((each.best for each in found.rankings if row in each.rows), 0)],
        "second": found.names[row.other],
        **picked(row, _ROW),
        "said": ": ".join(filter(None, (verdict_text(row), why_of(row)))),
        **picked(row.comparison, _NUMBERS),
        "caveats": [picked(caveat, CAVEAT) for caveat in row.estimate.caveats],
    }


def _ranking(found: RunComparison) -> dict[str, Any]:  # Any: JSON
    each = found.rankings[0]
    places = {"best": [each.best], "may_be_best": each.may_be_best, "as_good": each.as_good}
    places |= {name: [] if at is None else [at] for name, at in (("against", each.against), ("chosen", found.chosen))}
    named = {name: [found.names[place] for place in own] for name, own in places.items()}
    return {**picked(each, "metric within"), **named, "preferred": found.preferred, "runs": ranking_rows(found)}


def ranking_rows(found: RunComparison) -> list[dict[str, Any]]:  # Any: JSON
    """Return one flat record per run, best first: by metric mean, difference from best, verdict; measures."""
    records: list[dict[str, Any]] = []
    for place in found.rankings[0].means:
        record: dict[str, Any] = {"run": found.names[place]}
        for each in found.rankings:
            row = each.row_of(place)
            low, high = (row and row.interval) or (None, None)
            own: dict[str, Any] = {"mean": each.means[place], "difference": row and row.difference, "low": low}
            own |= {"high": high, "verdict": row and row.verdict}
            record |= {f"{each.metric} {name}": value for name, value in own.items()}
        for name, measure in found.measures[place].items():
            numbers = measure.record()
            record |= {f"{name} {of}": numbers[of] for of in ("mean", "median", "p95")}
        records.append(record)
    return records


def ranking_latex(found: RunComparison) -> str:
    """Return the table of several runs in LaTeX: in bold the best mean of a metric, with a dagger what is worse."""
    measured = measure_cells(found.measures, found.preferred)
    lines = [["run", *(each.metric for each in found.rankings), *measured]]
    for place in found.rankings[0].means:
        cells = [found.names[place]]
        for each in found.rankings:
            row, mean = each.row_of(place), number(each.means[place])
            worse = row is not None and row.verdict is Verdict.WORSE
            cells.append(f"\\textbf{{{mean}}}" if row is None else f"{mean}$^\\dagger$" if worse else mean)
        lines.append([*cells, *(own[place] for own in measured.values())])
    rows = [" & ".join(re.sub(r"([_%&#])", r"\\\1", cell) for cell in line) + r" \\" for line in lines]
    head = ["% bold: the best mean; dagger: shown to be worse, all intervals of a metric holding together with 95 %"]
    head += [f"\\begin{{tabular}}{{l{'r' * (len(lines[0]) - 1)}}}", r"\toprule", rows[0], r"\midrule"]
    return "\n".join([*head, *rows[1:], r"\bottomrule", r"\end{tabular}", ""])


def _moved(found: RunComparison, each: Moved) -> dict[str, Any]:  # Any: JSON
    return {
        "sample": each.sample,
        "user_input": each.cases[0].result.sample.user_input,
        "difference": each.step,
        "runs": [
            {
                "name": name,
                "value": value,
                "verdicts": [
                    picked(piece, "about said text evidence=quotes")
                    for piece in evidence_groups(case, found.moved_by or "")
                ],
            }
            for name, value, case in zip(found.names, each.values, each.cases, strict=True)
        ],
    }


def comparison_frame(comparison: RunComparison) -> pd.DataFrame:
    """Return one row for each metric and other run. Raises UsageError if pandas is not installed."""
    return frame([flat_row(comparison, row) for row in comparison.rows])
