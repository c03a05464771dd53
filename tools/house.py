"""Measure the structure of the code: size, layers, import cycles, places that one change touches, repeated code.

Usage: `house.py [ROOT]`. ROOT is a checkout, so that two versions can be compared; this one by default.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MIN_TOKENS = 50
"""Shortest run of equal tokens that counts as repeated code."""
_KINDS = ("Addresses", "Sufficiency", "Entities", "Mentions", "Noncommittal")


def main(root: Path) -> None:
    """Print one line for each measure."""
    source = root / "src" / "merilo"
    files = sorted(source.rglob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    rows = [
        ("modules in src", len(files)),
        ("lines in src, without comments and docstrings", sum(map(_code_lines, texts.values()))),
        ("lines in src, without comments", sum(map(_lines_without_comments, texts.values()))),
        ("import cycles, type-checking imports included", _cycles(source, texts)),
        ("declared layers", _layers(root)),
        (
            "modules that mention one kind of question (most, of five kinds)",
            max(_mentions(texts, each) for each in _KINDS),
        ),
        ("modules with embedder_base_url", sum("embedder_base_url" in text for text in texts.values())),
        ("pairs of functions with the same structure", _equal_functions(texts)),
    ]
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        sys.stdout.write(f"{label.ljust(width)}  {value:>7,}\n")


def _lines_without_comments(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))


def _code_lines(text: str) -> int:
    """Return the number of lines with code: neither blank, nor a comment, nor part of a docstring."""
    lines: set[int] = set()
    previous = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        alone = token.type == tokenize.STRING and previous in {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
        if token.type in {tokenize.COMMENT, tokenize.NL}:
            continue
        if not alone and token.string.strip():
            lines.update(range(token.start[0], token.end[0] + 1))
        previous = token.type
    return len(lines)


def _mentions(texts: dict[Path, str], kind: str) -> int:
    return sum(re.search(rf"\b{kind}(?:Verdict|Label)?\b", text) is not None for text in texts.values())


def _layers(root: Path) -> int:
    found = re.search(
        r"^layers = \[\n(.*?)^\]", (root / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return 0 if found is None else sum(line.strip().startswith('"') for line in found[1].splitlines())


def _cycles(source: Path, texts: dict[Path, str]) -> int:
    """Return how many imports must be removed, one of each cycle that is found, until there is no cycle."""
    graph = {_module(source, path): _imports(source, text) for path, text in texts.items()}
    graph = {name: (found & graph.keys()) - {name} for name, found in graph.items()}
    removed = 0
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            # The sorter lists a cycle as names of which each is imported by the next one.
            first, second = error.args[1][:2]
            graph[second].discard(first)
            removed += 1
        else:
            return removed


def _module(source: Path, path: Path) -> str:
    parts = ("merilo", *path.relative_to(source).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(source: Path, text: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "merilo":
            for alias in node.names:
                whole = source.parent / Path(*f"{node.module}.{alias.name}".split("."))
                deeper = whole.with_suffix(".py").is_file() or (whole / "__init__.py").is_file()
                found.add(f"{node.module}.{alias.name}" if deeper else node.module or "")
    return found - {"merilo"}


def _equal_functions(texts: dict[Path, str]) -> int:
    """Return the number of pairs of functions of at least `_MIN_TOKENS` tokens that differ in names and values only."""
    shapes: Counter[str] = Counter()
    for text in texts.values():
        shapes.update(_shapes(text))
    return sum(sum(1 for _ in combinations(range(count), 2)) for count in shapes.values())


def _shapes(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = [
                each for each in node.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            ]
            code = ast.unparse(ast.Module(body, []))
            tokens = [each for each in tokenize.generate_tokens(io.StringIO(code).readline) if each.string.strip()]
            if len(tokens) >= _MIN_TOKENS:
                yield " ".join(each.string if each.type == tokenize.OP else str(each.type) for each in tokens)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
