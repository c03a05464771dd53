"""Removal of directories: what merilo deletes, and what it must leave."""

from pathlib import Path

from merilo.runs.directory_usage import discard


def test_a_directory_without_a_manifest_keeps_other_files(tmp_path: Path) -> None:
    """Notes in the directory of a run that stopped before its manifest stays."""
    notes = tmp_path / "run" / "notes.txt"
    notes.parent.mkdir()
    notes.write_text("{}\n")
    assert not discard(notes.parent)
    assert notes.exists()
    notes.unlink()
    assert discard(notes.parent)
    assert not notes.parent.exists()
