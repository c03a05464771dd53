"""Measure the embedded judge by language, on a set of questions in twelve languages: python benchmarks/languages.py

Prints one line of JSON for each task and language. Labels that come from a rule count as those of people here: a
context of another question is not relevant, in every translation.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Final

from merilo.commands.blocking import run_blocking
from merilo.commands.check.items import PositiveRule, table_of
from merilo.commands.check.options import CheckOptions
from merilo.commands.check.run import run_check
from merilo.data.labels import Task
from merilo.results.records import grouped
from merilo.stats.resampling import Resampling

LABELS: Final = Path(__file__).parent / "labels" / "dev"
SOURCE: Final = "xquad"
READINGS: Final = (
    PositiveRule("chunk_relevance", Task.CHUNK_RELEVANCE),
    PositiveRule("chunk_relevance=2", Task.CHUNK_RELEVANCE, least=2.0),
    PositiveRule("sentence_relevance", Task.SENTENCE_RELEVANCE),
)
MEASURES: Final = ("kappa", "balanced_accuracy", "auroc")


def main() -> None:
    """Check the judge on the records of one source, and print its figures by language."""
    tasks = [*dict.fromkeys(reading.task.value for reading in READINGS)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "labels.jsonl")
        file.write_text("".join(line for task in tasks for line in records(LABELS / f"{task}.jsonl.gz")), "utf-8")
        check = run_blocking(run_check(CheckOptions(labels=[file], tasks=tasks)))
    for reading in READINGS:
        items = grouped((item.record.language, item) for item in check.items[reading.task.value])
        for language, own in sorted(items.items()):
            if (table := table_of(reading, {reading.task.value: own}, Resampling())) is not None:
                values = {name: getattr(table.pooled.agreement, name).value for name in MEASURES}
                rounded = {name: None if value is None else round(value, 6) for name, value in values.items()}
                print(json.dumps({"task": reading.name, "language": language, "n": table.labels, **rounded}))


def records(path: Path) -> list[str]:
    """Return the lines of the source in a label file, without the mark of labels that come from a rule."""
    found: list[str] = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            if record["source"] == SOURCE:
                record.get("meta", {}).pop("constructed", None)
                found.append(json.dumps(record, ensure_ascii=False) + "\n")
    return found


if __name__ == "__main__":
    main()
