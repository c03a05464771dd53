"""The judge's questions about a few samples, and the value of a metric with human labels as answers to them.

The value is computed by the metric itself: its plan is run again with the recorded answers, and with human labels in
place of the judge's verdicts (design/labels-and-correction.md).
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from merilo.engine.plan_run import PlanRun
from merilo.engine.repeated import STRIDE
from merilo.judging.registry import KINDS, LABELLED_KINDS
from merilo.judging.verdicts import DecisionVerdict, Verdict, is_not_judged, probability_of
from merilo.metrics.base import Failed, Metric, Score, Undefined
from merilo.metrics.registry import asks_judge, known_metric
from merilo.results.faults import as_category, category_source
from merilo.results.records import grouped
from merilo.runs.files import missing_text_error
from merilo.runs.run import Run, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from merilo.data.sample import Sample
    from merilo.judging.ask import Answer
    from merilo.judging.questions import LabelForm, Question
    from merilo.results.scores import RunScores
    from merilo.runs.outcomes import OutcomeRecord, Result
    from merilo.runs.records import StoredQuestion
    from merilo.runs.store import Store


_NEAR: Final = 1e-9
_PREPARING: Final = frozenset(name for name, kind in KINDS.items() if kind.prepares)
"""Kinds of questions that only prepare what is judged, such as the extraction of statements."""
_PROBES: Final = 6
"""Number of label combinations that are tried to see how a metric depends on labels."""


@dataclass(frozen=True, slots=True)
class Item:
    """One question about a sample that annotators can answer too."""

    mark: str
    """32 hexadecimal digits that identify the question's text, independent of who is asked."""
    question: Question[Any]
    form: LabelForm
    judge: str
    """The judge's verdict as a label."""
    probability: float | None
    """The judge's own probability of a yes; None if it gives none."""
    averaged: bool = False
    """True if metrics average this probability, so that the label alone does not determine the judge's value."""
    judged: bool = True
    """False if the judge did not judge it: `judge` is then its more likely label."""


