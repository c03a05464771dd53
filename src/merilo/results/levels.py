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
from merilo.runs.run import open_store
from merilo.stats.agreement_intervals import Agreement, agreement
from merilo.stats.levels import Level, fit_level

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.judging.ask import Answer
    from merilo.judging.questions import Question
    from merilo.results.sample_detail import GivenLabel
    from merilo.runs.outcomes import OutcomeRecord
    from merilo.runs.records import StoredQuestion
    from merilo.runs.run import Run
    from merilo.runs.store import Store

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
    same = sum(row[at] for at, row in enumerate(found.confusion.counts))
    agreed = f"the judge agrees with your labels on {same:,} of {found.items:,}"
    if ranks is not None and ranks[0] > _NEAR_CHANCE:
        return f"AUROC {number(found.auroc.value)}, level off: {agreed}."
    return f"{agreed}: do not use its verdicts."
