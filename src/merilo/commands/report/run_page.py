"""The report on one run as one HTML file: readable without scripts, and with them sorted, filtered and opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from merilo.commands.compare.run import ComparisonRequest, compare_runs
from merilo.commands.report.charts import histogram
from merilo.commands.report.comparison_page import comparison_page
from merilo.commands.report.page import (
    cautions,
    drawer,
    fault_fields,
    heading,
    metric_field,
    notes,
    page,
    page_data,
    rounded,
    table,
    text,
)
from merilo.commands.report.plain import plain_copy
from merilo.commands.report.run import report_run
from merilo.errors import UsageError
from merilo.metrics.answering import Answering, Category
from merilo.rendering.html import write_page
from merilo.rendering.markup import Markup, el
from merilo.rendering.sanitize import visible
from merilo.rendering.weak import WEAK
from merilo.rendering.wording import count, number, span
from merilo.results.faults import CANNOT_TELL, FAITHFULNESS, FAULTS, PLACES, SUFFICIENCY, Answer, Held

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike
    from pathlib import Path

    from merilo.commands.report.result import Card, RunReport
    from merilo.runs.run import Run

_HELD: Final = {
    Held.ENOUGH: "The contexts hold the answer",
    Held.SHORT: "They do not hold it",
    Held.UNKNOWN: "Contexts not judged",
}
_ANSWER: Final = {
    Answer.SUPPORTED: "All supported",
    Answer.STRAYED: "Not all supported",
    Answer.DECLINED: "Declined",
    Answer.UNKNOWN: "Samples",
}


def write_report(runs: Sequence[Run | str | PathLike[str]], out: Path, *, judge_only: bool = False) -> None:
    """Write the page of `report_text` to an HTML file.

    Raises its errors, UsageError for a file of another kind, and RunError if the file cannot be written.
    """
    if out.suffix not in {"", ".html", ".htm"}:
        raise UsageError(f"A report is one HTML file: name it {out.with_suffix('.html')}.")
    write_page(out, report_text(runs, judge_only=judge_only))


def report_text(runs: Sequence[Run | str | PathLike[str]], *, judge_only: bool = False) -> str:
    """Return the report on a run, or the comparison of each other run with the first, as one HTML page.

    Raises the errors of `report_run` and `compare_runs`.
    """
    if len(runs) == 1:
        return run_page(report_run(runs[0], judge_only=judge_only))
    return comparison_page(compare_runs(runs, ComparisonRequest(judge_only=judge_only, samples=0)))


def run_page(found: RunReport) -> str:
    """Return the report as one HTML file; equal reports give equal bytes."""
    head = el(
        "header",
        el("h1", text(found.name)),
        el("p", [el("span", fact) for fact in found.facts], cls="facts"),
        el("p", _lead(found), cls="lead"),
        cautions(found.cautions),
        cls="wrap head",
    )
    overview = el(
        "div",
        el("section", *_fault_table(found), aria_labelledby="faults"),
        el(
            "section",
            heading("Metrics", "mean, interval, distribution of the scores", anchor="metrics"),
            el("div", [_card(each) for each in found.cards], cls="metrics"),
            aria_labelledby="metrics",
        ),
        cls="wrap cols",
    )
    app = el("section", el("div", cls="wrap", id="samples"), cls="app", id="app", aria_label="Samples")
    return page(
        f"{found.name}: report",
        [head, el("main", overview, el("div", notes(found.notes), cls="wrap"), app), drawer()],
        scripts=("table.js", "sample.js", "report.js"),
        data=page_data(_columns(found), {"details": found.entries}, found.passages),
        after=plain_copy(found),
    )


def _lead(found: RunReport) -> list[object]:
    """Return the sentence on the number of likely faults, the most frequent one, and the worst sample."""
    said: list[object] = []
    if not found.judged:
        said.append(
            "Faults are not judged: the run scored none of answering, context_sufficiency and faithfulness. The lowest "
            "scores come first."
        )
    else:
        said += [el("b", f"{found.likely:,} of {count(found.samples, 'sample')}"), " have a likely fault"]
        amounts = [(amount, -at) for at, amount in enumerate(found.counts) if amount and FAULTS[at].likely]
        if amounts:
            most, at = max(amounts)
            said += [", most often ", el("b", FAULTS[-at].name.lower()), f" ({most:,})"]
        said.append(".")
    if found.entries:
        worst = found.entries[0]
        name = text(worst.question or worst.row.id)
        said += [" The worst: ", el("a", name, href=f"#sample={_quoted(worst.row.id)}", data_sample=True), "."]
    return said


def _quoted(sample: str) -> str:
    return quote(visible(sample), safe="")


def _fault_table(found: RunReport) -> Iterator[Markup]:
    """Yield the table: what the contexts hold, against what the response does; only judged rows and columns."""
    names = {metric.partition("(")[0] for metric in found.run.manifest.metrics}
    whole = Answering.name in names
    held = (Held.ENOUGH, Held.SHORT) if whole or SUFFICIENCY in names else (Held.UNKNOWN,)
    answers = (Answer.SUPPORTED, Answer.STRAYED, Answer.DECLINED)
    if not whole and FAITHFULNESS not in names:
        answers = (Answer.UNKNOWN,)
    yield heading("Where it goes wrong", "each count filters the samples", anchor="faults")
    if not found.judged:
        return
    rows = [
        el(
            "tr",
            el("th", _HELD[row], scope="row"),
            [el("td", _cell(found, row, each, whole=whole)) for each in answers],
        )
        for row in held
    ]
    if found.counts[PLACES[CANNOT_TELL]]:
        unknown = el("td", _count(found, PLACES[CANNOT_TELL]), colspan=len(answers))
        rows.append(el("tr", el("th", "Not known", scope="row"), unknown))
    yield table([el("td"), *(_ANSWER[each] for each in answers)], rows, cls="faults")


def _cell(found: RunReport, held: Held, answer: Answer, *, whole: bool) -> list[Markup]:
    """Return the faults of a cell; `whole`: the run has the metric `answering`, so a reference may disagree."""
    here = [at for at, each in enumerate(FAULTS) if (each.held, each.answer) == (held, answer)]
    if (held, answer) == (Held.SHORT, Answer.UNKNOWN):
        here = [PLACES[Category.EVIDENCE_MISSING]]
    shown = [at for at in here if FAULTS[at].key != Category.WRONG or whole]
    return [_count(found, at) for at in reversed(shown)]


def _count(found: RunReport, at: int) -> Markup:
    """Return the number of samples with a fault, as a link that filters them."""
    fault, amount = FAULTS[at], found.counts[at]
    label = [el("b", f"{amount:,}"), el("span", f"{fault.glyph} {fault.name}")]
    return el("a", label, cls=f"cell {fault.tone}{' zero' * (not amount)}", href="#samples", data_fault=at)


def _card(card: Card) -> Markup:
    found = card.aggregate
    counted = [f"{found.scored:,} scored"] if not found.parts else [f"of {', '.join(found.parts)}"]
    counted += [f"{found.undefined:,} undefined"] if found.undefined else []
    failed = el("span", f" \u00b7 {found.failed:,} failed", cls="f") if found.failed else None
    interval = span(found.interval) if found.interval is not None else (found.note or "no interval")
    notes = [el("span", WEAK, cls="weaktag")] if card.weak else []
    notes += [] if card.scale.higher_is_better else [el("span", "lower is better", cls="weaktag")]
    return el(
        "a",
        el("span", card.name, cls="n", title=card.name),
        el("span", number(found.mean), cls="v"),
        el("span", interval, cls="ci" if found.interval is not None else "ci why"),
        histogram(card),
        el("span", " \u00b7 ".join(counted), failed, " " if notes else None, notes, cls="c"),
        cls=f"metric{' weak' * card.weak}",
        href="#samples",
        data_metric=card.metric,
    )


def _columns(found: RunReport) -> dict[str, Any]:  # Any: JSON
    entries, metrics = found.entries, list(found.run.manifest.metrics)
    cards = {card.metric: card for card in found.cards}
    return {
        "total": found.samples,
        "metrics": [metric_field(metric, cards[metric].scale, weak=cards[metric].weak) for metric in metrics],
        "faults": fault_fields(),
        "id": [each.row.id for each in entries],
        "q": [each.question for each in entries],
        "r": [each.response for each in entries],
        "f": [each.row.fault for each in entries],
        "k": [each.contexts for each in entries],
        "differs": [round(each.differs, 4) for each in entries],
        "v": [[rounded(each.row.values[at]) for each in entries] for at in range(len(metrics))],
    }
