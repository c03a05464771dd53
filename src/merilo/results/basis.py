"""What a number of a run rests on: no judge, the judge alone, or the judge corrected by human labels."""

from __future__ import annotations

from enum import StrEnum
from math import sqrt
from typing import TYPE_CHECKING, Any, Final

from merilo.judges.routed import recorded_parts
from merilo.metrics.base import Score
from merilo.metrics.registry import asks_judge, known_metric
from merilo.runs.outcomes import outcome_from
from merilo.stats.judge_errors import variance_components

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.runs.manifest import Manifest
    from merilo.runs.run import Run
    from merilo.stats.judge_errors import VarianceComponents

BY_JUDGE: Final = "by the judge alone"
EMBEDDED: Final = "embedded"


class Basis(StrEnum):
    """What a mean or difference rests on."""

    NO_JUDGE = "no judge"
    """Computed without a judge, so there is no judge's error."""
    JUDGE = "judge alone"
    """Verdicts of a judge, or imported scores, whose error is not known on this data."""
    LABELS = "human labels"
    """Verdicts of a judge, corrected by human labels."""


def basis_of(metric: str, *, corrected: bool) -> Basis:
    """Return what a metric's number rests on. `corrected`: True if human labels correct it."""
    if corrected:
        return Basis.LABELS
    return Basis.JUDGE if asks_judge(metric) else Basis.NO_JUDGE


def recorded_judge(manifest: Manifest) -> str | None:
    """Return the name of the judge in the role `judge`; `no judge` if no metric asks one, None for imported scores."""
    if not manifest.judges:
        return None if manifest.origin else Basis.NO_JUDGE.value
    name = manifest.judges.get("judge", {}).get("name")
    return None if name is None else str(name)


def judged_by_embedded(manifest: Manifest, metric: str | None = None) -> bool:
    """Return True if the embedded judge answers questions of the run.

    `metric`: count only questions of this metric; None: all. A metric that is not known here may ask any.
    """
    known = None if metric is None else known_metric(metric)
    asked = None if known is None else {kind.kind for kind in known.asks}
    return any(
        part.fingerprint.get("judge") == EMBEDDED and (asked is None or bool(asked & part.kinds))
        for judge in manifest.judges.values()
        for part in recorded_parts(judge)
    )


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
