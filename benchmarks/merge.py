"""Merging 50 shards of 20,000 outcomes: CPU seconds, wall seconds and peak memory.

Each shard has 10,000 samples, two metrics with one paid question each, a reply to every question, and a ledger. The
shards are written with the classes that a run uses, but without its judge and its event loop, which would take longer.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from figures import peak_mb, report

from merilo.data.sample import Fingerprint, Sample
from merilo.engine.budget import spent_record
from merilo.judging.digests import digest_text
from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict
from merilo.metrics.base import Evidence, EvidenceTarget, Score
from merilo.metrics.registry import parse_metric
from merilo.providers.base import Reply, Usage
from merilo.results.summary import Tallies, spans_of
from merilo.runs.files import MANIFEST, OUTCOMES, STORE, SUMMARY, part_of
from merilo.runs.ledger import Charge, Charges, Ledger
from merilo.runs.manifest import Manifest
from merilo.runs.outcomes import Result
from merilo.runs.records import Exchange
from merilo.runs.run import json_text
from merilo.runs.run_metrics import scales_of
from merilo.runs.seal import publish
from merilo.runs.store import Store
from merilo.version import version

SHARDS, SAMPLES = 50, 10_000
METRICS = {text: parse_metric(text) for text in ("context_relevance", "context_sufficiency")}
TEXT = "River {} rises in the hills and turns towards the old town of mills. It reaches the sea after {} km."
CHARGE = Charge(410, 40, 0.000164)


def write_shard(path: Path, index: int, of: int, samples: int) -> None:
    """Write a finished run over one shard of this many samples."""
    path.mkdir()
    tallies, own = Tallies(spans_of(METRICS), {}, ""), Fingerprint()
    positions = range(index, of * samples + 1, of)
    with closing(Store.open(path / STORE, create=True)) as store, part_of(path / OUTCOMES).open("w") as out:
        store.expect_samples()
        ledger = Ledger(path / "ledger.jsonl", Charges())
        for position in positions:
            store._incoming = position - 1  # noqa: SLF001  reading the samples of other shards would take minutes
            sample = _sample(position)
            own.add(sample)
            store.add_new(sample)
            results = [_result(sample, text, draw, store, ledger) for draw, text in enumerate(METRICS)]
            tallies.add({each.metric: each.outcome for each in results})
            out.writelines(each.line() for each in results)
            if store.due():
                store.commit()
        ledger.close()
        store.accept_samples()
        store.note_ledger(ledger.lines)
        manifest = _manifest(own.hexdigest(), index, of, len(positions))
        rows = [each.to_fields() for each in tallies.aggregates()]
        texts = {
            MANIFEST: json_text(manifest.to_fields()),
            SUMMARY: json_text({"complete": True, "samples": len(positions), "metrics": rows}),
        }
        store.put_copy(MANIFEST, texts[MANIFEST])
        usage = {**spent_record(ledger.balance, "charged"), "cached": 0, "seconds": 1.0, "adaptations": {}}
        out.flush()
        publish(path, texts, streamed=True, usage={**usage, "stopped": None, "raise_to": None}, store=store)


def merge(folder: Path) -> None:
    """Merge the shards in a folder; print CPU seconds, wall seconds, peak MB and the number of outcomes."""
    from merilo.commands.merge.run import merge_runs

    began, cpu = time.perf_counter(), time.process_time()
    run = merge_runs(sorted(folder.glob("shard-*")), folder / "merged")
    spent = [time.process_time() - cpu, time.perf_counter() - began, peak_mb()]
    print(json.dumps([*spent, sum(each.scored for each in run.metrics.values())]))


def main() -> None:
    """Write the shards in one process, merge them in another, and print what the merge took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", type=int, default=SHARDS)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    chosen = parser.parse_args()
    size = (str(chosen.shards), str(chosen.samples))
    with tempfile.TemporaryDirectory() as folder:
        _python("write", folder, *size)
        cpu, wall, peak, outcomes = json.loads(_python("merge", folder))
    if outcomes != chosen.shards * chosen.samples * len(METRICS):
        raise SystemExit("outcomes are missing")
    title = f"merge of {chosen.shards:,} shards, {outcomes:,} outcomes"
    report(f"{title}, CPU s", cpu, at_most=60)
    report(f"{title}, wall s", wall)
    report(f"{title}, peak memory, MB", peak, at_most=500)


def _python(*words: str) -> bytes:
    return subprocess.run([sys.executable, __file__, *words], stdout=subprocess.PIPE, check=True).stdout


def _sample(number: int) -> Sample:
    context = TEXT.format(number, number)
    return Sample(id=f"s{number}", user_input=f"How long is river {number}?", retrieved_contexts=(context,))


def _result(sample: Sample, metric: str, draw: int, store: Store, ledger: Ledger) -> Result:
    """Store a question with its reply and its request; return the outcome that follows."""
    question = Relevance(str(sample.user_input), (TEXT.format(sample.id, sample.id),), draw=draw)
    verdict = RelevanceVerdict(len(sample.id) % 3, (0,) if len(sample.id) % 3 else (), reason="It says how long it is.")
    reply = Reply((verdict.to_json(),), usage=Usage(410, 40), model="m")
    key = digest_text(f"{sample.id} {draw}")
    ledger.replied(ledger.sent(CHARGE), CHARGE)
    store.keep([(key, question, verdict)], Exchange("openai:m", "A rubric.", (reply,), CHARGE.usd), seconds=0.5)
    evidence = (Evidence(EvidenceTarget.CONTEXT, 0, verdict),)
    return Result(sample.id, metric, Score(verdict.value, evidence, {"contexts": 1}), (key,), {id(verdict): key})


def _manifest(fingerprint: str, index: int, of: int, samples: int) -> Manifest:
    return Manifest(
        merilo=version(),
        data="rivers",
        fingerprint=fingerprint,
        samples=samples,
        skipped=(),
        metrics={text: metric.version for text, metric in METRICS.items()},
        left_out={},
        judges={"judge": {"name": "openai:m", "fingerprint": {"judge": "llm"}, "rates": ""}},
        splitter="1",
        scales=scales_of(METRICS),
        shard={"index": index, "of": of, "samples": of * samples, "fingerprint": "0" * 32},
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        shards = int(sys.argv[3])
        for number in range(1, shards + 1):
            write_shard(Path(sys.argv[2], f"shard-{number:03}"), number, shards, int(sys.argv[4]))
    elif sys.argv[1:2] == ["merge"]:
        merge(Path(sys.argv[2]))
    else:
        main()
