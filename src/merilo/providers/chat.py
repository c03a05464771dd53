"""A connection to a chat model: sends requests, adapts to rejected parameters, and raises errors."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Any

from merilo.errors import Permanent
from merilo.providers.base import ReplyPath
from merilo.providers.problems import Received, error_of, message_in, problem_in
from merilo.providers.prompt_check import INCREASE_CONTEXT, PromptCheck
from merilo.providers.wire import largest_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from merilo.errors import ProviderError
    from merilo.providers.base import Reply, Request, Usage
    from merilo.providers.bodies import Bodies
    from merilo.providers.problems import EndpointAddress, EndpointProblem
    from merilo.providers.wire import Wire, WireAnswer

    ReadError = Callable[[EndpointProblem, Mapping[str, str], EndpointAddress], ProviderError]


_BY_FORM = frozenset({400, 422})
"""Statuses that reject the form of a request, unless the error says otherwise."""

_UNLIMITED_TOKENS = 4_096
"""Assumed maximum reply tokens of a request that sets no limit."""


class ChatConnection:
    """A session with one endpoint that adapts to the parameters the endpoint rejects."""

    def __init__(
        self,
        wire: Wire,
        route: str,
        bodies: Bodies,
        address: EndpointAddress,
        read: Callable[[Received], Reply],
        *,
        read_error: ReadError = error_of,
        truncation_advice: str = INCREASE_CONTEXT,
    ) -> None:
        """`read` raises the provider errors. `truncation_advice`: what to do if the server truncates prompts."""
        self.wire = wire
        """The session with the endpoint."""
        self.route = route
        """The path of a request, relative to the base URL."""
        self._bodies = bodies
        self._address = address
        self._read = read
        self._read_error = read_error
        self._trying = asyncio.Lock()
        self._prompts = PromptCheck(address.url, advice=truncation_advice)

    async def send(self, request: Request) -> Reply:
        """Return the reply to one request, sent again without rejected parameters. Raises the provider errors."""
        while (reply := await self.attempt(request)) is None:
            pass
        return reply

    def attempt(self, request: Request) -> Coroutine[Any, Any, Reply | None]:
        """Send a request once; return None if a parameter was rejected, so that it must be sent again without it.

        An adaptation applies to all later requests, and to retries of those in flight. Raises the provider errors.
        """
        # not async itself: each coroutine around another one costs two calls per request
        return self._attempt_in_turn(request) if self._bodies.unsure else self._attempt(request)

    async def _attempt_in_turn(self, request: Request) -> Reply | None:
        async with self._trying:  # requests that wait here would be rejected too
            if self._bodies.unsure:
                return await self._attempt(request)
        return await self._attempt(request)

    async def _attempt(self, request: Request) -> Reply | None:
        started = perf_counter()
        body, path = self._bodies.body_for(request), self._bodies.path_for(request)
        tokens = (request.max_tokens or _UNLIMITED_TOKENS) * request.samples
        answer = await self.wire.post(self.route, body, largest=largest_reply(tokens))
        return self.receive(request, answer, path, perf_counter() - started, body=body)

    def body(self, request: Request) -> bytes:
        """Return the JSON body with which this request is sent now."""
        return self._bodies.body_for(request)

    def path(self, request: Request) -> ReplyPath:
        """Return how structured output is requested now."""
        return self._bodies.path_for(request)

    def receive(
        self,
        request: Request,
        answer: WireAnswer,
        path: ReplyPath,
        seconds: float = 0.0,
        *,
        body: bytes,
    ) -> Reply | None:
        """Return the reply in an answer; None if the request must be sent again, see `attempt`. Raises the provider
        errors.

        `path` and `body` are those with which the request was sent.
        """
        received = message_in(answer.text)
        problem = problem_in(answer.status, received, answer.text)
        if problem is None:
            reply = self._read(Received(received, answer.text, path, self.wire.clean, self._address.url, seconds))
            self._bodies.worked(request, body)
            if (error := self._prompts.error(request, reply)) is not None:
                raise error
            return reply
        problem = problem.cleaned(self.wire.clean)
        error = self._read_error(problem, answer.headers, self._address)
        if problem.status in _BY_FORM and not isinstance(error, Permanent):  # the key, the account, the model, a filter
            raise error
        # the body differs if another request in flight has learnt the same in the meantime
        learned = body != self._bodies.body_for(request) or self._bodies.learn(problem, request)
        if learned and not problem.received_bytes:  # a reply that may be billed must count as a failed request
            return None
        raise error

    def error_in(self, answer: WireAnswer) -> ProviderError | None:
        """Return the error that an answer to another kind of request reports, such as a batch; None if it is fine."""
        problem = problem_in(answer.status, message_in(answer.text), answer.text)
        return (
            None
            if problem is None
            else self._read_error(problem.cleaned(self.wire.clean), answer.headers, self._address)
        )

    def usage_in(self, answer: WireAnswer) -> Usage:
        """Return the tokens that an answer reports, whatever was asked. Raises ProviderError if it has no reply."""
        body = message_in(answer.text)
        return self._read(Received(body, answer.text, ReplyPath.TEXT, self.wire.clean, self._address.url)).usage

    def adaptations(self) -> Mapping[str, str]:
        """Return each rejected parameter with its adaptation."""
        return dict(self._bodies.done)

    def notices(self) -> Sequence[str]:
        """Return one sentence for each adaptation of this connection."""
        return tuple(self._bodies.notices)
