"""The workers of a Ray cluster, each of which runs a function on blocks: the only module that imports Ray.

`map_batches` of Ray Data over a pool of actors does the work. Ray restarts a worker that died, and repeats its
blocks.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from merilo.errors import MeriloError, UsageError
from merilo.lazy import optional_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Work: TypeAlias = Callable[[int], Any]  # Any: its result
    """Evaluates a block in a worker. It is called again if its worker dies."""
    Runner: TypeAlias = Callable[[Work, Iterable[int], int], Iterator[Any]]
    """Does the work on each block with this number of workers; yields the results as they come, in any order."""

_ENVIRONMENT: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # otherwise Ray replaces 127.0.0.1 by an address that others can reach
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # Ray's own processes would write warnings into the progress line
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
}
_LOOPBACK: Final = "127.0.0.1"
_OBJECT_STORE_BYTES: Final = 100 * 2**20
"""Memory for objects that processes exchange: numbers of blocks and results only."""
_QUIET: Final = {"log_to_driver": False, "logging_level": logging.ERROR}
_log = logging.getLogger("merilo")


def _ray(name: str = "ray") -> Any:  # Any: Ray has no types
    return optional_module(name, wanted_by="--runner ray", install="merilo[ray]")


class _Worker:
    """The actor that runs the work on its blocks; Ray makes one for each worker."""

    def __init__(self, work: Work, directory: str) -> None:
        with suppress(OSError):  # on another machine, where only absolute paths can be used
            os.chdir(directory)
        self._work = work

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[str]]:
        return {"result": [json.dumps(self._done(int(block))) for block in batch["item"]]}

    def _done(self, block: int) -> dict[str, object]:
        try:
            return {"result": self._work(block)}
        except Exception as error:  # noqa: BLE001  a bug: Ray would bury it in the traces of its own code
            _log.exception("block %s failed", block)
            return {"error": f"{type(error).__name__}: {error}"}


def _results(work: Work, blocks: Iterable[int], workers: int) -> Iterator[Any]:
    data, items = _ray("ray.data"), [*blocks]
    data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    mapped = data.from_items(items, override_num_blocks=len(items)).map_batches(
        _Worker,
        batch_size=1,
        # one task for each worker: a second one would wait there while another worker has nothing to do
        compute=data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=1),
        num_cpus=1,
        fn_constructor_args=(work, str(Path.cwd())),
    )
    try:
        for row in mapped.iter_rows():
            done = json.loads(row["result"])
            if "error" in done:
                raise MeriloError(f"A worker stopped: {done['error']} Its traceback is in Ray's logs of the worker.")
            yield done["result"]
    except _ray().exceptions.RayError as error:
        raise MeriloError(f"Ray stopped: {_last_line(error)} Repeat the command to resume.") from error


def ray_pool(work: Work, blocks: Iterable[int], workers: int) -> Iterator[Any]:
    """Yield results from the cluster at RAY_ADDRESS, or from one started on this machine that only it can reach.

    A Ray that the caller has initialised is used and stays open.
    """
    ray = checked_ray()
    try:
        ray.cloudpickle.dumps(work)
    except Exception as error:  # whatever the methods of the user's objects raise
        raise UsageError(
            f"The judge, a metric or another object cannot be sent to the workers ({error}). Create it in a file and "
            "name it there: FILE.py:NAME."
        ) from error
    own = not ray.is_initialized()
    if own and (address := os.environ.get("RAY_ADDRESS")):
        try:
            ray.init(**_QUIET)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise UsageError(f"No Ray cluster at RAY_ADDRESS={address}: {_last_line(error)}") from error
    elif own:
        memory = {"object_store_memory": _OBJECT_STORE_BYTES, "include_dashboard": False}
        ray.init(num_cpus=workers, _node_ip_address=_LOOPBACK, **memory, **_QUIET)
    try:
        yield from _results(work, blocks, workers)
    finally:
        if own:
            ray.shutdown()


def checked_ray() -> Any:
    """Return Ray. Raises UsageError if it is not installed, or would listen beyond this machine."""
    local = not os.environ.get("RAY_ADDRESS")
    if local:
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
    ray = _ray()
    if local and not ray.is_initialized() and ray.util.get_node_ip_address() != _LOOPBACK:
        raise UsageError(
            "Ray was imported before merilo could keep it to this machine. Call ray.init() yourself, or set "
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 before the import."
        )
    return ray


def _last_line(error: Exception) -> str:
    """Return the last line of an error of Ray, which follows the traces of all processes."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{lines[-1].strip():.200}".rstrip(".") + "."
