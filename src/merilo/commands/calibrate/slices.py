"""The faults and the slices of a run, corrected by the human labels stored with the run.

What corrects them is imported if there are labels: a run without labels is shown in half the time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from merilo.metrics.answering import Answering, Category
from merilo.numbers import count
from merilo.rendering.slices import Slices
from merilo.results.estimate import Caveat
from merilo.results.faults import FAITHFULNESS, Answer, Faults, judged_metrics, judgements
from merilo.results.scores import RunScores, read_scores
from merilo.results.slices import Slice, groups_of, mean_estimate, sliced
from merilo.stats.column import Column, Missing
from merilo.stats.correction import DECIDING_LABELLED

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from merilo.commands.calibrate.label_matching import MatchedLabels
    from merilo.runs.run import Run
    from merilo.stats.means import MeanEstimate


# -- faults -------------------------------------------------------------------------------------------

_UNIT = (0.0, 1.0)
_CATEGORIES = frozenset(map(str, Category))


def shown_run(run: Run) -> Run:
    """Return the run with its verdicts by the levels that its labels set, as pages show them; itself without."""
    if run.labels is None or run.view is not None:
        return run
    from merilo.commands.calibrate.people import levelled

    return run.kept(levelled)


def faults_of(run: Run, *, judge_only: bool = False) -> Faults:
    """Return the faults of a run. `judge_only`: leave human labels out.

    Verdicts are by the levels that labels set. Labels correct the shares if the run has the metric `answering` and
    whole samples are labelled. Raises RunError for damaged outcomes.
    """
    samples, orders = dict[str, str](), dict[str, float]()
    answers, retrieved = Counter["Answer"](), Counter[bool]()
    shown = run if judge_only else shown_run(run)
    for sample, found in judgements(shown):
        samples[sample], orders[sample] = found.fault, found.order
        answers[found.answer] += 1
        if found.retrieved is not None:
            retrieved[found.retrieved] += 1
    if not samples:
        return Faults({})
    if not any(metric.partition("(")[0] == FAITHFULNESS for metric in run.manifest.metrics):
        answers.clear()
    judged = judged_metrics(run.manifest.metrics)
    joint = next((text for text in judged if text.partition("(")[0] == Answering.name), None)
    clusters: tuple[Hashable, ...] | None = None
    corrected: dict[str, MeanEstimate] = {}
    if run.manifest.cluster or (joint is not None and run.labels is not None):
        scores = read_scores(run, metrics=judged[:1])
        clusters = scores.clusters
        corrected = {} if joint is None or judge_only else _corrected_shares(scores, joint)
    return Faults(samples, clusters, corrected, orders, answers, retrieved, shown is not run)


def _corrected_shares(scores: RunScores, joint: str) -> dict[str, MeanEstimate]:
    """Return the corrected share of each category; empty unless labels correct all."""
    from merilo.commands.calibrate.correction import correction_of, match_if_fitting
    from merilo.commands.calibrate.people import readable_labels
    from merilo.results.judged_samples import with_not_judged

    labels, samples = readable_labels(scores.run), [found.fault for _, found in judgements(scores.run)]
    texts = {f"{Answering.name}.{key}{joint[len(Answering.name) :]}": str(key) for key in Category}
    columns = {
        text: Column.of((float(each == key) if each in _CATEGORIES else Missing.UNDEFINED for each in samples), _UNIT)
        for text, key in texts.items()
    }
    derived = with_not_judged(replace(scores, columns={**scores.columns, **columns}))
    found = match_if_fitting(derived, labels, tuple(texts))
    estimates = {texts[text]: correction_of(derived, text, each).estimate for text, each in found.items()}
    known = {key: estimate for key, estimate in estimates.items() if estimate is not None}
    return known if len(known) == len(Category) else {}


# -- slices -------------------------------------------------------------------------------------------


def slices_of(run: Run, field: str) -> Slices:
    """Return the slices of a run by a field.

    A mean is corrected if at least 20 samples of the slice are labelled. Raises UsageError for a field that does not
    make 2 to 30 slices.
    """
    return slices_by(run, [field])[0]


def slices_by(run: Run, fields: Sequence[str]) -> tuple[Slices, ...]:
    """Return what `slices_of` returns for each of these fields; scores and labels are read once."""
    from merilo.commands.calibrate.correction import match_if_fitting
    from merilo.commands.calibrate.people import readable_labels
    from merilo.results.judged_samples import with_not_judged

    scores, faults = read_scores(run), faults_of(shown_run(run), judge_only=True)
    labels = readable_labels(run)
    every = with_not_judged(scores) if labels else scores
    matched = match_if_fitting(every, labels, tuple(scores.columns))
    usable = {text: own for text, own in matched.items() if not own.elsewhere}
    places = {sample: place for place, sample in enumerate(scores.ids)}
    found: list[Slices] = []
    for field in fields:
        slices = {
            value: _corrected(each, every.at([places[sample] for sample in each.samples]), usable) if usable else each
            for value, each in sliced(run, scores, groups_of(run, field), faults).items()
        }
        found.append(Slices(run, field, slices))
    return tuple(found)


def _corrected(own: Slice, scores: RunScores, matched: dict[str, MatchedLabels]) -> Slice:
    """Return the slice with corrected means. A uniform draw from all samples is uniform in a slice."""
    from merilo.commands.calibrate.correction import correction_of

    inside, means = frozenset(own.samples), dict(own.means)
    for text, every in matched.items():
        here = [place for place, sample in enumerate(every.samples) if sample in inside]
        if len(here) < DECIDING_LABELLED:
            continue
        part = replace(
            every,
            samples=[every.samples[at] for at in here],
            people=[every.people[at] for at in here],
            judge=[every.judge[at] for at in here],
        )
        if (estimate := correction_of(scores, text, part).estimate) is not None:
            # A star compares the judge's own means, so it goes if human labels replace one of them.
            labelled = Caveat("labelled", count(len(here), "label"), facts={"labelled": len(here)})
            means[text] = mean_estimate(text, estimate, [labelled], corrected=True)
    return replace(own, means=means)