@dataclass(slots=True)
class JudgedSample:
    """One sample with the judge's value of a metric, which can compute the value with other labels."""

    sample: Sample
    metric: Metric | None
    """None if the metric cannot be built here; then its value cannot be computed from labels."""
    value: float
    """The score; for a sample that the judge did not judge, by the probabilities of the items that it left open."""
    items: tuple[Item, ...]
    """Empty if the sample has no question that annotators could answer."""
    by_rule: bool
    """True if there was nothing to judge, for example because every context is blank."""
    text: str
    """The metric's full text."""
    answers: Mapping[tuple[bytes, int, str], Answer]
    """The recorded answers, by content, draw and role; under a blank role, the answer of the role asked first."""
    averaged: bool = False
    """True if the value averages probabilities of the judge."""
    first_draw: float | None = None
    """The value of the first draw if `value` is a mean over draws; otherwise None."""
    _values: dict[tuple[bool | str, ...], float | str] = field(
        default_factory=dict[tuple[bool | str, ...], "float | str"]
    )

    def with_labels(self, labels: Mapping[str, str], *, evidence: bool = False) -> float | str:
        """Return the metric's value if items, by their mark, have these labels; or a text on why it has none.

        Other items keep the judge's verdict. `evidence`: convert labels to verdicts that name everything as their
        evidence, instead of nothing.
        """
        key: tuple[bool | str, ...] = (evidence, *[labels.get(item.mark, "") for item in self.items])
        if key not in self._values:
            self._values[key] = self._computed(labels, evidence=evidence)
        return self._values[key]

    def _computed(self, labels: Mapping[str, str], *, evidence: bool) -> float | str:
        if self.metric is None:
            return "the metric cannot be computed here"
        result = replayed(
            self.metric, self.text, self.sample, lambda each: (b"", self._answer(each, labels, evidence=evidence))
        )
        if result is None:
            return "with these labels the metric asks questions that the judge was not asked"
        match result.outcome:
            case Score():
                return float(result.outcome.value)
            case Undefined():
                return result.outcome.reason
            case Failed():
                return result.outcome.error.message

    def reads_labels(self) -> bool:
        """Return True if labels alone determine the value.

        The judge's own labels must reproduce the value, and the evidence that a verdict names must not change it.
        Verdicts whose probability the value averages stand for themselves.
        """
        own = self.with_labels({item.mark: item.judge for item in self.items if not self._averages(item)})
        value = self.value if self.first_draw is None else self.first_draw
        if isinstance(own, str) or abs(own - value) > _NEAR:
            return False
        return all(self.with_labels(probe) == self.with_labels(probe, evidence=True) for probe in self._probes())

    def adds_up(self) -> bool:
        """Return True if the value is a sum over the items, so it can be estimated from labels of some of them."""
        if len(self.items) == 1:
            return True
        for probe in [{item.mark: item.judge for item in self.items}, *self._probes()]:
            found = self.with_labels(probe)
            parts = [self._worth(item, probe[item.mark]) for item in self.items]
            known = [part for part in parts if part is not None]
            if isinstance(found, str) or len(known) < len(parts):
                return False
            if abs(found - self._base() - sum(known)) > _NEAR:
                return False
        return True

    def from_some(self, said: Mapping[str, Sequence[str]]) -> float:
        """Return the value estimated from labels of some items (by mark, one label per annotator).

        Requires `adds_up`. Items are weighted by how much they can change the value. With labels for all items, the
        result is exact.
        """
        return self._estimated(said)

    def by_judge_from_some(self, marks: Collection[str]) -> float:
        """Return the value estimated from the judge's own verdicts on these items, as `from_some` does from labels.

        Requires `adds_up`.
        """
        own = {item.mark: (None if self._averages(item) else item.judge,) for item in self.items if item.mark in marks}
        return self._estimated(own)

    def _estimated(self, said: Mapping[str, Sequence[str | None]]) -> float:
        total = part = found = 0.0
        for item in self.items:
            reach = self._reach(item)
            total += reach
            if labels := said.get(item.mark):
                part += reach
                found += sum(self._worth(item, label) or 0.0 for label in labels) / len(labels)
        return self._base() + (found * total / part if part else 0.0)

    def _averages(self, item: Item) -> bool:
        """Return True if the value uses the probability of the verdict on this item."""
        return self.averaged and item.averaged

    def _answer(self, question: Question[Any], labels: Mapping[str, str], *, evidence: bool) -> Answer | None:
        content = question.content
        mark = content.hex()
        if mark in labels:
            verdict: Verdict = question.verdict_of_label(labels[mark], evidence=evidence)
            return verdict
        return _recorded(self.answers, question)

    def _base(self) -> float:
        found = self.with_labels(self._lowest())
        return 0.0 if isinstance(found, str) else found

    def _reach(self, item: Item) -> float:
        """Return the largest change of the value by a label of this item."""
        return max(abs(self._worth(item, label) or 0.0) for label in item.form.labels)

    def _worth(self, item: Item, label: str | None) -> float | None:
        """Return the change of the value by this label, all other items at their first label; None if undefined.

        A label of None is the judge's own verdict.
        """
        lowest = self._lowest()
        changed = {mark: each for mark, each in lowest.items() if mark != item.mark}
        if label is not None:
            changed[item.mark] = label
        low, found = self.with_labels(lowest), self.with_labels(changed)
        return None if isinstance(low, str) or isinstance(found, str) else found - low

    def _lowest(self) -> dict[str, str]:
        return {item.mark: item.form.labels[0] for item in self.items}

    def _probes(self) -> Iterator[dict[str, str]]:
        """Yield labels to try: the first label for all, the last for all, and some combinations derived by hashing."""
        for number in range(_PROBES):
            yield {item.mark: item.form.labels[_dealt(item, number, len(item.form.labels))] for item in self.items}


def _dealt(item: Item, number: int, labels: int) -> int:
    if number < 2:
        return 0 if number == 0 else labels - 1
    return blake2b(f"{number} {item.mark}".encode(), digest_size=4).digest()[0] % labels


def judged_samples(run: Run, metrics: Collection[str], ids: Collection[str]) -> dict[tuple[str, str], JudgedSample]:
    """Return, by sample and metric, the samples with these ids that these metrics scored or left to people.

    A metric leaves a sample to people if it is undefined because the judge did not judge an item. A category of
    `answering`, such as `answering.wrong`, is read from the records of `answering`. Raises RunError.
    """
    built = {text: _metric(text) for text in metrics}
    sources = grouped((text if text in run.manifest.metrics else category_source(text), text) for text in metrics)
    found: dict[tuple[str, str], JudgedSample] = {}
    with closing(open_store(run)) as store:
        for record in run.records_of(frozenset(ids), frozenset(sources)):
            for text in sources[record["metric"]] if record["outcome"] != "failed" else ():
                if (case := _judged(run.path, store, record, text, built[text])) is not None:
                    found[record["sample"], text] = case
    return found


def with_not_judged(scores: RunScores) -> RunScores:
    """Return the scores with a value also for each sample that the judge did not judge and people can.

    The value is the metric's, computed from the judge's verdicts and, of each item that it left open, its probability,
    or 0.5 if it gave none. It does not depend on labels, so that a correction by random labels stays unbiased.
    """
    columns = dict(scores.columns)
    for text, column in scores.columns.items():
        missing = [at for at, there in enumerate(column.undefined.tolist()) if there] if asks_judge(text) else []
        cases = judged_samples(scores.run, (text,), {scores.ids[at] for at in missing}) if missing else {}
        places = {at: case.value for at in missing if (case := cases.get((scores.ids[at], text))) is not None}
        if places:
            values, scored = column.values.copy(), column.scored.copy()
            values[[*places]], scored[[*places]] = [*places.values()], True
            columns[text] = replace(column, values=values, scored=scored)
    return replace(scores, columns=columns)


