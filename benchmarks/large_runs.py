"""Reading large runs: CPU seconds and peak memory of each command, for a run of N outcomes (`--outcomes N`).

The run has metrics that need no judge (`--metrics N`), so that it is written fast and `verify` computes every outcome
again. It is written with the classes that a run uses, but without the event loop. Each
command runs in its own process. `--folder` keeps the runs, so that a second call measures without writing them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from figures import peak_mb, report

from merilo.data.sample import Fingerprint, Sample
from merilo.engine.budget import spent_record
from merilo.engine.plan_run import PlanRun
from merilo.metrics.registry import parse_metric
from merilo.results.summary import Tallies, spans_of
from merilo.runs.files import MANIFEST, OUTCOMES, STORE, SUMMARY, part_of
from merilo.runs.ledger import Balance
from merilo.runs.manifest import Manifest
from merilo.runs.outcomes import Result
from merilo.runs.run import json_text
from merilo.runs.run_metrics import scales_of
from merilo.runs.seal import publish
from merilo.runs.store import Store
from merilo.version import version

if TYPE_CHECKING:
    from merilo.metrics.base import Metric, Outcome

METRICS = {
    text: parse_metric(text)
    for text in ("precision@5", "recall@5", "reciprocal_rank", "average_precision", "nDCG@5", "hit_rate@5")
}
PATTERNS: Final = 997
"""Different lists of ids, so that outcomes differ but each list is evaluated once."""
LIMIT_MB: Final = 1_000
COMMANDS: Final = {
    "show": ("show", "{run}"),
    "show --worst": ("show", "{run}", "--worst", "5"),
    "show --sample": ("show", "{run}", "--sample", "s7"),
    "report": ("report", "{run}", "-o", "{folder}/page.html"),
    "report of two": ("report", "{run}", "{other}", "-o", "{folder}/two.html"),
    "gate": ("gate", "{run}", "--min", "recall@5=0.2"),
    "compare": ("compare", "{run}", "{other}"),
    "verify": ("runs", "verify", "{run}"),
    "export": ("export", "{run}", "-o", "{folder}/table.jsonl"),
}


def write(path: Path, samples: int, metrics: int, shift: int, stored: int) -> None:
    """Write a finished run over this many samples. `shift`: another one gives other ids to retrieve.

    `stored`: only the first samples are put in the store, for a run that is written in a third of the time. Only `show`
    and `report` can read it, whose worst samples are among them.
    """
    chosen = dict(islice(METRICS.items(), metrics))
    path.mkdir(parents=True)
    tallies, own = Tallies(spans_of(chosen), {}, ""), Fingerprint()
    known: dict[int, dict[str, Outcome]] = {}
    with closing(Store.open(path / STORE, create=True)) as store, part_of(path / OUTCOMES).open("w") as out:
        store.expect_samples()
        for number in range(samples):
            pattern, name = number % PATTERNS, f"s{number}"
            if number < stored:
                sample = _sample(number, shift)
                own.add(sample)
                store.add_new(sample)
            if pattern not in known:
                plans = [PlanRun(metric, text, sample).start() for text, metric in chosen.items()]
                known[pattern] = {plan.text: plan.result().outcome for plan in plans}
            outcomes = known[pattern]
            tallies.add(outcomes)
            out.writelines(Result(name, text, outcome).line() for text, outcome in outcomes.items())
            if store.due():
                store.commit()
        store.accept_samples()
        rows = [each.to_fields() for each in tallies.aggregates()]
        texts = {
            MANIFEST: json_text(_manifest(own.hexdigest(), samples, chosen).to_fields()),
            SUMMARY: json_text({"complete": True, "samples": samples, "metrics": rows}),
        }
        store.put_copy(MANIFEST, texts[MANIFEST])
        out.flush()
        usage = {**spent_record(Balance(store.charges()), "charged"), "cached": 0, "seconds": 1.0, "adaptations": {}}
        publish(path, texts, streamed=True, usage={**usage, "stopped": None, "raise_to": None}, store=store)


def _sample(number: int, shift: int) -> Sample:
    pattern = number % PATTERNS
    ids = tuple(f"d{(pattern * 7 + place + shift) % 311}" for place in range(5))
    relevant = (f"d{(pattern * 7 + pattern % 8) % 311}", f"d{pattern % 311}")
    question = f"How long is river {number}?"
    return Sample(id=f"s{number}", user_input=question, retrieved_context_ids=ids, reference_context_ids=relevant)


def _manifest(fingerprint: str, samples: int, metrics: dict[str, Metric]) -> Manifest:
    return Manifest(
        merilo=version(),
        data="rivers",
        fingerprint=fingerprint,
        samples=samples,
        skipped=(),
        metrics={text: metric.version for text, metric in metrics.items()},
        left_out={},
        judges={},
        splitter="1",
        scales=scales_of(metrics),
    )


def measured(words: list[str]) -> tuple[float, float, int]:
    """Run a command of merilo in its own process; return CPU seconds, peak MB and its exit code."""
    done = subprocess.run([sys.executable, __file__, "command", *words], stdout=subprocess.PIPE, check=True)
    cpu, peak, code = json.loads(done.stdout.splitlines()[-1])
    return cpu, peak, code


def command(words: list[str]) -> None:
    """Run a command of merilo in this process; print CPU seconds, peak MB and its exit code."""
    from merilo.cli import outcome

    code = int(outcome(words))
    print(json.dumps([time.process_time(), peak_mb(), code]))


def main() -> None:
    """Write the runs unless they are there, and print what each command took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outcomes", type=int, default=1_000_000)
    parser.add_argument("--metrics", type=int, default=2, choices=range(2, len(METRICS) + 1))
    parser.add_argument("--stored", type=int, default=0, help="samples in the store, at least 10,000; 0: all")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--only", nargs="*", default=[*COMMANDS])
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="merilo-large-"))
    samples = chosen.outcomes // chosen.metrics
    places = {"run": folder / "run", "other": folder / "other", "folder": folder}
    try:
        for shift, name in enumerate(("run", "other")):
            if not places[name].exists():
                size = map(str, (samples, chosen.metrics, shift, min(samples, chosen.stored or samples)))
                subprocess.run([sys.executable, __file__, "write", places[name], *size], check=True)
        for name in chosen.only:
            cpu, peak, code = measured([each.format(**places) for each in COMMANDS[name]])
            title = f"{name}, {chosen.outcomes:,} outcomes, {samples:,} samples"
            report(f"{title}, CPU s", round(cpu, 1))
            report(f"{title}, peak memory, MB", round(peak), at_most=LIMIT_MB)
            if code > (name != "verify"):
                raise SystemExit(f"merilo {name} ended with code {code}")
    finally:
        if chosen.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write(Path(sys.argv[2]), *map(int, sys.argv[3:7]))
    elif sys.argv[1:2] == ["command"]:
        command(sys.argv[2:])
    else:
        main()
