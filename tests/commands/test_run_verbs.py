"""The verbs of a run are the public functions, and its samples can be chosen by fault and metadata."""

from pathlib import Path

import pytest
from faulty_run import AMOUNTS, faulty, rows

import merilo


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> merilo.Run:
    """A run with every fault, and the team that asked."""
    samples = [{**row, "metadata": {"team": "ab"[place % 2]}} for place, row in enumerate(rows())]
    return faulty(tmp_path_factory.mktemp("runs") / "run", samples)


def test_verbs_are_the_public_functions(run: merilo.Run, tmp_path: Path) -> None:
    """Compare, gate, label and report do what the functions do."""
    other = faulty(tmp_path / "other", rows({**AMOUNTS, ("enough", "strayed"): 12}))
    assert str(run.compare(other)) == str(merilo.compare(other, run))
    assert str(run.gate({"faithfulness": 0.1})) == str(merilo.gate(run, minimums={"faithfulness": 0.1}))
    run.label(metric="faithfulness", number=3, out=tmp_path / "a.jsonl")
    merilo.label(run, metric="faithfulness", number=3, out=tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    one, two = run.report(tmp_path / "one.html"), merilo.report(run, out=tmp_path / "two.html")
    assert one.read_bytes() == two.read_bytes()


def test_worst_samples_are_chosen_by_fault_and_metadata(run: merilo.Run) -> None:
    """A count alone, a fault and values of the metadata choose samples; an unknown fault is refused."""
    assert len(run.worst(3)) == 3
    strayed = run.worst(9, metric="faithfulness", fault="beyond_evidence")
    assert [each.sample.id.rpartition("-")[0] for each in strayed] == ["enough-strayed"] * 4
    team = run.worst(9, metric="faithfulness", fault="beyond_evidence", where={"team": "a"})
    assert {each.sample.id for each in team} < {each.sample.id for each in strayed}
    assert {each.sample.metadata["team"] for each in team} == {"a"}
    with pytest.raises(KeyError, match="No fault 'hallucinated'"):
        run.worst(fault="hallucinated")
