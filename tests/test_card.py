"""The card of the embedded judge shows the measured figures, and its agreement is measured on unseen families."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from merilo.judges.base import embedded_agreement
from merilo.judges.blended import BlendedModel

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


def test_the_card_shows_the_measured_figures() -> None:
    """The page in docs/ equals what tools/card.py makes of the model file and the results."""
    done = card("--check")
    assert done.returncode == 0, done.stderr


def test_the_page_is_short() -> None:
    """A reader finds what the judge is, its figures and where it fails on at most 1,300 words."""
    text = (ROOT / "docs" / "embedded-judge.md").read_text(encoding="utf-8")
    assert sum(any(map(str.isalnum, word)) for word in text.split()) <= 1_300


def test_the_table_of_agreement_equals_the_model_file() -> None:
    """The table that decides what is answered has the left-out figures of the installed model."""
    found = {
        each["left_out"]["auroc"]: each["left_out"]
        for each in BlendedModel.load().agreement.values()
        if "left_out" in each
    }
    answered = [each for each in embedded_agreement() if each.kind != "addresses" and each.form != "a bare yes or no"]
    assert len(answered) == 8
    for row in answered:
        own = found[row.value]
        assert row.families == own["families"]
        assert (row.lower, row.upper) == ((None, None) if row.families == 1 else tuple(own["auroc_interval"]))


def test_no_family_is_both_known_and_locked(module: Any) -> None:
    """A locked family was not used to train the reader or the words."""
    families = module("labels.families")
    assert families.LOCKED
    assert not families.LOCKED & families.KNOWN
    assert families.family_of("xquad-en") == families.family_of("squad2-halfdev") == "squad"
    assert families.family_of("scitab") == "scitab"


def test_an_interval_over_families_is_wider_than_one_over_records(module: Any) -> None:
    """Families that differ much make the interval wide, however many records they have."""
    measure = module("labels.measure")
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


def test_errors_beyond_the_middle_grade_are_rare(module: Any) -> None:
    """From the threshold of grade 2, at most a tenth of the contexts do not answer."""
    measure = module("labels.measure")
    judged = _records(measure, 0.25)
    found = measure.start_of_yes(judged, 0.5)
    assert found > 0.5
    assert 1 - judged.label[judged.chance >= found].mean() <= measure.MIDDLE_ERROR


def _records(measure: Any, noise: float) -> Any:
    """Records whose probability is right on average, with noise."""
    random = np.random.default_rng(6)
    label = random.random(4_000) < 0.5
    chance = np.clip(0.5 + 0.25 * (2 * label - 1) + random.normal(scale=noise, size=4_000), 0.01, 0.99)
    text = np.array(["one"] * 4_000)
    return measure.Judged(label, chance, chance >= 0.5, text, text, np.zeros(4_000, dtype=bool))
