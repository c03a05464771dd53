"""Measure the embedded judge on families of sources that neither its reader nor its curves have seen.

    python training/encoder/unseen.py --data DIR --rows FILE --weights FILE --blend blend.v2.json --table FILE

The whole judge answers, rules included, with curves that are fitted without the family of each record. Only human
labels count. Adds three tables for each task to the model file: `unseen` (families that the reader was not trained
on), `known` (families that it was trained on) and `locked` (unseen families on which no choice was made either,
`training/families.toml`). The unseen figures are also written as a table, which decides which metrics are weak. Run it
once for a model: a second look at the locked families would be a choice made on them.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lexical import curve as fitting
from lexical import measure, records
from lexical.families import family_of, is_known, is_locked
from lexical.measure import Judged

from encoder.fit import CUTS, EDITED, fitted
from encoder.rows import Units, kept_units, made_of, split
from merilo.data.short_answers import stated
from merilo.judges.blended import BlendedModel
from merilo.judges.blended_features import TASKS
from merilo.judges.embedded_provider import RULES
from merilo.judges.encoder.weights import Weights
from merilo.judges.lexical import Curve, LexicalModel
from merilo.judges.lexical_short import short_answer
from merilo.judges.lexical_text import words
from merilo.judging.kinds.relevance import Relevance
from merilo.judging.kinds.sufficiency import Sufficiency
from merilo.judging.kinds.support import Support

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lexical.records import Example

    from merilo.judging.questions import Question

    Asked = Question[Any]  # Any: whatever its verdict is

SEED: Final = 20261123
FITTED: Final = ("answers", "sufficient", "supported", "answered", "yes_or_no", "sentence", "addresses")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A judged record: its label, the judge's probability, and its decision."""

    example: Example
    label: bool
    chance: float
    decision: bool


class Models:
    """The judge's model for each family: its curves are fitted without that family and without the locked ones."""

    def __init__(self, model: BlendedModel, units: Mapping[str, Units]) -> None:
        self._model, self._units = model, units
        self._made: dict[str, BlendedModel] = {}

    def of(self, source: str) -> BlendedModel:
        """Return the model for a source."""
        family = family_of(source)
        if is_locked(source):
            return self._model
        if family not in self._made:
            curves = {name: self._curve(name, family) for name in FITTED}
            self._made[family] = replace(self._model, curves={**self._model.curves, **curves})
        return self._made[family]

    def _curve(self, name: str, family: str) -> Curve:
        rows = self._units[name].rows
        own = np.array([family_of(each) == family for each in rows.source.tolist()])
        if not own.any():
            return self._model.curves[name]
        left = np.array([not is_locked(each) for each in rows.source.tolist()]) & ~own
        label = rows.label[left] >= CUTS[name]
        if len(set(label.tolist())) == 1 or not left.any():  # the only family with this task
            return self._model.curves[name]
        try:
            return Curve.of(fitted(name, Units(rows.where(left), self._units[name].record[left])).curve)
        except ValueError:  # no other family has labels of both kinds: the task cannot be measured unseen
            return self._model.curves[name]


def judged(folder: Path, models: Models) -> Iterator[tuple[str, Outcome]]:
    """Yield a task and an outcome for each human label that the whole judge answers."""
    for each in _people(records.relevance_examples(folder, split)):
        asked = Relevance(each.asked, split(each.context, each.language))
        verdict = RULES[Relevance](models.of(each.source), asked)
        yield "relevance", _outcome(each, "answers", verdict)
    for each in _people(records.sufficiency_examples(folder, split)):
        verdict = RULES[Sufficiency](models.of(each.source), Sufficiency(each.asked, (each.context,)))
        yield "sufficiency", _outcome(each, "sufficient", verdict)
    for each, parts in records.support_examples(folder, split):
        if each.language == "en" and each.texts and not each.constructed:
            yield from _response(each, parts, models.of(each.source))
    for each in _people(records.statement_examples(folder, split)):
        verdict = RULES[Support](models.of(each.source), Support(each.other, (each.context,)))
        yield "support of statements", _outcome(each, "supported", verdict)


def _response(each: Example, parts: tuple[str, ...], model: BlendedModel) -> Iterator[tuple[str, Outcome]]:
    text = stated(each.other, each.asked, each.language)
    short = short_answer(text or "")
    if short is not None and text is not None:
        verdict = RULES[Support](model, Support(text, (each.context,)))
        task = {"answered": "short answers", "yes_or_no": "yes or no"}[short.task]
        yield task, _outcome(each, short.task, verdict)
        return
    verdicts = [RULES[Support](model, Support(part, (each.context,))) for part in parts if words(part).stems]
    if verdicts:
        chance = float(np.mean([verdict.probability for verdict in verdicts]))
        edited = "support of edited responses" if each.source in EDITED else "support of responses"
        label = each.label >= CUTS["supported"]
        yield edited, Outcome(each, label, chance, chance >= model.curves["supported"].thresholds["yes"])


def _outcome(each: Example, task: str, verdict: Any) -> Outcome:  # Any: a verdict with a probability
    return Outcome(each, each.label >= CUTS[task], verdict.probability, verdict.positive)


def _people(examples: Iterable[Example]) -> Iterator[Example]:
    return (each for each in examples if each.language == "en" and each.texts and not each.constructed)


