"""The most confident wrong verdicts of a judge: python benchmarks/surest.py [--judge SPEC] [--labels FILE ...]

They are chosen by a rule, so nothing can be left out because it looks bad. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scores import terms

from merilo.commands.check.options import CheckOptions
from merilo.commands.check.run import run_check
from merilo.data.labels import Task
from merilo.data.sentences import sentences
from merilo.stats.resampling import Resampling

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from merilo.commands.check.items import Item

DEV: Final = sorted((Path(__file__).parent / "labels" / "dev").glob("*.jsonl.gz"))
RULE: Final = (
    "For each task, of the verdicts that say yes where people said no, and of those that say no where people said yes, "
    "the two surest from different sources; labels of people go before labels made by rule."
)
OF_EACH: Final = 2
LONGEST: Final = 240
"""Maximum characters shown of a text."""


def surest(items: Sequence[Item], *, said: bool) -> list[Item]:
    """Return the most confident wrong verdicts with this answer, from different sources."""
    wrong = [item for item in items if item.probability is not None and _said(item) is said and _people(item) != said]
    wrong.sort(key=lambda item: (item.record.constructed, -_sureness(item), _digest(item.record.id)))
    found: dict[str, Item] = {}
    for item in wrong:
        found.setdefault(item.record.source, item)
    return [*found.values()][:OF_EACH]


def _said(item: Item) -> bool:
    return (item.judge or 0.0) >= 1


def _people(item: Item) -> bool:
    return item.people >= 1


def _sureness(item: Item) -> float:
    chance = item.probability or 0.0
    return chance if _said(item) else 1 - chance


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode()).digest()


def example(item: Item, licences: dict[tuple[str, str], str]) -> dict[str, Any]:  # Any: JSON
    """Return an item as shown on the card; of a long context the sentence that shares most words with the question."""
    record = item.record
    stated = record.response if record.task is not Task.ANSWER_RELEVANCE else record.query
    held = record.texts or (record.response,)
    return {
        "task": record.task.value,
        "id": record.id,
        "source": record.source,
        "licence": licences.get((record.task.value, record.id), ""),
        "language": record.language,
        "query": _cut(record.query),
        "response": _cut(record.response),
        "context": _cut(_nearest(stated or record.query, held)) if record.texts else "",
        "people": "yes" if _people(item) else "no",
        "judge": "yes" if _said(item) else "no",
        "sureness": round(_sureness(item), 4),
        "by_rule": record.constructed,
    }


def _nearest(asked: str, texts: Iterable[str]) -> str:
    wanted = set(terms(asked))
    parts = [part for text in texts for part in sentences(text)]
    return max(parts, key=lambda part: (len(wanted & set(terms(part))), -len(part)), default="")


def _cut(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 1].rstrip() + "…"


def _licences(paths: Iterable[Path]) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for record in map(json.loads, lines):
                found[record["task"], record["id"]] = record["licence"]
    return found


def _examples(judge: str, labels: Sequence[Path], left_out: set[Task]) -> dict[str, Any]:
    tasks = [task.value for task in Task if task not in left_out]
    wanted = CheckOptions(labels=labels, tasks=tasks, include_constructed=True, each_sentence=False)
    check = asyncio.run(run_check(replace(wanted, judge=judge), Resampling(resamples=10)))
    licences: dict[tuple[str, str], str] = _licences(labels)
    return {
        "judge": {"name": check.judge.name, "fingerprint": dict(check.judge.fingerprint())},
        "rule": RULE,
        "examples": [
            example(item, licences)
            for task in tasks
            for said in (True, False)
            for item in surest(check.items.get(task, ()), said=said)
        ],
    }


def main() -> None:
    """Print the examples."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--judge", default="embedded", metavar="SPEC")
    parser.add_argument("--labels", nargs="*", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    found = _examples(arguments.judge, arguments.labels or DEV, {Task.SENTENCE_RELEVANCE})
    print(json.dumps(found, ensure_ascii=False, indent=2))


if __name__ == "__main__":
    main()
