"""Makes a release: version, changelog, commit, checked distributions, bill of materials, signed tag.

Usage: `release.py VERSION` shows the steps and tries them in a copy; `release.py VERSION --sign` does them here.
Nothing is pushed or uploaded: the last step prints the commands for that.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools"
_VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
_STATED = re.compile(r'^version = "([^"]+)"', re.MULTILINE)


class NotReady(Exception):
    """The reason why there can be no release yet, with what to do."""


@dataclass(frozen=True)
class Release:
    """A version to release, in a working tree."""

    version: str
    root: Path
    date: str

    @property
    def tag(self) -> str:
        """The name of its tag."""
        return f"v{self.version}"


def git(root: Path, *arguments: str) -> str:
    """Return the output of a git command. Raises NotReady if it fails."""
    program = shutil.which("git")
    if program is None:
        raise NotReady("git is not on PATH.")
    found = subprocess.run([program, *arguments], cwd=root, check=False, capture_output=True, text=True)
    if found.returncode:
        raise NotReady(f"git {' '.join(arguments)} failed: {found.stderr.strip()}")
    return found.stdout.strip()


def check_ready(release: Release) -> None:
    """Raise NotReady for an invalid or used version, a dirty tree, or nothing to say in the changelog."""
    if not _VERSION.fullmatch(release.version):
        raise NotReady(f"{release.version!r} is not a version; write 1.2.3 or 1.2.3rc1.")
    if release.tag in git(release.root, "tag", "--list").split():
        raise NotReady(f"The tag {release.tag} exists. Choose the next version.")
    if git(release.root, "status", "--porcelain"):
        raise NotReady("The working tree has changes. Commit or stash them.")
    prepared = f"\n## {release.version}:"  # an entry written by hand needs no fragment
    if all(path.name == "README.md" for path in (release.root / "changes").iterdir()) and (
        prepared not in (release.root / "CHANGELOG.md").read_text(encoding="utf-8")
    ):
        raise NotReady("changes/ has no fragment, so there is nothing to release.")


def write_version(release: Release) -> None:
    """Write the version into pyproject.toml and the fragments into the changelog."""
    path = release.root / "pyproject.toml"
    text, count = _STATED.subn(f'version = "{release.version}"', path.read_text(encoding="utf-8"), count=1)
    if count != 1:
        raise NotReady("pyproject.toml has no line `version = ...`.")
    path.write_text(text, encoding="utf-8")
    _python(release.root / "tools" / "changes.py", "release", release.version, release.date)


def build(release: Release, folder: Path) -> list[Path]:
    """Build and check the distributions, write the bill of materials and the checksums; return the files."""
    shutil.rmtree(folder, ignore_errors=True)
    hatchling = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(hatchling, cwd=release.root, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _python(release.root / "tools" / "dist.py", "check", str(folder))
    _python(release.root / "tools" / "sbom.py", str(folder / f"merilo-{release.version}.cdx.json"))
    return sorted(folder.iterdir())


def _python(script: Path, *arguments: str) -> None:
    found = subprocess.run([sys.executable, script, *arguments], check=False, text=True, capture_output=True)
    if found.returncode:
        raise NotReady(f"{script.name} {' '.join(arguments)}: {(found.stdout + found.stderr).strip()}")


def rehearse(release: Release) -> None:
    """Do every step but the tag in a copy of the committed tree."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "merilo"
        git(release.root, "clone", "--quiet", "--no-hardlinks", str(release.root), str(copy))
        there = Release(release.version, copy, release.date)
        write_version(there)
        print(f"1. write {release.version} into pyproject.toml, and the fragments of changes/ into CHANGELOG.md")
        print(f"2. commit: Release {release.version}")
        print("3. build and check, and write the bill of materials, into dist/:")
        for path in build(there, copy / "dist"):
            print(f"     {path.name}  {path.stat().st_size:,} bytes")
        print(f"4. tag, signed with your git key: git tag --sign {release.tag}")
    print(f"Nothing was changed here. To do it: make release VERSION={release.version} SIGN=yes")


def make(release: Release) -> None:
    """Do every step here. A failure before the tag leaves a commit or changes that git can undo."""
    write_version(release)
    git(release.root, "add", "--all", "pyproject.toml", "CHANGELOG.md", "changes")
    git(release.root, "commit", "--quiet", "--message", f"Release {release.version}")
    files = build(release, release.root / "dist")
    git(release.root, "tag", "--sign", release.tag, "--message", f"merilo {release.version}")
    print(f"{release.tag} is tagged. In dist/: {', '.join(path.name for path in files)}.")
    print(f"To publish: git push origin HEAD {release.tag}, then upload the wheel and the sdist of dist/ to the index.")


def main(arguments: list[str]) -> int:
    """Return the exit status: 0 for success, 1 if the release is not ready, 2 for wrong arguments."""
    match arguments:
        case [version] | [version, "--sign"]:
            release = Release(version, ROOT, datetime.now(UTC).date().isoformat())
            try:
                check_ready(release)
                (make if len(arguments) == 2 else rehearse)(release)
            except NotReady as error:
                print(error)
                return 1
            return 0
        case _:
            print(__doc__)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
