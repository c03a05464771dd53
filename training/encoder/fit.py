"""Fit the curves of the embedded judge, choose thresholds, and measure them on left-out families.

    python training/encoder/fit.py --data DIR --weights encoder.v1.safetensors --rows rows.npz --out curves.v3.json

DIR holds `train/`, whose sources are only named, and `dev/`, the labelled records that the reader was not trained on.
Each task has a handful of features (see `merilo.judges.blended`), so few coefficients that the same records can
choose them: every figure is taken on a family of sources that the curve did not see (`training/families.toml`). Locked
families are left out of every fit and choice. Curves are fitted on human labels of sources that have both kinds: their
negatives are about the subject, as the passages that a search finds, so that a probability is a share of those.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from labels import curve as fitting
from labels import measure, records
from labels.families import family_of, is_locked
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut

from encoder.rows import kept_units
from merilo.judges.blended import TASKS, PairFeatures
from merilo.judges.encoder.model import Weights

if TYPE_CHECKING:
    from labels.measure import Flags, Judged
    from labels.rows import Rows
    from numpy.typing import NDArray

    from encoder.rows import Units

FORMAT: Final = 2
"""Version of the fields of the written file."""
SEED: Final = 20261121
CUTS: Final = {"answers": 2.0, "words": 2.0, "sentence": 1.0, "useful": 1.0}
"""The lowest label that is a yes; 0.75 for other tasks."""
CONSTRUCTED: Final = frozenset({"words", "useful", "answered"})
"""Tasks that are fitted on rule-generated labels too, because there are no others."""
GRADED: Final = frozenset({"answers", "words"})
"""Tasks with a middle grade that counts as a yes."""
KAPPA_LOSS: Final = 0.02
"""Largest loss of kappa by which the threshold of relevance is lowered: what is missed costs more than what is read."""
FOLDS: Final = 5


def cut_of(name: str) -> float:
    """Return the lowest label of a task that is a yes."""
    return CUTS.get(name, records.YES)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A curve, and the probabilities of each record by curves fitted on other families."""

    name: str
    curve: dict[str, Any]  # Any: as stored
    records: Rows
    chance: NDArray[np.float64]
    cut: float

    def judged(self, keep: Flags) -> Judged:
        """Return the records for which `keep` is true."""
        found = self.curve["thresholds"]
        threshold = found["partly" if self.name in GRADED else "yes"]
        return self.records.judged(self.chance, cut=self.cut, threshold=threshold).where(keep)


def fitted(name: str, units: Units) -> Fitted:
    """Return the curve of a task with its thresholds, and the probabilities by curves without a record's family."""
    rows, cut = units.rows, cut_of(name)
    label, family = rows.label >= cut, families(rows.source)
    used = units.single & fits(name, rows)
    chance = np.zeros(len(label))
    # The records of a task with one family say nothing about another one: then articles are left out.
    several = len(set(family[used].tolist())) > 1
    folds = LeaveOneGroupOut() if several else GroupKFold(FOLDS)
    for train, test in folds.split(rows.values, label, family if several else rows.group):
        others = np.zeros(len(label), dtype=bool)
        others[train] = used[train]
        chance[test] = fitting.chances(curve_of(name, rows, others), rows.values[test])
    curve = curve_of(name, rows, used)
    merged, chance = units.together(chance)
    decided = merged.judged(chance, cut=cut, threshold=0.5)
    curve["thresholds"] = thresholds(name, decided)
    return Fitted(name, {"features": list(TASKS[name]), **curve}, merged, chance, cut)


def fits(name: str, rows: Rows) -> Flags:
    """Return the rows on which the curve of a task is fitted: of sources in which the labels differ."""
    keep = np.ones(len(rows.label), dtype=bool) if name in CONSTRUCTED else ~rows.constructed
    if name == "supported":  # statements that were written as puzzles spoil the level for what a system wrote
        keep &= np.isin(rows.source, records.NATURAL_SUPPORT)
    label = rows.label >= cut_of(name)
    for source in set(rows.source.tolist()):
        own = (rows.source == source) & keep
        if own.sum() < measure.LEAST_RECORDS or len(set(label[own].tolist())) < 2:
            keep &= rows.source != source
    return keep


def thresholds(name: str, judged: Judged) -> dict[str, float]:
    """Return the thresholds of a curve: rule-generated negatives, which are easier, count too, as users have them."""
    best = measure.best_threshold(judged, loss=KAPPA_LOSS if name == "answers" else 0.0)
    if name in GRADED:
        return {"partly": best, "yes": measure.start_of_yes(judged, best)}
    return {"yes": best}


def families(source: NDArray[np.str_]) -> NDArray[np.str_]:
    """Return the family of each source."""
    return np.array([*map(family_of, source.tolist())])


def curve_of(name: str, rows: Rows, used: Flags) -> dict[str, Any]:
    """Return the curve fitted on some rows, each family weighted by the square root of its size; no thresholds."""
    weight = fitting.family_weights(families(rows.source[used]))
    return fitting.fit(rows.values[used], rows.label[used] >= cut_of(name), weight)


def unlocked(units: Units) -> Units:
    """Return the units of all families but the locked ones."""
    return units.where(np.array([not is_locked(each) for each in units.rows.source.tolist()], dtype=bool))


def _licences(folder: Path) -> dict[str, str]:
    """Return the licence of each source that the reader, the words or the curves were trained on, sorted by source."""
    tasks = sorted({path.name.partition(".")[0] for path in folder.glob("*.jsonl.gz")})
    found = {record["source"]: record["licence"] for task in tasks for record in records.read(folder, task)}
    return {source: found[source] for source in sorted(found) if not is_locked(source)}


def main() -> None:
    """Fit, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "weights", "rows", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    chosen = parser.parse_args()
    weights = Weights.read(chosen.weights)
    fields: dict[str, Any] = {
        "format": FORMAT, "seed": SEED, "weights": weights.fingerprint, "curves": {}, "agreement": {},
        "trained_on": _licences(chosen.data / "train"),
    }  # fmt: skip
    units_of = kept_units(chosen.rows, chosen.data / "dev", PairFeatures(weights), weights.fingerprint)
    for name, units in units_of.items():
        found = fitted(name, unlocked(units))
        fields["curves"][name] = found.curve
        people = found.judged(~found.records.constructed | (name in CONSTRUCTED))
        print(name, found.curve, measure.agreement(people, SEED), flush=True)
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"
    chosen.out.write_text(text, encoding="utf-8")
    print(f"{chosen.out}: SHA-256 {sha256(text.encode()).hexdigest()}")


if __name__ == "__main__":
    main()
