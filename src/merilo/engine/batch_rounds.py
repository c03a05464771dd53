"""Rounds whose requests go into batches: one call of a run submits them, a later call reads the replies.

Every call runs the plans again from the stored verdicts. A request whose reply has arrived in a batch gets it at once.
Any other request is submitted, unless it is in flight, and its plan waits. So a call needs no memory of the questions
of the last one: the key of a request leads to its line in `runs/batch_store.py`.

Order of the writes, so that a kill at any moment loses nothing and pays for nothing twice (design/scale.md)::

    ledger: the request is sent, its maximum cost is reserved
    store:  the batch is intended, with its lines          (one transaction)
    API:    submit                                         (the next call finds it by its mark)
    store:  the batch's id
    ...
    store:  statuses and texts of all lines                (one transaction)
    ledger: each request is settled, when its plan reads the reply or at the end
"""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import TYPE_CHECKING, Any, Final

from merilo.engine.amounts import Settled, settled
from merilo.engine.budget import Reached, requests_text
from merilo.engine.rate_limits import FIRST, PRICED, RETRIES, TokenEstimator, asks_no_model, jitter_s, title_of
from merilo.engine.schedule import Batches, failure_of
from merilo.errors import Permanent, ProviderDown, ProviderError, RateLimited, Refused, Temporary
from merilo.judging.digests import digest_bytes, digest_of
from merilo.providers.base import Connection, Provider, Reply, ReplyPath
from merilo.providers.batch_apis import BatchLine, Intent, LineResult, OpenBatches, Uncertain, open_batches
from merilo.providers.endpoint import WireAnswer
from merilo.runs.batch_store import Batch, BatchStore, Line

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence
    from pathlib import Path

    from merilo.engine.dispatcher import Dispatcher
    from merilo.judges.base import OutgoingRequest
    from merilo.judging.verdicts import Failure

WINDOW: Final = 1_000
"""Number of samples whose questions are asked in the same rounds. It bounds memory, not the size of a batch."""
INTERRUPTED_S: Final = 5.0
"""Seconds after which a submission that was interrupted has either arrived or never will."""
_TRIES: Final = 4
_MAX_WAIT_S: Final = 4.0
_OK: Final = 200
_REJECTED: Final = range(400, 500)
_MARK_BYTES: Final = 6


class _Outbox:
    """The requests to one provider that are to be submitted."""

    def __init__(self) -> None:
        self.lines: list[tuple[Line, bytes]] = []
        """Each with its body."""
        self.size = 0


