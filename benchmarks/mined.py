"""Contexts that look relevant and are not: for each question the passage of another article that BM25 ranks first.

    python benchmarks/mined.py OUT.jsonl.gz [--labels FILE ...]

Takes the contexts with the human grade 2 from sources that name the article of a passage, and writes each with one
passage of the same source and language in grade 0. The rule is sometimes wrong: another article can contain the
answer too. A question, with its translations, is a cluster. A passage may serve several of them, otherwise nearly all
would be one cluster.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scores import Corpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Record = dict[str, Any]  # Any: parsed JSON

DEV: Final = Path(__file__).parent / "labels" / "dev"
HOW: Final = "passage of another article with the highest BM25"


def mined(records: Iterable[Record]) -> Iterator[Record]:
    """Yield the answered contexts among the records, each followed by the one that was mined for its question."""
    pools: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    answered: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        article = _article(record)
        if article:
            place = (record["source"], record["lang"])
            pools[place].setdefault(record["context"], article)
            if record["task"] == "chunk_relevance" and record["label"] == 2 and not record["meta"].get("constructed"):
                answered[place].append(record)
    for place, own in sorted(answered.items()):
        pool = pools[place]
        corpus = Corpus(pool)
        for record in own:
            others = [text for text, article in pool.items() if article != _article(record)]
            if others:
                yield {**record, "meta": {**record["meta"], "cluster": _question(record)}}
                yield _negative(record, max(others, key=lambda text: (corpus.bm25(record["query"], text), text)))


def _negative(record: Record, text: str) -> Record:
    meta = {name: value for name, value in record["meta"].items() if name in {"article", "title", "qid", "scale"}}
    meta |= {"cluster": _question(record), "constructed": HOW, "how": HOW, "label01": 0.0}
    return {**record, "id": f"{record['id']}-mined", "context": text, "label": 0, "meta": meta}


def _article(record: Record) -> str:
    return str(record["meta"].get("article") or record["meta"].get("title") or "")


def _question(record: Record) -> str:
    return str(record["meta"].get("qid") or record["query"])


def main() -> None:
    """Write the file and print the number of its records."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--labels", nargs="*", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    paths = arguments.labels or [DEV / f"{task}.jsonl.gz" for task in ("chunk_relevance", "sufficiency")]
    records: list[Record] = []
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            records += [json.loads(line) for line in lines]
    found = [json.dumps(record, ensure_ascii=False) + "\n" for record in mined(records)]
    arguments.out.write_bytes(gzip.compress("".join(found).encode(), 9, mtime=0))
    print(f"{len(found)} records in {arguments.out}")


if __name__ == "__main__":
    main()
