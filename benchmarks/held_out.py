"""The embedded judge on records that its curves were not fitted on: python benchmarks/held_out.py

The curves of the shipped model combine words and encoder, and are fitted on the labelled records of this folder. So
the figures of `merilo judge check` over the same records are too good, above all for small sets. Here the curves and
their thresholds are fitted again, by `training/encoder/fit.py`, on four fifths of the articles and questions at a
time, and answer the rest; the encoder is the shipped one. Prints the output of `merilo judge check
--include-constructed --json`; needs training/requirements.in.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from evidence import with_chances
from packaged import blended

from merilo.commands.check.asking import JudgedAsLabelled, sample_of
from merilo.commands.check.options import CheckOptions
from merilo.commands.check.record import check_record
from merilo.commands.check.run import run_check
from merilo.data.labels import Task, read_labels
from merilo.judges.callables import CallableJudge
from merilo.judges.embedded_provider import RULES
from merilo.judges.lexical import Curve
from merilo.judging.kinds.addresses import Addresses
from merilo.judging.kinds.relevance import Relevance
from merilo.judging.kinds.sufficiency import Sufficiency
from merilo.judging.kinds.support import Support

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

from encoder.fit import fitted
from encoder.rows import Units, kept_units, labelled_units
from lexical import records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from merilo.judges.blended import BlendedModel
    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict

    Asked = Question[Any]  # Any: whatever its verdict is

DEV: Final = Path(__file__).resolve().parent / "labels" / "dev"
FOLDS: Final = 5
TITLE: Final = "embedded, held out"


class HeldOut:
    """One model for each fold, with curves fitted on the records in all others."""

    def __init__(self, folder: Path, model: BlendedModel, *, rows: Path | None = None) -> None:
        """Fit the models. `folder`: the records that the shipped curves were fitted on, one file per task.

        `rows`: a file with the model's features of them, read if it exists and written otherwise.
        """
        self._shipped = model
        self._folds: dict[Asked, int] = {}
        self._queries: dict[str, int] = {}
        for task in Task:
            path = folder / f"{task.value}.jsonl.gz"
            if path.is_file():
                self._place(path, folder, task)
        curves: list[dict[str, Curve]] = [dict(model.curves) for _ in range(FOLDS)]
        for name, units in labelled_units(folder, model.rows) if rows is None else _kept(rows, folder, model):
            own = np.array([_fold(group) for group in units.rows.group.tolist()])
            for fold in range(FOLDS):
                others = own != fold
                kept = Units(units.rows.where(others), units.record[others])
                curves[fold][name] = Curve.of(fitted(name, kept).curve)
        self._models = [replace(model, curves=each) for each in curves]  # which read with the same eyes

    def model_for(self, query: str, texts: tuple[str, ...]) -> BlendedModel:
        """Return the model of a query's fold; the shipped one for unknown queries."""
        del texts
        fold = self._queries.get(query)
        return self._shipped if fold is None else self._models[fold]

    @property
    def judge(self) -> CallableJudge:
        """A judge that asks the model of the question's or query's fold; the shipped one for others."""

        def answer(question: Asked) -> Verdict:
            fold = self._folds.get(question)
            query: str = getattr(question, "user_input", "")  # a statement has none
            model = self.model_for(query, ()) if fold is None else self._models[fold]
            return RULES[type(question)](model, question)

        return CallableJudge(answer, answers=frozenset({Relevance, Support, Sufficiency, Addresses}), title=TITLE)

    def _place(self, path: Path, folder: Path, task: Task) -> None:
        """Record the fold of each question about the records of a file."""
        groups = {str(raw["id"]): _group(raw) for raw in records.read(folder, task.value)}
        for record in read_labels([path]):
            fold = _fold(groups[record.id])
            if record.query:
                self._queries.setdefault(record.query, fold)
            for alone in {False, task is Task.SENTENCE_RELEVANCE}:
                questions = JudgedAsLabelled(task, alone=alone).questions(sample_of(record))
                self._folds |= dict.fromkeys(questions, fold)


def _kept(file: Path, folder: Path, model: BlendedModel) -> Iterable[tuple[str, Units]]:
    mark = hashlib.sha256(model.fingerprint.encode())
    for path in sorted(folder.glob("*.jsonl.gz")):
        mark.update(path.read_bytes())
    return kept_units(file, folder, model.rows, made_of=mark.hexdigest()).items()


def _group(raw: dict[str, Any]) -> str:  # Any: parsed JSON
    """Return the group that fitting keeps together: the records of one article, otherwise of one question."""
    meta = raw["meta"]
    inner = raw["context"] if raw["task"] == Task.NLI.value else meta.get("article") or meta.get("title")
    return f"{raw['source']}/{inner or raw['query'] or raw['id']}"


def _fold(group: str) -> int:
    return hashlib.blake2b(group.encode(), digest_size=4).digest()[0] % FOLDS


def main() -> None:
    """Print the check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--labels", type=Path, default=DEV, metavar="DIR")
    parser.add_argument("--source", action="append", default=[], metavar="NAME", help="print this source only")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="keeps what the model makes of the records")
    arguments = parser.parse_args()
    model = blended()
    if model is None:
        raise SystemExit("The packaged model has no encoder, and nothing of it was fitted on these records.")
    found = HeldOut(arguments.labels, model, rows=arguments.rows)
    labels = sorted(arguments.labels.glob("*.jsonl.gz"))
    wanted = CheckOptions(labels=labels, sources=arguments.source, include_constructed=True, each_sentence=True)
    check = with_chances(asyncio.run(run_check(replace(wanted, judge=found.judge, cache=False))), found.model_for)
    print(json.dumps(check_record(check), ensure_ascii=False, indent=2))


if __name__ == "__main__":
    main()
