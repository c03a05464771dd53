"""`merilo demo`: an evaluation of real data that comes with merilo, from data to an explained sample."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.errors import RunError

if TYPE_CHECKING:
    from merilo.runs.run import Run

HELP = """Evaluate two retrievers and the answers of a model: real data, judged on this machine, no key, no network.

The data and the runs are left in the directory that --out names. A second time gives the same text.
"""
SAMPLES = {
    "bm25": "retrieval/bm25.jsonl",
    "opening_overlap": "retrieval/opening_overlap.jsonl",
    "answers": "generation/answers.jsonl",
}
"""Name of each run, and its data among the examples."""
_RETRIEVAL = (
    "context_relevance",
    "context_ranking",
    "context_precision(against=reference)",
    "context_recall",
    "context_sufficiency",
    "id_precision",
    "id_recall",
    "reciprocal_rank",
    "average_precision",
    "nDCG",
)
METRICS = {"bm25": _RETRIEVAL, "opening_overlap": _RETRIEVAL, "answers": None}
"""The metrics of each run; None: all that data and judge allow. Precision by the reference, since there is one, and
it finds the chosen passage again: the page says so.
"""


def demo(
    out: Annotated[str, typer.Option(metavar="DIR", help="Where data and runs go.")] = "merilo-demo",
) -> None:
    """Run and show the demonstration."""
    from merilo.commands.demo.text import demo_page
    from merilo.rendering.terminal import page_width, show

    runs = {name: _evaluated(Path(out), name) for name in SAMPLES}
    show(demo_page(runs["bm25"], runs["opening_overlap"], runs["answers"], page_width()))


def _evaluated(out: Path, name: str) -> Run:
    """Return the run with this name in `out`; a run by another version or of other data is replaced."""
    from merilo.commands.blocking import run_blocking
    from merilo.commands.evaluate.options import Options, Storage
    from merilo.commands.evaluate.run import run_evaluation
    from merilo.rendering.progress_line import ProgressLine

    data = _data(out, name)
    again = False
    while True:
        watch = ProgressLine(quiet=True)
        try:
            options = Options(METRICS[name], out=out / name, storage=Storage(cache=False), progress=watch)
            return run_blocking(run_evaluation(data, options))
        except RunError:
            if again or not _emptied(out / name):
                raise
            again = True


def _data(out: Path, name: str) -> Path:
    """Copy the example data, so that the commands that the demo names work as typed."""
    from merilo.runs.publish import write_file

    source = files("merilo.examples").joinpath(*SAMPLES[name].split("/")).read_bytes()
    path = out / "data" / f"{name}.jsonl"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != source:
            write_file(path, source)
    except OSError as error:
        raise RunError(f"{path} cannot be written ({error.strerror}); name another directory with --out.") from error
    return path


def _emptied(directory: Path) -> bool:
    """Remove a run, and nothing else; False when there is none, or when it is not all that is there."""
    from merilo.runs.files import RUN_FILES
    from merilo.runs.run import MANIFEST

    if not directory.is_dir():
        return False
    found = {path.name for path in directory.iterdir()}
    if MANIFEST not in found or not found.issubset(RUN_FILES):
        return False
    for name in found:
        (directory / name).unlink()
    return True


COMMAND = Command(
    name="demo",
    section=Section.MEASURE,
    summary="Show an evaluation of real data.",
    help=HELP,
    call=demo,
    options="--full --out",
)
