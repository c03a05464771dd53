"""Fit the lexical judge on labelled records and write its model file.

    python training/fit_lexical.py --data DIR --out src/merilo/judges/lexical.v2.json [--keep FILE]

With --keep the word weights and the curves of a model file stay, and only those that it lacks are fitted.
DIR holds `train/` and `dev/`, one gzip JSON Lines file a task (see README.md beside this file). Coefficients
and thresholds come from `train/` alone (thresholds from five folds); `dev/` is only measured.
"""

from grouping import grouped
import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from lexical import curve as fitting
from lexical import measure, records
from lexical.families import is_known, is_locked
from lexical.idf import LEVELS, term_weights
from lexical.rows import (
    Rows,
    answer_rows,
    context_rows,
    is_short,
    sentence_rows,
    short_rows,
    support_rows,
    swapped,
    usefulness_rows,
)

from merilo.data.sentences import sentences
from merilo.judges.lexical import FORMAT, TASKS, Curve, LexicalModel
from merilo.judges.lexical_match import Lexicon

SEED = 20261121
TABLE_LETTERS = 400_000
CUTS = {
    "sentence": 1.0,
    "answers": 2.0,
    "sufficient": 0.75,
    "useful": 1.0,
    "supported": 0.75,
    "answered": 0.75,
    "yes_or_no": 0.75,
    "addresses": 0.75,
}
ANSWERS_LEFT_OUT = ("qa-feedback-full",)
"""Sources labelled for completeness, which a single statement cannot show."""


def main() -> None:
    """Fit, measure, write; print one line per task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with train/ and dev/")
    parser.add_argument("--out", type=Path, required=True, help="the model file to write")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="a model file whose curves stay")
    options = parser.parse_args()
    started = time.monotonic()
    kept = {"curves": {}} if options.keep is None else json.loads(options.keep.read_bytes())
    model_fields = fit(options.data / "train", kept)
    _write(options.out, model_fields)
    model = LexicalModel.of(options.out.read_bytes())
    model_fields["agreement"] = agreement(options.data / "dev", model_fields, model)
    _write(options.out, model_fields)
    _print(model_fields)
    print(f"{options.out}: {options.out.stat().st_size / 1000:.0f} kB in {time.monotonic() - started:.0f} s")


def split(text: str, language: str) -> tuple[str, ...]:
    """Return the sentences that the judge gets at run time."""
    return sentences(text, language)


def fit(folder: Path, kept: dict[str, Any]) -> dict[str, Any]:
    """Return the model file's fields, without agreement; `kept`: fields of another file, whose curves are reused."""
    fields: dict[str, Any] = {
        "format": FORMAT, "levels": LEVELS, "seed": SEED, "curves": dict(kept["curves"]), "agreement": {},
        "trained_on": kept.get("trained_on") or records.licences(folder, ANSWERS_LEFT_OUT),
        "weights": kept.get("weights") or _grouped(_weights(folder)),
    }  # fmt: skip
    for name in TASKS:  # "sentence" first: the features of others contain its probabilities
        if name not in kept["curves"]:
            fields["curves"][name] = _fit(name, _rows(name, folder, _model(fields)))
    return fields


def agreement(folder: Path, fields: dict[str, Any], model: LexicalModel) -> dict[str, Any]:
    """Return the agreement on held-out records by task: with human labels, and on all records."""
    found: dict[str, Any] = {}
    for name in TASKS:
        each, curve = _rows(name, folder, model, held_out=True), fields["curves"][name]
        judged = each.judged(
            fitting.chances(curve, each.values), cut=CUTS[name], threshold=measure.decides(curve["thresholds"], name)
        )
        found[name] = {
            "people": measure.agreement(judged.where(~judged.constructed), SEED),
            "all": measure.agreement(judged, SEED),
        }
        if name == "supported":
            natural = np.isin(judged.source, records.NATURAL_SUPPORT)
            found["supported_edited"] = {
                "people": measure.agreement(judged.where(~natural & ~judged.constructed), SEED)
            }
            found[name]["people"] = measure.agreement(judged.where(natural & ~judged.constructed), SEED)
    return found


