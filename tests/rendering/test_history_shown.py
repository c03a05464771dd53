"""The earlier turns of a conversation on pages, in tasks and in reports: before the question, short and escaped."""

import base64
import json
import re
import zlib
from pathlib import Path

import pytest

import merilo
from merilo import label
from merilo.commands.report.run import report_run
from merilo.commands.report.run_page import run_page
from merilo.judges.scripted import ScriptedJudge
from merilo.rendering.explain import case_page
from merilo.results.sample_detail import SampleDetail

HOSTILE = "</script><script>canary()</script><img src=x onerror=canary()>"
TURN = {"role": "user", "content": f"When was it built? {HOSTILE}"}
LONG = {"role": "assistant", "content": "In 1889. " + "It rained. " * 100}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> merilo.Run:
    """A run of one sample with history and one without."""
    rows = [
        {"id": "a", "user_input": "How tall is it?", "history": [TURN, LONG], "retrieved_contexts": ["It is 330 m."]},
        {"id": "b", "user_input": "Who built it?", "retrieved_contexts": ["Eiffel did."]},
    ]
    judge = ScriptedJudge.by(lambda question: {"grade": 1 + ("Eiffel" in str(question)), "evidence": [0]})
    out = tmp_path_factory.mktemp("runs") / "r"
    return merilo.evaluate(rows, metrics=["context_relevance"], judge=judge, out=out, storage={"cache": False})


def test_the_page_of_a_sample_begins_with_them(run: merilo.Run) -> None:
    """`show --sample` prints the turns before the question, shortened; a sample without them has no such entry."""
    text = str(case_page(SampleDetail.of(run, "a"), 100))
    assert text.index("When was it built?") < text.index("How tall is it?")
    assert text.count("It rained.") < 40
    assert "earlier turns" not in str(case_page(SampleDetail.of(run, "b"), 100))


def test_html_pages_escape_them(run: merilo.Run) -> None:
    """The report shows the turns; no markup of them becomes markup of the page, nor of the notebook."""
    report = run_page(report_run(run))
    (sample,) = [each for each in run.samples if each.sample.id == "a"]
    for page in (report, sample._repr_html_()):  # type: ignore[attr-defined]
        assert HOSTILE not in page
        assert "<img" not in page
    assert "earlier turns" in report.lower()
    blocks = json.loads(re.search(r'id="blocks">(.*?)</script>', report, re.DOTALL)[1])  # type: ignore[index]
    first, *_ = (json.loads(zlib.decompress(base64.b64decode(each))) for each in blocks["details"])
    assert [each["q"] for each in first if "h" in each] == ["How tall is it?"]


def test_annotators_read_them_first(run: merilo.Run, tmp_path: Path) -> None:
    """A task of a follow-up question has the turns before its other texts; other tasks are as they were."""
    label(run, metric="context_relevance", number=2, out=tmp_path / "tasks.jsonl")
    tasks = [json.loads(line) for line in (tmp_path / "tasks.jsonl").read_text("utf-8").splitlines()]
    (asked,) = [task for task in tasks if "history" in task]
    (other,) = [task for task in tasks if "history" not in task]
    assert list(asked).index("history") < list(asked).index("user_input")
    assert "In 1889." in asked["history"]
    assert other["user_input"] == "Who built it?"
