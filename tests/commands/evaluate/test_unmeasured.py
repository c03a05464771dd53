"""What the samples of a run do not show: citations are then undefined; ids that never match score 0."""

from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

import merilo
from merilo.commands.verify.replay import replay_run

STATES = "The tower was completed in 1889"
CITES = {"user_input": "When?", "retrieved_contexts": [f"{STATES}."]}
NO_MATCH = "No retrieved id matches a reference id of any sample"


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
    """Responses that never cite are not scored 0. One sample that cites makes 0 a score."""
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


@each_case(
    ("rows", "note"),
    [
        ([ids("d1#0 d1#1", "d1")] * 3, f"{NO_MATCH}: 'd1#0' against 'd1'."),  # chunks against documents
        ([ids("d1 d2", "d3"), ids("d4", "d5")], f"{NO_MATCH}: 'd1' against 'd3'."),
        ([ids("d1 d2", "d3"), ids("d4", "d1")], ""),  # the ids have one form
        ([ids("d4", "d1"), ids("d1 d2", "d3")], ""),
        ([ids("Battle-of-Paris Lyon", "Paris")], f"{NO_MATCH}: 'Battle-of-Paris' against 'Paris'."),
        ([ids("d1", "d2", qrels={"d1": 0, "d2": 1})] * 3, ""),  # judged as not relevant
        ([ids("", "d2")] * 3, ""),
    ],
)
def test_a_retriever_that_finds_nothing_scores_0(rows: list[dict[str, Any]], note: str, tmp_path: Path) -> None:
    """Every metric of ids is then 0. The run notes it if no id of the data matches."""
    metrics = ["id_precision", "id_recall", "reciprocal_rank", "average_precision", "nDCG@2", "hit_rate@1", "recall@2"]
    found = merilo.evaluate(rows, metrics=metrics, out=tmp_path / "run", storage={"cache": False})
    assert {each.mean for each in found.metrics.values()} == {0.0}
    assert " ".join(found.manifest.notes) == note


@each_case(
    ("retrieved", "reference"),
    [("doc-2 doc-1", "1"), ("1 2", "doc1"), ("docs/a.pdf docs/b/c.pdf", "a.pdf"), ("A Doc_1", "doc-1"), ("007", "7")],
)
def test_ids_of_two_forms_are_refused(retrieved: str, reference: str, tmp_path: Path) -> None:
    """Ids that differ in a prefix, case, punctuation or leading zeros only are an error before the first question."""
    rows = [ids(retrieved, reference), ids("", "y")]
    with pytest.raises(merilo.DataError, match=r"have two forms, .*; write them in one\."):
        merilo.evaluate(rows, metrics=["nDCG"], out=tmp_path / "run")
    scored = merilo.evaluate([*rows, ids("z", "y"), ids("y", "z")], metrics=["nDCG"], out=tmp_path / "one")
    assert scored.metrics["nDCG"].mean == 0.0


def test_a_shard_is_read_with_all_the_data(tmp_path: Path) -> None:
    """A shard without a match has the note of all the data, so merged runs equal the whole one."""
    rows = [{**ids("d1", "d2"), "id": "a"}, {**ids("d3", "d3"), "id": "b"}]
    shards = [
        merilo.evaluate(
            rows, metrics=["recall@2"], out=tmp_path / name, storage={"cache": False}, reading={"shard": f"{place}/2"}
        )
        for place, name in enumerate("xy", start=1)
    ]
    assert sorted(str(each.metrics["recall@2"].mean) for each in shards) == ["0.0", "1.0"]