def _rows(name: str, folder: Path, model: LexicalModel, *, held_out: bool = False) -> Rows:
    """Return the rows of a task. Fits use the families that the reader knows, so that the others stay unseen."""
    match name:
        case "sentence":
            rows = sentence_rows(records.sentence_examples(folder), model.lexicon)
        case "answers":
            rows = context_rows(records.relevance_examples(folder, split), model)
        case "sufficient":
            rows = context_rows(records.sufficiency_examples(folder, split), model)
        case "addresses":
            answers = [e for e in records.answer_examples(folder) if held_out or e.source not in ANSWERS_LEFT_OUT]
            rows = answer_rows(answers, model.lexicon, model)
        case "useful":
            made = swapped(list(records.support_examples(folder, split)))
            rows = usefulness_rows([*records.usefulness_examples(folder, split), *made], model.lexicon)
        case "supported":
            whole = [pair for pair in records.support_examples(folder, split) if not is_short(pair[0])]
            natural = [pair for pair in whole if held_out or pair[0].source in records.NATURAL_SUPPORT]
            rows = support_rows(natural, model.lexicon)
        case _:
            rows = short_rows(records.support_examples(folder, split), model, name)
    used = [not is_locked(source) if held_out else is_known(source) for source in rows.source.tolist()]
    return rows.where(np.array(used, dtype=bool))


def _fit(name: str, rows: Rows) -> dict[str, Any]:
    label = rows.label >= CUTS[name]
    weight = fitting.source_weights(rows.source)
    fitted = fitting.fit(rows.values, label, weight)
    chance = fitting.held_out(rows.values, label, weight, rows.group)
    judged = rows.judged(chance, cut=CUTS[name], threshold=0.5)
    fitted["thresholds"] = measure.thresholds(name, judged, measure.best_threshold(judged))
    return fitted


def _weights(folder: Path) -> dict[str, float]:
    contexts = records.relevance_examples(folder, _whole)
    passages = dict.fromkeys((e.language, e.texts[0]) for e in contexts if e.texts)
    examples = records.sentence_examples(folder)
    passages |= dict.fromkeys((e.language, " ".join(e.texts)) for e in examples)
    questions = dict.fromkeys((e.language, e.asked) for e in [*contexts, *examples] if e.source != "fm2")
    return term_weights(passages, questions, letters=TABLE_LETTERS)


def _whole(text: str, language: str) -> tuple[str, ...]:
    del language
    return (text,)


def _grouped(weights: dict[str, float]) -> dict[str, str]:
    levels: dict[int, list[str]] = {}
    for stem, value in weights.items():
        levels.setdefault(round(value * LEVELS), []).append(stem)
    return {str(level): " ".join(sorted(stems)) for level, stems in sorted(levels.items())}


def _model(fields: dict[str, Any]) -> LexicalModel:
    """Return a model with constants instead of curves that are not fitted yet."""
    table = {stem: int(level) / LEVELS for level, stems in fields["weights"].items() for stem in stems.split(" ")}
    curves = {name: Curve.of(fields["curves"][name]) for name in TASKS if name in fields["curves"]}
    return LexicalModel(Lexicon(table), curves, {}, "")


def _write(path: Path, fields: dict[str, Any]) -> None:
    fields = {
        **fields,
        "curves": {name: {"features": list(TASKS[name]), **fields["curves"][name]} for name in TASKS},
    }
    path.write_text(
        json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n", encoding="utf-8"
    )


def _print(fields: dict[str, Any]) -> None:
    for name, tables in fields["agreement"].items():
        for table, values in tables.items():
            if values is None:
                print(f"{name:17} {table:7} no source with both classes")
                continue
            low, high = values["interval"]
            print(
                f"{name:17} {table:7} kappa {values['kappa']:.3f} [{low:.3f}, {high:.3f}]"
                f" balanced {values['balanced_accuracy']:.3f} AUROC {values['auroc']:.3f}"
                f" ECE {values['calibration_error']:.3f}"
                f" n {values['n']} over {len(values['sources'])} sources"
            )
            print(
                "     ",
                " ".join(f"{source} {v['kappa']:.2f}/{v['auroc']:.2f}" for source, v in values["sources"].items()),
            )
    print("thresholds", {name: c["thresholds"] for name, c in fields["curves"].items()})
    print("Now fit the curves that join words and encoder (encoder/fit.py); until then they are of the words before.")


if __name__ == "__main__":
    main()
