"""What became of the questions to a cascade, for the record of a run and for its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from merilo.reports.words import count
from merilo.stats.intervals import LEVEL, wilson_ends

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.engine.cross_check import Pairs, Went

    JSON = dict[str, Any]  # Any: JSON

_DIGITS = 6
_ALARM = 0.9
"""Below this agreement the page says that the thresholds do not fit the data."""


def cascade_record(went: Went) -> JSON:
    """Who answered how many questions, by kind; and of those checked, how far the last judge agrees."""
    cascade = went.cascade
    names = [judge.name for judge in cascade.judges]
    kinds: JSON = {}
    for kind in sorted(went.questions):
        answered = went.answered.get(kind, [0] * len(cascade.stages))
        kinds[kind] = {
            "questions": went.questions[kind],
            "failed": went.failed[kind],
            "answered": dict(zip(names, [*answered, went.by_last(kind)], strict=True)),
            "agreement": _agreement([went.pairs[kind]] if kind in went.pairs else []),
        }
    return {
        "judge": cascade.name,
        "max_error": cascade.max_error,
        "kinds": kinds,
        "checked": {"wanted": went.wanted, **_agreement([*went.pairs.values()])},
    }


def _agreement(parts: Sequence[Pairs]) -> JSON:
    """The share of checked questions where both judges say yes, or both no; questions were drawn by lot."""
    asked, agreeing = sum(each.asked for each in parts), sum(each.agreeing for each in parts)
    grades = [each for each in parts if each.same_grade is not None]
    share = agreeing / asked if asked else None
    ends = None if share is None else wilson_ends(share, asked, (0.0, 1.0))
    return {
        "asked": asked,
        "without_verdict": sum(each.without for each in parts),
        "agreeing": agreeing,
        "share": None if share is None else round(share, _DIGITS),
        "interval": None if ends is None else [round(end, _DIGITS) for end in ends],
        "level": LEVEL,
        "same_grade": sum(each.same_grade or 0 for each in grades) if grades else None,
        "graded": sum(each.asked for each in grades) if grades else None,
    }


def cascade_rows(records: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:  # Any: JSON
    """What to say of each cascade under a run's summary: labels and texts."""
    return [("cascade", _text(each)) for each in records]


def _text(record: Mapping[str, Any]) -> str:  # Any: JSON
    lines: list[str] = []
    for kind, each in cast("dict[str, JSON]", record["kinds"]).items():
        parts = [f"{name} {number:,}" for name, number in each["answered"].items()]
        failed = f", {each['failed']:,} without a verdict" if each["failed"] else ""
        lines.append(f"{kind}: {count(each['questions'], 'question')}, answered by {', '.join(parts)}{failed}")
    return "\n".join([*lines, *_checked(record)])


def _checked(record: Mapping[str, Any]) -> list[str]:  # Any: JSON
    checked = cast("JSON", record["checked"])
    last = str(record["judge"]).rpartition(">")[2]
    if not checked["wanted"]:
        return [f"every question went to {last}, so there was nothing to check; see --max-error and --cascade-check"]
    if checked["share"] is None:
        return [f"{last} was asked about none of the {checked['wanted']:,} that it was to check; go on with the run"]
    low, high = checked["interval"]
    told = f"{checked['share']:.1%} [{low:.1%}, {high:.1%}]"
    lines = [
        f"checked by lot: {last} agrees with {checked['agreeing']:,} of {checked['asked']:,} that others gave, {told}"
    ]
    if checked["graded"]:
        lines.append(f"with the same grade on {checked['same_grade']:,} of {checked['graded']:,}")
    if checked["asked"] + checked["without_verdict"] < checked["wanted"]:
        lines.append(f"{checked['wanted']:,} were to be checked; the same command goes on")
    if high < _ALARM:
        lines.append(
            "That is too little: the thresholds do not fit this data, whatever --max-error. Check the first judge on "
            "labels of your own (merilo judge check --json, then --cascade-check), or leave it out."
        )
    return lines
