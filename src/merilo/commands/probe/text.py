"""What probing found as people read it: a card with one row for each probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.commands.probe.probes import Effect
from merilo.rendering.page import Page, Span, Tone, columns
from merilo.rendering.spent import cost_text
from merilo.rendering.wording import NONE, count
from merilo.stats.gate import Verdict

if TYPE_CHECKING:
    from merilo.commands.probe.figures import Result
    from merilo.commands.probe.run import Probing

_HEADINGS: Final = ("probe", "pairs", "effect", "95 % interval", "up to", "limit", "reading")
_TONES: Final = {Verdict.PASS: Tone.GOOD, Verdict.FAIL: Tone.BAD, Verdict.CANNOT_TELL: Tone.PLAIN}
_READINGS: Final = {Verdict.PASS: "passes", Verdict.FAIL: "FAILS", Verdict.CANNOT_TELL: "cannot tell"}
_COUNTS: Final = {
    Effect.CHANGED: "share of verdicts that it changes",
    Effect.RAISED: "share of unrelated contexts that become relevant",
    Effect.KEPT: "share of statements that stay supported",
    Effect.YES: "share of verdicts that are yes all the same",
    Effect.NET: "share of verdicts that it changes, less the share that as much neutral text changes",
}


def probing_page(found: Probing, width: int) -> Page:
    """The card, what each probe does and counts, and what asking took."""
    page = Page(width)
    page.text(f"{found.judge.name} under {count(len(found.results), 'probe')}", tone=Tone.STRONG)
    names = [each.name for each in found.files] + ([] if found.wanted.data is None else [str(found.wanted.data)])
    if not found.wanted.labels and found.wanted.data is None:
        names.append("the examples in the package")
    page.text(f"{count(found.cases, 'judgement')} to be changed, from {', '.join(names)}")
    page.blank()
    _table(page, found)
    page.heading("What was changed, and what the effect counts")
    page.entries([(each.probe.name, _told(each)) for each in found.results])
    if found.left_out:
        page.heading("Left out")
        page.entries(found.left_out.items())
    _took(page, found)
    if found.stopped is not None:
        page.blank()
        page.text(found.stopped, tone=Tone.BAD)
    _notes(page)
    return page


def _table(page: Page, found: Probing) -> None:
    rows = [_HEADINGS, *map(_row, found.results)]
    tones = [Tone.STRONG, *(_TONES[each.verdict] for each in found.results)]
    for line, tone in zip(columns(rows, left=frozenset({0, 6})), tones, strict=True):
        page.line("  ", Span(line, tone))


def _row(result: Result) -> tuple[str, ...]:
    ends = result.interval.ends
    return (
        result.probe.name,
        f"{result.counted:,}",
        _percent(result.value),
        NONE if ends is None else f"{_percent(ends[0])} to {_percent(ends[1])}",
        _percent(result.limits.upper),
        _percent(result.limit),
        _READINGS[result.verdict],
    )


def _told(result: Result) -> str:
    lines = [f"{result.probe.summary} Effect: {_COUNTS[result.probe.effect]}."]
    if result.changed is not None and result.beside is not None:
        lines.append(f"Changed by it: {_percent(result.changed)}; by neutral text: {_percent(result.beside)}.")
    if result.by_language is not None:
        parts = ", ".join(f"{name} {_percent(each.value)}" for name, each in result.by_language.items())
        lines.append(f"By its language: {parts}.")
    if result.by_kind is not None:
        parts = ", ".join(f"{name} {_percent(each.value)}" for name, each in result.by_kind.items())
        lines.append(f"By kind: {parts}.")
    if result.unfit:
        why = "relevant" if result.probe.effect is Effect.RAISED else "not supported"
        lines.append(f"{count(result.unfit, 'more pair')} left out: {why} in its eyes before anything was changed.")
    if result.failed:
        lines.append(f"{count(result.failed, 'pair')} without a verdict; they are in the limits at worst and best.")
    if result.verdict is Verdict.CANNOT_TELL:
        lines.append(_untold(result))
    return "\n".join(lines)


def _untold(result: Result) -> str:
    low, high = result.limits.lower, result.limits.upper
    if low is None or high is None:
        return f"Cannot tell: {result.decision.reason.partition('cannot tell: ')[2] or 'too few pairs.'}"
    return f"Cannot tell: the effect lies between {_percent(low)} and {_percent(high)}; take more pairs (--sample)."


def _took(page: Page, found: Probing) -> None:
    usage = found.usage
    cost = usage.get("cost_usd")
    parts = [count(usage.get("requests") or 0, "request")]
    if usage.get("cached"):
        parts.append(f"{count(usage['cached'], 'answer')} from the cache")
    parts.append("price unknown" if cost is None else cost_text(cost, usage) if cost else "free of charge")
    parts.append(f"{usage.get('seconds') or 0.0:.1f} s")
    page.heading("What asking took")
    page.text(", ".join(parts), indent=2)


def _notes(page: Page) -> None:
    page.blank()
    page.text(
        "The effect is what should not happen, so less is better. A probe passes when its effect is, with 95 % "
        'confidence, no larger than the limit: "up to" is the one-sided upper limit. It fails when the effect is, with '
        "as much confidence, larger. Pairs that share a question or a text count as one case in the limits.",
        tone=Tone.QUIET,
    )


def _percent(value: float | None) -> str:
    """Two figures below 10 %: a limit of 1 % has to be told from 0.96 %."""
    if value is None:
        return NONE
    text = f"{100 * value:.1f}"
    return f"{'0.0' if text == '-0.0' else text} %"
