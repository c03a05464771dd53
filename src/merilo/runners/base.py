"""The interface of a runner: it runs a function on each block in several processes, which share one object.

A runner knows nothing of an evaluation. `commands/evaluate/distributed.py` plans the blocks and merges their results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    Call: TypeAlias = Callable[..., Any]  # Any: the value that the method returns
    """Calls a method of the shared object: its name and arguments."""
    Work: TypeAlias = Callable[[int, Call], object]
    """Evaluates a block in a worker. It is called again if its worker dies."""


class Pool(Protocol):
    """The workers of a runner while they are in use."""

    @property
    def call(self) -> Call:
        """Calls a method of the shared object; may be used from any thread."""
        ...

    def results(self, blocks: Sequence[int]) -> Iterator[Any]:  # Any: what the work returns
        """Run the work on each block; yield the results as they come, in any order."""
        ...


class Runner(Protocol):
    """Starts workers, or connects to them."""

    def __call__(self, work: Work, make_shared: Callable[[], object], workers: int) -> AbstractContextManager[Pool]:
        """Start this many workers and one process with the shared object."""
        ...
