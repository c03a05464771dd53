"""Write the generated parts of README.md and docs/: `python tools/docs.py`, or `--check` to only compare.

A part is between `<!-- generated: NAME -->` and `<!-- end generated -->`; NAME is one of `BLOCKS`. The
text between them is generated from the installed merilo, so a page cannot drift from the code.

docs/llms.txt is generated too: a line for each page, then the code of "Most tasks" in reference/interface.md.
`python tools/docs.py --outputs PAGE...` runs the blocks of the pages and renews the shown outputs that differ.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import tomllib
from pathlib import Path

from doc_blocks import BLOCKS

ROOT = Path(__file__).resolve().parent.parent
LLMS = ROOT / "docs" / "llms.txt"
WORDS: dict[str, int] = tomllib.loads((ROOT / "tools" / "pages.toml").read_text(encoding="utf-8"))
SHORT = 6
"""Fewer words than a sentence of docs/llms.txt needs."""
LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
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


def llms() -> str:
    """Return docs/llms.txt: title and first sentence of each page in the order of pages.toml, then the usual code."""
    there = [ROOT / "docs" / f"{name}.md" for name in WORDS if name != "README"]
    found = {page: LINK.sub(r"\1", page.read_text(encoding="utf-8")) for page in there if page.is_file()}
    names = {page: page.relative_to(ROOT / "docs").as_posix() for page in found}
    lines = [f"- [{_title(text)}]({names[page]}): {_first(text)}" for page, text in found.items()]
    tasks = (ROOT / "docs" / "reference" / "interface.md").read_text(encoding="utf-8").partition("## Most tasks")[2]
    code = re.findall(r"```(?:python|console)\n.*?```", tasks.partition("\n## ")[0], re.DOTALL)
    summary = _first((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    return "\n\n".join(["# merilo", f"> {summary}", "\n".join(lines[1:]), "## Most tasks", *code]) + "\n"


def _title(text: str) -> str:
    return text.partition("# ")[2].partition("\n")[0]


def _first(text: str) -> str:
    """Return the first sentence of the first paragraph, or the first two if it is short."""
    paragraph = next(part for part in text.split("\n\n")[1:] if re.match(r"[\w`*]", part))
    first, *others = re.split(r"(?<=[.?]) (?=[A-ZА-Я`])", " ".join(paragraph.split()))
    return " ".join([first, *others[: len(first.split()) < SHORT]]).removesuffix(":")


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
    for page, new in ({page: renewed(text) for page, text in texts.items()} | {LLMS: llms()}).items():
        if page.is_file() and page.read_text(encoding="utf-8") == new:
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
