"""What is drawn for people: with which probabilities, how blind, and of what."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labelled_run import (
    STATEMENT_ROWS,
    Row,
    contexts_rows,
    judged_run,
    lenient,
    read_tasks,
    says_statements,
    strict,
)

import merilo
from merilo.commands.label.run import drawn, label_run
from merilo.commands.label.tasks import COLUMNS, Ticket, Unit, unsealed
from merilo.errors import UsageError

RELEVANCE = ("context_relevance", "context_relevance(unit=sentence)", "context_precision", "context_ranking")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> merilo.Run:
    return judged_run(tmp_path_factory.mktemp("run"), contexts_rows(60), RELEVANCE)


def ticket(row: Row) -> Ticket:
    found = unsealed(row["ticket"])
    assert found is not None
    return found


def test_a_mean_of_contexts_is_labelled_by_some_contexts_of_each_sample(run: merilo.Run) -> None:
    """`context_relevance` is a sum over contexts, so three of five are asked about."""
    tasks = label_run(run, metric="context_relevance", samples=20)
    assert tasks.unit is Unit.ITEMS
    assert Counter(Counter(line.ticket.sample for line in tasks.lines).values()) == {3: 20}


@pytest.mark.parametrize("metric", ["context_precision", "context_ranking"])
def test_rank_metrics_are_labelled_by_whole_samples(run: merilo.Run, metric: str) -> None:
    """Where the order of contexts counts, every context of a drawn sample is asked about."""
    tasks = label_run(run, metric=metric, samples=20, items=2)
    assert tasks.unit is Unit.WHOLE
    assert set(Counter(line.ticket.sample for line in tasks.lines).values()) == {5}


def test_where_labels_do_not_decide_people_are_asked_for_the_value(run: merilo.Run) -> None:
    """A share of sentences needs more than a grade, and the draw says that it asks for the number itself."""
    tasks = label_run(run, metric="context_relevance(unit=sentence)", samples=10)
    assert tasks.unit is Unit.VALUE
    assert tasks.lines[0].labels == "a number from 0 to 1"
    assert "asks for the value itself" in tasks.remarks[0]


def test_statements_are_drawn_and_samples_without_a_question_are_settled(tmp_path: Path) -> None:
    """Faithfulness asks about statements; where nothing was retrieved there is nothing to ask, and the line says so."""
    run = judged_run(tmp_path / "run", STATEMENT_ROWS, ["faithfulness"], says_statements)
    tasks = label_run(run, tmp_path / "t.jsonl", samples=24)
    rows = read_tasks(tmp_path / "t.jsonl")
    assert {row["label"] for row in rows} == {None, "settled"}
    assert sum(row["label"] == "settled" for row in rows) == 6
    assert tasks.to_answer == 36
    assert {row["statement"] for row in rows if row["label"] is None} >= {"Ann wrote book 1.", "It sold 1 copies."}


def test_the_file_is_the_same_whatever_the_judge_said(tmp_path: Path) -> None:
    """A uniform draw of two judges' runs over the same samples gives the same bytes: nothing can be guessed from it."""
    rows = contexts_rows(30)
    files = []
    for name, judge in (("lenient", lenient), ("strict", strict), ("none", lambda _: {"grade": 0})):
        run = judged_run(tmp_path / name, rows, ["context_relevance"], judge)
        label_run(run, tmp_path / f"{name}.jsonl", samples=12)
        files.append((tmp_path / f"{name}.jsonl").read_bytes())
    assert files[0] == files[1] == files[2]


def test_a_task_shows_what_the_judge_was_shown_and_no_verdict(run: merilo.Run, tmp_path: Path) -> None:
    """Beside the texts there are only the known columns, and none of them holds a grade, a reason or a probability."""
    label_run(run, tmp_path / "t.jsonl", metric="context_relevance", samples=15)
    rows = read_tasks(tmp_path / "t.jsonl")
    assert {name for row in rows for name in row} == {*COLUMNS, "user_input", "context"}
    assert all(row["label"] is None for row in rows)
    assert {row["question"] for row in rows} == {"How far does this context help to answer the user input?"}
    assert len({row["task"] for row in rows}) == len(rows)


def test_uniform_probabilities_are_the_share_drawn(run: merilo.Run) -> None:
    """Each of 60 scored samples has the probability 15/60."""
    tasks = label_run(run, metric="context_relevance", samples=15)
    assert {line.ticket.probability for line in tasks.lines} == {0.25}
    assert (tasks.samples, tasks.population) == (15, 60)


def test_every_sample_is_drawn_as_often_as_its_probability_says() -> None:
    """Over 2,000 seeds each of 60 samples comes in about a quarter of the draws (4 standard errors)."""
    ids = [f"s{number}" for number in range(60)]
    counts: Counter[str] = Counter()
    for seed in range(2_000):
        counts.update([*drawn(ids, 15, key=f"draw {seed} m")])
    assert len(counts) == 60
    assert all(abs(each - 500) < 4 * (2_000 * 0.25 * 0.75) ** 0.5 for each in counts.values())


@given(st.text(), st.text(), st.floats(1e-6, 1), st.lists(st.text()))
def test_a_ticket_reads_back(metric: str, sample: str, chance: float, labels: list[str]) -> None:
    """Whatever the metric, the id and the labels are, unsealing gives what was sealed."""
    one = Ticket("f" * 32, metric, sample, Unit.WHOLE, "ab", chance, 7, labels=tuple(labels), among="1f")
    assert unsealed(one.sealed()) == one


def test_a_file_that_is_there_is_never_overwritten(run: merilo.Run, tmp_path: Path) -> None:
    """It may hold labels."""
    path = tmp_path / "t.jsonl"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="may contain labels"):
        label_run(run, path, metric="context_relevance")
    assert path.read_text(encoding="utf-8") == "mine"


def test_csv_holds_the_same_tasks(run: merilo.Run, tmp_path: Path) -> None:
    """A spreadsheet gets the same rows, in UTF-8 with a mark."""
    import csv

    label_run(run, tmp_path / "t.csv", metric="context_relevance", samples=9)
    label_run(run, tmp_path / "t.jsonl", metric="context_relevance", samples=9)
    assert (tmp_path / "t.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    with (tmp_path / "t.csv").open(encoding="utf-8-sig", newline="") as file:
        cells = list(csv.DictReader(file))
    rows = read_tasks(tmp_path / "t.jsonl")
    assert [each["task"] for each in cells] == [each["task"] for each in rows]
    assert [each["context"] for each in cells] == [each["context"] for each in rows]
