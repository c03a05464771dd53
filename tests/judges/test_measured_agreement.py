"""The measured agreement of a judge, and which metrics it makes weak."""

from pathlib import Path

import pytest

from merilo import UsageError, evaluate
from merilo.commands.show.summary import record_of, run_markdown
from merilo.judges.base import (
    LOWEST_LIMIT,
    MeasuredAgreement,
    decided_kinds,
    embedded_agreement,
    weak_kinds,
)
from merilo.judges.embedded import EmbeddedJudge
from merilo.metrics.registry import all_metrics, parse_metric
from merilo.runs.run_metrics import weak_left_out, weak_metrics

ROW = {
    "user_input": "When was the tower completed?",
    "retrieved_contexts": ["The tower stands in Paris. It was completed in 1889."],
    "response": "The tower was completed in 1889.",
}


def weak(lower: float, form: str = "") -> frozenset[str]:
    """The weak kinds of a table with one row."""
    return weak_kinds([MeasuredAgreement(kind="support", form=form, value=0.8, lower=lower, upper=0.9, families=7)])


def test_a_kind_is_weak_below_the_lowest_limit() -> None:
    """The limit itself is enough; the value of the agreement does not matter."""
    assert weak(LOWEST_LIMIT) == frozenset()
    assert weak(LOWEST_LIMIT - 0.001) == {"support"}


def test_a_form_does_not_make_its_kind_weak() -> None:
    """Most questions of the kind do not have the form."""
    assert weak(0.5, form="short answers") == frozenset()


def test_the_weak_metrics_of_the_embedded_judge_follow_from_its_table() -> None:
    """Exactly those default metrics are left out that ask a kind whose row does not clear chance."""
    kinds = {each.kind for each in embedded_agreement() if not each.form and not each.clears_chance}
    assert EmbeddedJudge().weak_kinds == kinds
    assert "support" not in kinds
    asking = {name for name in all_metrics() if any(each.kind in kinds for each in decided_kinds(parse_metric(name)))}
    assert asking == {"answer_relevancy"}


def test_a_run_without_named_metrics_leaves_weak_ones_out(tmp_path: Path) -> None:
    """The Markdown and the record say which, and how to run them; the metric is not computed."""
    run = evaluate([ROW], metrics=["all"], out=tmp_path / "run", storage={"cache": False})
    assert "answer_relevancy" not in run.metrics
    assert weak_left_out(run.manifest) == ("answer_relevancy",)
    shown = run_markdown(run)
    assert "`answer_relevancy`: `weak with this judge; run it by name" in shown
    left_out = record_of(run)["left_out"]
    assert left_out["answer_relevancy"] == "weak with this judge; run it by name (--metrics answer_relevancy)"


def test_data_that_supports_weak_metrics_only_is_an_error(tmp_path: Path) -> None:
    """To compute them silently would mislead; the message says how to run them."""
    row = {"user_input": ROW["user_input"], "response": ROW["response"]}
    with pytest.raises(
        UsageError, match=r"weak with the embedded judge .*: answer_relevancy\. .*metrics='answer_relevancy'"
    ):
        evaluate([row], out=tmp_path / "run", storage={"cache": False})
    run = evaluate([row], metrics=["answer_relevancy"], out=tmp_path / "named", storage={"cache": False})
    assert weak_metrics(run.manifest) == {"answer_relevancy"}


def test_another_judge_is_not_weak_and_an_older_manifest_is_readable(tmp_path: Path) -> None:
    """A judge without a table has no weak metrics, as a run that was recorded before."""

    async def yes(prompt: str) -> str:
        del prompt
        return '{"statements": ["It was completed in 1889."], "addresses": true, "noncommittal": false}'

    run = evaluate([ROW], metrics=["answer_relevancy"], judge=yes, out=tmp_path / "run", storage={"cache": False})
    assert weak_metrics(run.manifest) == frozenset()
    assert record_of(run)["metrics"]["answer_relevancy"]["weak"] is False
