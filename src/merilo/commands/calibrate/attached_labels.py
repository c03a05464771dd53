"""Human labels stored with a run, and the corrected means that follow from them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.commands.calibrate.correction import correction_of, labels_among, match
from merilo.commands.calibrate.human_labels import read_people
from merilo.commands.calibrate.label_matching import combinable, draw_of, draws_of
from merilo.errors import DataError, RunError, UsageError
from merilo.results.scores import read_scores
from merilo.runs.lock import RunLock
from merilo.runs.run import LABELS, opened
from merilo.runs.seal import publish, recover
from merilo.stats.intervals import LEVEL, SEED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from merilo.commands.calibrate.human_labels import HumanLabel
    from merilo.commands.calibrate.label_matching import LabelDraw
    from merilo.results.scores import RunScores
    from merilo.runs.run import Run
    from merilo.stats.correction import Correction, Labels


def attach_labels(run: Run, labels: Sequence[HumanLabel], *, add: bool = False) -> dict[str, int]:
    """Store these labels with the run and seal them.

    They replace earlier labels of tasks for the same metric and the same pair of runs (or for this run alone). `add`:
    keep those that one estimate may use together with them, and those of other annotators for the same tasks. Return
    the number of earlier labels that remain, by the metric that their tasks were drawn for. Raises RunError.
    """
    replaced, draws, attached = {_purpose(each) for each in labels}, draws_of(labels), _attached(run)
    joined = {each for each in draws_of(attached) if add and _joins(each, draws)}
    annotators = {each.annotator for each in labels}

    def of_another(each: HumanLabel) -> bool:
        own = draw_of(each)
        return add and own in draws and not own.sequential and bool(each.label) and each.annotator not in annotators

    earlier = [
        each
        for each in attached
        if _purpose(each) not in replaced or draw_of(each) in joined or (of_another(each) and not each.ticket.settled)
    ]
    lines = [
        json.dumps(
            {
                "task": each.ticket.task,
                "label": each.label,
                "annotator": each.annotator or None,
                "ticket": each.ticket.sealed(),
            },
            ensure_ascii=False,
        )
        for each in (*earlier, *labels)
    ]
    path = run.path / LABELS
    text = ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace").decode()
    try:
        with RunLock(run.path):
            recover(run.path)
            publish(run.path, {LABELS: text})
    except OSError as error:
        raise RunError(f"Cannot store the labels with the run ({path}: {error.strerror}).") from error
    return dict(Counter(each.ticket.metric for each in earlier if not each.ticket.settled))


def attach_file(runs: Sequence[str], labels: str) -> int:
    """Store the labels of one file as `attach_files` does."""
    return attach_files(runs, [labels])


def attach_files(runs: Sequence[str], labels: Sequence[str]) -> int:
    """Store the labels of these files with each run that their tasks were drawn from; return the number of labels.

    Labels of other uniform draws for the same purpose, and of other annotators, remain. Raises DataError if a file
    cannot be read, RunError if the labels cannot be stored.
    """
    found = read_people(labels).labels
    given = sum(not each.ticket.settled for each in found)
    for path in runs if given else ():
        run = opened(path, labels=False)
        attach_labels(run, [each for each in found if each.ticket.drawn_from(run.manifest.fingerprint)], add=True)
    return given


def _purpose(label: HumanLabel) -> tuple[str, str, str]:
    """Return the metric and the runs that a label's task was drawn for."""
    ticket = label.ticket
    return (ticket.metric, ticket.fingerprint, ticket.other)


def _joins(earlier: LabelDraw, draws: Iterable[LabelDraw]) -> bool:
    """Return True if an earlier draw and one of these draws may be used as one, and are not the same draw."""
    # Labels until a decision replace others: their planned looks count the labels of one draw.
    if earlier.sequential:
        return False
    return any(earlier.seed != each.seed and combinable(earlier, each) for each in draws)


def _attached(run: Run) -> Sequence[HumanLabel]:
    """Return the labels stored with the run; empty if there are none, or if they cannot be read."""
    try:
        return () if run.labels is None else read_people([run.labels]).labels
    except DataError:
        return ()


def labels_of(run: Run) -> list[HumanLabel]:
    """Return the labels stored with the run; empty if none are stored.

    Raises RunError for labels that cannot be read, or that were drawn from other samples than the run has now.
    """
    path = run.labels
    if path is None:
        return []
    try:
        labels = read_people([path]).labels
    except DataError as error:
        raise _unusable(path, str(error)) from error
    own = [each for each in labels if each.ticket.drawn_from(run.manifest.fingerprint)]
    if not own:
        raise _unusable(path, "They were drawn from other samples than the run has now.")
    return own


@dataclass(frozen=True, slots=True)
class UsableLabels:
    """The labels stored with a run that can correct the means of its metrics."""

    labels: Mapping[str, Labels]
    """By the metric's full text; samples are positions among the scored ones."""
    notes: tuple[str, ...]
    """The reason why labels cannot be used, a sentence for each metric."""


def usable_labels(scores: RunScores, metrics: Sequence[str]) -> UsableLabels:
    """Return the labels stored with the run of these scores, for each of these metrics. Raises RunError as
    `labels_of`.
    """
    own = labels_of(scores.run)
    try:
        found = match(scores, own, metrics) if own else {}
    except UsageError:  # they are for other metrics
        found = {}
    notes = tuple(
        f"The labels for {text} are not used. {each.elsewhere}." for text, each in found.items() if each.elsewhere
    )
    labels = {text: labels_among(scores, text, each) for text, each in found.items() if not each.elsewhere}
    return UsableLabels(labels, notes)


def corrected_of(
    run: Run, *, cluster: str | None = None, level: float = LEVEL, seed: int = SEED
) -> Mapping[str, Correction]:
    """Return the correction of each metric's mean by the labels stored with the run; empty if none are stored.

    Metrics for which the labels cannot be used are left out. `cluster`: as in `read_scores`.
    Raises RunError for labels that cannot be read, or that were drawn from other samples than the run has now.
    """
    own = labels_of(run)
    if not own:
        return {}
    scores = read_scores(run, cluster=cluster)
    try:
        found = match(scores, own, tuple(scores.columns))
    except UsageError:  # they no longer fit any of its metrics
        return {}
    return {text: correction_of(scores, text, each, level=level, seed=seed) for text, each in found.items()}


def _unusable(path: Path, why: str) -> RunError:
    advice = f"Calibrate the run again with --attach, or remove {path}."
    return RunError(f"The labels stored with the run cannot be used. {why} {advice}")
