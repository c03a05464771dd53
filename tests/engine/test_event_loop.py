"""The event loop of our own thread: uvloop's where there is one, else asyncio's, with the same results."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest
from judged_rivers import rows
from server import JudgeServer

from merilo.engine.event_loop import loop_factory

if TYPE_CHECKING:
    from judged_rivers import Evaluate


def test_it_is_uvloop_where_it_is_installed() -> None:
    """The faster loop is taken without being asked for."""
    uvloop = pytest.importorskip("uvloop")
    loop = loop_factory()()
    loop.close()
    assert isinstance(loop, uvloop.Loop)


def test_it_is_asyncio_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has no uvloop; nothing is said and nothing lacks."""
    monkeypatch.setitem(sys.modules, "uvloop", None)
    loop = loop_factory()()
    loop.close()
    assert isinstance(loop, asyncio.SelectorEventLoop)


@pytest.mark.parametrize("installed", [True, False])
def test_a_run_is_the_same_on_both(evaluated: Evaluate, monkeypatch: pytest.MonkeyPatch, installed: bool) -> None:
    """Requests to a server are sent, answered and scored on either loop."""
    if not installed:
        monkeypatch.setitem(sys.modules, "uvloop", None)
    with JudgeServer() as server:
        run = evaluated(rows(5), judge="openai:m", base_url=server.base_url, metrics=["context_relevance"])
    assert run.metrics["context_relevance"].scored == 5
    assert len(server.asked) == run.usage["requests"]
