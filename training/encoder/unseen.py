"""Measure the embedded judge on families of sources that its curves have not seen.

    python training/encoder/unseen.py --data DIR --rows FILE --weights FILE --curves curves.v3.json --table FILE

The whole judge answers, slots included, with curves that are fitted without the family of each record. Only human
labels count. Adds the agreement to the model file, by task: `left_out` (all families), `unseen` (those that the reader
was not trained on either) and `locked` (unseen families on which no choice was made, `training/families.toml`). The
left-out figures are also written as a table, which decides what the judge answers. Run it once for a model: a second
look at the locked families would be a choice made on them.
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

from labels import curve as fitting
from labels import measure, records
from labels.families import family_of, is_known, is_locked
from labels.measure import Judged

from encoder.fit import SEED, curve_of, cut_of, fits, fitted, unlocked
from encoder.rows import Units, kept_units, short_of, split
from merilo.data.short_answers import affirms, stated
from merilo.judges.blended import BlendedModel, CannotJudge, Curve
from merilo.judges.embedded_provider import RULES
from merilo.judges.encoder.model import Weights
from merilo.judges.words import stems
from merilo.judging.kinds.contexts import Relevance, Sufficiency, Support

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from labels.records import Example


EDITED: Final = ("fetaqa", "summedits-scitldr")
"""Sources of responses in which a fact was changed on purpose."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A labelled record with the judge's probability, and its verdict; None if it leaves the record open."""

    example: Example
    label: bool
    chance: float | None
    verdict: bool | None


class Models:
    """The judge's model for each family: its curves are fitted without that family and without the locked ones."""

    def __init__(self, model: BlendedModel, units: Mapping[str, Units]) -> None:
        self._model, self._units = model, {name: unlocked(own) for name, own in units.items()}
        self._made: dict[str, BlendedModel] = {}

    def of(self, source: str) -> BlendedModel:
        """Return the model for a source."""
        family = family_of(source)
        if is_locked(source):
            return self._model
        if family not in self._made:
            curves = {name: self._curve(name, family) for name in self._units}
            self._made[family] = replace(self._model, curves={**self._model.curves, **curves})
        return self._made[family]

    def _curve(self, name: str, family: str) -> Curve:
        rows = self._units[name].rows
        left = np.array([family_of(each) != family for each in rows.source.tolist()])
        own = fits(name, rows) & left & self._units[name].single
        if left.all() or not own.any():  # no record of the family, or it is the only one that the curve is fitted on
            return self._model.curves[name]
        found = curve_of(name, rows, own)
        # Thresholds are those of the shipped model: of a curve on fewer families they would say nothing about it.
        return Curve.of({**found, "thresholds": self._model.curves[name].thresholds})


def judged(folder: Path, models: Models) -> Iterator[tuple[str, Outcome]]:
    """Yield a task and an outcome for each human label that the whole judge is asked about."""
    for each in _people(records.relevance_examples(folder, split)):
        asked = Relevance(each.asked, split(each.context, each.language), language=each.language)
        task = "relevance" if each.language == "en" else "relevance in other languages"
        yield task, _outcome(each, cut_of("answers"), models.of(each.source), [asked])
    for each in _people(records.sufficiency_examples(folder, split)):
        if each.language == "en":
            own = Sufficiency(each.asked, (each.context,))
            yield "sufficiency", _outcome(each, records.YES, models.of(each.source), [own])
    for each, parts in records.support_examples(folder, split):
        if each.language == "en" and each.texts and not each.constructed:
            yield _response(each, parts, models.of(each.source))
    for each in _people(records.statement_examples(folder, split)):
        if each.language == "en":
            own = Support(each.other, (each.context,))
            yield "support of statements", _outcome(each, records.YES, models.of(each.source), [own])


def _response(each: Example, parts: tuple[str, ...], model: BlendedModel) -> tuple[str, Outcome]:
    short = short_of(each)
    if short is None:
        asked = [Support(part, (each.context,)) for part in parts if stems(part)]
        task = "support of edited responses" if each.source in EDITED else "support of responses"
        return task, _outcome(each, records.YES, model, asked)
    task = "short answers" if affirms(short[1]) is None else "yes or no"
    text = stated(each.other, each.asked, each.language) or ""
    return task, _outcome(each, records.YES, model, [Support(text, (each.context,))])


def _outcome(each: Example, cut: float, model: BlendedModel, asked: Sequence[Any]) -> Outcome:  # Any: any verdict
    """Return the outcome of one question, or of the statements of a response.

    The probability is their mean. The verdict is no if one of them is no, otherwise open if one of them is open.
    """
    found: list[tuple[float | None, bool | None]] = []
    for question in asked:
        try:
            verdict = RULES[type(question)](model, question)
            found.append((verdict.probability, verdict.positive))
        except CannotJudge as error:
            found.append((error.probability, None))
    chances, verdicts = [p for p, _ in found if p is not None], {given for _, given in found}
    chance = float(np.mean(chances)) if chances else None
    return Outcome(each, each.label >= cut, chance, False if False in verdicts else None if None in verdicts else True)


def _people(examples: Iterable[Example]) -> Iterator[Example]:
    # Of other languages no record with human labels has a no; rule-generated ones are counted there.
    return (each for each in examples if each.texts and (not each.constructed or each.language != "en"))


