"""Distributions are checked by content, the bill of materials lists every pin, and a release can be rehearsed."""

import base64
import hashlib
import io
import sys
import tarfile
import zipfile
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from each_case import each_case

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = """\
[project]
name = "merilo"
version = "1.0"
description = "A tool."
requires-python = ">=3.11"
license = "Apache-2.0"
dependencies = ["numpy>=2"]
"""
METADATA = """\
Metadata-Version: 2.4
Name: merilo
Version: 1.0
Summary: A tool.
License-Expression: Apache-2.0
Requires-Python: >=3.11
Requires-Dist: numpy>=2
Description-Content-Type: text/markdown

Text.
"""
SOURCES = {"merilo/__init__.py": b"x = 1\n", "merilo/py.typed": b"", "merilo_published/py.typed": b""}
INFO = "merilo-1.0.dist-info/"
OTHERS = ("README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml")


def tool(name: str) -> ModuleType:
    """A script of tools/ as a module."""
    spec = spec_from_file_location(f"{name}_tool", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


DIST, SBOM, RELEASE = tool("dist"), tool("sbom"), tool("release")


def package(root: Path, wheel: dict[str, bytes] | None = None, metadata: str = METADATA) -> Path:
    """A project with its distributions; `wheel`: more files of the wheel."""
    for name, content in SOURCES.items():
        (root / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "src" / name).write_bytes(content)
    (root / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    folder = root / "dist"
    folder.mkdir()
    files = {
        **SOURCES,
        f"{INFO}METADATA": metadata.encode(),
        f"{INFO}entry_points.txt": b"",
        f"{INFO}licenses/LICENSE": b"L",
        **(wheel or {}),
    }
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()},\n"
        for name, content in files.items()
    )
    with zipfile.ZipFile(folder / "merilo-1.0-py3-none-any.whl", "w") as archive:
        for name, content in {**files, f"{INFO}RECORD": record.encode()}.items():
            archive.writestr(name, content)
    with tarfile.open(folder / "merilo-1.0.tar.gz", "w:gz") as sdist:
        own = {f"src/{name}": content for name, content in SOURCES.items()}
        for name, content in {**own, **dict.fromkeys(OTHERS, b"t"), "PKG-INFO": metadata.encode()}.items():
            member = tarfile.TarInfo(f"merilo-1.0/{name}")
            member.size = len(content)
            sdist.addfile(member, io.BytesIO(content))
    return folder


def test_a_good_distribution_has_no_problem(tmp_path: Path) -> None:
    """A wheel and an sdist with exactly the sources and the metadata of the project pass."""
    assert DIST.problems(package(tmp_path), tmp_path) == []


@each_case(
    ("wheel", "problem"),
    [
        ({"merilo/more.py": b""}, "the wheel has merilo/more.py, which is not in src."),
        ({"merilo/__init__.py": b"x = 2\n"}, "merilo/__init__.py differs in the wheel."),
        ({"tests/test_a.py": b""}, "the wheel has tests/test_a.py, which must not be published."),
        ({"merilo/x.py": b"p = '/home/someone/merilo'"}, "names a path of the building machine: /home/someone."),
        ({f"{INFO}METADATA": METADATA.replace("1.0", "1.1", 1).encode()}, "Version is '1.1' in the wheel"),
    ],
)
def test_a_fault_is_named(tmp_path: Path, wheel: dict[str, bytes], problem: str) -> None:
    """A file too many, a changed file, tests, a local path and other metadata are each reported."""
    found = DIST.problems(package(tmp_path, wheel), tmp_path)
    assert any(problem in each for each in found)


def test_wrong_metadata_and_missing_files_are_named(tmp_path: Path) -> None:
    """A wrong licence, another number of dependencies and a distribution too few are reported."""
    metadata = METADATA.replace("Apache-2.0", "MIT").replace("Requires-Dist: numpy>=2\n", "")
    folder = package(tmp_path, metadata=metadata)
    found = DIST.problems(folder, tmp_path)
    assert any("License-Expression is 'MIT'" in each for each in found)
    assert any("0 dependencies" in each for each in found)
    (folder / "merilo-1.0.tar.gz").unlink()
    assert "1 wheels and 0 sdists" in DIST.problems(folder, tmp_path)[0]


