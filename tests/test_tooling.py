"""The project's own rules about packaging, pins, recipes, continuous integration and tests."""

import ast
import re
import sys
import sysconfig
import tomllib
from importlib.metadata import distribution
from importlib.util import module_from_spec, spec_from_file_location
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest
from each_case import each_case
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import merilo

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PIN_FILES = sorted((ROOT / "requirements").glob("*.txt"))
TEST_FILES = sorted((ROOT / "tests").rglob("test_*.py"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def pins(path: Path) -> dict[str, set[str]]:
    """The versions a requirements file pins, by canonical name (several where they depend on the Python)."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", path.read_text(encoding="utf-8"), re.MULTILINE):
        found.setdefault(canonicalize_name(name), set()).add(version)
    return found


def load_changes() -> ModuleType:
    """The changelog script as a module."""
    spec = spec_from_file_location("changes_tool", ROOT / "tools" / "changes.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# ------------------------------------------------------------------------------------- what is tested


def test_the_installed_wheel_is_tested() -> None:
    """The merilo under test lies in site-packages, and src is not on the path."""
    assert Path(merilo.__file__).is_relative_to(sysconfig.get_path("purelib"))
    assert str(ROOT / "src") not in {str(Path(entry).resolve()) for entry in sys.path}


def test_the_wheel_is_typed_and_carries_its_licence() -> None:
    """The wheel has py.typed and the full licence text."""
    names = {str(path) for path in distribution("merilo").files or ()}
    assert "merilo/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_version_has_one_source() -> None:
    """The installed version is the one in pyproject.toml."""
    assert distribution("merilo").version == PYPROJECT["project"]["version"]


# ---------------------------------------------------------------------------------------------- pins


@each_case("path", PIN_FILES)
def test_pins_carry_hashes_and_no_address(path: Path) -> None:
    """Every pinned requirement has a hash, and no file names a package index or a download address."""
    text = path.read_text(encoding="utf-8")
    entries = re.findall(r"^[A-Za-z0-9._-]+==.*(?:\n[ ]{4}--hash.*)*", text, re.MULTILINE)
    assert entries
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert re.findall(r"https?:|--index-url|--extra-index|--find-links|file:|@ ", text) == []


@each_case("path", PIN_FILES)
def test_pins_fit_pyproject(path: Path) -> None:
    """Wherever a runtime dependency is pinned, the pin lies in the range of pyproject.toml."""
    pinned = pins(path)
    for requirement in map(Requirement, PYPROJECT["project"]["dependencies"]):
        for version in pinned.get(canonicalize_name(requirement.name), ()):
            assert requirement.specifier.contains(version), f"{requirement} but {version}: run make lock"


@each_case("name", ["runtime", "test", "dev", "lowest"])
def test_every_runtime_dependency_is_pinned(name: str) -> None:
    """Each environment that merilo runs in pins all of its dependencies."""
    needed = {canonicalize_name(Requirement(text).name) for text in PYPROJECT["project"]["dependencies"]}
    assert needed - pins(ROOT / "requirements" / f"{name}.txt").keys() == set()


def test_the_lowest_pins_are_the_lower_bounds() -> None:
    """`make test-lowest` installs the lowest version that is admitted of each dependency, those of extras included."""
    pinned = pins(ROOT / "requirements" / "lowest.txt")
    project = PYPROJECT["project"]
    for requirement in map(Requirement, chain(project["dependencies"], *project["optional-dependencies"].values())):
        (bound,) = requirement.specifier
        versions = map(Version, pinned[canonicalize_name(requirement.name)])
        assert (bound.operator, min(versions)) == (">=", Version(bound.version)), f"{requirement}: run make lock"


def test_pins_agree() -> None:
    """What is developed against is what is tested is what the demo runs."""
    runtime, test, dev = (pins(ROOT / "requirements" / f"{name}.txt") for name in ("runtime", "test", "dev"))
    assert {name: dev.get(name) for name in test} == test
    assert {name: test.get(name) for name in runtime} == runtime


# ------------------------------------------------------------------------------- recipes and workflows


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    """Every action is named by a full commit hash with its version beside it; permissions start empty."""
    text = path.read_text(encoding="utf-8")
    uses = [line for line in text.splitlines() if "uses:" in line]
    assert [line for line in uses if not re.search(r"@[0-9a-f]{40}  # v\d", line)] == []
    assert re.search(r"^permissions: \{\}", text, re.MULTILINE)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_recipes(path: Path) -> None:
    """A workflow runs recipes of the Makefile and nothing else."""
    commands = re.findall(r"^\s*(?:- )?run: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert [command for command in commands if not command.startswith("make ")] == []


# ------------------------------------------------------------------------------------ tests as a manual


@each_case("path", TEST_FILES)
def test_every_test_states_its_fact(path: Path) -> None:
    """Each test has a docstring, so that the test files read as a specification."""
    tests = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    assert [node.name for node in tests if not ast.get_docstring(node)] == []


def test_every_design_page_that_is_named_exists() -> None:
    """Comments, docs and the design pages themselves name no design page that was deleted."""
    pages = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "design").glob("*.md")}
    named = {name for text in pages.values() for name in re.findall(r"\]\(([a-z-]+\.md)", text)}
    for folder in ("src", "tests", "tools", "benchmarks", "training", "docs", "requirements", "pyproject.toml"):
        for path in [ROOT / folder, *(ROOT / folder).rglob("*")]:
            if path.suffix in {".py", ".md", ".toml", ".in"}:
                named |= set(re.findall(r"\bdesign/([a-z-]+\.md)", path.read_text(encoding="utf-8")))
    assert sorted(named - set(pages)) == []


def test_design_pages_name_files_that_exist() -> None:
    """A path such as `runs/seal.py` on a design page is a file of src/merilo or of the repository."""
    for page in (ROOT / "design").glob("*.md"):
        named = re.findall(r"`((?:[a-z_]+/)+[a-z_.\d]+\.(?:py|toml))[` ]", page.read_text(encoding="utf-8"))
        gone = [name for name in named if not ((ROOT / name).exists() or (ROOT / "src" / "merilo" / name).exists())]
        assert gone == [], page.name


def test_every_slow_test_exists() -> None:
    """`tests/slow.txt`, and `tests/slowest.txt` with a reason each, name no test that was deleted or renamed."""
    gone = []
    slow, slowest = ((ROOT / "tests" / name).read_text(encoding="utf-8") for name in ("slow.txt", "slowest.txt"))
    for line in (*slow.split(), *re.findall("^tests/.*?(?=: )", slowest, re.MULTILINE)):
        path, _, name = line.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else ""
        if f"def {name}(" not in text:
            gone.append(line)
    assert gone == []


# ----------------------------------------------------------------------------------------- changelog


def test_the_fragments_are_well_formed() -> None:
    """Every waiting changelog fragment keeps the rules."""
    assert load_changes().problems(ROOT / "changes") == []


@each_case(
    ("name", "text", "complaint"),
    [
        ("fast.improved.md", "Runs are faster.", "kind one of"),
        ("Fast.added.md", "Runs are faster.", "kind one of"),
        ("fast.added.md", "", "one plain paragraph"),
        ("fast.added.md", "# Runs are faster.", "one plain paragraph"),
        ("fast.added.md", "Runs are faster", "full stop"),
        ("fast.added.md", "word " * 25 + "more.", "26 words"),
    ],
)
def test_a_bad_fragment_is_named(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    """A fragment with a wrong kind, no text, markup or too many words is reported with its name."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    (problem,) = load_changes().problems(tmp_path)
    assert name in problem
    assert complaint in problem


@pytest.mark.parametrize(
    ("entry", "version", "expected"),
    [
        ("## 0.1.0 (2026-01-01)", "0.2.0", "## 0.2.0 (2026-02-01)\n{kinds}\n## 0.1.0 (2026-01-01)\n"),
        ("## 0.1.0: first\n\nText.", "0.1.0", "## 0.1.0 (2026-02-01): first\n\nText.\n{kinds}"),
        (
            "## 0.2.0: next\n\nText.\n\n## 0.1.0 (2026-01-01)",
            "0.2.0",
            "## 0.2.0 (2026-02-01): next\n\nText.\n{kinds}\n## 0.1.0 (2026-01-01)\n",
        ),
    ],
    ids=["new", "prepared", "prepared above another"],
)
def test_a_release_gathers_the_fragments(tmp_path: Path, entry: str, version: str, expected: str) -> None:
    """A release moves its fragments, in fixed order, into a prepared entry or a new one above older releases."""
    changes = tmp_path / "changes"
    changes.mkdir()
    (changes / "README.md").write_text("rules", encoding="utf-8")
    (changes / "b.scores.md").write_text("Recall moved.", encoding="utf-8")
    (changes / "a.added.md").write_text("Gates can be\nnamed.", encoding="utf-8")
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(f"# Changelog\n\n<!-- releases -->\n\n{entry}\n", encoding="utf-8")
    load_changes().release(tmp_path, version, "2026-02-01")
    kinds = "\n### Added\n\n- Gates can be named.\n\n### Scores\n\n- Recall moved.\n"
    written = changelog.read_text(encoding="utf-8")
    assert written == "# Changelog\n\n<!-- releases -->\n\n" + expected.format(kinds=kinds)
    assert [path.name for path in changes.iterdir()] == ["README.md"]
