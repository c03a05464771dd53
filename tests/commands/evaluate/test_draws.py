"""`merilo run --draws`: an LLM judge asked several times, over HTTP."""

import json
from collections import Counter
from typing import Any

import pytest
from command_line import Here
from server import Asked, JudgeServer

from merilo.results.judged_samples import judged_samples
from merilo.runs.run import Run

KEY = {"OPENAI_API_KEY": "sk-test"}
SAMPLES = [
    {
        "id": f"s{n}",
        "user_input": f"Where is tower T{n}x?",
        "retrieved_contexts": [f"Tower T{n}x is in Paris.", f"Lake {n} is deep."],
        "response": f"Tower T{n}x is in Paris.",
    }
    for n in range(6)
]
SEEN = Counter[str]()


def moody(asked: Asked) -> object:
    """Grades a context 2, then 0, then 2 ...; another grade each time the same question comes."""
    SEEN[asked.user] += 1
    return 2 * (SEEN[asked.user] % 2)


def run(here: Here, server: JudgeServer, *more: str) -> Any:  # Any: a finished process
    here.write("data.jsonl", SAMPLES)
    words = ["run", "data.jsonl", "--judge", "openai:test-model", "--base-url", server.base_url]
    return here.merilo(*words, "--metrics", "context_relevance", "--json", *more, env=KEY)


def outcomes(here: Here, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (here.path / name / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(autouse=True)
def forget() -> None:
    SEEN.clear()


def test_each_question_is_asked_that_often_and_the_mean_is_stored(here: Here) -> None:
    """Three draws are three requests a question, of which the first comes from the cache of a run without draws."""
    with JudgeServer(moody) as server:
        assert run(here, server, "--out", "one").returncode == 0
        assert server.count == 12
        done = run(here, server, "--draws", "3", "--out", "three")
        assert done.returncode == 0, done.stderr
        assert server.count == 36
        assert run(here, server, "--draws", "3", "--out", "again").returncode == 0
        assert server.count == 36  # every draw is cached
    one, three = outcomes(here, "one"), outcomes(here, "three")
    assert all("draws" not in each for each in one)
    for single, each in zip(one, three, strict=True):
        assert each["draws"][0] == single["value"]
        assert each["value"] == pytest.approx(sum(each["draws"]) / 3)
        assert set(single["trail"]) < set(each["trail"])
        assert len(each["trail"]) == 6
    assert outcomes(here, "again") == three
    assert "draws" not in json.loads((here.path / "one" / "manifest.json").read_text(encoding="utf-8"))
    manifest = json.loads((here.path / "three" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["draws"] == {"context_relevance": 3}


def test_the_draws_are_recomputed(here: Here) -> None:
    """All outcomes are recomputed bit-equal; another number cannot resume the run."""
    with JudgeServer(moody) as server:
        assert run(here, server, "--draws", "4", "--out", "run").returncode == 0
        verified = here.merilo("runs", "verify", "run")
        assert verified.returncode == 0, verified.stdout
        assert "6 of 6 recomputed, all equal" in verified.stdout
        refused = run(here, server, "--draws", "2", "--out", "run")
    assert refused.returncode == 2
    assert "differs in draws" in refused.stderr
    shown = here.merilo("show", "run", "--sample", "s0", "--full").stdout
    assert "mean of 4 draws:" in shown


def test_a_plan_counts_every_draw(here: Here) -> None:
    """`merilo run --plan --draws` estimates the requests that a run sends."""
    here.write("data.jsonl", SAMPLES)
    words = ("run", "--plan", "data.jsonl", "--judge", "openai:gpt-4.1-mini", "--metrics", "context_relevance")
    assert here.json(*words, "--draws", "5")["typical"]["requests"] == 60


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--draws", "2"), "embedded always answers a question equally"),
        (("--draws", "0"), "--draws must be from 1 to 100, got 0"),
    ],
)
def test_usage_errors(here: Here, words: tuple[str, ...], says: str) -> None:
    """Draws that would repeat equal verdicts are refused in one sentence, status 2."""
    here.write("data.jsonl", SAMPLES)
    done = here.merilo("run", "data.jsonl", "--metrics", "context_relevance", *words)
    assert done.returncode == 2
    assert says in " ".join(done.stderr.split())


def test_labels_stand_for_the_first_draw(here: Here) -> None:
    """The judge's own labels are those of the first draw and reproduce its value, so human labels can be compared."""
    with JudgeServer(moody) as server:
        assert run(here, server, "--draws", "2", "--out", "run").returncode == 0
    (found,) = judged_samples(Run.open(here.path / "run"), ["context_relevance"], ["s0"]).values()
    first = outcomes(here, "run")[0]["draws"][0]
    assert found.first_draw == first
    assert found.with_labels({item.mark: item.judge for item in found.items}) == first
    assert found.reads_labels()


def test_the_judge_noise_is_shown(here: Here) -> None:
    """`show` splits the variance of the scores; a run without draws has no such part."""
    script = [
        {"kind": "relevance", "match": {"user_input": {"contains": "T0x"}, "draw": 0}, "verdict": {"grade": 0}},
        {"kind": "relevance", "match": {"user_input": {"contains": "T0x"}}, "verdict": {"grade": 2, "evidence": [0]}},
        {"kind": "relevance", "match": {"user_input": {"contains": "T1x"}}, "verdict": {"grade": 2, "evidence": [0]}},
        {"kind": "relevance", "verdict": {"grade": 0}},
    ]
    here.write("script.jsonl", script)
    here.write("data.jsonl", SAMPLES)
    words = ["run", "data.jsonl", "--judge", "scripted:script.jsonl", "--metrics", "context_relevance", "--quiet"]
    assert here.merilo(*words, "--draws", "2", "--out", "two").returncode == 0
    assert here.merilo(*words, "--out", "one").returncode == 0
    # one sample has draws 0 and 1, one has 1 and 1, four have 0 and 0
    within = 0.5 / 6
    between = sum((mean - 0.25) ** 2 for mean in (0.5, 1, 0, 0, 0, 0)) / 5 - within / 2
    noise = here.json("show", "two")["judge_noise"]["context_relevance"]
    assert noise["deviation_within"] == pytest.approx(within**0.5)
    assert noise["deviation_between"] == pytest.approx(between**0.5)
    assert (noise["draws"], noise["samples"]) == (2, 6)
    page = " ".join(here.merilo("show", "two", "--full").stdout.split())
    deviations = f"{within**0.5:.3f} within a sample, {between**0.5:.3f} between samples"
    assert f"standard deviation {deviations}; mean of 2 draws" in page
    assert "judge_noise" not in here.json("show", "one")
    assert "Judge noise" not in here.merilo("show", "one").stdout
