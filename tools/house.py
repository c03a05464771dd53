"""Measures the structure of the code and compares it with house.toml, whose figures only fall.

An import counts wherever it is written: at the top of a module, inside a function, for type checkers, or in a string
that names a module.

Usage: `house.py` prints each figure with its budget; `house.py check` prints the figures over budget and exits with 1;
`house.py write` lowers the budget to today's figures. A figure under `[floors]` only rises.

A new feature is paid by a deletion of the same size, and house.toml says which.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent
SOURCE, BUDGET = ROOT / "src", ROOT / "house.toml"
CORE, PUBLISHED = "merilo", "merilo_published"
_MIN_TOKENS = 50
"""Shortest function, in tokens, that counts as repeated code."""
_NAMED = re.compile(rf"(?:{CORE}|{PUBLISHED})(?:\.\w+)+(?=:\w+$|$)")
"""A string that names a module, or a name in it: `merilo.api:gate`."""
_ROOMS = (
    r"errors|plugins|version|extras|lazy|numbers|short_repr|bounded_cache|cancellation",
    r"(stats|data|adapters|judging|providers)\b.*",
    r"metrics\b.*",
    r"(judges|runs)\b.*",
    r"engine\b.*",
    r"results\b.*",
    r"commands\.(option|keywords|blocking|exit_codes)",
    r"commands\.(calibrate|label)\b.*",
    r"commands\.(compare|gate)\b.*",
    r"commands\.(evaluate|plan|questions|imports|merge|demo)\b.*",
    r"commands\.(check|watch|diagnose)\b.*",
    r"rendering\b.*|commands\.(report|view|show|metrics|export|runs|verify)\b.*|commands\.\w+\.(text|page|record|html)",
    r"commands\.\w+\.cli|commands\.(command|project_file)|cli|api|shown|testing|pytest_plugin|compat|__main__",
)
"""The rooms from the lowest to the highest, by their modules, of which the highest match counts; a module may import
those of its own room and of lower ones."""
_EXCUSE = re.compile(r"# noqa|# type: ignore|# pyright: ignore|\bcast\(")
_TRACED = """
import json, sys, tempfile, threading
from merilo import compare, evaluate

row = {"user_input": "When?", "retrieved_contexts": ["In 1889."], "response": "In 1889."}

def traced(call):
    calls, files = 0, set()
    def note(frame, event, argument):
        nonlocal calls
        if event == "call" and "/merilo/" in (name := frame.f_code.co_filename):
            calls += 1
            files.add(name)
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        result = call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return result, calls, len(files)

with tempfile.TemporaryDirectory() as folder:
    options = {"metrics": ["context_precision"], "storage": {"cache": False}}
    judge = {"judge": ASK}
    first = evaluate([row], out=folder + "/first", **options, **judge)  # imports are not counted
    compare(first, first)
    run, *evaluated = traced(lambda: evaluate([row], out=folder + "/a", **options, **judge))
    other = evaluate([row], out=folder + "/b", **options, **judge)
    _, *compared = traced(lambda: compare(run, other))
