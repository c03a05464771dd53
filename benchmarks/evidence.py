"""Evidence sentences with a probability each: python benchmarks/evidence.py [--labels FILE ...]

A verdict names the sentences that are evidence, without a confidence for each. So the embedded model itself is asked
about sentences in their context. For a judge that is asked about each sentence alone, the probability given there is
used. AUROC and calibration of evidence are over these. Prints the output of `merilo judge check --task
sentence_relevance --json`, with them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from packaged import blended

from merilo.commands.check.options import CheckOptions
from merilo.commands.check.record import check_record
from merilo.commands.check.run import run_check
from merilo.commands.check.tables import table_of
from merilo.data.labels import Task
from merilo.judges.english_detection import is_english
from merilo.judges.lexical import LexicalModel, probability
from merilo.judges.lexical_match import match

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from merilo.commands.check.items import Item
    from merilo.commands.check.run import Check
    from merilo.commands.check.tables import TaskTable
    from merilo.data.labels import Labelled
    from merilo.judges.blended import BlendedModel

    ModelFor = Callable[[str, tuple[str, ...]], BlendedModel | None]

TASK: Final = Task.SENTENCE_RELEVANCE.value
ALONE: Final = f"{TASK}_alone"
EMBEDDED: Final = "embedded"
DEV: Final = sorted((Path(__file__).parent / "labels" / "dev").glob("*.jsonl.gz"))


def with_chances(check: Check, model_for: ModelFor | None = None) -> Check:
    """Return the check with a probability for every labelled sentence, and its tables of them computed again.

    `model_for`: the model behind the judge for a query and its sentences; by default the packaged one for the
    embedded judge, and none for others.
    """
    if model_for is None and check.judge.name == EMBEDDED:
        model_for = _packaged
    if TASK not in check.items:
        return check
    alone: dict[str, list[float | None]] = defaultdict(list)
    for item in check.items.get(ALONE, ()):
        alone[item.record.id].append(item.probability)
    known: dict[str, Sequence[float | None]] = {}
    found: list[Item] = []
    places: Counter[str] = Counter()
    for item in check.items[TASK]:
        record = item.record
        if record.id not in known:
            known[record.id] = _in_view(record, model_for) if model_for else alone[record.id]
        chances = known[record.id]
        place, places[record.id] = places[record.id], places[record.id] + 1
        found.append(item if item.judge is None or not chances else replace(item, probability=chances[place]))
    renewed = replace(check, items={**check.items, TASK: found})
    return replace(
        renewed,
        people=_tables(renewed, check.people, constructed=False),
        everything=None if check.everything is None else _tables(renewed, check.everything, constructed=True),
    )


def _tables(check: Check, tables: Sequence[TaskTable], *, constructed: bool) -> tuple[TaskTable, ...]:
    """Return these tables, with that of sentences in their context computed again."""
    items = [item for item in check.items[TASK] if constructed or not item.record.constructed]
    renewed = (
        table_of(each.reading, items, check.resampling) if each.reading.name == TASK else each for each in tables
    )
    return tuple(each for each in renewed if each is not None)


def _packaged(query: str, texts: tuple[str, ...]) -> BlendedModel | None:
    del query, texts
    return blended()


def _in_view(record: Labelled, model_for: ModelFor) -> Sequence[float]:
    """Return the model's probability for each sentence, read in the context of the others."""
    model = model_for(record.query, record.texts)
    if model is None or not is_english(record.query, *record.texts):
        return _by_words(record)
    curve = model.curves["sentence"]
    return [curve.probability(row) for row in model.rows.sentences(record.query, record.texts)]


def _by_words(record: Labelled) -> Sequence[float]:
    """Return the same from the model of words, which decides alone if the encoder does not read the text."""
    model = LexicalModel.load()
    found = match(model.lexicon.query(record.query), record.texts, drop_copies=True)
    chances = [0.0] * len(record.texts)
    for owner, logit in zip(found.owners, model.context_row(found)[0], strict=True):
        chances[owner] = max(chances[owner], probability(logit))
    return chances


def main() -> None:
    """Print the check of evidence sentences."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--labels", nargs="*", type=Path, metavar="FILE")
    labels = parser.parse_args().labels or DEV
    wanted = CheckOptions(labels=labels, tasks=[TASK], include_constructed=True, each_sentence=False)
    check = asyncio.run(run_check(replace(wanted, judge=EMBEDDED)))
    print(json.dumps(check_record(with_chances(check)), ensure_ascii=False, indent=2))


if __name__ == "__main__":
    main()
