"""The results of `merilo judge check` as pages: 25 lines, or every table with `--full`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.commands.check.asking import label_id
from merilo.commands.check.probes import Effect
from merilo.commands.check.run import worst_items
from merilo.commands.check.tables import MIN_OF_EACH, MIN_POOLED, SEEN
from merilo.metrics.base import Failed, Score
from merilo.rendering.correction import measurement_text
from merilo.rendering.overview import command
from merilo.rendering.page import Page, Tone, cut
from merilo.rendering.sanitize import clean
from merilo.rendering.spent import cost_text
from merilo.rendering.wording import NONE, count, said
from merilo.stats.gate import GateVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from merilo.commands.check.effects import Result
    from merilo.commands.check.items import Item
    from merilo.commands.check.judges import JudgePair, JudgesAgreement, KindAgreement
    from merilo.commands.check.run import JudgeCheck
    from merilo.commands.check.tables import Figures, TaskTable
    from merilo.metrics.base import Outcome
    from merilo.stats.agreement_pairs import PairAgreement
    from merilo.stats.resampling import Measurement

_WORST: Final = 3
_MAX_SOURCE: Final = 24
_LARGEST_TABLE: Final = 6
"""The largest number of labels for which the page shows the table; the JSON always contains it."""
_READINGS: Final = {GateVerdict.FAIL: "fail", GateVerdict.CANNOT_TELL: "cannot tell", GateVerdict.PASS: "pass"}
_TONES: Final = {GateVerdict.FAIL: Tone.BAD, GateVerdict.CANNOT_TELL: Tone.PLAIN, GateVerdict.PASS: Tone.GOOD}
_COUNTS: Final = {
    Effect.CHANGED: "verdicts that change",
    Effect.RAISED: "unrelated contexts that are then judged relevant",
    Effect.KEPT: "statements that are still judged supported",
    Effect.YES: "verdicts that are still positive",
    Effect.NET: "verdicts that change, minus those that change with neutral text of equal length",
}


def check_page(check: JudgeCheck, width: int, *, full: bool = False) -> Page:
    """Return what was found: agreement with labels by task, effects of edits, the worst items and the cost."""
    page = Page(width)
    page.text(_headline(check), tone=Tone.STRONG)
    for kind, outcome in check.kinds.items():
        if not isinstance(outcome, Score):
            page.text(f"{kind} FAILED: {_answer(outcome)}", tone=Tone.BAD)
    if check.golden is not None:
        page.text(check.golden.note, tone=Tone.PLAIN if check.golden.agree else Tone.BAD)
    tables = check.people if check.everything is None else (*check.people, *check.everything)
    if tables:
        page.blank()
        _tasks(page, tables)
    page.blank()
    page.entries(_entries(check, full=full))
    if check.stopped is not None:
        page.text(check.stopped, tone=Tone.BAD)
    if full:
        _full(page, check, tables)
    return page


def _headline(check: JudgeCheck) -> str:
    parts: list[str] = []
    main = _largest(check.people)
    if records := sum(each.pooled.agreement.items for each in main):
        agree = sum(_equal(each.pooled) for each in main)
        always = sum(max(each.pooled.agreement.yes, _no(each.pooled)) for each in main)
        parts.append(
            f"{check.judge.name} agrees with people on {agree:,} of {count(records, 'label')} "
            f"({_share(agree / records)}); the more frequent label of each task would agree on {always:,}."
        )
    if check.kinds:
        working = sum(isinstance(each, Score) for each in check.kinds.values())
        name = "It" if parts else check.judge.name
        parts.append(f"{name} works for {working} of {count(len(check.kinds), 'kind')} of question.")
    return " ".join(parts) or f"{check.judge.name}: {count(len(check.edits), 'edit')}"


def _largest(tables: Sequence[TaskTable]) -> list[TaskTable]:
    """Return for each task the reading with the most records, so that no record counts twice."""
    found: dict[str, TaskTable] = {}
    for table in tables:
        known = found.get(table.reading.task.value)
        if known is None or known.pooled.agreement.items < table.pooled.agreement.items:
            found[table.reading.task.value] = table
    return [*found.values()]


def _equal(figures: Figures) -> int:
    counts = figures.agreement.confusion.counts
    return counts[0][0] + counts[1][1]


def _no(figures: Figures) -> int:
    return figures.agreement.items - figures.agreement.yes


def _tasks(page: Page, tables: Sequence[TaskTable]) -> None:
    rows: list[tuple[str, ...]] = [("task", "labels", "agree", "kappa", "95 %", "AUROC")]
    for table in tables:
        found = table.pooled.agreement
        macro = table.macro["kappa"].value is not None
        kappa = table.macro["kappa"] if macro else found.kappa
        auroc = table.macro["auroc"] if macro else found.auroc
        rows.append(
            (
                table.reading.name.replace("_", " "),
                f"{found.items:,}",
                f"{_equal(table.pooled):,}",
                _value(kappa),
                _ends(kappa),
                _value(auroc),
            )
        )
    page.table(rows, [Tone.STRONG, *(Tone.PLAIN for _ in tables)])


def _entries(check: JudgeCheck, *, full: bool) -> Iterator[tuple[str, str]]:
    for verdict, name in _READINGS.items():
        if found := [each for each in check.edits if each.verdict is verdict]:
            shown = _short_effect if verdict is GateVerdict.FAIL else _edit_name
            yield f"Edits: {name}", " · ".join(map(shown, found))
    if worst := worst_items(check, _WORST):
        yield "Worst", " · ".join(map(_item, worst))
    if check.constructed and check.everything is None:
        yield "Skipped", f"{count(check.constructed, 'record')} with rule-generated labels (--include-constructed)"
    if check.left_out and (full or not check.edits):
        yield "Left out", "; ".join(f"{name}: {reason}" for name, reason in check.left_out.items())
    if check.judge.agreement_note and (full or not check.people):
        yield "Known", check.judge.agreement_note
    yield "Cost", _cost(check)
    if not full:
        yield "Tables", "--full; each number with its interval: --json"


def _edit_name(result: Result) -> str:
    return result.probe.name


def _short_effect(result: Result) -> str:
    return f"{result.probe.name} {_share(result.value)} of {result.counted:,} (limit {_share(result.probe.limit)})"


def _item(item: Item) -> str:
    chance = "" if item.probability is None else f" {item.probability:.2f}"
    return f"{clean(label_id(item.record))} (judge {item.judge:g}{chance}, people {item.people:g})"


def _cost(check: JudgeCheck) -> str:
    usage, cost = check.usage, check.usage.get("cost_usd")
    parts = [count(usage.get("requests") or 0, "request")]
    if usage.get("cached"):
        parts.append(f"{count(usage['cached'], 'answer')} from the cache")
    parts.append("price unknown" if cost is None else cost_text(cost, usage) if cost else "free of charge")
    return ", ".join([*parts, f"{usage.get('seconds') or 0.0:.1f} s"])


def _answer(outcome: Outcome) -> str:
    if isinstance(outcome, Score):
        return said(outcome.evidence[0].verdict)
    return said(outcome.error) if isinstance(outcome, Failed) else outcome.reason


def _value(each: Measurement) -> str:
    return NONE if each.value is None else f"{each.value:.2f}"


def _ends(each: Measurement) -> str:
    ends = each.interval.ends
    return NONE if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}"


def _share(value: float | None) -> str:
    """Return a percentage with one decimal, so that 0.9 % and a limit of 1 % look different."""
    text = NONE if value is None else f"{100 * value:.1f}"
    return text if value is None else f"{'0.0' if text == '-0.0' else text} %"


# -- every table --------------------------------------------------------------------------------------


def _full(page: Page, check: JudgeCheck, tables: Sequence[TaskTable]) -> None:
    for table in tables:
        page.heading(table.reading.name.replace("_", " "))
        page.text(table.reading.rule, indent=2, tone=Tone.QUIET)
        _sources(page, table)
        _calibration(page, table)
    if check.edits:
        page.heading("Edits")
        _effects(page, check.edits)
    if check.kinds:
        page.heading("Trial questions")
        page.entries([(kind, _answer(each)) for kind, each in check.kinds.items()])
    page.blank()
    page.text(
        "Intervals are at 95 % and cover sampling of questions and texts; human labels are taken as correct. kappa by "
        f"task: mean over sources with at least {MIN_OF_EACH} yes and {MIN_OF_EACH} no; others are dimmed. ECE: "
        f"calibration error over 10 bins of equal mass. {SEEN}: the card of the judge lists this source as training "
        'data; means leave it out. An edit passes if the one-sided 95 % upper limit of its effect ("up to") is at most '
        "its limit, and fails if the lower limit is above it.",
        tone=Tone.QUIET,
    )


def _sources(page: Page, table: TaskTable) -> None:
    rows: list[tuple[str, ...]] = [("source", "n", "yes", "accuracy", "kappa", "95 %", "AUROC", "ECE", "none")]
    for name, each in table.sources.items():
        found = each.agreement
        row = (cut(name, _MAX_SOURCE), f"{found.items:,}", f"{found.yes:,}", _value(found.accuracy))
        measured = (_value(found.kappa), _ends(found.kappa), _value(found.auroc), _value(found.calibration_error))
        rows.append((*row, *measured, str(each.without or NONE)))
    page.table(rows, [Tone.STRONG, *(Tone.PLAIN if each.counts else Tone.QUIET for each in table.sources.values())])
    spoken = [(name, each.agreement.kappa) for name, each in table.languages.items() if each.agreement.has_both]
    if len(spoken) > 1:
        page.text(f"kappa by language: {', '.join(f'{name} {_value(kappa)}' for name, kappa in spoken)}.", indent=2)
    graded = [(name, each.grades.kappa) for name, each in table.sources.items() if each.grades is not None]
    if grades := ", ".join(f"{name} {_value(kappa)}" for name, kappa in graded if kappa.value is not None):
        page.text(f"All grades: weighted kappa (quadratic) {grades}.", indent=2)


def _calibration(page: Page, table: TaskTable) -> None:
    found, error = table.pooled.agreement.calibration, table.pooled.agreement.calibration_error
    if found is None or error.value is None:
        return
    size = table.pooled.agreement.with_probability
    few = f"; unreliable below {MIN_POOLED:,} items" if size < MIN_POOLED else ""
    page.text(
        f"Calibration over all {size:,}: error {error.value:.3f}; a perfectly calibrated judge would show "
        f"{found.perfect:.3f}, and at most {found.perfect_high:.3f} in 95 % of cases{few}.",
        indent=2,
    )


def _effects(page: Page, results: Sequence[Result]) -> None:
    rows: list[tuple[str, ...]] = [("edit", "pairs", "effect", "95 % interval", "up to", "limit", "")]
    for each in results:
        ends, upper = each.interval.ends, each.limits.upper
        interval = NONE if ends is None else f"{_share(ends[0])} to {_share(ends[1])}"
        row = (each.probe.name, f"{each.counted:,}", _share(each.value), interval, _share(upper))
        rows.append((*row, _share(each.probe.limit), _READINGS[each.verdict]))
    page.table(rows, [Tone.STRONG, *(_TONES[each.verdict] for each in results)])
    page.entries([(each.probe.name, _details(each)) for each in results])


def _details(result: Result) -> str:
    lines = [f"{result.probe.summary} Effect: {_COUNTS[result.probe.effect]}."]
    if result.by_language is not None:
        parts = ", ".join(f"{name} {_share(each.value)}" for name, each in result.by_language.items())
        lines.append(f"By language of the instruction: {parts}.")
    if result.by_kind is not None:
        lines.append(f"By kind: {', '.join(f'{name} {_share(each.value)}' for name, each in result.by_kind.items())}.")
    if result.unfit:
        why = "relevant" if result.probe.effect is Effect.RAISED else "not supported"
        lines.append(f"{count(result.unfit, 'pair')} left out: judged {why} before the edit.")
    if result.failed:
        lines.append(f"{count(result.failed, 'pair')} without a verdict; the limits count them as worst and best case.")
    if result.verdict is GateVerdict.CANNOT_TELL:
        lines.append("Use more pairs (--number) to decide.")
    return " ".join(lines)


# -- judges of runs -----------------------------------------------------------------------------------


def judges_page(found: JudgesAgreement, width: int) -> Page:
    """Return a page with each pair of judges by kind of question."""
    page = Page(width)
    runs = count(sum(len(each.runs) for each in found.raters), "run")
    page.text(f"{count(len(found.raters), 'judge')} compared, from {runs}", tone=Tone.STRONG)
    for sentence in found.remarks:
        page.text(sentence)
    for pair in found.pairs:
        page.heading(f"{pair.first} and {pair.second}")
        page.text(_counts(pair), indent=2)
        for kind in pair.kinds:
            _kind(page, kind)
    page.blank()
    units = "sample" if found.cluster is None else found.cluster
    page.text(
        "Neither judge is taken as correct: two judges can agree and both be wrong. Intervals are at 95 % and cover "
        f"the sampling of questions; those of one {clean(units)} are resampled together."
    )
    _next(page, found)
    return page


def _counts(pair: JudgePair) -> str:
    alone = ((pair.only_first, "the first"), (pair.only_second, "the second"))
    parts = [f"{count(pair.common, 'question')} answered by both"]
    parts += [f"{amount:,} in the runs of {who} only" for amount, who in alone if amount]
    if pair.failed:
        parts.append(f"{pair.failed:,} without a verdict from one or both")
    return f"{', '.join(parts)}."


def _kind(page: Page, kind: KindAgreement) -> None:
    page.blank()
    equal = kind.agreement.items - kind.differ
    page.text(f"{kind.kind}: same label on {equal:,} of {count(kind.agreement.items, 'question')}", indent=2)
    if len(kind.labels) <= _LARGEST_TABLE:
        rows: list[tuple[str, ...]] = [("first \\ second", *map(clean, kind.labels))]
        for label, counts in zip(kind.labels, kind.agreement.confusion.counts, strict=True):
            rows.append((clean(label), *(f"{each:,}" for each in counts)))
        page.table(rows, [Tone.QUIET, *(Tone.PLAIN for _ in kind.labels)])
    page.entries(_measures(kind.agreement), indent=4)
    if kind.samples:
        more = kind.differ_in - len(kind.samples)
        names = ", ".join(map(clean, kind.samples)) + (f" and {more:,} more" if more else "")
        page.text(f"They differ in {count(kind.differ_in, 'sample')}: {names}.", indent=4)


def _measures(found: PairAgreement) -> Iterator[tuple[str, str]]:
    if found.kappa_quadratic is not None:
        yield "weighted kappa", measurement_text(found.kappa_quadratic)
    yield "kappa", measurement_text(found.kappa)
    yield "alpha" if found.kappa_quadratic is None else "alpha (ordinal)", measurement_text(found.alpha)
    yield "AC1", measurement_text(found.ac1)
    yield "accuracy", measurement_text(found.accuracy)
    if remark := found.accuracy.interval.remark:
        yield "note", f"{remark}."


def _next(page: Page, found: JudgesAgreement) -> None:
    pair = next((each for each in found.pairs if any(kind.samples for kind in each.kinds)), None)
    if pair is None:
        return
    sample = next(kind.samples[0] for kind in pair.kinds if kind.samples)
    page.heading("Next")
    for name in (pair.first, pair.second):
        run = next(each.runs[0] for each in found.raters if each.name == name)
        page.line("  " + command("show", str(run.path), "--sample", sample))
