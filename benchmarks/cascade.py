"""Checks the promise of a cascade: simulated judges, and the embedded judge on records with human labels.

    python benchmarks/cascade.py                     1,000 simulated runs for each judge, and the pilot's two sizes
    python benchmarks/cascade.py --runs 100          a tenth
    python benchmarks/cascade.py --labels FILE ...   the embedded judge before a judge that answers with the labels

Labels are files for `merilo judge check`. Use records that the embedded judge was not fitted on. The data of each
task are run with several seeds, so with different pilots and audits. The last judge is a script: no key is needed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from dataclasses import replace
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from figures import report

from merilo.commands.check.asking import JudgedAsLabelled, sample_of
from merilo.commands.evaluate.options import Options
from merilo.commands.evaluate.run import run_evaluation
from merilo.data.labels import Task, read_labels
from merilo.data.sample import Dataset
from merilo.judges.cascade import MAX_ERROR, cascade_of
from merilo.judges.embedded import EmbeddedJudge
from merilo.judges.scripted import ScriptedJudge
from merilo.judging.decisions import same_decision
from merilo.judging.kinds.relevance import Relevance, RelevanceVerdict
from merilo.judging.kinds.sufficiency import Sufficiency, SufficiencyLabel, SufficiencyVerdict
from merilo.judging.verdicts import Verdict

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from simulated_cascades import JUDGES, broken_promises

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.labels import Labelled
    from merilo.judges.base import Judge
    from merilo.judging.questions import Question
    from merilo.runs.run import Run

SEED: Final = 20
PILOTS: Final = (200, 1_000)
SEEDS: Final = 20
METRICS: Final[Mapping[Task, str]] = {
    Task.CHUNK_RELEVANCE: "context_relevance",
    Task.SUFFICIENCY: "context_sufficiency",
}
"""The tasks, with the metric that asks their questions."""


def simulated(runs: int) -> None:
    """Print how often the promise is broken, by judge and size of the pilot, and by a threshold chosen on the data."""
    limit = MAX_ERROR + 2 * sqrt(0.05 * 0.95 / runs)
    for judge in JUDGES:
        for pilot in PILOTS:
            found = broken_promises(judge, runs=runs, pilot=pilot, max_error=MAX_ERROR, seed=SEED)
            where = f"{judge}, pilot of {pilot:,}"
            report(f"promise broken: {where}", found.broken, at_most=limit)
            report(f"promise broken, yes and no together: {where}", found.broken_in_all, at_most=limit)
            report(f"answered by the cheap judge: {where}", found.answered)
    sought = broken_promises("at the limit", runs=runs, pilot=1_000, max_error=MAX_ERROR, seed=SEED, search=True)
    report("promise broken by looking for a threshold: at the limit, pilot of 1,000", sought.broken, at_least=limit)


class Labels:
    """Records of one task, and a judge that answers with their labels."""

    def __init__(self, task: Task, records: Sequence[Labelled]) -> None:
        self.metric = METRICS[task]
        self._verdicts: dict[bytes, Verdict] = {}
        self._samples = []
        for record in records:
            sample = sample_of(record)
            questions = JudgedAsLabelled(task).questions(sample)
            if len(questions) == 1 and questions[0].content not in self._verdicts:
                self._verdicts[questions[0].content] = _verdict(questions[0], record)
                self._samples.append(sample)
        self.judge = ScriptedJudge.by(self.verdict, version="1", answers=frozenset({Relevance, Sufficiency}))

    def __len__(self) -> int:
        return len(self._samples)

    def verdict(self, question: Question[Any]) -> Verdict:
        """Return the human label as a verdict."""
        return self._verdicts[question.content]

    async def run(self, judge: Judge, out: Path) -> Run:
        """Evaluate the records."""
        dataset = Dataset("labels", self._samples.__iter__)
        options = Options(judge=judge, metrics=[self.metric], out=out, cache=out.parent.with_suffix(".sqlite"))
        return await run_evaluation(dataset, options)


def _verdict(question: Question[Any], record: Labelled) -> Verdict:
    if isinstance(question, Relevance):
        grade = record.grade if record.grade is not None else 2 * record.yes
        return RelevanceVerdict(grade, (0,) if grade else ())
    return SufficiencyVerdict(SufficiencyLabel.SUFFICIENT if record.yes else SufficiencyLabel.INSUFFICIENT)


async def labelled(files: Sequence[Path], tasks: Sequence[Task], folder: Path) -> None:
    """Print the fraction answered by the embedded judge, its error rate, and the three means."""
    found = read_labels(files)
    for task in tasks:
        records = [each for each in found if each.task is task and each.language == "en" and not each.constructed]
        labels = Labels(task, records)
        await _shown(task.value, labels, folder / task.value)
        if task is Task.CHUNK_RELEVANCE:
            more = Labels(task, [*records, *unrelated(records)])
            await _shown(f"{task.value} with unrelated contexts", more, folder / f"{task.value}-unrelated")


def unrelated(records: Sequence[Labelled]) -> list[Labelled]:
    """Return each question again, with the context of a question from another source: grade 0 by construction."""
    source = random.Random(SEED)
    found: list[Labelled] = []
    for record in records:
        other = source.choice([each for each in records if each.source != record.source])
        found.append(replace(record, id=f"{record.id}/unrelated", texts=other.texts, grade=0, label01=0.0))
    return found


async def _shown(title: str, labels: Labels, out: Path) -> None:
    if len(labels) < PILOTS[0]:
        return
    alone = await labels.run(EmbeddedJudge(), out / "embedded")
    people = await labels.run(labels.judge, out / "labels")
    means = {name: run.metrics[labels.metric].mean or 0.0 for name, run in (("embedded", alone), ("labels", people))}
    rows = [await _once(labels, seed, out / str(seed)) for seed in range(SEEDS)]
    report(f"{title}: records", len(labels))
    report(f"{title}: mean by labels", means["labels"])
    report(f"{title}: mean by the embedded judge alone", means["embedded"])
    report(f"{title}: answered by the embedded judge, mean of {SEEDS} seeds", fmean(r["answered"] for r in rows))
    report(f"{title}: seeds in which it answers anything", sum(r["answered"] > 0 for r in rows))
    report(f"{title}: seeds whose audit failed", sum(r["failed"] for r in rows))
    report(f"{title}: most of its answers that differ", max(r["differ"] for r in rows))
    report(f"{title}: seeds in which more than 5 % differ", sum(r["differ"] > MAX_ERROR for r in rows))
    far = max(abs(r["mean"] - means["labels"]) for r in rows)
    report(f"{title}: largest distance of the mean from that by labels", far, at_most=MAX_ERROR)


async def _once(labels: Labels, seed: int, out: Path) -> dict[str, float]:
    judge = replace(cascade_of([EmbeddedJudge(), labels.judge]), seed=seed)
    run = await labels.run(judge, out)
    differ = 0  # the last judge answers as the labels do, so only the embedded judge can differ
    for record in run.records():
        for asked in run.asked(record.get("trail", [])):
            if isinstance(asked.answer, Verdict):
                differ += not same_decision(asked.answer, labels.verdict(asked.question))
    kinds = run.cascades[0]["kinds"].values()
    answered = sum(each["answered"]["embedded"] for each in kinds)
    return {
        "answered": answered / sum(each["questions"] for each in kinds),
        "differ": differ / answered if answered else 0.0,
        "failed": float(any(each["audit"] and each["audit"]["failed"] for each in kinds)),
        "mean": run.metrics[labels.metric].mean or 0.0,
    }


def main() -> None:
    """Run the requested parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--labels", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--tasks", nargs="*", type=Task, default=[*METRICS], metavar="TASK")
    chosen = parser.parse_args()
    if chosen.labels is None:
        simulated(chosen.runs)
        return
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(labelled(chosen.labels, chosen.tasks, Path(folder)))


if __name__ == "__main__":
    main()
