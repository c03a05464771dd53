"""Weak metrics are marked where a command decides or compares by them."""

import pytest
from compared import compare_runs

from merilo import evaluate
from merilo.commands.compare.record import comparison_record
from merilo.commands.compare.text import comparison_markdown
from merilo.commands.compare.text import comparison_page as full_page
from merilo.commands.gate.run import gate_run
from merilo.commands.gate.suite import suite_from
from merilo.commands.gate.text import gates_page, gates_record, junit_text
from merilo.commands.report.run_page import comparison_page
from merilo.runs.run import Run

WEAK = "answer_relevancy"
ROWS = [
    {
        "id": f"q{place}",
        "user_input": "When was the tower completed?",
        "retrieved_contexts": ["The tower stands in Paris. It was completed in 1889."],
        "response": f"The tower was completed in {1889 + place}. It is made of stone.",
    }
    for place in range(3)
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run with a weak metric and another."""
    out = tmp_path_factory.mktemp("weak") / "run"
    return evaluate(ROWS, metrics=[WEAK, "faithfulness"], out=out, storage={"cache": False})


def test_a_gate_on_a_weak_metric_says_so(run: Run) -> None:
    """Next to the result, on the page, in JUnit XML and in JSON; not for other metrics."""
    found = gate_run(run, suite_from(None, minimums={WEAK: 0.1, "faithfulness": 0.1}))
    weak, other = found.gates
    assert weak.reading.endswith("Weak with this judge.")
    assert "Weak" not in other.reading
    assert "Weak with this judge (not clearly better than chance): answer_relevancy." in str(gates_page(found, 200))
    assert "Weak with this judge." in junit_text(found)
    assert [len(gate["caveats"]) for gate in gates_record(found)["gates"]] == [1, 0]


def test_a_comparison_by_a_weak_metric_says_so(run: Run) -> None:
    """In the tables and the legend of every format; the full page says what it means."""
    found = compare_runs([run, run])
    for text in (str(found), comparison_page(found), comparison_markdown(found), found._repr_html_()):
        assert f"{WEAK} *" in text
        assert "faithfulness *" not in text
    full = " ".join(str(full_page(found, 100, full=True)).split())
    assert "weak with this judge, so the difference" in full
    for text in (full, comparison_page(found), comparison_markdown(found)):
        assert "weak with this judge (not clearly better than chance)" in text
    assert ["weak" in {each["code"] for each in row["caveats"]} for row in comparison_record(found)["comparisons"]] == [
        True,
        False,
    ]