def test_the_record_is_checked(tmp_path: Path) -> None:
    """A file that was changed after the wheel was built does not fit its hash."""
    files = {"a.py": b"new"}
    stated = b"a.py,sha256=AAAA,3\nmerilo-1.0.dist-info/RECORD,,\n"
    assert DIST._record({**files, f"{INFO}RECORD": stated}, INFO) == ["RECORD does not have the hash of a.py."]


def test_the_bill_lists_every_pin() -> None:
    """Each pin of requirements/runtime.txt is a component, with a licence unless it belongs to another platform."""
    found = SBOM.bill()
    pinned = SBOM.pins((ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8"))
    assert len(pinned) > 30
    assert [(each["name"], each["version"]) for each in found["components"]] == [
        (each.name, each.version) for each in pinned
    ]
    refs = [each["bom-ref"] for each in found["components"]]
    assert len({*refs}) == len(refs)
    if version("aiohttp") in {each.version for each in pinned if each.name == "aiohttp"}:  # else lowest.txt
        assert all(SBOM._elsewhere(found, name) for name in SBOM.without_licence(found))


def test_no_dependency_is_under_the_gpl() -> None:
    """No pinned dependency states a licence of the GPL family."""
    assert "GPL" not in str([each.get("licenses") for each in SBOM.bill()["components"]])


def project(root: Path) -> Path:
    """A small repository that can be released."""
    (root / "changes").mkdir(parents=True)
    (root / "changes" / "new.added.md").write_text("A new thing.\n", encoding="utf-8")
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## 1.0.0: first release\n", encoding="utf-8")
    (root / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    for command in (["init", "--quiet"], ["add", "."]):
        RELEASE.git(root, *command)
    RELEASE.git(root, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "Begin")
    return root


def test_the_licence_of_the_encoder_is_beside_it_in_the_wheel(tmp_path: Path) -> None:
    """Built from the sources: the whole licence text, with what the weights are from and what was changed."""
    builders = pytest.importorskip("hatchling.builders.wheel")
    (path,) = builders.WheelBuilder(str(ROOT)).build(directory=str(tmp_path))
    with zipfile.ZipFile(path) as wheel:
        weights = [name for name in wheel.namelist() if name.endswith(".safetensors")]
        assert weights == ["merilo/judges/encoder.v1.safetensors"]
        text = wheel.read("merilo/judges/encoder.v1.LICENSE").decode()
    assert text.endswith((ROOT / "LICENSE").read_text(encoding="utf-8"))
    assert "all-MiniLM-L6-v2" in text.partition("Apache License")[0]


def test_a_release_needs_a_clean_tree_and_a_new_version(tmp_path: Path) -> None:
    """An invalid version, a used tag and an uncommitted change each stop a release."""
    root = project(tmp_path / "own")
    RELEASE.check_ready(RELEASE.Release("1.1.0", root, "2026-01-01"))
    with pytest.raises(RELEASE.NotReady, match="not a version"):
        RELEASE.check_ready(RELEASE.Release("1.1", root, "2026-01-01"))
    RELEASE.git(root, "tag", "v1.1.0")
    with pytest.raises(RELEASE.NotReady, match=r"The tag v1\.1\.0 exists"):
        RELEASE.check_ready(RELEASE.Release("1.1.0", root, "2026-01-01"))
    (root / "new").write_text("x", encoding="utf-8")
    with pytest.raises(RELEASE.NotReady, match="has changes"):
        RELEASE.check_ready(RELEASE.Release("1.2.0", root, "2026-01-01"))


def test_a_release_needs_something_to_say(tmp_path: Path) -> None:
    """Without a fragment only a version with a prepared entry in the changelog can be released."""
    root = project(tmp_path / "own")
    RELEASE.git(root, "mv", "changes/new.added.md", "changes/README.md")
    RELEASE.git(root, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "Release")
    RELEASE.check_ready(RELEASE.Release("1.0.0", root, "2026-01-01"))
    with pytest.raises(RELEASE.NotReady, match="has no fragment"):
        RELEASE.check_ready(RELEASE.Release("1.1.0", root, "2026-01-01"))
