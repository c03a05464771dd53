"""Runs plans dry: no request is sent; likely verdicts lead them on, and what they would ask is counted.

Questions are cut into units and keyed as in a run, so what the run or the cache holds already costs nothing, and
what several metrics ask costs once. Tokens are characters / 4 until the run has measured its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Final

from merilo.engine.amounts import Amount, tokens_in, tokens_of
from merilo.engine.answers import Unit
from merilo.engine.walk import Walk
from merilo.judges.cascade import Cascade, stage_role
from merilo.judges.conversation import ENLARGED, ENLARGEMENTS
from merilo.judging.digests import digest_text
from merilo.judging.likely import likely_reply
from merilo.judging.questions import Pack
from merilo.providers.base import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from merilo.data.sample import Sample
    from merilo.engine.answers import Answers, Held
    from merilo.engine.budget import Pricer
    from merilo.judges.base import Send
    from merilo.metrics.base import Metric
    from merilo.providers.base import Provider
    from merilo.runs.measured import Measured

_REASKED_CHARACTERS: Final = 4_500
"""What a re-ask adds to a request at most: the reply quoted, what was wrong with it, and what to do."""
_AT_HOME: Final = frozenset({"embedded", "scripted", "splitter"})
"""Judges, by the word in their fingerprint, that answer on this machine without a request."""


@dataclass(slots=True)
class Counted:
    """What one metric would ask over the samples so far."""

    alone: Amount = field(default_factory=Amount)
    """What it costs when it is the only one."""
    added: Amount = field(default_factory=Amount)
    """What it adds to the metrics before it."""
    at_most: Amount = field(default_factory=Amount)
    questions: int = 0
    checked_alone: Amount = field(default_factory=Amount)
    """What it would cost alone to ask the last judge of a cascade about all that others answer."""
    checked_added: Amount = field(default_factory=Amount)
    """The same, of what it adds to the metrics before it."""
    held: int = 0
    """Questions that the run or the cache has answered already."""
    keys: set[bytes] = field(default_factory=set[bytes])
    """Of the questions counted in `alone`."""


@dataclass(slots=True)
class Cascaded:
    """What is likely to become of the questions to a cascade."""

    questions: float = 0.0
    answered: float = 0.0
    """Those that are not likely to reach the last judge."""
    keys: set[bytes] = field(default_factory=set[bytes])


@dataclass(frozen=True, slots=True)
class _Asked:
    """A unit with the requests that its conversation begins with, and the input tokens of each."""

    unit: Unit
    sends: tuple[Send, ...]
    tokens: tuple[int, ...]
    times: float = 1.0
    """How often it is likely to be asked."""
    checking: bool = False
    """Whether that is to check what another judge of a cascade has answered."""

    @classmethod
    def of(cls, unit: Unit, times: float = 1.0, *, checking: bool = False) -> _Asked:
        sends = _sends(unit)
        return cls(unit, sends, tuple(tokens_of(send.request) for send in sends), times, checking)


class DryRun:
    """Counts what the plans of some metrics would ask; memory grows with the questions counted, 16 bytes a key."""

    def __init__(
        self,
        answers: Answers,
        held: Callable[[Unit], Held],
        usd: Pricer,
        measured: Mapping[tuple[str, bytes], Measured],
    ) -> None:
        """`held` looks up what is answered already; `measured` are means by judge and digest of the rubric."""
        self.counted: dict[str, Counted] = {}
        self.unpriced: dict[str, Provider] = {}
        """Providers whose price is unknown, by their name and address."""
        self.measured_used = False
        self.cascaded: dict[str, Cascaded] = {}
        """What is likely to become of the questions to cascades, by the cascade's name."""
        self._answers = answers
        self._held = held
        self._usd = usd
        self._measured = measured
        self._keys: set[bytes] = set()

    def add(self, sample: Sample, metrics: Mapping[str, Metric]) -> None:
        """Run the plans of all metrics about one sample."""
        for text, metric in metrics.items():
            self._walk(sample, text, metric, self.counted.setdefault(text, Counted()))

    def _walk(self, sample: Sample, text: str, metric: Metric, counted: Counted) -> None:
        walk = Walk(metric, text, sample).start()
        held_here = 0
        largest: dict[int, list[_Asked]] = {}  # by judge
        while walk.step is not None:
            units = self._answers.units(walk.step)
            held: Held = {}
            for unit in units:
                found = self._held(unit)
                held |= found
                held_here += len(found)
                counted.questions += len(unit.keys)
                rest = unit.without(found)
                if rest is not None:
                    held |= {key: question.guess() for key, question in zip(rest.keys, rest.questions, strict=True)}
                    full = [_Asked.of(each) for each in self._within(rest)]
                    for asked in self._cascaded(rest) if isinstance(rest.judge, Cascade) else full:
                        self._count(asked, counted)
                    if _size(full) > _size(largest.get(id(rest.judge), [])):
                        largest[id(rest.judge)] = full
            walk.send([(key, held[key]) for unit in units for key in unit.keys])
        counted.held += held_here
        worst = max((sum(map(self._worst, full), Amount()) for full in largest.values()), key=_weight, default=Amount())
        if worst.requests:
            counted.at_most += worst.times(max(0, metric.at_most(sample) - held_here))

    def _within(self, unit: Unit) -> list[Unit]:
        """The unit as each judge of a cascade would be asked about it; itself where its judge is none."""
        if not isinstance(unit.judge, Cascade):
            return [unit]
        places = unit.judge.places(type(unit.questions[0]))
        return [each for place in places for part in self._staged(unit, place) for each in self._within(part)]

    def _staged(self, unit: Unit, place: int) -> list[Unit]:
        """The unit as it goes to the judge at this place of a cascade."""
        return self._answers.units(
            (tuple(replace(each, role=stage_role(each.role, place)) for each in unit.questions),)
        )

    def _cascaded(self, unit: Unit, times: float = 1.0) -> Iterator[_Asked]:
        """What a cascade is likely to ask, by the shares that its judges answered of their held-out records."""
        cascade = unit.judge
        if not isinstance(cascade, Cascade):
            yield _Asked.of(unit, times)
            return
        kind, places = type(unit.questions[0]), cascade.places(type(unit.questions[0]))
        seen = self.cascaded.setdefault(cascade.name, Cascaded())
        size, share = len(unit.questions), 1.0
        for place in places:
            some = max(1, ceil(size * share))
            part = Unit(cascade, unit.asked, unit.questions[:some], unit.keys[:some])
            for each in self._unheld(self._staged(part, place)):
                yield from self._cascaded(each, times * share * size / some)
            if place != places[-1]:
                share *= 1 - cascade.stages[place].sure[kind.kind].answered_rate
        fresh = [key for key in unit.keys if key not in seen.keys]
        seen.keys.update(fresh)
        seen.questions += times * len(fresh)
        seen.answered += times * len(fresh) * (1 - share)
        if share < 1:
            alone = Unit(cascade, unit.questions[0], unit.questions[:1], unit.keys[:1])
            for each in self._unheld(self._staged(alone, places[-1])):
                yield _Asked.of(each, times * size * (1 - share), checking=True)

    def _unheld(self, units: Iterable[Unit]) -> Iterator[Unit]:
        """What is left of units to be asked."""
        rests = (unit.without(self._held(unit)) for unit in units)
        return (rest for rest in rests if rest is not None)

    def _count(self, asked: _Asked, counted: Counted) -> None:
        if not asked.sends:
            return
        amount: Amount | None = None  # that of the whole, found once
        mark = b"checking" if asked.checking else b""
        for keys in (counted.keys, self._keys):
            rest = asked.unit.without({key for key in asked.unit.keys if mark + key in keys})
            if rest is None:
                continue
            keys.update(mark + key for key in rest.keys)
            if rest is asked.unit:
                amount = new = self._amount(asked) if amount is None else amount
            else:
                new = self._amount(_Asked.of(rest))
            self._put(counted, new if asked.times == 1 else new.times(asked.times), asked, alone=keys is counted.keys)

    @staticmethod
    def _put(counted: Counted, new: Amount, asked: _Asked, *, alone: bool) -> None:
        if asked.checking:
            if alone:
                counted.checked_alone += new
            else:
                counted.checked_added += new
        elif alone:
            counted.alone += new
        else:
            counted.added += new

    def _amount(self, asked: _Asked) -> Amount:
        unit = asked.unit
        means = self._measured.get((unit.judge.name, digest_text(unit.judge.rubric(unit.asked))))
        if means is not None:
            self.measured_used = True
            tokens = Usage(round(means.input_tokens), round(means.output_tokens))
            usd = self._price(asked.sends[0], tokens)
            return Amount(means.requests, means.input_tokens, means.output_tokens, usd, means.seconds)
        total = Amount()
        for send, taken, reply in zip(asked.sends, asked.tokens, _replies(unit, len(asked.sends)), strict=True):
            made = tokens_in(len(reply))
            total += Amount(1, taken, made, self._price(send, Usage(taken, made)), None)
        return total

    def _worst(self, asked: _Asked) -> Amount:
        """What one question takes with every reply cut off as often as may be, and every re-ask used up."""
        total = Amount()
        reasks: int = getattr(asked.unit.judge, "reasks", 0)  # judges of other kinds do not ask again
        for send, first in zip(asked.sends, asked.tokens, strict=True):
            limit = send.request.max_tokens
            limits = [0] if limit is None else [limit * ENLARGED**n for n in range(ENLARGEMENTS + 1)]
            for turn in range(reasks + 1):
                taken = first + turn * tokens_in(_REASKED_CHARACTERS)
                for made in limits:
                    total += Amount(1, taken, made, self._price(send, Usage(taken, made)), None)
        return total

    def _price(self, send: Send, usage: Usage) -> float | None:
        price = self._usd(send.provider, usage)
        if price is None:
            marks = send.provider.fingerprint()
            named = [marks.get(name) for name in ("model", "callable", "base_url")]
            self.unpriced.setdefault(" at ".join(str(name) for name in named if name), send.provider)
        return price


def _sends(unit: Unit) -> tuple[Send, ...]:
    """The requests that a conversation about this unit begins with."""
    if unit.judge.fingerprint().get("judge") in _AT_HOME:
        return ()
    conversation = unit.judge.answer(unit.asked)
    try:
        return next(conversation, ())
    finally:
        conversation.close()


def _replies(unit: Unit, sends: int) -> Iterable[str]:
    """A likely reply to each request: a question's own where there is one for each, else to all that is asked."""
    if sends == len(unit.questions):
        return [likely_reply(question) for question in unit.questions]
    asked = unit.asked if len(unit.questions) == 1 else Pack(unit.questions)
    return [likely_reply(asked)] * sends


def _size(asked: Iterable[_Asked]) -> int:
    return sum(sum(each.tokens) for each in asked)


def _weight(amount: Amount) -> tuple[float, float]:
    return amount.usd or 0.0, amount.input_tokens + amount.output_tokens
