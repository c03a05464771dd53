"""Limits of the judge of a run, as its manifest records them: weak metrics, and samples in unsupported languages.

A metric is weak with a judge if the judge's agreement with human labels does not clear chance
(`merilo.judges.measured_agreement`). The manifest lists the weak metrics of the run in `judges.judge.weak`, and the
weak kinds of question of each judge in `weak_kinds`. Samples whose language the judge of a metric does not support are
counted while the data is read, and recorded in `judges.judge.unread`, by metric.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from merilo.data import check
from merilo.judges.measured_agreement import decided_kinds
from merilo.judging.json_types import as_object
from merilo.metrics.registry import known_metric

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


def left_out_reasons(manifest: Manifest, name: str) -> dict[str, str]:
    """Return the metrics that the run left out, and a named one that is weak, each with a sentence on what to do."""
    found = {text: f"{reason}." for text, reason in manifest.left_out.items() if WEAK_LEFT_OUT not in reason}
    asked = known_metric(name)
    kinds = {kind.kind for kind in decided_kinds(asked)} if asked is not None else set[str]()
    named = [name] if kinds & recorded_weak_kinds(manifest) else []
    judge = manifest.judges.get("judge", {}).get("name")
    for text in (*weak_left_out(manifest), *named):
        found[text] = f"the {judge} judge is weak at it. Add it: merilo run ... --metrics {text}"
    return found


def _texts(judge: Mapping[str, object], name: str) -> list[str]:
    found = judge.get(name)
    return [text for text in found if isinstance(text, str)] if check.is_list(found) else []


NAMED: Final = 5


@dataclass(slots=True)
class Unread:
    """Samples in languages that the judge of one metric does not support."""

    judge: str
    """The name of the judge."""
    first: list[str] = field(default_factory=list[str])
    """The ids of the first `NAMED` samples."""
    languages: Counter[str] = field(default_factory=Counter[str])
    """Number of samples in each language, by code."""

    @property
    def samples(self) -> int:
        """Number of samples."""
        return self.languages.total()

    def add(self, sample_id: str, language: str) -> None:
        """Count a sample."""
        if self.samples < NAMED:
            self.first.append(sample_id)
        self.languages[language] += 1

    def record(self) -> dict[str, Any]:  # Any: JSON
        """Return this as a JSON-able object, the most frequent language first."""
        ordered = dict(sorted(self.languages.items(), key=lambda item: (-item[1], item[0])))
        return {"judge": self.judge, "samples": self.samples, "first": [*self.first], "languages": ordered}


def unread_metrics(manifest: Manifest) -> dict[str, dict[str, Any]]:  # Any: JSON
    """Return by metric of the run the `Unread.record` of its samples, if there are any."""
    recorded = as_object(manifest.judges.get("judge", {}).get("unread")) or {}
    found = {text: as_object(recorded.get(text)) for text in manifest.metrics}
    return {text: dict[str, Any](each) for text, each in found.items() if each is not None}
