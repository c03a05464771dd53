"""The cost of conclusions from 1,000,000 outcomes: the summary of a run, and the comparison of two runs on disk.

    python benchmarks/conclude.py                  every shape of data, each in its own process
    python benchmarks/conclude.py --samples 5000   smaller

Runs are written as the engine writes them, without an evaluation: outcomes with one piece of evidence each, and a
store with the samples. Three shapes: the maximum of samples, ten metrics, and runs that retrieved 3 and 2 contexts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import cast

import numpy as np
from figures import peak_mb, report

OUTCOMES = 1_000_000
LONGEST_S = 15.0
MOST_MB = 500.0
ONE, TEN = (
    ("context_relevance",),
    (
        "context_relevance",
        "context_ranking",
        "context_recall",
        "context_sufficiency",
        "context_utilization",
        "faithfulness",
        "answer_relevancy",
        "id_precision",
        "id_recall",
        "nDCG",
    ),
)
_SHAPES = {"one": ONE, "ten": TEN, "cut": ONE}
"""Metrics by shape; the runs of `cut` retrieved different numbers of contexts."""
_CLUSTERS = 5_000


def write_run(path: Path, samples: int, shape: str, seed: int) -> None:
    """Write a sealed run of made-up scores; 1 in 50 outcomes is undefined, except if contexts are graded."""
    from merilo.data.sample import Sample
    from merilo.runs.files import MANIFEST, STORE, SUMMARY, RunLock
    from merilo.runs.manifest import Manifest
    from merilo.runs.run import write_json
    from merilo.runs.seal import publish
    from merilo.runs.store import Store

    path.mkdir(parents=True)
    store = Store.open(path / STORE, create=True)
    store.expect_samples()
    metrics, contexts = _SHAPES[shape], 3 - seed if shape == "cut" else 0
    for number in range(samples):
        texts = [f"River {number} is {each} km long. It was measured twice." for each in range(contexts)]
        store.add_new(
            Sample(
                f"s{number}",
                user_input=f"How long is river {number}?",
                retrieved_contexts=texts or None,
                metadata={"document": f"document {number % _CLUSTERS}"},
            )
        )
    store.accept_samples()
    if contexts:
        _write_graded(path, samples, contexts, seed)
    else:
        _write_outcomes(path, samples, metrics, seed)
    manifest = Manifest(
        merilo="0",
        data="made up",
        fingerprint=str(seed),
        samples=samples,
        skipped=(),
        metrics=dict.fromkeys(metrics, 1),
        left_out={},
        judges={"judge": {"name": "made up", "fingerprint": {"judge": "made up"}}},
        splitter="none",
    )
    write_json(path / MANIFEST, manifest.to_fields())
    write_json(path / SUMMARY, {"complete": True, "samples": samples, "metrics": []})
    with RunLock(path):
        publish(path, {}, usage={}, store=store)
    store.close()


def _write_outcomes(path: Path, samples: int, metrics: tuple[str, ...], seed: int) -> None:
    from merilo.judging.kinds.contexts import RelevanceVerdict
    from merilo.metrics.base import Evidence, EvidenceTarget, Score, Undefined
    from merilo.runs.files import OUTCOMES as FILE
    from merilo.runs.outcomes import Result

    source = np.random.default_rng(seed)
    values = source.random((samples, len(metrics))).round(6).tolist()
    silent = (source.random((samples, len(metrics))) < 0.02).tolist()
    evidence = (Evidence(EvidenceTarget.CONTEXT, 0, RelevanceVerdict(2, evidence=(0,), reason="It names the length.")),)
    with (path / FILE).open("w", encoding="utf-8") as lines:
        for number in range(samples):
            for place, metric in enumerate(metrics):
                scored = Score(values[number][place], evidence, {"contexts": 5})
                outcome = Undefined("nothing to score") if silent[number][place] else scored
                lines.write(Result(f"s{number}", metric, outcome, (b"0123456789abcdef",)).line())


def _write_graded(path: Path, samples: int, contexts: int, seed: int) -> None:
    from merilo.judging.kinds.contexts import RelevanceVerdict
    from merilo.metrics.base import Evidence, EvidenceTarget, Score
    from merilo.runs.files import OUTCOMES as FILE
    from merilo.runs.outcomes import Result

    verdicts = [RelevanceVerdict(grade, evidence=(0,) if grade else ()) for grade in range(3)]
    grades = np.random.default_rng(seed).integers(0, 3, (samples, contexts)).tolist()
    with (path / FILE).open("w", encoding="utf-8") as lines:
        for number, each in enumerate(grades):
            evidence = tuple(Evidence(EvidenceTarget.CONTEXT, at, verdicts[grade]) for at, grade in enumerate(each))
            scored = Score(sum(each) / 2 / contexts, evidence, {"contexts": contexts})
            lines.write(Result(f"s{number}", "context_relevance", scored, (b"0123456789abcdef",)).line())


def compare(samples: int, shape: str) -> None:
    """Write two runs and compare them, then once more by clusters; print seconds of CPU and the peaks in MB."""
    metrics = _SHAPES[shape]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("first", "second")]
        for seed, path in enumerate(paths):
            command = [sys.executable, __file__, "write", str(path), str(samples), shape, str(seed)]
            subprocess.run(command, check=True)
        found: list[float] = []
        for cluster in ("", "document"):
            started = time.process_time()
            from merilo.commands.compare.options import ComparisonRequest
            from merilo.commands.compare.run import compare_runs

            result = compare_runs(paths, ComparisonRequest(cluster=cluster))
            if result.common != samples or len(result.moved) != 20:
                raise SystemExit("samples are missing")
            str(result)
            found += [time.process_time() - started, peak_mb()]
    print(json.dumps([*found, len(metrics) * 2 * samples]))


def summary(outcomes: int) -> None:
    """Compute the summary of streaming outcomes; print seconds of CPU and the peak in MB."""
    from merilo.metrics.base import Metric, Score
    from merilo.metrics.registry import parse_metric
    from merilo.results.summary import Tally

    values = np.random.default_rng(0).random(outcomes).tolist()
    scores = [Score(value, (), {"contexts": 5, "relevant": 2}) for value in values[:1_000]]
    tally = Tally(cast("Metric", parse_metric("context_relevance")).range, "context_relevance")
    started = time.process_time()
    for place in range(outcomes):
        tally.add(scores[place % 1_000])
    if tally.aggregate().scored != outcomes:
        raise SystemExit("outcomes are missing")
    print(json.dumps([time.process_time() - started, peak_mb(), outcomes]))


def main() -> None:
    """Measure each in its own process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=OUTCOMES // 2, help="of each run, where there is one metric")
    samples = cast("int", parser.parse_args().samples)
    for name, shape, size in (
        ("one metric", "one", samples),
        ("ten metrics", "ten", samples // 10),
        ("3 and 2 contexts", "cut", samples),
    ):
        seconds, peak, by_cluster, more, outcomes = _measured("compare", str(size), shape)
        report(f"compare, {outcomes:,.0f} outcomes, {name}: CPU s", seconds, at_most=LONGEST_S)
        report(f"compare, {outcomes:,.0f} outcomes, {name}: peak MB", peak, at_most=MOST_MB)
        report(f"compare by {_CLUSTERS:,} clusters, {name}: CPU s", by_cluster, at_most=LONGEST_S)
        report(f"compare by {_CLUSTERS:,} clusters, {name}: peak MB", more, at_most=MOST_MB)
    seconds, peak, outcomes = _measured("summary", str(2 * samples))
    report(f"summary, {outcomes:,.0f} outcomes: CPU s", seconds, at_most=LONGEST_S)
    report(f"summary, {outcomes:,.0f} outcomes: peak MB", peak, at_most=MOST_MB)


def _measured(*arguments: str) -> list[float]:
    done = subprocess.run([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, check=True)
    found: list[float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", path, samples, shape, seed]:
            write_run(Path(path), int(samples), shape, int(seed))
        case ["compare", samples, shape]:
            compare(int(samples), shape)
        case ["summary", outcomes]:
            summary(int(outcomes))
        case _:
            main()
