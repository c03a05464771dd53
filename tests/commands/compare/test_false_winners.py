"""How often equal systems are called different: 100 studies of a judge that is kinder to one of two equal systems.

The runs are stored once; each study replaces their scores by simulated ones, and the labels by a draw from these.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from compared import compare_runs
from simulated_decisions import Cell, column, drawn, systems

import merilo
from merilo.commands.calibrate.correction import UsableLabels
from merilo.commands.compare.options import ComparisonRequest
from merilo.commands.compare.record import comparison_record
from merilo.commands.compare.result import RunComparison
from merilo.commands.compare.text import comparison_markdown
from merilo.commands.compare.text import comparison_page as terminal_page
from merilo.commands.gate.result import Gates
from merilo.commands.gate.run import gate_run
from merilo.commands.gate.suite import Suite
from merilo.results.scores import RunScores, read_scores

SAMPLES, STUDIES = 60, 100
_WINNER = re.compile(r"\b(better|worse|higher|lower|regression)\b|[▲▼]")


@dataclass(frozen=True)
class Pair:
    """Two stored runs by the embedded judge, and the metric that differs between them."""

    base: merilo.Run
    run: merilo.Run
    metric: str


def evaluated(folder: str, metric: str, *, contexts: list[str], response: str) -> merilo.Run:
    """A run of equal samples; only their scores are replaced."""
    row = {"user_input": "When does the hall open?", "retrieved_contexts": contexts, "response": response}
    rows = [{"id": f"s{number}", **row} for number in range(SAMPLES)]
    return merilo.evaluate(rows, metrics=[metric], judge="embedded", out=folder)


@pytest.fixture(scope="module", params=["retrievers", "generators"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Runs with other contexts and equal responses, and with other responses and equal contexts."""
    folder, first, second = tmp_path_factory.mktemp("runs"), ["The hall opens at 9."], ["The hall is closed on Monday."]
    quoted, loose = "The hall opens at 9.", "You can enter the hall from 9 o'clock."
    if request.param == "retrievers":
        runs = [
            evaluated(str(folder / name), "context_relevance", contexts=contexts, response=quoted)
            for name, contexts in (("base", first), ("run", second))
        ]
        return Pair(*runs, "context_relevance")
    runs = [
        evaluated(str(folder / name), "faithfulness", contexts=first, response=response)
        for name, response in (("base", quoted), ("run", loose))
    ]
    return Pair(*runs, "faithfulness")


def studies(pair: Pair, patched: pytest.MonkeyPatch, labelled: int) -> Iterator[tuple[RunComparison, Gates]]:
    """Yield the comparison and the gates of each study: on drops, and without labels on a low or a high minimum."""
    cell = Cell("graded", "kinder", labelled or 20, samples=SAMPLES)
    stored = {run.path: read_scores(run) for run in (pair.base, pair.run)}
    for seed in range(STUDIES):
        source = np.random.default_rng([labelled, seed])
        found = systems(cell, source)
        columns = [column(each.mean(axis=1)) for each in found.judge]
        scores = {
            run.path: replace(stored[run.path], columns={pair.metric: own})
            for run, own in zip((pair.base, pair.run), columns, strict=True)
        }
        labels = {pair.metric: drawn(cell, found, source).pairs} if labelled else {}

        def read(run: merilo.Run, scores: dict[object, RunScores] = scores, **_: object) -> RunScores:
            return scores[run.path]

        both = (scores[pair.base.path], scores[pair.run.path])
        usable = UsableLabels(labels, (), {}, both)
        for module in ("compare", "gate"):
            patched.setattr(f"merilo.commands.{module}.run.read_scores", read)
        patched.setattr("merilo.commands.gate.run.recompute", lambda _: [])
        patched.setattr("merilo.commands.compare.text.next_step", lambda *_: "")
        patched.setattr("merilo.commands.compare.run.paired_labels", lambda *_, usable=usable: usable)
        compared = compare_runs([pair.base, pair.run], ComparisonRequest(samples=0))
        minimums = {} if labelled else {pair.metric: 0.05 if seed % 2 else 0.95}
        yield compared, gate_run(pair.run, Suite(minimums, max_drop=0.02), baseline=pair.base)


def test_without_labels_no_output_names_a_winner(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge's difference is significant in most studies; still no output names a run, and no gate decides."""
    significant = 0
    for compared, gates in studies(pair, monkeypatch, 0):
        (row,) = compared.rows
        significant += row.comparison.p is not None and row.comparison.p < 0.05
        for text in (str(terminal_page(compared)), comparison_markdown(compared), json.dumps(conclusions_of(compared))):
            assert not _WINNER.search(text.replace("which is better", ""))
        assert "no one has checked the judge" in compared.conclusion
        assert {gate.verdict.value for gate in gates.gates} == {"cannot tell"} == {gates.verdict.value}
    assert significant > STUDIES / 2


def conclusions_of(compared: RunComparison) -> dict[str, object]:
    """The conclusions in the JSON: its other fields are numbers, and the names of the fields."""
    record = comparison_record(compared)
    (row,) = record["comparisons"]
    assert row["verdict"] == "cannot tell"
    return {"conclusion": record["conclusion"], "verdicts": [record["verdict"], row["verdict"]], "said": row["said"]}


def test_with_labels_equal_systems_are_seldom_called_different(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 20 labels: at the nominal level of 0.05, and within two standard deviations of the studies."""
    named = failed = 0
    for compared, gates in studies(pair, monkeypatch, 20):
        named += compared.rows[0].verdict in {"better", "worse"}
        failed += gates.verdict == "fail"
    bound = 0.05 + 2 * (0.05 * 0.95 / STUDIES) ** 0.5
    assert named / STUDIES <= bound
    assert failed / STUDIES <= bound
