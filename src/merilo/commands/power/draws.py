"""More samples or more draws: the standard error of a mean after doubling either, from a run with several draws."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.rendering.page import Page
    from merilo.rendering.weak import WeakMarks
    from merilo.stats.judge_noise import VarianceComponents

_SAME_COST: Final = (
    "Twice the samples and twice the draws cost the same number of requests, and twice the samples never gives the "
    "larger error. More draws help only if there are no more samples. Samples count as independent, without clusters."
)


def draws_record(found: VarianceComponents | None) -> dict[str, Any] | None:  # Any: JSON
    """Return the standard errors as a JSON-able object; None if they cannot be estimated."""
    if found is None:
        return None
    samples, draws = found.samples, found.draws
    return {
        "samples": samples,
        "draws": draws,
        "deviation_within": sqrt(found.within),
        "deviation_between": sqrt(found.between),
        "error": found.standard_error(samples, draws),
        "error_twice_the_samples": found.standard_error(2 * samples, draws),
        "error_twice_the_draws": found.standard_error(samples, 2 * draws),
        "error_without_noise": sqrt(found.between / samples),
    }


def draws_section(page: Page, noise: Mapping[str, VarianceComponents | None], marks: WeakMarks) -> None:
    """Add the standard errors of each metric with several draws; nothing if there is none."""
    if not noise:
        return
    page.heading("More samples or more draws?")
    page.entries([(marks.name(text), _errors(each)) for text, each in noise.items()])
    page.text(_SAME_COST, indent=2)


def _errors(found: VarianceComponents | None) -> str:
    if found is None:
        return "cannot tell: fewer than two scored samples"
    samples, draws = found.samples, found.draws
    now = found.standard_error(samples, draws)
    more_samples, more_draws = found.standard_error(2 * samples, draws), found.standard_error(samples, 2 * draws)
    advice = "more samples reduce it more" if more_samples < more_draws else "both reduce it equally"
    if not now:
        advice = "there is nothing to reduce"
    return (
        f"standard error {now:.4f} with {samples:,} samples x {draws} draws; "
        f"{more_samples:.4f} with twice the samples, {more_draws:.4f} with twice the draws: {advice}. "
        f"The limit of more draws is {sqrt(found.between / samples):.4f}."
    )
