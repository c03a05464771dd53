"""The test and the check at the end of `merilo judge fetch`, and what reports print afterwards."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hub_server import HubServer
from tiny_models import NLI_CARD, nli

from merilo.commands.fetch.run import fetch, plan_fetch, verified, wanted
from merilo.commands.fetch.text import fetched_page, fetched_record
from merilo.commands.fetch.trial import checked, try_judge
from merilo.judges.local.judge import local_judge
from merilo.runs.manifest import Manifest
from merilo.stats.resampling import Resampling

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from merilo.commands.fetch.result import Fetched, Trial

QUICK = Resampling(resamples=20)
NAME = "org/name"
GOLDEN = """
[[golden]]
premise = "Paris."
hypothesis = "Paris?"
logits = [0.0, {yes}, 0.0]
"""


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fetched]:
    """The rigged model, fetched from a hub on this machine, with the user's card and without a cache of verdicts."""
    files = nli(tmp_path / "made")
    for name, place in (("HF_HUB_CACHE", "hub"), ("MERILO_JUDGES", "judges"), ("MERILO_CACHE", "cache.sqlite")):
        monkeypatch.setenv(name, str(tmp_path / place))
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    write_card(tmp_path, NLI_CARD)
    with HubServer() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.add(NAME, {each.name: each.read_bytes() for each in files.iterdir() if each.suffix != ".toml"})
        yield fetch(plan_fetch(wanted(NAME)))


def write_card(tmp_path: Path, card: str) -> None:
    """Write the user's card next to the lock."""
    home = tmp_path / "judges" / "org--name"
    home.mkdir(parents=True, exist_ok=True)
    (home / "judge.toml").write_text(card, encoding="utf-8")


def write_labels(tmp_path: Path, *, name: str = "ours.jsonl", count: int = 60) -> str:
    """Write labels of which the rigged model agrees with four in five."""
    records: list[dict[str, Any]] = [
        {
            "task": "nli",
            "context": f"The tower {number} is in Paris.",
            "statement": "Paris?" if number % 2 else "Rome?",
            "label": (number + (number % 10 < 2)) % 2,
        }
        for number in range(count)
    ]
    (tmp_path / name).write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return str(tmp_path / name)


def tried(*labels: str) -> Trial:
    """The result of test and check."""
    trial, judge = try_judge(NAME)
    assert judge is not None
    return checked(trial, judge, labels, None, QUICK)


@pytest.mark.usefixtures("fetched")
def test_the_check_becomes_the_note_of_the_judge(tmp_path: Path) -> None:
    """Before it the note says that the judge was not checked; afterwards it has kappa with its interval."""
    before = local_judge(NAME).agreement_note or ""
    assert "; not checked against human labels;" in before
    trial = tried(write_labels(tmp_path))
    assert (trial.problem, trial.check is None) == (None, False)
    assert trial.agreement is not None
    assert re.fullmatch(r"agreement with human labels: nli κ 0\.60 \[0\.[34]\d, 0\.[78]\d\]", trial.agreement)
    note = local_judge(NAME).agreement_note or ""
    assert f"; {trial.agreement};" in note
    assert "not checked" not in note


@pytest.mark.usefixtures("fetched")
def test_the_file_is_the_record_of_the_check(tmp_path: Path) -> None:
    """It has the fingerprint and the figures, and nothing that differs between two equal checks."""
    path = tmp_path / "judges" / "org--name" / "agreement.json"
    labels = write_labels(tmp_path)
    tried(labels)
    first = path.read_bytes()
    found = json.loads(first)
    assert found["judge"]["fingerprint"] == local_judge(NAME).fingerprint() | {}
    assert found["people"]["nli"]["ours"]["n"] == 60
    assert "usage" not in found
    path.unlink()
    tried(labels)
    assert path.read_bytes() == first
    assert sorted(each.name for each in path.parent.iterdir()) == ["agreement.json", "judge.lock", "judge.toml"]


