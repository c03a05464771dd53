"""The result of a watch as JSON, text for the terminal, and metrics for Prometheus."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.exit_codes import Exit
from merilo.commands.watch.evidence import DAY_S, SCORED, Evidence, State
from merilo.commands.watch.journal import Journal
from merilo.commands.watch.look import LEARNED, LEARNED_DAYS, PASSES, TRAFFIC
from merilo.errors import UsageError
from merilo.rendering.page import Page, Tone
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import count, number
from merilo.stats.drift import GRADES
from merilo.stats.drift_plan import delays, smallest_change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.commands.watch.look import Watcher

EXITS: Final = {
    State.NOTHING: Exit.DONE,
    **dict.fromkeys((State.SYSTEM, State.QUESTIONS), Exit.GATE_FAILED),
    State.JUDGE: Exit.JUDGE_CHANGED,
    **dict.fromkeys((State.CANNOT_TELL, State.LEARNING), Exit.CANNOT_TELL),
}
_DROPS: Final = (0.1, 0.05, 0.02)
_LIMIT: Final = 12_000
"""Units until which a plan looks for an alarm."""
_SLICES: Final = 20
_LABEL_CHARS: Final = 100


def watch_record(watcher: Watcher | Journal) -> dict[str, Any]:  # Any: JSON
    """Return the state of a watch as JSON, after the looks of a call, or as it is stored."""
    journal, call = (watcher, None) if isinstance(watcher, Journal) else (watcher.journal, watcher)
    facts, looks = journal.facts, [each for each in journal.entries(TRAFFIC) if each.result]
    evidence = None if "evidence" not in facts else Evidence.from_state(facts["evidence"])
    alarm, last = facts.get("alarm"), looks[-1] if looks else None
    state = State.LEARNING if evidence is None else State.NOTHING if alarm is None else State(alarm["state"])
    learn = None if call is None else call.watch.learn
    of = {"units": sum(each.judged for each in looks), "of": learn or LEARNED, "days": 0 if learn else LEARNED_DAYS}
    return {
        "schema": 1,
        "state": state.value,
        "problem": None if call is None else call.problem or None,
        "at": _time(facts["now"]),
        "look": None if last is None else {"at": _time(last.at), "rate": last.rate, **(last.result or {})},
        "waiting": 0 if call is None else len(journal.ready(call.now, call.watch.settle_s)),
        "counts": facts["counts"],
        "learning": None if evidence else of,
        "reference": facts.get("units"),
        "evidence": None if evidence is None else evidence.ratio_of(evidence.value),
        "metrics": {} if evidence is None else _metrics(evidence, (last.result or {}).get("sums", {}) if last else {}),
        "alarm": alarm,
        "rebases": [_time(each) for each in facts.get("rebases", [])],
    }


def _metrics(evidence: Evidence, sums: dict[str, list[float]]) -> dict[str, Any]:  # Any: JSON
    return {
        name: {
            "mean": sums[name][1] / sums[name][0] if sums.get(name, [0])[0] else None,
            "reference": evidence.reference[name][""].mean,
            "alarm_line": metric.lines[""].value,
            "evidence": evidence.ratio_of(metric.value),
            "slices": {
                key: {
                    "reference": evidence.reference[name][key].mean,
                    "alarm_line": line.value,
                    "evidence": evidence.ratio_of(metric.slices[key].value),
                }
                for key, line in metric.lines.items()
                if key
            },
        }
        for name, metric in evidence.metrics.items()
    }


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def watch_page(found: dict[str, Any], width: int) -> Page:  # Any: JSON
    """Return the lines of a look: counts, each metric, and what changed."""
    page, look, counts = Page(width), found["look"], found["counts"]
    at = found["at"][:16].replace("T", " ")
    judged = look["judged"] if look else 0
    head = f"{at}  {counts.get('seen', 0):,} seen  {counts.get('judged', 0):,} judged ({judged:,} in the last look)"
    if (learning := found["learning"]) is not None:
        days = f" and {learning['days']} days" if learning["days"] else ""
        page.text(f"{head}  learning {learning['units']:,} of {learning['of']:,} units{days}")
    else:
        tone = Tone.BAD if found["alarm"] else Tone.GOOD
        page.text(f"{head}  evidence {100 * found['evidence']:.0f} %  {found['state']}", tone=tone)
        rows = [("metric", "last look", "reference", "alarm below")]
        rows += [
            (clean(name), number(each["mean"]), number(each["reference"]), number(each["alarm_line"]))
            for name, each in found["metrics"].items()
            if name != SCORED or each["mean"] != 1
        ]
        page.table(rows, [Tone.STRONG, *[Tone.PLAIN] * (len(rows) - 1)])
    if found["waiting"]:
        page.text(f"{count(found['waiting'], 'new unit')} wait for the next look.")
    if found["alarm"]:
        page.text(alarm_text(found["alarm"]), tone=Tone.BAD)
    if found["problem"]:
        page.text(found["problem"], tone=Tone.BAD)
    return page


def alarm_text(alarm: dict[str, Any]) -> str:  # Any: JSON
    """Return what changed, since when, and who, in a few sentences."""
    since = f"{datetime.fromisoformat(alarm['since']):%d %B %Y}".lstrip("0")
    fell = (
        f"{alarm['metric']} fell from {number(alarm['before'])} to about {number(alarm['after'])}, since about {since}."
    )
    if alarm["before"] <= alarm["after"]:
        fell = f"Answers to the anchors changed since about {since}; {alarm['metric']} did not fall."
    anchors = count(alarm["anchors"], "anchor")
    who = {
        State.SYSTEM: f"{anchors} are answered as before: your system changed.",
        State.QUESTIONS: "Each slice is answered as before: your questions changed.",
        State.JUDGE: f"{anchors} are answered differently: your judge changed. Scores since then are not comparable.",
        State.CANNOT_TELL: "Your system or your judge changed: cannot tell who. More anchors tell more (--anchors).",
    }[State(alarm["state"])]
    if not alarm["anchors"] and alarm["state"] == State.SYSTEM:
        who = "Your system changed."
    lowest = ", ".join(f"{each['slice']} ({each['metric']})" for each in alarm["slices"])
    return f"{fell} {who}{f' Lowest: {lowest}.' if lowest else ''}"


def plan_page(watcher: Watcher, width: int) -> Page:
    """Return the drops and swaps that the watch finds, and when. Raises UsageError without a reference."""
    evidence, looks = watcher.evidence(), watcher.looks_after(0)
    if evidence is None:
        raise UsageError(f"The plan needs the reference, which has {watcher.learned:,} units so far. Repeat it later.")
    days = max(1.0, (looks[-1].at - looks[0].at) / DAY_S) if looks else 1.0
    per_day = max(1, round(sum(each.judged for each in looks) / days))
    page, rows = Page(width), [("drop", "units, median", "90 %", "days")]
    for name in watcher.journal.facts["names"]:
        line, metric = evidence.reference[name][""], evidence.metrics[name]
        scores = [grade / GRADES for grade, weight in enumerate(line.weights) for _ in range(round(weight))]
        for drop in (each for each in _DROPS if each < line.mean):
            found = delays(scores, metric.lines[""], drop, alpha=evidence.alpha, per_day=per_day, limit=_LIMIT)
            median, most = (f"{each:,}" if each < _LIMIT else f"over {_LIMIT:,}" for each in (found[50], found[90]))
            rows.append((f"{name} -{drop:g}", median, most, f"{found[50] / per_day:.0f} - {found[90] / per_day:.0f}"))
    page.table(rows, [Tone.STRONG, *[Tone.PLAIN] * (len(rows) - 1)])
    weight, alpha = PASSES["alarm"][1], evidence.judge_alpha
    if evidence.anchors and (swap := smallest_change(len(evidence.anchors), weight=weight, alpha=alpha)) is not None:
        page.text(f"A swap of the judge that changes {100 * swap:.1f} % of the verdicts is found with 95 %.")
    return page


def prometheus_text(found: dict[str, Any]) -> str:  # Any: JSON
    """Return the state in the text format of Prometheus. A watch that still learns has no state."""
    counts, states = found["counts"], [each.value for each in State]
    at = datetime.fromisoformat(found["look"]["at"]).timestamp() if found["look"] else None
    rows: list[tuple[str, str, str, list[tuple[dict[str, str], float | None]]]] = [
        ("units_seen_total", "counter", "Units in the source.", [({}, counts.get("seen", 0))]),
        ("units_judged_total", "counter", "Units that were judged.", [({}, counts.get("judged", 0))]),
        ("failed_total", "counter", "Outcomes that failed.", [({}, counts.get("failed", 0))]),
        ("cost_usd_total", "counter", "Cost of the judge in USD.", [({}, counts.get("cost_usd", 0))]),
        ("last_look_timestamp_seconds", "gauge", "Time of the last look.", [({}, at)]),
        ("mean", "gauge", "Mean of the last look, from 0 (worst) to 1.", [*_samples(found, "mean")]),
        ("reference", "gauge", "Mean of the reference.", [*_samples(found, "reference")]),
        ("alarm_line", "gauge", "A mean below it raises an alarm.", [*_samples(found, "alarm_line")]),
        (
            "evidence_ratio",
            "gauge",
            "Evidence of a change, 1 at an alarm.",
            [({}, found["evidence"]), *_samples(found, "evidence")],
        ),
    ]
    if not found["learning"]:
        help_ = "0 nothing changed, 1 system, 2 questions, 3 judge, 4 cannot tell."
        rows.append(("state", "gauge", help_, [({}, states.index(found["state"]))]))
    lines: list[str] = []
    for name, kind, text, samples in rows:
        own = {_labels(labels): value for labels, value in reversed(samples) if value is not None}
        there = [f"merilo_watch_{name}{labels} {value!r}" for labels, value in own.items()]
        lines += [f"# HELP merilo_watch_{name} {text}", f"# TYPE merilo_watch_{name} {kind}", *there] if there else []
    return "\n".join(lines) + "\n"


def _samples(found: dict[str, Any], key: str) -> Iterator[tuple[dict[str, str], float | None]]:  # Any: JSON
    for name, metric in found["metrics"].items():
        yield {"metric": name}, metric.get(key)
        for slice_, each in [*metric["slices"].items()][:_SLICES]:
            yield {"metric": name, "slice": slice_}, each.get(key)


def _labels(labels: dict[str, str]) -> str:
    """Return labels whose values cannot end the quotes or the line."""
    cleaned = ((name, clean(value)[:_LABEL_CHARS]) for name, value in labels.items())
    texts = [f'{name}="{value.translate(_ESCAPES)}"' for name, value in cleaned]
    return f"{{{','.join(texts)}}}" if texts else ""


_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def alarm_json(found: dict[str, Any]) -> str:  # Any: JSON
    """Return the alarm for another program."""
    return json.dumps({**found["alarm"], "at": _time(found["alarm"]["at"]), "text": alarm_text(found["alarm"])})
