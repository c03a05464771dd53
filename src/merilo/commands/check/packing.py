"""Test whether a judge may be asked many questions in one request (`merilo judge check SPEC --packing`).

Questions about labelled records are asked in each packing, next to questions and contexts of other records, as a run
with several metrics asks them. Every request is sent three times: moves from one to the next are noise of the model::

    labelled record → its questions, eight others, four more contexts → one bundle per view, by packing
        → probabilities → mean move from `each`, decisions that change, AUROC, kappa

A language model gives no probabilities: its yes counts as 1.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import replace
from itertools import islice
from statistics import fmean, mode
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.commands.check.items import KIND, items_of, label_id, label_questions, label_sample
from merilo.commands.check.run import label_files
from merilo.commands.evaluate.settings import judges_of
from merilo.data.labels import Task
from merilo.data.sentences import sentences
from merilo.engine.budget import check_prices, spent_record
from merilo.engine.dispatcher import Dispatcher
from merilo.engine.neighbours import answers_of
from merilo.errors import UsageError
from merilo.judges.base import PACK_SIZE, Packing
from merilo.judges.decisions import DecisionJudge
from merilo.judges.llm import LLMJudge
from merilo.judging.kinds.addresses import Addresses
from merilo.judging.kinds.relevance import Relevance
from merilo.judging.kinds.support import Support
from merilo.judging.kinds.usefulness import Usefulness
from merilo.judging.questions import Pack
from merilo.judging.verdicts import Verdict
from merilo.judging.views import Bundle
from merilo.metrics.base import Evidence, EvidenceTarget, Score
from merilo.rendering.page import Page, Tone
from merilo.rendering.wording import NONE, count, spent_text
from merilo.stats.agreement import auroc, cohen_kappa

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from merilo.commands.check.items import Item
    from merilo.commands.check.options import CheckOptions
    from merilo.data.labels import Labelled
    from merilo.data.sample import Sample
    from merilo.judging.questions import Question

    _Judge = DecisionJudge | LLMJudge
    Sends = tuple[Item, ...]
    """The judgements of one record, one for each time that its requests were sent."""

RECORDS: Final = 40
NEIGHBOURS: Final = 8
"""Number of questions about other records that are asked next to those of a record."""
_REPEATS: Final = 3
_MIN_LIMIT: Final = 0.05
_NOISE_FACTOR: Final = 3
_MAX_CHANGED_RATE: Final = 0.05
_MAX_AUROC_LOSS: Final = 0.05
"""Loss of agreement with people up to which a packing is advised for its independence."""


class PackingResult(NamedTuple):
    """A packing compared with `each`."""

    packing: str
    auroc: float | None
    """Of the probabilities against human labels, over all tasks; None if all labels are equal."""
    kappa: float | None
    """Of the decisions of the first replies, yes or no, against human labels; None if all labels are equal."""
    move: float
    """Mean absolute difference of the probabilities."""
    changed: int
    """Number of other decisions, with a probability that differs by more than the limit."""
    fine: bool
    """True if at most 5 % of the decisions change, and probabilities move by at most the limit."""


class PackingTest(NamedTuple):
    """The packings of one judge."""

    judge: str
    records: int
    failed: int
    """Number of records with a question without a valid answer; they are not compared."""
    noise: float
    """Mean absolute difference of the probabilities in two replies to the same request."""
    limit: float
    """The largest difference of a probability that is attributed to noise."""
    results: tuple[PackingResult, ...]
    usage: Mapping[str, Any]  # Any: numbers and nulls

    @property
    def advice(self) -> str:
        """The packing to use, as a sentence."""
        first, advised = self.results[0], next(each for each in self.results if each.fine)
        effect = f"{first.changed} of {self.records} decisions change, mean move {first.move:.2f}"
        if first.fine:
            return f"Packing {first.packing} is fine: {effect}."
        if first.auroc is not None and advised.auroc is not None and first.auroc > advised.auroc + _MAX_AUROC_LOSS:
            agree = f"{first.packing} agrees better with the labels than {advised.packing}"
            return f"Answers depend on the packing ({effect}), and {agree}: compare both with more labels."
        return f"Use --judged {advised.packing}: with {first.packing}, {effect}."


class _Case(NamedTuple):
    """A labelled record with its questions, and others that are asked before them."""

    record: Labelled
    sample: Sample
    own: tuple[Question[Any], ...]
    others: tuple[Question[Any], ...]


async def run_packing(options: CheckOptions) -> PackingTest:
    """Compare the packings of `options.judge`. Raises UsageError for other judges, and what a check raises."""
    judge, limits, began = judges_of(options)["judge"], options.limits, time.monotonic()
    if not isinstance(judge, DecisionJudge | LLMJudge):
        raise UsageError(f"--packing tests models that are asked by requests, not {judge.name!r}.")
    check_prices(limits.budget, [judge], options.price)
    cases = [*islice(_cases(options, judge), options.number or RECORDS)]
    async with Dispatcher(limits.of_requests, budget=limits.budget, price=options.price) as dispatcher:
        try:
            found = {packing: await _judged(cases, _packed(judge, packing), dispatcher) for packing in Packing}
        except asyncio.CancelledError:
            if dispatcher.reached is None:
                raise
            raise UsageError(f"Not all packings were asked. {dispatcher.reached.sentence}") from None
    usage = spent_record(dispatcher.spending.ledger.balance, limits.unanswered)
    return _compared(judge.name, found, {**usage, "seconds": round(time.monotonic() - began, 3)})


def _packed(judge: _Judge, packing: Packing) -> _Judge:
    return replace(judge, judged=packing) if isinstance(judge, LLMJudge) else replace(judge, packing=packing)


# -- what is asked ------------------------------------------------------------------------------------


def _cases(options: CheckOptions, judge: _Judge) -> Iterator[_Case]:
    """Yield the records with the lowest digests, with questions and contexts of records that share no text."""
    read = [each for _, own in label_files(options.labels) for each in own if not each.constructed]
    wanted = {*(options.tasks or Task)} - {Task.SENTENCE_RELEVANCE}  # its verdicts have no probability per label
    records = [each for each in read if each.task in wanted and KIND[each.task] in judge.answers]
    records.sort(key=lambda each: hashlib.blake2b(label_id(each).encode()).digest())
    for place, record in enumerate(records):
        sample = label_sample(record)
        own = label_questions(record.task, sample)
        strangers = [each for each in (*records[place + 1 :], *records[:place]) if not {*each.same} & {*record.same}]
        strangers.sort(key=lambda each: each.source != record.source)  # the same source first: texts of one kind
        if record.task is Task.CHUNK_RELEVANCE:  # one context among four others
            more = [text for each in strangers for text in each.texts[:1]]
            record_among = replace(record, texts=(*more[:2], *record.texts, *more[2:4]))
            sample = label_sample(replace(record_among, language=sample.resolved_language))
        if own:
            yield _Case(record, sample, own, tuple(_neighbour(own[0], each) for each in strangers[:NEIGHBOURS]))


def _neighbour(question: Question[Any], stranger: Labelled) -> Question[Any]:
    """Return a question about a text of another record that shares the view of this question."""
    text = next(iter(sentences(stranger.response or " ".join(stranger.texts), stranger.language)), "")
    if isinstance(question, Relevance):
        return Usefulness(question.user_input, text, question.sentences, language=question.language)
    if isinstance(question, Addresses):
        return replace(question, statement=text)
    contexts: tuple[str, ...] = getattr(question, "contexts", ())  # a field of the other kinds that have tasks
    return Support(text, contexts, language=question.language)


async def _judged(cases: Sequence[_Case], judge: _Judge, dispatcher: Dispatcher) -> list[Sends]:
    """Return the judgements of each record, in order; fewer than three if a question has no valid answer."""
    found = await asyncio.gather(*(_item(case, judge, dispatcher) for case in cases for _ in range(_REPEATS)))
    places = range(0, len(found), _REPEATS)
    return [tuple(each for each in found[place : place + _REPEATS] if each is not None) for place in places]


async def _item(case: _Case, judge: _Judge, dispatcher: Dispatcher) -> Item | None:
    bundles = _packs(case, judge) if isinstance(judge, LLMJudge) else _bundles(case, judge)
    found = await asyncio.gather(*(answers_of(judge, bundle, dispatcher) for bundle in bundles))
    answers = {
        each: one
        for bundle, own in zip(bundles, found, strict=True)
        for each, one in zip(bundle.questions, own, strict=True)
    }
    verdicts = [each for question in case.own if isinstance(each := answers[question], Verdict)]
    if len(verdicts) < len(case.own):
        return None
    evidence = tuple(Evidence(EvidenceTarget.STATEMENT, place, each) for place, each in enumerate(verdicts))
    return items_of([case.record], {case.record.id: Score(1.0, evidence=evidence)})[0]


def _packs(case: _Case, judge: LLMJudge) -> list[Pack]:
    """Return the packs with questions of the record, as a run makes them; these come after the others."""
    first = case.own[0]
    if type(first) not in judge.together:
        return [Pack((each,)) for each in case.own]
    others = case.others
    if isinstance(first, Relevance):
        found = (replace(first, sentences=each.sentences) for each in case.sample.contexts)
        others = tuple(each for each in found if each not in case.own)
    room = PACK_SIZE - min(len(case.own), PACK_SIZE)
    asked = (*others[:room], *case.own)
    return [Pack(asked[place : place + PACK_SIZE]) for place in range(0, len(asked), PACK_SIZE)]


def _bundles(case: _Case, judge: DecisionJudge) -> list[Bundle]:
    """Return the bundles with questions of the record, as a run makes them; these come after the others."""
    by_view: dict[bytes, Bundle] = {}
    for question in (*case.others, *case.own):
        view = judge.view(question, case.sample)
        if view is not None:
            before = by_view.get(view.digest, Bundle((), view)).questions
            by_view[view.digest] = Bundle((*before, question), view)
    return [bundle for bundle in by_view.values() if not {*case.own}.isdisjoint(bundle.questions)]


# -- what the answers show ----------------------------------------------------------------------------


def _compared(judge: str, found: Mapping[Packing, Sequence[Sends]], usage: Mapping[str, Any]) -> PackingTest:
    whole = [row for row in zip(*found.values(), strict=True) if {*map(len, row)} == {_REPEATS}]
    if not whole:
        raise UsageError(f"No labelled record got valid answers from {judge} in all packings.")
    # of three probabilities, the mean absolute difference of two is 2/3 of their range
    noise = fmean(2 * (max(ps) - min(ps)) / _REPEATS for row in whole for ps in map(_probabilities, row))
    limit, columns = max(_MIN_LIMIT, _NOISE_FACTOR * noise), [*zip(*whole, strict=True)]
    results = tuple(_result(packing, own, columns[-1], limit) for packing, own in zip(found, columns, strict=True))
    failed = len(found[Packing.QUESTION]) - len(whole)
    return PackingTest(judge, len(whole), failed, noise, limit, results, usage)


def _result(packing: str, own: Sequence[Sends], alone: Sequence[Sends], limit: float) -> PackingResult:
    means, others = ([fmean(_probabilities(sends)) for sends in each] for each in (own, alone))
    moves = [abs(mean - other) for mean, other in zip(means, others, strict=True)]
    differ = [_decision(sends) != _decision(other) for sends, other in zip(own, alone, strict=True)]
    changed = sum(move > limit for move, differs in zip(moves, differ, strict=True) if differs)
    fine = changed <= _MAX_CHANGED_RATE * len(own) and fmean(moves) <= limit
    labels = [sends[0].people >= 1 for sends in own]
    kappa = cohen_kappa(labels, [(sends[0].judge or 0) >= 1 for sends in own])
    return PackingResult(str(packing), auroc(labels, means), kappa, fmean(moves), changed, fine)


def _probabilities(sends: Sends) -> list[float]:
    return [min(each.judge or 0.0, 1.0) if each.probability is None else each.probability for each in sends]


def _decision(sends: Sends) -> object:
    return mode(each.judge for each in sends)


def packing_record(test: PackingTest) -> dict[str, Any]:  # Any: JSON
    """Return the test as JSON."""
    return {**test._asdict(), "results": [each._asdict() for each in test.results], "advice": test.advice}


def packing_page(test: PackingTest, width: int) -> Page:
    """Return the table of packings and the advice."""
    page, rows = Page(width), list[tuple[str, ...]]([("packing", "AUROC", "kappa", "mean move", "decisions changed")])
    page.text(f"{test.judge}: {count(test.records, 'record')} in three packings", tone=Tone.STRONG)
    page.blank()
    for each in test.results:
        ranked, agreed = (NONE if own is None else f"{own:.2f}" for own in (each.auroc, each.kappa))
        rows.append((each.packing, ranked, agreed, f"{each.move:.3f}", f"{each.changed} of {test.records}"))
    page.table(rows, [Tone.STRONG, *(Tone.PLAIN if each.fine else Tone.BAD for each in test.results)])
    page.text(
        f"Compared with each. Noise of repeated requests: {test.noise:.3f}. A decision counts as changed if its "
        f"probability moves by more than {test.limit:.2f}. AUROC is over all tasks, to compare packings only.",
        tone=Tone.QUIET,
    )
    if test.failed:
        page.text(f"Left out: {count(test.failed, 'record')} without a valid answer.")
    page.text(test.advice, tone=Tone.STRONG)
    page.text(f"Cost: {spent_text(test.usage)}.")
    return page