@pytest.mark.usefixtures("fetched")
def test_an_agreement_of_another_card_is_not_shown(tmp_path: Path) -> None:
    """A changed card is another judge; changed back, its agreement counts again. A damaged file does not count."""
    tried(write_labels(tmp_path))
    write_card(tmp_path, NLI_CARD.replace("cut = 0.5", "cut = 0.9"))
    assert local_judge(NAME).agreement() is None
    write_card(tmp_path, NLI_CARD)
    assert local_judge(NAME).agreement() is not None
    (tmp_path / "judges" / "org--name" / "agreement.json").write_text('{"judge": 1}', encoding="utf-8")
    assert "not checked against human labels" in (local_judge(NAME).agreement_note or "")


@pytest.mark.usefixtures("fetched")
def test_equal_labels_are_not_checked_again(tmp_path: Path) -> None:
    """A second call with the same labels shows the stored agreement; other labels replace it."""
    labels = write_labels(tmp_path)
    first = tried(labels)
    assert first.check is not None
    again = tried(labels)
    assert (again.check, again.agreement) == (None, first.agreement)
    other = tried(write_labels(tmp_path, name="few.jsonl", count=8))
    assert other.check is not None
    assert other.agreement is not None
    assert other.agreement.endswith("(only 8 labels)")


def test_wrong_golden_logits_fail_and_keep_the_files(fetched: Fetched, tmp_path: Path) -> None:
    """The problem is reported, nothing is checked, and the downloaded files and the lock stay."""
    write_card(tmp_path, NLI_CARD + GOLDEN.format(yes=5.0))
    trial, judge = try_judge(NAME)
    assert judge is None
    assert trial.problem == "Golden logits DIFFER (1 pairs, largest difference 3)."
    assert verified(wanted(NAME)) is not None
    page = str(fetched_page(fetched, trial, 80))
    assert "FAILED. Golden logits DIFFER" in page
    assert fetched_record(fetched, trial)["test"] == {
        "works": False,
        "problem": trial.problem,
        "golden": {"pairs": 1, "agree": False},
    }
    write_card(tmp_path, NLI_CARD + GOLDEN.format(yes=2.0))
    trial, judge = try_judge(NAME)
    assert (trial.problem, judge is None) == (None, False)
    assert "Every kind of question works. Golden logits agree" in str(fetched_page(fetched, trial, 80))


@pytest.mark.usefixtures("fetched")
def test_a_card_that_does_not_fit_the_model_fails(tmp_path: Path) -> None:
    """An error at loading is the result of the test, not a lost download."""
    write_card(tmp_path, NLI_CARD.replace('"contradiction", "entailment"', '"entailment", "contradiction"'))
    trial, judge = try_judge(NAME)
    assert judge is None
    assert trial.problem is not None
    assert "does not fit" in trial.problem


@pytest.mark.usefixtures("fetched")
def test_shipped_labels_without_a_fitting_task_are_no_error(tmp_path: Path) -> None:
    """A model that answers none of the shipped tasks stays unchecked, with the reason."""
    write_card(
        tmp_path,
        NLI_CARD.replace('[answers.support]\nuse = { premise = "context", hypothesis = "statement" }\ncut = 0.5\n', ""),
    )
    trial = tried()
    assert (trial.problem, trial.agreement) == (None, None)
    assert "can answer none of the records" in trial.notes[0]


def test_a_new_agreement_does_not_stop_a_run_from_being_resumed() -> None:
    """Notes on agreement move no number, so manifests that differ only there do not differ."""
    usual: dict[str, Any] = {
        "merilo": "0",
        "data": "d",
        "fingerprint": "f",
        "samples": 1,
        "skipped": (),
        "left_out": {},
    }

    def manifest(rates: str, mark: int) -> Manifest:
        judges = {"judge": {"name": "local:x", "fingerprint": {"mark": mark}, "rates": rates}}
        return Manifest(**usual, metrics={"m": 1}, judges=judges, splitter="s")

    assert manifest("not checked", 1).differences(manifest("checked", 1)) == ()
    assert manifest("not checked", 1).differences(manifest("not checked", 2)) == ("judges",)
