"""Agreement of yes/no judgements with labels: kappa, balanced accuracy, AUROC, calibration, intervals."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

LEAST_RECORDS = 20
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


def best_threshold(judged: Judged, *, middle: bool = False) -> float:
    """The threshold with the highest kappa, mean over sources with both classes; the lowest or the middle of equals."""
    candidates = np.round(np.arange(0.02, 0.99, 0.01), 2)
    sources = _two_sided(judged)
    if not sources:
        raise ValueError(f"No source has {LEAST_RECORDS} records and both labels, so no threshold can be chosen.")
    values = [np.mean([kappa(judged.label[m], judged.chance[m] >= t) for m in sources]) for t in candidates]
    best = candidates[np.isclose(values, max(values))]
    return float(best[len(best) // 2 if middle else 0])


def agreement(judged: Judged, seed: int) -> dict[str, object] | None:
    """Means over the sources with both classes, and a 95 % interval for kappa; None without such a source.

    The interval resamples groups (articles, questions) within each source.
    """
    sources = _two_sided(judged)
    if not sources:
        return None
    rng = np.random.default_rng(seed)
    draws = np.mean([_resampled_kappas(judged.where(mask), rng) for mask in sources], axis=0)
    each = {
        str(judged.source[mask][0]): {
            "n": int(mask.sum()),
            "kappa": _short(kappa(judged.label[mask], judged.decision[mask])),
            "auroc": _short(auroc(judged.label[mask], judged.chance[mask])),
        }
        for mask in sources
    }
    return {
        "kappa": _macro(sources, lambda m: kappa(judged.label[m], judged.decision[m])),
        "interval": [_short(float(np.quantile(draws, q))) for q in (0.025, 0.975)],
        "balanced_accuracy": _macro(sources, lambda m: balanced_accuracy(judged.label[m], judged.decision[m])),
        "auroc": _macro(sources, lambda m: auroc(judged.label[m], judged.chance[m])),
        "calibration_error": _short(calibration_error(judged.label, judged.chance)),
        "n": int(sum(mask.sum() for mask in sources)),
        "sources": each,
    }


def _two_sided(judged: Judged) -> list[Flags]:
    masks = [judged.source == source for source in sorted(set(judged.source.tolist()))]
    return [m for m in masks if m.sum() >= LEAST_RECORDS and 0 < judged.label[m].sum() < m.sum()]


def _macro(sources: list[Flags], measure: Callable[[Flags], float]) -> float:
    return _short(float(np.mean([measure(mask) for mask in sources])))


def _resampled_kappas(judged: Judged, rng: np.random.Generator) -> Floats:
    _, group = np.unique(judged.group, return_inverse=True)
    size = int(group.max()) + 1
    cells = np.zeros((size, 4))
    np.add.at(cells, (group, judged.label.astype(int) * 2 + judged.decision.astype(int)), 1)
    picks = rng.multinomial(size, np.full(size, 1 / size), size=RESAMPLES) @ cells
    total = picks.sum(axis=1)
    agreed = (picks[:, 0] + picks[:, 3]) / total
    yes, said = (picks[:, 2] + picks[:, 3]) / total, (picks[:, 1] + picks[:, 3]) / total
    chance = yes * said + (1 - yes) * (1 - said)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(chance < 1, (agreed - chance) / (1 - chance), 0.0)


def _short(value: float) -> float:
    return round(value, 3)
