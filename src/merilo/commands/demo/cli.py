"""`merilo demo`: answers, a worse retriever, a check by annotators, and a build that stops, on data of merilo."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from merilo.commands.command import Command, Section
from merilo.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.commands.demo.text import Story
    from merilo.runs.run import Run

HELP = """Show a whole evaluation in seconds: answers, a worse retriever, a check by annotators, a build that stops.

The data is real, the judge is on this machine. The answers are judged now. The verdicts on the retrievers were recorded
and are used if they are those of this judge. Data and runs are left in the directory of --out. A second time gives the
same text.
"""
BASE, CHANGED, ANSWERS = "bm25", "overlap", "answers"
DATA: Final = {
    BASE: "retrieval/bm25.jsonl",
    CHANGED: "retrieval/opening_overlap.jsonl",
    ANSWERS: "generation/answers.jsonl",
}
"""Name of each run, and its data among the examples."""
RECORDED: Final = "retrieval/verdicts.sqlite.xz"
METRICS: Final = ("context_relevance", "id_recall")
_ANSWERS: Final = 30
_LABELLED: Final = 40
_MAX_DROP: Final = 0.05


def demo(
    out: Annotated[str, typer.Option(metavar="DIR", help="Where data and runs go.")] = "merilo-demo",
) -> None:
    """Run and show the demonstration."""
    from merilo.commands.demo.text import demo_page
    from merilo.rendering.page import page_width, show

    show(demo_page(_story(Path(out)), page_width()))


def _story(out: Path) -> Story:
    import lzma

    from merilo.commands.calibrate.run import label_agreement
    from merilo.commands.compare.options import ComparisonRequest
    from merilo.commands.compare.run import compare_runs
    from merilo.commands.demo.text import METRIC, Story
    from merilo.commands.gate.run import gate_run
    from merilo.commands.gate.suite import suite_from
    from merilo.commands.label.run import label_run

    # As a verdict cache, whose keys contain the judge: another judge finds nothing.
    cache = out / "data" / "verdicts.sqlite"
    if not cache.exists():
        _copied(cache, lzma.decompress(_example(RECORDED)))
    answers = _evaluated(_data(out, ANSWERS, most=_ANSWERS), out / ANSWERS, None, cache=False)
    base, changed = (_evaluated(_data(out, name), out / name, METRICS, cache=cache) for name in (BASE, CHANGED))
    alone = compare_runs([base, changed], ComparisonRequest(judge_only=True))
    tasks = out / "data" / "labels.jsonl"
    if not tasks.exists():
        label_run(base, tasks, metric=METRIC, samples=_LABELLED, other=changed)
        _filled(tasks, out / "data" / f"{BASE}.jsonl")
    label_agreement(base, tasks, metrics=[METRIC], other=changed, attach=True)
    runs = {ANSWERS: answers, BASE: base, CHANGED: changed}
    gates = gate_run(changed, suite_from(None, max_drop={"id_recall": _MAX_DROP}), baseline=base)
    return Story(runs, alone, compare_runs([base, changed]), gates, _LABELLED)


def _evaluated(data: Path, out: Path, metrics: Sequence[str] | None, *, cache: Path | bool) -> Run:
    """Return the run in `out`; a run by another version or of other data is replaced."""
    from merilo.commands.blocking import run_blocking
    from merilo.commands.evaluate.options import Options, Storage
    from merilo.commands.evaluate.run import run_evaluation
    from merilo.runs.files import MANIFEST, RUN_FILES

    options = Options(metrics, out=out, storage=Storage(cache=cache))
    try:
        return run_blocking(run_evaluation(data, options))
    except RunError:  # remove a run, and nothing else
        found = {path.name for path in out.iterdir()} if out.is_dir() else set[str]()
        if MANIFEST not in found or not found.issubset(RUN_FILES):
            raise
        for name in found:
            (out / name).unlink()
    return run_blocking(run_evaluation(data, options))


def _data(out: Path, name: str, *, most: int | None = None) -> Path:
    """Copy the example data, so that commands work as typed. `most`: only the samples with the shortest contexts."""
    content = _example(DATA[name])
    if most is not None:
        lines = content.splitlines(keepends=True)
        words = {
            line: sum(len(_words(each).split()) for each in json.loads(line)["retrieved_contexts"]) for line in lines
        }
        shortest = sorted(lines, key=words.__getitem__)[:most]
        content = b"".join(line for line in lines if line in shortest)
    return _copied(out / "data" / f"{name}.jsonl", content)


def _example(name: str) -> bytes:
    return files("merilo.examples").joinpath(*name.split("/")).read_bytes()


def _copied(path: Path, content: bytes) -> Path:
    from merilo.runs.files import write_file, writing

    with writing(path, "name another directory with --out"):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            write_file(path, content)
    return path


def _filled(tasks: Path, data: Path) -> None:
    """Label each context as the annotators did: it is the passage that they chose for the question, or it is not."""
    from merilo.runs.files import write_file

    chosen = {row["user_input"]: {*map(_words, row["reference_contexts"])} for row in _rows(data)}
    lines: list[str] = []
    for task in _rows(tasks):
        if task["label"] is None:
            task |= {"label": 2 * (_words(task["context"]) in chosen[task["user_input"]]), "annotator": "ClapNQ"}
        lines.append(json.dumps(task, ensure_ascii=False) + "\n")
    write_file(tasks, "".join(lines).encode())


def _rows(path: Path) -> list[dict[str, Any]]:  # Any: JSON
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _words(context: str | dict[str, Any]) -> str:  # Any: JSON
    return " ".join((context if isinstance(context, str) else context["text"]).split())


COMMAND = Command(
    name="demo",
    section=Section.MEASURE,
    summary="See merilo work, in seconds.",
    help=HELP,
    call=demo,
    options="--out",
)
