"""Checks built distributions, and tries them in empty environments.

Usage: `dist.py check FOLDER`, or `dist.py smoke FOLDER [PYTHON ...]` (default: every supported Python on PATH).
"""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_BYTES = 40_000_000
"""Largest wheel or sdist; the embedded model alone has about 30 MB."""
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
FORBIDDEN = re.compile(r"(^|/)(tests?|__pycache__|benchmarks|training|\.git|\.venv[^/]*)(/|$)|\.(pyc|pyo|pem|key|env)$")
LOCAL_PATHS = re.compile(
    rb"(?:/home/|/Users/|C:\\Users\\)[a-z]\w*|"
    + b"|".join(re.escape(f"{path}/".encode()) + rb"\w+" for path in (Path.home(), ROOT))
)
"""Paths of people's directories, of the user who builds and of this tree."""
SDIST_ALSO = {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "PKG-INFO", ".gitignore"}
SAMPLES = """\
{"user_input": "When was it completed?", "retrieved_contexts": ["It was completed in 1889."], "response": "In 1889."}
{"user_input": "Where is it?", "retrieved_contexts": ["It is in Paris."], "response": "In Rome."}
"""


@dataclass(frozen=True)
class Built:
    """The wheel and the sdist of one version in a folder."""

    wheel: Path
    sdist: Path


def built(folder: Path) -> Built:
    """Return the distributions of a folder. Raises ValueError unless there is one wheel and one sdist."""
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        raise ValueError(f"{folder} has {len(wheels)} wheels and {len(sdists)} sdists; build one of each (make dist).")
    return Built(wheels[0], sdists[0])


def problems(folder: Path, root: Path = ROOT) -> list[str]:
    """Return one sentence for each fault of the distributions in a folder; empty if there is none."""
    try:
        found = built(folder)
    except ValueError as error:
        return [str(error)]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    sources = _sources(root)
    sizes = [
        f"{path.name} has {path.stat().st_size:,} bytes; the limit is {MAX_BYTES:,}."
        for path in (found.wheel, found.sdist)
        if path.stat().st_size > MAX_BYTES
    ]
    return [*sizes, *_wheel(found.wheel, project, sources), *_sdist(found.sdist, project, sources)]


def _sources(root: Path) -> dict[str, bytes]:
    """Return the files of the packages that belong into a distribution, by their path below `src`."""
    paths = (path for path in (root / "src").rglob("*") if path.is_file())
    kept = (path for path in paths if "__pycache__" not in path.parts)
    return {path.relative_to(root / "src").as_posix(): path.read_bytes() for path in kept}


def _wheel(path: Path, project: dict[str, object], sources: dict[str, bytes]) -> list[str]:
    expected = f"{project['name']}-{project['version']}-py3-none-any.whl"
    found = [] if path.name == expected else [f"{path.name} must be called {expected}."]
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    info = f"{project['name']}-{project['version']}.dist-info/"
    package = {name: content for name, content in files.items() if not name.startswith(info)}
    found += _same("the wheel", package, sources)
    found += _unwanted("the wheel", files)
    found += _record(files, info)
    found += [f"The wheel lacks {name}." for name in _needed(info) if name not in files]
    return found + _metadata("the wheel", files.get(f"{info}METADATA", b""), project)


def _needed(info: str) -> tuple[str, ...]:
    return (
        f"{info}licenses/LICENSE",
        f"{info}entry_points.txt",
        f"{info}METADATA",
        "merilo/py.typed",
        "merilo_published/py.typed",
    )


def _sdist(path: Path, project: dict[str, object], sources: dict[str, bytes]) -> list[str]:
    top = f"{project['name']}-{project['version']}"
    found = [] if path.name == f"{top}.tar.gz" else [f"{path.name} must be called {top}.tar.gz."]
    files: dict[str, bytes] = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            name = member.name.removeprefix(f"{top}/")
            if not (member.isfile() and member.name.startswith(f"{top}/")):
                found.append(f"The sdist has {member.name}, which is not a plain file below {top}/.")
                continue
            content = archive.extractfile(member)
            files[name] = b"" if content is None else content.read()
    package = {name[4:]: content for name, content in files.items() if name.startswith("src/")}
    found += _same("the sdist", package, sources)
    others = {name for name in files if not name.startswith("src/")}
    found += [f"The sdist lacks {name}." for name in sorted(SDIST_ALSO - others - {".gitignore"})]
    found += [f"The sdist has {name}, which does not belong into it." for name in sorted(others - SDIST_ALSO)]
    found += _unwanted("the sdist", files)
    return found + _metadata("the sdist", files.get("PKG-INFO", b""), project)


