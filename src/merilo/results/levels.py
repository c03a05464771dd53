"""The levels that a run's human labels set, and the run with its verdicts by these levels.

The stored run stays as it is. Records are computed again by the metrics themselves, with the new verdicts as answers,
so all that is read from them follows: causes, filters, order, tables and exports.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from contextlib import closing
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.judging.json_types import compact
from merilo.judging.verdicts import NO_EVIDENCE, DecisionVerdict, is_positive, probability_of
from merilo.metrics.base import Failed
from merilo.metrics.registry import known_metric
from merilo.numbers import count, number
from merilo.results.judged_samples import mark_of, replayed
from merilo.results.records import grouped
from merilo.runs.files import OUTCOMES
from merilo.runs.run import Run, open_store
from merilo.stats.agreement_intervals import Agreement, agreement
from merilo.stats.correction import DECIDING_LABELLED, FOLDS
from merilo.stats.distributions import student_quantile
from merilo.stats.sums import coded, numbers, same_length

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.results.sample_detail import GivenLabel
    from merilo.runs.outcomes import OutcomeRecord
    from merilo.runs.records import StoredQuestion
    from merilo.runs.store import Store

    Floats = NDArray[np.float64]

BY_LABELS: Final = "By your labels."
"""The reason of a verdict that a level gives."""


@dataclass(frozen=True, slots=True)
class LabelledKind:
    """The labelled verdicts of one kind of question."""

    agreement: Agreement
    """Of the judge's own verdicts, without those that it did not give."""
    level: Level | None
    """None if the labels show no gain, if there are too few, and for a judge without probabilities."""


def labelled_kinds(run: Run, labels: Mapping[str, Sequence[GivenLabel]]) -> dict[str, LabelledKind]:
    """Return the judge's agreement with the labels, and the level that they set, by kind of question.

    `labels`: by sample. Labels of questions that the run did not ask do not count. Of several labels of a question most
    decide, a tie is a no. There is no level for a run with repeated questions.
    """
    found: dict[str, list[tuple[bool, bool | None, float | None, str]]] = {}
    records = grouped((record["sample"], record) for record in run.records_of(frozenset(labels)) if labels)
    for sample, own in records.items():
        given = grouped((mark, label) for mark, _, label in labels[sample])
        keys = dict.fromkeys(key for record in own for key in record.get("trail", ()))
        for mark, asked in {mark_of(each.question): each for each in reversed(run.asked([*keys]))}.items():
            form, answer = asked.question.label_form() if mark in given else None, asked.answer
            if form is None or not form.ordered:
                continue
            said = [is_positive(asked.question.verdict_of_label(each)) for each in map(form.label, given[mark]) if each]
            verdict = answer.positive if isinstance(answer, DecisionVerdict) else None
            if said and (verdict is not None or probability_of(answer) is not None):
                one = (2 * sum(said) > len(said), verdict, probability_of(answer), sample)
                found.setdefault(asked.question.kind, []).append(one)
    return {kind: _labelled(own, fit=not run.manifest.draws) for kind, own in sorted(found.items())}


def _labelled(verdicts: Sequence[tuple[bool, bool | None, float | None, str]], *, fit: bool) -> LabelledKind:
    judged = [(people, said, chance, sample) for people, said, chance, sample in verdicts if said is not None]
    ranked = [(chance, said, people, sample) for people, said, chance, sample in verdicts if chance is not None]
    people, own, chances, clusters = map(list[Any], zip(*judged, strict=True)) if judged else ([], [], [], [])
    level = fit_level(*zip(*ranked, strict=True)) if fit and ranked else None
    return LabelledKind(agreement(people, own, scores=chances, clusters=clusters), level)


def by_level(question: Question[Any], answer: Answer, levels: Mapping[str, Level]) -> Answer:
    """Return the verdict by the level of its kind; the answer itself if it has no probability or its kind no level.

    A verdict that the level changes, or that the judge did not give, names no evidence.
    """
    level, chance, form = levels.get(question.kind), probability_of(answer), question.label_form()
    if level is None or chance is None or form is None:
        return answer
    found = level.of(chance)
    if isinstance(answer, DecisionVerdict) and answer.positive == (found >= 0.5):
        same: Any = answer  # the base of verdicts has no probability
        return cast("Answer", replace(same, probability=found))
    meant = (question.verdict_of_label(label) for label in form.labels)
    verdict: Any = next(each for each in meant if each.positive == (found >= 0.5))  # labels ascend
    averaged = isinstance(answer, DecisionVerdict) and answer.averaged
    verdict = replace(verdict, probability=found, reason=BY_LABELS, averaged=averaged)
    return cast("Answer", replace(verdict, flag=NO_EVIDENCE) if question.fault(verdict) else verdict)


