"""A connection to a model that is sent messages and replies: asks, learns from refusals, tells errors."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from merilo.providers.problems import error_of, problem_in, told_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from merilo.judging.untyped import Json
    from merilo.providers.base import Reply, ReplyPath, Request
    from merilo.providers.bodies import Bodies
    from merilo.providers.problems import Address
    from merilo.providers.wire import Wire

    ReadReply = Callable[[Json, str, ReplyPath, float], Reply]


class ChatConnection:
    """One session with an endpoint; learns which parameters the endpoint refuses."""

    def __init__(self, wire: Wire, route: str, bodies: Bodies, address: Address, read: ReadReply) -> None:
        """`read` makes the reply of a body: from its object, its text, the path taken and the seconds."""
        self._wire = wire
        self._route = route
        self._bodies = bodies
        self._address = address
        self._read = read

    async def send(self, request: Request) -> Reply:
        """The reply to one request, sent again without a parameter that is refused. Raises the provider errors."""
        while (reply := await self.attempt(request)) is None:
            pass
        return reply

    async def attempt(self, request: Request) -> Reply | None:
        """Send a request once; None if a parameter was refused, so that it has to be sent again without it.

        What one request learned holds for all that follow, and for those in flight. Raises the provider errors.
        """
        started = perf_counter()
        body = self._bodies.body_for(request)
        path = self._bodies.path_for(request)
        answer = await self._wire.post(self._route, body)
        told = told_in(answer.text)
        problem = problem_in(answer.status, told, answer.text)
        if problem is None:
            return self._read(told, answer.text, path, perf_counter() - started)
        problem = problem.cleaned(self._wire.clean)
        learned = body != self._bodies.body_for(request) or self._bodies.learn(problem)
        if learned and not problem.received_bytes:  # one with a body that may be billed is sent again as a failed one
            return None
        raise error_of(problem, answer.headers, self._address)

    def adaptations(self) -> Mapping[str, str]:
        """Each parameter that was refused, with what was done."""
        return dict(self._bodies.done)

    def notices(self) -> Sequence[str]:
        """One sentence for each adaptation of this connection."""
        return tuple(self._bodies.notices)
