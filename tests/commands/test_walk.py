"""From two retrievers to a decision: compare, label 40 questions, compare and gate, on a few screens."""

import json
from importlib.resources import files
from pathlib import Path

import pytest
from edits import printed
from labelled_run import Row, fill_in

import merilo

MAX_LINES = 60


@pytest.fixture
def retrievers(tmp_path: Path) -> list[Path]:
    """Runs of the two retrievers of the example, by the embedded judge."""
    found = []
    for name in ("bm25", "opening_overlap"):
        data = tmp_path / f"{name}.jsonl"
        data.write_bytes(files("merilo.examples").joinpath("retrieval", data.name).read_bytes())
        found.append(tmp_path / name)
        merilo.evaluate(data, metrics=["context_relevance"], out=found[-1], storage={"cache": False})
    return found


def chosen_passages(runs: list[Path]) -> dict[str, set[str]]:
    """By question, the texts of the passages that annotators chose."""
    found: dict[str, set[str]] = {}
    for run in runs:
        for line in run.with_suffix(".jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            gold = {*row["reference_context_ids"]}
            texts = {each["text"] for each in row["retrieved_contexts"] if each["id"] in gold}
            found.setdefault(row["user_input"], set()).update("".join(text.split()) for text in texts)
    return found


def test_a_walk_from_two_retrievers_to_a_decision(
    retrievers: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the judge alone nothing is decided; with 40 labelled questions compare and gate say the same.

    All output together has at most 60 lines of 100 columns.
    """
    monkeypatch.setenv("COLUMNS", "100")
    tasks, gold = tmp_path / "tasks.jsonl", chosen_passages(retrievers)

    def label(task: Row) -> str:
        return "2" if "".join(task["context"].split()) in gold[task["user_input"]] else "0"

    steps = [printed("compare", *retrievers)]
    steps.append(printed("label", *retrievers, "--number", 40, "--out", tasks))
    fill_in(tasks, label)
    steps.append(printed("label", *retrievers, "--labels", tasks))
    steps.append(printed("compare", *retrievers))
    steps.append(printed("gate", retrievers[1], "--baseline", retrievers[0], "--max-drop", "0.02"))
    assert [code for code, _ in steps] == [0, 0, 0, 0, 1]
    before, _, attached, after, gated = (" ".join(text.split()) for _, text in steps)
    assert "Cannot tell which is better: no one has checked the judge." in before
    assert "To decide: merilo label" in before
    assert "People and judge differ on" in attached
    assert "opening_overlap is worse: context_relevance" in after
    assert "corrected by 40 labelled questions" in after
    assert "context_relevance is worse:" in gated
    assert "40 labelled; allowed -0.02" in gated
    assert sum(len(text.splitlines()) for _, text in steps) <= MAX_LINES
