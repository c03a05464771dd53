"""Read the labelled records the examples are made from, write JSON Lines, and name things by digest."""

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypedDict, cast


class Meta(TypedDict):
    """What is read of a record's `meta`; which of it is there depends on the source."""

    title: str
    errors: list[str]
    missing: list[str]


class Record(TypedDict):
    """What is read of a labelled record; which of it is there depends on the task."""

    id: str
    source: str
    query: str
    context: str
    response: str
    meta: Meta


def read(path: Path, source: str) -> Iterator[Record]:
    """The records of one source in a gzipped JSON Lines file, in file order."""
    with gzip.open(path, mode="rt", encoding="utf-8") as lines:
        for line in lines:
            record = cast("Record", json.loads(line))
            if record["source"] == source:
                yield record


def write_lines(path: Path, samples: Iterable[dict[str, object]]) -> None:
    """Write JSON Lines in UTF-8; the same samples give the same bytes on every system."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(sample, ensure_ascii=False) + "\n" for sample in samples)
    path.write_text(text, encoding="utf-8", newline="\n")


def digest(*texts: str) -> str:
    """Sixty-four hexadecimal digits that stand for these texts."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
