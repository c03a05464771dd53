"""Small files that people write: YAML, TOML and JSON."""

from pathlib import Path

import pytest
from each_case import each_case

from merilo.data.config_files import read_document
from merilo.errors import UsageError

MERGED = b"a0: &a0 {k: v}\n" + b"".join(
    b"a%d: &a%d {<<: [*a%d, *a%d, *a%d, *a%d]}\n" % (each, each, *[each - 1] * 4) for each in range(1, 20)
)
"""Twenty lines that stand for a million million keys."""


@each_case(
    ("name", "text"),
    [
        ("a.yaml", "name: x\nlabels:\n  - {label: b, points: 1}\n"),
        ("a.YML", "\ufeffname: x\nlabels: [{label: b, points: 1}]  # a note\n"),
        ("a.toml", 'name = "x"\n[[labels]]\nlabel = "b"\npoints = 1\n'),
        ("a.json", '{"name": "x", "labels": [{"label": "b", "points": 1}]}'),
    ],
)
def test_each_form_gives_the_same_object(tmp_path: Path, name: str, text: str) -> None:
    """The suffix tells the form; the content is the same plain object."""
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert read_document(path) == {"name": "x", "labels": [{"label": "b", "points": 1}]}


@each_case(
    ("name", "content", "message"),
    [
        ("a.yaml", b"name: x\nlabels: [\n", "a.yaml, line 3: not valid YAML"),
        ("a.yaml", b"name: x\nname: y\n", "a.yaml, line 2: not valid YAML (duplicate key 'name')."),
        ("a.yaml", b"? [a, b]\n: c\n", "a.yaml, line 1: not valid YAML (found unhashable key)."),
        ("a.yaml", b"when: 2024-13-40\n", "a.yaml: not valid YAML (month must be in 1..12)."),
        ("a.yaml", b"!!python/object/apply:os.getcwd []\n", "a.yaml, line 1: not valid YAML (could not determine"),
        ("a.yaml", b"name: \x00\n", "a.yaml: not valid YAML"),
        ("a.yaml", b"- a\n", "a.yaml must contain one object with text keys, got a list of 1."),
        ("a.yaml", b"1: a\n", "a.yaml must contain one object with text keys"),
        ("a.yaml", b"[" * 5_000, "a.yaml is nested too deeply."),
        ("a.yaml", MERGED, "too many keys are merged"),
        ("a.json", b'{"name": {"a": 1, "b": 2, "a": 3}}', "a.json: not valid JSON (duplicate key 'a')."),
        ("a.json", b'{"name": ' + b"9" * 5_000 + b"}", "a.json: not valid JSON (Exceeds the limit"),
        ("a.toml", b"name = " + b"9" * 5_000, "a.toml: not valid TOML (Exceeds the limit"),
        ("a.toml", b"name = \n", "a.toml: not valid TOML (Invalid value (at line 1, column 8))."),
        ("a.json", b'{"name": \n}', "a.json, line 2: not valid JSON (Expecting value)."),
        ("a.txt", b"", "a.txt: expected a file name with .yaml, .yml, .toml or .json, got '.txt'."),
        ("a.yaml", b"\xff\xfe", "a.yaml is not UTF-8 (byte 1); save it as UTF-8."),
        ("a.yaml", b"#" * (2**20 + 1), "a.yaml must be at most 1,048,576 bytes long."),
    ],
)
def test_what_cannot_be_read_says_where(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    """The error names the file, the line where there is one, and what is wrong."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UsageError) as error:
        read_document(path)
    assert message in str(error.value)


def test_a_key_of_very_many_parts_is_told_at_once(tmp_path: Path) -> None:
    """A dotted key that would keep the TOML reader busy for minutes is a sentence."""
    path = tmp_path / "suite.toml"
    path.write_text(".".join("a" * 20_000) + " = 1\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"suite\.toml is nested too deeply"):
        read_document(path)
