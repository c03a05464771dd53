"""The judge noise of a run with several draws, as a section of its summary."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from merilo.rendering.page import Tone
from merilo.rendering.weak import WeakMarks
from merilo.rendering.wording import number
from merilo.results.basis import judge_noise

if TYPE_CHECKING:
    from merilo.rendering.page import Page
    from merilo.runs.run import Run
    from merilo.stats.judge_noise import VarianceComponents


def noise_section(page: Page, run: Run) -> None:
    """Add one line per metric with several draws; nothing if each question was asked once."""
    noise = judge_noise(run)
    if not noise:
        return
    marks = WeakMarks.of(run.manifest)
    page.heading("Judge noise")
    page.entries([(marks.name(text), _noise(each, run.manifest.draws[text])) for text, each in noise.items()])
    page.text(
        "Each score is the mean over the draws. Counts and evidence are those of the first draw.",
        indent=2,
        tone=Tone.QUIET,
    )


def _noise(found: VarianceComponents | None, draws: int) -> str:
    if found is None:
        return f"cannot tell: fewer than two scored samples; {draws} draws"
    within, between = number(sqrt(found.within)), number(sqrt(found.between))
    return f"standard deviation {within} within a sample, {between} between samples; {draws} draws"
