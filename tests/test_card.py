"""The card of the embedded judge says what was measured; who writes it: tools/card.py."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from merilo.commands.check.options import CheckOptions
from merilo.commands.check.run import run_check
from merilo.stats.resampling import Resampling

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "embedded"


def card(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / "card.py"), *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A copy of what was measured."""
    return Path(shutil.copytree(RESULTS, tmp_path / "results"))


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a script of tools/ or benchmarks/ by its name."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")

    def imported(name: str) -> ModuleType:
        return importlib.import_module(name)

    return imported


def page(results: Path, out: Path) -> str:
    done = card("--results", results, "--out", out)
    assert done.returncode == 0, done.stderr
    return (out / "embedded-judge.md").read_text(encoding="utf-8")


def changed(path: Path, *keys: str, value: object) -> None:
    """Put a value into a JSON file at a place."""
    found = json.loads(path.read_text(encoding="utf-8"))
    inner = found
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    path.write_text(json.dumps(found), encoding="utf-8")


def test_the_card_says_what_was_measured() -> None:
    """The page and the plots in docs/ are what tools/card.py makes of the committed results."""
    done = card("--check")
    assert done.returncode == 0, done.stderr


def test_the_card_names_the_model_that_was_measured(results: Path, tmp_path: Path) -> None:
    """The digest on the page is that of the results, whatever model is installed."""
    for path in results.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        digest = json.loads(text)["model"]["sha256"]
        path.write_text(text.replace(digest, "f" * 64), encoding="utf-8")
    shown = page(results, tmp_path)
    assert f"| SHA-256 | `{'f' * 64}` |" in shown


@pytest.mark.parametrize(
    ("step", "keys", "value", "shown"),
    [
        ("check", ("tasks", "people", "groundedness", "macro", "kappa", "value"), 0.4321, "0.43 ["),
        ("held_out", ("people", "nli", "snli", "auroc", "value"), 0.12345, "0.12 ["),
        ("held_out", ("tasks", "all", "nli", "calibration", "value"), 0.98765, "0.988 ["),
        ("probe", ("probes", "negation", "value"), 0.77777, "77.8 % of supported statements"),
    ],
)
def test_a_changed_figure_changes_the_page(
    results: Path, tmp_path: Path, step: str, keys: tuple[str, ...], value: float, shown: str
) -> None:
    """A figure of the results stands on the page as it is there."""
    before = page(results, tmp_path)
    changed(results / f"{step}.json", "record", *keys, value=value)
    assert card("--results", results, "--out", tmp_path, "--check").returncode == 1
    after = page(results, tmp_path)
    assert after != before
    assert after.count(shown) > before.count(shown)


def test_a_changed_calibration_changes_the_plot(results: Path, tmp_path: Path) -> None:
    """Each point of a plot is a bin of the results, and the plot is well-formed."""
    page(results, tmp_path)
    path = tmp_path / "embedded-judge" / "nli.svg"
    before = path.read_text(encoding="utf-8")
    bins = [{"n": 50, "probability": 0.25, "observed": 0.5}]
    changed(results / "held_out.json", "record", "tasks", "all", "nli", "calibration", "bins", value=bins)
    page(results, tmp_path)
    after = path.read_text(encoding="utf-8")
    assert after != before
    circles = ET.fromstring(after).iter("{http://www.w3.org/2000/svg}circle")  # noqa: S314  our own file
    (circle,) = circles
    assert (float(circle.attrib["cx"]), float(circle.attrib["cy"])) == (46 + 226 * 0.25, 26 + 226 * 0.5)


def test_a_missing_step_is_named_with_its_command(results: Path, tmp_path: Path) -> None:
    """Without a record there is no page, but a sentence that says which one is missing and how to measure it."""
    (results / "probe.json").unlink()
    done = card("--results", results, "--out", tmp_path)
    assert done.returncode == 1
    assert "probe.json cannot be read (it is not there)" in done.stderr
    assert "python benchmarks/card.py --only probe" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "embedded-judge.md").exists()


def test_steps_of_two_models_make_no_page(results: Path, tmp_path: Path) -> None:
    """Figures of one model are never shown beside those of another."""
    changed(results / "probe.json", "model", "sha256", value="0" * 64)
    done = card("--results", results, "--out", tmp_path)
    assert done.returncode == 1
    assert "probe.json measured another model than check.json" in done.stderr


HOSTILE = "<script>alert(1)</script> [a](javascript:x) `c` | **b** {{ x }} https://x.example \u202e :smile: &lt;"


def test_foreign_text_stays_text(results: Path, tmp_path: Path) -> None:
    """Nothing in an example is read as markup, a link, a template or a mark that turns the direction of writing."""
    found = json.loads((results / "surest.json").read_text(encoding="utf-8"))
    for each in found["record"]["examples"]:
        each["query"] = each["context"] = HOSTILE
    (results / "surest.json").write_text(json.dumps(found), encoding="utf-8")
    shown = page(results, tmp_path)
    quoted = re.findall(r"^> query: (.*?)(?:<br>)?$", shown, re.MULTILINE)
    assert quoted
    assert not re.search(r"[<>\[\]`|*{}:/\u202e]", "".join(quoted))
    assert "alert" in quoted[0]