def by_levels(run: Run, levels: Mapping[str, Level]) -> Run:
    """Return the run with its verdicts by these levels; the run itself if there are none.

    A record stays as it is if its metric has another version here, or asks a question that the judge was not asked.
    """
    if not levels:
        return run
    folder = Path(tempfile.mkdtemp(prefix="merilo-"))
    path = folder / OUTCOMES
    with path.open("w", encoding="utf-8", errors="surrogatepass") as file, closing(open_store(run)) as store:
        for record in run.records():
            file.write(_line(run, store, record, levels))

    def answered(asked: StoredQuestion) -> StoredQuestion:
        return replace(asked, answer=by_level(asked.question, asked.answer, levels))

    found = run.with_answers(path, answered)
    weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
    return found


def _line(run: Run, store: Store, record: OutcomeRecord, levels: Mapping[str, Level]) -> str:
    """Return the line of a record, with the metric's outcome by the levels."""
    text, trail = record["metric"], dict.fromkeys(record.get("trail", ()))
    asked = [each for key in trail if (each := store.asked(bytes.fromhex(key))) is not None]
    metric = known_metric(text) if {each.question.kind for each in asked} & levels.keys() else None
    sample = None if metric is None else store.sample(record["sample"])
    if metric is None or sample is None or metric.version != run.manifest.metrics[text]:
        return f"{compact(record)}\n"
    answers = {
        (each.question.content, each.question.role): (each.key, by_level(each.question, each.answer, levels))
        for each in asked
    }

    def answer(question: Question[Any]) -> tuple[bytes, Answer | None]:
        return answers.get((question.content, question.role), (b"", None))

    result = replayed(metric, text, sample, answer)
    lost = result is None or (isinstance(result.outcome, Failed) and record["outcome"] != "failed")
    return f"{compact(record)}\n" if result is None or lost else result.line()


_NEAR_CHANCE: Final = 0.6
"""Balanced accuracy below which verdicts are of no use, and AUROC above which an order is."""


def judge_sentence(found: Agreement, level: Level | None) -> str:
    """Return one sentence on a judge's use by its agreement with labels; empty if it is usable as it is."""
    balanced, ranks = found.balanced_accuracy.interval.ends, found.auroc.interval.ends
    if level is not None:
        shares = f"{100 * level.before:.0f} -> {100 * level.after:.0f} % right"
        return f"level set by {count(level.labels, 'label')}: {shares}."
    if balanced is None or balanced[1] >= _NEAR_CHANCE:
        return ""
    same = sum(row[at] for at, row in enumerate(found.confusion))
    agreed = f"the judge agrees with your labels on {same:,} of {found.items:,}"
    if ranks is not None and ranks[0] > _NEAR_CHANCE:
        return f"AUROC {number(found.auroc.value)}, level off: {agreed}."
    return f"{agreed}: do not use its verdicts."


_NEAR_CERTAIN: Final = 0.001
"""Distance from 0 and 1 to which probabilities are clipped."""
_LOWER_LIMIT: Final = 0.95
_MIN_OF_EACH: Final = 4
"""Samples with a yes, and with a no, from which there is a level."""
_STEPS, _LONGEST, _CLOSE = 25, 2.0, 1e-9
"""Newton's method: the most steps, the longest step, and the length of a step at which it ends."""


@dataclass(frozen=True, slots=True)
class Level:
    """The level of one kind of verdict: logit(p') = intercept + slope · logit(p), and p' of 0.5 or more is a yes."""

    intercept: float
    slope: float
    """Greater than 0, so that the order of the judge stays."""
    labels: int
    """Number of labelled verdicts that it was fitted on."""
    before: float
    """Mean fraction of right yes and right no by the judge alone, in [0, 1]; a verdict that it did not give is half
    right."""
    after: float
    """The same with levels fitted on the other folds."""

    def of(self, probability: float) -> float:
        """Return p' of a probability of the judge, both in [0, 1]."""
        inside = min(max(probability, _NEAR_CERTAIN), 1 - _NEAR_CERTAIN)
        return 1 / (1 + exp(-self.intercept - self.slope * log(inside / (1 - inside))))


