"""The runner on Ray, with a real local cluster of two workers."""

from __future__ import annotations

import json
import os
import signal
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import pytest
from grouping import grouped

import merilo
from merilo.errors import MeriloError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.extras,
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed here"),  # it must not be imported first
    pytest.mark.filterwarnings("ignore"),
]
LISTENING = "0A"
LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")


def listening() -> list[str]:
    """The addresses, in hexadecimal, at which this process and those that it started listen."""
    own = {os.getpid()}
    parents = {int(path.name): parent_of(path) for path in Path("/proc").glob("[0-9]*")}
    while new := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= new
    sockets = {target for pid in own for target in files_of(pid)}
    found: list[str] = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and f"socket:[{fields[9]}]" in sockets:
                found.append(fields[1].partition(":")[0])
    return found


def parent_of(path: Path) -> int:
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def files_of(pid: int) -> Iterator[str]:
    try:
        for each in Path(f"/proc/{pid}/fd").iterdir():
            yield str(each.readlink())
    except OSError:
        return


def test_blocks_of_a_killed_worker_are_repeated_and_nothing_listens_beyond_this_machine(tmp_path: Path) -> None:
    """Each block has one result, only that of the killed worker was begun twice, and all sockets are local.

    An error of the work ends the results, with its message.
    """
    from merilo.commands.evaluate.ray_pool import ray_pool

    def square(block: int) -> dict[str, int]:
        if block == 99:
            raise ValueError("no such river")
        with (tmp_path / str(block)).open("ab") as begun:
            begun.write(b"1")
            times = begun.tell()
        if block == 3 and times == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"block": block, "square": block * block, "times": times}

    results, addresses = list[dict[str, int]](), list[str]()
    for each in ray_pool(square, range(1, 7), 2):
        results.append(each)
        addresses += listening()
    with pytest.raises(MeriloError, match="A worker stopped: ValueError: no such river"):
        list(ray_pool(square, [99], 1))
    results.sort(key=lambda each: each["block"])
    assert [each["square"] for each in results] == [1, 4, 9, 16, 25, 36]
    assert results[2]["times"] == 2
    assert addresses
    assert all(address in LOOPBACK for address in addresses), addresses


def test_an_object_that_cannot_be_sent_is_refused_at_once() -> None:
    """A lock cannot be sent to another process; the message says so, before Ray is started."""
    from merilo.commands.evaluate.ray_pool import ray_pool

    lock = Lock()

    def work(block: int) -> object:
        with lock:
            return block

    with pytest.raises(UsageError, match=r"cannot be sent to the workers \(cannot pickle"):
        list(ray_pool(work, [1], 2))


def test_a_run_on_ray_has_the_bytes_of_one_process(tmp_path: Path) -> None:
    """With the embedded judge, on two workers."""
    data = tmp_path / "data.jsonl"
    rows = [
        {"id": str(n), "user_input": f"How long is river {n}?", "retrieved_contexts": [f"River {n} is {n} km long."]}
        for n in range(12)
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options: dict[str, Any] = {"metrics": ["context_relevance"], "cache": False}
    one = merilo.evaluate(data, **grouped(out=tmp_path / "one", **options))
    many = merilo.evaluate(data, **grouped(out=tmp_path / "many", runner="ray", workers=2, **options))
    assert many.complete
    for name in ("outcomes.jsonl", "summary.json"):
        assert (one.path / name).read_bytes() == (many.path / name).read_bytes()
