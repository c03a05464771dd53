"""A check as a page of text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from merilo.commands.check.tables import MIN_OF_EACH, MIN_POOLED, SEEN
from merilo.data.labels import Task
from merilo.rendering.page import Page, Span, Tone, columns, cut
from merilo.rendering.wording import NONE, count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.check.run import Check
    from merilo.commands.check.tables import Figures, TaskTable
    from merilo.stats.resampling import Measurement

_HEADINGS: Final = ("source", "n", "yes", "kappa", "bal. acc.", "AUROC", "ECE", "none")
_MAX_SOURCE: Final = 24
_NARROW: Final = 100
"""Width below which only kappa has its interval in the table, and names of sources are truncated more."""
_MAX_ON_NARROW: Final = 18


def check_page(check: Check, width: int) -> Page:
    """Return a page with the tables of all tasks, the label files, and the requests and cost."""
    page = Page(width)
    records, asked = sum(each.records for each in check.files), check.failed[1]
    chosen = f"{asked:,} of {count(records, 'labelled record')}"
    page.text(f"{check.judge.name} compared with human labels, {chosen}", tone=Tone.STRONG)
    page.text(f"from {', '.join(each.name for each in check.files)}")
    _section(page, check, check.people, "Human labels")
    if check.everything is not None:
        made = count(check.constructed, "rule-generated label")
        changed = [table for table in check.everything if _has_constructed(table, check.people)]
        _section(page, check, changed, f"With {made}: easier negatives, not human agreement")
    elif check.constructed:
        page.blank()
        page.text(f"{count(check.constructed, 'record')} with rule-generated labels skipped (--include-constructed).")
    for task, reason in check.left_out.items():
        page.text(f"{task} left out: {reason}.")
    _took(page, check)
    if check.stopped is not None:
        page.blank()
        page.text(check.stopped, tone=Tone.BAD)
    if any(each.seen for table in (*check.people, *(check.everything or ())) for each in table.sources.values()):
        page.blank()
        page.text(
            f"{SEEN}: the card of the judge lists this source as training data. Means, calibration and figures by "
            "language leave it out."
        )
    _notes(page)
    return page


def _has_constructed(table: TaskTable, people: Sequence[TaskTable]) -> bool:
    """Return True if a table contains more records than the table of human labels for the same reading."""
    same = next((each for each in people if each.reading.name == table.reading.name), None)
    return same is None or same.reading.rule != table.reading.rule or _records(same) < _records(table)


def _records(table: TaskTable) -> int:
    return sum(each.records for each in table.sources.values())


def _section(page: Page, check: Check, tables: Sequence[TaskTable], title: str) -> None:
    page.heading(title)
    if not tables:
        page.text("none", indent=2)
    for table in tables:
        page.blank()
        page.line(Span(_name(table), Tone.STRONG))
        page.text(table.reading.rule, indent=2, tone=Tone.QUIET)
        _table(page, table)
        _calibration(page, table)
        if not check.sentences_alone and table.reading.name == Task.SENTENCE_RELEVANCE:
            page.text("--each-sentence also judges each sentence alone, for AUROC and calibration.", indent=2)


def _name(table: TaskTable) -> str:
    return table.reading.name.replace("_", " ")


def _table(page: Page, table: TaskTable) -> None:
    """Add a row per source with both labels, the mean over those that count, rates of the others, languages."""
    rows: list[tuple[str, ...]] = [_HEADINGS]
    both = {name: each for name, each in table.sources.items() if each.agreement.has_both}
    narrow = page.width < _NARROW
    rows += [_row(name, each, narrow=narrow) for name, each in both.items()]
    tones = [Tone.STRONG, *(Tone.PLAIN if each.counts else Tone.QUIET for each in both.values())]
    counting = sum(each.counts for each in both.values())
    if counting:
        macro = [_cell(table.macro["kappa"])]
        macro += [_cell(table.macro[name], alone=narrow) for name in ("balanced_accuracy", "auroc")]
        rows.append((f"mean of {counting}", "", "", *macro, "", ""))
        tones.append(Tone.STRONG)
    if both:
        for line, tone in zip(columns(rows, left=frozenset({0}), gaps=(2, 1, 2, 2, 2, 1, 1)), tones, strict=True):
            page.line("  ", Span(line, tone))
    one = [_rate(name, each) for name, each in table.sources.items() if not each.agreement.has_both]
    if one:
        page.text(f"No kappa, as all human labels are equal: {', '.join(one)}.", indent=2)
    spoken = [(name, each.agreement.kappa) for name, each in table.languages.items() if each.agreement.has_both]
    if len(spoken) > 1:
        page.text(f"kappa by language: {', '.join(f'{name} {_cell(kappa)}' for name, kappa in spoken)}.", indent=2)


def _rate(name: str, figures: Figures) -> str:
    """Return the judge's accuracy on a source with one label."""
    found = figures.agreement
    if not found.items:
        return f"{name} without a verdict"
    name = _with_mark(name, figures)
    return f"{name} accuracy {_cell(found.accuracy)} on {found.items:,} {'yes' if found.yes else 'no'}"


