"""The report on one run as one HTML file: readable without scripts, and with them sorted, filtered and opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from merilo.commands.report.charts import histogram
from merilo.commands.report.embedded_data import fault_fields, metric_field, page_data, rounded
from merilo.commands.report.faults import CATEGORIES, CELLS, FAULTS, Answer, Held
from merilo.commands.report.joint_table import joint_table
from merilo.commands.report.page import cautions, drawer, heading, notes, page, text
from merilo.commands.report.plain import plain_copy
from merilo.rendering.markup import Markup, el
from merilo.rendering.sanitize import visible
from merilo.rendering.weak import WEAK
from merilo.rendering.wording import count, number, span

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        yield joint_table(found)
        return
    held = [each for each in Held if each is not Held.UNKNOWN or _any(found, held=each)]
    answers = [each for each in Answer if each is not Answer.UNKNOWN or _any(found, answer=each)]
    head = el("tr", el("td"), [el("th", _ANSWER[each], scope="col") for each in answers])
    rows = [
        el("tr", el("th", _HELD[row], scope="row"), [el("td", _cell(found, CELLS[row, each])) for each in answers])
        for row in held
    ]
    yield el("table", el("thead", head), el("tbody", rows), cls="faults")


def _any(found: RunReport, *, held: Held | None = None, answer: Answer | None = None) -> bool:
    return any(
        amount
        for fault, amount in zip(FAULTS, found.counts, strict=True)
        if held in {None, fault.held} and answer in {None, fault.answer}
    )


def _cell(found: RunReport, at: int) -> Markup:
    """Return a cell; one that the run could not judge says so instead of 0."""
    fault, amount = FAULTS[at], found.counts[at]
    unknown = _unjudged(found, fault.held, fault.answer)
    label = (
        [el("b", "\u2013"), el("i", "not judged")]
        if unknown
        else [el("b", f"{amount:,}"), el("span", f"{fault.glyph} {fault.name}")]
    )
    tone = "none" if unknown else fault.tone
    return el("a", label, cls=f"cell {tone}{' zero' * (not amount)}", href="#samples", data_fault=at)


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
        "v": [[rounded(each.row.values[at]) for each in entries] for at in range(len(metrics))],
    }
