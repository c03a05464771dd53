"""Fit the calibration and the cuts of a local judge to human labels (`merilo judge check SPEC --fit`)."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.commands.check.run import run_check
from merilo.commands.evaluate.settings import judges_of
from merilo.data.labels import Task
from merilo.errors import UsageError
from merilo.judges.local.card import Graded, YesNo
from merilo.judges.local.judge import LocalJudge, LocalProvider
from merilo.rendering.page import Page, Tone
from merilo.stats.platt import LogisticCurve, balanced_accuracy, best_threshold, fit_curve, log_loss

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.check.items import Item
    from merilo.commands.check.options import CheckOptions
    from merilo.judges.local.card import Card

FOLDS: Final = 5
MIN_RECORDS: Final = 60
"""Fewest records of each class."""
TASKS: Final = {Task.NLI: "support", Task.CHUNK_RELEVANCE: "relevance"}
"""Tasks whose records are one question each, and the kind of question."""
_TINY: Final = 1e-15


class Quality(NamedTuple):
    """How well probabilities and cuts fit the labels."""

    log_loss: float
    balanced_accuracy: float


class KindFit(NamedTuple):
    """The curve and the cuts of one kind of question."""

    kind: str
    records: int
    positive: int
    curve: LogisticCurve
    cuts: tuple[float, ...]
    """One cut, or those of grades 1 and 2."""
    before: Quality
    """Of the card as it is."""
    held_out: Quality
    """Of curves and cuts fitted to the other folds."""


class Fit(NamedTuple):
    """All fits of one judge."""

    judge: str
    source: str
    """The labels that the curves were fitted to, for the card."""
    kinds: tuple[KindFit, ...]
    left_out: Mapping[str, str]
    """Kind of question → reason why nothing was fitted."""


class _Record(NamedTuple):
    logit: float
    label: int
    """0 or 1 for support, the grade for relevance."""
    cluster: int


async def run_fit(options: CheckOptions) -> Fit:
    """Return curves and cuts for the kinds of `options.judge` that have enough labels in `options.labels`.

    Raises UsageError for a judge that is not local, and what a check raises.
    """
    judge = judges_of(options)["judge"]
    if not isinstance(judge, LocalJudge):
        raise UsageError(f"Only local judges have a card to fit (local:MODEL); got {judge.name!r}.")
    if not options.labels:
        raise UsageError("Name files of human labels: merilo judge check local:MODEL --fit --labels FILE.")
    card = judge.card
    plain = LocalJudge(LocalProvider(replace(judge.provider.found, card=card.model_copy(update={"calibration": {}}))))
    tasks = [task.value for task, kind in TASKS.items() if kind in card.answers.given]
    if not tasks:
        raise UsageError(f"{judge.name} answers neither support nor relevance, so there is nothing to fit.")
    check = await run_check(replace(options, judge=plain, tasks=tasks))
    if check.stopped is not None:
        raise UsageError(f"Not all records were judged, so nothing was fitted. {check.stopped}")
    fitted: list[KindFit] = []
    left_out: dict[str, str] = {}
    for task, kind in TASKS.items():
        records = _records(check.items.get(task.value, ()))
        if reason := _too_few(records, kind):
            left_out[kind] = reason
        else:
            fitted.append(_fit_kind(kind, records, card))
    names = ", ".join(Path(path).name for path in options.labels)
    return Fit(judge.name, f"judge check --fit {names}, {FOLDS} folds", tuple(fitted), left_out)


def _records(items: Sequence[Item]) -> list[_Record]:
    return [
        _Record(_logit(each.probability), round(each.people), each.cluster)
        for each in items
        if each.judge is not None and each.probability is not None
    ]


def _logit(p: float) -> float:
    p = min(max(p, _TINY), 1 - _TINY)
    return math.log(p / (1 - p))


def _too_few(records: Sequence[_Record], kind: str) -> str:
    """Return why these records are not enough, as a sentence; empty if they are."""
    if not records:
        return "There are no labels for it."
    for level in range(1, 3 if kind == "relevance" else 2):
        yes = sum(each.label >= level for each in records)
        if min(yes, len(records) - yes) < MIN_RECORDS:
            what = f"grade {level} or more" if kind == "relevance" else "yes"
            return f"{yes} of {len(records)} labels are {what}; at least {MIN_RECORDS} of each class are needed."
    if len({each.cluster for each in records}) < FOLDS:
        return f"The records share their texts; at least {FOLDS} independent groups are needed."
    return ""


def _fit_kind(kind: str, records: Sequence[_Record], card: Card) -> KindFit:
    curve, cuts = _fitted(kind, records)
    answer, known = card.answers.given[kind], card.calibration_of(kind)
    own_cut = answer.cuts[0] if isinstance(answer, Graded) else answer.cut if isinstance(answer, YesNo) else 0.5
    own_curve = LogisticCurve(1.0, 0.0) if known is None else LogisticCurve(known.scale, known.shift)
    return KindFit(
        kind=kind,
        records=len(records),
        positive=sum(each.label >= 1 for each in records),
        curve=curve,
        cuts=cuts,
        before=_quality([own_curve.probability(each.logit) for each in records], [own_cut] * len(records), records),
        held_out=_held_out(kind, records),
    )


def _fitted(kind: str, records: Sequence[_Record]) -> tuple[LogisticCurve, tuple[float, ...]]:
    """Return the curve, and the cut; for relevance those of grades 1 and 2."""
    scores, positive = [each.logit for each in records], [each.label >= 1 for each in records]
    curve = fit_curve(scores, positive)
    found = [curve.probability(score) for score in scores]
    first = best_threshold(found, positive)
    if kind != "relevance":
        return curve, (first,)
    return curve, (first, max(first, best_threshold(found, [each.label >= 2 for each in records])))


def _held_out(kind: str, records: Sequence[_Record]) -> Quality:
    """Return the quality for records that neither curve nor cuts were fitted to; a cluster is in one fold."""
    clusters = sorted({each.cluster for each in records})
    random.Random(0).shuffle(clusters)  # noqa: S311  folds, not secrets
    fold = {cluster: place % FOLDS for place, cluster in enumerate(clusters)}
    models: list[tuple[LogisticCurve, float]] = []
    for number in range(FOLDS):
        rest = [each for each in records if fold[each.cluster] != number]
        if len({each.label >= 1 for each in rest}) < 2 or (kind == "relevance" and all(e.label < 2 for e in rest)):
            raise UsageError(f"One group of records holds all labels of a class, so {kind} cannot be fitted.")
        curve, cuts = _fitted(kind, rest)
        models.append((curve, cuts[0]))
    own = [models[fold[each.cluster]] for each in records]
    chances = [curve.probability(each.logit) for (curve, _), each in zip(own, records, strict=True)]
    return _quality(chances, [cut for _, cut in own], records)


def _quality(probabilities: Sequence[float], cuts: Sequence[float], records: Sequence[_Record]) -> Quality:
    labels = [each.label >= 1 for each in records]
    judged = [p >= cut for p, cut in zip(probabilities, cuts, strict=True)]
    return Quality(log_loss(probabilities, labels), balanced_accuracy(judged, labels))


def fit_record(fit: Fit) -> dict[str, Any]:  # Any: JSON
    """Return the fits as JSON."""
    return {
        "judge": fit.judge,
        "source": fit.source,
        "kinds": {
            each.kind: {
                "records": each.records,
                "positive": each.positive,
                "scale": each.curve.scale,
                "shift": each.curve.shift,
                "cuts": list(each.cuts),
                "before": each.before._asdict(),
                "held_out": each.held_out._asdict(),
            }
            for each in fit.kinds
        },
        "left_out": dict(fit.left_out),
    }


def fit_page(fit: Fit, width: int) -> Page:
    """Return the fits, and the lines to put into the card."""
    page = Page(width)
    page.text(f"{fit.judge}: {fit.source}", tone=Tone.STRONG)
    for each in fit.kinds:
        page.blank()
        page.text(f"{each.kind}: {each.records} records, {each.positive} positive")
        rows = [("card as it is", each.before), ("fitted, held out", each.held_out)]
        shown = [(name, f"{loss:.3f}", f"{100 * accuracy:.1f} %") for name, (loss, accuracy) in rows]
        page.table([("", "log loss", "balanced accuracy"), *shown], [Tone.STRONG, Tone.PLAIN, Tone.PLAIN])
        if each.curve.scale <= 0:
            page.text("The scores do not rise with the labels, so there is no valid calibration.", tone=Tone.BAD)
    page.entries([(kind, f"not fitted. {reason}") for kind, reason in fit.left_out.items()])
    if usable := [each for each in fit.kinds if each.curve.scale > 0]:
        page.heading("Put these lines into judge.toml")
        for line in _card_lines(fit, usable):
            page.line(line)
    return page


def _card_lines(fit: Fit, usable: Sequence[KindFit]) -> list[str]:
    lines: list[str] = []
    for each in usable:
        cuts = [f"{cut:.3f}" for cut in each.cuts]
        setting = f"cut = {cuts[0]}" if len(cuts) == 1 else f"cuts = [{', '.join(cuts)}]"
        lines += [f"# under [answers.{each.kind}]", setting]
    for each in usable:
        lines += [f"[calibration.{each.kind}]", f"scale = {each.curve.scale:.4f}", f"shift = {each.curve.shift:.4f}"]
        lines += [f"records = {each.records}", f"source = {json.dumps(fit.source)}"]
    return lines