def fit_level(
    probabilities: Sequence[float],
    judge: Sequence[bool | None],
    people: Sequence[bool],
    samples: Sequence[Hashable],
) -> Level | None:
    """Return the level that human labels set; None if they show no gain.

    One entry for each labelled verdict in every series: the judge's probability of yes, its yes or no (None if it gave
    none), the human yes or no, and the sample. Raises ValueError for series of different lengths.

    The logistic regression gives yes and no the same total weight, as the level is the cut between them (Platt, 1999,
    with a normal prior of mean 1 and variance 1 on the slope). The gain is the difference in the mean fraction of right
    yes and right no, each sample judged by the level of the other nine folds. The level is used if the lower 95 %
    limit of the gain, over samples, is above 0, from 20 labelled samples on, 4 of them with a yes and 4 with a no. To
    each of the two, one sample without a gain is added, so that a few equal ones do not decide.
    """
    import numpy as np

    chances = numbers(probabilities, "probabilities")
    for what, each in (("verdicts", judge), ("labels", people), ("samples", samples)):
        same_length(len(chances), len(each), what)
    yes, units = np.asarray(people, dtype=bool), coded(samples)
    rarer = min(len(np.unique(units[own])) for own in (yes, ~yes))
    if rarer < _MIN_OF_EACH or units.max() + 1 < DECIDING_LABELLED:
        return None
    inside = np.clip(chances, _NEAR_CERTAIN, 1 - _NEAR_CERTAIN)
    logits = np.log(inside / (1 - inside))
    after = np.zeros(len(yes))
    for fold in range(FOLDS):
        own = units % FOLDS == fold
        intercept, slope = _fitted(logits[~own], yes[~own])
        after[own] = (intercept + slope * logits[own] >= 0) == yes[own]
    said = np.array([0.5 if each is None else float(each) for each in judge])
    before = 1 - np.abs(said - yes)
    intercept, slope = _fitted(logits, yes)
    if slope <= 0 or _lower_limit(after - before, yes, units) <= 0:
        return None
    right = [float(each[yes].mean() + each[~yes].mean()) / 2 for each in (before, after)]
    return Level(intercept, slope, len(yes), right[0], right[1])


def _fitted(logits: Floats, yes: NDArray[np.bool_]) -> tuple[float, float]:
    """Return intercept and slope, by Newton's method."""
    import numpy as np

    count, both = len(yes), int(yes.sum())
    weights: Floats = np.where(yes, 0.5 * count / max(both, 1), 0.5 * count / max(count - both, 1))
    design, prior = np.stack([np.ones(len(yes)), logits]), np.diag([1e-6, 1.0])
    found: Floats = np.array([0.0, 1.0])
    for _ in range(_STEPS):
        chances = 1 / (1 + np.exp(-np.clip(found @ design, -30, 30)))
        slope = design @ (weights * (yes - chances)) - prior @ (found - [0.0, 1.0])
        curvature = (design * weights * chances * (1 - chances)) @ design.T + prior
        step = np.clip(np.linalg.solve(curvature, slope), -_LONGEST, _LONGEST)
        found = found + step
        if np.abs(step).max() < _CLOSE:
            break
    return float(found[0]), float(found[1])


def _lower_limit(gains: Floats, yes: NDArray[np.bool_], units: NDArray[np.int64]) -> float:
    """Return the lower limit of the mean gain, half of it among yes, with the linearised error over samples."""
    import numpy as np

    total, mean, errors = units.max() + 3, 0.0, np.zeros(units.max() + 3)
    for place, own in enumerate((yes, ~yes), start=1):
        each, names = np.append(gains[own], 0.0), np.append(units[own], total - place)
        mean += each.mean() / 2
        errors += np.bincount(names, (each - each.mean()) / (2 * len(each)), total)
    error = sqrt(total / (total - 1) * (errors**2).sum())
    return float(mean - student_quantile(total - 1, _LOWER_LIMIT) * error)
