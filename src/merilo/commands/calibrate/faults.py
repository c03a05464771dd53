"""The faults of a run's samples, their shares corrected by the human labels stored with the run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from merilo.commands.calibrate.correction import correction_of, match
from merilo.commands.calibrate.people import readable_labels
from merilo.errors import UsageError
from merilo.metrics.answering import Answering, Category
from merilo.results.faults import CANNOT_TELL, Faults, judged_metrics, sample_faults
from merilo.results.scores import read_scores
from merilo.stats.column import Column, Missing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.results.scores import RunScores
    from merilo.runs.run import Run
    from merilo.stats.means import MeanEstimate

_UNIT = (0.0, 1.0)


def faults_of(run: Run, *, judge_only: bool = False) -> Faults:
    """Return the faults of a run. `judge_only`: leave human labels out.

    Labels correct the shares if the run has the metric `answering` and whole samples are labelled. Raises RunError for
    damaged outcomes.
    """
    samples = dict(sample_faults(run))
    if not samples:
        return Faults({})
    judged = judged_metrics(run.manifest.metrics)
    scores = read_scores(run, metrics=judged[:1])
    joint = next((text for text in judged if text.partition("(")[0] == Answering.name), None)
    corrected = {} if joint is None or judge_only else _corrected(scores, samples, joint)
    return Faults(samples, scores.clusters, corrected)


def _corrected(scores: RunScores, samples: Mapping[str, str], joint: str) -> dict[str, MeanEstimate]:
    """Return the corrected share of each category; empty unless labels correct all."""
    labels = readable_labels(scores.run)
    if not labels:
        return {}
    texts = {f"{Answering.name}.{key}{joint[len(Answering.name) :]}": str(key) for key in Category}
    columns = {
        text: Column.of(
            (Missing.UNDEFINED if each == CANNOT_TELL else float(each == key) for each in samples.values()), _UNIT
        )
        for text, key in texts.items()
    }
    derived = replace(scores, columns={**scores.columns, **columns})
    try:
        found = match(derived, labels, tuple(texts))
    except UsageError:  # they are for other metrics
        return {}
    estimates = {texts[text]: correction_of(derived, text, each).estimate for text, each in found.items()}
    known = {key: estimate for key, estimate in estimates.items() if estimate is not None}
    return known if len(known) == len(Category) else {}
