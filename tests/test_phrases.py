"""The check of wording finds phrases in code and prose, and nothing in code blocks."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from phrases import expressions, texts_of_code, texts_of_prose

CODE = '''"""A module that is told."""

LIMIT = 3  # so many requests

# in
# the air
NAME = f"whoever {LIMIT}"
'''
PROSE = "A line\nbeside another.\n\n```python\nbeside = 1\n```\n\nPlain.\n"


def found(texts: list[tuple[int, str]]) -> list[tuple[int, str]]:
    rules = expressions()
    return sorted((line, hit[0]) for line, text in texts for rule in rules for hit in rule.finditer(text))


def test_phrases_in_code_are_found_with_their_line() -> None:
    """Docstrings, string constants and comments are read; a phrase may go over two lines of a comment."""
    assert found([*texts_of_code(CODE)]) == [(1, "told"), (3, "so many"), (5, "in the air"), (7, "whoever")]


def test_phrases_in_prose_are_found_outside_code_blocks() -> None:
    """A paragraph is one text; code blocks are left out."""
    assert found([*texts_of_prose(PROSE)]) == [(1, "beside")]
