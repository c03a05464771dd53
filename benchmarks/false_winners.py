"""How often a comparison of two equally good retrievers of different kinds names a winner, in any output.

    python benchmarks/false_winners.py DATA WORK [--source clapnq] [--studies 200]

DATA holds `chunk_relevance.jsonl.gz` (and `.more`) with human grades, as `benchmarks/labels/README.md` describes. One
retriever ranks all passages of the source by shared words (BM25), the other by the encoder's cosine. Questions of each
study are drawn with weights under which both have the same expected truth: the share of retrieved passages that people
graded as relevant to the question (passages of other questions count as not relevant). Each study runs both, compares
and gates them without labels and with 40 labelled questions, and searches every output for a winner.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from encoder.mine import Passages
from labelled_run import fill_in

import merilo
from merilo.commands.calibrate.human_labels import attach_files
from merilo.commands.compare.options import ComparisonRequest
from merilo.commands.compare.record import comparison_record
from merilo.commands.compare.run import compare_runs
from merilo.commands.compare.text import comparison_markdown
from merilo.commands.gate.run import gate_run
from merilo.commands.gate.suite import Suite
from merilo.commands.gate.text import gates_record, junit_text
from merilo.commands.label.run import label_run
from merilo.commands.report.run_page import comparison_page
from merilo.judges.blended import BlendedModel
from merilo.judges.encoder.model import Embedder

METRICS = ("context_relevance", "context_precision", "context_sufficiency")
DEPTH, QUESTIONS, LABELLED = 4, 60, 40
WINNER = re.compile(r"\b(?:better|worse)\b(?!, by the judge alone)")
ALONE = re.compile(r"\b(?:better|worse), by the judge alone")


@dataclass(frozen=True)
class Pool:
    """The questions of a source, their relevant passages, and what both retrievers return."""

    questions: list[str]
    relevant: list[frozenset[str]]
    retrieved: tuple[list[list[str]], list[list[str]]]
    """By words, and by meaning."""

    @classmethod
    def of(cls, records: list[dict[str, Any]]) -> Pool:
        """Rank all passages for each question."""
        relevant: dict[str, set[str]] = {}
        for record in records:
            found = relevant.setdefault(record["query"], set())
            if record["label"] >= 1:
                found.add(record["context"])
        passages = list(dict.fromkeys(record["context"] for record in records))
        questions = [query for query, own in relevant.items() if own]
        words, meaning = Passages(passages), Embedder(BlendedModel.load().features.encodings)
        vectors, queries = meaning.vectors(passages), meaning.vectors(questions)
        by_meaning = np.argsort(-(queries @ vectors.T), axis=1, kind="stable")[:, :DEPTH]
        return cls(
            questions,
            [frozenset(relevant[query]) for query in questions],
            (
                [[passages[at] for at in words.nearest(query, DEPTH)] for query in questions],
                [[passages[at] for at in row] for row in by_meaning],
            ),
        )

    def truth(self) -> np.ndarray:
        """Return the share of relevant passages, by retriever and question."""
        return np.array(
            [
                [
                    sum(text in own for text in texts) / max(len(texts), 1)
                    for texts, own in zip(each, self.relevant, strict=True)
                ]
                for each in self.retrieved
            ]
        )

    def weights(self) -> np.ndarray:
        """Return probabilities of the questions under which both retrievers have the same expected truth."""
        words, meaning = self.truth()
        difference = meaning - words
        low, high = -50.0, 50.0
        for _ in range(200):
            middle = (low + high) / 2
            weights = np.exp(-middle * difference)
            low, high = (middle, high) if weights @ difference > 0 else (low, middle)
        return weights / weights.sum()

    def rows(self, chosen: np.ndarray, side: int) -> list[dict[str, Any]]:
        """Return the samples of a study."""
        return [
            {"id": f"q{at}", "user_input": self.questions[n], "retrieved_contexts": self.retrieved[side][n]}
            for at, n in enumerate(chosen)
        ]


def outputs(runs: list[Path]) -> dict[str, str]:
    """Return every output of a comparison and a gate of two runs, without texts of the data."""
    found = compare_runs(runs, ComparisonRequest(samples=0))
    gates = gate_run(runs[1], Suite(max_drop=0.0), baseline=runs[0])
    page = comparison_page(found)
    record = comparison_record(found)
    return {
        "text": str(found),
        "page": re.sub(r"<[^>]*>", " ", page[page.index("<header") : page.index('id="samples"')]),
        "markdown": comparison_markdown(found),
        "json": json.dumps([record["verdict"], record["conclusion"], [r["said"] for r in record["comparisons"]]]),
        "gate": str(gates) + junit_text(gates) + json.dumps(gates_record(gates)),
        "exit": "worse" if gates.verdict.value == "fail" else "",
    }


def study(pool: Pool, work: Path, number: int) -> dict[str, set[str]]:
    """Return by labelling ("alone", "labelled") which outputs name a winner, or one "by the judge alone"."""
    random = np.random.default_rng([20261126, number])
    chosen = random.choice(len(pool.questions), QUESTIONS, p=pool.weights())
    runs: list[Path] = []
    for side, name in enumerate(("words", "meaning")):
        runs.append(work / f"{number}-{name}")
        shutil.rmtree(runs[-1], ignore_errors=True)
        merilo.evaluate(pool.rows(chosen, side), metrics=METRICS, out=runs[-1])  # equal questions: from the cache
    first = _winners(outputs(runs))
    tasks = work / f"{number}.jsonl"
    tasks.unlink(missing_ok=True)
    label_run(runs[0], tasks, metric="context_relevance", samples=LABELLED, items=DEPTH, other=runs[1])
    relevant = dict(zip(pool.questions, pool.relevant, strict=True))

    def truth(task: dict[str, Any]) -> str:
        texts = {"".join(text.split()) for text in relevant[task["user_input"]]}
        return "2" if "".join(task["context"].split()) in texts else "0"

    fill_in(tasks, truth)
    attach_files([str(run) for run in runs], [str(tasks)])
    second = _winners(outputs(runs))
    for run in runs:
        shutil.rmtree(run)
    return {f"alone {name}": found for name, found in first.items()} | {
        f"labelled {name}": found for name, found in second.items()
    }


def _winners(texts: dict[str, str]) -> dict[str, set[str]]:
    clean = {name: text.replace("which is better", "") for name, text in texts.items()}
    return {
        "winner": {name for name, text in clean.items() if WINNER.search(text)},
        "winner by the judge alone": {name for name, text in clean.items() if ALONE.search(text)},
    }


def main() -> None:
    """Run the studies and print how many name a winner, by output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--source", default="clapnq")
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    texts = [
        gzip.decompress((chosen.data / name).read_bytes()).decode("utf-8")
        for name in ("chunk_relevance.jsonl.gz", "chunk_relevance.more.jsonl.gz")
    ]
    records = [json.loads(line) for text in texts for line in text.splitlines()]
    pool = Pool.of([each for each in records if each["source"] == chosen.source and each["lang"] == "en"])
    words, meaning = pool.truth()
    weights = pool.weights()
    print(f"{len(pool.questions)} questions; truth {words @ weights:.4f} by words, {meaning @ weights:.4f} by meaning")
    chosen.work.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    for number in range(chosen.first, chosen.first + chosen.studies):
        for what, found in study(pool, chosen.work, number).items():
            counts[what] += bool(found)
            counts.update(f"{what}: {name}" for name in found)
    for what, amount in sorted(counts.items()):
        print(f"{what}: {amount} of {chosen.studies}")


if __name__ == "__main__":
    main()
