"""What a pilot says of runs to come: as one JSON object, and as a section of a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from merilo.rendering.wording import count, percent

if TYPE_CHECKING:
    from pathlib import Path

    from merilo.rendering.page import Page
    from merilo.stats.power import SamplesNeeded
    from merilo.stats.sequential import Outlook

_INDEPENDENT = (
    "One pilot tells how its own scores spread, not how two runs differ sample by sample. It is assumed that both runs "
    "score each sample independently; runs over the same samples mostly differ less, so fewer may do. Give a second "
    "pilot (--power twice) for a better number."
)
_ALONE = (
    "Each number is for its metric alone. A comparison that decides by several corrects for that (Holm) and needs "
    "more; name those you decide by (compare --primary)."
)


@dataclass(frozen=True, slots=True)
class Needed:
    """How many samples of one metric show the difference."""

    metric: str
    pilot: int
    """Samples of the pilot that have a score, in both runs of two."""
    paired: bool
    """Whether the spread is that of two pilots' paired differences; else that of independent runs is assumed."""
    found: SamplesNeeded


@dataclass(frozen=True, slots=True)
class Early:
    """Whether it can pay to stop early by one minimum."""

    metric: str
    asked: float
    higher_is_better: bool
    pilot: int
    outlook: Outlook


@dataclass(frozen=True, slots=True)
class Power:
    """What a pilot says of runs to come."""

    pilots: tuple[Path, ...]
    difference: float | None
    power: float
    """The chance to see the difference, if it is there."""
    level: float
    needed: tuple[Needed, ...]
    early: tuple[Early, ...]


def power_record(found: Power) -> dict[str, Any]:  # Any: JSON
    """What the pilot says as a JSON-able object."""
    return {
        "pilots": [str(path) for path in found.pilots],
        "difference": found.difference,
        "power": found.power,
        "level": found.level,
        "needed": {
            each.metric: {
                "samples": each.found.samples,
                "cautious": each.found.cautious,
                "clusters": each.found.clusters,
                "deviation": each.found.deviation,
                "pilot": each.pilot,
                "paired": each.paired,
                "note": each.found.note,
            }
            for each in found.needed
        },
        "early": {each.metric: _early_record(each) for each in found.early},
    }


def power_section(page: Page, found: Power) -> None:
    """How many samples are needed, and whether stopping early can pay."""
    if found.difference is not None:
        page.heading(f"Samples to show a difference of {found.difference:g}")
        page.entries([(each.metric, _needed(each)) for each in found.needed])
        page.text(
            f"So many show it with a chance of {percent(found.power)} where it is there, at a level of "
            f"{percent(found.level)}; compare the runs over the same samples.",
            indent=2,
        )
        if len(found.needed) > 1:
            page.text(_ALONE, indent=2)
        if any(not each.paired and each.found.samples for each in found.needed):
            page.text(_INDEPENDENT, indent=2)
    if found.early:
        page.heading("Whether stopping early can pay")
        page.entries([(each.metric, _early(each)) for each in found.early])


def _needed(each: Needed) -> str:
    needed = each.found
    if needed.samples is None:
        return needed.note
    text = count(needed.samples, "sample")
    if needed.clusters is not None:
        text += f" in {count(needed.clusters, 'cluster')}"
    if needed.cautious is not None and needed.cautious > needed.samples:
        text += f"; {needed.cautious:,} to be on the safe side, as the pilot has {each.pilot:,} only"
    return text


def _early(each: Early) -> str:
    asked = f"at {'least' if each.higher_is_better else 'most'} {each.asked:g}"
    outlook = each.outlook
    if outlook.units is None or outlook.decided is None or outlook.decided_fixed is None:
        return f"{asked}: {outlook.note}"
    pays = "yes" if outlook.pays else "no"
    return (
        f"{asked}: {pays}. Of {outlook.most:,} samples it would take {outlook.units:,.0f} on average and decide "
        f"{outlook.decided:.0%} of such runs; all of them, looked at once, would decide {outlook.decided_fixed:.0%}."
    )


def _early_record(each: Early) -> dict[str, Any]:  # Any: JSON
    outlook = each.outlook
    return {
        "asked": each.asked,
        "higher_is_better": each.higher_is_better,
        "pilot": each.pilot,
        "pays": outlook.pays,
        "most": outlook.most,
        "samples": outlook.units,
        "decided": outlook.decided,
        "decided_fixed": outlook.decided_fixed,
        "width_ratio": outlook.width_ratio,
        "seed": outlook.seed,
        "note": outlook.note,
    }
