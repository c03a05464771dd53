"""The pairing of a run with its baseline, sample by sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.commands.compare.matching import in_common
from merilo.errors import UsageError
from merilo.rendering.wording import count
from merilo.results.comparability import not_comparable, score_affecting_differences
from merilo.results.contents import MAX_OTHER, equal_inputs, equal_questions
from merilo.results.scores import read_scores

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
    names = [str(new.run.path), str(base.path)]
    (second, first), (only_new, only_base) = in_common((new, before), names)
    part = new.run.manifest.until is not None  # a run that stopped early has only some of the samples
    if len(only_base) > MAX_OTHER * len(before.ids) and not part and not across_data:
        raise UsageError(
            f"{len(only_base):,} of the {len(before.ids):,} samples of the baseline {base.path} are not in "
            f"{new.run.path}, such as {only_base[0]!r}. More than one in ten are missing, so the runs are "
            f"not comparable. Give each sample an id that stays the same, and run all samples. To compare only the "
            f"{count(len(first.ids), 'sample')} that both runs have, use --across-data."
        )
    questions = equal_questions((first, second), names[::-1], metrics, across_data=across_data)
    first, second = (each.at(questions.positions) for each in (first, second))
    return PairedRuns(
        first,
        second,
        notes=(*_left(only_new, "the run"), *_left(only_base, "the baseline"), *questions.notes),
        other_questions=questions.other,
        base_only=len(only_base),
        new_only=len(only_new),
        equal_inputs=equal_inputs(first, second, metrics),
    )


def _left(ids: Sequence[str], where: str) -> list[str]:
    if not ids:
        return []
    more = f" and {len(ids) - _SHOWN:,} more" if len(ids) > _SHOWN else ""
    one = len(ids) == 1
    text = f"{count(len(ids), 'sample')} {'is' if one else 'are'} in {where} only, and {'is' if one else 'are'} not"
    return [f"{text} compared: {', '.join(ids[:_SHOWN])}{more}."]
