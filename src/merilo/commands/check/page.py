"""The results of `merilo judge check`: a page of 25 lines, every table with `--full`, and one JSON object.

Equal input gives equal bytes of JSON, except under `usage`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.check.items import MIN_OF_EACH, SEEN, Figures, Item, TaskTable, label_id
from merilo.data.check import is_list, is_record
from merilo.data.labels import Task
from merilo.data.sanitize import clean
from merilo.metrics.base import Failed, Outcome, Score, Undefined
from merilo.numbers import NONE, count, measured, spent_text
from merilo.rendering.doc import Doc, Line, Part, doc_page
from merilo.rendering.explain import said
from merilo.rendering.page import Page, Tone
from merilo.results.levels import judge_sentence
from merilo.results.means import ENDS
from merilo.results.records import picked
from merilo.short_repr import short_repr

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.judges.base import Judge
    from merilo.judges.local.model import GoldenCheck

    JSON = dict[str, Any]  # Any: JSON

_WORST: Final = 3
_HEADS: Final = ("task", "agree", "kappa, 95 %", "balanced", "AUROC")
_LEGEND: Final = (
    "Intervals are at 95 % and cover sampling of questions and texts; human labels are taken as correct. By task: "
    f"means over sources with at least {MIN_OF_EACH} yes and {MIN_OF_EACH} no, without sources of the judge's "
    f"training data {SEEN}; others are dimmed."
)


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """The result of checking a judge."""

    judge: Judge
    files: Sequence[Mapping[str, object]]
    """Name (`file`), `sha256` and number of `records` of each label file."""
    kinds: Mapping[str, Outcome]
    """Kind of question → the outcome of its trial; empty if it was not asked for."""
    golden: GoldenCheck | None
    """How the logits of a local model differ from those in its card; None if there are none."""
    tables: Mapping[str, TaskTable]
    """Agreement with human labels, by task."""
    constructed: int
    """Number of records with rule-generated labels that were left out."""
    left_out: Mapping[str, str]
    """Task or kind that was left out → reason."""
    usage: Mapping[str, Any]  # Any: numbers and nulls
    """Requests, tokens, cost and seconds."""
    items: Mapping[str, Sequence[Item]]
    """All labels with the verdicts of the judge, by task."""
    failed: tuple[int, int] = (0, 0)
    """Number of items with a question that got no verdict, and number of items asked about."""
    stopped: str | None = None
    """The limit that was reached before all questions were asked, as a sentence."""

    @property
    def works(self) -> bool:
        """True if no trial question failed, and the golden logits agree; a judge may state that it cannot judge one."""
        return not any(isinstance(each, Failed) for each in self.kinds.values()) and (
            self.golden is None or self.golden.agree
        )

    @property
    def worst(self) -> list[Item]:
        """The labels on which judge and annotators differ, the most certain verdicts first."""
        every = [item for own in self.items.values() for item in own]
        differ = [item for item in every if item.judge is not None and (item.judge >= 1) != (item.people >= 1)]
        return sorted(differ, key=lambda item: -abs((0.5 if item.probability is None else item.probability) - 0.5))

    def __str__(self) -> str:
        return str(check_page(self))

    def __repr__(self) -> str:
        return short_repr(self, judge=type(self.judge).__name__, **picked(self, "files tables stopped"))


def check_page(*checks: JudgeCheck, width: int = 80, full: bool = False) -> Page:
    """Return what was found: agreement with labels by task and judge, the worst items and cost."""
    return doc_page(check_doc(*checks, full=full), width, rows=None)


def check_doc(*checks: JudgeCheck, full: bool = False) -> Doc:
    """Return the document; `full`: with every table."""
    heads = [_headline(check) for check in checks]
    rows = tuple(_rows(checks, full=full))
    return Doc(
        title=heads[0],
        parts=(
            Part("", tuple(heads), _HEADS if rows else (), rows),
            *(Part("Trial questions", (), (), _trials(check)) for check in checks if full and check.kinds),
        ),
        warnings=tuple(text for check in checks for text in _warnings(check)),
        legend=_LEGEND if full else "",
        cautions=tuple(
            f"{f'{check.judge.name}, ' * (len(checks) > 1)}{name}: {text}"
            for check in checks
            for name, text in _entries(check, full=full)
        ),
    )


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
    return " ".join(parts)


def _warnings(check: JudgeCheck) -> Iterator[str]:
    for kind, outcome in check.kinds.items():
        if isinstance(outcome, Undefined):
            yield f"{kind} is not judged: {outcome.reason}"
        elif not isinstance(outcome, Score):
            yield f"{kind} FAILED: {_answer(outcome)}"
    if check.golden is not None:
        yield check.golden.note
    if check.stopped is not None:
        yield check.stopped


def _rows(checks: Sequence[JudgeCheck], *, full: bool) -> Iterator[Line]:
    """Yield one row for each task and judge; with `full`, one for each source below it."""
    several = len(checks) > 1
    for task in dict.fromkeys(name for check in checks for name in check.tables):
        shown = task.replace("_", " ")
        if several:
            yield Line((shown, *[""] * (len(_HEADS) - 1)))
        for check in (each for each in checks if task in each.tables):
            table, judge = check.tables[task], f"- {check.judge.name}"
            yield _row(judge if several else shown, table.pooled, table)
            for name, each in table.sources.items() if full else ():
                yield _row(f"{judge}: {name}" if several else f"- {name}", each)


def _row(name: str, figures: Figures, table: TaskTable | None = None) -> Line:
    of = figures.agreement if table is None else table
    agree = f"{figures.agree:,}/{figures.agreement.items:,}"
    measures = (measured(each.value, each.interval.ends, 2) for each in (of.kappa, of.balanced_accuracy, of.auroc))
    return Line((name, agree, *measures), tone=Tone.PLAIN if table is not None or figures.counts else Tone.QUIET)


def _entries(check: JudgeCheck, *, full: bool) -> Iterator[tuple[str, str]]:
    for task, table in check.tables.items():
        if said := judge_sentence(table.pooled.agreement, None):
            yield "Use", f"{task.replace('_', ' ')}: {said}"
    if worst := check.worst[:_WORST]:
        yield "Worst", " · ".join(map(_item, worst))
    if check.constructed and full:
        yield "Skipped", f"{count(check.constructed, 'record')} with rule-generated labels"
    if check.left_out:
        yield "Left out", "; ".join(f"{name}: {reason}" for name, reason in check.left_out.items())
    if check.judge.agreement_note and (full or not check.tables):
        yield "Known", check.judge.agreement_note
    yield "Cost", spent_text(check.usage)
    if not full:
        yield "Tables", "--full; each number with its interval: --json"


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


def _trials(check: JudgeCheck) -> tuple[Line, ...]:
    return tuple(Line((kind, _answer(each))) for kind, each in check.kinds.items())


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

    `tasks` maps a task to the agreement with human labels over its sources, and by source.
    Numbers have six digits, as further ones differ between machines.
    """
    tasks = {
        name: {
            **_figures(table.pooled, table),
            "sources": {source: {"in_mean": each.counts, **_figures(each)} for source, each in table.sources.items()},
        }
        for name, table in check.tables.items()
    }
    return {
        "judge": picked(check.judge, "name rates=agreement_note") | {"fingerprint": dict(check.judge.fingerprint())},
        "works": check.works,
        "kinds": {kind: _trial(each) for kind, each in check.kinds.items()},
        **({} if check.golden is None else {"golden": picked(check.golden, "pairs agree")}),
        "tasks": _short(tasks),
        **picked(check, "labels=files constructed left_out stopped usage"),
    }


def _trial(outcome: Outcome) -> JSON:
    if isinstance(outcome, Score):
        return {"works": True, "verdict": outcome.evidence[0].verdict.to_fields()}
    return {"works": False, "failure": outcome.error.to_fields() if isinstance(outcome, Failed) else None}


def _figures(figures: Figures, table: TaskTable | None = None) -> JSON:
    of = figures.agreement if table is None else table
    return {
        **({"seen": True} if figures.seen else {}),
        **picked(figures, "n=agreement.items agree yes=agreement.yes without failed"),
        **{
            name: _filled(picked(getattr(of, name), f"value {ENDS}"))
            for name in ("kappa", "balanced_accuracy", "auroc")
        },
    }


def _filled(record: JSON) -> JSON:
    """Return a record without an empty note or remark."""
    return {name: value for name, value in record.items() if value or name not in {"note", "remark"}}


def _short(value: Any) -> Any:  # Any: JSON
    if is_record(value):
        return {name: _short(each) for name, each in value.items()}
    if is_list(value):
        return [*map(_short, value)]
    return round(value, _DIGITS) + 0.0 if isinstance(value, float) else value
