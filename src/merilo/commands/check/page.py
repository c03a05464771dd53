"""The results of `merilo judge check` as pages: 25 lines, or every table with `--full`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.commands.check.items import label_id
from merilo.commands.check.probes import Effect
from merilo.commands.check.tables import MIN_OF_EACH, MIN_POOLED, SEEN
from merilo.data.labels import Task
from merilo.metrics.base import Failed, Score, Undefined
from merilo.rendering.page import Page, Tone, cut
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import NONE, count, said, spent_text
from merilo.stats.gate import GateVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from merilo.commands.check.items import Item
    from merilo.commands.check.probes import Result
    from merilo.commands.check.run import JudgeCheck
    from merilo.commands.check.tables import TaskTable
    from merilo.metrics.base import Outcome
    from merilo.stats.resampling import Measurement

_WORST: Final = 3
_MAX_SOURCE: Final = 24
_MAX_ROWS: Final = 8
_MAX_NAME: Final = 14
_LARGEST_TABLE: Final = 6
"""The largest number of labels for which the page shows the table; the JSON always contains it."""
_TONES: Final = {GateVerdict.FAIL: Tone.BAD, GateVerdict.CANNOT_TELL: Tone.PLAIN, GateVerdict.PASS: Tone.GOOD}


def check_page(check: JudgeCheck, width: int = 80, *, full: bool = False) -> Page:
    """Return what was found: agreement with labels by task, effects of edits, the worst items and the cost."""
    page, tables = Page(width), [*check.tables.values()]
    page.text(_headline(check), tone=Tone.STRONG)
    for kind, outcome in check.kinds.items():
        if isinstance(outcome, Undefined):
            page.text(f"{kind} is not judged: {outcome.reason}")
        elif not isinstance(outcome, Score):
            page.text(f"{kind} FAILED: {_answer(outcome)}", tone=Tone.BAD)
    for each in check.edits:
        if each.obeys:
            text = f"{check.judge.name} obeys text in contexts: {each.turned:,} of {each.counted:,} verdicts turned."
            page.text(text, tone=Tone.BAD)
    if check.golden is not None:
        page.text(check.golden.note, tone=Tone.PLAIN if check.golden.agree else Tone.BAD)
    if tables:
        page.blank()
        _tasks(page, tables, check.against)
    page.blank()
    page.entries(_entries(check, full=full), indent=0)
    if check.stopped is not None:
        page.text(check.stopped, tone=Tone.BAD)
    if full:
        _full(page, check)
    return page


def _headline(check: JudgeCheck) -> str:
    parts: list[str] = []
    # The reading with the most labels of each task, so that no label counts twice.
    largest = {table.reading.task: table for table in sorted(check.tables.values(), key=lambda each: each.labels)}
    if labels := sum(each.labels for each in largest.values()):
        agree = sum(each.agree for each in largest.values())
        yes = sum(each.pooled.agreement.yes for each in largest.values())
        word, always = ("yes", yes) if 2 * yes >= labels else ("no", labels - yes)
        parts.append(
            f"{check.judge.name} agrees with people on {agree:,} of {count(labels, 'label')} "
            f'({agree / labels:.0%}); always "{word}" would agree on {always:,}.'
        )
    if check.kinds:
        working = sum(isinstance(each, Score) for each in check.kinds.values())
        name = "It" if parts else check.judge.name
        parts.append(f"{name} works for {working} of {count(len(check.kinds), 'kind')} of question.")
    return " ".join(parts) or f"{check.judge.name}: {count(len(check.edits), 'edit')}"


def _tasks(page: Page, tables: Sequence[TaskTable], against: str | None) -> None:
    heads = ("AUROC",) if against is None else ("difference", "95 %", "")
    rows: list[tuple[str, ...]] = [("task", "labels", "agree", "kappa", "95 %", *heads)]
    for table in tables:
        row = (table.name.replace("_", " "), f"{table.labels:,}", f"{table.agree:,}")
        more: tuple[str, ...] = (_value(table.auroc),)
        if table.difference is not None:
            more = (_value(table.difference, signed=True), _ends(table.difference, signed=True), table.verdict)
        rows.append((*row, _value(table.kappa), _ends(table.kappa), *more))
    page.table(rows, [Tone.STRONG, *(Tone.PLAIN for _ in tables)])
    if against is not None:
        page.text(f"difference: kappa minus that of {clean(against)}, over the same labels.", tone=Tone.QUIET)


def _entries(check: JudgeCheck, *, full: bool) -> Iterator[tuple[str, str]]:
    if check.edits:
        decided = sorted(check.edits, key=lambda each: each.verdict is not GateVerdict.FAIL)
        parts = [_noticed(each) for each in decided if each.verdict is not GateVerdict.CANNOT_TELL]
        if unclear := [each.probe.shown for each in check.edits if each.verdict is GateVerdict.CANNOT_TELL]:
            parts.append(f"cannot tell, more pairs (--number) help: {', '.join(unclear)}")
        yield "Edits", " · ".join(parts)
    if worst := check.worst[:_WORST]:
        yield "Worst", " · ".join(map(_item, worst))
    if check.constructed and full:
        yield "Skipped", f"{count(check.constructed, 'record')} with rule-generated labels"
    if check.left_out and (full or not check.edits):
        yield "Left out", "; ".join(f"{name}: {reason}" for name, reason in check.left_out.items())
    if check.judge.agreement_note and (full or not check.tables):
        yield "Known", check.judge.agreement_note
    yield "Cost", spent_text(check.usage)
    if not full:
        yield "Tables", "--full; each number with its interval: --json"


def _noticed(result: Result) -> str:
    """Return the effect of an edit in words, with its limit if it fails."""
    probe, counted, times = result.probe, result.counted, result.turned
    if probe.effect is Effect.KEPT:
        text = f"noticed in {counted - times:,} of {counted:,}"
    else:
        text = f"turned {times:,} of {counted:,}" if times > 0 else "no effect shown"
    fails = f", fails (limit {probe.limit:.0%})" if result.verdict is GateVerdict.FAIL else ""
    return f"{probe.shown}: {text}{fails}"


def _item(item: Item) -> str:
    judge, people = (_label(item, each) for each in (item.judge, item.people))
    chance = "" if item.probability is None else f" {item.probability:.2f}"
    return f"{clean(label_id(item.record))} (judge: {judge}{chance}, people: {people})"


def _label(item: Item, label: float | None) -> str:
    """Return a yes or no in a word, a grade or another label as a number."""
    if label is None or item.record.task is Task.CHUNK_RELEVANCE:
        return NONE if label is None else f"{label:g}"
    return {0.0: "no", 1.0: "yes"}.get(label, f"{label:g}")


def _answer(outcome: Outcome) -> str:
    if isinstance(outcome, Score):
        return said(outcome.evidence[0].verdict)
    return said(outcome.error) if isinstance(outcome, Failed) else outcome.reason


def _value(each: Measurement, *, signed: bool = False) -> str:
    return NONE if each.value is None else f"{each.value:{'+' if signed else ''}.2f}"


def _ends(each: Measurement, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    return NONE if each.interval.ends is None else " to ".join(f"{end:{sign}.2f}" for end in each.interval.ends)


def _share(value: float | None) -> str:
    """Return a percentage with one decimal, so that 0.9 % and a limit of 1 % look different."""
    text = NONE if value is None else f"{100 * value:.1f}"
    return text if value is None else f"{'0.0' if text == '-0.0' else text} %"


# -- every table --------------------------------------------------------------------------------------


def _full(page: Page, check: JudgeCheck) -> None:
    for table in check.tables.values():
        page.heading(table.name.replace("_", " "))
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
        "its limit, and fails if the lower limit is above it. unfit: pairs left out, as the verdict before the edit "
        "cannot show its effect. none: without a verdict; limits count them as worst and best case.",
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
    heads = ("edit", "pairs", "unfit", "none", "effect", "95 %", "up to", "limit", "")
    rows: list[tuple[str, ...]] = [heads]
    for each in results:
        ends = each.interval.ends
        counts = (f"{each.counted:,}", str(each.unfit or NONE), str(each.failed or NONE))
        interval = NONE if ends is None else " to ".join(map(_share, ends))
        limits = (_share(each.upper), _share(each.probe.limit), each.verdict.value)
        rows.append((each.probe.name, *counts, _share(each.value), interval, *limits))
    page.table(rows, [Tone.STRONG, *(_TONES[each.verdict] for each in results)])
    for result in results:
        if result.by_language is not None:
            parts = ", ".join(f"{name} {_share(each.value)}" for name, each in result.by_language.items())
            page.text(f"{result.probe.name} by language: {parts}.", indent=2)


def agreement_note(check: JudgeCheck) -> str:
    """Return kappa of each task in one line, for the reports of runs by a local judge."""
    rated: list[str] = []
    for table in check.tables.values():
        name, kappa = table.name.replace("_", " "), table.kappa
        few = f" (only {table.labels:,} labels)" if table.macro["kappa"].value is None else ""
        if kappa.value is None:
            rated.append(f"{name} unknown" if table.labels else f"{name} unknown (trained on these labels)")
        else:
            ends = "" if kappa.interval.ends is None else " [{:.2f}, {:.2f}]".format(*kappa.interval.ends)
            rated.append(f"{name} κ {kappa.value:.2f}{ends}{few}")
    return f"agreement with human labels: {', '.join(rated) or 'unknown'}"
