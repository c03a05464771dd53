"""Counts wording that readers must decode, in the texts of src, README and docs; the counts may only fall.

Usage: `phrases.py`, which prints the parts over the ceiling and exits with 1; `phrases.py --list [PART]`, which
prints every hit; `phrases.py --write`, which sets the ceiling to the current counts. The expressions are in
phrases.txt.

The texts are string constants, docstrings and comments of src, and Markdown outside code blocks.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PHRASES, CEILING = ROOT / "tools" / "phrases.txt", ROOT / "tools" / "phrases.json"
DATA = (
    "rubrics/",
    "examples/",
)
"""Paths in src whose texts are data: word lists and edits for robustness tests."""
PUBLISHED = "src/merilo_published/"
"""The package whose string constants are wording of other projects; only its docstrings are ours."""
ALLOWED = {
    ("commands/calibrate/text.py", "told"): "a key of the JSON",
    ("judging/kinds/responses.py", "stand in"): "sent to the judge",
    ("judging/json_extraction.py", "told"): "sent to the judge",
    ("metrics/critique.py", "somebody"): "sent to the judge",
    ("metrics/critique.py", "breaks off"): "sent to the judge",
    ("metrics/critique.py", "nobody"): "sent to the judge",
}
"""File and phrase that stay, with the reason."""
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Hit:
    """One phrase in one text."""

    path: str
    line: int
    phrase: str


def expressions() -> list[re.Pattern[str]]:
    """Return the expressions of phrases.txt."""
    lines = PHRASES.read_text(encoding="utf-8").splitlines()
    return [re.compile(line, re.IGNORECASE) for line in lines if line and not line.startswith("#")]


def texts_of_code(source: str, *, docstrings_only: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each string constant, docstring and comment; adjacent comment lines are one text.

    `docstrings_only`: of the string constants, only those that are a statement.
    """
    tree = ast.parse(source)
    nodes = ast.walk(tree)
    if docstrings_only:
        nodes = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    comment: list[str] = []
    last = first = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1 and comment:
                yield first, " ".join(comment)
                comment = []
            first, last = first if comment else token.start[0], token.start[0]
            comment.append(token.string.lstrip("# "))
    if comment:
        yield first, " ".join(comment)


def texts_of_prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each paragraph of Markdown outside code blocks."""
    plain = _FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    for paragraph in re.finditer(r"(?:^.*\S.*\n?)+", plain, re.MULTILINE):
        yield plain.count("\n", 0, paragraph.start()) + 1, paragraph[0]


def sources(part: str) -> list[Path]:
    """Return the files of a part, `src` or `docs`, in order."""
    if part == "src":
        found = (path for path in (ROOT / "src").rglob("*.py"))
        return sorted(path for path in found if not any(name in path.as_posix() for name in DATA))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return [*pages, *(path for name in ("docs", "design", "changes") for path in sorted((ROOT / name).rglob("*.md")))]


def hits(part: str) -> Iterator[Hit]:
    """Yield the hits in a part, `src` or `docs`."""
    rules = expressions()
    for path in sources(part):
        content = path.read_text(encoding="utf-8")
        if part == "src":
            texts = texts_of_code(content, docstrings_only=PUBLISHED in path.as_posix())
        else:
            texts = texts_of_prose(content)
        for line, text in texts:
            flat = " ".join(text.split())
            for rule in rules:
                for found in rule.finditer(flat):
                    name = path.relative_to(ROOT).as_posix()
                    if (name.removeprefix("src/merilo/"), found[0]) not in ALLOWED:
                        yield Hit(name, line, found[0])


def main(arguments: list[str]) -> int:
    """Return 1 if a part has more hits than its ceiling, or fewer, so that the ceiling must be lowered."""
    if arguments[:1] == ["--list"]:
        for part in arguments[1:] or ("src", "docs"):
            for hit in hits(part):
                sys.stdout.write(f"{hit.path}:{hit.line}: {hit.phrase}\n")
        return 0
    counts = {part: sum(1 for _ in hits(part)) for part in ("src", "docs")}
    if arguments == ["--write"]:
        CEILING.write_text(json.dumps(counts) + "\n", encoding="utf-8")
        return 0
    ceilings = json.loads(CEILING.read_text(encoding="utf-8"))
    for part, count in counts.items():
        if count > ceilings[part]:
            advice = f"reword them (python tools/phrases.py --list {part})"
            sys.stdout.write(f"phrases: {count} in {part}, at most {ceilings[part]}; {advice}.\n")
        elif count < ceilings[part]:
            sys.stdout.write(f"phrases: {count} in {part}; lower the ceiling (python tools/phrases.py --write).\n")
    if counts == ceilings:
        sys.stdout.write(f"phrases: {counts['src']} in src, {counts['docs']} in docs, as the ceiling allows.\n")
    return int(counts != ceilings)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
