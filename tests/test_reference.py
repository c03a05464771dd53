"""The generated parts of the documentation say what the code says; who writes them: tools/docs.py."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from each_case import each_case

from merilo.metrics.base import Score
from merilo.metrics.edges import edge_outcome, edges
from merilo.metrics.registry import native_metrics, parse_metric

ROOT = Path(__file__).resolve().parent.parent
METRICS = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")


def checked(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(root / "tools" / "docs.py"), "--check"], check=False, capture_output=True, text=True
    )


def shown_edges() -> list[tuple[str, str, str]]:
    """Case, metric and cell of each filled cell in the tables of edge cases on the page."""
    found: list[tuple[str, str, str]] = []
    metrics: list[str] = []
    for line in METRICS.partition("## Edge cases")[2].splitlines():
        if not line.startswith("| ") or line.startswith("| ---"):
            continue
        first, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        if not first:
            metrics = [cell.strip("`") for cell in cells]
            continue
        found += [(first, metric, cell) for metric, cell in zip(metrics, cells, strict=True) if cell]
    return found


def test_the_pages_say_what_the_code_says() -> None:
    """Every generated part of README.md and docs/ is what tools/docs.py makes of the installed merilo."""
    done = checked(ROOT)
    assert done.returncode == 0, done.stderr


def test_a_page_that_drifts_is_named(tmp_path: Path) -> None:
    """A generated part that was changed by hand fails the check, by the name of its page."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    for name in ("compat", "extras"):  # their scripts are a part
        shutil.copytree(ROOT / "tests" / name, tmp_path / "tests" / name)
    shutil.copy(ROOT / "README.md", tmp_path)
    page = tmp_path / "docs" / "reference" / "metrics.md"
    page.write_text(METRICS.replace("Supported statements /", "All statements /"), encoding="utf-8")
    done = checked(tmp_path)
    assert done.returncode == 1
    assert re.findall(r"(\S+) differs from the code", done.stderr) == ["docs/reference/metrics.md"]


def test_every_native_metric_is_in_the_table_of_edge_cases() -> None:
    """Each native metric has a column among the edge cases; rubric_metric means what its user's file says."""
    shown = {re.split(r"[@(]", metric)[0] for _, metric, _ in shown_edges()}
    assert shown == set(native_metrics()) - {"rubric_metric"}


@each_case(("case", "metric", "cell"), shown_edges())
def test_an_edge_case_is_as_shown(case: str, metric: str, cell: str) -> None:
    """What the page says of a metric at an edge is what the metric gives there."""
    (edge,) = (each for each in edges() if each.name == case)
    outcome = edge_outcome(parse_metric(metric), edge)
    assert cell == (f"{outcome.value:g}" if isinstance(outcome, Score) else f"undefined: {outcome.reason}")


def test_an_empty_cell_is_the_usual_outcome() -> None:
    """Where the page leaves a cell of a metric empty, the outcome is that of the usual case."""
    filled = {(case, metric) for case, metric, _ in shown_edges()}
    usual, *others = edges()
    for text in {metric for _, metric, _ in shown_edges()}:
        metric = parse_metric(text)
        expected = edge_outcome(metric, usual)
        for edge in others:
            if (edge.name, text) not in filled:
                found = edge_outcome(metric, edge)
                assert isinstance(found, Score)
                assert isinstance(expected, Score)
                assert found.value == expected.value
