"""Estimates for future runs from a pilot run: as one JSON object, and as a section of a page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from merilo.commands.power.draws import draws_record, draws_section
from merilo.rendering.weak import WeakMarks, weak_legend
from merilo.rendering.wording import count, percent
from merilo.short_repr import short_repr
from merilo.stats.power import PILOT_LEVEL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from merilo.rendering.page import Page
    from merilo.stats.judge_noise import VarianceComponents
    from merilo.stats.power import SamplesNeeded

_INDEPENDENT = (
    "One pilot shows how its own scores vary, not how two runs differ on a sample. The estimate assumes that both runs "
    "score each sample independently. Runs over the same samples usually differ less and need fewer samples. For a "
    "better estimate, give a second pilot (--power twice)."
)
_ALONE = (
    "Each number is for one metric alone. A comparison of several metrics is corrected (Holm) and needs more samples; "
    "choose the metrics you decide by with compare --primary."
)


@dataclass(frozen=True, slots=True)
class Needed:
    """The number of samples that one metric needs to show the difference."""

    metric: str
    pilot: int
    """Number of samples of the pilot with a score; of two pilots, with a score in both."""
    paired: bool
    """True if the spread is that of the paired differences of two pilots; False if independent runs are assumed."""
    found: SamplesNeeded


@dataclass(frozen=True, slots=True)
class Power:
    """Estimates for future runs from a pilot."""

    pilots: tuple[Path, ...]
    difference: float | None
    power: float
    """Probability to detect the difference if it exists."""
    level: float
    needed: tuple[Needed, ...]
    weak: frozenset[str] = frozenset()
    """The metrics that are weak with the judge of a pilot."""
    noise: Mapping[str, VarianceComponents | None] = field(default_factory=dict[str, "VarianceComponents | None"])
    """Metrics whose judge was asked several times in the first pilot → variance components; None: cannot tell."""

    def __repr__(self) -> str:
        """Return the main facts, shortened."""
        return short_repr(self, pilots=self.pilots, difference=self.difference, power=self.power, needed=self.needed)


def power_record(found: Power) -> dict[str, Any]:  # Any: JSON
    """Return the estimates as a JSON-able object."""
    return {
        "pilots": [str(path) for path in found.pilots],
        "difference": found.difference,
        "power": found.power,
        "level": found.level,
        "needed": {
            each.metric: {
                "weak": each.metric in found.weak,
                "samples": each.found.samples,
                "if_exact": each.found.if_exact,
                "clusters": each.found.clusters,
                "deviation": each.found.deviation,
                "pilot": each.pilot,
                "paired": each.paired,
                "note": each.found.note,
            }
            for each in found.needed
        },
        **({"draws": {text: draws_record(each) for text, each in found.noise.items()}} if found.noise else {}),
    }


def power_section(page: Page, found: Power) -> None:
    """Add the numbers of samples needed."""
    marks = WeakMarks(found.weak)
    if found.difference is not None:
        page.heading(f"Samples to show a difference of {found.difference:g}")
        page.entries([(marks.name(each.metric), _needed(each)) for each in found.needed])
        page.text(
            f"These numbers detect it with a probability of at least {percent(found.power)} if it exists, at a "
            f"confidence level of {percent(found.level)}, allowing for the pilot's size: they use the upper "
            f"{percent(PILOT_LEVEL)} limit of its spread. Compare the runs over the same samples.",
            indent=2,
        )
        if len(found.needed) > 1:
            page.text(_ALONE, indent=2)
        if any(not each.paired and each.found.samples for each in found.needed):
            page.text(_INDEPENDENT, indent=2)
    draws_section(page, found.noise, marks)
    if legend := weak_legend(sorted(found.weak & {*(each.metric for each in found.needed), *found.noise})):
        page.text(legend, indent=2)


def _needed(each: Needed) -> str:
    needed = each.found
    if needed.samples is None:
        return needed.note
    text = count(needed.samples, "sample")
    if needed.clusters is not None:
        text += f" in {count(needed.clusters, 'cluster')}"
    if needed.if_exact is not None and needed.if_exact < needed.samples:
        text += f"; {needed.if_exact:,} if the spread of the pilot's {each.pilot:,} were exact"
    return text
