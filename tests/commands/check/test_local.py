"""Local judges on the command line: runs and checks."""

import json

import pytest
from command_line import Here
from tiny_models import nli, reranker

ROWS = [
    {
        "user_input": "Is the tower in Paris?",
        "retrieved_contexts": ["The tower is in Paris.", "Rome has seven hills."],
        "response": "The tower is in Paris. It was designed by Eiffel.",
    },
    {
        "user_input": "Has Rome hills?",
        "retrieved_contexts": ["Rome has seven hills."],
        "response": "Rome has hills.",
    },
]
LABELS = [
    {
        "id": "a",
        "source": "ours",
        "task": "nli",
        "context": "The tower is in Paris.",
        "statement": "A tower.",
        "label": 1,
    },
    {"id": "b", "source": "ours", "task": "nli", "context": "Rome has hills.", "statement": "A tower.", "label": 0},
]


def test_a_second_run_uses_the_cache(here: Here) -> None:
    """The verdicts of an unchanged model are reused; those of a changed card are not."""
    folder = reranker(here.path / "model")
    here.write("rows.jsonl", ROWS)
    words = ["run", "rows.jsonl", "--judge", "local:./model", "--metrics", "context_relevance", "--json", "--quiet"]
    first = json.loads(here.merilo(*words, "--out", "a").stdout)
    second = json.loads(here.merilo(*words, "--out", "b").stdout)
    assert first["metrics"]["context_relevance"]["mean"] == second["metrics"]["context_relevance"]["mean"] == 0.75
    card = folder / "judge.toml"
    card.write_text(card.read_text().replace("cuts = [0.1, 0.9]", "cuts = [0.999999, 0.999999]"))
    third = json.loads(here.merilo(*words, "--out", "c").stdout)
    assert third["metrics"]["context_relevance"]["mean"] == 0.0


def test_golden_logits_are_compared(here: Here) -> None:
    """The trial reports that golden logits agree, and fails if they differ."""
    folder = nli(here.path / "model")
    card = folder / "judge.toml"
    original = card.read_text()
    golden = '[[golden]]\npremise = "The tower."\nhypothesis = "The tower."\nlogits = [0.0, {}, 0.0]\n'
    card.write_text(original + golden.format("2.0"))
    done = here.merilo("judge", "check", "local:./model", "--task", "trial")
    assert done.returncode == 0, done.stderr
    assert "Golden logits agree (1 pairs, largest difference 0)." in done.stdout
    assert here.json("judge", "check", "local:./model", "--task", "trial")["golden"] == {"pairs": 1, "agree": True}
    card.write_text(original + golden.format("3.0"))
    done = here.merilo("judge", "check", "local:./model", "--task", "trial")
    assert done.returncode == 4
    assert "Golden logits DIFFER (1 pairs, largest difference 1)." in done.stdout


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("local:factcg", "Download it: merilo judge check local:factcg."),
        ("local:./none", "No such folder: none."),
        ("local:", "No judge 'local:'. Did you mean local:MODEL?"),
    ],
)
def test_an_absent_model_is_one_line(here: Here, spec: str, message: str) -> None:
    """A model that is not there is a usage error before anything is asked."""
    here.write("rows.jsonl", ROWS)
    env = {"HF_HUB_CACHE": str(here.path / "hub"), "MERILO_JUDGES": str(here.path / "judges")}
    done = here.merilo("run", "rows.jsonl", "--judge", spec, env=env)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert done.stderr.count("\n") <= 2
