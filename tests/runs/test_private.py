"""Who can read the files of a run and of the cache."""

import stat
import sys
from pathlib import Path

import pytest
from graded_runs import graded

import merilo
from merilo.commands.verify.replay import replay_run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such modes")


def modes(directory: Path) -> dict[str, int]:
    """The mode of a directory and of each file in it, by its name."""
    found = {each.name: stat.S_IMODE(each.stat().st_mode) for each in directory.iterdir()}
    return {".": stat.S_IMODE(directory.stat().st_mode), **found}


@pytest.mark.parametrize("folder", [None, 0o755, 0o770])
def test_runs_and_cache_are_for_this_user_only(
    tmp_path: Path, folder: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a directory that merilo made. One that the user made decides who can read the files in it."""
    run, cache = tmp_path / "new" / "run", tmp_path / "cache" / "verdicts.sqlite"
    monkeypatch.setenv("MERILO_CACHE", str(cache))
    if folder is not None:
        for each in (run, cache.parent):
            each.mkdir(parents=True)
            each.chmod(folder)
    row = {"id": "a", "user_input": "Who?", "response": "Anna.", "retrieved_contexts": ["Anna did it."]}
    judge = merilo.ScriptedJudge.by(lambda _: {"grade": 1, "evidence": [0]}, version="1")
    merilo.evaluate([row], metrics=["context_relevance"], out=run, judge=judge)
    for place in (run, cache.parent):
        found = modes(place)
        assert found.pop(".") == (0o700 if folder is None else folder)
        assert found
        assert {mode & ~0o022 for mode in found.values()} == {0o600 if folder is None else folder & 0o644}


def test_a_directory_that_is_built_is_private(tmp_path: Path) -> None:
    """That of a replayed run, and all its files."""
    graded(tmp_path / "run", {"a": [2], "b": [0]})
    replay_run(tmp_path / "run", out=tmp_path / "copy")
    found = modes(tmp_path / "copy")
    assert (found.pop("."), {*found.values()}) == (0o700, {0o600})
