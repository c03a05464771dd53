"""What a run's summary says beside its table: what was scored all the same, and composites."""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from judged_rivers import rows, verdict_for

import merilo
from merilo.commands.report.run import report_run
from merilo.commands.report.run_page import run_page as report_page
from merilo.commands.show.summary import record_of, run_page
from merilo.data.sample import Sample
from merilo.metrics.base import Card, MetricDefaults, Score, Undefined
from merilo.rendering.explain import case_page
from merilo.results.sample_detail import SampleDetail
from merilo.runs.files import OUTCOMES, SEAL, STORE, SUMMARY

LOST = "a judge call failed and was scored 0"


@dataclass(frozen=True, slots=True)
class Flagged(MetricDefaults):
    """0 with a flag for every other sample, 1 for the rest; Undefined for s3."""

    name = "made:flagged"
    version = 1
    card = Card("What goes wrong is scored all the same.", family="made")
    needs = frozenset({"user_input"})
    asks = frozenset()

    shift: int = 0

    def plan(self, sample: Sample) -> Generator[None, None, Score | Undefined]:
        yield from ()
        number = int(sample.id[1:])
        if number == 3:
            return Undefined("it is the third")
        odd = (number + self.shift) % 2
        return Score(float(odd), flags=() if odd else (LOST, "the reply has no verdict"))


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of one mean."""

    name: ClassVar[str] = "made:sum"
    version: ClassVar[int] = 1
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    higher_is_better: ClassVar[bool] = True
    card: ClassVar[Card] = Card("One mean.", family="made")

    @property
    def parts(self) -> tuple[str, ...]:
        return ("made:flagged",)

    def combine(self, means: Sequence[float]) -> float | None:
        return sum(means)


@pytest.fixture(scope="module", autouse=True)
def known() -> None:
    merilo.register(Flagged)


@pytest.fixture
def run(tmp_path: Path) -> merilo.Run:
    """Five samples; of four scored ones three are flagged with shift 1, else two."""
    metrics = [Flagged(), Flagged(shift=1), Sum()]
    return merilo.evaluate(rows(5), metrics=metrics, out=tmp_path / "run", storage={"cache": False})


def shown(run: merilo.Run) -> str:
    """The overview as text, in one line."""
    return " ".join(str(run_page(run, 100, full=True)).split())


def test_flags_are_told(run: merilo.Run) -> None:
    """The page names each flag with the metric and on how many samples it stands."""
    page = shown(run)
    assert "Scored anyway, and in the means" in page
    assert f"made:flagged {LOST} (3 samples); the reply has no verdict (3 samples)" in page
    assert f"made:flagged(shift=1) {LOST} (1 sample); the reply has no verdict (1 sample)" in page


def test_flags_are_in_the_record(run: merilo.Run) -> None:
    """As JSON: how many samples are flagged, and each flag with its number of samples."""
    found = record_of(run)["metrics"]["made:flagged"]
    assert found["flagged"] == 3
    assert found["flags"] == {LOST: 3, "the reply has no verdict": 3}


def test_a_sample_shows_its_flags(run: merilo.Run) -> None:
    """Where a sample's values are shown, each flag stands below its value."""
    page = str(case_page(SampleDetail.of(run, "s0"), 100))
    lines = [line.strip() for line in page.splitlines()]
    assert lines[lines.index(LOST) + 1] == "the reply has no verdict"


def test_less_is_better_is_told(tmp_path: Path) -> None:
    """Below the table and on the static page, for those metrics alone."""
    judge = merilo.ScriptedJudge.by(verdict_for)
    metrics = ["faithfulness", "noise_sensitivity"]
    run = merilo.evaluate(rows(5), judge=judge, metrics=metrics, out=tmp_path / "run", storage={"cache": False})
    assert "lower is better" in shown(run)
    assert "lower is better" in report_page(report_run(run))
    other = merilo.evaluate(rows(5), judge=judge, metrics=metrics[:1], out=tmp_path / "other", storage={"cache": False})
    assert "lower is better" not in shown(other) + report_page(report_run(other))


def test_a_statement_says_what_it_was_held_against(tmp_path: Path) -> None:
    """Where a statement has verdicts against several texts, each says against which."""
    judge = merilo.ScriptedJudge.by(verdict_for)
    metrics = ["context_recall", "answer_correctness"]
    run = merilo.evaluate(rows(5), judge=judge, metrics=metrics, out=tmp_path / "run", storage={"cache": False})
    page = str(case_page(SampleDetail.of(run, "s0"), 100))
    assert "support, checked against the response: " in page
    assert "support, checked against the reference: " in page or "support, checked against the contexts" in page
    assert "support, checked against the response" in str([each.detail for each in report_run(run).entries])


def test_a_run_that_was_killed_says_how_to_go_on(run: merilo.Run) -> None:
    """Without its results, the sentence names the option that goes on."""
    for name in (SEAL, SUMMARY, OUTCOMES):
        (run.path / name).unlink()
    with closing(sqlite3.connect(run.path / STORE)) as db, db:
        db.execute("DELETE FROM meta WHERE name = 'results'")
    with pytest.raises(merilo.RunError, match=f"Repeat its command with --out {run.path} to resume"):
        shown(merilo.Run.open(run.path))
