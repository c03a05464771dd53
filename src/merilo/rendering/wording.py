"""Verdicts, numbers and the cost of a run as text, the same in every report."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING, Any, TypeAlias

from merilo.judging.verdicts import Failure, is_not_judged
from merilo.metrics.base import Failed, Undefined

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from merilo.judging.ask import Answer
    from merilo.results.sample_detail import HumanVerdict, Remark

NONE = "-"
"""Shown in place of a number that is unknown or undefined."""
_DIME = 0.1
_MINUTE, _HOUR = 60, 3_600


STOPPED = "stopped before its last sample; the numbers cover only the samples so far"
"""Describes an incomplete run (after "This run was")."""
REMARKS = "Notes on intervals"
"""The heading of caveats on some intervals."""
HUMAN_LABELS = "Human labels"
"""The heading of corrections by human labels."""
AVERAGED = "average of the judge's probabilities"
_NOT_DISTINGUISHED: Mapping[str, str] = dict.fromkeys(("contradicted", "not_stated"), "not distinguished by this judge")


def covers(sampled: str) -> str:
    """Return which errors intervals cover without human labels; `sampled`: for example "questions"."""
    return f"cover sampling of {sampled}, not judge error"


OWN_ERROR = covers("questions")
"""Follows the subject "Intervals" or "Limits"."""


def covers_imported(origin: str = "", sampled: str = "questions") -> str:
    """Return which errors intervals of imported scores cover; `origin`: the program that computed them, if known."""
    scores = f"the scores imported from {origin}" if origin else "the imported scores"
    return f"cover sampling of {sampled}, not the error of {scores}"


def said(answer: Answer) -> str:
    """Return a judge's answer in a few words, with its probability of a "yes" if it gives one."""
    if isinstance(answer, Failure):
        if is_not_judged(answer):
            return answer.message
        return f"no verdict ({answer.kind.value}): {answer.message}"
    probability = getattr(answer, "probability", None)  # every verdict type has it, but their base class does not
    tail = "" if probability is None else f", p({answer.yes}) = {probability:.2f}"
    flag: str = getattr(answer, "flag", "")  # a field of decisions only
    return answer.in_words() + (f" ({flag})" if flag else "") + tail


def reason_of(answer: Answer) -> str:
    """Return the reason that a judge gave for its verdict; empty if it gave none."""
    return "" if isinstance(answer, Failure) else str(getattr(answer, "reason", ""))


def remark_kind(remark: Remark) -> str:
    """Return the kind of a verdict, with the text that a statement was checked against, if it is not the contexts."""
    return f"{remark.kind}, checked against {remark.against}" if remark.against else remark.kind


def by_person(each: HumanVerdict) -> str:
    """Return an annotator's verdict next to the judge's, such as `ann, support: not supported \u2717 differs`."""
    mark = "\u2713 agrees" if each.agrees else "\u2717 differs"
    return f"{each.annotator}, {each.kind}: {each.verdict.in_words()} {mark}"


def without_score(outcome: Undefined | Failed) -> str:
    """Return why a sample has no score."""
    if isinstance(outcome, Undefined):
        return f"undefined: {outcome.reason}"
    return f"failed ({outcome.error.kind.value}): {outcome.error.message}"


def counts_text(counts: Mapping[str, int | None]) -> str:
    """Return named counts in one line; a missing count says that the judge or the definition does not provide it."""
    return ", ".join(
        f"{name.replace('_', ' ')} {_NOT_DISTINGUISHED.get(name, 'not counted') if amount is None else f'{amount:,}'}"
        for name, amount in counts.items()
    )


def number(value: float | None) -> str:
    """Return a score with three decimals."""
    return NONE if value is None else f"{value:.3f}"


def span(ends: tuple[float | None, float | None] | None) -> str:
    """Return an interval, such as `0.361 - 0.463`; `any` at an end without a limit."""
    return NONE if ends is None else " - ".join("any" if end is None else f"{end:.3f}" for end in ends)


def count(amount: int, thing: str, plural: str = "") -> str:
    """Return a number of things: `1 sample`, `1,200 samples`."""
    return f"{amount:,} {thing if amount == 1 else plural or thing + 's'}"


def about(amount: int) -> str:
    """Return a number rounded to two significant digits, such as `1,200` for 1,234."""
    return f"{round(amount, 2 - len(str(amount))) if amount > 99 else amount:,}"


def percent(share: float) -> str:
    """Return a fraction, such as a confidence level, as a percentage: `95 %`, `97.5 %`."""
    return f"{100 * share:.3g} %"


def money(usd: float | None) -> str:
    """Return USD with two decimals, or two significant digits below 0.10: `1.20`, `0.0042`; `unknown` for None."""
    if usd is None:
        return "unknown"
    if usd == 0 or usd >= _DIME:
        return f"{usd:,.2f}"
    return f"{usd:.{1 - floor(log10(usd))}f}"


def size_text(size: int) -> str:
    """Return a number of bytes in a readable unit."""
    for unit, least in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= least:
            return f"{size / least:.3g} {unit}"
    return f"{size:,} bytes"


def duration(seconds: float) -> str:
    """Return a duration in a suitable unit: `40 s`, `12 min`, `3.5 h`."""
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:.1f} h"


def spent_so_far(usage: Mapping[str, Any]) -> str:  # Any: numbers and nulls
    """Return a sentence for a run that was stopped; empty if it has sent no request."""
    return f"Spent so far: {spent_text(usage)}." if usage.get("requests") else ""


def spent_text(usage: Mapping[str, Any]) -> str:  # Any: numbers and nulls
    """Return requests, cached answers, tokens, money and time in one line."""
    unanswered = usage.get("unanswered")
    parts = [count(usage.get("requests") or 0, "request") + (f" ({unanswered:,} unanswered)" if unanswered else "")]
    if cached := usage.get("cached"):
        parts.append(f"{count(cached, 'answer')} from the cache")
    given, made = usage.get("input_tokens"), usage.get("output_tokens")
    if given is None or made is None:
        parts.append("tokens unknown")
    elif given or made:
        stored = f" ({saved:,} from the provider's cache)" if (saved := usage.get("cached_tokens")) else ""
        parts.append(f"{given:,} tokens in{stored}, {made:,} out")
    cost = usage.get("cost_usd")
    if cached and not usage.get("requests"):
        return ", ".join([*parts, "nothing spent now", f"{usage.get('seconds') or 0:.1f} s"])
    parts.append("price unknown" if cost is None else cost_text(cost, usage) if cost else "free of charge")
    parts.append(f"{usage.get('seconds') or 0:.1f} s")
    return ", ".join(parts)


def cost_text(cost: float, usage: Mapping[str, Any]) -> str:  # Any: numbers and nulls
    """Return a cost with its estimated part, and with what replies that were not received may cost in addition."""
    estimated, more = usage.get("estimated_usd"), usage.get("unanswered_usd")
    parts = [f"{cost:.4f} USD", f", of which {estimated:.4f} USD estimated" if estimated else ""]
    return "".join(parts) + (f" (up to {more:.4f} USD more for unanswered requests)" if more else "")


Section: TypeAlias = tuple[str, list[tuple[str, str]]]
"""A heading, and named texts under it."""


def filled_sections(groups: Iterable[tuple[str, Iterable[tuple[str, str]]]]) -> list[Section]:
    """Return the sections without empty texts, and without sections that have none."""
    return [(heading, filled) for heading, entries in groups if (filled := [each for each in entries if each[1]])]
