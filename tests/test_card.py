"""The card of the embedded judge shows the measured figures, and its agreement is measured on unseen families."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from merilo.judges.blended import BlendedModel
from merilo.judges.measured_agreement import embedded_agreement

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
    """A copy of the measured figures."""
    return Path(shutil.copytree(RESULTS, tmp_path / "results"))


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a module of training/ by its name."""
    monkeypatch.syspath_prepend(ROOT / "training")

    def imported(name: str) -> ModuleType:
        return importlib.import_module(name)

    return imported


def changed(path: Path, *keys: str | int, value: object) -> None:
    """Put a value into a JSON file."""
    found = json.loads(path.read_text(encoding="utf-8"))
    inner = found
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    path.write_text(json.dumps(found), encoding="utf-8")


def test_the_card_shows_the_measured_figures() -> None:
    """The page in docs/ equals what tools/card.py makes of the model file and the results."""
    done = card("--check")
    assert done.returncode == 0, done.stderr


def test_a_changed_figure_changes_the_page(results: Path, tmp_path: Path) -> None:
    """A figure of the results is on the page."""
    page = tmp_path / "page.md"
    assert card("--results", results, "--out", page).returncode == 0
    assert "77.8 %" not in page.read_text(encoding="utf-8")
    changed(results / "probe.json", "record", "probes", "negation", "value", value=0.77777)
    assert card("--results", results, "--out", page, "--check").returncode == 1
    assert card("--results", results, "--out", page).returncode == 0
    assert "77.8 %" in page.read_text(encoding="utf-8")


def test_a_missing_step_is_named_with_its_command(results: Path, tmp_path: Path) -> None:
    """Without a step there is no page, and the error says how to measure it."""
    (results / "probe.json").unlink()
    done = card("--results", results, "--out", tmp_path / "page.md")
    assert done.returncode == 1
    assert "probe.json does not exist; measure it with python benchmarks/card.py --only probe." in done.stderr
    assert not (tmp_path / "page.md").exists()


def test_a_step_of_another_model_makes_no_page(results: Path, tmp_path: Path) -> None:
    """Figures of two models are never on one page."""
    changed(results / "probe.json", "model", "sha256", value="0" * 64)
    done = card("--results", results, "--out", tmp_path / "page.md")
    assert done.returncode == 1
    assert "probe.json measured another model" in done.stderr


def test_the_table_of_agreement_equals_the_model_file() -> None:
    """The table that decides which metrics are weak has the unseen figures of the installed model."""
    unseen = [each["unseen"] for each in BlendedModel.load().agreement.values() if each["unseen"]]
    rows = embedded_agreement()
    assert len(rows) == len(unseen)
    assert {(each.value, each.lower, each.upper, each.families) for each in rows} == {
        (each["auroc"], *each["auroc_interval"], each["families"]) for each in unseen
    }


def test_no_family_is_both_known_and_locked(module: Any) -> None:
    """A locked family was not used to train the reader or the words."""
    families = module("lexical.families")
    assert families.LOCKED
    assert not families.LOCKED & families.KNOWN
    assert families.family_of("xquad-en") == families.family_of("squad2-halfdev") == "squad"
    assert families.family_of("scitab") == "scitab"


def test_an_interval_over_families_is_wider_than_one_over_records(module: Any) -> None:
    """Families that differ much make the interval wide, however many records they have."""
    measure = module("lexical.measure")
    random = np.random.default_rng(5)

    def judged(noise: tuple[float, ...]) -> Any:
        label = np.tile([True, False], 200 * len(noise))
        source = np.repeat([f"source{at}" for at in range(len(noise))], 400)
        chance = np.clip(label + random.normal(scale=np.repeat(noise, 400)), 0, 1)
        groups = np.array([str(at) for at in range(len(label))])
        return measure.Judged(label, chance, chance >= 0.5, source, groups, np.zeros(len(label), dtype=bool))

    def width(noise: tuple[float, ...]) -> float:
        low, high = measure.agreement(judged(noise), 1)["auroc_interval"]
        return float(high - low)

    assert width((0.2, 3.0, 0.2, 3.0)) > 3 * width((0.6, 0.6, 0.6, 0.6))


def test_thresholds_of_relevance_keep_errors_beyond_the_middle_grade_rare(module: Any) -> None:
    """From the threshold of grade 2, at most a tenth of the contexts do not answer."""
    measure = module("lexical.measure")
    random = np.random.default_rng(6)
    label = random.random(2_000) < 0.5
    chance = np.clip(0.5 + 0.25 * (2 * label - 1) + random.normal(scale=0.25, size=2_000), 0.01, 0.99)
    text = np.array(["one"] * 2_000)
    judged = measure.Judged(label, chance, chance >= 0.5, text, text, np.zeros(2_000, dtype=bool))
    found = measure.thresholds("answers", judged, 0.5)
    assert found["partly"] == 0.5
    assert found["yes"] > 0.5
    assert 1 - label[chance >= found["yes"]].mean() <= measure.MIDDLE_ERROR
