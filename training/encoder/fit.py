"""Fit the curves that join words and encoder, choose thresholds, and measure them on held-out groups.

    python training/encoder/fit.py --data DIR --weights encoder.v1.safetensors --out blend.v2.json [--keep FILE]

DIR holds `train/`, whose sources are only named, and `dev/`, the labelled records that the reader was not trained on.
Each task has a handful of numbers (see `merilo.judges.blended_features`), so few coefficients that the same records can
choose them: every figure is taken on a family of sources that the curve did not see (`training/families.toml`). Locked
families are left out of everything. With --score-locked they are judged too, by the curves of all other families; do so
once, when nothing will be changed any more. With --keep the curves of a model file for the same weights stay, and only
those that it lacks are new. Prints the AUROC of each curve, and of each of its numbers alone, for each task and source.
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
from lexical.families import family_of, is_locked
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut

from encoder.rows import kept_units, made_of
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
    "answers": 2.0,
    "sufficient": 0.75,
    "supported": 0.75,
    "answered": 0.75,
    "yes_or_no": 0.75,
    "addresses": 0.75,
    "useful": 1.0,
}
EDITED: Final = ("fetaqa", "summedits-scitldr")
"""Sources of responses in which a fact was changed on purpose."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A curve, and the probabilities of each record by curves fitted on other groups."""

    curve: dict[str, Any]
    records: Rows
    chance: NDArray[np.float64]
    threshold: NDArray[np.float64]
    """The threshold for each record, chosen on other families too."""
    cut: float

    def judged(self, keep: Flags) -> Judged:
        """Return the records for which `keep` is true, each decided by its threshold."""
        rows = self.records.judged(self.chance, cut=self.cut, threshold=0.0)
        return replace(rows, decision=self.chance >= self.threshold).where(keep)


def fitted(name: str, units: Units) -> Fitted:
    """Return the curve of a task with its threshold, and the probabilities by curves without a record's family."""
    rows, cut = units.rows, CUTS[name]
    label, weight = rows.label >= cut, fitting.source_weights(rows.source)
    family = _families(rows.source)
    chance = np.zeros(len(label))
    # The records of a task with one family say nothing about another one: then articles are left out.
    several = len({family_of(source) for source in measure.two_sided(rows.judged(chance, cut=cut, threshold=0.0))}) > 1
    folds = LeaveOneGroupOut() if several else GroupKFold(fitting.FOLDS)
    for train, test in folds.split(rows.values, label, family if several else rows.group):
        others = train[units.single[train]]
        chance[test] = fitting.chances(_straight(rows.values[others], label[others], weight[others]), rows.values[test])
    used = units.single
    curve = _straight(rows.values[used], label[used], weight[used])
    records, chance = units.together(chance)
    decided = records.judged(chance, cut=cut, threshold=0.5)
    best = measure.best_threshold(decided, middle=True)
    curve["thresholds"] = measure.thresholds(name, decided, best)
    family, threshold = _families(records.source), np.full(len(chance), best)
    for own in set(family.tolist()):
        others = decided.where(family != own)
        if measure.two_sided(others):
            threshold[family == own] = measure.best_threshold(others, middle=True)
    return Fitted({"features": list(TASKS[name]), **curve}, records, chance, threshold, cut)


def _families(source: NDArray[np.str_]) -> NDArray[np.str_]:
    return np.array([*map(family_of, source.tolist())])


def _straight(
    rows: NDArray[np.float64], label: NDArray[np.bool_], weight: NDArray[np.float64]
) -> dict[str, Any]:  # Any: as stored
    # Bent curves gained nothing on families that they were not fitted on (design/embedded-judge.md).
    return fitting.fit(rows, label, weight, knots_at=())


def agreement(name: str, found: Fitted) -> dict[str, Any]:
    """Return the tables of a task, as in the model file: on human labels, and on all records."""
    source, people = found.records.source, ~found.records.constructed
    if name != "supported":
        return {name: _tables(found, people, np.ones(len(source), dtype=bool))}
    natural, edited = np.isin(source, records.NATURAL_SUPPORT), np.isin(source, EDITED)
    statements = ~natural & ~edited
    return {
        "supported": _tables(found, people & natural, natural),
        "supported_statements": _tables(found, people & statements, statements),
        "supported_edited": _tables(found, people & edited, edited),
    }


def _tables(found: Fitted, people: Flags, every: Flags) -> dict[str, Any]:
    return {
        "people": measure.agreement(found.judged(people), SEED),
        "all": measure.agreement(found.judged(every), SEED),
    }


def parted(units: Units) -> tuple[Units, Units]:
    """Return the units of all families but the locked ones, and those of the locked ones."""
    locked = np.array([*map(is_locked, units.rows.source.tolist())], dtype=bool)
    return _where(units, ~locked), _where(units, locked)


def _where(units: Units, keep: Flags) -> Units:
    return replace(units, rows=units.rows.where(keep), record=units.record[keep])


def locked_tables(name: str, locked: Units, found: Fitted) -> dict[str, Any] | None:
    """Return the agreement of a fitted curve with the human labels of the locked families."""
    if not len(locked.record):
        return None
    rows, chance = locked.together(fitting.chances(found.curve, locked.rows.values))
    judged = rows.judged(chance, cut=CUTS[name], threshold=measure.decides(found.curve["thresholds"], name))
    return measure.agreement(judged.where(~rows.constructed), SEED)


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
    """Return the licence of each source that the reader, the words or the curves were trained on, sorted by source."""
    tasks = sorted({path.name.partition(".")[0] for path in folder.glob("*.jsonl.gz")})
    found = {record["source"]: record["licence"] for task in tasks for record in records.read(folder, task)}
    return {source: found[source] for source in sorted(found) if not is_locked(source)}


def main() -> None:
    """Fit, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "weights", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="a model file whose curves stay")
    parser.add_argument("--rows", type=Path, required=True, metavar="FILE", help="stores the features of all records")
    parser.add_argument("--score-locked", action="store_true", help="judge the locked families too: once, at the end")
    chosen = parser.parse_args()
    kept = {} if chosen.keep is None else json.loads(chosen.keep.read_bytes())["curves"]
    weights = Weights.read(chosen.weights)
    seen = BlendedRows(weights, LexicalModel.load())
    fields: dict[str, Any] = {
        "format": FORMAT, "seed": SEED, "weights": weights.fingerprint, "curves": {}, "agreement": {},
        "trained_on": _licences(chosen.data / "train"),
    }  # fmt: skip
    for name, units in kept_units(chosen.rows, chosen.data / "dev", seen, made_of=made_of(seen)).items():
        units, locked = parted(units)  # noqa: PLW2901  the locked part is used for nothing else
        found = fitted(name, units)
        found = replace(found, curve=kept.get(name, found.curve))
        told(name, units, found)
        tables = agreement(name, found)
        shown(tables)
        fields["curves"][name] = found.curve
        fields["agreement"] |= tables
        if chosen.score_locked:
            fields.setdefault("unseen", {})[name] = locked_tables(name, locked, found)
            print("unseen", name, fields["unseen"][name], flush=True)
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"
    chosen.out.write_text(text, encoding="utf-8")
    print(f"{chosen.out}: SHA-256 {sha256(text.encode()).hexdigest()}")


if __name__ == "__main__":
    main()
