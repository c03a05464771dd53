"""The report on 10,000 samples with 50,000 contexts: size, CPU and peak memory, and the time to show and filter it.

Runs each step in its own process. `ARGS="report.py 100000"` measures a run of which only the worst samples are shown;
it has one metric, because judging takes longer than the report. The times in a browser need a Chromium, as the tests.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from figures import peak_mb, report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from merilo.judging.questions import Question

HERE: Final = Path(__file__)
SAMPLES: Final = 10_000
PASSAGES: Final = 20_000
METRICS: Final = ("context_sufficiency", "faithfulness", "context_relevance")
PAINT: Final = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
FILTER: Final = """(() => {{
  const pick = document.querySelector('.tools select'), began = performance.now();
  pick.value = '{0}'; pick.dispatchEvent(new Event('change')); document.body.getBoundingClientRect();
  return performance.now() - began;
}})()"""


def rows(samples: int) -> Iterator[dict[str, Any]]:
    """Yield samples with two statements and five passages of random words, which compress worse than prose."""
    words = random.Random(1)
    vocabulary = [
        "".join(words.choices("abcdefghijklmnoprstuvwxyz", k=words.randint(3, 9))).capitalize() for _ in range(9_000)
    ]

    def sentence() -> str:
        return " ".join(words.choices(vocabulary, k=14)).capitalize() + "."

    passages = [" ".join(sentence() for _ in range(4)) for _ in range(PASSAGES)]
    for number in range(samples):
        chosen = words.sample(range(PASSAGES), 5)
        yield {
            "id": f"sample-{number}",
            "user_input": f"What is {number} {' '.join(words.choices(vocabulary, k=8))}?",
            "retrieved_contexts": [{"id": f"p{each}", "text": passages[each]} for each in chosen],
            "response": f"{sentence()} {sentence()}",
            "reference": sentence(),
        }


def judge(question: Question[Any]) -> dict[str, Any]:
    """Answer by the length of the texts, so that every cell of the fault table has samples."""
    match question.kind:
        case "sufficiency":
            return {"label": "sufficient" if len(question.contexts[0]) % 3 else "insufficient"}
        case "noncommittal":
            return {"noncommittal": len(question.response) % 7 == 0}
        case "statements":
            return {"statements": [{"text": text, "sentence": at} for at, text in enumerate(question.sentences)]}
        case "support":
            good = len(question.statement) % 3 > 0
            return {"label": "supported" if good else "not_stated", "sentences": [[0, 1]], "reason": "It says so."}
        case _:
            return {"grade": len(question.sentences[0]) % 3, "evidence": [0], "reason": "It says so."}


def evaluate(samples: int, out: Path) -> None:
    """Write a run of this number of samples."""
    import merilo

    metrics = METRICS if samples <= SAMPLES else METRICS[:1]
    merilo.evaluate(
        rows(samples),
        metrics=metrics,
        judge=merilo.ScriptedJudge.by(judge, version="1"),
        out=out,
        storage={"cache": False},
    )


def build(samples: int, run: Path, page: Path) -> None:
    """Write the report, and print what it took."""
    from merilo.commands.report.run_page import write_report

    write_report([str(run)], page)
    name = f"report on {samples:,} samples"
    report(f"{name}, file, MB", page.stat().st_size / 1e6, at_most=25)
    report(f"{name}, CPU s", time.process_time())
    report(f"{name}, peak memory, MB", peak_mb(), at_most=600)


def browse(samples: int, page: Path) -> None:
    """Print the time to the first paint and of a filter, each the median of five."""
    sys.path.insert(0, str(HERE.parent.parent / "tests"))
    from browser import Browser, chromium

    program = chromium()
    if program is None:
        print("no Chromium: first paint and filter are not measured", file=sys.stderr)
        return
    with Browser(program) as found:
        found.size(1440)
        paints: list[float] = []
        for _ in range(5):
            found.open(page)
            paints.append(found.run(PAINT))
        filters = [found.run(FILTER.format(value)) for value in (1, 0, -2, 1, -1)]
    name = f"report on {samples:,} samples"
    report(f"{name}, first paint, ms", median(paints), at_most=500)
    report(f"{name}, filter, ms", median(filters), at_most=100)


def main() -> None:
    """Run the steps for the number of samples named on the command line."""
    given = sys.argv[1:] or [str(SAMPLES)]
    samples = int(given[0])
    if len(given) > 1:
        step, run, page = given[1], Path(given[2]), Path(given[3])
        evaluate(samples, run) if step == "evaluate" else build(samples, run, page)
        return
    with tempfile.TemporaryDirectory() as folder:
        run, page = Path(folder, "run"), Path(folder, "report.html")
        for step in ("evaluate", "build"):
            subprocess.run([sys.executable, HERE, str(samples), step, run, page], check=True)
        browse(samples, page)


if __name__ == "__main__":
    main()
