"""The result of a watch as JSON, text for the terminal, and metrics for Prometheus: three drawings of one record."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.watch.evidence import SCORED, Evidence, State
from merilo.commands.watch.journal import Journal
from merilo.commands.watch.look import LEARNED, LEARNED_DAYS, TRAFFIC, Watcher
from merilo.data.sanitize import clean
from merilo.numbers import count, number
from merilo.rendering.doc import Doc, Line, Part, doc_page
from merilo.stats.drift import WEEKDAYS_FROM

if TYPE_CHECKING:
    from merilo.rendering.page import Page

Record = dict[str, Any]  # Any: JSON
FIELDS: Final = {
    "mean": ("last look", "Mean of the last look, from 0 (worst) to 1."),
    "reference": ("reference", "Mean of the reference."),
    "alarm_line": ("alarm line", "Scores below it are evidence of a change."),
    "evidence_ratio": ("evidence", "Evidence of a change, 1 at an alarm."),
}
"""Figure of a metric or slice → its heading, and its description for Prometheus."""
_COUNTS: Final = {
    "seen": ("units_seen_total", "Units in the source."),
    "judged": ("units_judged_total", "Units that were judged."),
    "failed": ("failed_total", "Outcomes that failed."),
    "damaged": ("damaged_total", "Rows that could not be read."),
    "cost_usd": ("cost_usd_total", "Cost of the judge in USD."),
}
_LABEL_CHARS: Final = 100
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\""})


def watch_record(watcher: Watcher | Journal) -> Record:
    """Return the state of a watch as JSON, after the looks of a call, or as it is stored."""
    journal, call = (watcher, None) if isinstance(watcher, Journal) else (watcher.journal, watcher)
    facts, looks = journal.facts, [each for each in journal.entries(TRAFFIC) if each.result]
    evidence, alarm, last = journal.evidence(), facts.get("alarm"), looks[-1] if looks else None
    state = State.LEARNING if evidence is None else State.NOTHING if alarm is None else State(alarm["state"])
    metrics = [] if evidence is None else [*evidence.metrics.values()]
    learn = None if call is None else call.watch.learn
    of = {"units": sum(each.judged for each in looks), "of": learn or LEARNED, "days": 0 if learn else LEARNED_DAYS}
    return {
        "schema": 1,
        "state": state.value,
        "problem": None if call is None else call.problem or None,
        "at": time_text(facts["now"]),
        "look": None if last is None else {"at": time_text(last.at), "rate": last.rate, **(last.result or {})},
        "waiting": 0 if call is None else len(journal.ready(call.now, call.watch.settle_s)),
        "counts": facts["counts"],
        "learning": None if evidence else of,
        "reference_units": facts.get("units"),
        "evidence_ratio": None if evidence is None else evidence.ratio,
        "learned_days": min((len(each.days[""].means) for each in metrics), default=None),
        "least_drop": max((each.least_drop for each in metrics), default=None),
        "metrics": [] if evidence is None else _rows(evidence, ((last and last.result) or {}).get("sums", {})),
        "alarm": None if alarm is None else {**alarm, "at": time_text(alarm["at"]), "text": _alarm_text(alarm)},
        "rebases": [time_text(each) for each in facts.get("rebases", [])],
    }


def _rows(evidence: Evidence, sums: dict[str, list[float]]) -> list[Record]:
    """Return the figures of each metric, with an empty slice, and of its slices; then of samples with a score."""
    losses = evidence.losses
    figures = [
        (name, key, series.mean, metric.line_of(key), evidence.ratio_of(series.value if key else metric.value))
        for name, metric in evidence.metrics.items()
        for key, series in metric.days.items()
    ]
    figures.append((SCORED, "", losses.mean, 1 - losses.rate, evidence.losses_ratio))
    return [
        {
            "metric": name,
            "slice": key,
            "mean": sums[name][1] / sums[name][0] if not key and sums.get(name, [0])[0] else None,
            "reference": reference,
            "alarm_line": line,
            "evidence_ratio": ratio,
        }
        for name, key, reference, line, ratio in figures
    ]


def time_text(at: float) -> str:
    """Return a time as ISO 8601 in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def watch_page(found: Record, width: int) -> Page:
    """Return the lines of a look: counts, each metric, and what changed."""
    return doc_page(watch_doc(found), width, rows=len(found["metrics"]))


