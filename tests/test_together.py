"""merilo works with ragas, DeepEval, LangChain and LlamaIndex in its environment (`make test-extras`)."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from command_line import Here

FRAMEWORKS = ("ragas", "deepeval", "langchain", "llama-index-core")
pytestmark = pytest.mark.extras

LEFT_ALONE = {"ragas", "deepeval", "langchain", "langchain_core", "llama_index", "openai", "pandas", "polars", "nltk"}
"""Modules that the frameworks load and merilo must not."""
RUN = """
import sys

import merilo

assert not {name for name in sys.modules if name.partition(".")[0] in sys.argv[1:]}
data = [{"question": "When?", "contexts": ["In 1889."], "answer": "In 1889.", "reference": "In 1889."}]
run = merilo.evaluate(data, metrics=["faithfulness", "context_recall"], judge="embedded", out="run")
assert all(score.value > 0.5 for score in run.samples[0].outcomes.values()), run
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
TOGETHER = """
import deepeval, langchain, llama_index.core, ragas
from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode

import merilo
import merilo.compat.deepeval, merilo.compat.ragas

text = "The tower was completed in 1889."
asked = {"question": "When was the tower completed?", "answer": text}
data = [
    {**asked, "found": [Document(text, id="d1")]},
    {**asked, "found": [NodeWithScore(node=TextNode(id_="d1", text=text), score=0.5)]},
]
run = merilo.evaluate(data, metrics=["faithfulness"], judge="embedded", out="run")
print([[context.id for context in each.sample.contexts] for each in run.samples])
"""


@pytest.fixture(autouse=True)
def _all_are_installed() -> None:
    for name in FRAMEWORKS:
        try:
            version(name)
        except PackageNotFoundError:
            pytest.skip(f"{name} is not installed here")


def python(code: str, folder: Path, *arguments: str) -> str:
    """Return the output of a script, run in its own process in a folder."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env=Here(folder).environment | {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "RAGAS_DO_NOT_TRACK": "true"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_requirement_is_broken() -> None:
    """Every package in the environment has the versions of others that it requires."""
    done = subprocess.run([sys.executable, "-m", "pip", "check"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_run_loads_no_framework(tmp_path: Path) -> None:
    """Neither `import merilo` nor an evaluation loads a framework that is installed."""
    assert not LEFT_ALONE & set(python(RUN, tmp_path, *LEFT_ALONE).split())


def test_the_command_starts(tmp_path: Path) -> None:
    """`merilo demo --help` works with the versions of typer, click and rich that the frameworks admit."""
    done = Here(tmp_path).merilo("demo", "--help")
    assert done.returncode == 0, done.stderr
    assert "--out" in done.stdout


def test_objects_of_two_frameworks_are_evaluated_in_one_run(tmp_path: Path) -> None:
    """With all frameworks loaded in the process, documents of LangChain and nodes of LlamaIndex are read and judged."""
    assert python(TOGETHER, tmp_path).splitlines()[-1] == "[['d1'], ['d1']]"
