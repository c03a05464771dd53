"""Runs a function on blocks in the workers of a Ray cluster: the only module that imports Ray.

`map_batches` of Ray Data over a pool of actors does the work. Ray restarts a worker that died, and repeats its
blocks. One more actor holds the object that all workers share.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.errors import MeriloError, UsageError
from merilo.extras import optional_module

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from merilo.runners.base import Work

_ENVIRONMENT: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # otherwise Ray replaces 127.0.0.1 by an address that others can reach
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # Ray's own processes would write warnings into the progress line
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
}
_LOOPBACK: Final = "127.0.0.1"
_OBJECT_STORE_BYTES: Final = 100 * 2**20
"""Memory for objects that processes exchange: numbers of blocks and results only."""
_log = logging.getLogger("merilo")
_CALL_S: Final = 60.0
"""Seconds to wait for the shared object, which answers within milliseconds."""


@dataclass(frozen=True, slots=True)
class _Call:
    """Calls methods of the shared object in its actor."""

    ray: Any
    shared: Any

    def __call__(self, name: str, *args: object) -> Any:
        return self.ray.get(self.shared.call.remote(name, *args), timeout=_CALL_S)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return _call, (self.shared,)  # a module is not sent to the workers


def _call(shared: object) -> _Call:
    return _Call(optional_module("ray", wanted_by="--runner ray", install="merilo[ray]"), shared)


class _Shared:
    """The actor of the shared object."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._shared = make()

    def call(self, name: str, *args: object) -> object:
        return getattr(self._shared, name)(*args)


class _Worker:
    """The actor that runs the work on its blocks; Ray makes one for each worker."""

    def __init__(self, work: Work, call: _Call, directory: str) -> None:
        with suppress(OSError):  # on another machine, where only absolute paths can be used
            os.chdir(directory)
        self._work = work
        self._call = call

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[str]]:
        return {"result": [json.dumps(self._done(int(block))) for block in batch["item"]]}

    def _done(self, block: int) -> dict[str, object]:
        try:
            return {"result": self._work(block, self._call)}
        except Exception as error:  # noqa: BLE001  a bug: Ray would bury it in the traces of its own code
            _log.exception("block %s failed", block)
            return {"error": f"{type(error).__name__}: {error}"}


@dataclass(frozen=True, slots=True)
class RayPool:
    """The workers of a Ray cluster; see `Pool`."""

    ray: Any
    work: Work
    call: _Call
    workers: int

    def results(self, blocks: Sequence[int]) -> Iterator[Any]:
        """See `Pool.results`."""
        data: Any = optional_module("ray.data", wanted_by="--runner ray", install="merilo[ray]")
        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        # one task for each worker: a second one would wait there while another worker has nothing to do
        strategy = data.ActorPoolStrategy(size=self.workers, max_tasks_in_flight_per_actor=1)
        source = data.from_items(list(blocks), override_num_blocks=len(blocks))
        mapped = source.map_batches(
            _Worker,
            batch_size=1,
            compute=strategy,
            num_cpus=1,
            fn_constructor_args=(self.work, self.call, str(Path.cwd())),
        )
        try:
            for row in mapped.iter_rows():
                done = json.loads(row["result"])
                if "error" in done:
                    raise MeriloError(
                        f"A worker stopped: {done['error']} Its traceback is in Ray's logs of the worker."
                    )
                yield done["result"]
        except self.ray.exceptions.RayError as error:
            raise MeriloError(f"Ray stopped: {_last_line(error)} Repeat the command to resume.") from error


@contextmanager
def ray_pool(work: Work, make_shared: Callable[[], object], workers: int) -> Generator[RayPool]:
    """Connect to the cluster at RAY_ADDRESS, or start one on this machine that only this machine can reach.

    A Ray that the caller has initialised is used and stays open.
    """
    ray = checked_ray()
    _check_sendable(work, ray)
    own = not ray.is_initialized()
    if own:
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address := os.environ.get("RAY_ADDRESS"):
            try:
                ray.init(**quiet)
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise UsageError(f"No Ray cluster at RAY_ADDRESS={address}: {_last_line(error)}") from error
        else:
            ray.init(
                num_cpus=workers,
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE_BYTES,
                _node_ip_address=_LOOPBACK,
                **quiet,
            )
    shared = ray.remote(num_cpus=0)(_Shared).remote(make_shared)
    try:
        yield RayPool(ray, work, _Call(ray, shared), workers)
    finally:
        ray.kill(shared)
        if own:
            ray.shutdown()


def _check_sendable(work: Work, ray: Any) -> None:  # Any: Ray has no types
    try:
        ray.cloudpickle.dumps(work)
    except Exception as error:  # whatever the methods of the user's objects raise
        raise UsageError(
            f"The judge, a metric or another object cannot be sent to the workers ({error}). Create it in a file and "
            "name it there: FILE.py:NAME."
        ) from error


def checked_ray() -> Any:
    """Return Ray. Raises UsageError if it is not installed, or would listen beyond this machine."""
    local = not os.environ.get("RAY_ADDRESS")
    if local:
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
    ray: Any = optional_module("ray", wanted_by="--runner ray", install="merilo[ray]")
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
