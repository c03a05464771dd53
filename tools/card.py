"""Writes the card of the embedded judge from measured results: `python tools/card.py`, or `--check` to only compare.

`benchmarks/card.py` measures; only the prose on the page is written by hand. The card is docs/embedded-judge.md, with
a reliability plot for each task; the prose is in card.md.jinja. `--aims` prints each aim with its result, and exits
with 1 if an aim is missed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

import card_tables as tables
from card_aims import aims, aims_table
from card_plot import reliability
from card_results import Results
from card_text import figure, percent, plain
from jinja2 import Environment, StrictUndefined

from merilo.judges.embedded import EmbeddedJudge

ROOT: Final = Path(__file__).resolve().parent.parent
WORDS: Final = Path(__file__).with_name("card.md.jinja")
NAME: Final = "embedded-judge"


def pages(results: Results) -> dict[str, str]:
    """Return every file of the card by its path in the folder of documentation."""
    found: dict[str, str] = {}
    plots: list[str] = []
    for reading, own, _ in tables.readings(results, "all"):
        each = own["calibration"]
        if each is not None and each["bins"]:
            title = tables.called("all", reading)
            path = f"{NAME}/{reading.replace('=', '')}.svg"
            found[path] = reliability(title, each["bins"])
            plots.append(f"![{title}: people's share of yes by the judge's probability, in ten bins]({path})")
    environment = Environment(undefined=StrictUndefined, autoescape=False, trim_blocks=True)  # noqa: S701  Markdown
    page = environment.from_string(WORDS.read_text(encoding="utf-8")).render(
        results=results,
        model=results.model,
        installed=dict(EmbeddedJudge().fingerprint()),
        tables=tables,
        aims=aims_table(results),
        plots="\n".join(plots),
        figure=figure,
        plain=plain,
        percent=percent,
    )
    return {f"{NAME}.md": page.rstrip() + "\n"} | found


def main() -> None:
    """Write the files, or report which ones differ and exit with 1."""
    arguments = _arguments()
    results = Results.read(arguments.results)
    if arguments.aims:
        told = aims(results)
        for each in told:
            mark = {True: "ok", False: "MISSED", None: "?"}[each.holds]
            print(f"{mark:<7}{each.name}: {each.found} ({each.aim})")
        sys.exit(any(each.holds is False for each in told))
    found = pages(results)
    there = {f"{NAME}/{path.name}": path for path in (arguments.out / NAME).glob("*.svg")}
    faults: list[str] = []
    for name, text in found.items():
        path = arguments.out / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        faults.append(f"{name} differs from what was measured; run python tools/card.py.")
        if not arguments.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            print(f"wrote {path}")
    for name in there.keys() - found.keys():
        faults.append(f"{name} belongs to no task that was measured; run python tools/card.py.")
        if not arguments.check:
            there[name].unlink()
    if arguments.check and faults:
        sys.exit("\n".join(faults))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "embedded", metavar="DIR")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", metavar="DIR")
    parser.add_argument("--check", action="store_true", help="only say which files differ; exit 1 if one does")
    parser.add_argument("--aims", action="store_true", help="only print what was aimed at and what was found")
    return parser.parse_args()


if __name__ == "__main__":
    main()
