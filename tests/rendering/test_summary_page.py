"""The short summary: at most 25 lines, with what a reader must not miss."""

import re
from pathlib import Path

import pytest

import merilo
from merilo.commands.show.summary import MAX_LINES
from merilo.metrics.registry import all_metrics
from merilo.runs.run import Run
from merilo.runs.weak import weak_metrics

ROWS = [
    {
        "id": f"q{n}",
        "user_input": f"When was house {n} built?",
        "retrieved_contexts": [f"House {n} was built in 19{n:02}.", "Rome has seven hills."],
        "response": f"House {n} was built in 19{n:02}." if n % 3 else "Nobody knows that.",
        "reference": f"In 19{n:02}.",
        "retrieved_context_ids": ["a", "b"],
        "reference_context_ids": ["a"],
    }
    for n in range(8)
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    cuts = [f"{name}@{cutoff}" for name in ("hit_rate", "precision", "recall", "nDCG") for cutoff in (1, 2)]
    names = [name for name in all_metrics() if name not in {"context_entity_recall", "answer_completeness"}]
    names = [*names, *cuts]
    return merilo.evaluate(ROWS, metrics=names, out=tmp_path_factory.mktemp("run") / "out", storage={"cache": False})


@pytest.mark.parametrize("width", [60, 80, 120])
def test_many_metrics_fit(run: Run, width: int) -> None:
    """Whatever does not fit is counted, and the command that shows it is named."""
    page = run_page(run, width, again="merilo run again --retry-failed")
    lines = str(page).splitlines()
    assert len(lines) <= MAX_LINES
    assert any("more metric" in line for line in lines)
    assert any(line.startswith("Details: merilo show") for line in lines)
    assert sum(line.startswith("Worst samples by") for line in lines) == 1


def test_an_interval_beside_failed_samples_has_bounds(tmp_path: Path) -> None:
    """An interval beside failed samples says how far the mean could move, in the table or, on a narrow page, below."""
    judge = merilo.ScriptedJudge.by(
        lambda asked: merilo.Failure("refused", "no") if "1900" in str(asked) else {"grade": 2, "evidence": [0]}
    )
    run = merilo.evaluate(
        ROWS, metrics=["context_relevance"], judge=judge, out=tmp_path / "run", storage={"cache": False}
    )
    text = str(run_page(run, 80, again="merilo run again --retry-failed"))
    assert "interval         bounds  scored" in text
    assert " 0.875 - 1.000       7     0      1\n" in text
    assert "Bounds: the mean if all unscored samples had the worst or the best value." in text
    assert "Retry what failed: merilo run again --retry-failed" in text
    narrow = str(run_page(run, 70))
    assert "Bounds with unscored samples: context_relevance 0.875 - 1.000." in narrow


def test_other_reasons_than_the_most_frequent_one_are_counted(tmp_path: Path) -> None:
    """Samples that were not scored for different reasons are not all given the first one."""
    judge = merilo.ScriptedJudge.by(
        lambda asked: merilo.Failure("refused", "no") if "1900" in str(asked) else {"grade": 2, "evidence": [0]}
    )
    rows = [
        {**row, "retrieved_contexts": row["retrieved_contexts"] if place else []}
        for place, row in enumerate(ROWS[::-1])
    ]
    run = merilo.evaluate(
        rows, metrics=["context_relevance"], judge=judge, out=tmp_path / "run", storage={"cache": False}
    )
    (line,) = [line for line in str(run_page(run, 200)).splitlines() if line.startswith("Not scored")]
    assert re.fullmatch(r"Not scored: context_relevance 2 \(1: .+, 1 for another reason\)\.", line)


def test_an_interval_beside_undefined_samples_has_bounds(tmp_path: Path) -> None:
    """Undefined samples count like failed ones; a metric without unscored samples has no bounds."""
    rows = [{**row, "retrieved_contexts": row["retrieved_contexts"] if place else []} for place, row in enumerate(ROWS)]
    metrics = ["context_relevance"]
    judge = merilo.ScriptedJudge.by(lambda _: {"grade": 1, "evidence": [0]})
    run = merilo.evaluate(rows, metrics=metrics, judge=judge, out=tmp_path / "run", storage={"cache": False})
    (row,) = [line for line in str(run).splitlines() if line.startswith("context_relevance ")]
    assert row.split()[-6:] == ["0.438", "-", "0.562", "7", "1", "0"]
    whole = merilo.evaluate(rows[1:], metrics=metrics, judge=judge, out=tmp_path / "whole", storage={"cache": False})
    assert "Bounds" not in str(whole)
    assert "  bounds  " not in str(whole)


def test_a_run_prints_and_finds_its_samples(run: Run) -> None:
    """`print(run)` is the table; samples are found by position, by id, by fault and from the worst."""
    assert "context_relevance " in str(run)
    assert "Details:" not in str(run)
    assert len(run.samples) == len(ROWS)
    assert (run.samples[0].sample.id, run.samples[-1].sample.id) == ("q0", "q7")
    assert run.sample("q3").sample.id == "q3"
    assert len(run) == len(list(run)) == len(ROWS)
    assert run["faithfulness"] is run.metrics["faithfulness"]
    assert run.mean("faithfulness") == run["faithfulness"].mean
    assert [value for value in run.values("faithfulness") if value is not None]
    assert {found.sample.id for found in run.worst("faithfulness", 3)} == {"q0", "q3", "q6"}
    assert len(run.worst()) == 5
    with pytest.raises(IndexError, match="8 samples"):
        run.samples[8]
    with pytest.raises(KeyError, match=r"'q3' is a sample: use run\.sample\('q3'\)"):
        run["q3"]
    with pytest.raises(KeyError, match="nowhere"):
        run["nowhere"]
    for name, used in (
        ("scores", "run.to_frame()"),
        ("faithfulness", "run['faithfulness']"),
        ("results", "run.samples"),
    ):
        with pytest.raises(AttributeError, match=re.escape(f"A run has no attribute {name!r}: use {used}.")):
            getattr(run, name)
    with pytest.raises(merilo.UsageError, match=r"No metric 'faith' in .*; did you mean faithfulness\?"):
        run.worst("faith")


def test_the_metric_to_inspect_asks_a_judge_that_is_not_weak(run: Run) -> None:
    """A metric of ids, or one that the judge is weak for, is chosen only if there is no other."""
    line = next(line for line in str(run).splitlines() if line.startswith("Worst samples by"))
    chosen = line.removeprefix("Worst samples by ").split()[0]
    weak = weak_metrics(run.manifest)
    assert weak & set(run.metrics)
    assert chosen in run.metrics
    assert chosen not in weak | {"id_precision", "id_recall", "reciprocal_rank", "average_precision"}
