"""What a number of a run rests on: no judge, the judge alone, or the judge corrected by human labels."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from merilo.data import check
from merilo.metrics.registry import asks_judge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.runs.manifest import Manifest

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


def judged_by_embedded(manifest: Manifest) -> bool:
    """Return True if the embedded judge answers the run's questions."""
    judge: Mapping[str, object] = manifest.judges.get("judge", {})
    fingerprint = judge.get("fingerprint")
    return check.is_record(fingerprint) and fingerprint.get("judge") == EMBEDDED
