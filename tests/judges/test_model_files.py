"""The files of the embedded judge are what was shipped, or nothing is judged."""

import shutil
from pathlib import Path

import pytest
from each_case import each_case

from merilo.errors import DataError
from merilo.judges import words
from merilo.judges.words import LOCK, model_file

FILES = ("curves.v3.json", "words.v1.json")
JUDGES = Path(words.__file__).parent


def test_files_are_those_of_the_lock() -> None:
    """Whoever fits the model anew writes the digests anew: training/README.md says how."""
    assert all(model_file(name) for name in FILES)


@each_case("name", FILES)
@each_case("damage", ["one digit", "cut", "empty", "swapped", "gone"])
def test_a_damaged_file_is_named(name: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed digit would be another threshold, and so other verdicts."""
    for each in (*FILES, LOCK):
        shutil.copy(JUDGES / each, tmp_path)
    path = tmp_path / name
    content = path.read_bytes()
    digit = max(content.find(b"0.1"), content.find(b"0.2"), content.find(b"0.3"))
    match damage:
        case "one digit":
            path.write_bytes(content[:digit] + b"0.9" + content[digit + 3 :])
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "empty":
            path.write_bytes(b"")
        case "swapped":
            path.write_bytes(path.with_name(FILES[1 - FILES.index(name)]).read_bytes())
        case _:
            path.unlink()
    monkeypatch.setattr(words, "files", lambda _: tmp_path)
    with pytest.raises(DataError, match="reinstall merilo") as raised:
        model_file(name)
    assert name in str(raised.value)
