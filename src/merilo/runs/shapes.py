"""Expected structure of the JSON files of a run, so that a damaged file gives an error message and not a bug.

A seal already shows that a file is as merilo wrote it. Runs of merilo 0.1.0 have no seal, so their files are checked
field by field. A check returns the path of the first invalid value, or "" if all are valid.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import TYPE_CHECKING, Final, cast

from merilo.judging.json_types import as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Mapping

Check = Callable[[object], str]
WRONG: Final = "."
"""The result of a check if the value itself is invalid, and not a value inside it."""


def text(value: object) -> str:
    """Check for text."""
    return "" if isinstance(value, str) else WRONG


def flag(value: object) -> str:
    """Check for true or false."""
    return "" if isinstance(value, bool) else WRONG


def whole(value: object) -> str:
    """Check for an integer of at least 0."""
    return "" if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else WRONG


def number(value: object) -> str:
    """Check for a finite number."""
    try:
        return "" if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) else WRONG
    except OverflowError:  # an integer beyond the range of floats
        return WRONG


def amount(value: object) -> str:
    """Check for a finite number of at least 0."""
    return number(value) or ("" if cast("float", value) >= 0 else WRONG)


def anything(value: object) -> str:
    """Accept any value."""
    del value
    return ""


def one_of(*values: str | None) -> Check:
    """Check for one of these values."""
    return lambda value: "" if value in values else WRONG


def optional(check: Check) -> Check:
    """Check for null or a value that `check` accepts."""
    return lambda value: "" if value is None else check(value)


def items(check: Check) -> Check:
    """Check for a list of values that `check` accepts."""

    def checked(value: object) -> str:
        values = as_list(value)
        if values is None:
            return WRONG
        return next((f"[{at}]{bad}" for at, each in enumerate(values) if (bad := check(each))), "")

    return checked


def pair(check: Check) -> Check:
    """Check for a list of two values that `check` accepts."""
    both = items(check)
    return lambda value: both(value) or ("" if len(as_list(value) or ()) == 2 else WRONG)


def interval(value: object) -> str:
    """Check for a lower and an upper end."""
    if bad := pair(number)(value):
        return bad
    low, high = cast("list[float]", value)
    return "" if low <= high else WRONG


def mapping(check: Check) -> Check:
    """Check for an object whose values `check` accepts."""

    def checked(value: object) -> str:
        values = as_object(value)
        if values is None:
            return WRONG
        return next((f"{name}{_below(bad)}" for name, each in values.items() if (bad := check(each))), "")

    return checked


def record(fields: Mapping[str, Check], more: Mapping[str, Check] | None = None) -> Check:
    """Check for an object with these fields. Those of `more` are checked if present; other fields are ignored."""

    def checked(value: object) -> str:
        values = as_object(value)
        if values is None:
            return WRONG
        if missing := next((name for name in fields if name not in values), ""):
            return missing
        present = {name: check for name, check in {**fields, **(more or {})}.items() if name in values}
        return next((name + _below(bad) for name, check in present.items() if (bad := check(values[name]))), "")

    return checked


def _below(bad: str) -> str:
    if bad == WRONG:
        return ""
    return bad if bad.startswith("[") else f".{bad}"


_SHARE = record(
    {"value": number, "interval": optional(interval)}, {"note": text, "remark": text, "method": optional(text)}
)
COUNTS: Final = mapping(optional(whole))
"""The counts of a score, or of all scores of a metric."""
_BOUNDS = optional(pair(optional(number)))
AGGREGATE: Final = record(
    {
        "metric": text,
        "mean": optional(number),
        "interval": optional(interval),
        "level": amount,
        "bounds": _BOUNDS,
        "scored": whole,
        "undefined": whole,
        "failed": whole,
    },
    {
        "counts": COUNTS,
        "reasons": mapping(whole),
        "note": text,
        "flagged": whole,
        "averaged": flag,
        "flags": mapping(whole),
        "parts": items(text),
        "bounds_with_undefined": _BOUNDS,
        "remark": text,
        "method": optional(text),
        "seed": optional(whole),
        "clusters": optional(whole),
        "shares": mapping(_SHARE),
    },
)
"""One of the `metrics` of a summary."""
_GATE = record(
    {
        "metric": text,
        "asked": number,
        "higher_is_better": flag,
        "verdict": one_of("pass", "fail", "cannot tell"),
        "samples": whole,
        "lower": optional(number),
        "upper": optional(number),
        "level": number,
    },
    {"kind": one_of("minimum", "drop"), "look": whole},
)
SUMMARY_FIELDS: Final = record(
    {"complete": flag, "samples": whole, "metrics": items(AGGREGATE)},
    {
        "until_decided": optional(
            record(
                {"decided": flag, "samples": whole, "saved": whole, "gates": items(_GATE), "note": text},
                {
                    "unit": one_of("sample", "cluster"),
                    "looks": items(whole),
                    "sizes": items(whole),
                    "levels": items(number),
                    "look": whole,
                },
            )
        ),
    },
)
USAGE_FIELDS: Final = record(
    {},
    {
        "requests": whole,
        "cached": whole,
        "input_tokens": optional(whole),
        "output_tokens": optional(whole),
        "cost_usd": optional(amount),
        "seconds": amount,
        "adaptations": optional(mapping(mapping(text))),
        "stopped": optional(text),
        "unanswered": whole,
        "estimated_usd": optional(amount),
        "unanswered_usd": amount,
        "raise_to": optional(mapping(amount)),
    },
)
_JUDGE = record(
    {},
    {
        "name": text,
        "fingerprint": mapping(anything),
        "rates": optional(text),
        "weak": items(text),
        "weak_kinds": items(text),
        "unread": mapping(
            record({"judge": text, "samples": whole, "first": items(text), "languages": mapping(whole)}),
        ),
    },
)


def _baseline_outcome(value: object) -> str:
    """Check the outcome of a baseline: a score, "undefined" or "failed"."""
    return "" if value in {"undefined", "failed"} else number(value)


_UNTIL = record(
    {
        "minimums": mapping(number),
        "level": number,
        "undefined": one_of(None, "drop", "worst"),
        "seed": whole,
    },
    {
        "drops": mapping(number),
        "strict": flag,
        "cluster": optional(text),
        "looks": items(whole),
        "sizes": items(whole),
        "baseline": mapping(items(_baseline_outcome)),
    },
)
MANIFEST_FIELDS: Final = record(
    {
        "merilo": text,
        "data": text,
        "fingerprint": text,
        "samples": whole,
        "skipped": items(text),
        "metrics": mapping(whole),
        "left_out": mapping(text),
        "judges": mapping(_JUDGE),
        "splitter": text,
        "notes": items(text),
    },
    {
        "language": optional(text),
        "composites": mapping(whole),
        "rubrics": mapping(text),
        "scales": mapping(record({"range": pair(optional(number)), "higher_is_better": flag})),
        "cluster": optional(text),
        "origin": optional(text),
        "until": optional(_UNTIL),
        "draws": mapping(whole),
        "source": text,
        "definitions": mapping(text),
        "wordings": mapping(text),
        "undefined": mapping(text),
        "shard": record({"index": whole, "of": whole, "samples": whole, "fingerprint": text}),
        "format": whole,
    },
)
_EVIDENCE = record(
    {
        "about": text,
        "index": lambda value: "" if isinstance(value, int) else WRONG,
        "kind": text,
        "verdict": mapping(anything),
    },
    {"question": optional(text), "text": text, "value": number},
)
OUTCOME_FIELDS: Final = record(
    {
        "sample": text,
        "metric": text,
        "outcome": one_of("score", "undefined", "failed"),
    },
    {
        "value": number,
        "counts": COUNTS,
        "evidence": items(_EVIDENCE),
        "flags": items(text),
        "averaged": flag,
        "draws": items(number),
        "reason": text,
        "error": record({"kind": text, "message": text}),
        "trail": items(text),
    },
)
