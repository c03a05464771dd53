"""Removal of directories: what merilo deletes, and what it must leave."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from merilo.runs.directory import RUNS, staging_directory
from merilo.runs.empty_runs import discard

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_directory_without_a_manifest_keeps_other_files(tmp_path: Path) -> None:
    """An event log in the directory of a run that stopped before its manifest stays."""
    log = tmp_path / "run" / "events.jsonl"
    log.parent.mkdir()
    log.write_text("{}\n")
    assert not discard(log.parent)
    assert log.exists()
    log.unlink()
    assert discard(log.parent)
    assert not log.parent.exists()


def test_only_staging_directories_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`.merilo/runs` may be a link to a place with hidden directories of other programs."""
    monkeypatch.chdir(tmp_path)
    names = [".download.part", ".0123456789abcdef.part"]
    for name in names:
        (RUNS / name).mkdir(parents=True)
        os.utime(RUNS / name, (time.time() - 3600,) * 2)
    staging_directory()
    assert [(RUNS / name).exists() for name in names] == [True, False]
