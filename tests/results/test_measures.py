"""Measures: numbers of samples that are not scores, from files, pipelines and imports."""

import time
from pathlib import Path

import numpy as np
import pytest
from imported import import_scores
from simulated_settings import latencies

import merilo
from merilo.commands.show.summary import record_of, run_page
from merilo.data.measures import MeasureColumn
from merilo.errors import UsageError
from merilo.results.measures import Measure, measures_of

METRICS = ["id_recall"]


def rows(**columns: object) -> list[dict[str, object]]:
    """Twenty records that need no judge, with these columns; a callable gets the number of its record."""
    ids = {"retrieved_context_ids": ["a"], "reference_context_ids": ["a"]}
    given = [{name: each(at) if callable(each) else each for name, each in columns.items()} for at in range(20)]
    return [{"id": str(at), "user_input": "When?", **ids, **each} for at, each in enumerate(given)]


def evaluated(data: object, out: Path, **options: object) -> merilo.Run:
    """The run of the records."""
    return merilo.evaluate(data, metrics=METRICS, storage={"cache": False}, out=out, **options)


def test_known_columns_are_measures_in_one_unit(tmp_path: Path) -> None:
    """Milliseconds count as seconds, texts in a CSV as numbers; others stay in the metadata, as the note says."""
    run = evaluated(rows(latency_ms=lambda at: 100 * at, cost_usd="0.5", rank=3), tmp_path / "run")
    found = measures_of(run)
    assert list(found) == ["cost_usd", "latency_s"]
    assert found["latency_s"].record()["mean"] == pytest.approx(0.95)
    assert found["cost_usd"].record()["sum"] == 10.0
    assert run.manifest.notes == ("Kept in the metadata, unread: rank.",)
    record = record_of(run)
    assert record["measures"]["latency_s"]["p95"] == pytest.approx(1.805)
    assert list(record["metrics"]) == METRICS
    page = " ".join(str(run_page(run, 100)).split())
    assert "latency median 0.950 s, p95 1.8" in page
    assert "Cost sum 10.0 USD" in page


def test_a_declared_column_is_a_measure(tmp_path: Path) -> None:
    """With its unit and direction; one that no sample has is an error."""
    run = evaluated(rows(energy="2.5", stars=4), tmp_path / "run", reading={"measures": ["energy=J", "stars=higher"]})
    found = measures_of(run)
    assert (found["energy"].column.unit, found["energy"].column.higher_is_better) == ("J", False)
    assert found["stars"].column.higher_is_better
    for wrong in ("weight", "=J"):
        with pytest.raises(UsageError, match="--measure"):
            evaluated(rows(), tmp_path / "other", reading={"measures": [wrong]})


def test_a_pipeline_is_timed(tmp_path: Path) -> None:
    """Each call by itself; the fingerprint of the run does not depend on it, so that the call can be repeated."""

    def pipeline(question: str) -> dict[str, object]:
        time.sleep(0.01)
        return {"response": question, "retrieved_context_ids": ["a"]}

    found = [
        merilo.evaluate_pipeline(pipeline, rows(), metrics=METRICS, storage={"cache": False}, out=tmp_path / name)
        for name in ("a", "b", "a")
    ]
    assert measures_of(found[0])["latency_s"].record()["median"] >= 0.01
    assert found[0].manifest.fingerprint == found[1].manifest.fingerprint


def test_a_pipeline_that_states_its_latency_is_not_timed(tmp_path: Path) -> None:
    """What it states counts."""
    run = merilo.evaluate_pipeline(
        lambda _: {"retrieved_context_ids": ["a"], "metadata": {"latency_ms": 7000}},
        rows(),
        metrics=METRICS,
        storage={"cache": False},
        out=tmp_path / "run",
    )
    assert measures_of(run)["latency_s"].record()["median"] == 7.0


def test_an_imported_cost_is_not_a_score(tmp_path: Path) -> None:
    """Although it is from 0 to 1; a rating without a range is neither, and is named."""
    table = tmp_path / "scores.csv"
    lines = [f"{at},When?,1889,{at % 2},{at / 100},{1 + at % 5}" for at in range(1, 20)]
    table.write_text("\n".join(["id,user_input,response,faithfulness,cost_usd,stars", *lines]), encoding="utf-8")
    run = import_scores(table, out=tmp_path / "run")
    assert list(run.metrics) == ["foreign:faithfulness"]
    assert list(measures_of(run)) == ["cost_usd"]
    assert any(
        note.startswith("Not read: stars: its values go from 1 to 5; name it: --score") for note in run.manifest.notes
    )
    both = import_scores(table, measures=["stars=higher"], out=tmp_path / "both")
    assert list(measures_of(both)) == ["cost_usd", "stars"]


def test_clusters_widen_the_interval() -> None:
    """Of the mean of a measure."""
    values = np.repeat(np.arange(20.0), 5)
    alone, clustered = (
        Measure("latency_s", MeasureColumn("latency_s", "s"), values, own).record()["interval"]
        for own in (None, np.repeat(np.arange(20), 5).tolist())
    )
    assert clustered[1] - clustered[0] > 2 * (alone[1] - alone[0])


def test_intervals_of_latencies_cover() -> None:
    """Simulated: log-normal seconds of which 1 % take 30 s more."""
    means, medians = latencies(60, studies=60, seed=21)
    assert min(means, medians) >= 0.87
