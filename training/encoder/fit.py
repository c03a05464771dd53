"""Fit the curves that join words and encoder, choose thresholds, and measure them on held-out groups.

    python training/encoder/fit.py --data DIR --weights encoder.v1.safetensors --out blend.v1.json

DIR is the folder of labelled records that the reader was not trained on. Each task has a handful of numbers (see
`blend.py`), so few coefficients that the same records can choose them: every figure is taken on groups
(articles, questions) that the curve did not see, in five folds. Prints for each task and source how the curve stands
beside the words alone and the encoder alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lexical import curve as fitting
from lexical import measure, records
from lexical.rows import Rows, _rows

from encoder.blend import FORMAT, TASKS, BlendedModel, seeing
from merilo.data.sentences import sentences
from merilo.judges.encoder.weights import Weights
from merilo.judges.lexical import LexicalModel
from merilo.judges.lexical_text import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lexical.records import Example

SEED: Final = 20261121
CUTS: Final = {
    "sentence": 1.0,
    "relevant": 1.0,
    "answers": 2.0,
    "sufficient": 0.75,
    "supported": 0.75,
    "addresses": 0.75,
    "useful": 1.0,
}
USEFUL_SWAPS: Final = ("begin-wow", "clapnq", "qa-feedback")
ANSWERS_LEFT_OUT: Final = ("qa-feedback-full", "mtrag-completeness")
"""Labelled for completeness, which a single statement cannot show."""


def split(text: str, language: str) -> tuple[str, ...]:
    """The sentences that the judge will be shown."""
    return sentences(text, language)


def all_rows(folder: Path, model: BlendedModel) -> Iterator[tuple[str, Rows]]:
    """The rows of each task."""
    read = [each for each in records.sentence_examples(folder) if each.language == "en"]
    yield "sentence", _sentences(read, model)
    relevance = list(_english(records.relevance_examples(folder, split)))
    contexts = _of(relevance, lambda e: model.context_row(e.asked, e.texts, model.sentence_rows(e.asked, e.texts)))
    yield "relevant", contexts
    yield "answers", contexts
    enough = list(_english(records.sufficiency_examples(folder, split)))
    yield "sufficient", _of(enough, lambda e: model.sufficient_row(e.asked, [e.texts]))
    yield "supported", _supported(folder, model)
    answers = [e for e in records.answer_examples(folder) if e.language == "en" and e.source not in ANSWERS_LEFT_OUT]
    yield "addresses", _of(answers, lambda e: model.answer_row(e.asked, e.other))
    useful = list(_english(records.usefulness_examples(folder, split)))
    yield "useful", _of(useful, lambda e: model.useful_row(e.asked, e.other, e.texts))


def _english(examples: Iterable[Example]) -> Iterator[Example]:
    return (each for each in examples if each.language == "en" and each.texts)


def _of(examples: list[Example], row: Callable[[Example], tuple[float, ...]]) -> Rows:
    return _rows([row(each) for each in examples], [each.label for each in examples], examples)


def _sentences(examples: list[Example], model: BlendedModel) -> Rows:
    values, labels, owners = [], [], []
    for each in examples:
        values += model.sentence_rows(each.asked, each.texts)
        labels += map(float, each.labels)
        owners += [each] * len(each.labels)
    return _rows(values, labels, owners)


def _supported(folder: Path, model: BlendedModel) -> Rows:
    """Responses of one statement, and statements: what several statements are worth together no curve says."""
    values, kept = [], []
    for example, statements in records.support_examples(folder, split):
        claims = [each for each in statements if words(each).stems]
        if example.language == "en" and example.texts and len(claims) == 1:
            values.append(model.support_row(claims[0], example.texts))
            kept.append(example)
    for record in records.read(folder, "nli"):
        texts = split(record["context"], record["lang"])
        if record["lang"] == "en" and texts and words(record["statement"]).stems:
            values.append(model.support_row(record["statement"], texts))
            kept.append(
                replace(
                    kept[0],
                    source=record["source"],
                    group=record["context"],
                    texts=texts,
                    other=record["statement"],
                    label=float(record["label"]),
                    constructed=bool(record["meta"].get("constructed")),
                )
            )
    return _rows(values, [each.label for each in kept], kept)


def fitted(name: str, rows: Rows) -> tuple[dict[str, Any], Any]:
    """The curve of a task with its threshold, and the probabilities on held-out groups."""
    label = rows.label >= CUTS[name]
    weight = fitting.source_weights(rows.source)
    found = fitting.fit(rows.values, label, weight)
    chance = fitting.held_out(rows.values, label, weight, rows.group)
    found["thresholds"]["yes"] = measure.best_threshold(rows.judged(chance, cut=CUTS[name], threshold=0.5))
    if name == "sufficient":
        steps = np.round(np.arange(0.02, found["thresholds"]["yes"], 0.01), 2)
        low = [step for step in steps if (chance < step).any() and label[chance < step].mean() <= 0.1]
        found["thresholds"]["partly"] = float(max(low, default=steps[0]))
    return {"features": list(TASKS[name]), **found}, chance


def told(name: str, rows: Rows, chance: Any) -> None:
    """Print AUROC of the curve and of each number alone, by source, of labels people gave and of all."""
    label = rows.label >= CUTS[name]
    for source in sorted(set(rows.source.tolist())):
        mask = rows.source == source
        if 0 < label[mask].sum() < mask.sum():
            alone = " ".join(
                f"{feature} {measure.auroc(label[mask], rows.values[mask, at]):.3f}"
                for at, feature in enumerate(TASKS[name])
            )
            joined = measure.auroc(label[mask], chance[mask])
            print(f"  {name:10} {source:24} n {mask.sum():5} joined {joined:.3f} | {alone}", flush=True)


def main() -> None:
    """Fit, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "weights", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    chosen = parser.parse_args()
    weights = Weights.read(chosen.weights)
    model = BlendedModel(LexicalModel.load(), *seeing(weights), {}, {}, "")
    fields: dict[str, Any] = {"format": FORMAT, "seed": SEED, "weights": weights.fingerprint, "curves": {}}
    agreement: dict[str, Any] = {}
    for name, rows in all_rows(chosen.data, model):
        fields["curves"][name], chance = fitted(name, rows)
        told(name, rows, chance)
        judged = rows.judged(chance, cut=CUTS[name], threshold=fields["curves"][name]["thresholds"]["yes"])
        agreement[name] = {
            "people": measure.agreement(judged.where(~judged.constructed), SEED),
            "all": measure.agreement(judged, SEED),
        }
        for table, values in agreement[name].items():
            if values is not None:
                print(f"{name} {table}: { ({k: v for k, v in values.items() if k != 'sources'}) }", flush=True)
    fields["agreement"] = agreement
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"
    chosen.out.write_text(text, encoding="utf-8")
    print(f"{chosen.out}: SHA-256 {sha256(text.encode()).hexdigest()}")


if __name__ == "__main__":
    main()
