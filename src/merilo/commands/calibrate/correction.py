"""The means of a run's metrics, each corrected by the human labels that can be used for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from merilo.commands.calibrate.label_matching import chosen, drawn_elsewhere, draws_of, matched, remarks_of, usable_for
from merilo.errors import UsageError
from merilo.metrics.registry import asks_judge
from merilo.results.judged_samples import JudgedRun
from merilo.stats.correction import Correction, Labels, correct
from merilo.stats.rogan_gladen import CorrectedRate, corrected_rate

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from merilo.commands.calibrate.human_labels import HumanLabel
    from merilo.commands.calibrate.label_matching import LabelDraw, MatchedLabels
    from merilo.results.scores import RunScores

_RATE = frozenset({0.0, 1.0})


def match(
    scores: RunScores, labels: Sequence[HumanLabel], metrics: Sequence[str], *, named: bool = False
) -> dict[str, MatchedLabels]:
    """Match the labels with the samples of each metric for which they can be used.

    Raises UsageError if there is no such metric. `named`: the user named the metrics, so raise for each unusable one.
    """
    draws = draws_of(labels)
    usable = {
        text: own
        for text in metrics
        if asks_judge(text)
        and (own := {draw: each for draw, each in draws.items() if usable_for(draw, text, scores.columns)})
    }
    with JudgedRun(scores.run) as judged:
        cases = judged.samples(usable, {each.ticket.sample for each in labels})
    found: dict[str, MatchedLabels] = {}
    for text, own in usable.items():
        draw, taken, aside = chosen(own, text)
        mine = {sample: case for (sample, metric), case in cases.items() if metric == text}
        result = matched(
            draw,
            taken,
            mine,
            _clusters(scores, mine),
            scores.columns[text].span,
            fingerprint=scores.run.manifest.fingerprint,
        )
        result.aside = aside
        result.elsewhere = drawn_elsewhere(draw, scores.columns[draw.metric], scores.ids)
        if result.samples or draw.metric == text:
            found[text] = result
        elif named:
            raise _unusable(text, scores, draws, " ".join(remarks_of(result)))
    for text in metrics if named else ():
        if text not in found:
            raise _unusable(text, scores, draws, "")
    if not found:
        raise _unusable("any metric", scores, draws, "")
    return found


def correction_of(scores: RunScores, metric: str, found: MatchedLabels, *, level: float, seed: int) -> Correction:
    """Return the metric's mean over the scored samples: by the judge, by human labels, and corrected.

    If the labels were drawn from other samples, only the judge's mean, with the reason.
    """
    column = scores.columns[metric]
    clusters = None
    if scores.clusters is not None:
        clusters = [name for name, scored in zip(scores.clusters, column.scored.tolist(), strict=True) if scored]
    if found.elsewhere:
        nothing = correct(
            column.values[column.scored], Labels.of([], [], []), column.span, clusters=clusters, level=level, seed=seed
        )
        reason = f"Nothing is reported: {found.elsewhere[0].lower()}{found.elsewhere[1:]}. Draw tasks from this run."
        return replace(nothing, labelled=len(found.samples), reason=reason)
    labels = labels_among(scores, metric, found)
    return correct(column.values[column.scored], labels, column.span, clusters=clusters, level=level, seed=seed)


def labels_among(scores: RunScores, metric: str, found: MatchedLabels) -> Labels:
    """Return the labels of a metric, with the positions of their samples among the scored ones."""
    place = _places(scores, metric)
    return Labels.of(
        [place[each] for each in found.samples],
        found.people,
        found.judge,
        probability=found.probabilities,
        sequential=found.sequential,
    )


def rate_of(scores: RunScores, metric: str, found: MatchedLabels, *, level: float) -> CorrectedRate | None:
    """Return the metric's mean as a rate, by Rogan and Gladen.

    None unless every number is 0 or 1, samples are independent, and all were drawn with the same probability.
    """
    column = scores.columns[metric]
    judged = column.values[column.scored]
    numbers = {*judged.tolist(), *found.people, *found.judge}
    if scores.clusters is not None or not found.samples or found.elsewhere or not numbers <= _RATE:
        return None
    if len(set(found.probabilities)) > 1:  # its limits take labels as binomial counts, so weights make them too narrow
        return None
    return corrected_rate(judged, found.people, found.judge, level=level)


def _places(scores: RunScores, metric: str) -> dict[str, int]:
    """Return the position of each scored sample among the scored ones."""
    scored = scores.columns[metric].scored.tolist()
    ids = [sample for sample, there in zip(scores.ids, scored, strict=True) if there]
    return {sample: place for place, sample in enumerate(ids)}


def _clusters(scores: RunScores, samples: Iterable[str]) -> dict[str, Hashable]:
    """Return the cluster of each of these samples; the sample itself if the run has no clusters."""
    if scores.clusters is None:
        return {sample: sample for sample in samples}
    known = dict(zip(scores.ids, scores.clusters, strict=True))
    return {sample: known[sample] for sample in samples}


def _unusable(metric: str, scores: RunScores, draws: Mapping[LabelDraw, object], why: str) -> UsageError:
    drawn = ", ".join(dict.fromkeys(draw.metric for draw in draws))
    text = why or f"The tasks were drawn for {drawn}."
    return UsageError(
        f"No label can be used for {metric}. {text} To draw tasks: merilo label {scores.run.path} --metric M -o FILE."
    )