def _judged(path: Path, store: Store, record: OutcomeRecord, text: str, metric: Metric | None) -> JudgedSample | None:
    sample = store.sample(record["sample"])
    if sample is None:
        raise missing_text_error(path, record["sample"])
    trail = [store.asked(bytes.fromhex(key)) for key in dict.fromkeys(record.get("trail", ()))]
    # Only the first draw of repeated questions: the metric asks each question once when labels are tried.
    asked = [each for each in trail if each is not None and each.question.draw < STRIDE]
    not_judged = {each.key for each in asked if is_not_judged(each.answer)}
    asked = [replace(each, answer=_likely(each)) if each.key in not_judged else each for each in asked]
    answers: dict[tuple[bytes, int, str], Answer] = {}
    for each in asked:
        question = each.question
        answers[question.content, question.draw, question.role] = each.answer
        answers.setdefault((question.content, question.draw, ""), each.answer)
    if record["outcome"] != "score":
        source = _metric(record["metric"]) if not_judged else None
        if source is None:
            return None
        result = replayed(source, record["metric"], sample, lambda each: (b"", _recorded(answers, each)))
        if result is None or not isinstance(result.outcome, Score):
            return None
        record = result.record()
    record = as_category(record, text)
    kinds = {piece["kind"] for piece in record.get("evidence", ())}
    readable = metric is not None and kinds <= LABELLED_KINDS
    items = {item.mark: item for item in _items(asked, kinds, not_judged)} if readable else {}
    by_rule = readable and not items and {each.question.kind for each in asked} <= _PREPARING
    return JudgedSample(
        sample,
        metric,
        record.get("value", 0.0),
        tuple(items.values()),
        by_rule,
        text,
        answers,
        record.get("averaged", False),
        next(iter(record.get("draws", ())), None),
    )


def _likely(asked: StoredQuestion) -> Answer:
    """Return the more likely verdict on a question that the judge did not judge, with its probability of a yes."""
    form, probability = asked.question.label_form(), probability_of(asked.answer)
    if form is None:
        return asked.answer
    p_yes = 0.5 if probability is None else probability
    verdict: Verdict = asked.question.verdict_of_label(form.labels[-1 if p_yes >= 0.5 else 0])
    own: dict[str, Any] = {"probability": p_yes, "averaged": True}  # fields of every decision, not of the base
    return replace(verdict, **own) if isinstance(verdict, DecisionVerdict) else verdict


def _recorded(answers: Mapping[tuple[bytes, int, str], Answer], question: Question[Any]) -> Answer | None:
    """Return the recorded answer to a question, of its own role if that was asked; None if it was not asked."""
    content = question.content
    found = answers.get((content, question.draw, question.role))
    return answers.get((content, question.draw, "")) if found is None else found


def replayed(
    metric: Metric, text: str, sample: Sample, answer: Callable[[Question[Any]], tuple[bytes, Answer | None]]
) -> Result | None:
    """Return the metric's result from recorded answers with their keys; None if a question has no answer."""
    plan_run = PlanRun(metric, text, sample).start()
    while plan_run.step is not None:
        found = [answer(each) for group in plan_run.step for each in group]
        known = [(key, each) for key, each in found if each is not None]
        if len(known) < len(found):
            plan_run.close()
            return None
        plan_run.send(known)
    return plan_run.result()


def mark_of(question: Question[Any]) -> str:
    """Return 32 hexadecimal digits that identify a question's text, independent of who is asked."""
    return question.content.hex()


def _items(asked: Sequence[StoredQuestion], kinds: Collection[str], not_judged: Collection[bytes]) -> Iterator[Item]:
    for each in asked:
        form = each.question.label_form() if each.question.kind in kinds else None
        if form is not None and isinstance(each.answer, Verdict):
            mark = mark_of(each.question)
            averaged = isinstance(each.answer, DecisionVerdict) and each.answer.averaged
            if each.question.history:
                form = replace(form, texts=(("history", "\n".join(each.question.history)), *form.texts))
            label, probability = each.answer.as_label(), probability_of(each.answer)
            yield Item(mark, each.question, form, label, probability, averaged, each.key not in not_judged)


def _metric(text: str) -> Metric | None:
    """Return the metric of this text; None if it is unknown here or bound to the names of its judges."""
    found = known_metric(text)
    return None if hasattr(found, "for_judges") else found
