"""Fit the calibration and the cuts of a local judge or a decision model to human labels (`judge check SPEC --fit`)."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.commands.check.items import KIND, clusters_of, label_questions, label_sample
from merilo.commands.check.run import run_check
from merilo.commands.evaluate.settings import judges_of
from merilo.data.labels import Task
from merilo.errors import UsageError
from merilo.judges.decision_fit import FORMAT
from merilo.judges.decision_forms import wording_of
from merilo.judges.decisions import CUT, TINY, DecisionJudge
from merilo.judges.local.card import Graded, YesNo
from merilo.judges.local.judge import LocalJudge, LocalProvider
from merilo.rendering.page import Page, Tone
from merilo.stats.platt import LogisticCurve, balanced_accuracy, best_threshold, fit_curve, log_loss, logit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from merilo.commands.check.items import Item
    from merilo.commands.check.options import CheckOptions
    from merilo.data.labels import Labelled
    from merilo.judges.local.card import Card

FOLDS: Final = 5
_SUFFIX: Final = ".json"
_AS_IT_IS: Final = LogisticCurve(1.0, 0.0)


class Needs(NamedTuple):
    """The labels that a fit needs."""

    tasks: tuple[Task, ...]
    """Tasks with one probability for each label; only records that are one question are used."""
    of_class: int
    """Fewest records of each class for a shift and a cut."""
    without: int | None
    """Fewest records for a scale without a shift and with the usual cut; None: such a fit is refused."""
    tiny: float
    """Distance of a probability from 0 and 1 before it is fitted."""


LOCAL: Final = Needs((Task.NLI, Task.CHUNK_RELEVANCE), 60, None, 1e-15)
DECISIONS: Final = Needs(tuple(task for task in Task if task is not Task.SENTENCE_RELEVANCE), 10, 20, TINY)


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
    """Of the judge as it is."""
    held_out: Quality
    """Of curves and cuts fitted to the other folds."""
    wordings: Mapping[str, str]
    """Language → digest of the wording in which a decision model was asked."""

    @property
    def problem(self) -> str:
        """Why the fit is not used, as a sentence; empty if it is used."""
        if self.curve.scale <= 0:
            return "Not used: the scores do not rise with the labels, so there is no valid calibration."
        better = self.held_out.log_loss < self.before.log_loss
        return "" if better else "Not used: it does not lower the log loss of held-out labels."


class Fit(NamedTuple):
    """All fits of one judge."""

    judge: str
    source: str
    """The labels that the curves were fitted to, for the card."""
    labels: Mapping[str, str]
    """Label file → SHA-256."""
    kinds: tuple[KindFit, ...]
    left_out: Mapping[str, str]
    """Kind of question → reason why nothing was fitted."""
    has_card: bool
    """True for a local model."""

    @property
    def used(self) -> list[KindFit]:
        """The fits that are better than the judge as it is."""
        return [each for each in self.kinds if not each.problem]


class _Record(NamedTuple):
    score: float
    """The logit of the probability of yes."""
    top: float
    """The part of that probability that belongs to grade 2."""
    label: float
    """0 or 1; for relevance the grade."""
    cluster: int

    def probability(self, curve: LogisticCurve, level: int = 1) -> float:
        """Return the probability of yes, or of grade 2 at level 2."""
        return curve.probability(self.score) * (self.top if level > 1 else 1.0)


class _Model(NamedTuple):
    curve: LogisticCurve
    cuts: Mapping[int, float]
    """By level: 1 for yes, 2 for grade 2."""


async def run_fit(options: CheckOptions) -> Fit:
    """Return curves and cuts for the kinds of `options.judge` that have enough labels in `options.labels`.

    Raises UsageError for a judge that cannot be fitted, and what a check raises.
    """
    judge = judges_of(options)["judge"]
    if not isinstance(judge, LocalJudge | DecisionJudge):
        raise UsageError(f"Only local judges and decision models can be fitted; got {judge.name!r}.")
    if not options.labels:
        raise UsageError("Name files of human labels: merilo judge check SPEC --fit --labels FILE.")
    card = judge.card if isinstance(judge, LocalJudge) else None
    if card is not None and card.questions:
        raise UsageError(f"The card of {judge.name} has options with temperatures, which --fit does not support.")
    needs = DECISIONS if card is None else LOCAL
    tasks = [task for task in needs.tasks if card is None or KIND[task].kind in card.answers.given]
    if not tasks:
        raise UsageError(f"{judge.name} answers neither support nor relevance, so there is nothing to fit.")
    only_file = card is None and str(options.out).endswith(_SUFFIX)
    options = replace(options, judge=_unfitted(judge), tasks=[task.value for task in tasks])
    check = await run_check(replace(options, out=None if only_file else options.out))
    if check.stopped is not None:
        raise UsageError(f"Not all records were judged, so nothing was fitted. {check.stopped}")
    fitted: list[KindFit] = []
    left_out: dict[str, str] = {}
    for kind in dict.fromkeys(KIND[task].kind for task in tasks):
        items = [each for task in tasks if KIND[task].kind == kind for each in check.items.get(task.value, ())]
        found = _fit_kind(kind, [each for each in items if _is_one_question(each)], needs, card)
        if isinstance(found, KindFit):
            fitted.append(found)
        else:
            left_out[kind] = found
    labels = {each.file: each.sha256 for each in check.files}
    source = f"judge check --fit {', '.join(labels)}, {FOLDS} folds"
    return Fit(judge.name, source, labels, tuple(fitted), left_out, card is not None)


def fit_path(out: str | PathLike[str]) -> Path:
    """Return the fit file that `--out` names: itself if it ends in .json, otherwise `fit.json` in the directory."""
    return Path(out) if str(out).endswith(_SUFFIX) else Path(out, f"fit{_SUFFIX}")


def _unfitted(judge: LocalJudge | DecisionJudge) -> LocalJudge | DecisionJudge:
    if isinstance(judge, DecisionJudge):
        return replace(judge, fits={})
    card = judge.card.model_copy(update={"calibration": {}})
    return LocalJudge(LocalProvider(replace(judge.provider.found, card=card)))


def _is_one_question(item: Item) -> bool:
    """Return True unless the label is about several statements, of which it is not known which are right."""
    return item.probability is not None and len(label_questions(item.record.task, label_sample(item.record))) == 1


def _record(item: Item, cluster: int, needs: Needs, *, has_card: bool) -> _Record:
    p = item.probability or 0.0
    top = 1.0 if has_card else min(1.0, (item.p_top or 0.0) / max(p, needs.tiny))
    return _Record(logit(p, needs.tiny), top, item.people, cluster)


def _fit_kind(kind: str, items: Sequence[Item], needs: Needs, card: Card | None) -> KindFit | str:
    """Return the fit of one kind; a sentence if there are too few labels."""
    # Over all tasks of the kind, whose records may share texts.
    clusters = _folds_of([each.record for each in items], needs)
    records = [_record(*each, needs, has_card=card is not None) for each in zip(items, clusters, strict=True)]
    graded = card is not None or all(each.record.grade is not None for each in items)
    levels = (1, 2) if kind == "relevance" and graded else (1,)
    if reason := _too_few(records, levels, needs):
        return reason
    chosen = [level for level in levels if _smaller_class(records, level) >= needs.of_class]
    models = _held_out(records, chosen)
    if models is None:
        return "The labels of a class are in fewer than two independent groups."
    model, languages = _fitted(records, chosen), {label_sample(each.record).resolved_language for each in items}
    wordings = [] if card else [wording_of(kind, language) for language in sorted(languages)]
    return KindFit(
        kind=kind,
        records=len(records),
        positive=sum(_labels(records, 1)),
        curve=model.curve,
        cuts=_cuts(kind, model.cuts),
        before=_quality(records, [_as_it_is(kind, card)] * len(records)),
        held_out=_quality(records, models),
        wordings={each.language: each.digest for each in wordings},
    )


def _folds_of(records: Sequence[Labelled], needs: Needs) -> list[int]:
    """Return the number of the group of each record, which is in one fold.

    Questions over one small corpus share their passages, so that all are one cluster. The two or three numbers of a
    decision model's fit are then tested on other questions about the same passages.
    """
    clusters = clusters_of(records)
    if needs.without is None or len({*clusters}) >= FOLDS:
        return clusters
    asked = [(each.query or each.response) for each in records]
    return [*map(asked.index, asked)]


def _too_few(records: Sequence[_Record], levels: Sequence[int], needs: Needs) -> str:
    """Return why these records are not enough, as a sentence; empty if they are."""
    if not records:
        return "There are no labels for it."
    if needs.without is not None and len(records) < needs.without:
        return f"There are {len(records)} labels; at least {needs.without} are needed."
    for level in levels if needs.without is None else ():
        if _smaller_class(records, level) < needs.of_class:
            what = f"grade {level} or more" if len(levels) > 1 else "yes"
            found = f"{sum(_labels(records, level))} of {len(records)} labels are {what}"
            return f"{found}; at least {needs.of_class} of each class are needed."
    if len({each.cluster for each in records}) < FOLDS:
        return f"The records share their texts; at least {FOLDS} independent groups are needed."
    return ""


def _labels(records: Sequence[_Record], level: int) -> list[bool]:
    return [each.label >= level for each in records]


def _smaller_class(records: Sequence[_Record], level: int) -> int:
    labels = _labels(records, level)
    return min(sum(labels), len(labels) - sum(labels))


def _fitted(records: Sequence[_Record], levels: Sequence[int]) -> _Model:
    curve = fit_curve([each.score for each in records], _labels(records, 1), shifted=1 in levels)
    cuts = {
        level: best_threshold([each.probability(curve, level) for each in records], _labels(records, level))
        for level in levels
    }
    return _Model(curve, cuts)


def _held_out(records: Sequence[_Record], levels: Sequence[int]) -> list[_Model] | None:
    """Return for each record the model that was fitted without its fold; a cluster is in one fold.

    None if the other folds lack a class.
    """
    clusters = sorted({each.cluster for each in records})
    random.Random(0).shuffle(clusters)  # noqa: S311  folds, not secrets
    fold = {cluster: place % FOLDS for place, cluster in enumerate(clusters)}
    rests = [[each for each in records if fold[each.cluster] != number] for number in range(FOLDS)]
    if any(_smaller_class(rest, level) == 0 for rest in rests for level in {1, *levels}):
        return None
    models = [_fitted(rest, levels) for rest in rests]
    return [models[fold[each.cluster]] for each in records]


def _quality(records: Sequence[_Record], models: Sequence[_Model]) -> Quality:
    """Return how well the model of each record fits its label: yes or no, with the usual cut if the model has none."""
    chances = [each.probability(own.curve) for each, own in zip(records, models, strict=True)]
    judged = [p >= own.cuts.get(1, CUT) for p, own in zip(chances, models, strict=True)]
    labels = _labels(records, 1)
    return Quality(log_loss(chances, labels), balanced_accuracy(judged, labels))


def _as_it_is(kind: str, card: Card | None) -> _Model:
    if card is None:
        return _Model(_AS_IT_IS, {})
    answer, known = card.answers.given[kind], card.calibration_of(kind)
    cut = answer.cuts[0] if isinstance(answer, Graded) else answer.cut if isinstance(answer, YesNo) else CUT
    return _Model(_AS_IT_IS if known is None else LogisticCurve(known.scale, known.shift), {1: cut})


def _cuts(kind: str, fitted: Mapping[int, float]) -> tuple[float, ...]:
    """Return the cuts of a kind, lowest first. Labels of sufficiency are yes or no: only its higher cut is fitted."""
    first = fitted.get(1, CUT)
    if kind == "sufficiency":
        return min(first, CUT), first
    return (first, max(first, fitted.get(2, CUT))) if kind == "relevance" else (first,)


def fit_file(fit: Fit) -> dict[str, Any]:  # Any: JSON
    """Return the fit file of a decision model, with the kinds whose fit is used."""
    kinds = {each.kind: {**_kind_record(each), "wordings": dict(each.wordings)} for each in fit.used}
    return {"format": FORMAT, "judge": fit.judge, "labels": dict(fit.labels), "kinds": kinds}


def fit_record(fit: Fit) -> dict[str, Any]:  # Any: JSON
    """Return the fits as JSON."""
    return {
        "judge": fit.judge,
        "source": fit.source,
        "kinds": {each.kind: {**_kind_record(each), "used": not each.problem} for each in fit.kinds},
        "left_out": dict(fit.left_out),
    }


def _kind_record(fit: KindFit) -> dict[str, Any]:  # Any: JSON
    return {
        "records": fit.records,
        "positive": fit.positive,
        "scale": _short(fit.curve.scale),
        "shift": _short(fit.curve.shift),
        "cuts": [*map(_short, fit.cuts)],
        "before": {name: _short(value) for name, value in fit.before._asdict().items()},
        "held_out": {name: _short(value) for name, value in fit.held_out._asdict().items()},
    }


def _short(value: float) -> float:
    """Round to six significant digits, as further digits differ between machines."""
    return float(f"{value:.6g}")


def fit_page(fit: Fit, width: int, path: Path | None = None) -> Page:
    """Return the fits, and the lines to put into the card or the fit file that was written."""
    page = Page(width)
    page.text(f"{fit.judge}: {fit.source}", tone=Tone.STRONG)
    for each in fit.kinds:
        page.blank()
        page.text(f"{each.kind}: {each.records} records, {each.positive} positive")
        rows = [("card as it is" if fit.has_card else "as it is", each.before), ("fitted, held out", each.held_out)]
        shown = [(name, f"{loss:.3f}", f"{100 * accuracy:.1f} %") for name, (loss, accuracy) in rows]
        page.table([("", "log loss", "balanced accuracy"), *shown], [Tone.STRONG, Tone.PLAIN, Tone.PLAIN])
        if each.problem:
            page.text(each.problem, tone=Tone.BAD)
    page.entries([(kind, f"not fitted. {reason}") for kind, reason in fit.left_out.items()])
    if fit.used and fit.has_card:
        page.heading("Put these lines into judge.toml")
        for line in _card_lines(fit, fit.used):
            page.line(line)
    elif fit.used:
        wrote = "--out FIT.json writes the fit." if path is None else f"The fit is in {path}."
        page.text(f'{wrote} Use it with --fit FILE, or with fit = "FILE" under [judge] in merilo.toml.')
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