def test_examples_are_chosen_by_the_rule(results: Path) -> None:
    """At most two of a kind for each task, from different sources, and the judge is wrong in each."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for each in json.loads((results / "surest.json").read_text(encoding="utf-8"))["record"]["examples"]:
        assert each["judge"] != each["people"]
        kinds.setdefault((each["task"], each["judge"]), []).append(each["source"])
    assert kinds
    assert all(len(sources) <= 2 and len(set(sources)) == len(sources) for sources in kinds.values())


def test_mined_negatives_are_passages_of_other_articles(script: Any) -> None:
    """For each answered question comes the passage of another article that shares most of its words, as grade 0."""

    def record(number: int, query: str, context: str, article: str) -> dict[str, Any]:
        meta = {"article": article, "scale": "0-2", "label01": 1.0}
        found = {"id": f"s:{number}", "source": "s", "licence": "MIT", "lang": "en", "task": "chunk_relevance"}
        return found | {"query": query, "context": context, "label": 2, "meta": meta}

    records = [
        record(1, "How tall is the tower of Pisa?", "The tower of Pisa is 56 metres tall.", "Pisa"),
        record(2, "Where does it lean?", "The tower of Pisa leans.", "Pisa"),
        record(3, "How old is the bridge?", "The bridge is old, and near a tall tower.", "Bridge"),
        record(4, "What do cats eat?", "Cats eat mice.", "Cats"),
    ]
    found = list(script("mined").mined(records))
    assert [each["id"] for each in found[:2]] == ["s:1", "s:1-mined"]
    assert found[1]["context"] == records[2]["context"]
    assert found[1]["label"] == 0
    assert found[1]["meta"]["constructed"]


def test_held_out_chances_know_nothing_of_their_own_fold(script: Any) -> None:
    """A label changes the chances of other folds only; where labels follow a number, held-out chances follow it too."""
    held_out = script("alignment").held_out
    random = np.random.default_rng(3)
    rows = random.normal(size=(400, 3))
    labels = rows[:, 0] + 0.3 * random.normal(size=400) > 0
    folds = np.arange(400) % 5
    chances = held_out(rows, labels, folds)
    assert chances[labels].mean() - chances[~labels].mean() > 0.6
    other = labels.copy()
    other[folds == 2] = ~other[folds == 2]
    moved = held_out(rows, other, folds) != chances
    assert not moved[folds == 2].any()
    assert moved[folds != 2].all()


def test_evidence_sentences_get_the_probability_they_have_alone(script: Any, tmp_path: Path) -> None:
    """A verdict names sentences without a probability; with the one each has alone there is an AUROC over them."""
    texts = ["It stands in Paris.", "It was completed in 1889.", "Thank you."]
    record = {"task": "sentence_relevance", "query": "When was it completed?", "sentences": texts, "label": [0, 1, 0]}
    (tmp_path / "own.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    scores = script("scores")
    judge = scores.judge_of(
        "shared words", scores.of_pairs(lambda one, other: float("completed" in one and "completed" in other))
    )
    wanted = CheckOptions(labels=[tmp_path / "own.jsonl"], each_sentence=True)
    check = asyncio.run(run_check(replace(wanted, judge=judge, cache=False), Resampling(resamples=20)))
    found = {table.reading.name: table for table in script("evidence").with_chances(check).people}
    assert {table.reading.name: table for table in check.people}[
        "sentence_relevance"
    ].pooled.agreement.auroc.value is None
    assert found["sentence_relevance"].pooled.agreement.auroc.value == 1.0
    assert found["sentence_relevance"].pooled.agreement.with_probability == len(texts)


def test_rows_of_held_out_records_are_read_again_from_their_file(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept rows are those that were made, and are made anew where they are of another model or other records."""
    script("held_out")
    rows = sys.modules["encoder.rows"]
    made: list[int] = []

    def units(*_: object) -> Any:
        made.append(len(made))
        texts = np.array(["a", "ß"])
        values = np.array([[0.25, 1.5], [float(len(made)), 0.0]])
        own = rows.Rows(values, np.array([0.0, 1.0]), texts, texts, np.array([True, False]))
        yield "relevant", rows.Units(own, np.array([0, 1]))

    monkeypatch.setattr(rows, "labelled_units", units)
    file = tmp_path / "rows.npz"
    first, again = (rows.kept_units(file, tmp_path, None, made_of="one")["relevant"] for _ in range(2))
    assert made == [0]
    assert first.record.tolist() == again.record.tolist()
    for name in rows.Rows.__slots__:
        assert getattr(first.rows, name).tolist() == getattr(again.rows, name).tolist()
    other = rows.kept_units(file, tmp_path, None, made_of="another")["relevant"]
    assert other.rows.values[1, 0] == 2.0


def test_the_interval_of_a_share_is_wilsons(script: Any) -> None:
    """Ten of a hundred: 0.055 to 0.174; the ends stay within 0 and 1."""
    low, high = script("card_plot").wilson(0.1, 100)
    assert (round(low, 3), round(high, 3)) == (0.055, 0.174)
    assert script("card_plot").wilson(0.0, 5)[0] == 0.0
    assert script("card_plot").wilson(1.0, 5)[1] == 1.0
