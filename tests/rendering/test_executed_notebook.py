"""A notebook that is really executed, in a kernel of Jupyter."""

import os
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

pytestmark = pytest.mark.slow
CELLS = (
    """
import merilo
from merilo.rendering.progress_line import ProgressLine
row = {"user_input": "When was it built?", "retrieved_contexts": ["It was built in 1889."]}
rows = [{**row, "id": f"q{n}"} for n in range(4)]
run = merilo.evaluate(rows, metrics=["context_relevance"], out="run", progress=ProgressLine())
""",
    "run",
    "run.sample('q1')",
    "merilo.compare(run, run)",
    "merilo.gate(run, minimums={'context_relevance': 0.1})",
    "merilo.plan(rows, metrics=['context_relevance'])",
    "await merilo.aevaluate(rows, metrics=['context_relevance'], out='run2', progress=ProgressLine())",
)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """The outputs of each cell."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    folder: Path = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    environment = {**os.environ, "IPYTHONDIR": str(folder / "ipython"), "JUPYTER_RUNTIME_DIR": str(folder / "runtime")}
    client = nbclient.NotebookClient(notebook, timeout=250, resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment)
    return [cell["outputs"] for cell in notebook.cells]


def test_progress_is_plain_lines(outputs: list[list[dict[str, Any]]]) -> None:
    """The cell has the final numbers on standard error, without control signs."""
    for shown in (outputs[0][0], outputs[-1][0]):
        assert (shown["output_type"], shown["name"]) == ("stream", "stderr")
        assert shown["text"].splitlines()[-1].startswith("4 of 4 samples (100%)")
        assert "\r" not in shown["text"]


@each_case(
    ("cell", "words"),
    [
        (1, "records: 4 samples"),
        (2, "question: When was it built?"),
        (3, "context_relevance"),
        (4, "context_relevance"),
        (5, "Nothing was sent"),
    ],
)
def test_a_result_is_shown_as_html(outputs: list[list[dict[str, Any]]], cell: int, words: str) -> None:
    """The last line of a cell is drawn, and its plain text is short."""
    (shown,) = outputs[cell]
    assert words in shown["data"]["text/html"]
    assert len(shown["data"]["text/plain"].splitlines()) <= 12