def watch_doc(found: Record) -> Doc:
    """Return the document of a look."""
    counts, last = found["counts"], (found["look"] or {"judged": 0})["judged"]
    head = f"{found['at'][:16].replace('T', ' ')}  {counts.get('seen', 0):,} seen  {counts.get('judged', 0):,} judged"
    names, rows = [name for name in FIELDS if name != "evidence_ratio"], list[Line]()
    if (learning := found["learning"]) is not None:
        days = f" and {learning['days']} days" if learning["days"] else ""
        state = f"learning {learning['units']:,} of {learning['of']:,} units{days}"
    else:
        state = f"evidence {100 * found['evidence_ratio']:.0f} %  {found['state']}"
        rows = [
            Line((each["metric"], *(number(each[name]) for name in names)))
            for each in found["metrics"]
            if not each["slice"] and (each["metric"] != SCORED or each["mean"] != 1)
        ]
    waiting, damaged = found["waiting"], counts.get("damaged", 0)
    cautions = [f"{count(waiting, 'new unit')} wait for the next look."] * bool(waiting)
    cautions += [f"{count(damaged, 'row')} of the source could not be read and were left out."] * bool(damaged)
    if found["least_drop"] is not None and found["learned_days"] < WEEKDAYS_FROM:
        week = f"Learned days: {found['learned_days']} of {WEEKDAYS_FROM}, so cycles of a week are not known"
        cautions.append(f"{week}. A drop of less than about {number(found['least_drop'])} cannot be found.")
    table = ("metric", *(FIELDS[name][0] for name in names)) if rows else ()
    return Doc(
        title=f"{head} ({last:,} in the last look)  {state}",
        parts=(Part("", (f"{head} ({last:,} in the last look)  {state}",), table, tuple(rows)),),
        warnings=tuple(filter(None, (found["alarm"] and found["alarm"]["text"], found["problem"]))),
        cautions=tuple(cautions),
    )


def _alarm_text(alarm: Record) -> str:
    """Return what changed, since when, and who, in a few sentences."""
    since = f"{datetime.fromisoformat(alarm['since']):%d %B %Y}".lstrip("0")
    before, after = number(alarm["before"]), number(alarm["after"])
    of = f" of {alarm['slice']}" if alarm["slice"] else ""
    fell = f"{alarm['metric']}{of} fell from {before} to about {after}, since about {since}."
    if alarm["before"] <= alarm["after"]:
        fell = f"Answers to the anchors changed since about {since}; {alarm['metric']} did not fall."
    anchors = count(alarm["anchors"], "anchor")
    who = {
        State.SYSTEM: f"{anchors} are answered as before: your system changed.",
        State.QUESTIONS: "Each slice is answered as before: your questions changed.",
        State.JUDGE: f"{anchors} are answered differently: your judge changed. Scores since then are not comparable.",
        State.CANNOT_TELL: f"Your {' or your '.join(alarm['between'])} changed: cannot tell which.",
    }[State(alarm["state"])]
    if not alarm["anchors"] and alarm["state"] == State.SYSTEM:
        who = "Your system changed."
    elif alarm["metric"] == SCORED and alarm["state"] == State.JUDGE:
        who = "Your judge fails more often than in the reference."
    elif questions := alarm.get("questions"):
        who = f"{who} The questions changed, most of all: {'; '.join(questions)}."
    lowest = ", ".join(f"{each['slice']} ({each['metric']})" for each in alarm["slices"])
    return f"{fell} {who}{f' Lowest: {lowest}.' if lowest else ''}"


def prometheus_text(found: Record) -> str:
    """Return the state in the text format of Prometheus. A watch that still learns has no state."""
    lines: list[str] = []

    def add(name: str, kind: str, text: str, samples: dict[str, float | None]) -> None:
        there = [f"merilo_watch_{name}{labels} {value!r}" for labels, value in samples.items() if value is not None]
        lines.extend(
            [f"# HELP merilo_watch_{name} {text}", f"# TYPE merilo_watch_{name} {kind}", *there] if there else []
        )

    for key, (name, text) in _COUNTS.items():
        add(name, "counter", text, {"": found["counts"].get(key, 0)})
    at = datetime.fromisoformat(found["at"]).timestamp()
    add("last_look_timestamp_seconds", "gauge", "Time of the last look.", {"": at})
    for name, (_, text) in FIELDS.items():
        add(name, "gauge", text, {"": found.get(name), **{_labels(each): each[name] for each in found["metrics"]}})
    state = None if found["learning"] else [*State].index(State(found["state"]))
    add("state", "gauge", "0 nothing changed, 1 system, 2 questions, 3 judge, 4 cannot tell.", {"": state})
    return "\n".join(lines) + "\n"


def _labels(row: Record) -> str:
    return "{" + ",".join(f'{name}="{_label(row[name])}"' for name in ("metric", "slice") if row[name]) + "}"


def _label(text: str) -> str:
    """Return a label that cannot end the quotes or the line; one that is cut or cleaned stays distinct by a digest."""
    label = clean(text)[:_LABEL_CHARS].translate(_ESCAPES)
    same = clean(text) == text and len(text) <= _LABEL_CHARS
    return label if same else f"{label} {blake2b(text.encode(), digest_size=4).hexdigest()}"
