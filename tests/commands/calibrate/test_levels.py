"""Labels set the level of a judge: causes, badges, order and exports follow it, and the stored run stays as it is."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from compared import compare_runs
from labelled_run import fill_in

import merilo
from merilo.commands.calibrate.people import judge_sentences
from merilo.commands.calibrate.run import label_agreement
from merilo.commands.calibrate.slices import faults_of
from merilo.commands.calibrate.text import people_page
from merilo.commands.export.run import export_run
from merilo.commands.label.run import label_run
from merilo.commands.report.run import report_run
from merilo.commands.show.cli import show
from merilo.commands.show.summary import view_of
from merilo.judging.kinds.contexts import Support
from merilo.judging.kinds.responses import Noncommittal, Statements
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.results.sample_detail import SampleDetail
from merilo.runs.files import OUTCOMES, SUMMARY

METRIC = "faithfulness"
UNJUDGED = 5
"""Samples whose statement is not judged, every second one with a high probability."""


def rows(*, of_use: bool = True) -> list[dict[str, Any]]:
    dice, found = random.Random(4), list[dict[str, Any]]()
    for place in range(45):
        good = place % 2 == 0
        chance = dice.gauss(0.85 if good and of_use else 0.6, 0.05)
        said = f"Ann {'truly' if good else 'hardly'} wrote book {place} {'maybe' * (place < UNJUDGED)} {chance:.2f}."
        context = f"Ann wrote book {place}."
        row = {"user_input": f"Who wrote book {place}?", "retrieved_contexts": [context], "response": said}
        found.append({"id": f"s{place:02}", **row})
    return found


def lenient(question: Question[Any]) -> Any:
    """Yes to nearly all, with a probability that orders them rightly."""
    match question:
        case Statements():
            return {"statements": [{"text": text, "sentence": at} for at, text in enumerate(question.sentences)]}
        case Support():
            chance = float(question.statement.split()[-1].rstrip("."))
            if "maybe" in question.statement:
                return Failure(FailureKind.NOT_JUDGED, "it cannot judge this", chance)
            yes = chance >= 0.5
            named = [0] if yes else []
            return {"label": "supported" if yes else "not_stated", "evidence": named, "probability": chance}
        case Noncommittal():
            return {"noncommittal": False}
        case _:
            raise TypeError(question.kind)


def judged(out: Path, *, of_use: bool = True) -> merilo.Run:
    judge = merilo.ScriptedJudge.by(lenient)
    return merilo.evaluate(rows(of_use=of_use), metrics=[METRIC], judge=judge, out=out, storage={"cache": False})


def by_people(task: dict[str, Any]) -> str:
    return "yes" if "truly" in task["statement"] else "no"


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two equal runs; labels of the pair are attached to both."""
    folder = tmp_path_factory.mktemp("levels")
    first, second = (judged(folder / name) for name in ("first", "second"))
    label_run(first, folder / "tasks.jsonl", metric=METRIC, samples=30, other=second)
    fill_in(folder / "tasks.jsonl", by_people)
    found = label_agreement(first, folder / "tasks.jsonl", attach=True, other=second)
    assert "support: level set by 30 labels: 48 -> 100 % right." in str(people_page(found, 100))
    return first.path, second.path


@pytest.mark.parametrize("place", [0, 1])
def test_causes_order_and_exports_follow_the_level(paths: tuple[Path, Path], tmp_path: Path, place: int) -> None:
    """All samples have the verdict that people would give, also those that the judge left open, in both runs."""
    run = merilo.Run(paths[place])
    right = {row["id"]: "truly" in row["response"] for row in rows()}
    supported = sum(right.values())
    assert dict(run.faults) == {"supported": supported, "not_supported": len(right) - supported}
    assert run.values(METRIC) == [float(each) for each in right.values()]
    assert not right[run.worst(METRIC, 1)[0].sample.id]
    export_run(run, tmp_path / "out.jsonl")
    lines = map(json.loads, (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines())
    assert {line["id"]: line[METRIC] for line in lines} == right
    entries = report_run(run).entries
    assert [each.row.values[0] for each in entries] == sorted(map(float, right.values()))


def test_the_stored_run_and_its_means_stay(paths: tuple[Path, Path]) -> None:
    """Files are those of the judge, and the corrected mean is computed from them."""
    run = merilo.Run(paths[0])
    before = [(run.path / name).read_bytes() for name in (OUTCOMES, SUMMARY)]
    assert dict(faults_of(run, judge_only=True)) == {"supported": 40, "cannot tell": UNJUDGED}
    assert run.metrics[METRIC].mean == 1.0
    correction = view_of(run).corrections[METRIC]
    assert (correction.raw.value, correction.labelled) == (pytest.approx(0.974, abs=0.001), 30)
    assert [(run.path / name).read_bytes() for name in (OUTCOMES, SUMMARY)] == before
    shown = [each.records for each in run]
    assert shown == [each.records for each in merilo.Run(paths[0])]


def test_badges_name_the_labels(paths: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """A verdict that the level gave says so, one that it left does not, and one that it changed is changed."""
    show(str(paths[0]), sample="s02")
    assert "supported (0." in (page := capsys.readouterr().out)
    assert ", by your labels)" in page
    show(str(paths[0]), sample="s44")
    assert "by your labels" not in capsys.readouterr().out
    (asked,) = [
        each for each in SampleDetail.of(merilo.Run(paths[0]).shown, "s01").asked if isinstance(each.question, Support)
    ]
    assert not isinstance(asked.answer, Failure)
    assert not asked.answer.positive


def test_pages_say_what_set_the_level(paths: tuple[Path, Path]) -> None:
    """The screen of the run and the report have the held-out figures; a comparison does not use them."""
    run = merilo.Run(paths[0])
    sentence = "support: level set by 30 labels: 48 -> 100 % right."
    assert judge_sentences(run, merilo.Run(paths[1])) == [sentence]
    assert sentence in str(run)
    assert "set the level of these counts" in str(run)
    assert sentence in [each.text for each in report_run(run).cautions]
    assert sentence not in [each.sentence for each in compare_runs([str(each) for each in paths]).caveats]


def test_a_useless_judge_is_named(tmp_path: Path) -> None:
    """Labels with which the judge agrees by chance only set no level, and the pages say not to use it."""
    run, other = (judged(tmp_path / name, of_use=False) for name in ("run", "other"))
    label_run(run, tmp_path / "tasks.jsonl", metric=METRIC, samples=40, other=other)
    fill_in(tmp_path / "tasks.jsonl", by_people)
    label_agreement(run, tmp_path / "tasks.jsonl", attach=True, other=other)
    (sentence,) = judge_sentences(merilo.Run(run.path))
    assert sentence.startswith("support: the judge agrees with your labels on ")
    assert sentence.endswith(" of 35: do not use its verdicts.")
    assert sentence in [each.sentence for each in compare_runs([str(run.path), str(other.path)]).caveats]
