"""What design/layout.md says about imports and that import-linter cannot say: one home for each package, lazily."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from each_case import each_case

import merilo

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(merilo.__file__).parent.parent
PACKAGES = ("merilo", "merilo_published")
MODULES = sorted(path for package in PACKAGES for path in (FOLDER / package).rglob("*.py"))

ANYWHERE = {
    "pydantic": "the data model",
    "pydantic_core": "part of pydantic",
    "typer": "each command declares its own arguments",
    "numpy": "vectors and numbers; that it is loaded late is tested below",
    "jinja2": "rubrics, whose text is of users, and pages, whose text is ours; that it is loaded late is tested below",
    "yaml": "a suite and a rubric are read in different places; 46 ms",
    "typing_extensions": "types of newer Pythons",
}
"""Packages that may be imported in more than one place, and why."""

LATE = (
    "aiohttp anthropic jinja2 numpy onnxruntime openai pyarrow ray scipy starlette tokenizers uvicorn uvloop yaml"
).split()
"""Packages that cost a start-up dearly and that nothing loads before it is needed."""

MOST_PUBLIC_NAMES = 39

FILLED = {
    **dict.fromkeys(
        ("merilo_published.compat.deepeval", "merilo_published.compat.ragas"),
        "scripts import from them as from the packages of other names",
    ),
    "merilo": "public names, imported late",
    "merilo.compat": "its modules are those of a plug-in",
    "merilo_published.compat.axion": "scripts import from it and from its modules, as from axion's own package",
    "merilo.metrics": "as merilo",
    "merilo.judges": "as merilo",
    "merilo.providers": "as merilo",
    "merilo.stats": "as merilo",
}
"""Packages whose `__init__.py` holds names, and why."""

ASK_FOR_HELP = """
import sys
from merilo.cli import main
sys.argv = ["merilo", "--help"]
try:
    main()
except SystemExit as stop:
    assert not stop.code
"""


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = path.relative_to(FOLDER).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(node: ast.AST) -> Iterator[str]:
    """The top-level packages imported anywhere below a node, without those for type checkers only."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.level == 0 and child.module is not None:
            yield child.module.partition(".")[0]
        yield from imports_of(child)


def homes() -> dict[str, set[str]]:
    """Each third-party package with the modules that import it."""
    found: dict[str, set[str]] = {}
    for path in MODULES:
        for package in imports_of(ast.parse(path.read_text(encoding="utf-8"))):
            if package not in sys.stdlib_module_names | {*PACKAGES}:
                found.setdefault(package, set()).add(name_of(path))
    return found


def loaded_by(statement: str) -> set[str]:
    """The top-level packages in memory after a statement, in a fresh process."""
    script = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    return {line.partition(".")[0] for line in printed.splitlines()}


def test_a_package_has_one_home() -> None:
    """Each third-party package is imported in one module or one folder, so it can be replaced there."""
    scattered = {
        package: sorted(modules)
        for package, modules in homes().items()
        if package not in ANYWHERE and len(modules) > 1 and len({name.split(".")[1] for name in modules}) > 1
    }
    assert scattered == {}


@pytest.mark.parametrize("statement", ["import merilo", ASK_FOR_HELP], ids=["import merilo", "merilo --help"])
def test_a_start_is_light(statement: str) -> None:
    """Neither importing merilo nor asking for help loads a package that is slow to start."""
    assert loaded_by(statement) & set(LATE) == set()


WORK = ("merilo.stats.", "merilo.metrics.", "merilo.judges.", "merilo.results.", "merilo.runs.")
EVALUATE_IDS = """
import merilo
row = {"retrieved_context_ids": ["a"], "reference_context_ids": ["a"]}
merilo.evaluate([row], metrics=["id_recall"], out="run", storage={"cache": False})
"""
SHOW = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {EVALUATE_IDS!r}], check=True)
from merilo.cli import outcome
outcome(["show", "run"])
"""
MODEL = ("merilo.judges.blended", "merilo.judges.embedded_provider", "merilo.judges.encoder", "merilo.judges.local")
NOT_LOADED = {
    "import merilo; merilo.evaluate": (42, (*WORK, "merilo.adapters", "merilo.cli", "typer", "pydantic", "numpy")),
    "import merilo.cli": (13, (*WORK, "merilo.commands.evaluate", "merilo.engine", "asyncio", "pydantic")),
    "import merilo.judges.embedded": (55, (*MODEL, "merilo.metrics", "numpy", "pydantic")),
    EVALUATE_IDS: (190, (*MODEL, "merilo.metrics.statement_metrics", "merilo.providers.openai", "typer")),
    SHOW: (
        140,
        (
            *MODEL,
            "jinja2",
            "merilo.metrics.statement_metrics",
            "merilo.providers",
            "merilo.commands.label",
            "asyncio.queue",
        ),
    ),
}
"""Statement → the largest number of modules of merilo afterwards, and what is not loaded."""


@each_case("statement", NOT_LOADED)
def test_nothing_is_loaded_that_is_not_asked_for(statement: str, tmp_path: Path) -> None:
    """A judge, metric, adapter, provider or command is imported when it is used; a start costs what it needs."""
    script = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=tmp_path
    ).stdout.split()
    most, absent = NOT_LOADED[statement]
    assert [name for name in loaded if any(f"{name}.".startswith(f"{each.rstrip('.')}.") for each in absent)] == []
    assert sum(name.startswith("merilo.") for name in loaded) <= most


@each_case("path", [path for path in MODULES if path.name == "__init__.py" and name_of(path) not in FILLED])
def test_a_folder_has_an_empty_init(path: Path) -> None:
    """Only the `__init__.py` of `FILLED` hold code; any other name has one import path."""
    assert path.read_text(encoding="utf-8").strip() == ""


def module_of(base: str, name: str) -> str | None:
    """The module of ours that `from base import name` loads."""
    for candidate in (f"{base}.{name}", base):
        path = FOLDER / Path(*candidate.split("."))
        if path.with_suffix(".py").is_file() or (path / "__init__.py").is_file():
            return candidate
    return None


def imported_modules(path: Path) -> set[str]:
    """The modules of ours that a module imports anywhere, for type checkers too."""
    found: set[str] = set()
    folder = path.relative_to(FOLDER).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            package = folder[: len(folder) - node.level + 1] if node.level else ()
            base = ".".join(filter(None, (*package, node.module)))
            if base.partition(".")[0] in PACKAGES:
                found |= {module for alias in node.names if (module := module_of(base, alias.name))}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.partition(".")[0] in PACKAGES}
    return found


def test_the_core_names_no_module_of_another_package() -> None:
    """Not in a string either: merilo finds the modules of merilo_published through entry points."""
    core = [path for path in MODULES if path.is_relative_to(FOLDER / "merilo")]
    assert [name_of(path) for path in core if "merilo_published." in path.read_text(encoding="utf-8")] == []


def test_there_is_no_import_cycle() -> None:
    """No module imports itself through others, not even for type checkers."""
    names = {name_of(path): path for path in MODULES}
    graph = {name: (imported_modules(path) & names.keys()) - {name, "merilo"} for name, path in names.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = " -> ".join(error.args[1])
        pytest.fail(f"import cycle: {cycle}")


def test_the_public_names_are_few_and_sorted() -> None:
    """`merilo.__all__` lists at most 38 names, sorted, and each can be had."""
    names = list(merilo.__all__)
    assert names == sorted(names)
    assert len(names) <= MOST_PUBLIC_NAMES
    assert [name for name in names if not hasattr(merilo, name)] == []
