"""The protocol of a batch API: files of requests that a provider answers within hours, at a lower price.

A line of a batch is the body of an ordinary request, so a reply is read by the provider's own connection. Budget,
retries and what is stored are in `engine/batch_rounds.py`. Each API is one file next to the provider's other files.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from merilo.errors import Permanent
from merilo.judging.json_types import as_object, loaded
from merilo.providers.problems import excerpt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judging.json_types import Json
    from merilo.providers.chat import ChatConnection
    from merilo.providers.wire import WireAnswer

NOT_RUN: Final = 0
"""The status of a line that the provider did not run, for instance because its batch expired. It costs nothing."""
MAX_RESULT_BYTES: Final = 512 * 1024 * 1024
"""Largest size of the results of one batch."""


class BatchLine(NamedTuple):
    """A request of a batch."""

    id: str
    """At most 64 letters, digits, `-` and `_`."""
    body: bytes


class LineResult(NamedTuple):
    """The answer to a line."""

    id: str
    status: int
    """The HTTP status that the request alone would have got; NOT_RUN if it was not run."""
    text: str
    """The body of that answer."""


class Intent(NamedTuple):
    """A batch whose submission may have been interrupted."""

    mark: str
    """The name that the batch was to get. Each line's id starts with it."""
    lines: int
    known: frozenset[str]
    """The ids of other batches of this run."""
    created: float
    """When it was about to be submitted, in seconds since 1970."""


class Uncertain(Exception):
    """It is unknown whether a batch was submitted until another one ends."""


class BatchApi(Protocol):
    """A batch API of a provider. All methods raise the provider errors of `merilo.errors`."""

    max_lines: int
    max_bytes: int

    async def submit(self, mark: str, lines: Sequence[BatchLine]) -> str:
        """Submit a batch with this mark; return its id."""
        ...

    async def find(self, intent: Intent) -> str | None:
        """Return the id of the batch with this mark; None if it was never submitted. Raises Uncertain."""
        ...

    async def ended(self, batch: str) -> bool:
        """Return True if the results of a batch can be read."""
        ...

    async def results(self, batch: str, ids: Sequence[str]) -> list[LineResult]:
        """Return the results of an ended batch with these line ids, in any order. Lines may be missing: they were not
        run.
        """
        ...


def object_in(connection: ChatConnection, answer: WireAnswer) -> Json:
    """Return the JSON object in an answer. Raises the error that it reports, or Permanent if it is something else."""
    if (error := connection.error_in(answer)) is not None:
        raise error
    try:
        found = as_object(loaded(answer.text))
    except ValueError:
        found = None
    if found is None:
        raise Permanent(f"The batch API sent no JSON object but: {excerpt(connection.wire.clean(answer.text))!r}.")
    return found


def objects_in(text: str, *, what: str) -> list[Json]:
    """Return the objects in JSON Lines. Raises Permanent for anything else; `what` names the file in its message."""
    found: list[Json] = []
    # not splitlines: a reply may hold U+2028 and other characters that it takes for line ends
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            each = as_object(loaded(line))
        except ValueError:
            each = None
        if each is None:
            raise Permanent(f"{what}, line {number}: expected a JSON object, got {excerpt(line)!r}.")
        found.append(each)
    return found


def joined(fields: Json) -> str:
    """Return an object as JSON text."""
    return json.dumps(fields, ensure_ascii=False)
