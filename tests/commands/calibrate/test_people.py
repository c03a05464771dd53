"""Human labels next to the judge's verdicts: in `show`, in `label --labels` and in the report."""

import json
from pathlib import Path
from typing import Any

import pytest
from browser import Browser
from hostile_texts import HOSTILE
from labelled_run import fill_in, judged_run

import merilo
from merilo.commands.calibrate.run import LabelledRun, label_agreement
from merilo.commands.calibrate.text import people_page, people_record
from merilo.commands.label.run import label_run
from merilo.commands.report.run import report_run
from merilo.commands.report.run_page import run_page
from merilo.commands.show.cli import show
from merilo.judging.kinds.contexts import Relevance
from merilo.judging.questions import Question

METRIC = "context_relevance"
SURE = {"s0": 0.99, "s1": 0.60, "s2": 0.95, "s3": 0.80}
"""The judge's probability that the first context of a sample is relevant; the second one's is 0.02."""


def judge(question: Question[Any]) -> dict[str, Any]:
    """Take each first context as relevant, and no second one."""
    assert isinstance(question, Relevance)
    first = question.sentences[0].startswith("First")
    probability = SURE[question.user_input.split()[0]] if first else 0.02
    return {"grade": 2 if first else 0, "evidence": [0] if first else [], "probability": probability}


def rows(more: str = "") -> list[dict[str, Any]]:
    return [
        {
            "id": name,
            "user_input": f"{name} asks{more}",
            "retrieved_contexts": [f"First of {name}.", f"Other of {name}."],
        }
        for name in SURE
    ]


def person(task: dict[str, Any]) -> int:
    """Say no to all contexts, except that the second of s3 is relevant in part."""
    return int(task["context"] == "Other of s3.")


@pytest.fixture
def runs(tmp_path: Path) -> tuple[merilo.Run, merilo.Run]:
    """Two runs that differ in one sample's context, labelled by a person who agrees on three second contexts alone."""
    moved = [*rows()[:3], {**rows()[3], "retrieved_contexts": ["First of s3 elsewhere.", "Other of s3."]}]
    first = judged_run(tmp_path / "old", rows(), [METRIC], judge)
    second = judged_run(tmp_path / "new", moved, [METRIC], judge)
    label_run(first, tmp_path / "t.jsonl", other=second, samples=4, items=None)
    fill_in(tmp_path / "t.jsonl", person, annotator="ann")
    return first, second


def attached(runs: tuple[merilo.Run, merilo.Run], folder: Path) -> LabelledRun:
    return label_agreement(runs[0], folder / "t.jsonl", other=runs[1], attach=True)


def test_the_most_certain_wrong_verdict_of_both_runs_comes_first(
    runs: tuple[merilo.Run, merilo.Run], tmp_path: Path
) -> None:
    """Each entry has context and both verdicts, the judge's with its probability; a shared context once."""
    text = " ".join(str(people_page(attached(runs, tmp_path), 300)).split())
    assert "People and judge differ on 6 verdicts, the judge's most certain first" in text
    places = [text.index(f"First of {each}") for each in ("s0.", "s2.", "s3.", "s3 elsewhere.", "s1.")]
    assert places[0] < text.index("Other of s3.") < places[1] < min(places[2:4])
    assert places[-1] == max(places)
    assert "s0 context 1 of old: judge grade 2 of 2 (0.99), ann grade 0 of 2 First of s0." in text
    assert text.count("First of s0.") == 1


def test_figures_of_both_runs_follow_and_the_tables_come_on_request(
    runs: tuple[merilo.Run, merilo.Run], tmp_path: Path
) -> None:
    """The share of equal verdicts, kappa and rates are said of each run; `full` adds the tables; JSON has both runs."""
    found = attached(runs, tmp_path)
    text = " ".join(str(people_page(found, 300)).split())
    for name in ("old", "new"):
        _, _, after = text.partition(f"{name}: judge compared with human labels")
        assert "relevance 3 of 8" in after
    assert " 0.000 " in text
    assert "20 labelled samples are needed to decide; this run has 4. Evaluate more questions." in text
    assert "judge alone" not in text
    assert "judge alone" in str(people_page(found, 300, full=True))
    record = people_record(found)
    assert record["differ"][0]["people"] == {"ann": "0"}
    assert record["other"]["run"] == str(runs[1].path)


def test_a_sample_shows_who_agrees(
    runs: tuple[merilo.Run, merilo.Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`show --sample` has the verdicts of annotators, those from which the judge differs first."""
    attached(runs, tmp_path)
    show(str(runs[0].path), sample="s3")
    people = capsys.readouterr().out.partition("People")[2]
    assert people.startswith("     ann: context 1 grade 0 of 2. The judge differs.\n")
    show(str(runs[0].path), sample="s0", full=True)
    shown = capsys.readouterr().out
    assert "ann, relevance: grade 0 of 2 \u2713 agrees" in shown[shown.index("Context 2") :]


@pytest.mark.slow
def test_the_report_filters_and_sorts_by_disagreement(
    browser: Browser, runs: tuple[merilo.Run, merilo.Run], tmp_path: Path
) -> None:
    """The filter lists the judge's most certain wrong verdicts first; names of annotators run nothing."""
    tasks = tmp_path / "t.jsonl"
    lines = [json.loads(line) for line in tasks.read_text(encoding="utf-8").splitlines()]
    names = [*HOSTILE[::7], "ann"]
    given = [{**line, "annotator": name} for name in names for line in lines]
    tasks.write_text("".join(json.dumps(line) + "\n" for line in given), encoding="utf-8")
    attached(runs, tmp_path)
    page = tmp_path / "report.html"
    page.write_text(run_page(report_run(runs[0])), encoding="utf-8")
    browser.open(page)
    browser.run(
        "(each => { each.value = 'people'; each.dispatchEvent(new Event('change')); })"
        "(document.querySelector('option[value=people]').parentElement)"
    )
    found = browser.run("[...document.querySelectorAll('tr[data-place] .sub')].map(e => e.textContent)")
    assert found == ["s0", "s3", "s2", "s1"]
    browser.key("j")
    browser.wait("document.querySelector('#drawer.on .inside')")
    people = browser.run("[...document.querySelectorAll('#drawer .person')].map(e => e.textContent)")
    assert "ann, relevance: grade 0 of 2 \u2717 differs" in people
    assert len(people) == 2 * len(set(names))
    assert browser.run("document.querySelectorAll('#drawer img, #drawer iframe, #drawer [onerror]').length") == 0
    assert browser.errors() == []
