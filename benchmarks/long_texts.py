"""The embedded judge on texts of up to its maximum: CPU and memory of a run, and how soon it can be stopped.

Each text is one context of a run in a separate process. English is the passages of the example data, repeated with
running numbers; the other texts are meant to be hard to read.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures import peak_mb, report

from merilo.judges.embedded_provider import MAX_CONTEXT, MAX_CONTEXTS, MAX_RESPONSE

if TYPE_CHECKING:
    from collections.abc import Callable

ASKED = "When was the first tower built, and by whom?"
STATED = "The first tower was built in 1889. Gustave Eiffel designed it."
MILLION = 1_000_000
METRICS = ("context_relevance", "context_sufficiency", "faithfulness", "context_precision(against=reference)")


def english(length: int) -> str:
    """Return the passages of the example data, no sentence twice."""
    text = files("merilo.examples").joinpath("retrieval/bm25.jsonl").read_text(encoding="utf-8")
    contexts = [each["text"] for line in text.splitlines() for each in json.loads(line)["retrieved_contexts"]]
    passages = list(dict.fromkeys(contexts))
    pieces, total = list[str](), 0
    while total < length:
        number = len(pieces)
        pieces.append(passages[number % len(passages)].replace(". ", f" ({number}). ") + "\n\n")
        total += len(pieces[-1])
    return "".join(pieces)[:length]


def repeated(piece: str) -> Callable[[int], str]:
    """Return a text made of one piece."""
    return lambda length: (piece * (length // len(piece) + 1))[:length]


def numbered(shape: str) -> Callable[[int], str]:
    """Return a text made of a piece with running numbers."""
    return lambda length: "".join(shape.format(number) for number in range(length // 4))[:length]


TEXTS: dict[str, Callable[[int], str]] = {
    "English": english,
    "a sentence of two characters": repeated("a."),
    "sentences without words between": repeated("a.\n\n"),
    "list items": repeated("- a\n"),
    "different short sentences": numbered("w{:x}. "),
    "different words": numbered("w{:x} "),
    "one word": repeated("x"),
    "digits": repeated("1234567890"),
    "punctuation": repeated("?!.,;:"),
    "the question": repeated(f"{ASKED} "),
    "its words": repeated("when was the first "),
    "Chinese": repeated("東京は日本の首都"),
    "Chinese sentences": repeated("東。"),
    "Thai": repeated("ภาษาไทยง่ายมาก"),
    "Arabic ligatures": repeated("ﷺ"),
    "emoji": repeated("👍"),
    "zero-width characters": repeated("\u200b"),
    "letters between zero-width characters": repeated("a\u200b"),
    "combining characters": repeated("a\u0301"),
    "open quotation marks": repeated('"a b '),
    "table rows": repeated("|a|\n"),
    "code fences": repeated("```\n~~~~\n"),
    "white space": lambda length: " " * (length - 1) + "a",
}
STOPPED = ("English", "list items", "different short sentences", "Chinese sentences", "Arabic ligatures")


def row(contexts: list[str], response: str = STATED) -> dict[str, Any]:
    """Return one record about these contexts."""
    return {"id": "1", "user_input": ASKED, "retrieved_contexts": contexts, "response": response, "reference": STATED}


def row_of(name: str, length: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the record of this name, and the metrics to evaluate."""
    if name == "contexts":
        text, each = english(MAX_CONTEXT), MAX_CONTEXT // MAX_CONTEXTS
        return row([text[start : start + each] for start in range(0, MAX_CONTEXT, each)]), METRICS
    if name == "statements":
        return row([STATED], numbered("It is {}. ")(MAX_RESPONSE)), ("faithfulness",)
    if name == "asked":
        words = english(2 * MAX_RESPONSE)[MAX_RESPONSE:].translate({ord(mark): "," for mark in ".!?:;\n"})
        return row([english(length)], words[:19_000]), METRICS
    return row([TEXTS[name](length)]), METRICS


def evaluate(name: str, length: int) -> None:
    """Evaluate one record in this process; print CPU seconds, peak memory and the metrics' outcomes."""
    import merilo

    merilo.evaluate(
        [row(["A tower."])], metrics=["context_relevance"], storage={"cache": False}, out=tempfile.mkdtemp()
    )
    record, metrics = row_of(name, length)
    figures: dict[str, float] = {}
    for metric in metrics:
        began = time.process_time()
        run = merilo.evaluate([record], metrics=[metric], storage={"cache": False}, out=tempfile.mkdtemp())
        figures[metric] = time.process_time() - began
        if sum(aggregate.failed for aggregate in run.metrics.values()):
            raise SystemExit(f"{metric} failed")
    print(json.dumps({"cpu_s": figures, "peak_mb": peak_mb()}))


def measured(name: str, length: int) -> dict[str, Any]:
    """Return what `evaluate` prints, from a separate process."""
    command = [sys.executable, __file__, name, str(length)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(name, length, found, file=sys.stderr, flush=True)
    return found


def to_stop(name: str, after_s: float, *, limit: bool) -> tuple[float, float]:
    """Return the seconds, by the clock and of CPU, from Ctrl-C or the end of --max-seconds until the command has ended.

    0 if it had ended before.
    """
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder, "rows.jsonl"), Path(folder, "run")
        record = row([TEXTS[name](MAX_CONTEXT)])
        data.write_text(json.dumps(record) + "\n", encoding="utf-8")
        command = [str(Path(sys.executable).with_name("merilo")), "run", str(data), "--out", str(out), "--no-cache"]
        command += ["--metrics", ",".join(METRICS), *(["--max-seconds", str(after_s)] if limit else [])]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not Path(out, "manifest.json").exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(after_s)
        if process.poll() is not None:
            return 0.0, 0.0
        began, cpu_s = time.perf_counter(), _cpu_s(process.pid)
        if not limit:
            process.send_signal(signal.SIGINT)
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0  # it was waited for
        return time.perf_counter() - began, used.ru_utime + used.ru_stime - cpu_s


def _cpu_s(process: int) -> float:
    """Return the CPU seconds that a running process has used (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the figures."""
    for name in ("English", "asked"):
        figures = measured(name, MILLION)["cpu_s"]
        label = "1 MB of English" if name == "English" else "the same, a statement of 19,000 characters"
        for metric in METRICS:
            report(f"{label}: {metric.partition('(')[0]}, CPU s", figures[metric], at_most=60)
    found = {name: measured(name, MAX_CONTEXT) for name in (*TEXTS, "contexts", "statements")}
    slowest = max(found, key=lambda name: max(found[name]["cpu_s"].values()))
    largest = max(found, key=lambda name: found[name]["peak_mb"])
    report(f"1,000,000 characters, slowest ({slowest}), CPU s", max(found[slowest]["cpu_s"].values()), at_most=120)
    report(f"1,000,000 characters, largest ({largest}), MB", found[largest]["peak_mb"], at_most=600)
    moments = (0.5, 1.5, 2.5, 3.5)
    for limit, label in ((False, "Ctrl-C"), (True, "--max-seconds")):
        seconds = [to_stop(name, moment, limit=limit) for name in STOPPED for moment in moments]
        called = f"1,000,000 characters: stopped after {label}, largest of {len(seconds)}"
        report(f"{called}, CPU s", max(cpu_s for _, cpu_s in seconds), at_most=1.0)
        report(f"{called}, s by the clock", max(clock_s for clock_s, _ in seconds))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        evaluate(sys.argv[1], int(sys.argv[2]))
    else:
        main()
