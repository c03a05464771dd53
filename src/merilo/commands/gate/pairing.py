"""The pairing of a run with its baseline, sample by sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.commands.compare.matching import in_common
from merilo.errors import UsageError
from merilo.rendering.wording import count
from merilo.results.comparability import not_comparable, score_affecting_differences
from merilo.results.contents import MAX_OTHER, equal_inputs, equal_questions
from merilo.results.planned_stopping import planned_of
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
    early: bool
    notes: tuple[str, ...]
    other_questions: int
    """Number of common ids that name other questions; they are left out."""
    base_only: int
    new_only: int
    """Number of samples that only one of the runs has."""
    equal_inputs: frozenset[str]
    """The metrics whose inputs are equal in both runs."""
    run_places: tuple[int, ...]
    """The position of each pair among all samples of the run."""
    run_samples: int
    """Number of samples of the run, with a pair or without."""


def paired_runs(base: Run, new: RunScores, metrics: Sequence[str], *, across_data: bool) -> PairedRuns:
    """Return the runs over the samples that both have, in the order of the one that could stop early, if one could."""
    lacking = [text for text in metrics if text not in base.manifest.metrics]
    if lacking:
        raise UsageError(f"The baseline {base.path} has no metric {', '.join(lacking)}. Evaluate it there too.")
    differences = score_affecting_differences(base.manifest, new.run.manifest, metrics=metrics)
    if differences:
        raise not_comparable(f"{new.run.path} (here) and its baseline {base.path} (there)", differences)
    if planned_of(base.manifest) is not None:
        raise UsageError(
            f"The baseline {base.path} could stop at planned looks (--until-decided), so its order of samples is not "
            "that of this run. Evaluate all its samples and use that run."
        )
    before = read_scores(base, metrics=metrics, cluster="")
    seeds = [each.manifest.until["seed"] for each in (base, new.run) if each.manifest.until is not None]
    if len(set(map(str, seeds))) > 1:
        raise UsageError(
            f"Both runs could stop early, but with different sample orders (seeds {seeds[0]} and {seeds[1]}). Re-run "
            "one of them with the other's seed."
        )
    names = [str(base.path), str(new.run.path)]
    if base.manifest.until is not None and new.run.manifest.until is None:
        pair, (only_base, only_new) = in_common((before, new), names)
    else:
        (second, first), (only_new, only_base) = in_common((new, before), names[::-1])
        pair = [first, second]
    if len(only_base) > MAX_OTHER * len(before.ids) and not seeds and not across_data:
        raise UsageError(
            f"{len(only_base):,} of the {len(before.ids):,} samples of the baseline {base.path} are not in "
            f"{new.run.path}, such as {only_base[0]!r}. More than one in ten are missing, so the runs are "
            f"not comparable. Give each sample an id that stays the same, and run all samples. To compare only the "
            f"{count(len(pair[0].ids), 'sample')} that both runs have, use --across-data."
        )
    questions = equal_questions(pair, names, metrics, across_data=across_data)
    first, second = (each.at(questions.positions) for each in pair)
    places = {sample: place for place, sample in enumerate(new.ids)}
    return PairedRuns(
        first,
        second,
        early=bool(seeds),
        notes=(*_left(only_new, "the run"), *_left(only_base, "the baseline"), *questions.notes),
        other_questions=questions.other,
        base_only=len(only_base),
        new_only=len(only_new),
        equal_inputs=equal_inputs(first, second, metrics),
        run_places=tuple(places[sample] for sample in second.ids),
        run_samples=len(new.ids),
    )


def _left(ids: Sequence[str], where: str) -> list[str]:
    if not ids:
        return []
    more = f" and {len(ids) - _SHOWN:,} more" if len(ids) > _SHOWN else ""
    one = len(ids) == 1
    text = f"{count(len(ids), 'sample')} {'is' if one else 'are'} in {where} only, and {'is' if one else 'are'} not"
    return [f"{text} compared: {', '.join(ids[:_SHOWN])}{more}."]
