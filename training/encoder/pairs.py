"""Labelled records and rule-made ones as pairs of texts for the pair judge.

    python training/encoder/pairs.py --data DIR --out pairs.jsonl.gz

DIR is the `train` folder of labelled records. The same records and seed give the same bytes. English only: the
encoder's vocabulary is English.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from encoder.corrupt import corrupted, names_in, reworded
from encoder.mine import Passages
from encoder.windows import best_window, window_around, windows
from merilo.data.sentences import sentences
from merilo.data.short_answers import stated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SEED: Final = 20261121
SUPPORTED, CONTRADICTED, NOT_STATED, UNSUPPORTED = 0.0, 1.0, 2.0, 3.0
"""Labels of the task `supported`; the last is either of the two before it."""
_LABEL3: Final = {"entailment": SUPPORTED, "contradiction": CONTRADICTED, "neutral": NOT_STATED}
_LONG_WORDS: Final = 60
_YES: Final = 0.75


@dataclass(frozen=True, slots=True)
class Pair:
    """`a` is a question or a statement, `b` the text to compare it with; `label` as in its task."""

    task: str
    a: str
    b: str
    label: float
    source: str
    before: str = ""
    """The text of `b` before the sentence in question; for `sentence` only."""
    sentence: str = ""


def read(folder: Path, task: str) -> list[dict[str, Any]]:
    """Return the English records of one task, in file order."""
    with gzip.open(folder / f"{task}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [record for record in map(json.loads, lines) if record["lang"] == "en"]


def make(folder: Path) -> Iterator[Pair]:
    """Yield all pairs, task by task."""
    random = Random(SEED)
    asked = read(folder, "sentence_relevance")
    yield from _graded(read(folder, "chunk_relevance"), asked, random)
    yield from _sentences(asked, random)
    yield from _sufficient(read(folder, "sufficiency"), asked, random)
    yield from _supported(read(folder, "groundedness"))
    for record in read(folder, "nli"):
        yield Pair(
            "supported", record["statement"], record["context"], _LABEL3[record["meta"]["label3"]], record["source"]
        )
    passages = _passages(folder)
    yield from _made(passages, random)
    for record in read(folder, "answer_relevance"):
        first = sentences(record["response"])[:3]
        yield Pair(
            "addresses", record["query"], " ".join(first), float(record["meta"]["label01"] >= _YES), record["source"]
        )


def _graded(records: Sequence[dict[str, Any]], asked: Sequence[dict[str, Any]], random: Random) -> Iterator[Pair]:
    """Yield judged passages, and for each answered question passages of others that share its words."""
    answered: dict[str, tuple[str, str, str]] = {}
    for record in records:
        window = best_window(record["query"], sentences(record["context"]))
        label = float(record["label"]) if record["meta"].get("scale") != "0-1" else 2.0 * record["label"]
        yield Pair("grade", record["query"], window, label, record["source"])
        if label == 2:
            answered.setdefault(record["query"], (window, _group(record), record["source"]))
    for record in asked:
        if any(record["label"]) and record["source"] != "fm2":
            window = best_window(record["query"], record["sentences"])
            kept = [text for text, label in zip(record["sentences"], record["label"], strict=True) if not label]
            if record["query"] not in answered:
                answered[record["query"]] = (window, _group(record), record["source"])
                if random.random() < 0.5:
                    yield Pair("grade", record["query"], window, 2.0, record["source"])
            if kept and random.random() < 0.25:
                yield Pair("grade", record["query"], best_window(record["query"], kept), 1.0, f"{record['source']}-cut")
    pool = sorted({(window, group) for window, group, _ in answered.values()})
    index = Passages([window for window, _ in pool])
    for query, (window, group, source) in answered.items():
        near = [at for at in index.nearest(query, 12) if pool[at][1] != group and pool[at][0] != window]
        for at in random.sample(near[:6], min(1, len(near))):
            yield Pair("grade", query, pool[at][0], 0.0, f"{source}-mined")


def _sentences(records: Sequence[dict[str, Any]], random: Random) -> Iterator[Pair]:
    """Yield each evidence sentence and two others of its passage, the nearer ones first."""
    for record in records:
        texts, labels = record["sentences"], record["label"]
        if not any(labels):
            continue
        places = [n for n, label in enumerate(labels) if label][:2]
        others = [n for n, label in enumerate(labels) if not label]
        order = Passages([texts[n] for n in others]).nearest(record["query"], 3)[:1] if others else []
        rest = [others[at] for at in random.sample(range(len(others)), len(others)) if at not in order]
        for place in [*places, *(others[at] for at in order), *rest[:1]]:
            window = window_around(place, texts)
            yield Pair(
                "sentence",
                record["query"],
                " ".join(texts[n] for n in window),
                float(labels[place]),
                record["source"],
                before=" ".join(texts[n] for n in range(window[0], place)),
                sentence=texts[place],
            )


def _sufficient(records: Sequence[dict[str, Any]], asked: Sequence[dict[str, Any]], random: Random) -> Iterator[Pair]:
    for record in records:
        window = best_window(record["query"], sentences(record["context"]))
        yield Pair("sufficient", record["query"], window, float(record["meta"]["label01"] >= _YES), record["source"])
    for record in asked:
        kept = [text for text, label in zip(record["sentences"], record["label"], strict=True) if not label]
        if record["source"] == "fm2" or len(kept) == len(record["sentences"]) or random.random() < 0.6:
            continue
        yield Pair(
            "sufficient", record["query"], best_window(record["query"], record["sentences"]), 1.0, record["source"]
        )
        if kept:
            yield Pair(
                "sufficient", record["query"], best_window(record["query"], kept), 0.0, f"{record['source']}-cut"
            )


def _supported(records: Sequence[dict[str, Any]]) -> Iterator[Pair]:
    """Yield judged responses of one or two sentences; a short answer follows its question."""
    for record in records:
        response = record["response"].strip()
        if len(response.split()) > _LONG_WORDS or not response:
            continue
        statement = stated(response, record["query"], "en") or response
        label = SUPPORTED if record["meta"]["label01"] >= _YES else UNSUPPORTED
        yield Pair(
            "supported", statement, best_window(statement, sentences(record["context"])), label, record["source"]
        )


def _passages(folder: Path) -> list[tuple[str, ...]]:
    """Return the distinct passages of all tasks as sentences, in order of first appearance."""
    found: dict[str, tuple[str, ...]] = {}
    for task in ("chunk_relevance", "sufficiency", "groundedness"):
        for record in read(folder, task):
            if record["source"] != "rumeddanet":
                found.setdefault(record["context"], tuple(sentences(record["context"])))
    for record in read(folder, "sentence_relevance"):
        if record["source"] != "squad1-nqg":  # its sentences are in lower case, so the rules see no names
            found.setdefault(" ".join(record["sentences"]), tuple(record["sentences"]))
    return [texts for texts in found.values() if len(texts) > 1]


def _made(passages: Sequence[tuple[str, ...]], random: Random) -> Iterator[Pair]:
    """Yield statements from passages: unchanged, reworded, with a fact changed, and with their sentence removed."""
    names = sorted({name for texts in passages for name in names_in(" ".join(texts))})
    index = Passages([" ".join(texts) for texts in passages])
    for at, texts in enumerate(passages):
        fit = [n for n, text in enumerate(texts) if 7 <= len(text.split()) <= 45]
        for place in random.sample(fit, min(len(fit), 5)):
            text = texts[place]
            window = best_window(text, texts)
            premise = text if random.random() < 0.4 else window
            statement = reworded(text, random)
            wrong = corrupted(reworded(text, random), window, names, random)
            if wrong is not None:
                yield Pair("supported", wrong, premise, CONTRADICTED, "made-wrong")
            if random.random() < 0.7:
                yield Pair("supported", statement, premise, SUPPORTED, "made-right")
            rest = [other for n, other in enumerate(texts) if n != place]
            if random.random() < 0.2 and rest:
                yield Pair("supported", statement, best_window(text, rest), NOT_STATED, "made-cut")
            if random.random() < 0.1:
                near = [other for other in index.nearest(text, 4) if other != at]
                if near:
                    other = windows(passages[near[0]])[0]
                    yield Pair("supported", statement, other, NOT_STATED, "made-other")


def _group(record: dict[str, Any]) -> str:
    return str(record["meta"].get("article") or record["meta"].get("title") or record["query"])


def main() -> None:
    """Write the pairs and print the number for each task and source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    with gzip.GzipFile(chosen.out, "wb", compresslevel=6, mtime=0) as out:
        for pair in make(chosen.data):
            counted[pair.task][f"{pair.source} {pair.label:g}"] += 1
            out.write((json.dumps(asdict(pair), ensure_ascii=False) + "\n").encode())
    for task, sources in counted.items():
        print(task, sources.total(), dict(sources.most_common()))


if __name__ == "__main__":
    main()
