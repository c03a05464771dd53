"""Write the page on the embedded judge from its measured figures: `python tools/card.py`, or `--check` to only compare.

The figures are those of the model file (agreement with human labels, `training/encoder/unseen.py`) and of
`benchmarks/card.py`. The page is docs/embedded-judge.md. Its text is in card.md.jinja.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, StrictUndefined

from merilo.judges.blended import BlendedModel
from merilo.judges.embedded import EmbeddedJudge

ROOT: Final = Path(__file__).resolve().parent.parent
RESULTS: Final = ROOT / "benchmarks" / "results" / "embedded"
TEMPLATE: Final = Path(__file__).with_name("card.md.jinja")
PAGE: Final = ROOT / "docs" / "embedded-judge.md"
STEPS: Final = ("blind", "stuffed", "speed")


def page(folder: Path) -> str:
    """Return the page. Raise SystemExit if a step is missing, unreadable or measured another model."""
    steps = {name: _step(folder / f"{name}.json", name) for name in STEPS}
    environment = Environment(undefined=StrictUndefined, autoescape=False, trim_blocks=True)  # noqa: S701  Markdown
    text = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        model=BlendedModel.load(),
        fingerprint=dict(EmbeddedJudge().fingerprint()),
        figure=lambda step, name: _figure(steps[step], name),
        rate=rate,
        percent=percent,
    )
    return text.rstrip() + "\n"


def rate(table: dict[str, Any]) -> str:  # Any: parsed JSON
    """Return an AUROC with its interval over families, or with the number of families if there is one."""
    low, high = table["auroc_interval"]
    families = table["families"]
    interval = "one family" if families == 1 else f"{low:.2f} - {high:.2f}, {families} families"
    return f"{table['auroc']:.2f} ({interval})"


def percent(value: float) -> str:
    """Return a fraction as a percentage, such as `3 %`."""
    return f"{100 * value:.0f} %"


def _figure(step: dict[str, Any], name: str) -> float:
    """Return the figure of a step whose name begins so. Raise SystemExit if there is none."""
    found = [each["measured"] for each in step["record"] if each["name"].startswith(name)]
    if not found:
        raise SystemExit(f"No figure begins with {name!r}.")
    return float(found[0])


def _step(path: Path, name: str) -> dict[str, Any]:  # Any: parsed JSON
    again = f"measure it with python benchmarks/card.py --only {name}."
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        measured = found["model"]
    except OSError:
        raise SystemExit(f"{path} does not exist; {again}") from None
    except (ValueError, KeyError) as error:
        raise SystemExit(f"{path} cannot be read ({error}); {again}") from None
    if measured != dict(EmbeddedJudge().fingerprint()):
        raise SystemExit(f"{path} measured another model ({measured.get('sha256')}); {again}")
    return found


def main() -> None:
    """Write the page, or exit with 1 if it differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--out", type=Path, default=PAGE, metavar="FILE")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 if the page differs")
    chosen = parser.parse_args()
    text = page(chosen.results)
    if chosen.out.is_file() and chosen.out.read_text(encoding="utf-8") == text:
        return
    if chosen.check:
        sys.exit(f"{chosen.out} differs from the measured figures; run python tools/card.py.")
    chosen.out.write_text(text, encoding="utf-8", newline="\n")
    print(f"wrote {chosen.out}")


if __name__ == "__main__":
    main()
