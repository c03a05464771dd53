"""Dry runs of plans: no request is sent. Each plan receives likely verdicts, and its questions are counted.

Questions are divided into units and keyed as in a run. So answers that the run or the cache holds cost nothing, and
questions shared by several metrics count once. Tokens are characters / 4 until the run has measured its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from merilo.engine.amounts import Amount, tokens_in, tokens_of
from merilo.engine.answer_store import bundle_of
from merilo.engine.plan_run import PlanRun
from merilo.judges.local.judge import LocalWork
from merilo.judging.digests import digest_text
from merilo.judging.questions import Pack
from merilo.judging.reply_parsing import likely_reply
from merilo.providers.base import Provider, Usage
from merilo.providers.decision_request import DecisionRequest
from merilo.providers.decisions import DecisionEndpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from merilo.data.sample import Sample
    from merilo.engine.answer_store import AnswerStore, KnownAnswers, WorkUnit
    from merilo.engine.budget import Pricer
    from merilo.judges.base import OutgoingRequest
    from merilo.metrics.base import Metric
    from merilo.runs.directory import MeasuredUsage

    _Baskets = dict[tuple[int, bytes, int], list[WorkUnit]]
    """Bundled questions of one sample, by judge, view and round. A run asks the questions of all rounds at once, unless
    another judge has to answer in between."""

_AT_HOME: Final = frozenset({"embedded", "scripted", "splitter"})
"""Fingerprint names of judges that answer on this machine without a request."""


@dataclass(slots=True)
class QuestionCounts:
    """Questions and amounts of one metric over the samples so far."""

    alone: Amount = field(default_factory=Amount)
    """Its amount if it is the only metric."""
    added: Amount = field(default_factory=Amount)
    """Its amount in addition to the metrics before it."""
    questions: int = 0
    held: int = 0
    """Questions that the run or the cache has answered already."""
    keys: set[bytes] = field(default_factory=set[bytes])
    """Of the questions counted in `alone`."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A work unit with the first requests of its judge session, and the input tokens of each."""

    unit: WorkUnit
    sends: tuple[OutgoingRequest, ...]
    tokens: tuple[int, ...]

    @classmethod
    def of(cls, unit: WorkUnit) -> _Asked:
        sends = _sends(unit)
        # a decision model reads the state and the questions as they are sent
        tokens = (
            tokens_in(len(send.provider.text_of(send.request)))
            if isinstance(send.provider, DecisionEndpoint) and isinstance(send.request, DecisionRequest)
            else tokens_of(send.request)
            for send in sends
        )
        return cls(unit, sends, tuple(tokens))


