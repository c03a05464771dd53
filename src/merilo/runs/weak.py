"""The metrics that are weak with the judge of a run, as its manifest records them.

A metric is weak with a judge if the judge's agreement with human labels does not clear chance
(`merilo.judges.measured_agreement`). The manifest lists the weak metrics of the run in `judges.judge.weak`, and the
weak kinds of question of each judge in `weak_kinds`. Older manifests have neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.data import check

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.runs.manifest import Manifest

WEAK_LEFT_OUT: Final = "weak with this judge; run it by name"
"""The beginning of the reason in a manifest why a weak metric is left out."""


def weak_metrics(manifest: Manifest) -> frozenset[str]:
    """Return the texts of the metrics that are weak, including those that were left out for it."""
    return frozenset(text for judge in manifest.judges.values() for text in _texts(judge, "weak"))


def recorded_weak_kinds(manifest: Manifest) -> frozenset[str]:
    """Return the kinds of question on which the agreement of the run's judges does not clear chance."""
    return frozenset(kind for judge in manifest.judges.values() for kind in _texts(judge, "weak_kinds"))


def weak_left_out(manifest: Manifest) -> tuple[str, ...]:
    """Return the metrics that the run left out because they are weak."""
    weak = weak_metrics(manifest)
    return tuple(text for text, reason in manifest.left_out.items() if text in weak and WEAK_LEFT_OUT in reason)


def _texts(judge: Mapping[str, object], name: str) -> list[str]:
    found = judge.get(name)
    return [text for text in found if isinstance(text, str)] if check.is_list(found) else []
