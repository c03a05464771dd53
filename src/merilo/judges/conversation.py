"""Conversations with a model, as generators: a turn with its length retries, re-asks, several side by side.

After an unreadable reply, the model is re-asked in the same conversation, with the problem. A reply truncated by its
length is never repaired: the same turn is sent again with a larger limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from merilo.judges.base import OutgoingRequest
from merilo.judging.json_extraction import TOO_LONG
from merilo.judging.reply_parsing import ParsedReply
from merilo.judging.verdicts import Failure, FailureKind
from merilo.providers.base import Finish, Message, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from merilo.judges.base import Conversation
    from merilo.judging.ask import Answer
    from merilo.providers.base import Provider, Request

ENLARGED = 4
ENLARGEMENTS = 2
_MAX_QUOTED = 4_000
_LONGEST_SHOWN = 300


class TurnResult(NamedTuple):
    """The result of a turn, and the request that led to it (its limit may have grown)."""

    request: Request
    reply: Reply | Failure


if TYPE_CHECKING:
    Turn = Generator[tuple[OutgoingRequest, ...], tuple[Reply | Failure, ...], TurnResult]


def turn(provider: Provider, request: Request) -> Turn:
    """Return the whole reply to one request, or a failure; truncated and refused replies are failures."""
    for enlargement in range(ENLARGEMENTS + 1):
        (reply,) = yield (OutgoingRequest(provider, request),)
        if isinstance(reply, Failure):
            cut = enlargement > 0 and reply.kind is FailureKind.PERMANENT
            return TurnResult(request, _truncated(request, reply.message) if cut else reply)
        if reply.finish is Finish.REFUSED:
            return TurnResult(request, Failure(FailureKind.REFUSED, f"The model declined to answer: {_shown(reply)}"))
        if reply.finish is Finish.STOP:
            return TurnResult(request, reply)
        # Without a limit in the request there is nothing to enlarge: the server's limit truncated the reply.
        if request.max_tokens is None:
            break
        if enlargement < ENLARGEMENTS:
            request = replace(request, max_tokens=ENLARGED * request.max_tokens)
    return TurnResult(request, _truncated(request, ""))


def read_answers(
    provider: Provider,
    request: Request,
    read: Callable[[str, frozenset[int]], ParsedReply],
    *,
    size: int,
    reasks: int,
) -> Conversation:
    """Return the answers to `size` questions from one conversation, re-asking for missing or invalid ones.

    `read` takes a reply and the indices still needed. A verdict that was read once is never replaced by a later one.
    Questions without a verdict at the end get a Failure.
    """
    answers: list[Answer | None] = [None] * size
    fault = ""
    for _ in range(1 + reasks):
        result = yield from turn(provider, request)
        if isinstance(result.reply, Failure):
            return tuple(result.reply if answer is None else answer for answer in answers)
        wanted = frozenset(n for n, answer in enumerate(answers) if answer is None)
        reading = ParsedReply((), TOO_LONG) if result.reply.truncated else read(result.reply.text, wanted)
        for index, verdict in enumerate(reading.verdicts):
            # The first readable verdict counts. A re-ask is about the missing ones, and a model may change the others
            # too.
            answers[index] = verdict if answers[index] is None else answers[index]
        fault = reading.fault
        if not fault:
            break
        request = _reask(result, result.reply.text, fault, partly=any(answers))
    given = tuple(answer for answer in answers if answer is not None)
    if len(given) == size:
        return given
    failure = Failure(
        FailureKind.UNREADABLE, f"The reply could not be read as a verdict, after {reasks} re-asks: {fault}"
    )
    return tuple(failure if answer is None else answer for answer in answers)


def side_by_side(conversations: Sequence[Conversation]) -> Conversation:
    """Return the answers of several conversations, in their order; their requests share the steps."""
    results: list[tuple[Answer, ...]] = [()] * len(conversations)
    waiting: dict[int, tuple[OutgoingRequest, ...]] = {}
    try:
        for index, conversation in enumerate(conversations):
            _advance(index, conversation, None, results, waiting)
        while waiting:
            order = sorted(waiting)
            replies = iter((yield tuple(send for index in order for send in waiting[index])))
            for index in order:
                own = tuple(next(replies) for _ in waiting.pop(index))
                _advance(index, conversations[index], own, results, waiting)
    # If one conversation raises, the others must release their state too.
    finally:
        for conversation in conversations:
            conversation.close()
    return tuple(answer for answers in results for answer in answers)


def _advance(
    index: int,
    conversation: Conversation,
    replies: tuple[Reply | Failure, ...] | None,
    results: list[tuple[Answer, ...]],
    waiting: dict[int, tuple[OutgoingRequest, ...]],
) -> None:
    try:
        waiting[index] = next(conversation) if replies is None else conversation.send(replies)
    except StopIteration as stop:
        results[index] = stop.value


def _reask(result: TurnResult, text: str, fault: str, *, partly: bool) -> Request:
    rest = "Reply again with JSON in the form you were given"
    rest += ", with verdicts on these statements only." if partly else ", and nothing else."
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
