"""The report on one run as one HTML file: readable without scripts, and with them sorted, filtered and opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from merilo.commands.compare.run import ComparisonRequest, compare_runs
from merilo.commands.report.charts import histogram
from merilo.commands.report.comparison_page import comparison_page
from merilo.commands.report.faults import CANNOT_TELL, CATEGORIES, CELLS, FAULTS, Answer, Held
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
from merilo.metrics.answering import RESPONSES, Answering
from merilo.rendering.aggregate import share_text
from merilo.rendering.html import write_page
from merilo.rendering.markup import Markup, el
from merilo.rendering.sanitize import visible
from merilo.rendering.weak import WEAK
from merilo.rendering.wording import count, number, span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike
    from pathlib import Path

    from merilo.commands.report.result import Card, RunReport

_HELD: Final = {
    Held.ENOUGH: "Contexts hold enough",
    Held.SHORT: "Contexts not enough",
    Held.UNKNOWN: "Contexts not judged",
}
_ANSWER: Final = {
    Answer.SUPPORTED: "Answered, all supported",
    Answer.STRAYED: "Answered, not all supported",
    Answer.DECLINED: "Declined",
    Answer.UNKNOWN: "Response not judged",
}


def write_report(runs: Sequence[str], out: Path, *, judge_only: bool = False) -> None:
    """Write the page of `report_text` to a file. Raises its errors, and RunError if the file cannot be written."""
    write_page(out, report_text(runs, judge_only=judge_only))


def report_text(runs: Sequence[str | PathLike[str]], *, judge_only: bool = False) -> str:
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
    yield heading("Where it goes wrong", "each count filters the samples", anchor="faults")
    if any(found.counts[at] for at in CATEGORIES.values()):
        yield _joint_table(found)
        return
    held = [each for each in Held if each is not Held.UNKNOWN or _any(found, held=each)]
    answers = [each for each in Answer if each is not Answer.UNKNOWN or _any(found, answer=each)]
    rows = [
        el("tr", el("th", _HELD[row], scope="row"), [el("td", _cell(found, CELLS[row, each])) for each in answers])
        for row in held
    ]
    yield table([el("td"), *(_ANSWER[each] for each in answers)], rows, cls="faults")


def _joint_table(found: RunReport) -> Markup:
    """Return the table of a run with the metric `answering`: each category with its share and the probable culprit.

    A click on a count filters the samples. "Cannot tell" is left out if no sample is in it.
    """
    shown = {category: at for category, at in CATEGORIES.items() if category != CANNOT_TELL or found.counts[at]}
    runs = [each for metric, each in found.run.metrics.items() if metric.partition("(")[0] == Answering.name]
    shares = {name: share_text(share) for each in runs for name, share in each.shares.items()}
    rows = [
        el(
            "tr",
            el("td", _count(found, at)),
            el("td", FAULTS[at].cause, " ", el("span", shares.get(f"{category}/{RESPONSES}", ""), cls="soft")),
        )
        for category, at in shown.items()
    ]
    return el("table", el("tbody", rows), cls="faults joint")


def _any(found: RunReport, *, held: Held | None = None, answer: Answer | None = None) -> bool:
    return any(
        amount
        for fault, amount in zip(FAULTS, found.counts, strict=True)
        if held in {None, fault.held} and answer in {None, fault.answer}
    )


def _cell(found: RunReport, at: int) -> Markup:
    """Return a cell; one that the run could not judge says so instead of 0."""
    if not _unjudged(found, FAULTS[at].held, FAULTS[at].answer):
        return _count(found, at)
    zero = " zero" * (not found.counts[at])
    label = [el("b", "\u2013"), el("i", "not judged")]
    return el("a", label, cls=f"cell none{zero}", href="#samples", data_fault=at)


def _count(found: RunReport, at: int) -> Markup:
    """Return the number of samples with a fault, as a link that filters them."""
    fault, amount = FAULTS[at], found.counts[at]
    label = [el("b", f"{amount:,}"), el("span", f"{fault.glyph} {fault.name}")]
    return el("a", label, cls=f"cell {fault.tone}{' zero' * (not amount)}", href="#samples", data_fault=at)


def _unjudged(found: RunReport, held: Held, answer: Answer) -> bool:
    """Return True if no sample of the run has a verdict on this row or column of the table."""
    rows = held is not Held.UNKNOWN and not any(_any(found, held=each) for each in (Held.ENOUGH, Held.SHORT))
    known = (Answer.SUPPORTED, Answer.STRAYED, Answer.DECLINED)
    columns = answer is not Answer.UNKNOWN and not any(_any(found, answer=each) for each in known)
    return rows or columns


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