class DryRun:
    """Counts the questions that the plans of some metrics would ask; needs 16 bytes of memory per question."""

    def __init__(
        self,
        answers: AnswerStore,
        held: Callable[[WorkUnit], KnownAnswers],
        usd: Pricer,
        measured: Mapping[tuple[str, bytes], MeasuredUsage],
    ) -> None:
        """`held` looks up known answers; `measured` are means by judge and digest of the rubric."""
        self.counted: dict[str, QuestionCounts] = {}
        self.unpriced: dict[str, Provider] = {}
        """Providers whose price is unknown, by their name and address."""
        self.measured_used = False
        self.local = LocalWork()
        """Requests to local models."""
        self._answers = answers
        self._held = held
        self._usd = usd
        self._measured = measured
        self._keys: set[bytes] = set()

    def add(self, sample: Sample, metrics: Mapping[str, Metric]) -> None:
        """Run the plans of all metrics on one sample."""
        together: _Baskets = {}
        before = Amount()
        for text, metric in metrics.items():
            alone: _Baskets = {}
            counted = self.counted.setdefault(text, QuestionCounts())
            self._plan_run(PlanRun(metric, text, sample).start(), counted, alone, together)
            counted.alone += self._bundled(alone)
            now = self._bundled(together)
            counted.added += now + before.times(-1)
            before = now

    def _bundled(self, baskets: _Baskets) -> Amount:
        """Return the amount of the requests about whole views."""
        return sum((self._estimated(_Asked.of(bundle_of(units))) for units in baskets.values()), Amount())

    def _plan_run(self, plan_run: PlanRun, counted: QuestionCounts, alone: _Baskets, together: _Baskets) -> None:
        sample = plan_run.sample
        known_here = turn = 0
        while plan_run.step is not None:
            units = self._answers.units(plan_run.step, sample)
            waits = False
            held: KnownAnswers = {}
            for unit in units:
                found = self._held(unit)
                held |= found
                known_here += len(found)
                counted.questions += len(unit.keys)
                rest = unit.without(found)
                if rest is not None:
                    held |= {key: question.guess() for key, question in zip(rest.keys, rest.questions, strict=True)}
                    asked = _Asked.of(rest)
                    if rest.bundled:
                        _collect(rest, turn, counted.keys, alone)
                        _collect(rest, turn, self._keys, together)
                    else:
                        self._count(asked, counted)
                        waits = waits or bool(asked.sends)
            turn += waits
            plan_run.send([(key, held[key]) for unit in units for key in unit.keys])
        counted.held += known_here

    def _count(self, asked: _Asked, counted: QuestionCounts) -> None:
        if not asked.sends:
            return
        whole: Amount | None = None  # the amount of the whole unit, computed once
        for keys in (counted.keys, self._keys):
            rest = asked.unit.without(keys)
            if rest is None:
                continue
            keys.update(rest.keys)
            left = asked if rest is asked.unit else _Asked.of(rest)
            if left is asked:
                new = whole = whole or self._amount(asked)
            else:
                new = self._amount(left)
            if keys is counted.keys:
                counted.alone += new
            else:
                counted.added += new
                for send in left.sends:
                    self.local.add(send)

    def _amount(self, asked: _Asked) -> Amount:
        unit = asked.unit
        means = self._measured.get((unit.judge.name, digest_text(unit.judge.rubric(unit.asked))))
        if means is not None:
            self.measured_used = True
            tokens = Usage(round(means.input_tokens), round(means.output_tokens))
            usd = self._price(asked.sends[0], tokens)
            return Amount(means.requests, means.input_tokens, means.output_tokens, usd, means.seconds)
        return self._estimated(asked)

    def _estimated(self, asked: _Asked) -> Amount:
        """Return the amount of a unit by the lengths of its requests and of likely replies."""
        total = Amount()
        for send, taken, reply in zip(asked.sends, asked.tokens, _replies(asked), strict=True):
            made = 0 if send.request.max_tokens == 0 else tokens_in(len(reply))
            total += Amount(1, taken, made, self._price(send, Usage(taken, made)), None)
        return total

    def _price(self, send: OutgoingRequest, usage: Usage) -> float | None:
        price = self._usd(send.provider, usage)
        if price is None:
            marks = send.provider.fingerprint()
            named = [marks.get(name) for name in ("model", "callable", "base_url")]
            self.unpriced.setdefault(" at ".join(str(name) for name in named if name), send.provider)
        return price


def _sends(unit: WorkUnit) -> tuple[OutgoingRequest, ...]:
    """Return the first requests of a judge session about this unit."""
    if unit.judge.fingerprint().get("judge") in _AT_HOME:
        return ()
    conversation = unit.judge.answer(unit.asked)
    try:
        return next(conversation, ())
    finally:
        conversation.close()


def _collect(unit: WorkUnit, turn: int, keys: set[bytes], into: _Baskets) -> None:
    """Add the questions of a unit that are not counted yet, by their keys."""
    rest = unit.without(keys)
    if rest is not None:
        keys.update(rest.keys)
        into.setdefault((id(rest.judge), rest.view_key, turn), []).append(rest)


def _replies(asked: _Asked) -> Iterable[str]:
    """Return a likely reply to each request: to a question, or to the unit (of a bundle, to its first request)."""
    unit, sends = asked.unit, len(asked.sends)
    if unit.bundled:
        return [likely_reply(Pack(unit.questions)), *[""] * (sends - 1)]
    if sends == len(unit.questions):
        return [likely_reply(question) for question in unit.questions]
    whole = unit.asked if len(unit.questions) == 1 else Pack(unit.questions)
    return [likely_reply(whole)] * sends
