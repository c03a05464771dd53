"""`merilo judge agree` as people type it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from command_line import Here

SAMPLES = [
    {
        "id": f"s{number}",
        "user_input": f"What is {number}?",
        "retrieved_contexts": [f"Text {number}, kind {number % 3}."],
    }
    for number in range(24)
]
KIND = {"kind": "relevance"}
LENIENT = (
    {**KIND, "match": {"sentences": {"contains": "kind 0"}}, "verdict": {"grade": 0, "evidence": []}},
    {**KIND, "verdict": {"grade": 2, "evidence": [0]}},
)
STRICT = (
    {**KIND, "match": {"sentences": {"contains": "kind 2"}}, "verdict": {"grade": 2, "evidence": [0]}},
    {**KIND, "verdict": {"grade": 0, "evidence": []}},
)


@pytest.fixture
def judged(here: Here) -> Here:
    """A directory with runs of two judges over the same samples: `lenient` and `strict`."""
    here.write("data.jsonl", SAMPLES)
    for name, script in (("lenient", LENIENT), ("strict", STRICT)):
        judge = f"scripted:{here.write(f'{name}.jsonl', script)}"
        done = here.merilo("run", "data.jsonl", "--judge", judge, "--metrics", "context_relevance", "--out", name)
        assert done.returncode == 0, done.stderr
    return here


def test_two_judges_stand_beside_each_other(judged: Here) -> None:
    """The page has their table and measures, names samples to look at, and the commands that show them."""
    done = judged.merilo("judge", "agree", "lenient", "strict")
    assert done.returncode == 0, done.stderr
    for says in (
        "relevance: same label on 16 of 24 questions",
        "weighted kappa",
        "Kendall",
        "show lenient --sample s1",
    ):
        assert (says in done.stdout) == (says != "Kendall")
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_json_is_one_object(judged: Here) -> None:
    """With the table, every measure and its interval."""
    (pair,) = judged.json("judge", "agree", "lenient", "strict")["pairs"]
    found = pair["kinds"]["relevance"]
    assert found["confusion"] == {"labels": ["0", "1", "2"], "counts": [[8, 0, 0], [0, 0, 0], [8, 0, 8]]}
    assert found["accuracy"]["value"] == pytest.approx(2 / 3)
    assert found["kappa_quadratic"]["interval"][0] < found["kappa_quadratic"]["value"]


@pytest.mark.parametrize(
    ("runs", "says"),
    [(["lenient"], "two or more runs, got 1"), (["lenient", "lenient"], "is named twice"), (["lenient", "no"], "no")],
)
def test_wrong_use_is_a_sentence(judged: Here, runs: list[str], says: str) -> None:
    """Exit code 2, the reason, no traceback."""
    done = judged.merilo("judge", "agree", *runs)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
