"""Draws the labelled records that ship in the package from those of `dev/`: equal input gives equal bytes.

Only sources under Apache-2.0, MIT or CC-BY; of each as many of yes as of no, those whose ids have the lowest digests.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / "src" / "merilo" / "examples" / "labels"
OF_EACH = 40
CHOSEN = {
    "answer_relevance": ("alce-asqa", "qa-feedback"),
    "chunk_relevance": ("clapnq", "rumeddanet"),
    "groundedness": ("begin-wow", "faithdial-audit-wow", "qa-feedback"),
    "sentence_relevance": ("clapnq", "selqa"),
    "sufficiency": ("clapnq",),
}
SENTENCE_RECORDS = 50
YES_FROM = 0.75


def main() -> None:
    """Write one file a task into the package and say how many bytes they take."""
    total = 0
    for task, sources in CHOSEN.items():
        with gzip.open(HERE / "dev" / f"{task}.jsonl.gz", "rt", encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
        kept = [record for source in sources for record in _drawn(records, source)]
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in kept)
        packed = gzip.compress(text.encode(), 9, mtime=0)
        (TARGET / f"{task}.jsonl.gz").write_bytes(packed)
        total += len(packed)
        print(f"{task}: {len(kept)} records of {', '.join(sources)}, {len(packed):,} bytes")
    print(f"{total:,} bytes in all")


def _drawn(records: list[dict[str, Any]], source: str) -> list[dict[str, Any]]:
    """So many of yes and of no from a source, in the order of their digests."""
    own = sorted((each for each in records if each["source"] == source), key=_digest)
    if isinstance(own[0]["label"], list):
        return own[:SENTENCE_RECORDS]
    yes = [each for each in own if each["meta"]["label01"] >= YES_FROM]
    no = [each for each in own if each["meta"]["label01"] < YES_FROM]
    return sorted(yes[:OF_EACH] + no[:OF_EACH], key=_digest)


def _digest(record: dict[str, Any]) -> bytes:
    return hashlib.blake2b(record["id"].encode()).digest()


if __name__ == "__main__":
    main()
