"""Conversations with a model, as generators: a turn with its length retries, re-asks, several side by side.

After an unreadable reply, the model is re-asked in the same conversation, with the problem. A list or a free text that
was cut off is never repaired: the same turn is sent again with a larger limit, unless the context window is full. A
rating that was cut off is read from its complete fields.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.judges.base import Conversation, OutgoingRequest
from merilo.judging.json_extraction import TOO_LONG, complete_fields, has_answer
from merilo.judging.reply_parsing import ParsedReply
from merilo.judging.verdicts import DecisionVerdict, Failure, FailureKind, Verdict
from merilo.judging.views import MARKER, without_markers
from merilo.providers.base import FREE_TEXT, Finish, Message, Provider, Reply, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from merilo.judging.ask import Answer

ENLARGED = 4
ENLARGEMENTS = 2
_MAX_REASONING = 8_192
"""Largest limit in tokens that a judge uses from the start for a model that reasons."""
_NEARLY = 0.9
"""Fraction of its limit that a reply cut off by this limit has at least; servers count tokens differently."""
_LEAST_FILLING = 64
"""Fewest tokens of a reply that is taken to fill the window; asking again for a shorter one costs little."""
_MAX_QUOTED = 4_000
_MAX_CUT = 200
"""Characters of a cut reply that a re-ask quotes."""
_CUT_OFF = "Your reply was cut off: it was too long."
_OF_THE_MODEL = frozenset({FailureKind.TRUNCATED, FailureKind.PERMANENT})
"""Failures of a re-ask after which an earlier weak verdict counts: asking later would give the same."""
_LONGEST_SHOWN = 300
_MAX_GOT = 60
"""Characters of an unreadable reply in the failure."""
_EXAMPLES: Final = {"array": "[...]", "string": '"..."', "boolean": "true", "integer": "1", "number": "0.5"}
"""Type in JSON Schema → a value as it is shown."""


@dataclass
class ReasoningLimit:
    """The limit of replies that a judge's model needs for its reasoning, learnt from replies cut off in it."""

    tokens: int = 0


class TurnResult(NamedTuple):
    """The result of a turn, and the request that led to it (its limit may have grown)."""

    request: Request
    reply: Reply | Failure


if TYPE_CHECKING:
    Turn = Generator[tuple[OutgoingRequest, ...], tuple[Reply | Failure, ...], TurnResult]


def turn(provider: Provider, request: Request, *, rating: bool = False, reasoning: ReasoningLimit) -> Turn:
    """Return the whole reply to one request, or a failure; truncated and refused replies are failures.

    The reply to a `rating` may be cut off: a larger limit helps only if the model was still reasoning. Texts are sent
    without what divides the prompts of open models.
    """
    if [message for message in request.messages if MARKER.search(message.text)]:
        request = replace(request, messages=tuple(map(_plain, request.messages)))
    enlargements = 1 if request.schema_name == FREE_TEXT else ENLARGEMENTS  # a free text is hardly ever that long
    for enlargement in range(enlargements + 1):
        (reply,) = yield (OutgoingRequest(provider, request),)
        if isinstance(reply, Failure):
            cut = enlargement > 0 and reply.kind is FailureKind.PERMANENT
            return TurnResult(request, _truncated(request, reply.message) if cut else reply)
        if reply.finish is Finish.REFUSED:
            return TurnResult(request, Failure(FailureKind.REFUSED, f"The model declined to answer: {_shown(reply)}"))
        if reply.finish is Finish.STOP:
            return TurnResult(request, reply)
        answered = has_answer(reply.text)
        if rating and answered:
            return TurnResult(request, reply)
        # Without a limit in the request there is nothing to enlarge: the server's limit truncated the reply. If it was
        # cut off well below its limit, it fills the window, and a larger limit would be of no use.
        written = reply.usage.output_tokens or 0
        if request.max_tokens is None or (
            request.samples == 1 and _LEAST_FILLING <= written < _NEARLY * request.max_tokens
        ):
            break
        if enlargement < enlargements:
            request = replace(request, max_tokens=ENLARGED * request.max_tokens)
            if not answered:
                reasoning.tokens = max(reasoning.tokens, min(request.max_tokens or 0, _MAX_REASONING))
    return TurnResult(request, _truncated(request, ""))


def _plain(message: Message) -> Message:
    text, shared = without_markers(message.text), len(without_markers(message.text[: message.shared]))
    return Message(message.author, text, shared)