print(json.dumps({"evaluate": evaluated, "compare": compared}))
"""


def figures() -> dict[str, dict[str, int]]:
    """Return today's figures by section of house.toml."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    graph = _graph(trees)
    rooms: Counter[str] = Counter()
    for path, text in texts.items():
        rooms[_room(path)] += _lines(text)
    comments = sum(_comments(text) for text in texts.values())
    surface = _surface()
    return {
        "rooms": dict(sorted(rooms.items())),
        "whole": {
            "lines of src": rooms.total(),
            "lines of the core": rooms.total() - rooms["published"],
            "functions and dataclass fields": sum(map(_decisions, trees.values())),
            "lines of tests": sum(_lines(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("*.py")),
            "words of docs": _words([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]),
            "words of design": _words((ROOT / "design").glob("*.md")),
            "modules": len(texts),
            "commands": surface["commands"],
            "options of run": surface["run"],
            "options of all commands": surface["options"],
            "public names": surface["names"],
            "import cycles": _cycles(graph),
            "imports of a higher room": _upward(graph),
            "imports of published definitions by the core": _to_published(graph),
            "pairs of functions with the same structure": _equal_functions(trees.values()),
            "noqa, ignores and casts": sum(len(_EXCUSE.findall(text)) for text in texts.values()),
        },
        "calls": {**_traced(), "calls of a judged sample": _calls_of_a_sample()},
        "floors": {"comments per 1,000 lines": comments * 1000 // rooms.total()},
    }


def _room(path: Path) -> str:
    package, *folders, _ = path.relative_to(SOURCE).parts
    return "published" if package == PUBLISHED else folders[0] if folders else "top"


def _lines(text: str) -> int:
    """Return the number of lines that are not blank."""
    return sum(1 for line in text.splitlines() if line.strip())


def _comments(text: str) -> int:
    return sum(token.type == tokenize.COMMENT for token in tokenize.generate_tokens(io.StringIO(text).readline))


def _words(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").split()) for path in paths)


def _surface() -> dict[str, int]:
    """Return the number of commands, options in their help, and names in `merilo`."""
    import typer

    import merilo
    from merilo.cli import app, commands

    shown: dict[str, int] = {}
    for command in commands():
        found = typer.main.get_command(app())
        for word in command.name.split():
            found = found.commands[word]
        shown[command.name] = sum(each.param_type_name == "option" and not each.hidden for each in found.params)
    return {
        "commands": len(commands()),
        "run": shown["run"],
        "options": sum(shown.values()),
        "names": len(merilo.__all__),
    }


def _traced() -> dict[str, int]:
    """Return the calls and modules of merilo that one evaluated sample and one comparison execute, in a new process.

    The smallest of five counts: a pause of the machine makes a timer due, which writes what is stored by then.
    """
    counts = [_traced_once() for _ in range(5)]
    return {name: min(each[name] for each in counts) for name in counts[0]}


def _traced_once() -> dict[str, int]:
    asked = "__import__('merilo').ScriptedJudge.by(lambda question: __import__('merilo.judging.kinds.contexts', "
    asked += "fromlist=['x']).UsefulnessVerdict(True), version='1')"
    done = subprocess.run(
        [sys.executable, "-c", _TRACED.replace("ASK", asked)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    return {
        f"{what} of {name} (one sample)": number
        for name, numbers in found.items()
        for what, number in zip(("calls", "modules"), numbers, strict=True)
    }


def _calls_of_a_sample() -> int:
    """Return the calls of Python and C functions that one judged sample takes, from its row to its outcomes."""
    script = ROOT / "benchmarks" / "sample_calls.py"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return int(subprocess.run([sys.executable, script], env=environment, stdout=subprocess.PIPE, check=True).stdout)


def _decisions(tree: ast.Module) -> int:
    """Return the number of functions, methods included, and of fields of dataclasses: what a reader must hold."""
    nodes = [*ast.walk(tree)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    fields = [
        each
        for node in classes
        if any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
        for each in node.body
        if isinstance(each, ast.AnnAssign)
    ]
    return len(fields) + sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes)


def _graph(trees: Mapping[Path, ast.Module]) -> dict[str, set[str]]:
    """Return each module with the modules of ours that it imports."""
    graph = {_module(path): _imports(tree) for path, tree in trees.items()}
    return {name: (imported & graph.keys()) - {name} for name, imported in graph.items()}


def _module(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in {CORE, PUBLISHED}:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if _is_module(whole) else node.module or "")
        elif isinstance(node, ast.Constant) and (named := _NAMED.match(str(node.value))) and _is_file(named[0]):
            found.add(named[0])
    return found - {CORE}


def _is_module(name: str) -> bool:
    return _is_file(name) or _is_file(f"{name}.__init__")


def _is_file(name: str) -> bool:
    """Return True for a module; False for a package, whose name in a string anchors data files or entry points."""
    return SOURCE.joinpath(*name.split(".")).with_suffix(".py").is_file()


def _cycles(graph: Mapping[str, set[str]]) -> int:
    """Return how many imports must be removed, one of each cycle that is found, until there is no cycle."""
    left = {name: {*imported} for name, imported in graph.items()}
    removed = 0
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # The sorter lists a cycle as names of which each is imported by the next one.
            first, second = error.args[1][:2]
            left[second].discard(first)
            removed += 1
        else:
            return removed


def _upward(graph: Mapping[str, set[str]]) -> int:
    """Return the number of imports that lead from a room of the core to a higher one."""
    ranks = {name: rank for name in graph if (rank := _rank(name)) is not None}
    return sum(ranks.get(each, 0) > rank for name, rank in ranks.items() for each in graph[name])


def _rank(module: str) -> int | None:
    """Return the place of a module's room; None for the core's own page of names and for published definitions."""
    core, _, name = module.partition(".")
    found = [rank for rank, pattern in enumerate(_ROOMS) if re.fullmatch(pattern, name)]
    return max(found) if core == CORE and found else None


def _to_published(graph: Mapping[str, set[str]]) -> int:
    """Return the number of imports that lead from the core to the definitions of other systems."""
    core = [imported for name, imported in graph.items() if name.partition(".")[0] == CORE]
    return sum(each.partition(".")[0] == PUBLISHED for imported in core for each in imported)


def _equal_functions(trees: Iterable[ast.Module]) -> int:
    """Return the number of pairs of functions of at least `_MIN_TOKENS` tokens that differ in names and values only."""
    shapes: Counter[str] = Counter()
    for tree in trees:
        shapes.update(_shapes(tree))
    return sum(count * (count - 1) // 2 for count in shapes.values())


def _shapes(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = [
                each for each in node.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            ]
            code = ast.unparse(ast.Module(body, []))
            tokens = [each for each in tokenize.generate_tokens(io.StringIO(code).readline) if each.string.strip()]
            if len(tokens) >= _MIN_TOKENS:
                yield " ".join(each.string if each.type == tokenize.OP else str(each.type) for each in tokens)


def main(mode: str) -> int:
    """Print the figures (`show`), those over budget (`check`), or lower the budget (`write`); return the exit code."""
    today, budget = figures(), tomllib.loads(BUDGET.read_text(encoding="utf-8")) if BUDGET.exists() else {}
    rows = [
        (section, name, value, budget.get(section, {}).get(name))
        for section, found in today.items()
        for name, value in found.items()
    ]
    over = [row for row in rows if row[3] is None or (row[2] < row[3] if row[0] == "floors" else row[2] > row[3])]
    width = max(len(f"{section}: {name}") for section, name, *_ in rows)
    for section, name, value, limit in over if mode == "check" else rows:
        shown = "no budget" if limit is None else f"{'at least' if section == 'floors' else 'at most'} {limit:,}"
        sys.stdout.write(f"{f'{section}: {name}'.ljust(width)}  {value:>7,}  {shown}\n")
    if mode == "write":
        _write(today, budget)
    if mode == "check":
        sys.stdout.write("house: over budget; see house.toml.\n" if over else "house: within budget.\n")
        return bool(over)
    return 0


def _write(today: dict[str, dict[str, int]], budget: dict[str, dict[str, int]]) -> None:
    """Write the tighter of today's figure and the budget; the comment at the head of the file stays."""
    head = BUDGET.read_text(encoding="utf-8").partition("\n[")[0] if BUDGET.exists() else ""
    lines = [head.rstrip()]
    for section, found in today.items():
        tighter = max if section == "floors" else min
        lines += ["", f"[{section}]"]
        lines += [
            f'"{name}" = {tighter(value, budget.get(section, {}).get(name, value))}' for name, value in found.items()
        ]
    BUDGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "show"))
