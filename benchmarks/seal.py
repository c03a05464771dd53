"""What the seal of a run costs a reader, and what it notices: random edits of every file of a run.

    python benchmarks/seal.py                  the check at 100,000 outcomes, and 100 edits of each kind
    python benchmarks/seal.py --edits 1000     more edits

An edit changes one byte of a file, or one value of its JSON. Then one of the commands that read a run must refuse it
with exit code 2, or print what it printed before.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from conclude import ONE, TEN, write_run
from figures import report

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

OUTCOMES = 100_000
LONGEST_S = 0.1
REPEATS = 5


def check_s(folder: Path, metrics: tuple[str, ...]) -> tuple[float, float]:
    """Return the least CPU time of some checks of a run, in seconds, and the size of its outcomes in MB."""
    from merilo.runs.run import Run
    from merilo.runs.seal import inspect_seal, publish
    from merilo.runs.store import Store

    path = folder / f"{len(metrics)}"
    write_run(path, OUTCOMES // len(metrics), metrics, 1)
    store = Store.open(path / "store.sqlite")
    publish(path, {}, usage={}, store=store)
    store.close()
    if not Run.open(path).sealed:
        raise SystemExit("the run has no seal")
    times: list[float] = []
    for _ in range(REPEATS):
        began = time.process_time()
        found = inspect_seal(path)
        times.append(time.process_time() - began)
        if found.broken:
            raise SystemExit("a whole run is broken")
    return min(times), (path / "outcomes.jsonl").stat().st_size / 1e6


def edits(folder: Path, count: int) -> dict[str, int]:
    """Count how many random edits of each kind and file are refused, do no harm, or are missed."""
    from edits import byte_edits, printed, readers, value_edits
    from labelled_run import by_grade, contexts_rows, fill_in, judged_run

    from merilo.concluding.calibrating import calibrate_run
    from merilo.concluding.labelling import label_run

    rows = [row | {"metadata": {"doc": str(place % 6)}} for place, row in enumerate(contexts_rows(24))]
    run = judged_run(folder / "run", rows, ["context_relevance"])
    judged_run(folder / "other", rows, ["context_relevance"])
    label_run(run, folder / "labels.jsonl", samples=22)
    calibrate_run(run, fill_in(folder / "labels.jsonl", by_grade), attach=True)
    copy = folder / "copy"
    commands = readers(copy, folder / "other", folder, sample="s3", metric="context_relevance")

    def outcome(name: str) -> tuple[int, str]:
        for written in ("tasks.jsonl", "run.html"):
            (folder / written).unlink(missing_ok=True)
        code, text = printed(*commands[name])
        return code, re.sub(r"[0-9.]+ (s|ms)\b|\"seconds\": [0-9.e-]+", "", text)

    def fresh() -> None:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(run.path, copy)

    fresh()
    before = {name: outcome(name) for name in commands}
    source = random.Random(1)
    seen = {"edits": 0, "refused": 0, "harmless": 0, "missed": 0}
    for file in ("manifest.json", "outcomes.jsonl", "summary.json", "usage.json", "labels.jsonl", "seal.json"):
        content = (run.path / file).read_bytes()
        changed = [*byte_edits(content, count, 1)]
        changed += [text.encode("utf-8", "replace") for text in value_edits(content.decode(), count, 1)]
        for edited in changed:
            if edited != content:
                fresh()
                (copy / file).write_bytes(edited)
                name = source.choice(sorted(commands))
                _count(seen, outcome(name), before[name])
    content = (run.path / "store.sqlite").read_bytes()
    for edited in byte_edits(content, 2 * count, 1):
        fresh()
        (copy / "store.sqlite").write_bytes(edited)
        name = source.choice(sorted(commands))
        _count(seen, outcome(name), before[name])
    return seen


def _count(seen: dict[str, int], found: tuple[int, str], before: tuple[int, str]) -> None:
    seen["edits"] += 1
    seen["refused" if found[0] == 2 else "harmless" if found == before else "missed"] += 1


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=100)
    count: int = parser.parse_args().edits
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stderr(io.StringIO()):
        for metrics in (ONE, TEN):
            seconds, size = check_s(Path(name), metrics)
            shape = f"{OUTCOMES:,} outcomes of {len(metrics)} metric{'s' * (len(metrics) > 1)}"
            report(f"check the seal, {shape} ({size:.0f} MB), CPU s", seconds, at_most=LONGEST_S)
        seen = edits(Path(name), count)
        report("random edits of a run's files", seen["edits"])
        report("refused with exit code 2", seen["refused"])
        report("harmless: the same output", seen["harmless"])
        report("missed", seen["missed"], at_most=0)


if __name__ == "__main__":
    main()
