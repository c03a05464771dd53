"""What the labels stored with a run say about its judge: the levels that they set, and whether it is of use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from merilo.commands.calibrate.people import labels_by_sample, readable_labels
from merilo.results.levels import by_levels, judge_sentence, labelled_kinds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from merilo.commands.calibrate.human_labels import HumanLabel
    from merilo.runs.run import Run


def levelled(run: Run) -> Run:
    """Return the run with its verdicts by the levels that its labels set; the run itself if they set none."""
    found = labelled_kinds(run, labels_by_sample(readable_labels(run)))
    return by_levels(run, {kind: each.level for kind, each in found.items() if each.level is not None})


def sentences_of(run: Run, labels: Iterable[HumanLabel], *, levels: bool = True) -> list[str]:
    """Return, for each kind of question, one sentence on the use of the run's judge; none if it is usable.

    `levels`: False for a page that does not use the levels.
    """
    found = labelled_kinds(run, labels_by_sample(labels))
    said = {kind: judge_sentence(each.agreement, each.level if levels else None) for kind, each in found.items()}
    return [f"{kind}: {sentence}" for kind, sentence in said.items() if sentence]


def judge_sentences(*runs: Run, levels: bool = True) -> list[str]:
    """Return the sentences of `sentences_of` on the labels stored with these runs, each once."""
    own = (sentences_of(run, readable_labels(run), levels=levels) for run in runs if run.labels is not None)
    return list(dict.fromkeys(sentence for sentences in own for sentence in sentences))
