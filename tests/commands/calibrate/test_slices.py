"""Slices of a run by a field: counts, means, a star for those that differ, and means that labels correct."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labelled_run import fill_in, grade_of, strict

import merilo
from merilo.judging.questions import Question
from merilo.results.faults import Faults
from merilo.results.scores import RunScores
from merilo.results.slices import NO_VALUE, sliced, values_by_field
from merilo.stats.column import Column


def rows(amounts: dict[str, tuple[int, int]], seed: int = 1) -> list[dict[str, Any]]:
    """Samples by source: how many, and how many of them have a relevant context."""
    dice = random.Random(seed)
    found = [
        {
            "user_input": f"What is {source} {place}?",
            "retrieved_contexts": [f"Text {source} {place}, luck {dice.randrange(10)}, is truly {2 * (place < good)}."],
            "response": "Yes. " * (1 + 30 * (place % 2)),
            "metadata": {"source": source, "page": place, **({"team": "a"} if place % 2 else {})},
        }
        for source, (amount, good) in amounts.items()
        for place in range(amount)
    ]
    dice.shuffle(found)
    return [{"id": f"s{place}", **row} for place, row in enumerate(found)]


def judged(out: Path, samples: list[dict[str, Any]], judge: Any = strict) -> merilo.Run:
    """A run of one metric by a scripted judge."""
    return merilo.evaluate(
        samples,
        metrics=["context_relevance"],
        judge=merilo.ScriptedJudge.by(judge, version="1"),
        out=out,
        storage={"cache": False},
    )


def test_slices_have_counts_means_and_a_star(tmp_path: Path) -> None:
    """Each value has its samples; a mean that differs has a star; fewer than 10 samples have no interval."""
    run = judged(tmp_path / "run", rows({"wiki": (40, 36), "manual": (30, 6), "blog": (4, 4)}))
    found = run.by("source")
    assert [(value, len(each)) for value, each in found.items()] == [("wiki", 40), ("manual", 30), ("blog", 4)]
    assert found["wiki"].means["context_relevance"].value == 0.9
    assert found["wiki"].differs == found["manual"].differs == {"context_relevance"}
    assert found["blog"].differs == frozenset()
    assert found["blog"].means["context_relevance"].interval is None
    assert [each.sample.metadata["source"] for each in found["blog"]] == ["blog"] * 4
    table = str(found).splitlines()
    assert table[0].split() == ["source", "n", "context_relevance"]
    assert table[1].split()[:3] == ["wiki", "40", "0.900"]
    assert table[1].endswith("*")
    assert "* differs from all other samples (95 %, corrected for the number of values)." in table


def test_fields_with_2_to_30_values_make_slices(tmp_path: Path) -> None:
    """Metadata keys, the length of the response and the number of contexts can be used; a sample may lack the key."""
    run = judged(tmp_path / "run", rows({"wiki": (40, 20), "manual": (30, 10)}))
    assert list(values_by_field(run)) == ["source", "team", "length"]
    assert {value: len(each) for value, each in run.by("team").items()} == {"a": 35, NO_VALUE: 35}
    with pytest.raises(merilo.UsageError, match=r"'page' has 40 values. .*: 'source', 'team', 'length'"):
        run.by("page")
    with pytest.raises(merilo.UsageError, match="'topic' is in no sample"):
        run.by("topic")


def test_labels_correct_the_means_of_slices(tmp_path: Path) -> None:
    """With 20 labelled samples in a slice its mean is the corrected one, and says so; with fewer it stays."""

    def lenient(question: Question[Any]) -> dict[str, Any]:
        good = "wiki" in question.user_input or grade_of(" ".join(question.sentences)) > 0
        return {"grade": 2 if good else 0, "evidence": [0] if good else []}

    run = judged(tmp_path / "run", rows({"wiki": (60, 30), "manual": (10, 5)}), lenient)
    assert run.by("source")["wiki"].means["context_relevance"].value == 1.0
    tasks = tmp_path / "tasks.jsonl"
    merilo.label(run, metric="context_relevance", number=70, out=tasks)
    fill_in(
        tasks,
        lambda task: grade_of(task["context"]),
    )
    merilo.label(run, labels=tasks)
    found = run.by("source")
    assert found["wiki"].means["context_relevance"].value == 0.5
    assert found["wiki"].means["context_relevance"].caveat("labelled").facts == {"labelled": 60}
    assert found["manual"].means["context_relevance"].caveat("labelled") is None
    assert "Corrected by human labels: wiki (60 labels)." in str(found)


def test_equal_slices_rarely_have_a_star(tmp_path: Path) -> None:
    """Of runs whose slices are equal, at most 5 % (plus simulation error) have any star: 5 slices of 12 to 60."""
    generator = np.random.default_rng(7)
    sizes = (12, 20, 30, 45, 60)
    ids = tuple(f"s{place}" for place in range(sum(sizes)))
    starts = np.cumsum((0, *sizes))
    groups = {str(at): ids[starts[at] : starts[at + 1]] for at in range(len(sizes))}
    run = judged(tmp_path / "run", rows({"a": (2, 1)}))
    stars = 0
    for _ in range(60):
        column = Column.of((generator.random(len(ids)) < 0.85).astype(float).tolist(), (0.0, 1.0))
        found = sliced(run, RunScores(run, ids, {"m": column}, None), groups, Faults({}))
        stars += any(each.differs for each in found.values())
    assert stars / 60 <= 0.05 + 2 * (0.05 * 0.95 / 60) ** 0.5
