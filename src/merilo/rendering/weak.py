"""Notes on the limits of a judge: the marker of weak metrics, and samples in unsupported languages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from merilo.rendering.sanitize import clean
from merilo.results.basis import EMBEDDED
from merilo.runs.run_metrics import unread_metrics, weak_left_out, weak_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from merilo.runs.manifest import Manifest

MARK: Final = " *"
"""Follows the name of a weak metric."""
WEAK: Final = "weak with this judge"
_SHOWN: Final = 4
_ID_CHARS: Final = 40
WEAK_LEGEND: Final = f"{WEAK} (not clearly better than chance)"


_LANGUAGES: Final = {
    each[:2]: each[3:]
    for each in (
        "ar=Arabic ca=Catalan cs=Czech da=Danish de=German el=Greek en=English es=Spanish et=Estonian fi=Finnish "
        "fr=French he=Hebrew hi=Hindi hr=Croatian hu=Hungarian id=Indonesian it=Italian ja=Japanese ko=Korean "
        "lt=Lithuanian lv=Latvian nl=Dutch no=Norwegian pl=Polish pt=Portuguese ro=Romanian ru=Russian sk=Slovak "
        "sl=Slovenian sq=Albanian sv=Swedish th=Thai tr=Turkish uk=Ukrainian vi=Vietnamese zh=Chinese"
    ).split()
}
"""Primary language tag → name; another language is shown by its tag."""


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


def unread_line(manifest: Manifest) -> str:
    """Return a sentence on the samples in languages that a judge does not support; empty if there are none."""
    if not (unread := unread_metrics(manifest)):
        return ""
    most = max(unread.values(), key=lambda each: each["samples"])
    names = [clean(_LANGUAGES.get(str(code).partition("-")[0], str(code))) for code in most["languages"]]
    listed = " or ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])
    rows = f"{most['samples']:,} {'row is' if most['samples'] == 1 else 'rows are'} {listed}"
    if most["judge"] == EMBEDDED:
        return f"{rows}: the embedded judge compares only words there."
    return f"{rows}: {clean(most['judge'])} does not support that language. Scores there are weak."


def unread_note(manifest: Manifest) -> str:
    """Return how many samples of which metrics are in a language that their judge does not support; empty if none are.

    Metrics with the same samples are named together.
    """
    groups: dict[tuple[str, str, str], list[str]] = {}
    for metric, found in unread_metrics(manifest).items():
        languages = [f"{clean(code)} {amount:,}" for code, amount in found["languages"].items()]
        ids = [f"{clean(each):.{_ID_CHARS}}" for each in found["first"]]
        which = f"{_first(languages, len(languages))}: {_first(ids, found['samples'])}"
        groups.setdefault((clean(found["judge"]), f"{found['samples']:,}", which), []).append(clean(metric))
    if not groups:
        return ""
    total = (manifest.shard or {}).get("samples", manifest.samples)
    shown = [
        f"{samples} of {total:,} for {_named(metrics, manifest)} ({which})"
        for (_, samples, which), metrics in groups.items()
    ]
    judges = ", ".join(dict.fromkeys(judge for judge, _, _ in groups))
    which = _first(shown, len(shown), "; ")
    return f"Samples in a language that {judges} does not support: {which}. Scores there are weak."


def _named(metrics: list[str], manifest: Manifest) -> str:
    return "all metrics" if len(metrics) == len(manifest.metrics) > 1 else ", ".join(metrics)


def _first(texts: list[str], amount: int, separator: str = ", ") -> str:
    """Return the first texts of `amount`."""
    return separator.join([*texts[:_SHOWN], *(["..."] if amount > min(_SHOWN, len(texts)) else [])])
