"""The pairing of a run with its baseline, sample by sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.errors import DataError, UsageError
from merilo.rendering.wording import count
from merilo.results.comparability import not_comparable, score_affecting_differences
from merilo.results.contents import MAX_OTHER, equal_inputs, equal_questions
from merilo.results.scores import read_scores
from merilo.stats.column import align

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.results.scores import RunScores
    from merilo.runs.run import Run

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class PairedRuns:
    """Two runs over their common samples, in one order."""

    base: RunScores
    new: RunScores
    notes: tuple[str, ...]
    other_questions: int
    """Number of common ids that name other questions; they are left out."""
    base_only: int
    new_only: int
    """Number of samples that only one of the runs has."""
    equal_inputs: frozenset[str]
    """The metrics whose inputs are equal in both runs."""


def paired_runs(base: Run, new: RunScores, metrics: Sequence[str], *, across_data: bool) -> PairedRuns:
    """Return the runs over the samples that both have, in the order of the new one."""
    lacking = [text for text in metrics if text not in base.manifest.metrics]
    if lacking:
        raise UsageError(f"The baseline {base.path} has no metric {', '.join(lacking)}. Evaluate it there too.")
    differences = score_affecting_differences(base.manifest, new.run.manifest, metrics=metrics)
    if differences:
        raise not_comparable(f"{new.run.path} (here) and its baseline {base.path} (there)", differences)
    if base.manifest.until is not None:
        raise UsageError(
            f"The baseline {base.path} could stop early (--until), so not all its samples have scores. "
            "Evaluate all of them and use that run."
        )
    before = read_scores(base, metrics=metrics, cluster="")
    found = align(new.ids, before.ids)
    second, first, only_new, only_base = found.first, found.second, found.only_first, found.only_second
    if not first:
        raise DataError(
            f"{new.run.path} and {base.path} have no sample in common (ids such as {new.ids[0]!r} and "
            f"{before.ids[0]!r}). Samples are paired by id: give each an id that stays the same."
        )
    part = new.run.manifest.until is not None  # a run that stopped early has only some of the samples
    if len(only_base) > MAX_OTHER * len(before.ids) and not part and not across_data:
        raise UsageError(
            f"{len(only_base):,} of the {len(before.ids):,} samples of the baseline {base.path} are not in "
            f"{new.run.path}, such as {before.ids[only_base[0]]!r}. More than one in ten are missing, so the runs are "
            f"not comparable. Give each sample an id that stays the same, and run all samples. To compare only the "
            f"{count(len(first), 'sample')} that both runs have, use --across-data."
        )
    pair = (before.at(first), new.at(second))
    questions = equal_questions(pair, [str(base.path), str(new.run.path)], metrics, across_data=across_data)
    pair = (pair[0].at(questions.positions), pair[1].at(questions.positions))
    notes = [*_left(new, only_new, "the run"), *_left(before, only_base, "the baseline"), *questions.notes]
    return PairedRuns(
        *pair,
        notes=tuple(notes),
        other_questions=questions.other,
        base_only=len(only_base),
        new_only=len(only_new),
        equal_inputs=equal_inputs(*pair, metrics),
    )


def _left(scores: RunScores, places: Sequence[int], where: str) -> list[str]:
    if not places:
        return []
    shown = ", ".join(scores.ids[place] for place in places[:_SHOWN])
    more = f" and {len(places) - _SHOWN:,} more" if len(places) > _SHOWN else ""
    one = len(places) == 1
    text = f"{count(len(places), 'sample')} {'is' if one else 'are'} in {where} only, and {'is' if one else 'are'} not"
    return [f"{text} compared: {shown}{more}."]
