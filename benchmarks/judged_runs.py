"""A run of judged samples by a scripted judge: CPU, memory and bytes of the run, and of each command that reads it.

    python benchmarks/judged_runs.py --samples 10000

Samples are real text of a fixed size: 5 contexts of 145 words, a response of 56, a reference of 38, 4.9 kB in all. The
judge answers like a model: four statements of a response, and a reason of one sentence with each verdict. It is asked
through the same door as a model, so its replies are stored. Each command runs in its own process.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from figures import peak_mb, report
from large_runs import measured
from tokens import reply_to

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from merilo.judging.questions import Question
    from merilo.providers.base import Reply, Request

METRICS: Final = ("context_relevance", "context_precision", "context_recall", "faithfulness")
CONTEXTS, CONTEXT_WORDS, RESPONSE_WORDS, REFERENCE_WORDS = 5, 145, 56, 38
MAX_BYTES: Final = 16_000
COMMANDS: Final = {
    "show": ("show", "{run}"),
    "compare": ("compare", "{run}", "{other}"),
    "gate": ("gate", "{run}", "--min", "faithfulness=0.2"),
    "report": ("report", "{run}", "-o", "{folder}/page.html"),
    "label": ("label", "{run}", "-o", "{folder}/tasks.jsonl"),
    "verify": ("runs", "verify", "{run}"),
}


def rows(samples: int) -> Iterator[dict[str, Any]]:
    """Yield samples that are all different, cut from the passages of the example data."""
    text = files("merilo.examples").joinpath("retrieval/bm25.jsonl").read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.splitlines()]
    words = " ".join(each["text"] for record in records for each in record["retrieved_contexts"]).split()
    for number in range(samples):
        luck = random.Random(number)
        yield {
            "id": str(number),
            "user_input": f"{records[number % len(records)]['user_input'].rstrip('?')} in case {number}?",
            "retrieved_contexts": [_cut(words, CONTEXT_WORDS, luck) for _ in range(CONTEXTS)],
            "response": _cut(words, RESPONSE_WORDS, luck),
            "reference": _cut(words, REFERENCE_WORDS, luck),
        }


def _cut(words: list[str], count: int, luck: random.Random) -> str:
    start = luck.randrange(len(words) - count)
    return " ".join(words[start : start + count]).rstrip(".,;") + "."


# -- the judges ----------------------------------------------------------------------------------------

_REASONS: Final = (
    "The {} sentence names the year and the place that are asked for, but not the person of case {}.",
    "Only the {} sentence speaks of it, and it leaves open what is asked for in case {}.",
    "What is asked for in the {} place is stated in full, with its date, for case {}.",
)


def _reason(text: str) -> str:
    number = sum(map(ord, text[:200]))
    return _REASONS[number % len(_REASONS)].format(("first", "second", "third")[number % 3], number)


def scripted(question: Question[Any]) -> dict[str, Any]:
    """Answer a question without any request."""
    if question.kind == "statements":
        words = " ".join(question.sentences).split()  # type: ignore[attr-defined]  # of this kind
        texts = [" ".join(words[12 * n : 12 * n + 12]) + "." for n in range(max(1, len(words) // 14))]
        return {"statements": [{"text": text, "sentence": 0} for text in texts]}
    asked = repr(question)[-400:]
    if question.kind == "relevance":
        return {"grade": 1 + sum(map(ord, asked)) % 2, "evidence": [0], "reason": _reason(asked)}
    if question.kind == "support":
        return {"label": "supported", "evidence": [0], "sentences": [(0, 0)], "reason": _reason(asked)}
    return {"noncommittal": False, "reason": _reason(asked)}


@dataclass(frozen=True)
class Model:
    """A provider in this process that answers as a model does, so that its replies are stored."""

    def fingerprint(self) -> Mapping[str, object]:
        """Return its name."""
        return {"provider": "bench", "model": "m"}

    def price_usd(self, usage: object) -> float:
        """Return that a request costs something, since a free program on this machine asks no model."""
        return 1e-6 if usage else 0.0

    @asynccontextmanager
    async def connect(self, *, known: Mapping[str, str] | None = None) -> AsyncIterator[Any]:
        """Return itself."""
        del known
        yield self

    def adaptations(self) -> Mapping[str, str]:
        """Return that nothing was adapted."""
        return {}

    def notices(self) -> tuple[str, ...]:
        """Return that there is nothing to show."""
        return ()

    async def send(self, request: Request) -> Reply:
        """Answer in the form of the request's schema."""
        from merilo.providers.base import Reply, ReplyPath, Usage

        kind, asked = request.schema_name, request.messages[-1].text
        text = json.dumps(reply_to(kind, asked, _reason(asked[-400:])))
        usage = Usage(len(asked) // 4, len(text) // 4)
        return Reply((text,), usage=usage, path=ReplyPath.JSON_SCHEMA, model="bench-model-1")


# -- measuring -----------------------------------------------------------------------------------------


def evaluate(judge: str, samples: int, data: Path, out: Path) -> None:
    """Evaluate in this process; print CPU seconds and the peak of memory in MB."""
    import merilo

    began = time.process_time()
    made = merilo.ScriptedJudge.by(scripted, version="1") if judge == "scripted" else Model()
    run = merilo.evaluate(data, metrics=list(METRICS), judge=made, out=out, storage={"cache": False})
    if any(each.scored != samples for each in run.metrics.values()):
        raise SystemExit("scores are missing")
    print(json.dumps([time.process_time() - began, peak_mb()]))


def _evaluated(judge: str, samples: int, data: Path, out: Path) -> tuple[float, float]:
    words = [sys.executable, __file__, "evaluate", judge, str(samples), str(data), str(out)]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    cpu, peak = json.loads(done.stdout.splitlines()[-1])
    return cpu, peak


def main() -> None:
    """Make two runs, and print what they and each command took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--judge", choices=("scripted", "model"), default="scripted")
    parser.add_argument("--folder", type=Path, default=None, help="keep the runs here")
    chosen = parser.parse_args()
    samples, folder = chosen.samples, chosen.folder or Path(tempfile.mkdtemp(prefix="merilo-judged-"))
    folder.mkdir(exist_ok=True)
    places = {"run": folder / "run", "other": folder / "other", "folder": folder}
    title = f"{samples:,} samples, {chosen.judge} judge"
    try:
        data = folder / "data.jsonl"
        with data.open("w", encoding="utf-8") as out:  # line by line: a child starts with the peak of its parent
            out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows(samples))
        cpu, peak = _evaluated(chosen.judge, samples, data, places["run"])
        report(f"{title}: run, CPU s", cpu)
        report(f"{title}: run, peak memory, MB", peak)
        files_ = [path for path in places["run"].iterdir() if path.is_file()]
        report(f"{title}: bytes of a sample in the data", data.stat().st_size / samples)
        for path in sorted(files_):
            report(f"{title}: bytes of a sample in {path.name}", path.stat().st_size / samples)
        whole = sum(path.stat().st_size for path in files_) / samples
        report(f"{title}: bytes of a sample", whole, at_most=MAX_BYTES)
        again, peak = _evaluated(chosen.judge, samples, data, places["run"])
        report(f"{title}: the same run repeated, CPU s", again)
        report(f"{title}: the same run repeated, peak memory, MB", peak)
        report(f"{title}: repeated / run", again / cpu, at_most=0.1)
        if not places["other"].exists():
            _evaluated(chosen.judge, samples, data, places["other"])
        for name, words in COMMANDS.items():
            took, peak, code = measured([each.format(**places) for each in words])
            report(f"{title}: {name}, CPU s", took)
            report(f"{title}: {name}, peak memory, MB", peak)
            if name == "verify":
                report(f"{title}: verify / run", took / cpu, at_most=0.3)
            if code > 1:
                raise SystemExit(f"merilo {name} ended with code {code}")
    finally:
        if chosen.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["evaluate"]:
        evaluate(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]), Path(sys.argv[5]))
    else:
        main()
