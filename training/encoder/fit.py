"""Fit the curves that join words and encoder, choose thresholds, and measure them on held-out groups.

    python training/encoder/fit.py --data DIR --weights encoder.v1.safetensors --out blend.v1.json [--keep FILE]

DIR holds `train/`, whose sources are only named, and `dev/`, the labelled records that the reader was not trained on.
Each task has a handful of numbers (see `merilo.judges.blended_features`), so few coefficients that the same records can
choose them: every figure is taken on groups (articles, questions) that the curve did not see, in five folds. With
--keep the curves of a model file for the same weights stay, and only those that it lacks are new. Prints for each task
and source how the curve stands beside each of its numbers alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lexical import curve as fitting
from lexical import measure, records
from sklearn.model_selection import GroupKFold

from encoder.rows import all_units
from merilo.judges.blended import FORMAT
from merilo.judges.blended_features import TASKS, BlendedRows
from merilo.judges.encoder.weights import Weights
from merilo.judges.lexical import LexicalModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lexical.measure import Flags, Judged
    from lexical.rows import Rows
    from numpy.typing import NDArray

    from encoder.rows import Units

SEED: Final = 20261121
CUTS: Final = {
    "sentence": 1.0,
    "relevant": 1.0,
    "answers": 2.0,
    "sufficient": 0.75,
    "supported": 0.75,
    "answered": 0.75,
    "yes_or_no": 0.75,
    "addresses": 0.75,
    "useful": 1.0,
}
LEAST_BENT: Final = 2_000
"""Number of rows from which a curve may bend; with fewer it is a straight line through the numbers."""
STATEMENTS: Final = ("fever-symmetric", "fm2", "snli")
"""Sources with human labels of statements; support is fitted on these and on real model output."""
LEAST_MISSED: Final = 0.1
"""Largest fraction of truly sufficient records below the "partly" threshold."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A curve, and the probabilities of each record by curves fitted on other groups."""

    curve: dict[str, Any]
    records: Rows
    chance: NDArray[np.float64]
    cut: float

    def judged(self, keep: Flags) -> Judged:
        """Return the records for which `keep` is true, decided by the curve's threshold."""
        threshold = self.curve["thresholds"]["yes"]
        return self.records.judged(self.chance, cut=self.cut, threshold=threshold).where(keep)


def fitted(name: str, units: Units) -> Fitted:
    """Return the curve of a task with its threshold, and the probabilities by curves without a record's group."""
    rows, cut = units.rows, CUTS[name]
    label, weight = rows.label >= cut, fitting.source_weights(rows.source)
    used = units.single & _is_fitted(name, rows.source)
    knots = fitting.KNOTS if used.sum() >= LEAST_BENT else ()
    chance = np.zeros(len(label))
    for train, test in GroupKFold(fitting.FOLDS).split(rows.values, label, rows.group):
        kept = train[used[train]]
        curve = fitting.fit(rows.values[kept], label[kept], weight[kept], knots_at=knots)
        chance[test] = fitting.chances(curve, rows.values[test])
    curve = fitting.fit(rows.values[used], label[used], weight[used], knots_at=knots)
    found = Fitted({"features": list(TASKS[name]), **curve}, *units.together(chance), cut)
    decided = found.records.judged(found.chance, cut=cut, threshold=0.5)
    decided = decided.where(_is_fitted(name, found.records.source))
    curve["thresholds"]["yes"] = measure.best_threshold(decided, middle=True)
    if name == "sufficient":
        curve["thresholds"]["partly"] = _partly(decided, curve["thresholds"]["yes"])
    return found


def _is_fitted(name: str, source: NDArray[np.str_]) -> Flags:
    if name != "supported":
        return np.ones(len(source), dtype=bool)
    return np.isin(source, (*records.NATURAL_SUPPORT, *STATEMENTS))


def _partly(decided: Judged, sufficient: float) -> float:
    steps = np.round(np.arange(0.02, sufficient, 0.01), 2)
    below = [decided.chance < step for step in steps]
    low = [step for step, at in zip(steps, below, strict=True) if at.any() and decided.label[at].mean() <= LEAST_MISSED]
    return float(max(low, default=min(0.02, sufficient)))


def agreement(name: str, found: Fitted) -> dict[str, Any]:
    """Return the tables of a task, as in the model file: on human labels, and on all records."""
    source, people = found.records.source, ~found.records.constructed
    if name != "supported":
        return {name: _tables(found, people, np.ones(len(source), dtype=bool))}
    natural, statements = np.isin(source, records.NATURAL_SUPPORT), np.isin(source, STATEMENTS)
    return {
        "supported": _tables(found, people & natural, natural),
        "supported_statements": _tables(found, people & statements, statements),
        "supported_edited": _tables(found, people & ~natural & ~statements, ~natural & ~statements),
    }


def _tables(found: Fitted, people: Flags, every: Flags) -> dict[str, Any]:
    return {
        "people": measure.agreement(found.judged(people), SEED),
        "all": measure.agreement(found.judged(every), SEED),
    }


def told(name: str, units: Units, found: Fitted) -> None:
    """Print AUROC of the curve, and of each number alone over what is judged in one piece, by source."""
    rows, records = units.rows, found.records
    for source in sorted(set(records.source.tolist())):
        mask = records.source == source
        label = records.label[mask] >= found.cut
        if 0 < label.sum() < len(label):
            own = (rows.source == source) & units.single
            alone = " ".join(
                f"{feature} {measure.auroc(rows.label[own] >= found.cut, rows.values[own, at]):.3f}"
                for at, feature in enumerate(TASKS[name])
            )
            joined = measure.auroc(label, found.chance[mask])
            print(f"  {name:10} {source:24} n {mask.sum():5} joined {joined:.3f} | {alone}", flush=True)


def shown(tables: Mapping[str, Any]) -> None:
    """Print the means over sources."""
    for task, kinds in tables.items():
        for kind, values in kinds.items():
            if values is not None:
                print(task, kind, {key: value for key, value in values.items() if key != "sources"}, flush=True)


def _licences(folder: Path) -> dict[str, str]:
    """Return the licence of each source that the reader or the words were trained on, sorted by source."""
    tasks = [path.name.removesuffix(".jsonl.gz") for path in folder.glob("*.jsonl.gz")]
    found = {record["source"]: record["licence"] for task in tasks for record in records.read(folder, task)}
    return dict(sorted(found.items()))


def main() -> None:
    """Fit, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "weights", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="a model file whose curves stay")
    chosen = parser.parse_args()
    kept = {} if chosen.keep is None else json.loads(chosen.keep.read_bytes())["curves"]
    weights = Weights.read(chosen.weights)
    seen = BlendedRows(weights, LexicalModel.load())
    fields: dict[str, Any] = {
        "format": FORMAT, "seed": SEED, "weights": weights.fingerprint, "curves": {}, "agreement": {},
        "trained_on": _licences(chosen.data / "train"),
    }  # fmt: skip
    for name, units in all_units(chosen.data / "dev", seen):
        found = fitted(name, units)
        found = replace(found, curve=kept.get(name, found.curve))
        told(name, units, found)
        tables = agreement(name, found)
        shown(tables)
        fields["curves"][name] = found.curve
        fields["agreement"] |= tables
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"
    chosen.out.write_text(text, encoding="utf-8")
    print(f"{chosen.out}: SHA-256 {sha256(text.encode()).hexdigest()}")


if __name__ == "__main__":
    main()
