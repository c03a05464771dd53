"""The results of `merilo judge check`: a page of 25 lines, every table with `--full`, and one JSON object.

Equal input gives equal bytes of JSON, except under `usage`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from merilo.commands.check.items import MIN_OF_EACH, SEEN, label_id
from merilo.commands.check.probes import Effect, verdict_of
from merilo.data.labels import Task
from merilo.metrics.base import Failed, Score, Undefined
from merilo.rendering.correction import judge_sentence
from merilo.rendering.page import Page, Tone
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import NONE, count, said, spent_text
from merilo.results.records import picked
from merilo.stats.gate import GateVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from merilo.commands.check.items import Figures, Item, TaskTable
    from merilo.commands.check.probes import Result
    from merilo.commands.check.run import JudgeCheck
    from merilo.metrics.base import Outcome
    from merilo.stats.intervals import Interval
    from merilo.stats.resampling import Measurement

    JSON = dict[str, Any]  # Any: JSON

_WORST: Final = 3
_HEADS: Final = ("task", "agree", "kappa", "95 %", "balanced", "95 %", "AUROC")
_GAPS: Final = (2, 1, 2, 1)
_TONES: Final = {GateVerdict.FAIL: Tone.BAD, GateVerdict.CANNOT_TELL: Tone.PLAIN, GateVerdict.PASS: Tone.GOOD}


def check_page(*checks: JudgeCheck, width: int = 80, full: bool = False) -> Page:
    """Return what was found: agreement with labels by task and judge, effects of edits, the worst items and cost."""
    page = Page(width)
    for check in checks:
        page.text(_headline(check), tone=Tone.STRONG)
        _remarks(page, check)
    _agreement(page, checks, full=full)
    for check in checks:
        page.blank()
        if len(checks) > 1:
            page.text(check.judge.name, tone=Tone.STRONG)
        page.entries(_entries(check, full=full), indent=0)
        if check.stopped is not None:
            page.text(check.stopped, tone=Tone.BAD)
        if full:
            _full(page, check)
    return page


def _headline(check: JudgeCheck) -> str:
    parts: list[str] = []
    # The reading with the most labels of each task, so that no label counts twice.
    largest = {table.task: table for table in sorted(check.tables.values(), key=lambda each: each.labels)}
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


def _remarks(page: Page, check: JudgeCheck) -> None:
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


def _agreement(page: Page, checks: Sequence[JudgeCheck], *, full: bool) -> None:
    """Add one row for each task and judge; with `full`, one for each source below it."""
    rows: list[tuple[str, ...]] = [_HEADS]
    tones, several = [Tone.STRONG], len(checks) > 1
    for task in dict.fromkeys(name for check in checks for name in check.tables):
        shown = task.replace("_", " ")
        if several:
            rows.append((shown, *[""] * (len(_HEADS) - 1)))
            tones.append(Tone.PLAIN)
        for check in checks:
            if (table := check.tables.get(task)) is None:
                continue
            sources = [*table.sources.items()] if full else []
            judge = f"- {check.judge.name}"
            rows.append(_row(judge if several else shown, table.pooled, table))
            rows += (_row(f"{judge}: {name}" if several else f"- {name}", each) for name, each in sources)
            tones += [Tone.PLAIN, *(Tone.PLAIN if each.counts else Tone.QUIET for _, each in sources)]
    if len(rows) > 1:
        page.blank()
        page.table(rows, tones, gaps=_GAPS)


def _row(name: str, figures: Figures, table: TaskTable | None = None) -> tuple[str, ...]:
    of = figures.agreement if table is None else table
    kappa, balanced = of.kappa, of.balanced_accuracy
    agree = f"{figures.agree:,}/{figures.agreement.items:,}"
    return (name, agree, _value(kappa), _ends(kappa), _value(balanced), _ends(balanced), _value(of.auroc))


def _entries(check: JudgeCheck, *, full: bool) -> Iterator[tuple[str, str]]:
    if check.edits:
        decided = sorted(check.edits, key=lambda each: each.verdict is not GateVerdict.FAIL)
        parts = [_noticed(each) for each in decided if each.verdict is not GateVerdict.CANNOT_TELL]
        if unclear := [each.probe.shown for each in check.edits if each.verdict is GateVerdict.CANNOT_TELL]:
            parts.append(f"cannot tell, more pairs (--number) help: {', '.join(unclear)}")
        yield "Edits", " · ".join(parts)
    for task, table in check.tables.items():
        if said := judge_sentence(table.pooled.agreement, None):
            yield "Use", f"{task.replace('_', ' ')}: {said}"
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


def _value(each: Measurement) -> str:
    return NONE if each.value is None else f"{each.value:.2f}"


def _ends(each: Measurement) -> str:
    return NONE if each.interval.ends is None else " to ".join(f"{end:.2f}" for end in each.interval.ends)


def _share(value: float | None) -> str:
    """Return a percentage with one decimal, so that 0.9 % and a limit of 1 % look different."""
    return NONE if value is None else f"{round(100 * value, 1) + 0.0:.1f} %"


def _full(page: Page, check: JudgeCheck) -> None:
    if check.edits:
        page.heading("Edits")
        _effects(page, check.edits)
    if check.kinds:
        page.heading("Trial questions")
        page.entries([(kind, _answer(each)) for kind, each in check.kinds.items()])
    page.blank()
    page.text(
        "Intervals are at 95 % and cover sampling of questions and texts; human labels are taken as correct. By task: "
        f"means over sources with at least {MIN_OF_EACH} yes and {MIN_OF_EACH} no, without sources of the judge's "
        f"training data {SEEN}; others are dimmed. An edit passes if the one-sided 95 % upper limit of its effect "
        '("up to") is at most its limit, and fails if the lower limit is above it. unfit: the verdict before the edit '
        "cannot show its effect. none: without a verdict; limits count them as worst and best case.",
        tone=Tone.QUIET,
    )


def _effects(page: Page, results: Sequence[Result]) -> None:
    rows = [("edit", "pairs", "unfit", "none", "effect", "95 %", "up to", "limit", "")]
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
        few = "" if any(each.counts for each in table.sources.values()) else f" (only {table.labels:,} labels)"
        if kappa.value is None:
            rated.append(f"{name} unknown" if table.labels else f"{name} unknown (trained on these labels)")
        else:
            ends = "" if kappa.interval.ends is None else " [{:.2f}, {:.2f}]".format(*kappa.interval.ends)
            rated.append(f"{name} κ {kappa.value:.2f}{ends}{few}")
    return f"agreement with human labels: {', '.join(rated) or 'unknown'}"


# -- JSON ---------------------------------------------------------------------------------------------

_DIGITS: Final = 6


def check_record(check: JudgeCheck) -> JSON:
    """Return a check as a JSON-able object.

    `tasks` maps a task to the agreement with human labels over its sources, and by source. `probes` maps an edit to its
    effect, the limits of the effect and the verdict.
    """
    return {
        "judge": {
            "name": check.judge.name,
            "fingerprint": dict(check.judge.fingerprint()),
            "rates": check.judge.agreement_note,
        },
        "works": check.works,
        "kinds": {kind: _trial(each) for kind, each in check.kinds.items()},
        **({} if check.golden is None else {"golden": {"pairs": check.golden.pairs, "agree": check.golden.agree}}),
        "verdict": verdict_of(check.edits).value,
        "labels": check.files,
        "constructed": check.constructed,
        "tasks": {name: _task(each) for name, each in check.tables.items()},
        "probes": {result.probe.name: _effect(result) for result in check.edits},
        **picked(check, "left_out stopped usage"),
    }


def _trial(outcome: Outcome) -> JSON:
    if isinstance(outcome, Score):
        return {"works": True, "verdict": outcome.evidence[0].verdict.to_fields()}
    return {"works": False, "failure": outcome.error.to_fields() if isinstance(outcome, Failed) else None}


def _task(table: TaskTable) -> JSON:
    sources = {name: {"in_mean": each.counts} | _figures(each) for name, each in table.sources.items()}
    return _figures(table.pooled, table) | {"sources": sources}


def _figures(figures: Figures, table: TaskTable | None = None) -> JSON:
    of = figures.agreement if table is None else table
    measures = {"kappa": of.kappa, "balanced_accuracy": of.balanced_accuracy, "auroc": of.auroc}
    return {
        **({"seen": True} if figures.seen else {}),
        "n": figures.agreement.items,
        "agree": figures.agree,
        "yes": figures.agreement.yes,
        **{name: {"value": _short(each.value)} | _interval(each.interval) for name, each in measures.items()},
        **picked(figures, "without failed"),
    }


def _interval(interval: Interval) -> JSON:
    """Return an interval; `note`: why there is none, `remark`: a caveat on it."""
    record: JSON = {"interval": None if interval.ends is None else [_short(end) for end in interval.ends]}
    return record | {name: text for name in ("note", "remark") if (text := getattr(interval, name))}


def _effect(result: Result) -> JSON:
    record: JSON = {
        "summary": result.probe.shown,
        "effect": result.probe.effect.value,
        "value": _short(result.value),
        **_interval(result.interval),
        "lower": _short(result.lower),
        "upper": _short(result.upper),
        "limit": result.probe.limit,
        **picked(result, "verdict trials counted unfit failed"),
    }
    if result.probe.effect is Effect.NET:
        changed = None if result.value is None or result.neutral is None else result.value + result.neutral
        record |= {"changed_by_it": _short(changed), "changed_by_neutral_text": _short(result.neutral)}
        record |= picked(result, "turned obeys")
    if result.by_language is not None:
        parts = result.by_language.items()
        record["by_language"] = {name: {"trials": each.trials, "value": _short(each.value)} for name, each in parts}
    return record


def _short(value: float | None) -> float | None:
    """Round to six digits, as further digits differ between machines."""
    return None if value is None else round(value, _DIGITS) + 0.0
