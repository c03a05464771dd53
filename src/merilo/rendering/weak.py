"""The marker of metrics that are weak with their judge, and its legend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from merilo.rendering.sanitize import clean
from merilo.runs.weak import weak_left_out, weak_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from merilo.runs.manifest import Manifest

MARK: Final = " *"
"""Follows the name of a weak metric."""
WEAK: Final = "weak with this judge"
WEAK_LEGEND: Final = f"{WEAK} (not clearly better than chance)"


@dataclass(frozen=True, slots=True)
class WeakMarks:
    """Marks the names of weak metrics on a page."""

    weak: frozenset[str] = frozenset()
    """The texts of the weak metrics."""

    @classmethod
    def of(cls, *manifests: Manifest) -> Self:
        """Return the marks for metrics that are weak in any of these runs."""
        return cls(frozenset[str]().union(*map(weak_metrics, manifests)))

    def name(self, metric: str, shown: str | None = None) -> str:
        """Return the metric's name, with the marker if it is weak; `shown`: how the page names the metric."""
        name = metric if shown is None else shown
        return f"{name}{MARK}" if metric in self.weak else name

    def legend(self, metrics: Iterable[str]) -> str:
        """Return the sentence that explains the marker and names the weak ones of these metrics; empty without any."""
        return weak_legend(metric for metric in metrics if metric in self.weak)


def weak_legend(weak: Iterable[str]) -> str:
    """Return the sentence that explains the marker of these metrics; empty if there are none."""
    named = ", ".join(map(clean, dict.fromkeys(weak)))
    return f"* {WEAK_LEGEND}: {named}." if named else ""


def left_out_note(manifest: Manifest) -> str:
    """Return a sentence that names the metrics left out as weak, and how to run them; empty if there are none."""
    named = ", ".join(map(clean, weak_left_out(manifest)))
    return f"Left out as {WEAK} (to run one: --metrics NAME): {named}." if named else ""
