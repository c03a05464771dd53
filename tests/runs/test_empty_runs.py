"""Removal of directories: what merilo deletes, and what it must leave."""

from pathlib import Path

from merilo.runs.directory import discard


def test_a_directory_without_a_manifest_keeps_other_files(tmp_path: Path) -> None:
    """A file of the user in the directory of a run that stopped before its manifest stays."""
    log = tmp_path / "run" / "notes.txt"
    log.parent.mkdir()
    log.write_text("{}\n")
    assert not discard(log.parent)
    assert log.exists()
    log.unlink()
    assert discard(log.parent)
    assert not log.parent.exists()