def tables(outcomes: Iterable[tuple[str, Outcome]]) -> dict[str, dict[str, Any]]:
    """Return the tables of each task that the whole judge answers."""
    found: dict[str, list[Outcome]] = {}
    for task, outcome in outcomes:
        found.setdefault(task, []).append(outcome)
    return {task: _tables(_judged(own)) for task, own in found.items()}


def by_curves(units: Mapping[str, Units], model: BlendedModel) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tables of the tasks that no rule changes, from the curves."""
    for name, task in (("sentence", "evidence"), ("addresses", "addresses")):
        rows = units[name].rows
        locked = np.array([is_locked(each) for each in rows.source.tolist()])
        others = fitted(name, Units(rows.where(~locked), units[name].record[~locked]))
        left_out = others.judged(~others.records.constructed)
        own = rows.where(locked & ~rows.constructed)
        curve = model.curves[name]
        chance = fitting.chances(_fields(curve), own.values)
        last = own.judged(chance, cut=CUTS[name], threshold=curve.thresholds["yes"])
        both = (np.concatenate([getattr(left_out, part), getattr(last, part)]) for part in Judged.__slots__)
        yield task, _tables(Judged(*both))


def _fields(curve: Curve) -> dict[str, Any]:  # Any: as stored
    return {
        "low": curve.low,
        "high": curve.high,
        "slopes": curve.slopes,
        "knots": curve.knots,
        "intercept": curve.intercept,
    }


def _judged(outcomes: list[Outcome]) -> Judged:
    return Judged(
        np.array([each.label for each in outcomes]),
        np.array([each.chance for each in outcomes]),
        np.array([each.decision for each in outcomes]),
        np.array([each.example.source for each in outcomes]),
        np.array([f"{each.example.source}/{each.example.group}" for each in outcomes]),
        np.zeros(len(outcomes), dtype=bool),
    )


def _tables(found: Judged) -> dict[str, Any]:
    known = np.array([is_known(each) for each in found.source.tolist()], dtype=bool)
    locked = np.array([is_locked(each) for each in found.source.tolist()], dtype=bool)
    return {
        "unseen": measure.agreement(found.where(~known), SEED),
        "known": measure.agreement(found.where(known), SEED),
        "locked": measure.agreement(found.where(locked), SEED),
    }


def components(units: Mapping[str, Units]) -> dict[str, dict[str, float | None]]:
    """Return the AUROC over left-out families of each curve and of each of its numbers alone."""
    found: dict[str, dict[str, float | None]] = {}
    for name in FITTED:
        rows = units[name].rows
        left = np.array([not is_locked(each) for each in rows.source.tolist()])
        own = Units(rows.where(left), units[name].record[left])
        curve = fitted(name, own)
        people = ~curve.records.constructed
        found[name] = {"all": _auroc(curve.judged(people))}
        for at, feature in enumerate(TASKS[name]):
            merged, value = own.together(own.rows.values[:, at])
            alone = merged.judged(value, cut=CUTS[name], threshold=0.0)
            found[name][feature] = _auroc(alone.where(~merged.constructed))
    return found


def _auroc(found: Judged) -> float | None:
    table: Any = measure.agreement(found, SEED)  # Any: a table of numbers
    return None if table is None else table["auroc"]


HEADER: Final = """\
# Agreement of the embedded judge with human labels, on families of sources that its model has not seen. It decides
# which metrics are weak; merilo/judges/measured_agreement.py describes the fields. Written by
# training/encoder/unseen.py.
"""
ROWS: Final = (
    ("relevance", "relevance", ""),
    ("evidence", "relevance", "evidence sentences"),
    ("sufficiency", "sufficiency", ""),
    ("support of responses", "support", ""),
    ("support of statements", "support", "single statements"),
    ("support of edited responses", "support", "edited responses"),
    ("short answers", "support", "short answers"),
    ("yes or no", "support", "a bare yes or no"),
    ("addresses", "addresses", ""),
)
"""The task, the kind of question, and the form of it, for each row of the table."""


def agreement_table(found: Mapping[str, Mapping[str, Any]]) -> str:  # Any: tables of numbers
    """Return the unseen figures in TOML; a task without unseen labels has no row."""
    parts = [HEADER]
    for task, kind, form in ROWS:
        own = found.get(task, {}).get("unseen")
        if own is None:
            continue
        low, high = own["auroc_interval"]
        fields = {"kind": kind, "form": form, "measure": "auroc", "value": own["auroc"], "lower": low, "upper": high}
        fields |= {"families": own["families"], "records": own["n"]}
        parts.append("[[measured]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in fields.items() if v != ""))
    return "\n".join(parts)


def main() -> None:
    """Judge, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "rows", "weights", "blend"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--table", type=Path, required=True, metavar="FILE", help="embedded_agreement.toml")
    chosen = parser.parse_args()
    weights, lexical = Weights.read(chosen.weights), LexicalModel.load()
    model = BlendedModel.of(chosen.blend.read_bytes(), lexical, weights)
    folder = chosen.data / "dev"
    units = kept_units(chosen.rows, folder, model.rows, made_of=made_of(model.rows))
    found = dict(by_curves(units, model)) | tables(judged(folder, Models(model, units)))
    for task, own in sorted(found.items()):
        for kind, table in own.items():
            print(task, kind, table, flush=True)
    fields = json.loads(chosen.blend.read_bytes())
    fields |= {"agreement": found, "components": components(units)}
    print(json.dumps(fields["components"], indent=1))
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"
    chosen.blend.write_text(text, encoding="utf-8")
    chosen.table.write_text(agreement_table(found), encoding="utf-8")


if __name__ == "__main__":
    main()
