"""Checks the changelog fragments in changes/, and gathers them into CHANGELOG.md at a release.

Usage: `changes.py check`, or `changes.py release VERSION DATE`.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

KINDS = ("added", "changed", "fixed", "deprecated", "removed", "scores")
MOST_WORDS = 25
MARK = "<!-- releases -->"
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Fragment:
    """One change in the user's words; `kind` is one of KINDS."""

    kind: str
    text: str


class BadFragment(ValueError):
    """A fragment that breaks a rule; the message says which, where, and what to do."""


def read_fragment(path: Path) -> Fragment:
    """Return the change in a file. Raises BadFragment if its name or its text breaks a rule."""
    match = re.fullmatch(r"[a-z0-9][a-z0-9-]*\.([a-z]+)\.md", path.name)
    if match is None or match[1] not in KINDS:
        raise BadFragment(f"{path.name}: name it <slug>.<kind>.md, with kind one of {', '.join(KINDS)}.")
    text = path.read_text(encoding="utf-8").strip()
    if not text or "\n\n" in text or text.startswith(("#", "-", "*")):
        raise BadFragment(f"{path.name}: write one plain paragraph, without heading or list mark.")
    words = len(text.split())
    if words > MOST_WORDS:
        raise BadFragment(f"{path.name}: {words} words; say the outcome in at most {MOST_WORDS}.")
    if not text.endswith((".", "!", "?")):
        raise BadFragment(f"{path.name}: end the sentence with a full stop.")
    return Fragment(match[1], " ".join(text.split()))


def fragment_paths(folder: Path) -> list[Path]:
    """Return every file of the folder except its README, sorted by name."""
    return sorted(path for path in folder.iterdir() if path.is_file() and path.name != "README.md")


def problems(folder: Path) -> list[str]:
    """Return one sentence for each bad fragment; empty if all are good."""
    found: list[str] = []
    for path in fragment_paths(folder):
        try:
            read_fragment(path)
        except BadFragment as error:
            found.append(str(error))
    return found


def kinds(fragments: list[Fragment]) -> str:
    """Return the changes as lists, with kinds in the order of KINDS; empty if there are none."""
    lines: list[str] = []
    for kind in KINDS:
        texts = [fragment.text for fragment in fragments if fragment.kind == kind]
        if texts:
            lines += ["", f"### {kind.capitalize()}", "", *(f"- {text}" for text in texts)]
    return "".join(f"{line}\n" for line in lines)


def is_prepared(changelog: str, version: str) -> bool:
    """Return True if the newest entry of the changelog is that of the version, written by hand and without a date."""
    return changelog.partition(MARK)[2].lstrip().startswith(f"## {version}:")


def release(root: Path, version: str, date: str) -> None:
    """Move all fragments under `root` into the prepared entry of the version, or into a new one above the others."""
    paths = fragment_paths(root / "changes")
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    before, mark, after = text.partition(MARK)
    if not mark:
        raise BadFragment(f"CHANGELOG.md: the line {MARK!r} is missing; put it above the newest release.")
    older, entry = after.strip(), f"## {version} ({date})\n"
    if is_prepared(text, version):
        prepared, _, older = older.removeprefix(f"## {version}:").partition("\n## ")
        entry = f"## {version} ({date}):{prepared.rstrip()}\n"
        older = older and f"## {older}"
    entry += kinds([read_fragment(path) for path in paths])
    changelog.write_text(f"{before}{MARK}\n\n{entry}" + (f"\n{older}\n" if older else ""), encoding="utf-8")
    for path in paths:
        path.unlink()


def main(arguments: list[str]) -> int:
    """Return the exit status: 0 for success, 1 for bad fragments, 2 for wrong arguments."""
    match arguments:
        case ["check"]:
            found = problems(ROOT / "changes")
            print("\n".join(found) or "changes: all fragments are well formed.")
            return 1 if found else 0
        case ["release", version, date]:
            try:
                release(ROOT, version, date)
            except BadFragment as error:
                print(error)
                return 1
            return 0
        case _:
            print(__doc__)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
