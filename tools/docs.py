"""Write the generated parts of README.md and docs/: `python tools/docs.py`, or `--check` to only compare.

A part is between `<!-- generated: NAME -->` and `<!-- end generated -->`; NAME is one of `BLOCKS`. The
text between them is generated from the installed merilo, so a page cannot drift from the code.

`python tools/docs.py --outputs PAGE...` runs the blocks of the pages and renews the shown outputs that differ.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

from doc_blocks import BLOCKS

ROOT = Path(__file__).resolve().parent.parent
PART = re.compile(r"(<!-- generated: (?P<name>[\w-]+) -->\n)(?P<inside>.*?)(<!-- end generated -->)", re.DOTALL)


def pages() -> list[Path]:
    """Return README.md and all pages of docs/, in order."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def renewed(text: str) -> str:
    """Return the page with its generated parts replaced. Raise SystemExit for an unknown part."""

    def part(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in BLOCKS:
            raise SystemExit(f"There is no generated part {name!r}; there are {', '.join(sorted(BLOCKS))}.")
        return f"{found[1]}\n{BLOCKS[name]().strip()}\n\n{found[4]}"

    return PART.sub(part, text)


def unused(texts: list[str]) -> list[str]:
    """Return the parts that no page shows."""
    shown = {found["name"] for text in texts for found in PART.finditer(text)}
    return sorted(BLOCKS.keys() - shown)


def renew_outputs(given: list[Path]) -> None:
    """Run the pages as their tests do and write what is printed now. Raise SystemExit if a block of one fails."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    sys.path.append(str(ROOT / "tests"))
    from docs_page import run_page

    faults: list[str] = []
    for page in given:
        before = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            faults.append(run_page(page.resolve(), Path(folder), "--outputs").stderr)
        if page.read_text(encoding="utf-8") != before:
            print(f"wrote {page}")
    if any(faults):
        sys.exit("".join(faults))


def main() -> None:
    """Rewrite the pages, or list the ones that differ and exit with 1."""
    parser = argparse.ArgumentParser(description="Write the generated parts of the documentation.")
    parser.add_argument("--check", action="store_true", help="only say which pages differ; exit 1 if one does")
    parser.add_argument("--outputs", nargs="+", type=Path, metavar="PAGE", help="renew the shown outputs of these")
    arguments = parser.parse_args()
    if arguments.outputs:
        renew_outputs(arguments.outputs)
        return
    check: bool = arguments.check
    texts = {page: page.read_text(encoding="utf-8") for page in pages()}
    faults = [f"No page contains the generated part {name!r}." for name in unused(list(texts.values()))]
    for page, text in texts.items():
        new = renewed(text)
        if new == text:
            continue
        if check:
            faults.append(f"{page.relative_to(ROOT)} differs from the code; run python tools/docs.py.")
        else:
            page.write_text(new, encoding="utf-8", newline="\n")
            print(f"wrote {page.relative_to(ROOT)}")
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
