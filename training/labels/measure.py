"""Agreement of yes/no judgements with labels: kappa, balanced accuracy, AUROC, calibration, intervals."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labels.families import family_of

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

LEAST_RECORDS = 20
MIDDLE_ERROR = 0.1
"""Largest fraction of wrong records beyond the threshold that ends the middle grade."""
RESAMPLES = 1_000


@dataclass(frozen=True, slots=True)
class Judged:
    """Units with label, probability, decision, source, group and whether a rule made the label."""

    label: Flags
    chance: Floats
    decision: Flags
    source: NDArray[np.str_]
    group: NDArray[np.str_]
    constructed: Flags

    def where(self, keep: Flags) -> "Judged":
        """The units for which `keep` holds."""
        return Judged(*(getattr(self, name)[keep] for name in self.__slots__))


def kappa(label: Flags, decision: Flags) -> float:
    """Cohen's kappa; 0 where chance agreement is complete."""
    agreed = float(np.mean(label == decision))
    chance = float(label.mean() * decision.mean() + (1 - label.mean()) * (1 - decision.mean()))
    return (agreed - chance) / (1 - chance) if chance < 1 else 0.0


def balanced_accuracy(label: Flags, decision: Flags) -> float:
    """Mean of the shares judged right among yes and among no; both classes must be present."""
    return float((decision[label].mean() + (~decision[~label]).mean()) / 2)


def auroc(label: Flags, chance: Floats) -> float:
    """The probability that a yes scores above a no, ties half; both classes must be present."""
    _, places, counts = np.unique(chance, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[places]
    yes = int(label.sum())
    no = len(label) - yes
    return float((ranks[label].sum() - yes * (yes + 1) / 2) / (yes * no))


def calibration_error(label: Flags, chance: Floats, bins: int = 10) -> float:
    """Expected calibration error over equal-width bins."""
    place = np.minimum((chance * bins).astype(int), bins - 1)
    return float(
        sum(
            abs(label[place == b].mean() - chance[place == b].mean()) * np.mean(place == b)
            for b in range(bins)
            if (place == b).any()
        )
    )


def best_threshold(judged: Judged, *, loss: float = 0.0) -> float:
    """The threshold with the highest kappa, mean over sources with both classes; the middle one of equals.

    `loss`: the lowest threshold whose kappa is at most this much lower instead: it misses fewer yes.
    """
    candidates = np.round(np.arange(0.02, 0.99, 0.01), 2)
    sources = _two_sided(judged)
    if not sources:
        raise ValueError(f"No source has {LEAST_RECORDS} records and both labels, so no threshold can be chosen.")
    values = [np.mean([kappa(judged.label[m], judged.chance[m] >= t) for m in sources]) for t in candidates]
    if loss:
        return float(candidates[np.array(values) >= max(values) - loss][0])
    best = candidates[np.isclose(values, max(values))]
    return float(best[len(best) // 2])


def start_of_yes(judged: Judged, best: float) -> float:
    """The lowest threshold from `best` on with at most MIDDLE_ERROR of no above it."""
    above = [(t, judged.label[judged.chance >= t]) for t in np.round(np.arange(best, 0.99, 0.01), 2)]
    high = [t for t, label in above if len(label) >= LEAST_RECORDS and 1 - label.mean() <= MIDDLE_ERROR]
    return float(min(high, default=above[-1][0]))


def agreement(judged: Judged, seed: int) -> dict[str, object] | None:
    """Means over families of sources with both classes, with 95 % intervals; None without such a source.

    A family is the mean of its sources. The intervals resample families, then groups (articles, questions) within each
    source, so they say what to expect of another family. With one family they show its own groups only.
    """
    sources = _two_sided(judged)
    if not sources:
        return None
    families: dict[str, list[Flags]] = {}
    for mask in sources:
        families.setdefault(family_of(str(judged.source[mask][0])), []).append(mask)

    def macro(measure: Callable[[Flags], float]) -> float:
        return _short(float(np.mean([np.mean([measure(mask) for mask in own]) for own in families.values()])))

    def kappa_of(mask: Flags) -> float:
        return kappa(judged.label[mask], judged.decision[mask])

    def accuracy_of(mask: Flags) -> float:
        return balanced_accuracy(judged.label[mask], judged.decision[mask])

    def auroc_of(mask: Flags) -> float:
        return auroc(judged.label[mask], judged.chance[mask])

    inside = np.any(sources, axis=0)
    rng = np.random.default_rng(seed)
    drawn = {name: np.mean([_resampled(judged.where(m), rng) for m in own], axis=0) for name, own in families.items()}
    places = rng.integers(len(drawn), size=(RESAMPLES, len(drawn)))
    each = np.stack(list(drawn.values()))  # family, measure, resample
    draws = np.stack([each[own, :, at].mean(axis=0) for at, own in enumerate(places)])
    low, high = np.quantile(draws, 0.025, axis=0), np.quantile(draws, 0.975, axis=0)
    return {
        "kappa": macro(kappa_of),
        "interval": [_short(float(low[0])), _short(float(high[0]))],
        "balanced_accuracy": macro(accuracy_of),
        "balanced_accuracy_interval": [_short(float(low[2])), _short(float(high[2]))],
        "auroc": macro(auroc_of),
        "auroc_interval": [_short(float(low[1])), _short(float(high[1]))],
        "calibration_error": _short(calibration_error(judged.label[inside], judged.chance[inside])),
        "n": int(sum(mask.sum() for mask in sources)),
        "families": len(families),
        "sources": {
            str(judged.source[mask][0]): {
                "n": int(mask.sum()),
                "kappa": _short(kappa_of(mask)),
                "balanced_accuracy": _short(accuracy_of(mask)),
                "auroc": _short(auroc_of(mask)),
                "yes": _short(float(judged.label[mask].mean())),
                "mean_probability": _short(float(judged.chance[mask].mean())),
                "calibration_error": _short(calibration_error(judged.label[mask], judged.chance[mask])),
            }
            for mask in sources
        },
    }


def two_sided(judged: Judged) -> list[str]:
    """The sources with enough records and both labels."""
    return [str(judged.source[mask][0]) for mask in _two_sided(judged)]


def _two_sided(judged: Judged) -> list[Flags]:
    masks = [judged.source == source for source in sorted(set(judged.source.tolist()))]
    return [m for m in masks if m.sum() >= LEAST_RECORDS and 0 < judged.label[m].sum() < m.sum()]


def _resampled(judged: Judged, rng: np.random.Generator) -> Floats:
    """Kappa, AUROC and balanced accuracy of a source, each over `RESAMPLES` resamples of its groups."""
    _, group = np.unique(judged.group, return_inverse=True)
    members = [np.flatnonzero(group == own) for own in range(int(group.max()) + 1)]
    found = np.zeros((3, RESAMPLES))
    for at in range(RESAMPLES):
        rows = np.concatenate([members[own] for own in rng.integers(len(members), size=len(members))])
        drawn = Judged(*(getattr(judged, name)[rows] for name in judged.__slots__))
        if not 0 < drawn.label.sum() < len(drawn.label):
            drawn = judged  # too few groups: this resample says nothing
        found[:, at] = (
            kappa(drawn.label, drawn.decision),
            auroc(drawn.label, drawn.chance),
            balanced_accuracy(drawn.label, drawn.decision),
        )
    return found


def _short(value: float) -> float:
    return round(value, 3)