def tables(outcomes: Iterable[tuple[str, Outcome]]) -> dict[str, dict[str, Any]]:
    """Return the tables of each task that the whole judge answers."""
    found: dict[str, list[Outcome]] = {}
    for task, outcome in outcomes:
        found.setdefault(task, []).append(outcome)
    made: dict[str, dict[str, Any]] = {}
    for task, own in found.items():
        ranked = [each for each in own if each.chance is not None]
        made[task] = _tables(_judged(ranked)) if ranked else {}
        for name, verdict in (("yes", True), ("no", False)):
            given = [each.label == verdict for each in own if each.verdict is verdict]
            made[task][name] = [sum(given), len(given)]
        made[task]["records"] = len(own)
    return made


def evidence(units: Units) -> dict[str, Any]:
    """Return the tables of evidence sentences, by the curve: those of the locked families by the shipped one."""
    found = fitted("sentence", unlocked(units))
    locked = units.rows.where(np.array([is_locked(each) for each in units.rows.source.tolist()], dtype=bool))
    last = locked.judged(
        fitting.chances(found.curve, locked.values), cut=1.0, threshold=found.curve["thresholds"]["yes"]
    )
    every = found.judged(np.ones(len(found.chance), dtype=bool))
    parts = (np.concatenate([getattr(every, part), getattr(last, part)]) for part in Judged.__slots__)
    return _tables(Judged(*parts))


def _judged(outcomes: list[Outcome]) -> Judged:
    return Judged(
        np.array([each.label for each in outcomes]),
        np.array([each.chance for each in outcomes]),
        np.array([each.verdict is True for each in outcomes]),
        np.array([_source(each.example) for each in outcomes]),
        np.array([f"{each.example.source}/{each.example.group}" for each in outcomes]),
        np.zeros(len(outcomes), dtype=bool),
    )


def _source(each: Example) -> str:
    return f"{each.source}-{each.language}" if each.source == "xquad" else each.source


def _tables(found: Judged) -> dict[str, Any]:
    known = np.array([is_known(each) for each in found.source.tolist()], dtype=bool)
    locked = np.array([is_locked(each) for each in found.source.tolist()], dtype=bool)
    every = np.ones(len(known), dtype=bool)
    parts = {"left_out": every, "unseen": ~known, "locked": locked}
    return {name: measure.agreement(found.where(keep), SEED) for name, keep in parts.items()}


HEADER: Final = """\
# Agreement of the embedded judge with human labels, on families of sources that its curves have not seen. It decides
# what the judge answers; merilo/judges/base.py describes the fields. Written by
# training/encoder/unseen.py.
"""
ROWS: Final = (
    ("relevance", "relevance", ""),
    ("relevance in other languages", "relevance", "other languages by words"),
    ("evidence", "relevance", "evidence sentences"),
    ("sufficiency", "sufficiency", ""),
    ("support of responses", "support", ""),
    ("support of edited responses", "support", "edited responses"),
    ("support of statements", "support", "single statements"),
    ("short answers", "support", "short answers"),
)
"""The task, the kind of question, and the form of it, for each row of the table."""
NOT_ANSWERED: Final = (
    {"kind": "support", "form": "a bare yes or no", "value": 0.465, "lower": 0.383, "upper": 0.548, "families": 1},
    {"kind": "addresses", "form": "", "value": 0.58, "lower": 0.511, "upper": 0.655, "families": 1},
)
"""What the judge does not answer, as the last model that did was measured."""


def agreement_table(found: Mapping[str, Mapping[str, Any]], right: str) -> str:  # Any: tables of numbers
    """Return the left-out figures in TOML; a task without such labels has no row.

    `right`: the line with the fraction of right verdicts, which is measured on answers that no rule was tuned on.
    """
    rows: list[Mapping[str, Any]] = []
    for task, kind, form in ROWS:
        own = found.get(task, {}).get("left_out")
        if own is not None:
            low, high = own["auroc_interval"]
            fields = {"kind": kind, "form": form, "value": own["auroc"], "lower": low, "upper": high}
            rows.append(fields | {"families": own["families"], "records": own["n"]})
    parts = [
        HEADER,
        f"{right}\n",
    ]
    for row in (*rows, *NOT_ANSWERED):
        fields = {"measure": "auroc", **row}
        if fields["families"] == 1:  # its interval would say nothing about another family
            fields = {k: v for k, v in fields.items() if k not in {"lower", "upper"}}
        parts.append("[[measured]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in fields.items() if v != ""))
    return "\n".join(parts)


def main() -> None:
    """Judge, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "rows", "weights", "curves"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--table", type=Path, required=True, metavar="FILE", help="embedded_agreement.toml")
    chosen = parser.parse_args()
    weights = Weights.read(chosen.weights)
    model = BlendedModel.of(chosen.curves.read_bytes(), weights)
    folder = chosen.data / "dev"
    units = kept_units(chosen.rows, folder, model.features, weights.fingerprint)
    found = tables(judged(folder, Models(model, units))) | {"evidence": evidence(units["sentence"])}
    for task, own in sorted(found.items()):
        for kind, table in own.items():
            print(task, kind, table, flush=True)
    fields = json.loads(chosen.curves.read_bytes()) | {"agreement": found}
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"
    chosen.curves.write_text(text, encoding="utf-8")
    lines = chosen.table.read_text(encoding="utf-8").splitlines()
    right = next(line for line in lines if line.startswith("right = "))
    chosen.table.write_text(agreement_table(found, right), encoding="utf-8")


if __name__ == "__main__":
    main()
