"""Judge noise of a run whose judge was asked several times: how much scores vary between samples and within one."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

from merilo.metrics.base import Score
from merilo.runs.outcomes import outcome_from
from merilo.stats.judge_noise import variance_components

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.runs.run import Run
    from merilo.stats.judge_noise import VarianceComponents


def judge_noise(run: Run) -> dict[str, VarianceComponents | None]:
    """Return the variance components of each metric with several draws, over its scored samples.

    None (cannot tell) for a metric with fewer than two scored samples. Empty for a run with one draw of each question.
    """
    values: dict[str, list[tuple[float, ...]]] = {text: [] for text in run.manifest.draws}
    for record in run.records() if values else ():
        if record["metric"] in values and isinstance(outcome := outcome_from(record), Score):
            values[record["metric"]].append(outcome.draws)
    return {text: variance_components(each) for text, each in values.items()}


def noise_record(run: Run, noise: Mapping[str, VarianceComponents | None]) -> dict[str, Any]:  # Any: JSON
    """Return the judge noise as a JSON-able object; null standard deviations mean that it cannot be estimated."""
    return {
        text: {
            "draws": run.manifest.draws[text],
            "samples": None if each is None else each.samples,
            "deviation_within": None if each is None else sqrt(each.within),
            "deviation_between": None if each is None else sqrt(each.between),
        }
        for text, each in noise.items()
    }
