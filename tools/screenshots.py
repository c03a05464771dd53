"""Make the pictures of README and docs: evaluate shipped answers, write pages, and take pictures in docs/images/.

    make screenshots
    make screenshots ARGS="report sample"

A new page is one row of `PAGES`, a new picture one row of `PICTURES`. The browser is found as the tests find it: the
program that MERILO_CHROMIUM names, or a Chromium on PATH. Fonts are those of the machine.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser import Browser, chromium  # noqa: E402  a module of the tests

IMAGES: Final = ROOT / "docs" / "images"
MOST_BYTES: Final = 300_000
OPENED: Final = "document.querySelector('#drawer.on .inside')"
TIMELESS: Final = (
    "for (const each of document.querySelectorAll('.facts span')) "
    "each.textContent = each.textContent.replace(/, [0-9.,]+ (s|min|h)$/, ''); scrollTo(0, 0)"
)
"""Removes how long the run took, which differs each time, and begins at the top."""

ANSWERS: Final = ROOT / "src" / "merilo" / "examples" / "generation" / "answers.jsonl"
RUNS: Final = ("demo --out demo", f"run {ANSWERS} --out answers --no-cache --quiet")
"""The merilo commands that make the runs of `PAGES`."""

PAGES: Final = {
    "answers": "report answers --by length -o",
    "comparison": "report demo/bm25 demo/overlap -o",
}
"""Name of a page → the merilo command that writes it; the file is added at the end."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One file in docs/images/."""

    name: str
    page: str
    """A key of `PAGES`."""
    width: int = 1440
    height: int = 900
    keys: str = ""
    """Keys to press, one character each."""
    ready: str = "document.readyState === 'complete'"
    """An expression that is true when the picture can be taken."""


PICTURES: Final = (
    Picture("report", "answers"),
    Picture("sample", "answers", 1200, 760, keys="j", ready=OPENED),
    Picture("comparison", "comparison", 1200, 1180),
)


def main(names: list[str]) -> None:
    """Make all pictures, or those named."""
    wanted = [each for each in PICTURES if each.name in names or not names]
    if len(wanted) < len(names):
        raise SystemExit(f"Unknown picture; the pictures are {', '.join(each.name for each in PICTURES)}.")
    program = chromium()
    if program is None:
        raise SystemExit("No Chromium: install one, or name its program in MERILO_CHROMIUM.")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for words in RUNS:
            merilo(words, folder)
        for page in dict.fromkeys(each.page for each in wanted):
            merilo(f"{PAGES[page]} {page}.html", folder)
        with Browser(program) as browser:
            for each in wanted:
                take(browser, each, folder / f"{each.page}.html")


def merilo(words: str, folder: Path) -> None:
    """Run a merilo command in a folder."""
    subprocess.run([sys.executable, "-m", "merilo", *words.split()], cwd=folder, stdout=subprocess.DEVNULL, check=True)


def take(browser: Browser, picture: Picture, page: Path) -> None:
    """Take one picture, and print its size. Exits if it is larger than `MOST_BYTES`."""
    browser.size(picture.width, picture.height)
    browser.open(page)
    browser.run(TIMELESS)
    for key in picture.keys:
        browser.key(key)
    browser.wait(picture.ready)
    path = IMAGES / f"{picture.name}.png"
    browser.shot(path)
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {size / 1000:.0f} kB")
    if size > MOST_BYTES:
        raise SystemExit(f"{path.name} is larger than {MOST_BYTES / 1000:.0f} kB: make it smaller.")


if __name__ == "__main__":
    main(sys.argv[1:])
