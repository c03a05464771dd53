"""`merilo runs verify` finds what a seal alone does not: a change whose author computed the digests again."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from edits import printed
from labelled_run import STATEMENT_ROWS, contexts_rows, judged_run, lenient, says_statements
from seals import seal_again

import merilo
from merilo.judging.kinds.contexts import Relevance
from merilo.runs.files import MANIFEST, OUTCOMES, SUMMARY, USAGE

METRICS = ("context_relevance", "context_relevance(unit=context)", "faithfulness")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> merilo.Run:
    path = tmp_path_factory.mktemp("runs") / "whole"
    rows = [{**row, **other} for row, other in zip(STATEMENT_ROWS, contexts_rows(24), strict=True)]

    def judge(question: Any) -> dict[str, Any]:
        return lenient(question) if isinstance(question, Relevance) else says_statements(question)

    return judged_run(path, rows, METRICS, judge)


@pytest.fixture
def copy(whole: merilo.Run, tmp_path: Path) -> Path:
    shutil.copytree(whole.path, tmp_path / "copy")
    return tmp_path / "copy"


def verified(run: Path) -> tuple[int, dict[str, Any]]:
    code, text = printed("runs", "verify", run, "--json")
    return code, json.loads(text)


def test_a_run_is_verified(copy: Path) -> None:
    """Every outcome and every row of the summary is recomputed, and nothing is written."""
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    code, found = verified(copy)
    assert code == 0
    assert found["state"] == "verified"
    assert found["recomputed"] == found["outcomes"] == 24 * len(METRICS)
    assert found["answers"] > 0
    assert (found["different"], found["means"], found["notes"]) == (0, [], [])
    assert {path.name: path.read_bytes() for path in copy.iterdir() if not path.name.startswith(".lock")} == {
        name: content for name, content in before.items() if not name.startswith(".lock")
    }
    assert "all equal" in printed("runs", "verify", copy)[1]


def forge_outcomes(run: Path) -> None:
    text = (run / OUTCOMES).read_text(encoding="utf-8")
    (run / OUTCOMES).write_text(re.sub(r'"value":0\.\d+', '"value":1.0', text), encoding="utf-8")


def forge_mean(run: Path) -> None:
    summary = json.loads((run / SUMMARY).read_text(encoding="utf-8"))
    summary["metrics"][0]["mean"] = 0.99
    (run / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")


def changed(name: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Return an edit of a JSON file of a run."""

    def edit(run: Path) -> None:
        fields = json.loads((run / name).read_text(encoding="utf-8"))
        change(fields)
        (run / name).write_text(json.dumps(fields, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")

    return edit


def row(**fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda summary: summary["metrics"][0].update(fields)


def judge(**fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda manifest: manifest["judges"]["judge"].update(fields)


FORGERIES: dict[str, Callable[[Path], None]] = {
    "interval and method": changed(SUMMARY, row(interval=[0.1, 0.2], method="percentile bootstrap")),
    "a field of ours is missing": changed(SUMMARY, lambda summary: summary["metrics"][0].pop("flagged")),
    "complete": changed(SUMMARY, lambda summary: summary.update(complete=False)),
    "notes": changed(MANIFEST, lambda manifest: manifest.update(notes=["All answers were checked."])),
    "name of the judge": changed(MANIFEST, judge(name="openai:gpt-5")),
    "scale": changed(MANIFEST, lambda manifest: manifest["scales"]["faithfulness"].update(higher_is_better=False)),
    "version": changed(MANIFEST, lambda manifest: manifest.update(merilo="9.9.9")),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_every_forged_field_is_found(name: str, copy: Path) -> None:
    """Every shown number and name is compared, with what follows from the store or with the copy in it."""
    FORGERIES[name](copy)
    usage = json.loads((copy / USAGE).read_text(encoding="utf-8"))
    seal_again(copy, **usage)
    assert merilo.Run.open(copy).metrics
    code, found = verified(copy)
    assert (code, found["state"]) == (1, "recomputes to other numbers")
    assert found["means"] or found["other"]
    assert "differs" in printed("runs", "verify", copy)[1] or found["means"]


def drop_samples(run: Path) -> None:
    lines = (run / OUTCOMES).read_text(encoding="utf-8").splitlines(keepends=True)
    (run / OUTCOMES).write_text("".join(lines[: -len(METRICS)]), encoding="utf-8")


@pytest.mark.parametrize("forge", [forge_outcomes, forge_mean, drop_samples])
def test_a_forged_run_with_a_right_seal_is_found(forge: Callable[[Path], None], copy: Path) -> None:
    """The files fit the seal, so the run is shown; but its numbers do not follow from its answers: exit code 1."""
    forge(copy)
    assert printed("runs", "verify", copy)[0] == 2
    seal_again(copy)
    assert merilo.Run.open(copy).metrics
    code, found = verified(copy)
    assert code == 1
    assert found["state"] == "recomputes to other numbers"
    assert found["different"] or found["means"] or found["notes"]


def test_imported_scores_cannot_be_recomputed(tmp_path: Path) -> None:
    """The files fit the seal, and a note says that nothing follows from stored answers."""
    (tmp_path / "scores.csv").write_text("id,s\na,0.5\nb,\nc,0.25\n", encoding="utf-8")
    assert printed("import", tmp_path / "scores.csv", "--score", "s", "--out", tmp_path / "run")[0] == 0
    code, found = verified(tmp_path / "run")
    assert (code, found["recomputed"]) == (3, 0)
    assert "cannot be recomputed" in found["notes"][0]
