"""`merilo judge fetch` as people type it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hub_server import HubServer

if TYPE_CHECKING:
    from command_line import Here

FILES = {"model.onnx": b"weights", "tokenizer.json": b"{}", "config.json": b"{}", "run.py": b"import os"}


def environment(here: Here, hub: HubServer) -> dict[str, str]:
    return {
        "HF_ENDPOINT": hub.url,
        "HF_HUB_CACHE": str(here.path / "cache"),
        "XDG_DATA_HOME": str(here.path / "data"),
    }


def test_it_shows_what_it_takes_and_needs_a_yes(here: Here) -> None:
    """Without a terminal and without --yes nothing is downloaded; with --yes the lock is written."""
    with HubServer() as hub:
        hub.add("org/name", FILES, "cc-by-nc-4.0")
        env = environment(here, hub)
        asked = here.merilo("judge", "fetch", "org/name", env=env)
        assert asked.returncode == 2
        assert "licence   CC-BY-NC-4.0: NOT FOR COMMERCIAL USE" in asked.stdout
        assert "3 files, 11 bytes" in asked.stdout
        assert "add --yes" in asked.stderr
        assert not [path for path in hub.requests if "/resolve/" in path]
        done = here.merilo("judge", "fetch", "org/name", "--yes", env=env)
        assert done.returncode == 0, done.stderr
        assert "3 files downloaded and verified" in done.stdout
        hub.requests.clear()
        again = json.loads(here.merilo("judge", "fetch", "org/name", "--json", env=env).stdout)
        assert hub.requests == []
    lock = here.path / "data" / "merilo" / "judges" / "org--name" / "judge.lock"
    assert (again["lock"], again["downloaded"], again["non_commercial"]) == (str(lock), False, True)
    assert sorted(json.loads(lock.read_text(encoding="utf-8"))["files"]) == [
        "config.json",
        "model.onnx",
        "tokenizer.json",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("org/none", "--yes"), "The hub has no model org/none"),
        (("nothing",), "No local judge 'nothing'"),
        (("org/name", "--revision", "v9"), "org/name has no revision 'v9'."),
        ((), "Missing argument"),
    ],
)
def test_errors_are_sentences(here: Here, words: tuple[str, ...], message: str) -> None:
    """Each ends with status 2 and without a traceback."""
    with HubServer() as hub:
        hub.add("org/name", FILES)
        done = here.merilo("judge", "fetch", *words, env=environment(here, hub))
    assert done.returncode == 2
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
