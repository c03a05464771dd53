"""The requests of ragas 0.1: JSON, repaired once if unreadable, and several replies that vote."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from merilo.errors import UsageError
from merilo.judging.ask import ask
from merilo.judging.kinds.sentences import Sentences
from merilo.metrics.formulas import majority
from merilo.metrics.published.asking import (
    Asker,
    ReadReply,
    RequestTemplate,
    UnreadableReply,
    on_statements,
    read_reply,
)
from merilo.metrics.published.definition import JudgesBlank, Published
from merilo.metrics.published.ragas_v0_1 import replies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.judging.ask import Plan
    from merilo.metrics.base import Evidence
    from merilo.metrics.published.asking import Reply
    from merilo.metrics.published.ragas_v0_1.replies import JudgedStatement

T = TypeVar("T")

SYSTEM: Final = "ragas-0.1"
"""The folder of the rubrics; the versions ask alike."""
SPLITTER: Final = "pysbd"

_STEADY: Final = 1e-8
_SEVERAL: Final = 0.3
_REPAIR: Final = "repair"


MaybeRead = ReadReply[T] | UnreadableReply
"""A reply or its repair, or the repair that cannot be read either."""


def json_template(rubric: str, shape: str, likely: str, read: Callable[[str], T]) -> RequestTemplate[T]:
    """Return a request for JSON. `shape`: the JSON in words, for the request that repairs a reply."""
    return RequestTemplate(rubric, likely, lambda reply: read(reply.text), shape)


@dataclass(frozen=True, slots=True)
class Ballot:
    """The verdicts on a list of statements, by the vote of all replies that could be read."""

    items: tuple[JudgedStatement, ...]
    reply: Reply
    """The first reply that could be read; the texts are its."""
    flags: tuple[str, ...] = ()

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The verdict on each statement, 1 for any number but 0."""
        return on_statements(self.reply.verdict, ((float(item.value != 0), item.text) for item in self.items))


@dataclass(slots=True)
class JsonAsker:
    """Asks for JSON about one sample; one for each plan.

    A reply that cannot be read is sent back once with what was asked. One reply is asked for at the
    temperature 1e-8, several at 0.3.
    """

    _one: Asker = field(default_factory=lambda: Asker(SYSTEM, temperature=_STEADY))
    _several: Asker = field(default_factory=lambda: Asker(SYSTEM, temperature=_SEVERAL))

    def ask(self, template: RequestTemplate[T], values: Mapping[str, str]) -> Plan[MaybeRead[T]]:
        """Return one reply. Raises AskFailed if there is none."""
        (read,) = yield from self.samples(template, values, 1)
        return read

    def samples(
        self, template: RequestTemplate[T], values: Mapping[str, str], count: int
    ) -> Plan[tuple[MaybeRead[T], ...]]:
        """Return several replies to one request, in sampling order, repaired one after another. Raises AskFailed."""
        asker = self._one if count == 1 else self._several
        replies = yield from asker.samples(template.rubric, values, count, likely=template.likely)
        read: tuple[MaybeRead[T], ...] = ()
        for reply in replies:
            read = (*read, (yield from read_reply(template, reply, RepairOnce(self._one, template))))
        return read


@dataclass(frozen=True, slots=True)
class RepairOnce(Generic[T]):
    """The `Recovery` of ragas 0.1: an unreadable reply is sent back once, with what was asked."""

    asker: Asker
    template: RequestTemplate[T]
    times: Final = 1

    def again(self, reply: Reply, fault: str, number: int) -> Plan[tuple[Reply, Callable[[Reply], T]]]:
        del fault, number
        asked = zip(reply.question.names, reply.question.values, strict=True)
        request = "\n\n".join(f"{name}:\n{text}" for name, text in asked)
        values = {"form": self.template.shape, "request": request, "completion": reply.text}
        return (yield from self.asker.ask(_REPAIR, values, likely=self.template.likely)), self.template.read


@dataclass(frozen=True, slots=True, kw_only=True)
class RagasV01(JudgesBlank):
    """A metric of ragas 0.1, whose unreadable replies are repaired once.

    Undefined: ... | a reply cannot be read, nor can its repair (Failed, where ragas 0.1.9 stops the run and 0.1.22 has
        NaN)
    Use: To understand, or to compare with, numbers of ragas 0.1.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Voting(RagasV01):
    """A metric of ragas 0.1 that can ask for several replies to one request.

    - `reproducibility`: for how many replies; they vote.
    - `made_odd`: as ragas' setter does, below 1 is taken as 1 and an even number as the next odd one, so that no
      vote ties. False: as it is, which in ragas is the constructor's `_reproducibility`.
    """

    reproducibility: int = 1
    made_odd: bool = True

    def __post_init__(self) -> None:
        Published.__post_init__(self)
        if not self.made_odd and self.reproducibility < 1:
            given = self.reproducibility
            raise UsageError(f"Metric {self.name!r} takes reproducibility=a whole number of at least 1, got {given!r}.")

    @property
    def replies(self) -> int:
        """The number of replies to ask for."""
        return max(1, self.reproducibility | 1) if self.made_odd else self.reproducibility


STATEMENTS: Final = json_template(
    "statements",
    'A list with one object for each sentence: {"sentence_index": its number, "simpler_statements": [texts]}.',
    '[{"sentence_index": 0, "simpler_statements": ["A statement."]}]',
    replies.statements,
)
SUPPORT: Final = json_template(
    "support",
    'A list with one object for each statement: {"statement": text, "reason": text, "verdict": 0 or 1}.',
    '[{"statement": "A statement.", "reason": "It is said there.", "verdict": 1}]',
    replies.judged("verdict"),
)


def statements_of(
    asker: JsonAsker, question: str, text: str, *, full_stop_only: bool
) -> Plan[MaybeRead[tuple[tuple[str, ...], ...]]]:
    """Return the statements of a text, by its numbered sentences; asks Sentences, then one request.

    Raises AskFailed.
    """
    pieces = (yield from ask(Sentences(text, SPLITTER))).texts
    kept = [piece for piece in pieces if not full_stop_only or piece.strip().endswith(".")]
    numbered = "\n".join(f"{number}:{piece}" for number, piece in enumerate(kept))
    return (yield from asker.ask(STATEMENTS, {"user_input": question, "text": text, "sentences": numbered}))


def elected(read: Sequence[MaybeRead[tuple[JudgedStatement, ...]]]) -> Ballot | None:
    """Return the vote of the readable replies, place by place; None if no reply is readable.

    Ties go to the verdict seen first; where the replies differ in length the first one decides alone.
    """
    votes = [(one.reply, one.value) for one in read if isinstance(one, ReadReply)]
    if not votes:
        return None
    lost = len(read) - len(votes)
    flags = (f"{lost} of {len(read)} replies could not be read and were left out of the vote",) if lost else ()
    reply, first = votes[0]
    if len({len(items) for _, items in votes}) > 1:
        return Ballot(first, reply, (*flags, "the replies differ in length, so the first one decided alone"))
    places = zip(*(items for _, items in votes), strict=True)
    agreed = tuple(replace(place[0], value=majority([item.value for item in place])) for place in places)
    return Ballot(agreed, reply, flags)


def failure(read: Sequence[MaybeRead[T]]) -> UnreadableReply | None:
    """Return the first reply that could not be read, or None."""
    return next((one for one in read if isinstance(one, UnreadableReply)), None)
