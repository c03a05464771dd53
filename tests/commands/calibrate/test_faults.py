"""The faults of a run: what its verdicts give, with shares that human labels correct."""

from pathlib import Path
from typing import Any

import pytest
from faulty_run import AMOUNTS, faulty, judge, rows
from labelled_run import fill_in

import merilo
from merilo.commands.calibrate.slices import faults_of
from merilo.judging.kinds.contexts import Sufficiency
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure

RIGHT = ("enough", "supported")


def test_verdicts_on_sufficiency_and_support_give_the_faults_of_answering(tmp_path: Path) -> None:
    """The same judge gives the same faults by two metrics as by the metric answering."""
    samples = [{name: value for name, value in row.items() if name != "reference"} for row in rows()]
    joint = faults_of(faulty(tmp_path / "joint", samples, metrics=("answering",)))
    halves = faults_of(faulty(tmp_path / "halves", samples, metrics=("context_sufficiency", "faithfulness")))
    assert joint.samples == halves.samples
    assert joint.counts == {
        "right": 5,
        "beyond_evidence": 4,
        "declined_wrongly": 3,
        "evidence_missing": 2,
        "rightly_declined": 2,
        "invented": 1,
        "cannot tell": 1,
    }
    assert joint.likely == 10
    assert not joint.checked


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        (("context_sufficiency",), {"evidence_found": 13, "evidence_missing": 5}),
        (("faithfulness",), {"supported": 7, "not_supported": 5, "declined": 5, "cannot tell": 1}),
        (("context_relevance",), {}),
    ],
)
def test_a_run_with_one_half_has_its_own_names(
    metrics: tuple[str, ...], expected: dict[str, int], tmp_path: Path
) -> None:
    """What was not judged is not in a name: only contexts, only responses, or nothing."""
    assert faults_of(faulty(tmp_path / "run", metrics=metrics)).counts == expected


def test_share_leaves_samples_without_a_verdict_out(tmp_path: Path) -> None:
    """A share is of the samples that have a fault or none, with an interval; another name is refused."""
    found = faults_of(faulty(tmp_path / "run", rows({**AMOUNTS, RIGHT: 20})))
    share = found.share("right")
    assert share.value == 20 / 32
    assert share.interval.ends is not None
    assert share.interval.ends[0] < 20 / 32 < share.interval.ends[1]
    assert found["wrong"] == 0
    with pytest.raises(KeyError, match="No fault 'grounded'"):
        found.share("grounded")


def lenient(question: Question[Any]) -> dict[str, Any] | Failure:
    """A judge that calls all contexts sufficient."""
    return {"label": "sufficient"} if isinstance(question, Sufficiency) else judge(question)


def test_labels_correct_the_shares(tmp_path: Path) -> None:
    """If annotators find that contexts do not hold the answer, the corrected share of right answers falls."""
    samples = [
        {name: value for name, value in row.items() if name != "reference"}
        for row in rows({RIGHT: 30, ("short", "supported"): 30})
    ]
    run = merilo.evaluate(
        samples,
        metrics=["answering"],
        judge=merilo.ScriptedJudge.by(lenient, version="1"),
        out=tmp_path / "run",
        storage={"cache": False},
    )
    assert faults_of(run).counts == {"right": 60}
    tasks = tmp_path / "tasks.jsonl"
    merilo.label(run, metric="answering", number=60, out=tasks)
    fill_in(tasks, _truth, annotator="ann")
    merilo.label(run, labels=tasks)
    found, alone = faults_of(run), faults_of(run, judge_only=True)
    assert found.checked
    assert not alone.checked
    assert found.counts == alone.counts == {"right": 60}
    assert alone.share("right").value == 1.0
    assert {key: found.share(key).value for key in ("right", "evidence_missing", "invented")} == {
        "right": 0.5,
        "evidence_missing": 0.5,
        "invented": 0.0,
    }


def _truth(task: dict[str, Any]) -> str:
    if not task["question"].startswith("Do these contexts together"):
        return "yes"
    return "insufficient" if "holds short" in task["contexts"] else "sufficient"