class BatchRounds(Batches):
    """Sends the requests of a run as batches. `begin` collects, calls read and collect requests, `finish` submits."""

    def __init__(
        self,
        store: BatchStore,
        dispatcher: Dispatcher,
        providers: Sequence[Provider],
        *,
        directory: Path | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`directory`: of the batch files, if the batches are files. `note` is called with each batch submitted."""
        super().__init__()
        self._store = store
        self._dispatcher = dispatcher
        self._spending = dispatcher.spending
        self._ledger = dispatcher.spending.ledger
        self._directory = directory
        self._note = note
        self._loop = asyncio.get_running_loop()
        self._providers = {title_of(each): each for each in providers}
        self._opened: dict[str, OpenBatches] = {}
        self._outbox: dict[str, _Outbox] = {}
        self._posted: set[bytes] = set()
        self._expected = TokenEstimator()
        self._generation = b"%d" % store.generation
        self._error: ProviderDown | None = None
        self._reached: Reached | None = None
        self._left_out_usd: float | None = None

    async def begin(self) -> None:
        """Find the batches of a call that was killed, and collect those that have ended."""
        entries = self._store.entries()
        self._spending.resume(line.reserved_usd for entry, line in entries.items() if entry in self._ledger.in_flight)
        for entry in tuple(self._ledger.in_flight):
            if entry not in entries:  # made by a call that was killed before the batch was intended
                self._ledger.not_sent(entry)
        self._store.begin(self._ledger.number + 1)
        for batch in self._store.waiting():
            name = batch.id or await self._found(batch)
            if name is not None:
                await self._collect(batch, name)
        for entry, line in self._store.entries().items():
            if line.batch is None and line.status is None and entry in self._ledger.in_flight:
                self._spending.refused(entry, line.reserved_usd)

    def __call__(self, sends: Sequence[OutgoingRequest]) -> Iterator[tuple[int, Reply | Failure]]:
        """Yield the replies that have arrived, with the indices of their requests; collect the other requests.

        Raises ProviderDown if the first requests of a run all failed.
        """
        local = [place for place, send in enumerate(sends) if asks_no_model(send.provider)]
        if local:  # programs on this machine
            yield from zip(local, self._wait(self._carried([sends[place] for place in local])), strict=True)
        known = set(local)
        read = [
            (place, result)
            for place, send in enumerate(sends)
            if place not in known and not self.stopped and (result := self._result(send)) is not None
        ]
        wrong = [result for _, result in read if isinstance(result, Permanent)]
        # if the first requests of a run all failed, not the questions are wrong, but the model
        if len(wrong) >= FIRST and len(wrong) == len(read) and not self._ledger.answered.requests:
            for place, _ in read:
                self._store.again(digest_of(sends[place].key, self._generation), 0)
            raise ProviderDown(
                f"The first {len(wrong)} requests of a batch failed. Last error: {wrong[-1]} "
                "They were not recorded; repeating the command submits them again."
            )
        for place, result in read:
            yield place, result if isinstance(result, Reply) else failure_of(result)

    async def finish(self) -> None:
        """Submit the rest, and stop the run if replies are missing. Raises ProviderDown."""
        if self._error is not None:
            raise self._error
        for title in [*self._outbox]:
            await self._submit(title)
        self._settle_rest()
        if batches := self._store.waiting():
            self._dispatcher.halt(Reached(_sentence(batches)))
        elif self._reached is not None:
            self._dispatcher.halt(self._reached)
        elif self._left_out_usd is not None:
            self._dispatcher.halt(self._spending.cost_reached(self._left_out_usd))

    def close(self) -> None:
        """Remove the requests that were not submitted from the ledger."""
        for box in self._outbox.values():
            for line, _ in box.lines:
                self._spending.cancelled(line.entry, line.reserved_usd)
        self._outbox.clear()
        self._store.begin(0)

    # collecting

    async def _found(self, batch: Batch) -> str | None:
        """Return the id of a batch whose submission was interrupted; None if it was never submitted or is unknown."""
        await asyncio.sleep(max(0.0, min(INTERRUPTED_S, batch.created + INTERRUPTED_S - time.time())))
        opened = await self._open(batch.provider)
        intent = Intent(batch.mark, batch.lines, self._store.ids(), batch.created)
        try:
            name: str | None = await self._patiently(lambda: opened.api.find(intent))
        except Uncertain:
            return None
        if name is not None:
            self._store.submitted(batch.mark, name)
            return name
        for line in self._store.lines_of(batch.mark):
            if line.entry in self._ledger.in_flight:
                self._spending.cancelled(line.entry, line.reserved_usd)
        self._store.never_submitted(batch.mark)
        return None

    async def _collect(self, batch: Batch, name: str) -> None:
        opened = await self._open(batch.provider)
        try:
            if not await self._patiently(lambda: opened.api.ended(name)):
                return
        except ProviderDown as error:
            if error.status is None:  # the batch as a whole was rejected: its lines are submitted again
                self._store.collect(batch.mark, {})
                self._error = error
                return
            raise
        lines = {f"{batch.mark}-{line.key.hex()}": line.key for line in self._store.lines_of(batch.mark)}
        results: list[LineResult] = await self._patiently(lambda: opened.api.results(name, [*lines]))
        clean = opened.connection.wire.clean
        arrived: dict[bytes, tuple[int, str]] = {}
        for each in results:
            key = lines.get(each.id)
            if key is None or not each.status or arrived.get(key, (0, ""))[0] == _OK:  # a reply is not replaced
                continue
            arrived[key] = each.status, clean(each.text)
        self._store.collect(batch.mark, arrived)

    async def _patiently(self, call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:  # Any: what the call returns
        """Return the result of a call that may be repeated, retried after temporary errors."""
        for tries in range(1, _TRIES):
            try:
                return await call()
            except (Temporary, RateLimited):
                await asyncio.sleep(jitter_s(tries, _MAX_WAIT_S))
        return await call()

    async def _open(self, title: str) -> OpenBatches:
        if title not in self._opened:
            self._opened[title] = await open_batches(self._providers[title], self._connected, self._directory)
        return self._opened[title]

    async def _connected(self, provider: Provider) -> Connection:
        return (await self._dispatcher.open(provider)).connection

    # reading

    def _result(self, send: OutgoingRequest) -> Reply | ProviderError | None:
        """Return the reply to a request or its error; None if it is in flight or will be submitted."""
        key = digest_of(send.key, self._generation)
        if key in self._posted:
            return None
        line = self._store.line(key)
        if line is None or line.status is None:
            if line is None or line.batch is None:
                self._post(send, key, 0 if line is None else line.tries)
            return None
        opened: OpenBatches = self._wait(self._open(title_of(send.provider)))
        body = opened.connection.body(send.request)
        answer = WireAnswer(line.status, {}, line.text or "")
        path = ReplyPath(line.path)
        sent = body if digest_bytes(body) == line.body else b""
        try:
            reply = opened.connection.receive(send.request, answer, path, body=sent)
        except ProviderError as error:
            return self._failed(send, line, error)
        if reply is None:
            self._refuse(line)
            self._store.again(key, line.tries)
            self._post(send, key, line.tries)
            return None
        if line.entry in self._ledger.in_flight:
            found = settled(send.request, reply, max_reply_tokens=self._expected.max_reply(send.provider, send.request))
            self._expected.learn(send.provider, send.request, found.usage)
            self._dispatcher.settle(line.entry, line.reserved_usd, send.provider, found)
        return reply

    def _failed(self, send: OutgoingRequest, line: Line, error: ProviderError) -> ProviderError | None:
        if line.entry in self._ledger.in_flight and (error.received_bytes or isinstance(error, Refused)):
            self._spending.failed(line.entry, line.reserved_usd, error)
        self._refuse(line)
        if isinstance(error, ProviderDown):
            self._error = error
            self._store.again(line.key, line.tries)
            return None
        if isinstance(error, Temporary | RateLimited) and line.tries < RETRIES:
            self._store.again(line.key, line.tries + 1)
            self._post(send, line.key, line.tries + 1)
            return None
        return error

    def _refuse(self, line: Line) -> None:
        """Settle a request that was answered with an error; batches bill replies only."""
        if line.entry in self._ledger.in_flight:
            self._spending.refused(line.entry, line.reserved_usd)

    def _settle_rest(self) -> None:
        """Settle replies that no plan has read, because their questions were answered elsewhere in the meantime."""
        for entry, line in self._store.entries().items():
            if line.status is None or entry not in self._ledger.in_flight:
                continue
            whole = self._store.line(line.key)
            opened = self._opened.get(line.provider)
            if line.status != _OK or whole is None or opened is None:
                self._refuse(line)
                continue
            try:
                usage = opened.connection.usage_in(WireAnswer(_OK, {}, whole.text or ""))
            except ProviderError as error:
                self._spending.failed(entry, line.reserved_usd, error)
                continue
            found = Settled(usage, estimated=False, input_estimated=False)
            self._spending.replied(entry, line.reserved_usd, self._providers[line.provider], found)

    async def _carried(self, sends: Sequence[OutgoingRequest]) -> list[Reply | Failure]:
        return await asyncio.gather(*map(self._dispatcher.carry, sends))

    # submitting

    def _post(self, send: OutgoingRequest, key: bytes, tries: int) -> None:
        """Add a request to the next batch if the budget allows it."""
        if self._reached is not None or self._error is not None:
            return
        spending, provider, title = self._spending, send.provider, title_of(send.provider)
        cost = 0.0
        if spending.needs_price:
            cost = spending.max_cost_usd(provider, self._expected.most(provider, send.request))
        over = spending.check(cost)
        if over is not None:
            self._reached = over if isinstance(over, Reached) else None
            self._left_out_usd = cost if self._left_out_usd is None else min(cost, self._left_out_usd)
            return
        opened: OpenBatches = self._wait(self._open(title))
        body = opened.connection.body(send.request)
        reply_tokens = self._expected.max_reply(provider, send.request)
        priced = self._dispatcher.spending.price(provider, PRICED) is not None
        entry = spending.begin(cost, spending.charge(provider, send.request, reply_tokens, priced=priced))
        box = self._outbox.setdefault(title, _Outbox())
        path = opened.connection.path(send.request).value
        box.lines.append((Line(key, title, None, digest_bytes(body), path, entry, cost, tries), body))
        box.size += len(body)
        self._posted.add(key)
        if len(box.lines) >= opened.api.max_lines or box.size >= opened.api.max_bytes:
            self._wait(self._submit(title))

    async def _submit(self, title: str) -> None:
        """Submit the requests to one provider as a batch."""
        box, mark = self._outbox[title], secrets.token_hex(_MARK_BYTES)
        opened = await self._open(title)
        lines = [line._replace(batch=mark) for line, _ in box.lines]
        self._ledger.sync()
        self._store.intend(mark, title, time.time(), lines)
        del self._outbox[title]
        try:
            name = await opened.api.submit(
                mark, [BatchLine(f"{mark}-{line.key.hex()}", body) for line, body in box.lines]
            )
        except ProviderError as error:
            if error.status in _REJECTED:  # otherwise the batch may exist, and the next call looks for it
                for line in lines:
                    self._spending.cancelled(line.entry, line.reserved_usd)
                self._store.never_submitted(mark)
            raise
        self._store.submitted(mark, name)
        self._note(f"Submitted {requests_text(len(lines))} to {title} as batch {name}.")

    def _wait(self, call: Coroutine[Any, Any, Any]) -> Any:  # Any: what the call returns
        """Return the result of a coroutine that runs in the event loop, from the thread of the rounds."""
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()


def waiting_record(batches: Sequence[Batch]) -> dict[str, object]:
    """Return what `usage.json` holds of the batches that a run waits for."""
    return {"requests": sum(each.lines for each in batches), "batches": [each.id for each in batches]}


def _sentence(batches: Sequence[Batch]) -> str:
    requests = requests_text(sum(each.lines for each in batches))
    named = "1 batch" if len(batches) == 1 else f"{len(batches):,} batches"
    return f"Waiting for {requests} in {named}."
