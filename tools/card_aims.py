"""The aims of the embedded judge, each with the measured figure and whether it is met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from card_tables import ALONE, LIMIT, called, readings, standing
from card_text import NONE, amount, figure, percent, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from card_results import Results

NATURAL: Final = "groundedness, answers as models wrote them"
CHANGED: Final = "groundedness, one fact changed"
_AUROC: Final = (
    ("baselines", "all", "chunk_relevance", "relevance of a context", 0.97),
    ("mined", "all", "chunk_relevance", "relevance of a context, negatives mined by BM25", 0.97),
    ("baselines", "all", "sentence_relevance", "evidence sentences", 0.88),
    ("baselines", "all", "sufficiency", "sufficiency", 0.88),
    ("baselines", "groups", NATURAL, "support of answers as models wrote them", 0.92),
    ("baselines", "groups", CHANGED, "support where one fact was changed", 0.70),
    ("baselines", "all", "nli", "support of single statements", 0.88),
)
"""Step, table, reading, in words, and the minimum AUROC, a mean over sources."""
_PAIRS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Aim:
    """One aim with its result."""

    name: str
    aim: str
    found: str
    holds: bool | None
    """True if the aim is met; None if the data cannot tell."""


def aims(results: Results) -> list[Aim]:
    """Return all aims, in order."""
    return [*_ranks(results), *_paired(results), *_calibrated(results), *_probed(results), *_fast(results)]


def aims_table(results: Results) -> str:
    """Return the aims as a table."""
    words = {True: "yes", False: "**no**", None: "cannot tell"}
    return table(
        ["aim", "aimed at", "found", "reached"], [[a.name, a.aim, a.found, words[a.holds]] for a in aims(results)]
    )


def _ranks(results: Results) -> Iterator[Aim]:
    judge = results["baselines"]["judge"]["name"]
    for step, kind, reading, name, least in _AUROC:
        found = results[step][kind].get(reading, {"mean": {}})["mean"].get(judge)
        value = None if found is None else found["value"]
        holds = None if value is None else value >= least
        yield Aim(f"AUROC, {name}", f"at least {least:.2f}", figure(found, 3), holds)


def _paired(results: Results) -> Iterator[Aim]:
    """Yield the aims on paired differences from the best simple score.

    On no task may the judge be worse by more than half the width of the paired interval; on most it must be better.
    """
    told: list[tuple[str, dict[str, Any]]] = []
    for kind in ("people", "all"):
        for reading, own in results["baselines"][kind].items():
            if reading != ALONE and own.get("difference", {}).get("interval"):
                told.append((f"{called(kind, reading)} ({kind})", own["difference"]))
    below = [name for name, each in told if each["value"] < -(each["interval"][1] - each["interval"][0]) / 2]
    above = sum(standing(each) == "better" for _, each in told)
    yield Aim("tasks below the best simple score", "none", ", ".join(below) or "none", not below)
    yield Aim("tasks above it", "most", f"{above} of {len(told)}", above * 2 > len(told))


def _calibrated(results: Results) -> Iterator[Aim]:
    worst: list[tuple[float, str]] = []
    for reading, own, _ in readings(results, "all"):
        each = own["calibration"]
        if each is not None and not each.get("remark"):
            worst.append((each["value"], called("all", reading)))
    value, name = max(worst, default=(None, ""))
    told = NONE if value is None else f"{value:.3f} ({name})"
    yield Aim(
        "largest calibration error of a task", f"at most {LIMIT:.2f}", told, None if value is None else value <= LIMIT
    )


def _probed(results: Results) -> Iterator[Aim]:
    probes = results["probe"]["probes"]
    each = probes["instructions"]
    enough = each["counted"] >= _PAIRS
    upper = each["upper"]
    yield Aim(
        "verdicts changed by hidden instructions beyond neutral text, 95 % limit from above",
        f"at most 1 %, over at least {_PAIRS:,} pairs",
        f"{percent(upper)} over {each['counted']:,}",
        upper <= 0.01 if enough and upper is not None else None,
    )
    each = probes["question"]
    told = f"{percent(each['value'])} of {each['counted']:,}"
    holds = None if each["value"] is None else each["value"] <= 0.10
    yield Aim("unrelated contexts raised by the question repeated in them", "at most 10 %", told, holds)


def _fast(results: Results) -> Iterator[Aim]:
    for step in ("speed", "encoder"):
        for each in results[step]["figures"] if step in results.steps else ():
            if each["limit"] is not None:
                side = "at most" if each["sign"] == "<=" else "at least"
                yield Aim(each["name"], f"{side} {each['limit']:g}", amount(each["measured"]), each["holds"])
