"""The generated table of levels: what people found on public data, and the embedded judge on the same texts."""

from __future__ import annotations

import gzip
import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from merilo.judges.blended import BlendedModel

LABELS: Final = Path(__file__).resolve().parent.parent / "benchmarks" / "labels" / "dev"
_ROWS: Final = (
    ("faithfulness", "support of responses", "groundedness", "mtrag", 4, "answers of gpt-4o, Llama 405B, people"),
    ("faithfulness", "support of responses", "groundedness", "qa-feedback", 1, "answer sentences of a T5 model"),
    ("faithfulness", "support of responses", "groundedness", "begin-wow", 1, "replies of small chat models"),
    ("context_sufficiency", "sufficiency", "sufficiency", "mtrag", 1, "passages picked by people"),
    (
        "context_relevance",
        "relevance",
        "chunk_relevance.more",
        "medquad-liveqa",
        2,
        "medical answers that a search found",
    ),
    ("context_relevance(unit=sentence)", "evidence", "sentence_relevance", "selqa", 1, "sections of Wikipedia"),
    ("context_relevance(unit=sentence)", "evidence", "sentence_relevance", "clapnq", 1, "passages with the answer"),
)
"""Metric, task of the model file, file of labels, source, the label that counts as yes, and the texts."""


def levels() -> str:
    """Return the table: metric, texts, the fraction that people call yes, and the mean of the embedded judge."""
    lines = ["| metric | texts (source) | people: yes | embedded judge: mean |", "| --- | --- | --- | --- |"]
    agreement: Any = BlendedModel.load().agreement  # Any: parsed JSON
    for metric, task, name, source, least, texts in _ROWS:
        labels = [label for each in _records(name) if each["source"] == source for label in _labels(each)]
        yes = sum(label >= least for label in labels)
        mean = agreement[task]["left_out"]["sources"][source]["mean_probability"]
        lines.append(
            f"| `{metric}` | {texts} ({source}) | {yes / len(labels):.2f} ({yes} of {len(labels):,}) | {mean:.2f} |"
        )
    lines += [f"| `{metric}` | {texts} (clapnq) | {value:.2f} | none asked |" for metric, texts, value in _retrieved()]
    return "\n".join(lines)


def _retrieved() -> list[tuple[str, str, float]]:
    """Return the levels of the two shipped retrievers by the passages that annotators chose."""
    found = []
    for name, texts in (("bm25", "five passages of BM25"), ("opening_overlap", "five passages of a naive search")):
        lines = files("merilo.examples").joinpath(f"retrieval/{name}.jsonl").read_text("utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        found_ids = [{each["id"] for each in row["retrieved_contexts"]} for row in rows]
        hits = [bool(ids.intersection(row["reference_context_ids"])) for ids, row in zip(found_ids, rows, strict=True)]
        found.append(("id_recall", texts, fmean(hits)))
    return found


@cache
def _records(name: str) -> list[dict[str, Any]]:  # Any: parsed JSON
    """Return the records of a file of labels that people judged."""
    with gzip.open(LABELS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [each for each in map(json.loads, file) if not each["meta"].get("constructed")]


def _labels(record: dict[str, Any]) -> list[float]:  # Any: parsed JSON
    label = record["label"]
    return list(label) if isinstance(label, list) else [label]
