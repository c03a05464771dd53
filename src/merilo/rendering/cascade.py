"""The judges that answered in a cascade, its pilot and its audit: as JSON for a summary, and as lines of a page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

from merilo.judges.cascade import CLASS_LEVEL, LEVEL
from merilo.rendering.wording import count
from merilo.stats.acceptance import accepted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.engine.cascade_check import Answered
    from merilo.judges.cascade import Cascade
    from merilo.stats.acceptance import ThresholdTest

    JSON = dict[str, Any]  # Any: JSON

_DIGITS = 6


@dataclass(frozen=True, slots=True)
class KindPilot:
    """The pilot of one kind of question."""

    wanted: int
    drawn: int
    """Questions drawn; if fewer than `wanted`, nothing was tested."""
    without_verdict: int
    """Questions without a verdict of the last judge; they are not tested."""
    tests: Mapping[tuple[int, bool], Sequence[ThresholdTest]]
    """By judge (its position) and decision, the thresholds tested, in order."""


@dataclass(frozen=True, slots=True)
class ClassAudit:
    """The audit of one judge's yes or no."""

    place: int
    yes: bool
    asked: int
    errors: int
    lower_limit: float
    """Lower confidence limit of the error rate; an anytime-valid one, so it may be computed after every answer."""
    failed: bool


@dataclass(frozen=True, slots=True)
class KindAudit:
    """The audit of one kind of question."""

    wanted: int
    without_verdict: int
    classes: Sequence[ClassAudit]

    @property
    def failed(self) -> bool:
        """True if the audit showed that the promise does not hold."""
        return any(each.failed for each in self.classes)


def cascade_record(
    cascade: Cascade, answered: Answered, pilots: Mapping[str, KindPilot], audits: Mapping[str, KindAudit]
) -> JSON:
    """Return the entry of a cascade in a run's summary, by kind of question."""
    names = [judge.name for judge in cascade.judges]
    kinds: JSON = {}
    for kind in sorted({*answered.questions, *pilots}):
        earlier: Mapping[int, int] = answered.earlier.get(kind, {})
        pilot, audit = pilots.get(kind), audits.get(kind)
        kinds[kind] = {
            "questions": answered.questions[kind],
            "failed": answered.failed[kind],
            "answered": {
                **{name: earlier.get(place, 0) for place, name in enumerate(names[:-1])},
                names[-1]: answered.by_last(kind),
            },
            "pilot": None if pilot is None else _pilot(pilot, names),
            "audit": None if audit is None else _audit(audit, names),
        }
    return {
        "judge": cascade.name,
        "max_error": cascade.max_error,
        "level": LEVEL,
        "class_level": CLASS_LEVEL,
        "kinds": kinds,
    }


def _pilot(pilot: KindPilot, names: Sequence[str]) -> JSON:
    return {
        "wanted": pilot.wanted,
        "drawn": pilot.drawn,
        "without_verdict": pilot.without_verdict,
        "classes": [
            {
                "judge": names[place],
                "verdict": _word(yes=yes),
                "threshold": accepted(tests),
                "tests": [_rounded(asdict(test)) for test in tests],
            }
            for (place, yes), tests in pilot.tests.items()
        ],
    }


def _audit(audit: KindAudit, names: Sequence[str]) -> JSON:
    return {
        "wanted": audit.wanted,
        "asked": sum(each.asked for each in audit.classes),
        "without_verdict": audit.without_verdict,
        "failed": audit.failed,
        "classes": [
            _rounded(
                {
                    "judge": names[each.place],
                    "verdict": _word(yes=each.yes),
                    "asked": each.asked,
                    "errors": each.errors,
                    "lower_limit": each.lower_limit,
                    "failed": each.failed,
                }
            )
            for each in audit.classes
        ],
    }


def _word(*, yes: bool) -> str:
    return "yes" if yes else "no"


def _rounded(record: JSON) -> JSON:
    return {name: round(each, _DIGITS) if isinstance(each, float) else each for name, each in record.items()}


def cascade_rows(records: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:  # Any: JSON
    """Return the labels and texts about a run's cascades for its page."""
    return [("cascade", _text(each)) for each in records]


def _text(record: Mapping[str, Any]) -> str:  # Any: JSON
    lines: list[str] = []
    kinds = cast("dict[str, JSON]", record["kinds"])
    for kind, each in kinds.items():
        parts = [f"{name} {number:,}" for name, number in each["answered"].items()]
        failed = f", {each['failed']:,} without a verdict" if each["failed"] else ""
        lines.append(f"{kind}: {count(each['questions'], 'question')}, answered by {', '.join(parts)}{failed}")
        lines += _pilot_lines(record, each) + _audit_lines(record, kind, each)
    if "level" not in record:
        lines.append("The thresholds of this run come from other data, so they promise nothing for these questions.")
    elif any(_chosen(each) for each in kinds.values()):
        lines.append(_promise(record))
    return "\n".join(lines)


def _chosen(each: JSON) -> list[JSON]:
    classes: list[JSON] = each["pilot"]["classes"] if each["pilot"] else []
    return [own for own in classes if own["threshold"] is not None]


def _promise(record: Mapping[str, Any]) -> str:  # Any: JSON
    last = str(record["judge"]).rpartition(">")[2]
    return (
        f"Promise, by kind of question and judge, with {record['level']:.0%} confidence: of its yes and of its no "
        f"answers, each at most {record['max_error']:.0%} differ from {last} (each sample counting equally). "
        "Agreement with that judge is not agreement with human labels."
    )


def _pilot_lines(record: Mapping[str, Any], each: JSON) -> list[str]:  # Any: JSON
    pilot = each.get("pilot")
    if pilot is None:
        return []
    last = str(record["judge"]).rpartition(">")[2]
    if pilot["drawn"] < pilot["wanted"]:
        drawn = f"only {pilot['drawn']:,} of {pilot['wanted']:,} pilot questions, at most one from a sample"
        return [f"{drawn}: everything goes to {last} (--cascade-pilot)"]
    parts: list[str] = []
    for own in pilot["classes"]:
        passed = [test for test in own["tests"] if test["passed"]]
        if passed:
            test = passed[-1]
            parts.append(
                f"{own['judge']} {own['verdict']} from {test['threshold']:g} ({test['errors']} of {test['answered']} "
                f"differ, upper limit {test['upper_limit']:.1%})"
            )
        else:
            tests = own["tests"]
            why = f"{tests[0]['errors']} of {tests[0]['answered']} differ" if tests else "too few in the pilot"
            parts.append(f"{own['judge']} {own['verdict']} passed on ({why})")
    return [f"pilot of {count(pilot['drawn'], 'question')}: {'; '.join(parts)}"]


def _audit_lines(record: Mapping[str, Any], kind: str, each: JSON) -> list[str]:  # Any: JSON
    audit = each.get("audit")
    if audit is None:
        return []
    last = str(record["judge"]).rpartition(">")[2]
    errors = sum(own["errors"] for own in audit["classes"])
    line = f"audit: {errors:,} of {audit['asked']:,} differ from {last}"
    if audit["failed"]:
        worst = next(own for own in audit["classes"] if own["failed"])
        line += f"; failed for {worst['judge']} {worst['verdict']} ({worst['errors']:,} of {worst['asked']:,}, lower "
        return [f"{line}limit {worst['lower_limit']:.1%}), so {last} answered all {kind} questions"]
    if audit["asked"] + audit["without_verdict"] < audit["wanted"]:
        return [f"{line}; {audit['wanted']:,} questions needed: run the same command to resume"]
    return [f"{line}; passed"]
