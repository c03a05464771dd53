"""Metrics that no sample of a run shows are undefined, with the reason."""

from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

import merilo
from merilo.commands.verify.replay import replay_run

STATES = "The tower was completed in 1889"
CITES = {"user_input": "When?", "retrieved_contexts": [f"{STATES}."]}
NO_MATCH = "no retrieved id matches a reference id (0 of 3): 'd1#0' against 'd1'"


def ids(retrieved: str, reference: str, **metadata: object) -> dict[str, Any]:
    return {
        "user_input": "When?",
        "retrieved_context_ids": retrieved.split(),
        "reference_context_ids": reference.split(),
        "metadata": metadata,
    }


@each_case(
    ("metrics", "rows", "expected"),
    [
        (["recall@2", "nDCG", "hit_rate@1"], [ids("d1#0 d1#1", "d1")] * 3, NO_MATCH),
        (["recall@2"], [ids("d1#0", "d1"), ids("d1#0", "d2"), ids("d3#0 d3#1", "d3"), ids("", "d1")], NO_MATCH),
        (["recall@1"], [ids("x d1", "d1"), ids("d2", "d1")], 0.0),  # found, if only beyond the first rank
        (["recall@2"], [ids("d1", "d2"), ids("d3", "d2"), ids("d3", "d3")], 1 / 3),
        (["recall@2"], [ids("d1", "d2", qrels={"d1": 0, "d2": 1})] * 3, 0.0),  # judged as not relevant
        (["recall@2"], [ids("", "d2")] * 3, 0.0),  # nothing was retrieved
        (
            ["citation_recall", "citation_precision", "citation_f1"],
            [{**CITES, "response": f"{STATES}."}] * 44,
            "0 of 44 responses cite a context",
        ),
        (["citation_recall"], [{**CITES, "response": f"{STATES}."}, {**CITES, "response": f"{STATES} [7]."}], 0.0),
    ],
)
def test_a_run_that_shows_nothing_has_no_value(
    metrics: list[str], rows: list[dict[str, Any]], expected: str | float, tmp_path: Path
) -> None:
    """Ids of two kinds and responses that never cite are not scored 0. One sample that shows them makes 0 a score."""
    run = merilo.evaluate(rows, metrics=metrics, out=tmp_path / "run", storage={"cache": False})
    for metric in metrics:
        found = run.metrics[metric]
        if isinstance(expected, str):
            assert (found.mean, found.undefined) == (None, len(rows))
            assert dict(found.reasons) == {expected: len(rows)}
            assert expected[:40] in " ".join(str(run).split())
        else:
            assert found.mean == pytest.approx(expected)
    assert replay_run(run.path).same


def test_a_shard_is_read_with_all_the_data(tmp_path: Path) -> None:
    """A shard without a match has scores if another shard has one, so merged runs equal the whole one."""
    rows = [{**ids("d1", "d2"), "id": "a"}, {**ids("d3", "d3"), "id": "b"}]
    shards = [
        merilo.evaluate(
            rows, metrics=["recall@2"], out=tmp_path / name, storage={"cache": False}, reading={"shard": f"{place}/2"}
        )
        for place, name in enumerate("xy", start=1)
    ]
    assert sorted(str(each.metrics["recall@2"].mean) for each in shards) == ["0.0", "1.0"]
