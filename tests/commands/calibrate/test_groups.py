"""Where a judge errs: its rates by field, length and system, on the page and in JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from labelled_run import Row, by_grade, fill_in, grade_of, judged_run, says_statements

import merilo
from merilo.commands.calibrate.run import LabelledRun, label_agreement
from merilo.commands.calibrate.text import people_page, people_record
from merilo.commands.label.run import label_run
from merilo.errors import DataError, UsageError
from merilo.judging.kinds.contexts import Relevance
from merilo.judging.kinds.responses import Addresses
from merilo.judging.questions import Question

METRIC = "context_relevance"
SAMPLES = 60


def rows(system: str) -> list[Row]:
    """Two contexts a sample, one that helps and one that does not; every third sample is German, with long texts."""
    found: list[Row] = []
    for number in range(SAMPLES):
        german = number % 3 == 0
        tail = " and on" * 20 if german else ""
        contexts = [f"System {system}, text {number}-{place}{tail}, is truly {2 * place}." for place in range(2)]
        found.append(
            {
                "id": f"s{number}",
                "user_input": f"What is {number}?",
                "response": "x" * (10 + number),
                "retrieved_contexts": contexts,
                "language": "de" if german else "en",
                "metadata": {"source": "wiki" if number % 2 else "news", "doc": number // 2}
                | ({"team": "one"} if number < 40 else {}),
            }
        )
    return found


def errs_in_german(question: Question[Any]) -> Row:
    """People's grade, but every German context of system A helps."""
    assert isinstance(question, Relevance)
    text = " ".join(question.sentences)
    grade = 2 if question.language == "de" and "System A" in text else grade_of(text)
    return {"grade": grade, "evidence": [0] if grade else []}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[merilo.Run, merilo.Run]:
    folder = tmp_path_factory.mktemp("runs")
    first, second = (judged_run(folder / name, rows(name.upper()), [METRIC], errs_in_german) for name in ("a", "b"))
    return first, second


@pytest.fixture(scope="module")
def labels(runs: tuple[merilo.Run, merilo.Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every sample of the first run, labelled by people."""
    path = tmp_path_factory.mktemp("labels") / "tasks.jsonl"
    label_run(runs[0], path, samples=SAMPLES)
    return fill_in(path, by_grade)


def by(found: LabelledRun, field: str) -> dict[str | None, Row]:
    """The JSON objects of the groups of one field."""
    groups = people_record(found)["metrics"][METRIC]["agreement"]["relevance"]["by"][field]
    return {each["group"]: each for each in groups}


def words(found: LabelledRun) -> str:
    """The page in one line."""
    return " ".join(str(people_page(found, 80, full=True)).split())


def test_the_language_in_which_the_judge_errs_is_told(runs: Sequence[merilo.Run], labels: Path) -> None:
    """All 20 German contexts without help were called helpful, and no English one."""
    found = label_agreement(runs[0], labels, by=["language"])
    groups = by(found, "language")
    assert (groups["de"]["no"], groups["de"]["no_found"], groups["de"]["specificity"]["value"]) == (20, 0, 0.0)
    assert (groups["en"]["no"], groups["en"]["no_found"], groups["en"]["specificity"]["value"]) == (40, 40, 1.0)
    assert groups["de"]["specificity"]["interval"][1] < groups["en"]["specificity"]["interval"][0]
    text = words(found)
    assert "Errors by language yes sensitivity no specificity en 40 1.000" in text
    assert "fraction of no that it found." in text


def test_length_is_split_at_the_median_of_the_judged_contexts(runs: Sequence[merilo.Run], labels: Path) -> None:
    """The German contexts are the long ones; the split is at the median length over the items."""
    groups = by(label_agreement(runs[0], labels, by=["length"]), "length")
    short, long = sorted(groups, key=lambda name: str(name).startswith("over"))
    assert str(short).startswith("up to ")
    assert str(long).startswith("over ")
    assert sum(each["items"] for each in groups.values()) == 2 * SAMPLES
    assert groups[long]["no_found"] < groups[long]["no"]
    assert groups[short]["no_found"] == groups[short]["no"]


def test_any_metadata_key_makes_groups_and_samples_without_it_are_one(runs: Sequence[merilo.Run], labels: Path) -> None:
    """Options may be combined; a number is shown as JSON writes it."""
    found = label_agreement(runs[0], labels, by=["source", "team", "doc"])
    assert {name: each["items"] for name, each in by(found, "source").items()} == {"news": 60, "wiki": 60}
    assert {name: each["items"] for name, each in by(found, "team").items()} == {"one": 80, None: 40}
    assert by(found, "doc")["7"]["items"] == 4
    assert "and 10 more: --full" in str(people_page(found, 80))
    assert "(none)" in words(found)


def test_small_groups_are_counted_and_have_no_rate(runs: Sequence[merilo.Run], labels: Path) -> None:
    """Each document has two labels of a kind."""
    group = by(label_agreement(runs[0], labels, by=["doc"]), "doc")["7"]
    assert (group["yes"], group["no"], group["sensitivity"]["value"]) == (2, 2, None)
    assert group["sensitivity"]["note"] == "too few"


def test_wrong_use_is_a_sentence(runs: Sequence[merilo.Run], labels: Path) -> None:
    """An unknown field lists the possible ones; another run needs labels of its own samples."""
    with pytest.raises(UsageError, match=r"no labelled sample has the field 'site'\. Possible: .*doc, source, team"):
        label_agreement(runs[0], labels, by=["site"])
    with pytest.raises(DataError, match=r"None of the .* labels fits"):
        label_agreement(runs[0], labels, other=runs[1])


def test_without_fields_nothing_is_added(runs: Sequence[merilo.Run], labels: Path) -> None:
    """JSON and page are as before."""
    found = label_agreement(runs[0], labels)
    assert "by" not in people_record(found)["metrics"][METRIC]["agreement"]["relevance"]
    assert "Errors by" not in words(found)


def test_the_response_counts_if_no_context_is_judged(tmp_path: Path) -> None:
    """For questions about statements alone, length is that of the response."""
    data = [
        {"id": f"s{n}", "user_input": "Who wrote it?", "response": f"Ann wrote {'all of ' * (n % 3 == 0)}it."}
        for n in range(30)
    ]
    run = judged_run(tmp_path / "run", data, ["answer_relevancy"], says)
    label_run(run, tmp_path / "t.jsonl", samples=30)
    fill_in(tmp_path / "t.jsonl", lambda _: "yes")
    record = people_record(label_agreement(run, tmp_path / "t.jsonl", by=["length"]))
    (agreement,) = record["metrics"]["answer_relevancy"]["agreement"].values()
    assert {each["group"]: each["yes"] for each in agreement["by"]["length"]} == {
        "up to 13 characters": 20,
        "over 13 characters": 10,
    }


def test_labels_that_are_values_have_no_groups(tmp_path: Path) -> None:
    """The page says what groups need."""
    metric = "context_relevance(unit=sentence)"
    run = judged_run(tmp_path / "run", rows("B")[:30], [metric], errs_in_german)
    label_run(run, tmp_path / "t.jsonl", metric=metric, samples=30)
    fill_in(tmp_path / "t.jsonl", lambda _: 0.5)
    found = label_agreement(run, tmp_path / "t.jsonl", by=["language", "source"])
    assert "There are no rates by group" in words(found)


def says(question: Question[Any]) -> Row:
    """Each sentence is a statement that answers the question."""
    if isinstance(question, Addresses):
        return {"addresses": True}
    return says_statements(question)