def read_answers(
    provider: Provider,
    request: Request,
    read: Callable[[str, frozenset[int]], ParsedReply],
    *,
    size: int,
    reasks: int,
    reasoning: ReasoningLimit,
    rating: bool = False,
) -> Conversation:
    """Return the answers to `size` questions from one conversation, re-asking for missing or invalid ones.

    `read` takes a reply and the indices still needed. A verdict that was read once is never replaced by a later one.
    Questions without a verdict at the end get their last weak one, whose decision stands, or a Failure.
    """
    answers: list[Answer | None] = [None] * size
    weak: list[Verdict | None] = [None] * size
    fault, cut, text = "", False, ""
    for _ in range(1 + reasks):
        result = yield from turn(provider, request, rating=rating, reasoning=reasoning)
        if isinstance(result.reply, Failure):
            failed = result.reply.kind in _OF_THE_MODEL
            rest = [(failed and verdict) or result.reply for verdict in weak]
            return tuple(rest[n] if answer is None else answer for n, answer in enumerate(answers))
        wanted = frozenset([n for n, answer in enumerate(answers) if answer is None])
        cut = result.reply.finish is Finish.LENGTH
        text = complete_fields(result.reply.text) if cut else result.reply.text
        reading = ParsedReply((), TOO_LONG) if result.reply.truncated else read(text, wanted)
        if not reading.fault and len(wanted) == size:  # nearly all first replies
            return tuple([verdict for verdict in reading.verdicts if verdict is not None])
        for index, verdict in enumerate(reading.verdicts):
            # The first readable verdict counts. A re-ask is about the missing ones, and a model may change the others
            # too.
            answers[index] = verdict if answers[index] is None else answers[index]
        fault = _CUT_OFF if cut else reading.fault
        if not reading.fault or _settled(answers, weak, reading.weak, cut=cut):
            break
        request = _reask(result, result.reply.text[: _MAX_CUT if cut else None], fault, partly=any(answers))
    given = tuple(answers[n] or weak[n] for n in range(size))
    if all(given):
        return tuple(answer for answer in given if answer is not None)
    problem = fault if fault == TOO_LONG else _wanted(request, text) or fault
    failure = Failure(FailureKind.UNREADABLE, f"The reply could not be read. {problem}")
    failure = _truncated(request, "") if cut else failure
    return tuple(failure if answer is None else answer for answer in given)


def _wanted(request: Request, text: str) -> str:
    """Return the fields that were wanted and how the reply begins; empty for a reply that holds an object."""
    properties: Any = (request.schema or {}).get("properties", {})  # Any: JSON Schema
    if "{" in text or not properties:
        return ""
    fields = ", ".join(f'"{name}": {_EXAMPLES.get(each.get("type"), "...")}' for name, each in properties.items())
    start = " ".join(text.split())
    return f'Wanted {{{fields}}}, got "{start[:_MAX_GOT]}{" ..." * (len(start) > _MAX_GOT)}"'


def _settled(
    answers: Sequence[Answer | None], weak: list[Verdict | None], found: Sequence[Verdict | None], *, cut: bool
) -> bool:
    """Take over weak verdicts. Return True if a re-ask is of no use: each missing verdict repeats its decision.

    A cut reply is not asked for again if its decision is complete.
    """
    same = True
    for index, verdict in enumerate(found):
        earlier, weak[index] = weak[index], verdict or weak[index]
        if answers[index] is None:
            same &= verdict is not None and (cut or (earlier is not None and _decision(earlier) == _decision(verdict)))
    return same and bool(found)


def _decision(verdict: Verdict) -> object:
    return verdict.decision if isinstance(verdict, DecisionVerdict) else verdict


def side_by_side(conversations: Sequence[Conversation]) -> Conversation:
    """Return the answers of several conversations, in their order; their requests share the steps."""
    results: list[tuple[Answer, ...]] = [()] * len(conversations)
    waiting: dict[int, tuple[OutgoingRequest, ...]] = {}

    def advance(index: int, replies: tuple[Reply | Failure, ...] | None) -> None:
        try:
            waiting[index] = next(conversations[index]) if replies is None else conversations[index].send(replies)
        except StopIteration as stop:
            results[index] = stop.value

    try:
        for index in range(len(conversations)):
            advance(index, None)
        while waiting:
            order = sorted(waiting)
            replies = iter((yield tuple(send for index in order for send in waiting[index])))
            for index in order:
                advance(index, tuple(next(replies) for _ in waiting.pop(index)))
    # If one conversation raises, the others must release their state too.
    finally:
        for conversation in conversations:
            conversation.close()
    return tuple(answer for answers in results for answer in answers)


def _reask(result: TurnResult, text: str, fault: str, *, partly: bool) -> Request:
    rest = "Reply again with JSON in the form you were given"
    rest += ", with verdicts on these only." if partly else ", and nothing else."
    # The whole unreadable reply may exceed the context window of the model.
    said = text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]} ..."
    turns = (Message("assistant", said.strip() or "(no text)"), Message("user", f"{fault} {rest}"))
    return replace(result.request, messages=(*result.request.messages, *turns))


def _truncated(request: Request, why: str) -> Failure:
    limit = f" of {request.max_tokens} tokens" if request.max_tokens is not None else ""
    more = f", which the provider refused ({why.rstrip('.')})" if why else ""
    return Failure(FailureKind.TRUNCATED, f"The reply was cut off, at last with a limit{limit}{more}.")


def _shown(reply: Reply) -> str:
    text = reply.text.strip() if reply.texts else ""
    return (text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]} ...") or "it gave no reason."
