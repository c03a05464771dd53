"""The results of probes as a page, with one row per probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.commands.probe.probes import Effect
from merilo.rendering.page import Page, Span, Tone, columns
from merilo.rendering.spent import cost_text
from merilo.rendering.wording import NONE, count
from merilo.stats.gate import GateVerdict

if TYPE_CHECKING:
    from merilo.commands.probe.figures import Result
    from merilo.commands.probe.run import ProbeReport

_HEADINGS: Final = ("probe", "pairs", "effect", "95 % interval", "up to", "limit", "reading")
_TONES: Final = {GateVerdict.PASS: Tone.GOOD, GateVerdict.FAIL: Tone.BAD, GateVerdict.CANNOT_TELL: Tone.PLAIN}
_READINGS: Final = {GateVerdict.PASS: "passes", GateVerdict.FAIL: "FAILS", GateVerdict.CANNOT_TELL: "cannot tell"}
_COUNTS: Final = {
    Effect.CHANGED: "share of verdicts that change",
    Effect.RAISED: "share of unrelated contexts that are then judged relevant",
    Effect.KEPT: "share of statements that are still judged supported",
    Effect.YES: "share of verdicts that are still positive",
    Effect.NET: "share of verdicts that change, minus the share that change with neutral text of equal length",
}


def probing_page(found: ProbeReport, width: int) -> Page:
    """Return a page with the table, the edit and the effect of each probe, and the requests and cost."""
    page = Page(width)
    page.text(f"{found.judge.name}: {count(len(found.results), 'robustness probe')}", tone=Tone.STRONG)
    names = [each.name for each in found.files] + ([] if found.wanted.data is None else [str(found.wanted.data)])
    if not found.wanted.labels and found.wanted.data is None:
        names.append("the examples in the package")
    page.text(f"{count(found.cases, 'judgement')} available, from {', '.join(names)}")
    page.blank()
    _table(page, found)
    page.heading("Edit and effect of each probe")
    page.entries([(each.probe.name, _details(each)) for each in found.results])
    if found.left_out:
        page.heading("Left out")
        page.entries(found.left_out.items())
    _took(page, found)
    if found.stopped is not None:
        page.blank()
        page.text(found.stopped, tone=Tone.BAD)
    _notes(page)
    return page


def _table(page: Page, found: ProbeReport) -> None:
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


def _details(result: Result) -> str:
    lines = [f"{result.probe.summary} Effect: {_COUNTS[result.probe.effect]}."]
    if result.changed is not None and result.neutral is not None:
        lines.append(
            f"Changed by the instructions: {_percent(result.changed)}; by neutral text: {_percent(result.neutral)}."
        )
    if result.by_language is not None:
        parts = ", ".join(f"{name} {_percent(each.value)}" for name, each in result.by_language.items())
        lines.append(f"By language of the instruction: {parts}.")
    if result.by_kind is not None:
        parts = ", ".join(f"{name} {_percent(each.value)}" for name, each in result.by_kind.items())
        lines.append(f"By kind: {parts}.")
    if result.unfit:
        why = "relevant" if result.probe.effect is Effect.RAISED else "not supported"
        lines.append(f"{count(result.unfit, 'pair')} left out: judged {why} before the edit.")
    if result.failed:
        lines.append(f"{count(result.failed, 'pair')} without a verdict; the limits count them as worst and best case.")
    if result.verdict is GateVerdict.CANNOT_TELL:
        lines.append(_undecided(result))
    return "\n".join(lines)


def _undecided(result: Result) -> str:
    low, high = result.limits.lower, result.limits.upper
    if low is None or high is None:
        return f"Cannot tell: {result.decision.reason.partition('cannot tell: ')[2] or 'too few pairs.'}"
    return f"Cannot tell: the effect is between {_percent(low)} and {_percent(high)}. Use more pairs (--sample)."


def _took(page: Page, found: ProbeReport) -> None:
    usage = found.usage
    cost = usage.get("cost_usd")
    parts = [count(usage.get("requests") or 0, "request")]
    if usage.get("cached"):
        parts.append(f"{count(usage['cached'], 'answer')} from the cache")
    parts.append("price unknown" if cost is None else cost_text(cost, usage) if cost else "free of charge")
    parts.append(f"{usage.get('seconds') or 0.0:.1f} s")
    page.heading("Requests, cost and time")
    page.text(", ".join(parts), indent=2)


def _notes(page: Page) -> None:
    page.blank()
    page.text(
        'A good judge has an effect of 0, so lower is better. "up to" is the one-sided 95 % upper limit of the effect. '
        "A probe passes if that is at most the limit. It fails if the one-sided 95 % lower limit is above the limit. "
        "Pairs that share a question or a text count as one case.",
        tone=Tone.QUIET,
    )


def _percent(value: float | None) -> str:
    """Return a percentage with one decimal, so that 0.9 % and a limit of 1 % look different."""
    if value is None:
        return NONE
    text = f"{100 * value:.1f}"
    return f"{'0.0' if text == '-0.0' else text} %"
