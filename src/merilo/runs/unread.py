"""The samples whose language the judge of a metric does not support.

They are counted while the data is read, and recorded in `judges.judge.unread` of the manifest, by metric. Older
manifests have a sentence in `notes` instead.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from merilo.judging.json_types import as_object

if TYPE_CHECKING:
    from merilo.runs.manifest import Manifest

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