def _row(name: str, figures: Figures, *, narrow: bool) -> tuple[str, ...]:
    found = figures.agreement
    return (
        _with_mark(name, figures, _MAX_ON_NARROW if narrow else _MAX_SOURCE),
        f"{found.items:,}",
        f"{found.yes:,}",
        _cell(found.kappa),
        _cell(found.balanced_accuracy, alone=narrow),
        _cell(found.auroc, alone=narrow),
        NONE if found.calibration_error.value is None else _number(found.calibration_error.value),
        str(figures.without) if figures.without else NONE,
    )


def _with_mark(name: str, figures: Figures, most: int = sys.maxsize) -> str:
    """Return the name of a source, in at most `most` characters; marked if the model has seen it."""
    if not figures.seen:
        return cut(name, most)
    return f"{cut(name.removesuffix(SEEN).rstrip(), most - len(SEEN) - 1)} {SEEN}"


def _cell(each: Measurement, *, alone: bool = False) -> str:
    """Return the value, with its interval unless `alone`."""
    if each.value is None:
        return NONE
    ends = None if alone else each.interval.ends
    return _number(each.value) if ends is None else f"{_number(each.value)} [{_number(ends[0])}, {_number(ends[1])}]"


def _number(value: float) -> str:
    """Return two decimals as `.71`, `-.03` or `1.0`, short enough for eight columns in 80 characters."""
    text = f"{value:.2f}"
    return "1.0" if text == "1.00" else text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def _calibration(page: Page, table: TaskTable) -> None:
    found, error = table.pooled.agreement.calibration, table.pooled.agreement.calibration_error
    if found is None or error.value is None:
        return
    size = table.pooled.agreement.with_probability
    ends = error.interval.ends
    span = "" if ends is None else f" [{ends[0]:.3f}, {ends[1]:.3f}]"
    few = f"; unreliable below {MIN_POOLED:,} items" if size < MIN_POOLED else ""
    page.text(
        f"Calibration over all {size:,}: error {error.value:.3f}{span}; a perfectly calibrated judge would show "
        f"{found.perfect:.3f}, and at most {found.perfect_high:.3f} in 95 % of cases{few}.",
        indent=2,
    )
    if grades := _graded(table.sources):
        page.text(f"All grades: weighted kappa (quadratic) {grades}.", indent=2)


def _graded(sources: Mapping[str, Figures]) -> str:
    found = [(name, each.grades.kappa) for name, each in sources.items() if each.grades is not None]
    return ", ".join(f"{name} {_cell(kappa)}" for name, kappa in found if kappa.value is not None)


def _took(page: Page, check: Check) -> None:
    """Add requests, cost and time by task; the JSON lists them by source."""
    page.heading("Requests, cost and time")
    rows: list[tuple[str, ...]] = [("task", "requests", "from cache", "cost", "seconds")]
    for task, sources in check.usage.items():
        costs = [each["cost_usd"] for each in sources.values()]
        cost = "unknown" if None in costs else f"${sum(costs):.4f}"
        estimated = sum(each.get("estimated_usd") or 0.0 for each in sources.values())
        cost += f" (${estimated:.4f} estimated)" if estimated else ""
        requests, cached = (sum(each[name] or 0 for each in sources.values()) for name in ("requests", "cached"))
        seconds = sum(each["seconds"] or 0.0 for each in sources.values())
        rows.append((task, f"{requests:,}", f"{cached:,}", cost, f"{seconds:.1f}"))
    for place, line in enumerate(columns(rows, left=frozenset({0}))):
        page.line("  ", Span(line, Tone.PLAIN if place else Tone.STRONG))


def _notes(page: Page) -> None:
    page.blank()
    page.text(
        "Intervals are at 95 % and cover sampling of questions and texts; human labels are taken as correct. mean: "
        f"over sources with at least {MIN_OF_EACH} yes and {MIN_OF_EACH} no, weighted equally; other sources are "
        "dimmed. ECE: calibration error over 10 bins of equal mass. none: records without a verdict. - : cannot tell, "
        "or the judge gives no probability; --json shows the reason.",
        tone=Tone.QUIET,
    )