def _same(where: str, package: dict[str, bytes], sources: dict[str, bytes]) -> list[str]:
    """Compare the files of the package with the sources, content included."""
    return [
        *(f"{where} lacks {name}." for name in sorted(sources.keys() - package.keys())),
        *(f"{where} has {name}, which is not in src." for name in sorted(package.keys() - sources.keys())),
        *(f"{name} differs in {where}." for name in sorted(sources) if package.get(name, b"") != sources[name]),
    ]


def _unwanted(where: str, files: dict[str, bytes]) -> list[str]:
    named = [f"{where} has {name}, which must not be published." for name in sorted(files) if FORBIDDEN.search(name)]
    for name, content in sorted(files.items()):
        if b"\0" not in content[:1024] and (local := LOCAL_PATHS.search(content)):
            named.append(f"{name} in {where} names a path of the building machine: {local[0].decode()}.")
    return named


def _record(files: dict[str, bytes], info: str) -> list[str]:
    """Check the hashes in RECORD."""
    lines = files.get(f"{info}RECORD", b"").decode().splitlines()
    stated = {name: digest for name, digest, _ in (line.rsplit(",", 2) for line in lines)}
    found = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        if name != f"{info}RECORD" and stated.get(name) != f"sha256={digest}":
            found.append(f"RECORD does not have the hash of {name}.")
    return found


def _metadata(where: str, content: bytes, project: dict[str, object]) -> list[str]:
    """Compare the metadata with pyproject.toml."""
    found = BytesParser().parsebytes(content)
    stated = {
        "Name": project["name"],
        "Version": project["version"],
        "Summary": project["description"],
        "Requires-Python": project["requires-python"],
        "License-Expression": project["license"],
        "Description-Content-Type": "text/markdown",
    }
    faults = [
        f"{name} is {found[name]!r} in {where}, not {wanted!r}."
        for name, wanted in stated.items()
        if found[name] != wanted
    ]
    required = [each for each in found.get_all("Requires-Dist") or [] if "extra ==" not in each]
    dependencies = project["dependencies"]
    if not isinstance(dependencies, list) or len(required) != len(dependencies):
        faults.append(f"{where} has {len(required)} dependencies, pyproject.toml another number.")
    if not str(found.get_payload()).strip():
        faults.append(f"{where} has no description.")
    return faults


def smoke(wheel: Path, python: str) -> None:
    """Install a wheel with the pinned dependencies into an empty environment and run it in an empty folder.

    Raises subprocess.CalledProcessError if a command fails, ValueError if its output is wrong.
    """
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        subprocess.run([python, "-m", "venv", place / "env"], check=True)
        own = place / "env" / "bin"
        install = [own / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "--require-hashes", "-r", ROOT / "requirements" / "runtime.txt"], check=True)
        subprocess.run([*install, "--no-deps", "--no-index", wheel.resolve()], check=True)
        subprocess.run([own / "python", "-m", "pip", "check"], check=True, stdout=subprocess.DEVNULL)
        (place / "empty").mkdir()
        (place / "empty" / "samples.jsonl").write_text(SAMPLES, encoding="utf-8")
        for command in (("--version",), ("run", "samples.jsonl", "--quiet", "--out", "run"), ("runs", "verify", "run")):
            found = subprocess.run(
                [own / "merilo", *command], cwd=place / "empty", check=True, capture_output=True, text=True
            )
            if command[0] == "run" and "faithfulness" not in found.stdout:
                raise ValueError(f"merilo run printed no faithfulness:\n{found.stdout}")
        subprocess.run([own / "python", "-c", "import merilo; merilo.evaluate"], cwd=place / "empty", check=True)


def available() -> list[str]:
    """Return the supported Pythons on PATH that start."""
    found = []
    for name in PYTHONS:
        path = shutil.which(name)
        if path and not subprocess.run([path, "-c", ""], check=False, capture_output=True).returncode:
            found.append(path)
    return found


def main(arguments: list[str]) -> int:
    """Return the exit status: 0 for success, 1 for faults, 2 for wrong arguments."""
    match arguments:
        case ["check", folder]:
            found = problems(Path(folder))
            print("\n".join(found) or f"{folder}: the wheel and the sdist are as they should be.")
            return 1 if found else 0
        case ["smoke", folder, *pythons]:
            wheel = built(Path(folder)).wheel
            for python in pythons or available():
                smoke(wheel, python)
                print(f"{wheel.name} works on {python}.", flush=True)
            return 0
        case _:
            print(__doc__)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
